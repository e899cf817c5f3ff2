"""The one way out, in every state of a request: what is charged, drawn, stored and returned."""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from secretballot.core import releasing
from secretballot.core.errors import BudgetError, LedgerError, ParameterError, SecretBallotError
from secretballot.core.events import Counts
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.account import AnswerPage
from secretballot.core.mechanisms import (
    NoisySums,
    NoisyVotes,
    RelabelledSample,
    SparseVector,
    State,
    Terms,
)
from secretballot.core.price import PrivacyBudget
from secretballot.core.private import RecordSums, Votes
from secretballot.core.types import Guarantee, Sample

RECORD = Guarantee(unit="record", relation="add-remove")
BUDGET = PrivacyBudget(2.0, 1e-5)
LABELS = NoisyVotes(scale=20.0)
COUNTS = NoisyVotes(scale=20.0, release="counts")
STREAM = SparseVector(threshold_scale=20.0, query_scale=40.0, threshold=800, max_abstentions=1)


class Stop(BaseException):
    """An end of the process."""


def account(budget: PrivacyBudget = BUDGET, **more: Any) -> Ledger:
    return Ledger.in_memory(dataset="D", budget=budget, **more)


def votes(*margins: int, k: int = 12_000) -> Votes:
    return Votes.of_teachers([[(k - m) // 2, (k + m) // 2] for m in margins], RECORD)


def released(private: Any, mechanism: Any, ledger: Ledger, **more: Any) -> releasing.Released:
    public, shape = more.pop("public", {"classes": [0, 1]}), more.pop("shape", private.shape)
    terms = Terms(mechanism, shape, BUDGET, public)
    return releasing.release(terms, private, ledger, **{"request": "r", **more})


def opened(shape: Any, ledger: Ledger, vault: Any = None) -> releasing.AnswerStream:
    terms = Terms(STREAM, shape, BUDGET, {"teachers": "t"})
    return releasing.stream(terms, ledger, request="s", vault=vault)


def test_a_release_is_charged_once_and_stored() -> None:
    ledger, private = account(), votes(8000, -8000, 6000)
    first = released(private, LABELS, ledger)
    assert first.values.tolist() == [[1], [0], [1]]
    assert ledger.spent() == (2.0, 1e-5)
    assert first.account["spent_after"] == {"epsilon": 2.0, "delta": 1e-5}
    assert first.account["reservation"] == 1
    assert first.noise["exact"]
    again = released(private, LABELS, ledger)
    assert again.values.tolist() == first.values.tolist()
    assert (again.noise, again.issued, again.public) == (first.noise, first.issued, first.public)
    assert ledger.spent() == (2.0, 1e-5)
    with ThreadPoolExecutor(1) as other:  # in which signals are nobody's to hold back
        counted = other.submit(released, private, COUNTS, account()).result().values
    assert counted.shape == (3, 1)
    assert (np.abs(counted[:, 0] - [10_000, 2000, 9000]) < 300).all()


def test_what_another_program_has_just_bought_is_not_bought_again(monkeypatch: Any) -> None:
    buy, ledger = Ledger.reserve, account()
    monkeypatch.setattr(Ledger, "reserve", lambda *a, **more: buy(*a, **more) and buy(*a, **more))
    assert released(votes(8000), LABELS, ledger).values.tolist() == [[1]]
    assert ledger.spent() == (2.0, 1e-5)
    monkeypatch.setattr(Ledger, "reserve", Mock(side_effect=LedgerError("no space")))
    with pytest.raises(LedgerError, match="no space"):
        released(votes(8000), LABELS, account())


def test_what_can_be_refused_is_refused_before_anything_is_spent() -> None:
    ledger, private = account(), votes(8000)
    users = Votes.of_teachers([[1, 9]], Guarantee(unit="user", relation="replace-one"))
    sample = Sample(sampled=1, out_of=9, relabel_epsilon=1.0, request="another", serial="s")
    sampled = Votes.of_teachers([[1, 9]], RECORD, sample=sample)
    refused: list[tuple[type[SecretBallotError], Callable[[], object]]] = [
        (BudgetError, lambda: released(private, NoisyVotes(scale=1.0), ledger)),
        (LedgerError, lambda: released(users, LABELS, ledger)),
        (ParameterError, lambda: released(private, NoisySums(sigmas=(5.0,)), ledger)),
        (ParameterError, lambda: released(private, LABELS, ledger, shape=votes(2, 4).shape)),
        (ParameterError, lambda: released(private, LABELS, ledger, public={"x": float("nan")})),
        (ParameterError, lambda: released(private, LABELS, ledger, public={"x": object()})),
        (ParameterError, lambda: released(private, LABELS, ledger, public={"x": "y" * 10**7})),
        (BudgetError, lambda: released(private, LABELS, account(PrivacyBudget(1.0, 1e-5)))),
        (ParameterError, lambda: released(sampled, RelabelledSample(stream=STREAM), ledger)),
    ]
    for kind, call in refused:
        with pytest.raises(kind):
            call()
    assert ledger.releases() == 0
    assert released(private, LABELS, ledger, public={"x": "y" * 9_999_000}).values.size == 1


def test_nothing_is_made_where_the_account_or_the_price_refuses() -> None:
    def never(_: object) -> Votes:
        raise AssertionError

    terms = Terms(LABELS, votes(8000).shape, BUDGET, {})
    poor, ledger = account(PrivacyBudget(1.0, 1e-5)), account(PrivacyBudget(4.0, 2e-5))
    with pytest.raises(BudgetError):
        releasing.release(terms, never, poor, request="r")
    # a stored answer needs no votes
    made = releasing.release(terms, lambda _: votes(8000), ledger, request="r")
    found = releasing.release(terms, never, ledger, request="r")
    assert found.values.tolist() == made.values.tolist() == [[1]]
    with pytest.raises(AssertionError):
        releasing.release(terms, never, ledger, request="other")
    assert ledger.releases() == 1


ENDS = [ValueError, MemoryError, GeneratorExit, KeyboardInterrupt, SystemExit]


def breaking(kind: type[BaseException]) -> Any:
    def broken(self: object, shape: object, given: Sequence[Any], *_: object) -> Any:
        counted = int(given[0][0, 1])
        raise kind(f"{counted} votes")

    return broken


def assert_tells_nothing(error: BaseException) -> None:
    """Neither its text, nor an error behind it, nor a value in a frame that it came through."""
    assert "9871" not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None
    trace = error.__traceback__
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        if frame.f_code.co_filename == releasing.__file__:
            held = str(frame.f_locals)
            assert not any(text in held for text in ("9871", "array(", "b'\\x", "Error"))


@pytest.mark.parametrize("kind", ENDS)
def test_a_draw_that_fails_is_forfeited_and_tells_nothing(
    kind: type[BaseException], monkeypatch: Any
) -> None:
    ledger = account()
    with monkeypatch.context() as patch:
        patch.setattr(NoisyVotes, "draw", breaking(kind))
        with pytest.raises(LedgerError) as caught:
            released(votes(7742), LABELS, ledger)
    assert_tells_nothing(caught.value)
    with pytest.raises(LedgerError, match="forfeited"):
        released(votes(7742), LABELS, ledger)
    assert ledger.spent() == (2.0, 1e-5)


@pytest.mark.parametrize("kind", ENDS)
def test_a_draw_of_a_stream_that_fails_ends_it_and_tells_nothing(
    kind: type[BaseException], monkeypatch: Any
) -> None:
    ledger, private = account(), votes(6000, 7742)
    stream = opened(private.shape, ledger)
    first = stream.answer(private.take([0]), [b"a"])
    with monkeypatch.context() as patch:
        patch.setattr(SparseVector, "draw", breaking(kind))
        with pytest.raises(LedgerError) as caught:
            stream.answer(private.take([1]), [b"b"])
    assert_tells_nothing(caught.value)
    again = stream.answer(private, [b"a", b"b"])
    assert (again.given.tolist(), again.left) == ([True, False], 0)
    assert again.values[0].tolist() == first.values[0].tolist()
    # what had been answered is paid for, and stays
    assert stream.released().questions == (b"a",)
    with pytest.raises(LedgerError, match="forfeited"):
        opened(private.shape, ledger)
    assert ledger.spent() == (2.0, 1e-5)


def test_what_was_drawn_and_not_stored_stands_in_no_frame(monkeypatch: Any) -> None:
    def full(*_: object) -> None:
        raise LedgerError("no space")

    ledger, private = account(), votes(7742)
    stream = opened(private.shape, ledger)
    other = account()
    monkeypatch.setattr(AnswerPage, "add", full)
    for call in (lambda: stream.answer(private, [b"a"]), lambda: released(private, COUNTS, other)):
        with pytest.raises(LedgerError, match="no space") as caught:
            call()
        assert_tells_nothing(caught.value)
    # what the caller handles meanwhile is its own
    try:
        raise KeyError("of the caller")
    except KeyError:
        with pytest.raises(LedgerError, match="no space") as caught:
            stream.answer(private, [b"b"])
    handled = caught.value.__context__
    assert isinstance(handled, KeyError)
    assert handled.__traceback__ is not None


def test_a_request_that_was_reserved_for_less_is_not_drawn() -> None:
    private, ledger = votes(8000), account()
    asked = Terms(NoisyVotes(scale=1e-3), private.shape, BUDGET, {})
    own = releasing._Request(asked, ledger, "r")
    ledger.reserve([Counts(sigma=1e6, shifts=1)], BUDGET, request="r", purpose="", terms=own.terms)
    for mechanism in (NoisyVotes(scale=1e-3), LABELS):
        with pytest.raises(ParameterError, match="other terms"):
            released(private, mechanism, ledger, public={})


class Telling(NoisyVotes):
    """Says that it draws noise, and gives the votes."""

    def _draw(self, shape: Any, given: Sequence[Any], noise: Any, state: State) -> Any:
        return given[0][:, 1:], state

    def _event(self, shape: Any) -> Any:
        return Counts(sigma=1e6, shifts=1)


def test_what_is_drawn_and_priced_is_the_mechanism_that_is_stored() -> None:
    ledger, private = account(), votes(*[7742] * 6)
    for _ in range(2):
        found = released(private, Telling(**dict(COUNTS)), ledger)
        assert (found.values != 9871).any()  # all are with probability 1e-10
        assert found.event == COUNTS.event(private.shape)
        assert type(found.mechanism) is NoisyVotes
    wrong = COUNTS.model_copy(update={"scale": 1e-9}), LABELS.model_copy(update={"noise": "none"})
    for mechanism in wrong:
        with pytest.raises(SecretBallotError):
            released(private, mechanism, account(), request="other")


class Places:
    """Ends the process at some of the places that a release passes."""

    def __init__(self, patch: pytest.MonkeyPatch, *ends: int) -> None:
        self.count, self.ends = 0, set(ends)
        for owner, name in (
            (Ledger, "reserve"),
            (Ledger, "answering"),
            (releasing._SecretStates, "save"),
        ):
            patch.setattr(owner, name, self.wrapped(getattr(owner, name)))

    def wrapped(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def done(*given: Any, **named: Any) -> Any:
            self.at()
            result = work(*given, **named)
            self.at()
            return result

        return done

    def at(self) -> None:
        self.count += 1
        if self.count in self.ends:
            raise Stop


def sums_of(stage: int) -> RecordSums:
    one = np.ones((1, 1), dtype=np.int64)
    block = one, np.array([[3, stage]]), one[:, :0]
    return RecordSums.of_products([[block]], iter, 5, RECORD, coordinates=2)


@pytest.mark.parametrize("ends", [*itertools.combinations(range(1, 9), 1), (2, 5), (3, 7)])
def test_interrupted_stages_go_on_and_are_charged_once(
    ends: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, asked = account(), []
    places = Places(monkeypatch, *ends)
    mechanism = NoisySums(sigmas=(60.0, 60.0, 60.0))

    def made(stages: Sequence[Any]) -> RecordSums:
        asked.append([stage.tolist() for stage in stages])
        return sums_of(len(stages))

    def run() -> releasing.Released:
        terms = Terms(mechanism, sums_of(0).shape, BUDGET, {})
        return releasing.release(terms, made, ledger, request="r")

    for _ in ends:
        with pytest.raises(Stop):
            run()
    found = run()
    assert places.count > max(ends)
    assert found.values.shape == (3, 2)
    assert ledger.spent() == (2.0, 1e-5)
    # what a later stage was made of is what was released
    last = max(asked, key=len)
    assert [rows for stage in last for rows in stage] == found.values[:2].tolist()
    assert run().values.tolist() == found.values.tolist()


def test_a_stage_of_another_shape_is_refused_and_two_that_draw_stages_have_one_answer() -> None:
    ledger, terms = account(), Terms(NoisySums(sigmas=(50.0, 50.0)), sums_of(0).shape, BUDGET, {})
    longer = RecordSums.of_products([], iter, 6, RECORD, coordinates=2)

    def run(made: Callable[[Sequence[Any]], RecordSums]) -> list[Any]:
        return releasing.release(terms, made, ledger, request="r").values.tolist()

    with pytest.raises(ParameterError, match="not of the shape"):
        run(lambda stages: longer if stages else sums_of(0))
    with ledger.reading(1) as page:
        assert page.count == 1
    seen: list[Any] = []

    def overtaken(stages: Sequence[Any]) -> RecordSums:
        seen.append(run(lambda others: sums_of(len(others))))
        return sums_of(len(stages))

    assert run(overtaken) == seen[0]
    assert ledger.spent() == (2.0, 1e-5)


def test_what_would_be_released_is_looked_at_before_anything_is_spent() -> None:
    ledger, private = account(), votes(8000, 2)

    def refuse(planned: releasing.Released) -> None:
        assert planned.values.tolist() == [[0], [0]]
        raise ParameterError("unreadable")

    with pytest.raises(ParameterError, match="unreadable"):
        released(private, LABELS, ledger, check=refuse)
    with pytest.raises(ParameterError, match="unreadable"):
        releasing.stream(
            Terms(LABELS, private.shape, BUDGET, {}), ledger, request="r", check=refuse
        )
    assert ledger.releases() == 0
    released(private, LABELS, ledger)
    released(private, LABELS, ledger, check=refuse)  # a stored answer was looked at before


@pytest.mark.parametrize("ends", [(), *itertools.product(range(1, 10), (2, 5))])
def test_an_interrupted_stream_goes_on_and_asks_nothing_twice(
    ends: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, private, files = account(), votes(6000, 8000, 10_000), dict[str, bytes]()
    vault = SimpleNamespace(read=files.get, write=files.__setitem__)
    with monkeypatch.context() as patch:
        Places(patch, *itertools.accumulate(ends))
        for _ in ends:
            with pytest.raises(Stop):
                opened(private.shape, ledger, vault).answer(private, [b"a", b"b", b"c"])
    found = opened(private.shape, ledger, vault).answer(private, [b"a", b"b", b"c"])
    assert found.values.tolist() == [[1], [1], [1]]
    assert found.given.all()
    assert found.left == 0
    assert ledger.spent() == (2.0, 1e-5)
    assert [len(content) for content in files.values()] == [releasing._STATE_BYTES]


def test_answers_of_a_stream_that_may_stop_are_stored_one_by_one(monkeypatch: Any) -> None:
    stored, add = [], AnswerPage.add
    monkeypatch.setattr(AnswerPage, "add", lambda *a: stored.append(len(a[1])) or add(*a))
    private = votes(8000, 8000, 8000)
    opened(private.shape, account()).answer(private, [b"a", b"b", b"c"])
    assert stored == [1, 1, 1]


def test_votes_of_others_are_not_answered() -> None:
    ledger = account()
    stream = opened(votes(2, 4, 6).shape, ledger)
    for given in (votes(800, k=1000), Votes.of_teachers([[1, 2, 11_997]], RECORD)):
        with pytest.raises(ParameterError, match="not those"):
            stream.answer(given, [b"a"])
    with pytest.raises(SecretBallotError, match="one row each"):
        stream.answer(votes(2, 4), [b"a"])
    assert stream.left == 3


def test_a_stream_is_paid_for_votes_that_move_in_every_row() -> None:
    # of a table in which few rows move it is private which these are: questions asked before,
    # beside new ones, would let all new ones move
    few = Votes.of_teachers(np.full((10, 2), 50), RECORD, moved=5)
    cells = np.array([[0, 3]])
    records = Votes.of_records([cells], RECORD, n_queries=2, n_classes=2, votes_per_record=2)
    sums = sums_of(0)
    for private, mechanism in ((few, LABELS), (records, COUNTS), (sums, NoisySums(sigmas=(90.0,)))):
        ledger = account()
        with pytest.raises(ParameterError, match="may change at every question"):
            releasing.stream(Terms(mechanism, private.shape, BUDGET, {}), ledger, request="s")
        assert ledger.releases() == 0
    # what moves in fewer rows than there are is within what was paid for all
    terms = Terms(LABELS, votes(*[0] * 10, k=100).shape, BUDGET, {})
    stream = releasing.stream(terms, account(), request="s")
    assert stream.answer(few, [b"%d" % i for i in range(10)]).given.all()


@pytest.mark.parametrize("first", ["release", "stream"])
def test_a_request_is_whole_or_question_by_question(first: str, monkeypatch: Any) -> None:
    private, ledger = votes(8000, 8000), account()

    def whole() -> object:
        return released(private, LABELS, ledger, public={})

    def by_question() -> object:
        stream = releasing.stream(Terms(LABELS, private.shape, BUDGET, {}), ledger, request="r")
        return stream.answer(private, [b"a", b"b"])

    one, other = (whole, by_question) if first == "release" else (by_question, whole)
    with monkeypatch.context() as patch:
        Places(patch, 3)  # in the middle: it is reserved, and nothing was drawn
        with pytest.raises(Stop):
            one()
    with pytest.raises(ParameterError, match="other terms"):
        other()
    one()
    with pytest.raises(ParameterError, match="other terms"):
        other()
    assert ledger.spent() == (2.0, 1e-5)


def test_closing_gives_back_what_was_not_used_where_that_is_a_release_of_its_own() -> None:
    budget = PrivacyBudget(4.0, 1e-5)
    ledgers = [account(budget, composition="renyi") for _ in range(4)]
    kinds = ((COUNTS, True), (LABELS, True), (STREAM, False))
    for ledger, (mechanism, returns) in zip(ledgers[1:], kinds, strict=True):
        terms = Terms(mechanism, votes(*[8000] * 50).shape, PrivacyBudget(3.5, 1e-5), {})
        stream = releasing.stream(terms, ledger, request="s")
        before = ledger.spent()
        stream.answer(votes(8000), [b"a"])
        assert stream.returns == returns
        stream.close()
        assert (ledger.spent()[0] < before[0]) == returns
        assert stream.closed
        assert stream.left == 0
        assert stream.answer(votes(8000), [b"a"]).given.all()
        assert not stream.answer(votes(8000), [b"b"]).given.any()
        with pytest.raises(LedgerError):
            stream.close()
    # one answer of fifty counts is one count
    alone, returned, *_ = ledgers
    alone.reserve([Counts(sigma=20.0, shifts=1)], PrivacyBudget(3.5, 1e-5), request="1", purpose="")
    assert returned.spent() == alone.spent()
