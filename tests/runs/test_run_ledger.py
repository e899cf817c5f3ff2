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
from secretballot.core.ledger import Ledger
from secretballot.exceptions import BudgetError, LedgerError, ParameterError
from secretballot.report.certificate.build import certificate_digest
from secretballot.runs.folder import Account, RunFolder, place_of_account, settle_request
from secretballot.runs.questions import Watch
from secretballot.runs.spec import RunSpec

BUDGET = PrivacyBudget(1.0, 1e-6)
EVENTS = [counts_event(100.0, 1)]


def paid(private: Path, ledger: Path | str | None = None, **more: Any) -> RunSpec:
    """Return a run as its account sees it."""
    fields = {"dataset": "d", "epsilon": 1.0, "delta": 1e-6, "total": (1.0, 1e-6), **more}
    return RunSpec.read(private=private, ledger=None if ledger is None else str(ledger), **fields)


def opened(place: Path, total: PrivacyBudget | None = BUDGET, **more: Any) -> Ledger:
    """Open the ledger at a place, for a run about it."""
    return Account(paid(place, place, total=None, **more)).opened(total)


def begun(run: RunSpec, folder: RunFolder) -> Ledger:
    """Begin the run of a folder that was entered, as far as its account."""
    ledger = Account(run, folder).opened(run.total)
    settle_request(folder, ledger, Watch())
    return ledger


def test_an_account_is_opened_with_a_total_that_nobody_changes(tmp_path: Path) -> None:
    for total in (BUDGET, BUDGET, None):
        assert opened(tmp_path / "l", total).budget == BUDGET
    with pytest.raises(ParameterError, match=r"total is 2,1e-06, and the account .*with 1,1e-06"):
        opened(tmp_path / "l", PrivacyBudget(2.0, 1e-6))


def test_a_new_ledger_promises_what_the_run_does_and_nothing_else(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "l", unit="person")
    assert (ledger.unit, ledger.relation) == ("user", "add-remove")
    with pytest.raises(
        LedgerError,
        match="is about unit 'user' under 'add-remove', and a release about unit 'record'",
    ):
        opened(tmp_path / "l")
    opened(tmp_path / "records")
    assert opened(tmp_path / "records", unit="person").unit == "record"


@pytest.mark.parametrize("ending", [None, "commit", "reserve", "forfeit"])
@pytest.mark.parametrize("of", ["{}", "{}/estimate"])
def test_a_run_goes_on_under_its_key_unless_that_was_forfeited(
    tmp_path: Path, ending: str | None, of: str
) -> None:
    ledger = opened(tmp_path / "l")
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
    monkeypatch.setenv("SECRETBALLOT_LEDGER", str(tmp_path / "usual"))
    assert place_of_account(paid(private), folder) == tmp_path / "usual"
    assert place_of_account(paid(private, tmp_path / "l"), folder) == tmp_path / "l"
    assert place_of_account(paid(private, ledger="own"), folder) == folder.ledger


def test_a_run_opens_an_account_with_the_total_that_was_given(tmp_path: Path) -> None:
    run, folder = paid(tmp_path / "p", total=(4, 1e-5)), RunFolder(tmp_path / "out", {})
    assert Account(run, folder).ledger is None
    with folder:
        ledger = begun(run, folder)
    assert ledger.budget == run.total == PrivacyBudget(4.0, 1e-5)
    assert ledger.path == tmp_path / "p.ledger"
    said = Account(run, folder).to_json()
    assert (said["total"], said["releases"], said["own"]) == (ledger.budget.to_json(), 0, False)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


def test_a_new_account_is_asked_about_and_an_old_one_is_not(tmp_path: Path) -> None:
    def asked(run: RunSpec) -> list[str]:
        account = Account(run, RunFolder(tmp_path / "out", {}))
        return [one.text for one in account.questions(run.total)]

    (tmp_path / "old.ledger").touch()
    (text,) = asked(paid(tmp_path / "p", total=None))
    assert text.startswith("no account exists for 'd' at ")
    assert "(beside it: old.ledger)" in text
    assert asked(paid(tmp_path / "p")) == asked(paid(tmp_path / "p", "own", total=None)) == []
    with pytest.raises(BudgetError, match="is less than the price"):
        paid(tmp_path / "p", total=(0.5, 1e-6))
    opened(tmp_path / "p.ledger")
    assert asked(paid(tmp_path / "p", total=None)) == []


def test_a_full_account_says_so_before_anything_is_done(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "p.ledger")
    number = ledger.reserve(EVENTS, PrivacyBudget(0.5, 5e-7), request="r", purpose="")
    answer(ledger, number, b"answer")
    account = Account(paid(tmp_path / "p"), RunFolder(tmp_path / "out", {}))
    assert account.to_json()["left"]["epsilon"] == pytest.approx(0.5)
    account.refuse_beyond("r")  # which was paid for
    with pytest.raises(BudgetError, match=r"epsilon 0\.5 and delta .* are left"):
        account.refuse_beyond("another")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_may_not_be_written_into_is_told_of(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(LedgerError, match="name another place with --ledger"):
        opened(closed / "l")


def test_an_interrupted_run_goes_on_with_the_account_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, named = paid(tmp_path / "p"), tmp_path / "named.ledger"
    monkeypatch.setenv("SECRETBALLOT_LEDGER", str(named))
    first = RunFolder(tmp_path / "out", {})
    with suppress(KeyboardInterrupt), first:
        ledger = begun(run, first)
        number = ledger.reserve(EVENTS, BUDGET, request=first.request, purpose="")
        answer(ledger, number, b"answer")
        raise KeyboardInterrupt
    monkeypatch.delenv("SECRETBALLOT_LEDGER")
    again = RunFolder(tmp_path / "out", {})
    with again:
        ledger = begun(run, again)
        assert ledger.releases() == 1
        assert (ledger.path, again.request) == (named, first.request)
        again.release.mkdir()
        certificate = {"digest": certificate_digest({})}
        (again.release / "certificate.json").write_text(json.dumps(certificate))
    finished = RunFolder(tmp_path / "out", {})
    assert finished.finished
    assert place_of_account(run, finished) == named
    assert not (tmp_path / "p.ledger").exists()


def broken_off(run: RunSpec, root: Path) -> None:
    """Begin a run, and break it off by hand."""
    folder = RunFolder(root, {})
    with suppress(KeyboardInterrupt), folder:
        begun(run, folder)
        raise KeyboardInterrupt


def test_an_account_that_is_gone_is_not_replaced_by_a_new_one(tmp_path: Path) -> None:
    run, place = paid(tmp_path / "p"), tmp_path / "p.ledger"
    broken_off(run, tmp_path / "out")
    moved = place.rename(tmp_path / "elsewhere")
    (tmp_path / "p.ledger-journal").unlink(missing_ok=True)
    folder = RunFolder(tmp_path / "out", {})
    gone = pytest.raises(
        LedgerError, match=r"account .*p\.ledger alone, which is not found any more"
    )
    with gone, folder:
        begun(run, folder)
    assert not place.exists()
    moved.rename(place)
    with RunFolder(tmp_path / "out", {}) as folder:
        begun(run, folder)


def test_an_account_that_moved_with_its_file_is_known_again_and_no_other(tmp_path: Path) -> None:
    broken_off(paid(tmp_path / "p"), tmp_path / "out")
    (tmp_path / "new").mkdir()
    (tmp_path / "p.ledger").rename(tmp_path / "new" / "p.ledger")
    opened(tmp_path / "q.ledger", PrivacyBudget(2.0, 1e-5))
    folder = RunFolder(tmp_path / "out", {})
    with pytest.raises(LedgerError, match="put it back in its place"), folder:
        begun(paid(tmp_path / "q", total=None), folder)
    with RunFolder(tmp_path / "out", {}) as folder:
        run = paid(tmp_path / "new" / "p")
        ledger = begun(run, folder)
    assert ledger.path == tmp_path / "new" / "p.ledger"


def test_an_account_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="since its folder does not exist"):
        opened(tmp_path / "none" / "l")
    opened(tmp_path / "l")
    with pytest.raises(LedgerError, match="'replace-one'"):
        opened(tmp_path / "l", relation="replace-one")
    with pytest.raises(LedgerError, match="account of the dataset 'd', and this run is about 'e'"):
        opened(tmp_path / "l", dataset="e")
