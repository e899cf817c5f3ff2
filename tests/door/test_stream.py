"""A reservation answered query by query: what is drawn, when, how often, and for whom."""

import contextlib
import json
import multiprocessing
import os
import sqlite3
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import secretballot as sb
from secretballot.aggregation import Aggregator, SparseVectorAggregator
from secretballot.audit import ScriptedNoise
from secretballot.core.ledger import sqlite
from secretballot.core.noise import ExactNoise
from secretballot.door import ReleaseStream, purchase
from secretballot.door import stream as stream_room

K = 250
BUDGET = sb.PrivacyBudget(1.0, 1e-6)
GAUSSIAN = sb.GaussianAggregator(60.0, 6, budget=sb.PrivacyBudget(1.0, 1e-6))
COUNTS = sb.GaussianAggregator(60.0, 6, release="counts", budget=sb.PrivacyBudget(1.0, 1e-6))
ACCOUNT = sb.PrivacyBudget(1000.0, 0.5)
# votes for class 1: far above the sparse vector's threshold, and far below it
SURE, EVEN = 0, K // 2


def sparse(unstable: int = 2, queries: int = 20) -> SparseVectorAggregator:
    return SparseVectorAggregator(2.0, 2.0, 60, unstable, n_queries=queries, delta=1e-6)


@pytest.fixture
def ledger(tmp_path: Path) -> sb.Ledger:
    return sb.Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=ACCOUNT)


def votes(*ones: int) -> sb.Votes:
    counts = np.array(ones)
    return sb.votes_of_counts(np.column_stack([K - counts, counts]), classes=["no", "yes"])


def opened(
    aggregator: Aggregator,
    ledger: sb.Ledger,
    vault: Path | None = None,
    *,
    request: str = "plan",
    teachers: str = "a",
) -> ReleaseStream:
    return ReleaseStream(
        aggregator,
        ledger,
        classes=["no", "yes"],
        n_teachers=K,
        request=request,
        teachers=teachers,
        vault=vault,
    )


def names(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


class _SpyNoise:
    """Exact noise that looks at the ledger, through a handle of its own, whenever something is
    drawn."""

    exact = True
    description = "spy"

    def __init__(self, path: Path, then: Callable[[], None] = lambda: None) -> None:
        self.source, self.path, self.then = ExactNoise(), path, then
        self.seen: list[tuple[str, int]] = []
        self.sizes: list[int] = []

    def _look(self, size: int) -> None:
        entry = sb.Ledger.open_existing(self.path).history()[-1]
        self.seen.append((entry.state, entry.parts))
        self.sizes.append(size)
        self.then()

    def discrete_gaussian(self, sigma: float, size: int) -> Any:
        self._look(size)
        return self.source.discrete_gaussian(sigma, size)

    def discrete_laplace(self, scale: float, size: int) -> Any:
        self._look(size)
        return self.source.discrete_laplace(scale, size)


@pytest.fixture
def spy(ledger: sb.Ledger, monkeypatch: pytest.MonkeyPatch) -> _SpyNoise:
    assert ledger.path is not None
    watching = _SpyNoise(ledger.path)
    monkeypatch.setattr(purchase, "noise_source", lambda: watching)
    return watching


# --- order: reserve, draw, store, return ---


def test_the_price_is_paid_before_anything_is_drawn_and_answers_are_stored_before_they_return(
    ledger: sb.Ledger, spy: _SpyNoise, tmp_path: Path
) -> None:
    stream = opened(GAUSSIAN, ledger, tmp_path / "vault")
    assert spy.seen == []
    assert ledger.spent().epsilon == 1.0
    given = stream.answer(votes(0, 250), names(0, 1))
    assert spy.seen == [("reserved", 0)]
    with sb.Ledger.open_existing(str(ledger.path)).reading(1) as page:
        stored = [json.loads(answer)[0] for _, answer in page.parts()]
    assert stored == given.labels.tolist()
    assert ledger.spent().epsilon == 1.0


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError, OSError])
def test_an_interrupted_draw_is_neither_given_nor_counted(
    ledger: sb.Ledger, spy: _SpyNoise, tmp_path: Path, failure: type[BaseException]
) -> None:
    def fail() -> None:
        raise failure

    stream = opened(GAUSSIAN, ledger, tmp_path / "vault")
    spy.then = fail
    with pytest.raises((failure, sb.LedgerError)):
        stream.answer(votes(0, 250), names(0, 1))
    assert (stream.used, stream.left, stream.order()) == (0, 6, [])
    spy.then = lambda: None
    assert stream.answer(votes(0, 250), names(0, 1)).given.all()
    assert stream.used == 2


def test_a_ledger_that_cannot_store_gives_no_answer(
    ledger: sb.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from secretballot.core.ledger import rows

    stream = opened(GAUSSIAN, ledger, tmp_path / "vault")

    def full(*_: object) -> None:
        raise sb.LedgerError("no space")

    monkeypatch.setattr(rows.Writer, "add_parts", full)
    with pytest.raises(sb.LedgerError, match="no space"):
        stream.answer(votes(0), names(0))
    monkeypatch.undo()
    assert stream.used == 0


# --- repeated questions and the cap ---


def test_a_repeated_question_gets_its_stored_answer_and_draws_nothing(
    ledger: sb.Ledger, spy: _SpyNoise, tmp_path: Path
) -> None:
    stream = opened(COUNTS, ledger, tmp_path / "vault")
    first = stream.answer(votes(100, 130, 100), names(0, 1, 0))
    assert stream.used == 2
    assert spy.sizes == [2]
    again = stream.answer(votes(100, 130, 100, 20), names(1, 0, 1, 2))
    assert spy.sizes == [2, 1]
    assert first.noisy_counts is not None
    assert again.noisy_counts is not None
    assert again.noisy_counts[[1, 0, 1]].tolist() == first.noisy_counts.tolist()
    assert stream.find(names(0, 9)).given.tolist() == [True, False]
    assert stream.used == 3


def test_the_plan_is_the_most_there_is(ledger: sb.Ledger, spy: _SpyNoise, tmp_path: Path) -> None:
    stream = opened(GAUSSIAN, ledger, tmp_path / "vault")
    given = stream.answer(votes(*[0] * 9), names(*range(9)))
    assert given.given.tolist() == [True] * 6 + [False] * 3
    assert (given.labels[6:] == -1).all()
    assert (stream.used, stream.left) == (6, 0)
    assert not stream.answer(votes(0), names(7)).given.any()
    assert sum(spy.sizes) == 6
    late = opened(GAUSSIAN, ledger, tmp_path / "vault")
    assert late.answer(votes(0, 0), names(0, 8)).given.tolist() == [True, False]
    assert sum(spy.sizes) == 6


def test_threads_get_one_answer_to_each_question_and_no_more_than_the_plan(
    ledger: sb.Ledger, tmp_path: Path
) -> None:
    stream = opened(sb.GaussianAggregator(60.0, 20, delta=1e-6), ledger, tmp_path / "vault")

    def work(start: int) -> list[tuple[bytes, int]]:
        got = []
        for step in range(15):
            asked = names((start + step) % 30)
            answer = stream.answer(votes(125), asked)
            if answer.given[0]:
                got.append((asked[0], int(answer.labels[0])))
        return got

    with ThreadPoolExecutor(4) as pool:
        found = [pair for pairs in pool.map(work, (0, 5, 10, 15)) for pair in pairs]
    assert len(dict(found)) == len(set(found)) == 20
    assert stream.used == 20


def _process(path: str, vault: Path, start: int, gate: Any, out: Any) -> None:
    gate.wait()
    stream = opened(
        sb.GaussianAggregator(60.0, 20, delta=1e-6), sb.Ledger.open_existing(path), vault
    )
    got = []
    for step in range(15):
        asked = names((start + step) % 30)
        answer = stream.answer(votes(125), asked)
        if answer.given[0]:
            got.append((asked[0], int(answer.labels[0])))
    out.put(got)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_processes_that_open_at_once_share_one_plan(ledger: sb.Ledger, tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    gate, out = context.Event(), context.Queue()
    arguments = (str(ledger.path), tmp_path / "vault")
    children = [
        context.Process(target=_process, args=(*arguments, start, gate, out))
        for start in (0, 5, 10)
    ]
    for child in children:
        child.start()
    gate.set()
    found = [pair for _ in children for pair in out.get(timeout=300)]
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert len(dict(found)) == len(set(found)) == 20
    assert len(ledger.history()) == 1


def test_many_questions_are_answered_in_blocks_and_a_failure_keeps_those_before_it(
    ledger: sb.Ledger, spy: _SpyNoise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_room, "BLOCK", 2)
    stream = opened(GAUSSIAN, ledger, tmp_path / "vault")

    def fail_later() -> None:
        if len(spy.sizes) == 2:
            raise KeyboardInterrupt

    spy.then = fail_later
    with pytest.raises(KeyboardInterrupt):
        stream.answer(votes(*[0] * 9), names(*range(9)))
    assert stream.order() == names(0, 1)
    assert (
        stream.answer(votes(*[0] * 9), names(*range(9))).given.tolist() == [True] * 6 + [False] * 3
    )
    assert spy.sizes == [2, 2, 2, 2]
    assert stream.order() == names(*range(6))


def test_a_stream_that_stops_inside_a_block_answers_no_later_one(
    ledger: sb.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_room, "BLOCK", 2)
    stream = opened(sparse(), ledger, tmp_path / "vault")
    given = stream.answer(votes(SURE, EVEN, EVEN, SURE, SURE, SURE), names(*range(6)))
    assert given.given.tolist() == [True] * 3 + [False] * 3
    assert given.labels.tolist() == [0, -1, -1, -1, -1, -1]


def test_what_comes_after_the_end_is_looked_up_without_a_draw(
    ledger: sb.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = opened(sparse(unstable=1), ledger, tmp_path / "vault")
    known = stream.answer(votes(SURE), names(7)).labels[0]
    begun, real = [], sb.Ledger.answering

    def answering(self: sb.Ledger, reservation: int) -> Any:
        begun.append(reservation)
        return real(self, reservation)

    monkeypatch.setattr(sb.Ledger, "answering", answering)
    found = stream.answer(votes(*[EVEN] * 50), names(*range(50)))
    assert np.flatnonzero(found.given).tolist() == [0, 7]
    assert found.labels[[0, 7]].tolist() == [-1, known]
    assert len(begun) == 2  # for the last abstention, and for the question that comes too late
    assert stream.answer(votes(*[EVEN] * 50), names(*range(50))).given.sum() == 2


def test_what_a_full_disk_refuses_does_not_depend_on_where_a_stream_would_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite.connect

    def used(name: str, unstable_at: int) -> int:
        ledger = sb.Ledger(tmp_path / name, dataset="registry", budget=ACCOUNT)
        stream = opened(sparse(unstable=1, queries=50), ledger, tmp_path / f"{name} vault")
        with connect(tmp_path / name) as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]

        def connect_to_small_disk(place: Path | None) -> sqlite3.Connection:
            connection = connect(place)
            connection.execute(f"PRAGMA max_page_count = {pages + 2}")
            return connection

        monkeypatch.setattr(sqlite, "connect", connect_to_small_disk)
        asked = votes(*[EVEN if row == unstable_at else SURE for row in range(40)])
        with contextlib.suppress(sb.LedgerError):
            stream.answer(asked, names(*range(40)))
        monkeypatch.setattr(sqlite, "connect", connect)
        return stream.used

    room = used("never", 40)
    assert 3 < room < 39
    assert used("too late", 39) == room
    assert used("in time", 2) == 3


# --- the sparse vector ---


def test_the_stream_stops_at_the_last_abstention(ledger: sb.Ledger, tmp_path: Path) -> None:
    stream = opened(sparse(), ledger, tmp_path / "vault")
    given = stream.answer(votes(SURE, EVEN, SURE, EVEN, SURE), names(*range(5)))
    assert given.labels.tolist() == [0, -1, 0, -1, -1]
    assert given.given.tolist() == [True] * 4 + [False]
    assert (stream.used, stream.left) == (4, 0)
    assert not stream.answer(votes(SURE), names(7)).given.any()
    again = opened(sparse(), ledger, tmp_path / "vault")
    assert again.left == 0
    assert not again.answer(votes(SURE), names(7)).given.any()
    assert again.find(names(0, 1)).labels.tolist() == [0, -1]


@pytest.mark.parametrize("close_to", [119, 120])
def test_a_stream_reopened_before_every_question_answers_as_one_that_lives_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, close_to: int
) -> None:
    # near the threshold, where a threshold drawn anew would soon show
    tape = [(7 * i * i + 3 * i) % 11 - 5 for i in range(200)]
    aggregator = SparseVectorAggregator(2.0, 2.0, 6, 3, n_queries=40, delta=0.4)
    labels, draws = [], []
    for reopen in (False, True):
        noise = ScriptedNoise(tape, exact=True)
        monkeypatch.setattr(purchase, "noise_source", lambda noise=noise: noise)
        folder = tmp_path / str(reopen)
        folder.mkdir()
        ledger = sb.Ledger(folder / "ledger.sqlite", dataset="registry", budget=ACCOUNT)
        stream = opened(aggregator, ledger, folder / "vault" if reopen else None)
        said = []
        for number in range(15):
            if reopen:
                stream = opened(
                    aggregator, sb.Ledger.open_existing(str(ledger.path)), folder / "vault"
                )
            said += stream.answer(votes(close_to), names(number)).labels.tolist()
        labels.append(said)
        draws.append(len(noise._left))
    assert labels[0] == labels[1]
    assert draws[0] == draws[1]
    assert {-1, 0} == set(labels[0])


def test_the_secret_state_is_closed_to_others(ledger: sb.Ledger, tmp_path: Path) -> None:
    stream = opened(sparse(), ledger, tmp_path / "vault")
    stream.answer(votes(SURE, EVEN), names(0, 1))
    for path in [tmp_path / "vault" / "streams", *(tmp_path / "vault" / "streams").iterdir()]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_gaussian_streams_keep_no_secret_state(ledger: sb.Ledger, tmp_path: Path) -> None:
    opened(GAUSSIAN, ledger, tmp_path / "vault").answer(votes(0), names(0))
    assert [path.suffix for path in (tmp_path / "vault" / "streams").iterdir()] == [".terms"]


# --- taking a plan up ---


def test_a_plan_goes_on_only_with_its_own_terms(ledger: sb.Ledger, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    opened(GAUSSIAN, ledger, vault).answer(votes(0), names(0))
    with pytest.raises(sb.ParameterError, match="aggregator"):
        opened(sb.GaussianAggregator(70.0, 6, budget=GAUSSIAN.budget), ledger, vault)
    with pytest.raises(sb.ParameterError, match="teachers"):
        opened(GAUSSIAN, ledger, vault, teachers="b")
    with pytest.raises(sb.ParameterError, match="classes"):
        ReleaseStream(
            GAUSSIAN,
            ledger,
            classes=["no", "maybe"],
            n_teachers=K,
            request="plan",
            teachers="a",
            vault=vault,
        )
    with pytest.raises(sb.ParameterError, match="number of teachers"):
        ReleaseStream(
            GAUSSIAN,
            ledger,
            classes=["no", "yes"],
            n_teachers=240,
            request="plan",
            teachers="a",
            vault=vault,
        )
    with pytest.raises(sb.ParameterError, match="unit"):
        ReleaseStream(
            GAUSSIAN,
            ledger,
            classes=["no", "yes"],
            n_teachers=K,
            request="plan",
            teachers="a",
            vault=vault,
            declaration={"unit": "user", "unit_column": "patient"},
        )
    assert len(ledger.history()) == 1
    assert opened(GAUSSIAN, ledger, vault).left == 5


def test_without_a_vault_a_plan_dies_with_its_process(ledger: sb.Ledger, tmp_path: Path) -> None:
    stream = opened(GAUSSIAN, ledger)
    assert not stream.resumable
    stream.answer(votes(0), names(0))
    with pytest.raises(sb.LedgerError, match="no vault is given"):
        opened(GAUSSIAN, ledger)
    with pytest.raises(sb.LedgerError, match="holds nothing of it"):
        opened(GAUSSIAN, ledger, tmp_path / "vault")
    assert stream.answer(votes(0), names(1)).given.all()


def test_another_vault_does_not_take_up_a_plan(ledger: sb.Ledger, tmp_path: Path) -> None:
    opened(GAUSSIAN, ledger, tmp_path / "vault").answer(votes(0), names(0))
    with pytest.raises(sb.LedgerError, match="holds nothing of it"):
        opened(GAUSSIAN, ledger, tmp_path / "other")


def test_a_release_as_a_whole_is_no_stream(ledger: sb.Ledger, tmp_path: Path) -> None:
    sb.release(votes(*[0] * 6), GAUSSIAN, ledger, request="plan")
    with pytest.raises(sb.LedgerError, match="reserved before"):
        opened(GAUSSIAN, ledger, tmp_path / "vault")


def test_a_crash_between_purchase_and_terms_leaves_a_plan_to_begin(
    ledger: sb.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from secretballot.door import reservation_terms

    def die(*_: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(reservation_terms, "keep_secret", die)
    with pytest.raises(KeyboardInterrupt):
        opened(GAUSSIAN, ledger, tmp_path / "vault")
    monkeypatch.undo()
    assert ledger.spent().epsilon == 1.0
    assert opened(GAUSSIAN, ledger, tmp_path / "vault").answer(votes(0), names(0)).given.all()
    assert ledger.spent().epsilon == 1.0


def test_noise_too_small_for_its_budget_is_refused(ledger: sb.Ledger) -> None:
    with pytest.raises(sb.BudgetError, match="Nothing was spent"):
        opened(sb.GaussianAggregator(5.0, 26, budget=BUDGET), ledger)
    assert ledger.history() == []


def test_a_full_ledger_refuses_the_plan_and_keeps_no_terms(tmp_path: Path) -> None:
    small = sb.Ledger(tmp_path / "l.sqlite", dataset="registry", budget=sb.PrivacyBudget(0.5, 1e-6))
    with pytest.raises(sb.BudgetError):
        opened(GAUSSIAN, small, tmp_path / "vault")
    assert small.history() == []
    assert list((tmp_path / "vault" / "streams").iterdir()) == []


@pytest.mark.parametrize(
    ("counts", "questions"),
    [
        (votes(0, 1), names(0)),
        (sb.votes_of_counts([[3, 2]], classes=["no", "yes"]), names(0)),
        (sb.votes_of_counts([[200, 50]], classes=["yes", "no"]), names(0)),
    ],
)
def test_votes_of_others_are_refused(
    ledger: sb.Ledger, tmp_path: Path, counts: sb.Votes, questions: list[bytes]
) -> None:
    stream = opened(GAUSSIAN, ledger, tmp_path / "vault")
    with pytest.raises(sb.DataError):
        stream.answer(counts, questions)
    assert stream.used == 0


# --- in memory, what came out, closing ---


def test_a_ledger_in_memory_serves_until_its_process_ends() -> None:
    ledger = sb.Ledger.in_memory(dataset="registry", budget=ACCOUNT)
    stream = opened(sparse(), ledger)
    for number, ones in enumerate((SURE, EVEN, SURE, EVEN, SURE)):
        stream.answer(votes(ones), names(number))
    assert stream.find(names(*range(5))).labels.tolist() == [0, -1, 0, -1, -1]
    assert (stream.used, stream.left, stream.resumable) == (4, 0, False)
    with pytest.raises(sb.LedgerError, match="no vault"):
        opened(sparse(), ledger)


@pytest.mark.parametrize(
    "aggregator", [GAUSSIAN, COUNTS, sparse()], ids=["labels", "counts", "sparse"]
)
def test_what_came_out_is_certified_as_the_whole_plan(
    ledger: sb.Ledger, tmp_path: Path, aggregator: Aggregator
) -> None:
    stream = opened(aggregator, ledger, tmp_path / "vault")
    given = stream.answer(votes(SURE, EVEN, SURE), names(4, 2, 7))
    released = stream.released({b"2": 20, b"4": 40, b"7": 70})
    assert released.queries.tolist() == [40, 20, 70]
    assert released.labels.tolist() == given.labels.tolist()
    assert (released.noisy_counts is None) == (aggregator.release == "labels")
    assert released.certificate["epsilon"] == aggregator.budget.epsilon
    assert sb.verify_certificate(released.certificate).ok
    with pytest.raises(sb.DataError, match="1 of the 3 answers"):
        stream.released({b"2": 20, b"4": 40})


def test_a_closed_plan_gives_stored_answers_alone(
    ledger: sb.Ledger, spy: _SpyNoise, tmp_path: Path
) -> None:
    stream = opened(GAUSSIAN, ledger, tmp_path / "vault")
    before = stream.answer(votes(0, 250), names(0, 1))
    stream.close(stream.released({b"0": 0, b"1": 1}))
    assert stream.closed
    assert stream.left == 0
    after = stream.answer(votes(250, 0, 0), names(1, 0, 5))
    assert after.given.tolist() == [True, True, False]
    assert after.labels[:2].tolist() == before.labels[::-1].tolist()
    assert len(spy.sizes) == 1
    with pytest.raises(sb.LedgerError, match="committed already"):
        stream.close(stream.released({b"0": 0, b"1": 1}))
    assert ledger.spent().epsilon == 1.0  # a ledger of pairs gives nothing back


def test_an_answer_given_meanwhile_keeps_a_plan_from_closing(
    ledger: sb.Ledger, tmp_path: Path
) -> None:
    stream = opened(GAUSSIAN, ledger, tmp_path / "vault")
    stream.answer(votes(0), names(0))
    released = stream.released({b"0": 0})
    opened(GAUSSIAN, ledger, tmp_path / "vault").answer(votes(0), names(1))
    with pytest.raises(sb.LedgerError, match="2 answers in parts, not 1"):
        stream.close(released)
    assert not stream.closed


def test_unused_queries_return_to_a_renyi_ledger_alone(tmp_path: Path) -> None:
    for composition in ("renyi", "basic"):
        ledger = sb.Ledger(
            tmp_path / composition,
            dataset="registry",
            budget=sb.PrivacyBudget(3.0, 1e-5),
            composition=composition,
        )
        stream = opened(GAUSSIAN, ledger, tmp_path / f"vault {composition}")
        stream.answer(votes(0, 250), names(0, 1))
        whole = ledger.spent().epsilon
        assert stream.returns == (composition == "renyi")
        stream.close(stream.released({b"0": 0, b"1": 1}))
        assert ledger.spent().epsilon == pytest.approx(
            whole / 3 if composition == "renyi" else whole
        )
        assert not stream.answer(votes(0), names(5)).given.any()


def test_the_sparse_vector_gives_nothing_back(tmp_path: Path) -> None:
    ledger = sb.Ledger(
        tmp_path / "l", dataset="registry", budget=sb.PrivacyBudget(9.0, 1e-3), composition="renyi"
    )
    stream = opened(
        SparseVectorAggregator(5.0, 5.0, 80, 1, n_queries=9, delta=1e-4),
        ledger,
        tmp_path / "vault",
    )
    stream.answer(votes(SURE), names(0))
    before = ledger.spent()
    assert not stream.returns
    stream.close(stream.released({b"0": 0}))
    assert ledger.spent() == before


def test_a_stream_shows_numbers_alone(ledger: sb.Ledger, tmp_path: Path) -> None:
    stream = opened(sparse(), ledger, tmp_path / "vault")
    stream.answer(votes(SURE), names(0))
    assert repr(stream) == "ReleaseStream('plan', 1 of 20 queries answered)"
