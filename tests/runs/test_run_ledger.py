"""The account behind a run: the right one, asked early, never paid twice."""

import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from ledger_answers import answer
from made_events import counts_event
from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Ledger
from secretballot.exceptions import BudgetError, LedgerError
from secretballot.learners.training.account import refuse_beyond
from secretballot.report.certificate.build import certificate_digest
from secretballot.runs.account import (
    ledger_of_run,
    open_ledger,
    place_of_account,
    settle_request,
    state_of_account,
)
from secretballot.runs.folder import RunFolder
from secretballot.runs.progress import Watch

BUDGET = PrivacyBudget(1.0, 1e-6)
EVENTS = [counts_event(100.0, 1)]
PROMISE = {"unit": "record", "relation": "add-remove"}


def test_a_new_ledger_holds_just_this_run(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l", dataset="d", budget=BUDGET, **PROMISE)
    assert ledger.budget == BUDGET
    assert (
        open_ledger(tmp_path / "l", dataset="d", budget=PrivacyBudget(0.5, 0.0), **PROMISE).budget
        == BUDGET
    )


def test_a_new_ledger_promises_what_the_run_does_and_nothing_else(tmp_path: Path) -> None:
    by_user = {"unit": "user", "relation": "add-remove"}
    ledger = open_ledger(tmp_path / "l", dataset="d", budget=BUDGET, **by_user)
    assert (ledger.unit, ledger.relation) == ("user", "add-remove")
    with pytest.raises(
        LedgerError, match="unit 'user' under 'add-remove', and this release is about unit 'record'"
    ):
        open_ledger(tmp_path / "l", dataset="d", budget=BUDGET, **PROMISE)
    open_ledger(tmp_path / "records", dataset="d", budget=BUDGET, **PROMISE)
    assert open_ledger(tmp_path / "records", dataset="d", budget=BUDGET, **by_user).unit == "record"


def test_more_than_is_left_is_refused_early(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "l", dataset="d", budget=BUDGET, **PROMISE)
    refuse_beyond(ledger, BUDGET, "r")
    for dear in (PrivacyBudget(1.01, 1e-6), PrivacyBudget(1.0, 2e-6)):
        with pytest.raises(BudgetError, match="Nothing was spent"):
            refuse_beyond(ledger, dear, "r")
    number = ledger.reserve(EVENTS, BUDGET, request="r", purpose="")
    with pytest.raises(BudgetError, match="epsilon 0 and delta 0 are left"):
        refuse_beyond(ledger, BUDGET, "another")
    refuse_beyond(ledger, BUDGET, "r")  # paid already: goes on
    answer(ledger, number, b"answer")
    refuse_beyond(ledger, BUDGET, "r")  # answered already: costs nothing


def test_a_renyi_account_judges_for_itself(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l", dataset="d", budget=BUDGET, composition="renyi")
    refuse_beyond(ledger, PrivacyBudget(5.0, 1e-6), "r")


@pytest.mark.parametrize("ending", [None, "commit", "reserve", "forfeit"])
@pytest.mark.parametrize("of", ["{}", "{}/estimate"])
def test_a_run_goes_on_under_its_key_unless_that_was_forfeited(
    tmp_path: Path, ending: str | None, of: str
) -> None:
    ledger = open_ledger(tmp_path / "l", dataset="d", budget=BUDGET, **PROMISE)
    with RunFolder(tmp_path / "out", {}) as folder:
        key = folder.request
        if ending:
            number = ledger.reserve(EVENTS, BUDGET, request=of.format(key), purpose="")
            if ending == "commit":
                answer(ledger, number, b"answer")
            if ending == "forfeit":
                ledger.forfeit(number, "broken off")
        if ending == "forfeit":
            with pytest.raises(LedgerError, match=r"stays spent.*in another folder with --out"):
                settle_request(folder, ledger, Watch())
        else:
            settle_request(folder, ledger, Watch())
    assert RunFolder(tmp_path / "out", {}).request == key


@dataclass(frozen=True)
class Paid:
    """A run as its account sees it."""

    private_file: Path
    ledger: Path | None = None
    own_ledger: bool = False
    dataset_name: str = "d"
    budget: PrivacyBudget = BUDGET
    relation: str = "add-remove"


def test_the_account_lies_beside_the_private_file_unless_another_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path / "out", {"verb": "learn"})
    private = tmp_path / "data" / "p.csv"
    private.parent.mkdir()
    private.write_text("x\n1\n")
    beside = private.with_name("p.csv.ledger")
    assert place_of_account(Paid(private), folder) == beside
    link = tmp_path / "link.csv"
    link.symlink_to(private)
    assert place_of_account(Paid(link), folder) == beside
    assert place_of_account(Paid(private, tmp_path / "l"), folder) == tmp_path / "l"
    assert place_of_account(Paid(private, own_ledger=True), folder) == folder.ledger
    accounts = tmp_path / "accounts"
    accounts.mkdir()
    named = Paid(private, accounts, dataset_name="../x/y")
    assert place_of_account(named, folder) == accounts / ".._x_y.ledger"
    monkeypatch.setenv("SECRETBALLOT_LEDGER", str(accounts))
    assert place_of_account(Paid(private), folder) == accounts / "d.ledger"
    assert place_of_account(Paid(private, tmp_path / "l"), folder) == tmp_path / "l"
    assert place_of_account(Paid(private, own_ledger=True), folder) == folder.ledger


def test_a_run_that_began_with_an_account_in_its_vault_goes_on_with_it(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "out", {"verb": "learn"})
    private = tmp_path / "p.csv"
    with folder:
        open_ledger(folder.ledger, dataset="d", budget=BUDGET, **PROMISE)
        assert place_of_account(Paid(private), folder) == folder.ledger


@pytest.mark.parametrize(
    ("plan", "total"),
    [
        (PrivacyBudget(1.0, 1e-6), PrivacyBudget(10.0, 1e-5)),
        (PrivacyBudget(0.1, 1e-5), PrivacyBudget(10.0, 1e-4)),
        (PrivacyBudget(50.0, 0.5), PrivacyBudget(50.0, 0.999)),
        (PrivacyBudget(1.0, 0.9999), PrivacyBudget(10.0, 0.9999)),
        (PrivacyBudget(1.0, 0.0), PrivacyBudget(10.0, 1e-5)),
    ],
)
def test_an_account_that_a_run_opens_has_room_for_more(
    tmp_path: Path, price: PrivacyBudget, total: PrivacyBudget
) -> None:
    run, folder = Paid(tmp_path / "p", budget=price), RunFolder(tmp_path / "out", {"verb": "learn"})
    assert not state_of_account(run, folder, "record").exists
    with folder:
        ledger = ledger_of_run(run, folder, "record", Watch())
    assert ledger.budget == total
    assert ledger.path == tmp_path / "p.ledger"
    state = state_of_account(run, folder, "record")
    assert (state.budget, state.admits, state.releases, state.own) == (total, True, 0, False)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


def test_an_account_of_one_run_admits_that_run_alone(tmp_path: Path) -> None:
    run = Paid(tmp_path / "p", own_ledger=True)
    folder = RunFolder(tmp_path / "out", {"verb": "learn"})
    with folder:
        assert ledger_of_run(run, folder, "record", Watch()).budget == BUDGET
    assert not (tmp_path / "p.ledger").exists()


def test_a_full_account_says_so_before_anything_is_done(tmp_path: Path) -> None:
    run, folder = Paid(tmp_path / "p"), RunFolder(tmp_path / "out", {"verb": "learn"})
    ledger = open_ledger(tmp_path / "p.ledger", dataset="d", budget=BUDGET, **PROMISE)
    number = ledger.reserve(EVENTS, PrivacyBudget(0.5, 5e-7), request="r", purpose="")
    answer(ledger, number, b"answer")
    state = state_of_account(run, folder, "record")
    assert (state.exists, state.admits, state.releases) == (True, False, 1)
    assert state.left is not None
    assert state.left.epsilon == pytest.approx(0.5)
    with pytest.raises(LedgerError, match="account of the dataset 'd', and this run is about 'e'"):
        state_of_account(Paid(tmp_path / "p", dataset_name="e"), folder, "record")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_may_not_be_written_into_is_told_of(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(LedgerError, match="name another place with --ledger"):
        open_ledger(closed / "l", dataset="d", budget=BUDGET, **PROMISE)


def test_an_interrupted_run_goes_on_with_the_account_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, named = Paid(tmp_path / "p"), tmp_path / "named.ledger"
    monkeypatch.setenv("SECRETBALLOT_LEDGER", str(named))
    first = RunFolder(tmp_path / "out", {"verb": "learn"})
    with suppress(KeyboardInterrupt), first:
        ledger = ledger_of_run(run, first, "record", Watch())
        number = ledger.reserve(EVENTS, BUDGET, request=first.request, purpose="")
        answer(ledger, number, b"answer")
        raise KeyboardInterrupt
    monkeypatch.delenv("SECRETBALLOT_LEDGER")
    again = RunFolder(tmp_path / "out", {"verb": "learn"})
    assert state_of_account(run, again, "record").releases == 1
    with again:
        ledger = ledger_of_run(run, again, "record", Watch())
        assert (ledger.path, again.request) == (named, first.request)
        again.release.mkdir()
        certificate = {"digest": certificate_digest({})}
        (again.release / "certificate.json").write_text(json.dumps(certificate))
    finished = RunFolder(tmp_path / "out", {"verb": "learn"})
    assert finished.finished
    assert place_of_account(run, finished) == named
    assert not (tmp_path / "p.ledger").exists()


def _begun(run: Paid, root: Path) -> None:
    """Begin a run, and break it off by hand."""
    folder = RunFolder(root, {"verb": "learn"})
    with suppress(KeyboardInterrupt), folder:
        ledger_of_run(run, folder, "record", Watch())
        raise KeyboardInterrupt


def test_an_account_that_is_gone_is_not_replaced_by_a_new_one(tmp_path: Path) -> None:
    run, place = Paid(tmp_path / "p"), tmp_path / "p.ledger"
    _begun(run, tmp_path / "out")
    moved = place.rename(tmp_path / "elsewhere")
    (tmp_path / "p.ledger-journal").unlink(missing_ok=True)
    folder = RunFolder(tmp_path / "out", {"verb": "learn"})
    gone = pytest.raises(
        LedgerError, match=r"account .*p\.ledger alone, which is not found any more"
    )
    with gone, folder:
        ledger_of_run(run, folder, "record", Watch())
    assert not place.exists()
    moved.rename(place)
    with RunFolder(tmp_path / "out", {"verb": "learn"}) as folder:
        ledger_of_run(run, folder, "record", Watch())


def test_an_account_that_moved_with_its_file_is_known_again_and_no_other(tmp_path: Path) -> None:
    _begun(Paid(tmp_path / "p"), tmp_path / "out")
    (tmp_path / "new").mkdir()
    (tmp_path / "p.ledger").rename(tmp_path / "new" / "p.ledger")
    open_ledger(tmp_path / "q.ledger", dataset="d", budget=PrivacyBudget(2.0, 1e-5), **PROMISE)
    folder = RunFolder(tmp_path / "out", {"verb": "learn"})
    with pytest.raises(LedgerError, match="put it back in its place"), folder:
        ledger_of_run(Paid(tmp_path / "q"), folder, "record", Watch())
    with RunFolder(tmp_path / "out", {"verb": "learn"}) as folder:
        run = Paid(tmp_path / "new" / "p")
        ledger = ledger_of_run(run, folder, "record", Watch())
    assert ledger.path == tmp_path / "new" / "p.ledger"


def test_what_the_run_would_refuse_of_its_account_is_refused_of_a_question_too(
    tmp_path: Path,
) -> None:
    folder = RunFolder(tmp_path / "out", {"verb": "learn"})
    with pytest.raises(LedgerError, match="since its folder does not exist"):
        state_of_account(Paid(tmp_path / "p", tmp_path / "none" / "l"), folder, "record")
    open_ledger(tmp_path / "p.ledger", dataset="d", budget=BUDGET, **PROMISE)
    replaced = Paid(tmp_path / "p", relation="replace-one")
    with pytest.raises(LedgerError, match="'replace-one'"):
        state_of_account(replaced, folder, "record")
