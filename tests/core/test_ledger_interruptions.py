"""Where a request can be interrupted, what is on the disk then, and what the same request does
afterwards: one test for each state, in a file and in a database."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import secretballot as sb
from ledger_backends import DatabaseLedgers
from noisy_plans import noisy, priced, released
from secretballot.accounting.recipes import Terms
from secretballot.core import releasing
from secretballot.core.errors import UnknownEndError
from secretballot.core.filters import Totals
from secretballot.core.ledger.rows import Row, Rows
from secretballot.core.noise import ExactNoise
from secretballot.learners.training.session import LabelStream
from sessions import sparse, stream_of

K = 250
PLAN = noisy(60.0, 6, budget=sb.PrivacyBudget(1.0, 1e-6), n_teachers=K)
SPARSE = priced(sparse(2.0, 60, 2), 20, K)
COUNTS = np.array([[K - ones, ones] for ones in (0, 100, 125, 130, 200, 250)])
VOTES = sb.votes_of_counts(COUNTS, classes=["no", "yes"])
QUESTIONS = [b"%d" % row for row in range(6)]


@pytest.fixture(params=["file", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sb.Ledger]:
    account = {"dataset": "registry", "budget": sb.PrivacyBudget(1000.0, 0.5)}
    if request.param == "file":
        yield sb.Ledger(tmp_path / "ledger", **account)
        return
    places = DatabaseLedgers(request.getfixturevalue("database").url)
    yield sb.Ledger(places.place(), **account)
    places.drop_all()


@pytest.fixture
def in_file(tmp_path: Path) -> sb.Ledger:
    """A ledger of which the tests themselves lose the ends, as any store may."""
    return sb.Ledger(tmp_path / "ledger", dataset="registry", budget=sb.PrivacyBudget(1000.0, 0.5))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many values each draw had."""
    sizes: list[int] = []

    class Counted(ExactNoise):
        def discrete_gaussian(self, sigma: float, size: int) -> Any:
            sizes.append(size)
            return super().discrete_gaussian(sigma, size)

    monkeypatch.setattr(releasing, "noise_source", Counted)
    return sizes


def ask(ledger: sb.Ledger, plan: Terms = PLAN) -> sb.ReleasedLabels:
    return released(VOTES, plan, ledger, request="one")


def taken_up(
    ledger: sb.Ledger, tmp_path: Path, plan: Any = PLAN, teachers: str = "a"
) -> LabelStream:
    return stream_of(
        plan, ledger, ["no", "yes"], request="one", teachers=teachers, vault=tmp_path / "vault"
    )


def answers(stream: LabelStream, *rows: int) -> list[Any]:
    found = stream.answer(COUNTS[list(rows)], [QUESTIONS[row] for row in rows])
    assert found.given.all()
    return list(found.labels)


def die(*_: object, **__: object) -> Any:
    os._exit(9)


def killed(patch: Callable[[pytest.MonkeyPatch], None], work: Callable[[], object]) -> None:
    """Do work in a process that a patch kills."""
    child = os.fork()
    if not child:
        try:
            patch(pytest.MonkeyPatch())
            work()
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def in_a_draw(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ExactNoise, "discrete_gaussian", die)


def at_a_row(kind: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Die before a row of a kind is written."""
    real = Rows.add

    def add(self: Rows, added: Sequence[Row], totals: Totals | None = None) -> None:
        if any(row.kind == kind for row in added):
            die()
        real(self, added, totals)

    return lambda patch: patch.setattr(Rows, "add", add)


def after_storing(patch: pytest.MonkeyPatch) -> None:
    """Die when the answers are on the disk, before they are returned."""

    @contextmanager
    def answering(self: sb.Ledger, *given: Any, **named: Any) -> Iterator[Any]:
        with real(self, *given, **named) as page:
            yield page
        die()

    real = sb.Ledger.answering
    patch.setattr(sb.Ledger, "answering", answering)


def paid_once(ledger: sb.Ledger, epsilon: float = 1.0) -> None:
    fresh = sb.Ledger.open_existing(str(ledger.place))
    assert (fresh.releases(), fresh.spent().epsilon) == (1, epsilon)
    fresh.check()


# --- kills ---


@pytest.mark.parametrize(
    ("where", "state", "draws"),
    [
        (at_a_row("reserve"), None, 1),
        (in_a_draw, "reserved", 1),
        (at_a_row("close"), "reserved", 1),
        (after_storing, "committed", 0),
    ],
    ids=["reserve", "draw", "close", "return"],
)
def test_a_killed_release_is_drawn_where_no_answer_was_stored_and_paid_once(
    ledger: sb.Ledger,
    drawn: list[int],
    where: Callable[[pytest.MonkeyPatch], None],
    state: str | None,
    draws: int,
) -> None:
    killed(where, lambda: ask(ledger))
    entry = ledger.entry("one")
    assert (entry and entry.state) == state
    released = ask(ledger)
    assert ask(ledger) == released
    assert drawn == [6] * draws
    paid_once(ledger)


@pytest.mark.parametrize(
    ("where", "used"),
    [(in_a_draw, 2), (at_a_row("part"), 2), (after_storing, 3)],
    ids=["draw", "part", "return"],
)
def test_a_killed_stream_draws_what_was_not_stored_and_finds_the_rest(
    ledger: sb.Ledger,
    tmp_path: Path,
    drawn: list[int],
    where: Callable[[pytest.MonkeyPatch], None],
    used: int,
) -> None:
    first = answers(taken_up(ledger, tmp_path), 0, 1)
    killed(where, lambda: answers(taken_up(ledger, tmp_path), 2))
    stream = taken_up(ledger, tmp_path)
    assert (stream._stream.used, stream._stream.left) == (used, 6 - used)
    answers(stream, 2)
    assert answers(stream, 0, 1) == first
    assert stream._stream.used == 3
    assert drawn == [2, 1][: 4 - used]
    paid_once(ledger)


def test_a_secret_state_that_no_answer_names_is_not_gone_on_with(
    ledger: sb.Ledger, tmp_path: Path
) -> None:
    answers(taken_up(ledger, tmp_path, SPARSE), 0)
    with ledger.reading(1) as page:
        named = (page.last() or b"")[: releasing.MARK_BYTES]
    killed(at_a_row("part"), lambda: answers(taken_up(ledger, tmp_path, SPARSE), 2))
    stream = taken_up(ledger, tmp_path, SPARSE)
    with ledger.reading(1) as page:
        assert (page.last() or b"")[: releasing.MARK_BYTES] == named
    assert answers(stream, 5, 2, 3) == ["yes", None, None]
    assert stream._stream.left == 0


# --- commits whose end is unknown ---


class _UndoError(Exception):
    pass


def unknown_end(ledger: sb.Ledger, patch: pytest.MonkeyPatch, *ends: bool | None) -> list[Any]:
    """Let the ends of the next transactions that write be unknown, done or not done; None is one
    that cannot even begin. Return those to come."""
    store, coming = ledger._store, list(ends)
    real: Callable[..., AbstractContextManager[Any]] = store.transaction

    @contextmanager
    def transaction(**given: Any) -> Iterator[Any]:
        if not given["write"]:
            with real(**given) as reading:
                yield reading
            return
        if coming and coming[0] is None:
            raise sb.LedgerError("The ledger cannot be reached.")
        ended: bool | None = None
        try:
            with real(**given) as transaction:
                yield transaction
                ended = coming.pop(0) if coming else None  # what is refused inside does not count
                if ended is False:
                    raise _UndoError
        except _UndoError:
            pass
        if ended is not None:
            raise UnknownEndError.of("The ledger broke off")

    patch.setattr(store, "transaction", transaction)
    return coming


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("looked_up", [True, False])
@pytest.mark.parametrize("at", ["purchase", "answer", "stream"])
def test_what_has_an_unknown_end_is_looked_up_and_charged_once(
    in_file: sb.Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    drawn: list[int],
    at: str,
    looked_up: bool,
    done: bool,
) -> None:
    stream = taken_up(in_file, tmp_path) if at == "stream" else None
    if at == "answer":
        killed(in_a_draw, lambda: ask(in_file))

    def work() -> Any:
        return answers(stream, 0, 1) if stream else ask(in_file)

    with monkeypatch.context() as patch:
        coming = unknown_end(in_file, patch, *((done,) if looked_up else (done, None)))
        if looked_up:
            said = work()
            assert coming == []
            assert work() == said
            # the same bytes again, and no other draw; of a stream what broke off was seen by nobody
            assert len(drawn) == 1 + (at == "stream" and not done)
        else:
            with pytest.raises(UnknownEndError, match=r"unknown whether that .*charged once"):
                work()
            assert not stream or stream._stream.used == (2 if done else 0)
    work()
    assert not stream or stream._stream.used == 2
    entry = in_file.entry("one")
    assert entry is not None
    assert entry.state == ("reserved" if stream else "committed")
    paid_once(in_file)


def test_two_absences_in_a_row_are_an_error_and_nothing_is_spent(
    in_file: sb.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    # each look takes one transaction that ends as it should
    store = in_file._store
    real, count = store.transaction, [0]

    @contextmanager
    def transaction(**given: Any) -> Iterator[Any]:
        count[0] += given["write"]
        try:
            with real(**given) as begun:
                yield begun
                if given["write"] and count[0] in (1, 3):
                    raise _UndoError
        except _UndoError:
            raise UnknownEndError.of("The ledger broke off") from None

    monkeypatch.setattr(store, "transaction", transaction)
    with pytest.raises(sb.LedgerError, match=r"Nothing was changed\."):
        ask(in_file)
    assert count[0] == 4
    assert in_file.releases() == 0
    ask(in_file)
    paid_once(in_file)
