"""Which settings are evaluated, and how near the quick figure of their noise is."""

import itertools
from itertools import pairwise

import pytest

from noisy_plans import calibrated
from secretballot.accounting import (
    PrivacyBudget,
    check_useful,
    confident_labels,
    sparse_vector,
    table_of_abstentions,
    teacher_shape,
)
from secretballot.core.mechanisms import SparseVector
from secretballot.planning.plan.model import Setting, Task
from secretballot.planning.search.settings import (
    STOPS,
    Noise,
    confident_settings,
    stated_noise,
    stream_settings,
    teacher_counts,
)


@pytest.mark.parametrize(
    ("least", "most", "n"),
    [(2, 6512, 32561), (35, 6512, 32561), (5, 5, 100), (1, 12, 60), (30, 40, 60), (1, 1, 1)],
)
def test_numbers_of_teachers_cover_what_can_be_told(least: int, most: int, n: int) -> None:
    found = teacher_counts(least, most, n)
    assert found == sorted(set(found))
    assert found[0] == least
    assert found[-1] <= most
    assert found[-1] == max(least, min(most, n // 10))
    assert all(b / a <= 2 for a, b in pairwise(found) if a > 2)


def test_streams_that_nothing_passes_are_not_evaluated() -> None:
    task = Task(100_000, 2000, 2, 1.0, 1e-5)
    noise = Noise(task.budget, 2)
    assert list(stream_settings(task, 50, noise, STOPS)) == []
    some = list(stream_settings(task, 300, noise, STOPS))
    assert [s.max_abstentions for s in some] == [1, 3, 10, 30, 100]
    kinds = {}
    for setting in some:
        terms = noise.terms(setting)
        most = {"max_abstentions": setting.max_abstentions}
        if isinstance(terms.mechanism, SparseVector):
            run = sparse_vector(task.budget, setting.n_queries, **most)
        else:
            run = table_of_abstentions(task.budget, 300, **most)
        assert terms.mechanism == run
        assert terms.shape.n_queries == setting.n_queries
        check_useful(terms.mechanism, terms.shape)
        kinds[setting.max_abstentions] = setting.mechanism
    # the pure sparse vector for one abstention, the table for many
    assert kinds[1] == "sparse-vector"
    assert kinds[10] == kinds[100] == "abstention-table"
    short = stream_settings(Task(100_000, 3, 2, 1.0, 1e-5), 1000, noise, STOPS)
    assert [s.max_abstentions for s in short] == [
        1,
        3,
    ]  # more abstentions than queries would be idle


KINDS = [(2, "labels"), (2, "counts"), (3, "labels"), (3, "counts")]
# much noise on labels of three classes takes seconds to calibrate
QUICK = [
    *[(epsilon, 2, "labels", n) for epsilon, n in ((0.1, 1), (0.1, 25), (1.0, 6), (4.0, 25))],
    *[(1.0, 2, "counts", 6), (1.0, 3, "labels", 1), (4.0, 3, "labels", 25), (0.1, 3, "counts", 25)],
]


@pytest.mark.parametrize(
    ("epsilon", "classes", "release", "n_queries"),
    [
        pytest.param(*one, marks=() if one in QUICK else pytest.mark.slow)
        for one in (
            (epsilon, *kind, n_queries)
            for epsilon, kind, n_queries in itertools.product([0.1, 1.0, 4.0], KINDS, [1, 6, 25])
        )
    ],
)
def test_the_quick_noise_is_near_that_of_a_run(
    epsilon: float, classes: int, release: str, n_queries: int
) -> None:
    noise = Noise(PrivacyBudget(epsilon, 1e-5), classes)
    setting = Setting(1500, "gaussian", release, n_queries)
    run = calibrated(noise.budget, n_queries, n_classes=classes, n_teachers=1500, release=release)
    quick = noise.terms(setting)
    assert quick.mechanism.scale == pytest.approx(run.mechanism.scale, rel=0.025)
    assert (quick.shape, quick.mechanism.release) == (run.shape, release)
    assert stated_noise(quick) == quick.mechanism.scale


@pytest.mark.parametrize("n_classes", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_confident_voting_is_evaluated_with_nearly_the_noise_of_a_run(n_classes: int) -> None:
    task = Task(20_000, 400, n_classes, 1.0, 1e-6)
    settings = list(confident_settings(task, 200))
    assert [one.threshold for one in settings] == [160] * len(settings)
    assert all(one.n_queries == min(400, 3 * (one.max_answers or 0)) for one in settings)
    assert settings[0].max_answers == 5 * n_classes
    noise = Noise(task.budget, n_classes)
    few = settings[0]
    quick, exact = noise.terms(few).mechanism, noise.calibrated(few).mechanism
    run = confident_labels(
        task.budget,
        teacher_shape(few.n_queries, n_classes, 200),
        threshold=160,
        max_answers=few.max_answers,
    )
    assert exact == run
    assert quick.sigma == pytest.approx(exact.sigma, rel=0.06)
    assert quick.threshold_sigma == pytest.approx(exact.threshold_sigma, rel=0.06)
    assert stated_noise(noise.calibrated(few)) == exact.sigma
    assert not list(confident_settings(Task(20_000, 400, n_classes, 1.0, 0.0), 200))
