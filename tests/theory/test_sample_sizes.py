"""The table of sample sizes."""

import pytest

from secretballot import theory
from secretballot.exceptions import ParameterError
from secretballot.privacy.accounting import PrivacyBudget

BUDGET = PrivacyBudget(1.0, 1e-6)


@pytest.fixture(scope="module")
def rows() -> dict[str, theory.SampleSize]:
    return {row.construction: row for row in theory.sample_sizes(0.2, 0.04, BUDGET, 1, 1500)}


def test_tight_asks_for_less_wherever_constants_are_printed(
    rows: dict[str, theory.SampleSize],
) -> None:
    for name, factor in (
        ("stability labeler, realizable", 5),
        ("agnostic labeler", 50),
        ("universal labeler", 20),
    ):
        row = rows[name]
        assert row.paper is not None
        assert row.tight is not None
        assert row.paper > factor * row.tight, name


def test_the_choice_on_all_records_asks_for_far_less_than_voting(
    rows: dict[str, theory.SampleSize],
) -> None:
    choice, voting = rows["semi-private learner"].tight, rows["agnostic labeler"].tight
    assert choice is not None
    assert voting is not None
    assert 1000 * choice < voting


def test_no_promise_without_reason(rows: dict[str, theory.SampleSize]) -> None:
    assert not any(row.vacuous for row in rows.values())
    few = {row.construction: row for row in theory.sample_sizes(0.2, 0.04, BUDGET, 1, 50)}
    labeler = few["agnostic labeler"]
    assert labeler.vacuous
    assert "n_queries is 50" in labeler.remark


def test_the_table_has_a_line_for_each_row(rows: dict[str, theory.SampleSize]) -> None:
    table = theory.render_sample_sizes(list(rows.values())).splitlines()
    assert len(table) == len(rows) + 2
    assert all(line.count("|") == 7 for line in table)


def test_a_large_epsilon_leaves_the_printed_theorem_behind() -> None:
    budget = PrivacyBudget(2.0, 1e-6)
    with pytest.raises(ParameterError, match="epsilon from 0 to 1"):
        theory.printed_labeler_records(1500, 0.2, 0.04, budget, 1)
    assert theory.labeler_sizes(1500, 0.2, 0.04, budget, 1).n_records > 0


@pytest.mark.parametrize(
    "change",
    [{"alpha": 0.0}, {"beta": 1.0}, {"n_queries": 0}, {"best_error": 0.5}, {"best_error": 0.0}],
)
def test_bad_numbers_are_refused(change: dict[str, float]) -> None:
    given = {
        "alpha": 0.1,
        "beta": 0.05,
        "budget": BUDGET,
        "vc_dimension": 1,
        "n_queries": 2000,
        **change,
    }
    with pytest.raises(ParameterError):
        theory.sample_sizes(**given)  # type: ignore[arg-type]


def test_delta_zero_is_refused() -> None:
    with pytest.raises(ParameterError, match="delta"):
        theory.sample_sizes(0.1, 0.05, PrivacyBudget(1.0, 0.0), 1, 2000)


def test_former_names_of_sizes_still_work() -> None:
    for former, name in {"StreamPlan": "StreamSizes", "labeler_plan": "labeler_sizes"}.items():
        assert getattr(theory, former) is getattr(theory, name)
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        theory.no_such_name  # noqa: B018
