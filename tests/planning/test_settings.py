"""Which settings are evaluated, and how near the quick figure of their noise is."""

from itertools import pairwise

import pytest

from noisy_plans import calibrated
from secretballot.accounting import (
    check_useful,
    confident_labels,
    sparse_vector,
    table_of_abstentions,
    teacher_shape,
)
from secretballot.planning.best_setting import _settings_of, _teacher_counts, stated_noise, terms_of
from secretballot.planning.plan_model import Setting, Task


def only(task, n_teachers, *names):
    return [one for one in _settings_of(task, n_teachers) if one.mechanism in names]


@pytest.mark.parametrize(
    ("least", "most", "n"), [(35, 6512, 32561), (1, 12, 60), (30, 40, 60), (1, 1, 1)]
)
def test_numbers_of_teachers_cover_what_can_be_told(least, most, n):
    found = _teacher_counts(least, most, n)
    assert found == sorted(set(found))
    assert found[0] == least
    assert found[-1] <= most
    assert found[-1] == max(least, min(most, n // 10))
    assert all(b / a <= 2.1 for a, b in pairwise(found) if a > 2)


def test_streams_that_nothing_passes_are_not_evaluated():
    names = ("sparse-vector", "abstention-table")
    task = Task(100_000, 2000, 2, 1.0, 1e-5)
    assert not only(task, 50, *names)
    some = only(task, 300, *names)
    # the pure sparse vector for one abstention, the table for many
    assert [(s.max_abstentions, s.mechanism) for s in some] == [
        (1, names[0]),
        (10, names[1]),
        (100, names[1]),
    ]
    one, table = (terms_of(task, setting) for setting in some[:2])
    assert one.mechanism == sparse_vector(task.budget, some[0].n_queries, max_abstentions=1)
    assert table.mechanism == table_of_abstentions(task.budget, 300, max_abstentions=10)
    for terms in (one, table):
        check_useful(terms.mechanism, terms.shape)
    # more abstentions than queries would be idle
    short = only(Task(100_000, 3, 2, 1.0, 1e-5), 1000, *names)
    assert [s.max_abstentions for s in short] == [1]


@pytest.mark.parametrize(
    ("epsilon", "classes", "release", "n_queries"),
    [(0.1, 2, "labels", 1), (1.0, 2, "counts", 6), (4.0, 3, "labels", 4)],
)
def test_the_quick_noise_is_near_that_of_a_run(epsilon, classes, release, n_queries):
    task = Task(100_000, 100, classes, epsilon, 1e-5)
    setting = Setting(1500, "gaussian", release, n_queries)
    run = calibrated(task.budget, n_queries, n_classes=classes, n_teachers=1500, release=release)
    quick = terms_of(task, setting)
    assert quick.mechanism.scale == pytest.approx(run.mechanism.scale, rel=0.025)
    assert (quick.shape, quick.mechanism.release) == (run.shape, release)
    assert stated_noise(quick) == quick.mechanism.scale


def test_confident_voting_is_evaluated_with_nearly_the_noise_of_a_run():
    task = Task(20_000, 400, 2, 1.0, 1e-6)
    few, *more = settings = only(task, 200, "confident")
    assert {one.threshold for one in settings} == {160}
    assert all(one.n_queries == min(400, 3 * (one.max_answers or 0)) for one in settings)
    assert few.max_answers == 10
    assert more
    quick, shape = terms_of(task, few), teacher_shape(few.n_queries, 2, 200)
    run = confident_labels(task.budget, shape, threshold=160, max_answers=few.max_answers)
    assert quick.mechanism.sigma == pytest.approx(run.sigma, rel=0.06)
    assert quick.mechanism.threshold_sigma == pytest.approx(run.threshold_sigma, rel=0.06)
    assert stated_noise(quick) == quick.mechanism.sigma
    assert not only(Task(20_000, 400, 2, 1.0, 0.0), 200, "confident")
