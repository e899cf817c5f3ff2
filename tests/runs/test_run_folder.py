"""The folder of a run and the account behind it: the same run alone goes on, and pays once."""

import json
import os
import stat
from contextlib import suppress

import pytest

from ledger_answers import answer
from made_events import counts_event
from secretballot.accounting import PrivacyBudget
from secretballot.core.errors import UnknownEndError
from secretballot.core.ledger import Ledger
from secretballot.exceptions import BudgetError, DataError, LedgerError, ParameterError
from secretballot.report.certificate import certificate_digest
from secretballot.runs.folder import Account, RunFolder, place_of_account, settle_request
from secretballot.runs.questions import Watch
from secretballot.runs.spec import RunSpec

DESCRIPTION = {"method": "pate", "epsilon": 1.0, "private file": "00ff"}
BUDGET = PrivacyBudget(1.0, 1e-6)


def interrupt(out):
    """Begin a run and break it off; return its key."""
    folder = RunFolder(out, DESCRIPTION)
    with pytest.raises(KeyboardInterrupt), folder:
        raise KeyboardInterrupt
    return folder.request


def test_a_new_run_makes_a_closed_vault_and_says_what_it_does(tmp_path):
    with RunFolder(tmp_path / "a" / "out", DESCRIPTION) as folder:
        assert stat.S_IMODE(folder.vault.stat().st_mode) == 0o700
        stored = json.loads((folder.vault / "run.json").read_text())
        assert stat.S_IMODE((folder.vault / "run.json").stat().st_mode) == 0o600
    assert stored["description"] == DESCRIPTION
    assert stored["request"] == folder.request
    assert not folder.resumed
    # keys are random, so that they tell nothing of the files
    assert RunFolder(tmp_path / "b", DESCRIPTION).request != folder.request


def test_a_run_that_may_have_paid_keeps_its_key(tmp_path):
    for error, kept in ((LedgerError("x"), False), (UnknownEndError("x"), True)):
        folder = RunFolder(tmp_path / "out", DESCRIPTION)
        with pytest.raises(LedgerError), folder:
            raise error
        assert (RunFolder(tmp_path / "out", DESCRIPTION).request == folder.request) is kept


def test_names_of_unknown_fields_are_not_repeated(tmp_path):
    interrupt(tmp_path / "out")
    place = tmp_path / "out" / "vault" / "run.json"
    stored = json.loads(place.read_text())
    other = {**DESCRIPTION, "epsilon": 2.0, "field of a stranger " * 99: 1}
    place.write_text(json.dumps({**stored, "description": other}))
    with pytest.raises(DataError, match="differs in epsilon; repeat") as caught:
        RunFolder(tmp_path / "out", DESCRIPTION)
    assert "stranger" not in str(caught.value)


def finish(out):
    (out / "release").mkdir()
    certificate = {"digest": certificate_digest({})}
    (out / "release" / "certificate.json").write_text(json.dumps(certificate))


def test_a_finished_run_is_found_finished_by_the_same_run_and_refused_to_another(tmp_path):
    key = interrupt(tmp_path / "out")
    finish(tmp_path / "out")
    folder = RunFolder(tmp_path / "out", DESCRIPTION)
    assert (folder.finished, folder.resumed, folder.request) == (True, False, key)
    for other in ({**DESCRIPTION, "epsilon": 2.0}, {**DESCRIPTION, "student": "tree"}):
        with pytest.raises(DataError, match="holds a finished run"):
            RunFolder(tmp_path / "out", other)
    (tmp_path / "out" / "vault" / "run.json").unlink()
    with pytest.raises(DataError, match="exists and holds no run"):
        RunFolder(tmp_path / "out", DESCRIPTION)


def test_a_run_that_was_finished_while_this_one_read_its_tables_is_not_begun_again(tmp_path):
    folder = RunFolder(tmp_path / "out", DESCRIPTION)
    interrupt(tmp_path / "out")
    finish(tmp_path / "out")
    with pytest.raises(DataError, match=r"finished in .* meanwhile"), folder:
        pass


def test_a_run_that_goes_on_with_another_student_is_remembered_with_that_one(tmp_path):
    interrupt(tmp_path / "out")
    with RunFolder(tmp_path / "out", {**DESCRIPTION, "student": "tree"}) as folder:
        assert folder.resumed
    finish(tmp_path / "out")
    assert RunFolder(tmp_path / "out", {**DESCRIPTION, "student": "tree"}).finished


RUN = '{"format": "secretballot/run", "version": 1, "request": "r", "description": %s}'


DAMAGED = (
    *("{", "[]", '{"format": "x"}', '{"format": "secretballot/run", "version": 2}', "[" * 100_000),
    *(RUN % text for text in ("[" * 100_000, "[]", "[[1, 2]]", '"text"', "NaN")),
    *((RUN % "{}").replace("1", one) for one in ("true", "9" * 5000)),
    (RUN % "{}").replace('"r"', "7"),
)


@pytest.mark.parametrize("stored", [None, *DAMAGED])
def test_a_folder_of_something_else_is_refused_and_untouched(tmp_path, stored):
    (tmp_path / "thesis.tex").write_text("years of work")
    if stored is not None:
        (tmp_path / "vault").mkdir()
        (tmp_path / "vault" / "run.json").write_text(stored)
    why = "holds no run" if stored is None else r"run\.json' is damaged .* Nothing was spent"
    with pytest.raises(DataError, match=why):
        RunFolder(tmp_path, DESCRIPTION)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def fail(out, work):
    """Begin a run, do some work in it, and end it by an error."""
    with RunFolder(out, DESCRIPTION) as folder:
        work(folder)
        raise DataError("no good")


def pay(folder):
    ledger = Ledger(folder.ledger, dataset="d", budget=BUDGET)
    ledger.reserve([counts_event(100.0, 1)], BUDGET, request=folder.request, purpose="")


def test_a_run_that_began_meanwhile_is_left_alone(tmp_path):
    late = RunFolder(tmp_path / "out", DESCRIPTION)
    with RunFolder(tmp_path / "out", DESCRIPTION) as early:
        with pytest.raises(DataError, match="another run is at work"):
            late.__enter__()
        assert (early.vault / "run.json").exists()
    with late:
        assert late.resumed
        assert late.request == early.request


def test_a_run_that_ends_by_an_error_keeps_what_it_learnt_or_paid_and_nothing_else(tmp_path):
    for name, work, kept in (
        ("none", lambda folder: Ledger(folder.ledger, dataset="d", budget=BUDGET), None),
        ("learnt", lambda folder: (folder.vault / "teachers").mkdir(), "teachers"),
        ("paid", pay, "ledger.sqlite"),
    ):
        with pytest.raises(DataError, match="no good"):
            fail(tmp_path / name, work)
        assert (tmp_path / name).exists() == (kept is not None)
        assert kept is None or (tmp_path / name / "vault" / kept).exists()


def test_a_ledger_from_which_another_run_paid_is_kept(tmp_path):
    def pay_for_another_run(folder):
        Ledger(folder.ledger, dataset="d", budget=BUDGET)
        other = Ledger.open_existing(folder.ledger)
        other.reserve([counts_event(100.0, 1)], BUDGET, request="another-run", purpose="")

    with pytest.raises(DataError, match="no good"):
        fail(tmp_path / "out", pay_for_another_run)
    assert Ledger.open_existing(tmp_path / "out" / "vault" / "ledger.sqlite").releases() == 1


def test_a_run_killed_before_it_said_what_it_is_counts_as_none(tmp_path):
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "run.lock").touch()
    (tmp_path / "vault" / ".run.json-half").touch()
    assert not RunFolder(tmp_path, DESCRIPTION).resumed
    (tmp_path / "vault" / "teachers").mkdir()
    with pytest.raises(DataError, match="holds no run"):
        RunFolder(tmp_path, DESCRIPTION)


def test_a_link_in_the_place_of_the_lock_is_refused_and_its_target_keeps_its_content(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "out" / "vault").mkdir(parents=True)
    (tmp_path / "out" / "vault" / "run.lock").symlink_to(tmp_path / "thesis.tex")
    with (
        pytest.raises(DataError, match=r"run\.lock' cannot be locked"),
        RunFolder(tmp_path / "out", DESCRIPTION),
    ):
        pass
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_link_in_the_place_of_the_vault_is_refused_and_its_target_left_alone(tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "vault").symlink_to(tmp_path / "open")
    with pytest.raises(DataError, match="exists and holds no run"):
        RunFolder(tmp_path / "out", DESCRIPTION)
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("part", "sign", "said"),
    [("vault", "run.lock", "vault"), ("release", "certificate.json", "release")],
)
def test_a_run_never_lies_in_another_ones_vault_or_release(tmp_path, part, sign, said):
    other = tmp_path / "other" / part
    other.mkdir(parents=True)
    (other / sign).write_text("{}")
    (tmp_path / "link").symlink_to(other)
    for place in (other, other / "deep" / "er", tmp_path / "link" / "x"):
        with pytest.raises(DataError, match=f"lies in .* {said}"):
            RunFolder(place, {})
    RunFolder(tmp_path / "other" / "next", {})


EVENTS = [counts_event(100.0, 1)]


def paid(private, ledger=None, **more):
    """Return a run as its account sees it."""
    fields = {"dataset": "d", "epsilon": 1.0, "delta": 1e-6, "total": (1.0, 1e-6), **more}
    return RunSpec.read(private=private, ledger=None if ledger is None else str(ledger), **fields)


def opened(place, total=BUDGET, **more):
    """Open the ledger at a place, for a run about it."""
    return Account(paid(place, place, total=None, **more)).opened(total)


def begun(run, folder):
    """Begin the run of a folder that was entered, as far as its account."""
    ledger = Account(run, folder).opened(run.total)
    settle_request(folder, ledger, Watch())
    return ledger


def test_an_account_is_opened_with_a_total_that_nobody_changes(tmp_path):
    for total in (BUDGET, BUDGET, None):
        assert opened(tmp_path / "l", total).budget == BUDGET
    assert stat.S_IMODE((tmp_path / "l").stat().st_mode) == 0o600
    with pytest.raises(ParameterError, match=r"total is 2,1e-06, and the account .*with 1,1e-06"):
        opened(tmp_path / "l", PrivacyBudget(2.0, 1e-6))


def test_a_new_ledger_promises_what_the_run_does_and_nothing_else(tmp_path):
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
def test_a_run_goes_on_under_its_key_unless_that_was_forfeited(tmp_path, ending, of):
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


def test_the_account_lies_beside_the_private_file_unless_another_is_named(tmp_path, monkeypatch):
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


def test_a_new_account_is_asked_about_and_an_old_one_is_not(tmp_path):
    def asked(run):
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


def test_a_full_account_says_so_before_anything_is_done(tmp_path):
    ledger = opened(tmp_path / "p.ledger")
    number = ledger.reserve(EVENTS, PrivacyBudget(0.5, 5e-7), request="r", purpose="")
    answer(ledger, number, b"answer")
    account = Account(paid(tmp_path / "p"), RunFolder(tmp_path / "out", {}))
    assert account.to_json()["left"]["epsilon"] == pytest.approx(0.5)
    account.refuse_beyond("r")  # which was paid for
    with pytest.raises(BudgetError, match=r"epsilon 0\.5 and delta .* are left"):
        account.refuse_beyond("another")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_may_not_be_written_into_is_told_of(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(LedgerError, match="name another place with --ledger"):
        opened(closed / "l")


def test_an_interrupted_run_goes_on_with_the_account_that_it_began_with(tmp_path, monkeypatch):
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
        finish(tmp_path / "out")
    finished = RunFolder(tmp_path / "out", {})
    assert finished.finished
    assert place_of_account(run, finished) == named
    assert not (tmp_path / "p.ledger").exists()


def broken_off(run, root):
    """Begin a run, and break it off by hand."""
    folder = RunFolder(root, {})
    with suppress(KeyboardInterrupt), folder:
        begun(run, folder)
        raise KeyboardInterrupt


def test_an_account_that_is_gone_is_not_replaced_by_a_new_one(tmp_path):
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


def test_an_account_that_moved_with_its_file_is_known_again_and_no_other(tmp_path):
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


def test_an_account_of_something_else_is_refused(tmp_path):
    with pytest.raises(LedgerError, match="since its folder does not exist"):
        opened(tmp_path / "none" / "l")
    opened(tmp_path / "l")
    with pytest.raises(LedgerError, match="'replace-one'"):
        opened(tmp_path / "l", relation="replace-one")
    with pytest.raises(LedgerError, match="account of the dataset 'd', and this run is about 'e'"):
        opened(tmp_path / "l", dataset="e")
