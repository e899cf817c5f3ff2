"""The account behind a run: the right one, asked early, never paid twice."""

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ledger_answers import answer
from made_events import counts_event
from secretballot.accounting import PrivacyBudget
from secretballot.exceptions import LedgerError, ParameterError
from secretballot.report.certificate.build import certificate_digest
from secretballot.runs.account import (
    ledger_of_run,
    open_ledger,
    place_of_account,
    question_of_total,
    settle_request,
    state_of_account,
)
from secretballot.runs.folder import RunFolder
from secretballot.runs.questions import Watch
from secretballot.runs.spec import RunSpec

BUDGET = PrivacyBudget(1.0, 1e-6)
EVENTS = [counts_event(100.0, 1)]
PROMISE = {"unit": "record", "relation": "add-remove"}


def test_an_account_is_opened_with_a_total_that_nobody_changes(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="total is missing, and a new account needs"):
        open_ledger(tmp_path / "l", dataset="d", total=None, **PROMISE)
    for total in (BUDGET, BUDGET, None):
        assert open_ledger(tmp_path / "l", dataset="d", total=total, **PROMISE).budget == BUDGET
    other = PrivacyBudget(2.0, 1e-6)
    with pytest.raises(ParameterError, match=r"total is 2,1e-06, and the account .*with 1,1e-06"):
        open_ledger(tmp_path / "l", dataset="d", total=other, **PROMISE)


def test_a_new_ledger_promises_what_the_run_does_and_nothing_else(tmp_path: Path) -> None:
    by_user = {"unit": "user", "relation": "add-remove"}
    ledger = open_ledger(tmp_path / "l", dataset="d", total=BUDGET, **by_user)
    assert (ledger.unit, ledger.relation) == ("user", "add-remove")
    with pytest.raises(
        LedgerError, match="unit 'user' under 'add-remove', and this release is about unit 'record'"
    ):
        open_ledger(tmp_path / "l", dataset="d", total=BUDGET, **PROMISE)
    open_ledger(tmp_path / "records", dataset="d", total=BUDGET, **PROMISE)
    assert open_ledger(tmp_path / "records", dataset="d", total=BUDGET, **by_user).unit == "record"


@pytest.mark.parametrize("ending", [None, "commit", "reserve", "forfeit"])
@pytest.mark.parametrize("of", ["{}", "{}/estimate"])
def test_a_run_goes_on_under_its_key_unless_that_was_forfeited(
    tmp_path: Path, ending: str | None, of: str
) -> None:
    ledger = open_ledger(tmp_path / "l", dataset="d", total=BUDGET, **PROMISE)
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


def paid(private: Path, ledger: Path | str | None = None, **more: Any) -> RunSpec:
    """Return a run as its account sees it."""
    fields = {"dataset": "d", "epsilon": 1.0, "delta": 1e-6, "total": (1.0, 1e-6), **more}
    return RunSpec.read(private=private, ledger=None if ledger is None else str(ledger), **fields)


def test_the_account_lies_beside_the_private_file_unless_another_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path / "out", {})
    private = tmp_path / "data" / "p.csv"
    private.parent.mkdir()
    private.write_text("x\n1\n")
    beside = private.with_name("p.csv.ledger")
    assert place_of_account(paid(private), folder) == beside
    link = tmp_path / "link.csv"
    link.symlink_to(private)
    assert place_of_account(paid(link), folder) == beside
    assert place_of_account(paid(private, tmp_path / "l"), folder) == tmp_path / "l"
    assert place_of_account(paid(private, ledger="own"), folder) == folder.ledger
    accounts = tmp_path / "accounts"
    accounts.mkdir()
    named = paid(private, accounts, dataset="../x/y")
    assert place_of_account(named, folder) == accounts / ".._x_y.ledger"
    monkeypatch.setenv("SECRETBALLOT_LEDGER", str(accounts))
    assert place_of_account(paid(private), folder) == accounts / "d.ledger"
    assert place_of_account(paid(private, tmp_path / "l"), folder) == tmp_path / "l"
    assert place_of_account(paid(private, ledger="own"), folder) == folder.ledger


def test_a_run_that_began_with_an_account_in_its_vault_goes_on_with_it(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "out", {})
    private = tmp_path / "p.csv"
    with folder:
        open_ledger(folder.ledger, dataset="d", total=BUDGET, **PROMISE)
        assert place_of_account(paid(private), folder) == folder.ledger


def test_a_run_opens_an_account_with_the_total_that_was_given(tmp_path: Path) -> None:
    run, folder = paid(tmp_path / "p", total=(4, 1e-5)), RunFolder(tmp_path / "out", {})
    assert not state_of_account(run, folder, "record").exists
    with folder:
        ledger = ledger_of_run(run, folder, "record", Watch())
    assert ledger.budget == run.total == PrivacyBudget(4.0, 1e-5)
    assert ledger.path == tmp_path / "p.ledger"
    state = state_of_account(run, folder, "record")
    assert (state.budget, state.admits, state.releases, state.own) == (run.total, True, 0, False)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


def test_a_new_account_is_asked_about_and_an_old_one_is_not(tmp_path: Path) -> None:
    def asked(run: RunSpec) -> list[str]:
        folder = RunFolder(tmp_path / "out", {})
        place = place_of_account(run, folder)
        return [one.text for one in question_of_total(run, place, own=place == folder.ledger)]

    (tmp_path / "old.ledger").touch()
    (text,) = asked(paid(tmp_path / "p", total=None))
    assert text.startswith("no account exists for 'd' at ")
    assert "(beside it: old.ledger)" in text
    assert asked(paid(tmp_path / "p")) == asked(paid(tmp_path / "p", "own", total=None)) == []
    open_ledger(tmp_path / "p.ledger", dataset="d", total=BUDGET, **PROMISE)
    assert asked(paid(tmp_path / "p", total=None)) == []


def test_a_full_account_says_so_before_anything_is_done(tmp_path: Path) -> None:
    run, folder = paid(tmp_path / "p"), RunFolder(tmp_path / "out", {})
    ledger = open_ledger(tmp_path / "p.ledger", dataset="d", total=BUDGET, **PROMISE)
    number = ledger.reserve(EVENTS, PrivacyBudget(0.5, 5e-7), request="r", purpose="")
    answer(ledger, number, b"answer")
    state = state_of_account(run, folder, "record")
    assert (state.exists, state.admits, state.releases) == (True, False, 1)
    assert state.left is not None
    assert state.left.epsilon == pytest.approx(0.5)
    with pytest.raises(LedgerError, match="account of the dataset 'd', and this run is about 'e'"):
        state_of_account(paid(tmp_path / "p", dataset="e"), folder, "record")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_may_not_be_written_into_is_told_of(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(LedgerError, match="name another place with --ledger"):
        open_ledger(closed / "l", dataset="d", total=BUDGET, **PROMISE)


def test_an_interrupted_run_goes_on_with_the_account_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, named = paid(tmp_path / "p"), tmp_path / "named.ledger"
    monkeypatch.setenv("SECRETBALLOT_LEDGER", str(named))
    first = RunFolder(tmp_path / "out", {})
    with suppress(KeyboardInterrupt), first:
        ledger = ledger_of_run(run, first, "record", Watch())
        number = ledger.reserve(EVENTS, BUDGET, request=first.request, purpose="")
        answer(ledger, number, b"answer")
        raise KeyboardInterrupt
    monkeypatch.delenv("SECRETBALLOT_LEDGER")
    again = RunFolder(tmp_path / "out", {})
    assert state_of_account(run, again, "record").releases == 1
    with again:
        ledger = ledger_of_run(run, again, "record", Watch())
        assert (ledger.path, again.request) == (named, first.request)
        again.release.mkdir()
        certificate = {"digest": certificate_digest({})}
        (again.release / "certificate.json").write_text(json.dumps(certificate))
    finished = RunFolder(tmp_path / "out", {})
    assert finished.finished
    assert place_of_account(run, finished) == named
    assert not (tmp_path / "p.ledger").exists()


def _begun(run: RunSpec, root: Path) -> None:
    """Begin a run, and break it off by hand."""
    folder = RunFolder(root, {})
    with suppress(KeyboardInterrupt), folder:
        ledger_of_run(run, folder, "record", Watch())
        raise KeyboardInterrupt


def test_an_account_that_is_gone_is_not_replaced_by_a_new_one(tmp_path: Path) -> None:
    run, place = paid(tmp_path / "p"), tmp_path / "p.ledger"
    _begun(run, tmp_path / "out")
    moved = place.rename(tmp_path / "elsewhere")
    (tmp_path / "p.ledger-journal").unlink(missing_ok=True)
    folder = RunFolder(tmp_path / "out", {})
    gone = pytest.raises(
        LedgerError, match=r"account .*p\.ledger alone, which is not found any more"
    )
    with gone, folder:
        ledger_of_run(run, folder, "record", Watch())
    assert not place.exists()
    moved.rename(place)
    with RunFolder(tmp_path / "out", {}) as folder:
        ledger_of_run(run, folder, "record", Watch())


def test_an_account_that_moved_with_its_file_is_known_again_and_no_other(tmp_path: Path) -> None:
    _begun(paid(tmp_path / "p"), tmp_path / "out")
    (tmp_path / "new").mkdir()
    (tmp_path / "p.ledger").rename(tmp_path / "new" / "p.ledger")
    open_ledger(tmp_path / "q.ledger", dataset="d", total=PrivacyBudget(2.0, 1e-5), **PROMISE)
    folder = RunFolder(tmp_path / "out", {})
    with pytest.raises(LedgerError, match="put it back in its place"), folder:
        ledger_of_run(paid(tmp_path / "q", total=None), folder, "record", Watch())
    with RunFolder(tmp_path / "out", {}) as folder:
        run = paid(tmp_path / "new" / "p")
        ledger = ledger_of_run(run, folder, "record", Watch())
    assert ledger.path == tmp_path / "new" / "p.ledger"


def test_what_the_run_would_refuse_of_its_account_is_refused_of_a_question_too(
    tmp_path: Path,
) -> None:
    folder = RunFolder(tmp_path / "out", {})
    with pytest.raises(LedgerError, match="since its folder does not exist"):
        state_of_account(paid(tmp_path / "p", tmp_path / "none" / "l"), folder, "record")
    open_ledger(tmp_path / "p.ledger", dataset="d", total=BUDGET, **PROMISE)
    replaced = paid(tmp_path / "p", relation="replace-one")
    with pytest.raises(LedgerError, match="'replace-one'"):
        state_of_account(replaced, folder, "record")
