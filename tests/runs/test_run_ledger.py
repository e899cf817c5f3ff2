"""The account behind a run: the right one, asked early, never paid twice."""

from pathlib import Path

import pytest

from secretballot.exceptions import BudgetError, LedgerError
from secretballot.learners.training.account import refuse_beyond
from secretballot.privacy.accounting import GaussianEvent, PrivacyBudget
from secretballot.privacy.ledger import Ledger
from secretballot.runs.account import open_ledger, settle_request
from secretballot.runs.folder import RunFolder
from secretballot.runs.progress import Watch

BUDGET = PrivacyBudget(1.0, 1e-6)
EVENTS = [GaussianEvent(100.0, 1)]
PROMISE = {"unit": "record", "neighbours": "add-remove"}


def test_a_new_ledger_holds_just_this_run(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l", dataset="d", budget=BUDGET, **PROMISE)
    assert ledger.budget == BUDGET
    assert (
        open_ledger(tmp_path / "l", dataset="d", budget=PrivacyBudget(0.5, 0.0), **PROMISE).budget
        == BUDGET
    )


def test_the_account_of_another_dataset_is_refused(tmp_path: Path) -> None:
    open_ledger(tmp_path / "l", dataset="registry", budget=BUDGET, **PROMISE)
    with pytest.raises(LedgerError, match=r"'registry', and this run is about 'd'.*--dataset"):
        open_ledger(tmp_path / "l", dataset="d", budget=BUDGET, **PROMISE)


def test_a_new_ledger_promises_what_the_run_does_and_nothing_else(tmp_path: Path) -> None:
    by_user = {"unit": "user", "neighbours": "add-remove"}
    ledger = open_ledger(tmp_path / "l", dataset="d", budget=BUDGET, **by_user)
    assert (ledger.unit, ledger.neighbours) == ("user", "add-remove")
    with pytest.raises(
        LedgerError, match="unit 'user' under 'add-remove', and this release is about unit 'record'"
    ):
        open_ledger(tmp_path / "l", dataset="d", budget=BUDGET, **PROMISE)
    open_ledger(tmp_path / "records", dataset="d", budget=BUDGET, **PROMISE)
    assert open_ledger(tmp_path / "records", dataset="d", budget=BUDGET, **by_user).unit == "record"


def test_more_than_is_left_is_refused_early(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l", dataset="d", budget=BUDGET, **PROMISE)
    refuse_beyond(ledger, BUDGET, "r", goes_on=False)
    for dear in (PrivacyBudget(1.01, 1e-6), PrivacyBudget(1.0, 2e-6)):
        with pytest.raises(BudgetError, match="Nothing was spent"):
            refuse_beyond(ledger, dear, "r", goes_on=False)
    number = ledger.reserve(EVENTS, BUDGET, request="r", purpose="")
    with pytest.raises(BudgetError, match="epsilon 0 and delta 0 are left"):
        refuse_beyond(ledger, BUDGET, "r", goes_on=False)
    ledger.commit(number, b"answer")
    refuse_beyond(ledger, BUDGET, "r", goes_on=False)  # answered already: costs nothing


def test_a_renyi_account_judges_for_itself(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l", dataset="d", budget=BUDGET, composition="renyi")
    refuse_beyond(ledger, PrivacyBudget(5.0, 1e-6), "r", goes_on=False)


@pytest.mark.parametrize(
    ("ending", "renewed"), [(None, False), ("commit", False), ("reserve", True), ("forfeit", True)]
)
def test_a_key_that_was_paid_and_not_answered_is_renewed(
    tmp_path: Path, ending: str | None, renewed: bool
) -> None:
    ledger = open_ledger(tmp_path / "l", dataset="d", budget=BUDGET, **PROMISE)
    with RunFolder(tmp_path / "out", {}) as folder:
        key, watch = folder.request, Watch()
        if ending:
            number = ledger.reserve(EVENTS, BUDGET, request=key, purpose="")
            if ending == "commit":
                ledger.commit(number, b"answer")
            if ending == "forfeit":
                ledger.forfeit(number, "broken off")
        settle_request(folder, ledger, watch, goes_on=False)
    assert (folder.request != key) is renewed
    assert bool(watch.notes) is renewed


def test_a_plan_that_was_begun_goes_on_under_its_key(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l", dataset="d", budget=BUDGET, **PROMISE)
    folder, watch = RunFolder(tmp_path / "run", {"verb": "learn"}), Watch()
    with folder:
        key = folder.request
        number = ledger.reserve(EVENTS, BUDGET, request=key, purpose="")
        settle_request(folder, ledger, watch, goes_on=True)
        refuse_beyond(ledger, BUDGET, key, goes_on=True)
        assert (folder.request, watch.notes) == (key, [])
        ledger.forfeit(number, "broken off")
        settle_request(folder, ledger, watch, goes_on=True)
        assert folder.request != key
        with pytest.raises(BudgetError):
            refuse_beyond(ledger, BUDGET, folder.request, goes_on=True)


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_run_whose_estimate_was_paid_and_not_answered_gets_a_new_key(
    tmp_path: Path, *, goes_on: bool
) -> None:
    ledger = open_ledger(tmp_path / "l", dataset="d", budget=BUDGET, **PROMISE)
    with RunFolder(tmp_path / "run", {"verb": "learn"}) as folder:
        key = folder.request
        ledger.reserve(EVENTS, BUDGET, request=f"{key}/estimate", purpose="")
        settle_request(folder, ledger, Watch(), goes_on=goes_on)
        assert folder.request != key
