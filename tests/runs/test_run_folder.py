"""The folder of a run: closed to others, taken up only by the same run, left clean by a run that
came to nothing."""

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from made_events import counts_event
from secretballot.accounting import PrivacyBudget
from secretballot.core.errors import UnknownEndError
from secretballot.core.ledger import Ledger
from secretballot.exceptions import DataError, LedgerError
from secretballot.report.certificate.build import certificate_digest
from secretballot.runs.folder import RunFolder

DESCRIPTION = {"method": "pate", "epsilon": 1.0, "private file": "00ff"}
BUDGET = PrivacyBudget(1.0, 1e-6)


def interrupt(out: Path) -> str:
    """Begin a run and break it off; return its key."""
    folder = RunFolder(out, DESCRIPTION)
    with pytest.raises(KeyboardInterrupt), folder:
        raise KeyboardInterrupt
    return folder.request


def test_a_new_run_makes_a_closed_vault_and_says_what_it_does(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "a" / "out", DESCRIPTION) as folder:
        assert stat.S_IMODE(folder.vault.stat().st_mode) == 0o700
        stored = json.loads((folder.vault / "run.json").read_text())
        assert stat.S_IMODE((folder.vault / "run.json").stat().st_mode) == 0o600
    assert stored["description"] == DESCRIPTION
    assert stored["request"] == folder.request
    assert not folder.resumed
    # keys are random, so that they tell nothing of the files
    assert RunFolder(tmp_path / "b", DESCRIPTION).request != folder.request


def test_a_run_that_may_have_paid_keeps_its_key(tmp_path: Path) -> None:
    for error, kept in ((LedgerError("x"), False), (UnknownEndError("x"), True)):
        folder = RunFolder(tmp_path / "out", DESCRIPTION)
        with pytest.raises(LedgerError), folder:
            raise error
        assert (RunFolder(tmp_path / "out", DESCRIPTION).request == folder.request) is kept


def test_names_of_unknown_fields_are_not_repeated(tmp_path: Path) -> None:
    interrupt(tmp_path / "out")
    place = tmp_path / "out" / "vault" / "run.json"
    stored = json.loads(place.read_text())
    place.write_text(
        json.dumps(
            stored
            | {"description": {**DESCRIPTION, "epsilon": 2.0, "field of a stranger " * 99: 1}}
        )
    )
    with pytest.raises(DataError, match="differs in epsilon; repeat") as caught:
        RunFolder(tmp_path / "out", DESCRIPTION)
    assert "stranger" not in str(caught.value)


def finish(out: Path) -> None:
    (out / "release").mkdir()
    certificate = {"digest": certificate_digest({})}
    (out / "release" / "certificate.json").write_text(json.dumps(certificate))


def test_a_finished_run_is_found_finished_by_the_same_run_and_refused_to_another(
    tmp_path: Path,
) -> None:
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


def test_a_run_that_was_finished_while_this_one_read_its_tables_is_not_begun_again(
    tmp_path: Path,
) -> None:
    folder = RunFolder(tmp_path / "out", DESCRIPTION)
    interrupt(tmp_path / "out")
    finish(tmp_path / "out")
    with pytest.raises(DataError, match=r"finished in .* meanwhile"), folder:
        pass


def test_a_run_that_goes_on_with_another_student_is_remembered_with_that_one(
    tmp_path: Path,
) -> None:
    interrupt(tmp_path / "out")
    with RunFolder(tmp_path / "out", {**DESCRIPTION, "student": "tree"}) as folder:
        assert folder.resumed
    finish(tmp_path / "out")
    assert RunFolder(tmp_path / "out", {**DESCRIPTION, "student": "tree"}).finished


def test_a_run_that_was_begun_before_there_was_a_setting_goes_on_with_its_default(
    tmp_path: Path,
) -> None:
    interrupt(tmp_path / "out")
    usual, now = {"colour": "red"}, {**DESCRIPTION, "colour": "red"}
    assert RunFolder(tmp_path / "out", now, usual).resumed
    for other in ({**now, "colour": "blue"}, {**now, "epsilon": 2.0}):
        with pytest.raises(DataError, match="an interrupted run that differs in"):
            RunFolder(tmp_path / "out", other, usual)


RUN = '{"format": "secretballot/run", "version": 1, "request": "r", "description": %s}'


DAMAGED = (
    *("{", "[]", '{"format": "x"}', '{"format": "secretballot/run", "version": 2}', "[" * 100_000),
    *(RUN % text for text in ("[" * 100_000, "[]", "[[1, 2]]", '"text"', "NaN")),
    *((RUN % "{}").replace("1", one) for one in ("true", "9" * 5000)),
    (RUN % "{}").replace('"r"', "7"),
)


@pytest.mark.parametrize("stored", [None, *DAMAGED])
def test_a_folder_of_something_else_is_refused_and_untouched(
    tmp_path: Path, stored: str | None
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    if stored is not None:
        (tmp_path / "vault").mkdir()
        (tmp_path / "vault" / "run.json").write_text(stored)
    why = "holds no run" if stored is None else r"run\.json' is damaged .* Nothing was spent"
    with pytest.raises(DataError, match=why):
        RunFolder(tmp_path, DESCRIPTION)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def fail(out: Path, work: Callable[[RunFolder], object]) -> None:
    """Begin a run, do some work in it, and end it by an error."""
    with RunFolder(out, DESCRIPTION) as folder:
        work(folder)
        raise DataError("no good")


def pay(folder: RunFolder) -> None:
    ledger = Ledger(folder.ledger, dataset="d", budget=BUDGET)
    ledger.reserve([counts_event(100.0, 1)], BUDGET, request=folder.request, purpose="")


def test_a_run_that_began_meanwhile_is_left_alone(tmp_path: Path) -> None:
    late = RunFolder(tmp_path / "out", DESCRIPTION)
    with RunFolder(tmp_path / "out", DESCRIPTION) as early:
        with pytest.raises(DataError, match="another run is at work"):
            late.__enter__()
        assert (early.vault / "run.json").exists()
    with late:
        assert late.resumed
        assert late.request == early.request


def test_a_run_that_ends_by_an_error_keeps_what_it_learnt_or_paid_and_nothing_else(
    tmp_path: Path,
) -> None:
    for name, work, kept in (
        ("none", lambda folder: Ledger(folder.ledger, dataset="d", budget=BUDGET), None),
        ("learnt", lambda folder: (folder.vault / "teachers").mkdir(), "teachers"),
        ("paid", pay, "ledger.sqlite"),
    ):
        with pytest.raises(DataError, match="no good"):
            fail(tmp_path / name, work)
        assert (tmp_path / name).exists() == (kept is not None)
        assert kept is None or (tmp_path / name / "vault" / kept).exists()


def test_a_ledger_from_which_another_run_paid_is_kept(tmp_path: Path) -> None:
    def pay_for_another_run(folder: RunFolder) -> None:
        Ledger(folder.ledger, dataset="d", budget=BUDGET)
        other = Ledger.open_existing(folder.ledger)
        other.reserve([counts_event(100.0, 1)], BUDGET, request="another-run", purpose="")

    with pytest.raises(DataError, match="no good"):
        fail(tmp_path / "out", pay_for_another_run)
    assert Ledger.open_existing(tmp_path / "out" / "vault" / "ledger.sqlite").releases() == 1


def test_a_run_killed_before_it_said_what_it_is_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "run.lock").touch()
    (tmp_path / "vault" / ".run.json-half").touch()
    assert not RunFolder(tmp_path, DESCRIPTION).resumed
    (tmp_path / "vault" / "teachers").mkdir()
    with pytest.raises(DataError, match="holds no run"):
        RunFolder(tmp_path, DESCRIPTION)


def test_a_link_in_the_place_of_the_lock_is_refused_and_its_target_keeps_its_content(
    tmp_path: Path,
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "out" / "vault").mkdir(parents=True)
    (tmp_path / "out" / "vault" / "run.lock").symlink_to(tmp_path / "thesis.tex")
    with (
        pytest.raises(DataError, match=r"run\.lock' cannot be locked"),
        RunFolder(tmp_path / "out", DESCRIPTION),
    ):
        pass
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_link_in_the_place_of_the_vault_is_refused_and_its_target_left_alone(
    tmp_path: Path,
) -> None:
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
def test_a_run_never_lies_in_another_ones_vault_or_release(
    tmp_path: Path, part: str, sign: str, said: str
) -> None:
    other = tmp_path / "other" / part
    other.mkdir(parents=True)
    (other / sign).write_text("{}")
    (tmp_path / "link").symlink_to(other)
    for place in (other, other / "deep" / "er", tmp_path / "link" / "x"):
        with pytest.raises(DataError, match=f"lies in .* {said}"):
            RunFolder(place, {})
    RunFolder(tmp_path / "other" / "next", {})
