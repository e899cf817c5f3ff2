"""Where a request can be interrupted, what is on the disk then, and what the same request does
afterwards: one test for each state, in a file and in a database."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

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

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

K = 250
PLAN = noisy(60.0, 6, budget=sb.PrivacyBudget(1.0, 1e-6), n_teachers=K)
SPARSE = priced(sparse(2.0, 60, 2), 20, K)
VOTES = sb.votes_of_counts(
    [[K - ones, ones] for ones in (0, 100, 125, 130, 200, 250)], classes=["no", "yes"]
)
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
        plan,
        ledger,
        ["no", "yes"],
        request="one",
        teachers=teachers,
        vault=tmp_path / "vault",
    )


def answers(stream: LabelStream, *rows: int) -> list[int]:
    found = stream.answer(VOTES.take(list(rows)), [QUESTIONS[row] for row in rows])
    assert found.given.all()
    return [int(label) for label in found.labels]


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


def paid_once(ledger: sb.Ledger, epsilon: float = 1.0) -> None:
    fresh = sb.Ledger.open_existing(str(ledger.place))
    assert (fresh.releases(), fresh.spent().epsilon) == (1, epsilon)
    fresh.check()


# --- kills ---


def test_before_the_reservation_nothing_is_there_and_the_request_begins(ledger: sb.Ledger) -> None:
    killed(at_a_row("reserve"), lambda: ask(ledger))
    assert ledger.head()[0] == ledger.releases() == 0
    ask(ledger)
    paid_once(ledger)


@pytest.mark.parametrize("where", [in_a_draw, at_a_row("close")], ids=["draw", "close"])
def test_after_the_reservation_it_is_drawn_anew_and_paid_once(
    ledger: sb.Ledger, drawn: list[int], where: Callable[[pytest.MonkeyPatch], None]
) -> None:
    killed(where, lambda: ask(ledger))
    entry = ledger.entry("one")
    assert entry is not None
    assert entry.state == "reserved"
    released = ask(ledger)
    assert drawn == [6]
    assert ask(ledger) == released
    assert drawn == [6]
    paid_once(ledger)


def test_an_answer_that_was_stored_and_not_returned_is_the_answer(
    ledger: sb.Ledger, drawn: list[int]
) -> None:
    @contextmanager
    def answering(self: sb.Ledger, *given: Any, **named: Any) -> Iterator[Any]:
        with real(self, *given, **named) as page:
            yield page
        die()

    real = sb.Ledger.answering
    killed(lambda patch: patch.setattr(sb.Ledger, "answering", answering), lambda: ask(ledger))
    assert ask(ledger) == ask(ledger)
    assert drawn == []
    paid_once(ledger)


def test_a_draw_that_fails_by_itself_is_closed_and_stays_spent(
    ledger: sb.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Any:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(ExactNoise, "discrete_gaussian", fail)
        with pytest.raises(sb.LedgerError, match="draw of request 'one' failed"):
            ask(ledger)
    entry = ledger.entry("one")
    assert entry is not None
    assert entry.state == "forfeited"
    with pytest.raises(sb.LedgerError, match="forfeited and stays spent"):
        ask(ledger)
    paid_once(ledger)


@pytest.mark.parametrize("where", [in_a_draw, at_a_row("part")], ids=["draw", "part"])
def test_an_answer_of_a_stream_that_was_not_stored_is_drawn_anew(
    ledger: sb.Ledger, tmp_path: Path, where: Callable[[pytest.MonkeyPatch], None]
) -> None:
    first = answers(taken_up(ledger, tmp_path), 0, 1)
    killed(where, lambda: answers(taken_up(ledger, tmp_path), 2))
    stream = taken_up(ledger, tmp_path)
    assert (stream.stream.used, stream.stream.left) == (2, 4)
    answers(stream, 2)
    assert answers(stream, 0, 1) == first
    assert stream.stream.used == 3
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
    assert answers(stream, 5, 2, 3) == [1, -1, -1]
    assert stream.stream.left == 0


def test_an_answer_of_a_stream_that_was_stored_is_found_again(
    ledger: sb.Ledger, tmp_path: Path, drawn: list[int]
) -> None:
    @contextmanager
    def answering(self: sb.Ledger, reservation: int) -> Iterator[Any]:
        with real(self, reservation) as page:
            yield page
        die()

    taken_up(ledger, tmp_path)
    real = sb.Ledger.answering
    killed(
        lambda patch: patch.setattr(sb.Ledger, "answering", answering),
        lambda: answers(taken_up(ledger, tmp_path), 2, 3),
    )
    stream = taken_up(ledger, tmp_path)
    assert stream.stream.used == 2
    stored = stream.find(QUESTIONS[2:4])
    assert answers(stream, 2, 3) == stored.labels.tolist()
    assert drawn == []


def test_other_terms_under_a_known_request_are_refused_and_cost_nothing(
    ledger: sb.Ledger, tmp_path: Path
) -> None:
    killed(in_a_draw, lambda: ask(ledger))
    for other in (
        noisy(61.0, 6, budget=sb.PrivacyBudget(1.0, 1e-6), n_teachers=K),
        noisy(60.0, 6, release="counts", budget=sb.PrivacyBudget(2.0, 1e-6), n_teachers=K),
    ):
        with pytest.raises(sb.ParameterError, match="begun with other terms"):
            ask(ledger, other)
    paid_once(ledger)
    ask(ledger)


def test_a_stream_goes_on_with_its_own_terms_alone(ledger: sb.Ledger, tmp_path: Path) -> None:
    answers(taken_up(ledger, tmp_path), 0)
    with pytest.raises(sb.ParameterError, match="was begun with other terms"):
        taken_up(ledger, tmp_path, teachers="b")
    assert taken_up(ledger, tmp_path).stream.left == 5
    paid_once(ledger)


# --- commits whose end is unknown ---


class _UndoError(Exception):
    pass


def unknown_end(ledger: sb.Ledger, patch: pytest.MonkeyPatch, *ends: bool | None) -> list[Any]:
    """Let the ends of the next transactions that write be unknown, done or not done; None is one
    that cannot even begin. Return those to come."""
    store, coming = ledger._own_book.store, list(ends)
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


ENDS = pytest.mark.parametrize("done", [True, False])


@ENDS
def test_a_purchase_of_unknown_end_is_looked_up_and_goes_on(
    ledger: sb.Ledger, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    coming = unknown_end(ledger, monkeypatch, done)
    ask(ledger)
    assert coming == []
    paid_once(ledger)


@ENDS
def test_an_answer_of_unknown_end_is_looked_up_and_stored_once(
    ledger: sb.Ledger, monkeypatch: pytest.MonkeyPatch, drawn: list[int], done: bool
) -> None:
    killed(in_a_draw, lambda: ask(ledger))
    coming = unknown_end(ledger, monkeypatch, done)
    released = ask(ledger)
    assert coming == []
    assert drawn == [6]  # the same bytes again, and no other draw
    entry = ledger.entry("one")
    assert entry is not None
    assert entry.state == "committed"
    assert ask(ledger) == released
    paid_once(ledger)


@ENDS
def test_an_answer_of_a_stream_of_unknown_end_is_looked_up_and_stored_once(
    ledger: sb.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    stream = taken_up(ledger, tmp_path)
    coming = unknown_end(ledger, monkeypatch, done)
    said = answers(stream, 0, 1, 2)
    assert coming == []
    assert stream.stream.used == 3
    assert answers(taken_up(ledger, tmp_path), 0, 1, 2) == said
    paid_once(ledger)


@ENDS
@pytest.mark.parametrize("at", ["purchase", "answer", "stream"])
def test_an_end_that_nobody_can_look_up_is_said_and_the_same_request_is_charged_once(
    ledger: sb.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, done: bool
) -> None:
    stream = taken_up(ledger, tmp_path) if at == "stream" else None
    if at == "answer":
        killed(in_a_draw, lambda: ask(ledger))
    with monkeypatch.context() as patch:
        unknown_end(ledger, patch, done, None)
        with pytest.raises(UnknownEndError, match=r"unknown whether that was stored.*charged once"):
            answers(stream, 0, 1) if stream else ask(ledger)
    if stream:
        assert stream.stream.used == (2 if done else 0)
        answers(stream, 0, 1)
        assert stream.stream.used == 2
    else:
        ask(ledger)
    paid_once(ledger)


def test_two_absences_in_a_row_are_an_error_and_nothing_is_spent(
    ledger: sb.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    # each look takes one transaction that ends as it should
    store = ledger._own_book.store
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
        ask(ledger)
    assert count[0] == 4
    assert ledger.releases() == 0
    ask(ledger)
    paid_once(ledger)
