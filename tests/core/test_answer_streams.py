"""A reservation answered question by question: what is drawn, when, how often, and for whom; and
the secret state under crashes, losses, mix-ups and copies."""

import copy
import itertools
import multiprocessing
import os
import pickle
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import secretballot as sb
from exact_games.worlds import ScriptedNoise
from secretballot import vault as vault_room
from secretballot.core import releasing
from secretballot.core.ledger import rows
from secretballot.core.ledger.account import AnswerPage
from secretballot.core.mechanisms import Mechanism, NoisyVotes, SparseVector, Terms
from secretballot.core.noise import ExactNoise
from secretballot.core.releasing import AnswerStream
from secretballot.core.types import Guarantee
from secretballot.vault import VaultFiles

K = 250
ACCOUNT = sb.PrivacyBudget(1000.0, 0.5)
LABELS = NoisyVotes(scale=60.0)
COUNTS = NoisyVotes(scale=60.0, release="counts")
# votes for class 1: far above the sparse vector's threshold, and far below it
SURE, EVEN = 0, K // 2


def sparse(most: int = 2) -> SparseVector:
    return SparseVector(threshold_scale=2.0, query_scale=2.0, threshold=60, max_abstentions=most)


@pytest.fixture
def ledger(tmp_path: Path) -> sb.Ledger:
    return sb.Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=ACCOUNT)


def votes(*ones: int) -> sb.Votes:
    counts = np.array(ones)
    guarantee = Guarantee(unit="record", relation="add-remove")
    return sb.Votes.of_teachers(np.column_stack([K - counts, counts]), guarantee)


def opened(
    mechanism: Mechanism,
    ledger: sb.Ledger,
    vault: Path | None = None,
    *,
    request: str = "plan",
    queries: int = 6,
    budget: sb.PrivacyBudget | None = None,
) -> AnswerStream:
    shape = votes(0).shape.changed(n_queries=queries, moved=queries)
    if budget is None:
        event = mechanism.event(shape)
        budget = sb.PrivacyBudget(sb.accounting.epsilon_upper([event], 1e-4), 1e-4)
    return releasing.stream(
        Terms(mechanism, shape, budget, {"teachers": "a"}),
        ledger,
        request=request,
        vault=None if vault is None else VaultFiles(vault),
    )


def names(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


def ask(stream: AnswerStream, number: int, ones: int = SURE) -> int:
    answer = stream.answer(votes(ones), names(number))
    assert answer.given[0]
    return int(answer.values[0, 0])


class _SpyNoise:
    """Exact noise that looks at the ledger, through a handle of its own, whenever something is
    drawn."""

    exact, description = True, "spy"

    def __init__(self, path: Path, then: Callable[[], None] = lambda: None) -> None:
        self.source, self.path, self.then = ExactNoise(), path, then
        self.seen: list[tuple[str, int]] = []
        self.sizes: list[int] = []

    def discrete_gaussian(self, sigma: float, size: int) -> Any:
        entry = sb.Ledger.open_existing(self.path).history()[-1]
        self.seen.append((entry.state, entry.parts))
        self.sizes.append(size)
        self.then()
        return self.source.discrete_gaussian(sigma, size)


@pytest.fixture
def spy(ledger: sb.Ledger, monkeypatch: pytest.MonkeyPatch) -> _SpyNoise:
    assert ledger.path is not None
    watching = _SpyNoise(ledger.path)
    monkeypatch.setattr(releasing, "noise_source", lambda: watching)
    return watching


def test_the_price_is_paid_before_anything_is_drawn_and_answers_are_stored_before_they_return(
    ledger: sb.Ledger, spy: _SpyNoise
) -> None:
    stream = opened(LABELS, ledger, budget=sb.PrivacyBudget(1.0, 1e-4))
    assert spy.seen == []
    assert ledger.spent().epsilon == 1.0
    given = stream.answer(votes(0, 250), names(0, 1))
    assert spy.seen == [("reserved", 0)]
    with sb.Ledger.open_existing(str(ledger.path)).reading(1) as page:
        stored = [int(stream._own.decoded(body).rows[0, 0]) for _, body in page.parts()]
    assert stored == given.values[:, 0].tolist()
    assert ledger.spent().epsilon == 1.0


def test_a_repeated_question_gets_its_stored_answer_and_draws_nothing(
    ledger: sb.Ledger, spy: _SpyNoise
) -> None:
    stream = opened(COUNTS, ledger)
    first = stream.answer(votes(100, 130, 100), names(0, 1, 0))
    assert (stream.used, spy.sizes) == (2, [2])
    again = stream.answer(votes(100, 130, 100, 20), names(1, 0, 1, 2))
    assert spy.sizes == [2, 1]
    assert again.values[[1, 0, 1]].tolist() == first.values.tolist()
    assert stream.find(names(0, 9)).given.tolist() == [True, False]
    assert stream.used == 3


def test_the_plan_is_the_most_there_is(ledger: sb.Ledger, spy: _SpyNoise) -> None:
    stream = opened(LABELS, ledger)
    given = stream.answer(votes(*[0] * 9), names(*range(9)))
    assert given.given.tolist() == [True] * 6 + [False] * 3
    assert (stream.used, stream.left) == (6, 0)
    assert not stream.answer(votes(0), names(7)).given.any()
    late = opened(LABELS, ledger)
    assert late.answer(votes(0, 0), names(0, 8)).given.tolist() == [True, False]
    assert sum(spy.sizes) == 6


def _asked_by_turns(path: str, start: int) -> list[tuple[bytes, int]]:
    stream, got = opened(LABELS, sb.Ledger.open_existing(path), queries=12), []
    for step in range(8):
        asked = names((start + step) % 30)
        answer = stream.answer(votes(125), asked)
        if answer.given[0]:
            got.append((asked[0], int(answer.values[0, 0])))
    return got


def test_processes_that_open_at_once_share_one_plan(ledger: sb.Ledger) -> None:
    asked = [(str(ledger.path), start) for start in (0, 5, 10)]
    with multiprocessing.get_context("fork").Pool(3) as pool:
        parts = pool.starmap(_asked_by_turns, asked, chunksize=1)
    found = [*itertools.chain.from_iterable(parts)]
    assert len(dict(found)) == len(set(found)) == 12
    assert len(ledger.history()) == 1


def test_many_questions_are_answered_in_blocks_and_a_failure_keeps_those_before_it(
    ledger: sb.Ledger, spy: _SpyNoise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releasing, "_BLOCK", 2)
    stream = opened(LABELS, ledger)

    add = AnswerPage.add

    def full_later(*given: Any) -> None:
        if len(spy.sizes) == 2:
            raise sb.LedgerError("no space")
        add(*given)

    with monkeypatch.context() as patch:
        patch.setattr(AnswerPage, "add", full_later)
        with pytest.raises(sb.LedgerError, match="no space"):
            stream.answer(votes(*[0] * 9), names(*range(9)))
    assert stream.released().questions == tuple(names(0, 1))
    given = stream.answer(votes(*[0] * 9), names(*range(9))).given
    assert given.tolist() == [True] * 6 + [False] * 3
    assert spy.sizes == [2, 2, 2, 2]
    assert stream.released().questions == tuple(names(*range(6)))


def test_the_stream_stops_at_the_last_abstention(ledger: sb.Ledger, tmp_path: Path) -> None:
    stream = opened(sparse(), ledger, tmp_path / "vault")
    given = stream.answer(votes(SURE, EVEN, SURE, EVEN, SURE), names(*range(5)))
    assert given.values[given.given, 0].tolist() == [0, -1, 0, -1]
    assert (stream.used, stream.left) == (4, 0)
    assert not stream.answer(votes(SURE), names(7)).given.any()
    again = opened(sparse(), ledger, tmp_path / "vault")
    assert again.left == 0
    assert not again.answer(votes(SURE), names(7)).given.any()
    assert again.find(names(0, 1)).values[:, 0].tolist() == [0, -1]
    assert again.released().questions == tuple(names(*range(4)))


@pytest.mark.parametrize("close_to", [119, 120])
def test_a_stream_reopened_before_every_question_answers_as_one_that_lives_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, close_to: int
) -> None:
    # near the threshold, where a threshold drawn anew would soon show
    tape = [(7 * i * i + 3 * i) % 11 - 5 for i in range(200)]
    near = SparseVector(threshold_scale=2.0, query_scale=2.0, threshold=6, max_abstentions=3)
    labels, draws = [], []
    for reopen in (False, True):
        noise = ScriptedNoise(tape, exact=True)
        monkeypatch.setattr(releasing, "noise_source", lambda noise=noise: noise)
        folder = tmp_path / str(reopen)
        folder.mkdir()
        ledger = sb.Ledger(folder / "ledger.sqlite", dataset="registry", budget=ACCOUNT)
        terms: dict[str, Any] = {"budget": sb.PrivacyBudget(20.0, 0.4), "queries": 40}
        stream = opened(near, ledger, folder / "vault" if reopen else None, **terms)
        said = []
        for number in range(15):
            if reopen:
                ledger = sb.Ledger.open_existing(str(ledger.path))
                stream = opened(near, ledger, folder / "vault", **terms)
            said += stream.answer(votes(close_to), names(number)).values[:, 0].tolist()
        labels.append(said)
        draws.append(len(noise._left))
    assert labels[0] == labels[1]
    assert draws[0] == draws[1]
    assert {-1, 0} == set(labels[0])


def state_file(vault: Path) -> Path:
    (path,) = (vault / "streams").glob("*.state")
    return path


class _CrashError(Exception):
    pass


def _die(*_: object) -> None:
    raise _CrashError


def crash_in_a_draw(stream: AnswerStream, first: int, *ones: int) -> None:
    """Draw, keep the state in the vault, and die before the answers are in the ledger."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows.Rows, "add", _die)
        with pytest.raises(_CrashError):
            stream.answer(votes(*ones), names(*range(first, first + len(ones))))


def test_the_secret_state_is_closed_to_others_and_kept_where_there_is_one_alone(
    ledger: sb.Ledger, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    ask(opened(LABELS, ledger, vault, request="labels"), 0)
    assert list(vault.iterdir()) == []
    ask(opened(sparse(), ledger, vault), 0)
    for path in [vault / "streams", *(vault / "streams").iterdir()]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


@pytest.mark.parametrize(
    ("lost", "times", "begun"),
    [((EVEN,), 1, 2), ((EVEN,), 2, 0), ((SURE, SURE, EVEN, SURE), 1, 0), ((SURE, EVEN), 2, 2)],
)
def test_a_draw_that_a_crash_undid_leaves_no_trace(
    ledger: sb.Ledger, tmp_path: Path, lost: tuple[int, ...], times: int, begun: int
) -> None:
    def again() -> AnswerStream:
        return opened(sparse(3), ledger, tmp_path / "vault", queries=20)

    for number in range(begun):
        ask(again(), number)
    for time in range(times):
        crash_in_a_draw(again(), 50, *lost, *[SURE] * (2 * time))
    # whatever was drawn in vain, the stream goes on: across the places where the lost answers would
    # have been, too
    said = [ask(again(), number, ones) for number, ones in enumerate([SURE] * 8 + [EVEN] * 3)]
    assert said == [0] * 8 + [-1] * 3
    assert again().left == 0


def test_whether_a_draw_can_be_stored_does_not_depend_on_it(
    ledger: sb.Ledger, tmp_path: Path
) -> None:
    # else a full disk would undo some outcomes and not others, and tell which
    sizes = set()
    for request, ones in itertools.product("ab", (SURE, EVEN)):
        vault = tmp_path / f"{request}{ones}"
        stream = opened(sparse(), ledger, vault, request=f"{request}{ones}")
        for number in range(2):
            before = state_file(vault).read_bytes() if number else None
            ask(stream, number, ones)
            assert state_file(vault).read_bytes() != before
            with ledger.reading(stream.reservation) as page:
                sizes.add((state_file(vault).stat().st_size, len(page.last() or b"")))
    assert len(sizes) == 1
    part, own = releasing._Part, stream._own
    ends = [part(b"0" * 16, 0, np.array([[0]])), part(b"1" * 16, 10**12, np.array([[-(2**53)]]))]
    stored = [one.mark + own.encoded(one.used, one.rows) for one in ends]
    assert len(set(map(len, stored))) == 1
    for one, content in zip(ends, stored, strict=True):
        assert str(own.decoded(content)) == str(one)


@pytest.mark.parametrize("ones", [SURE, EVEN])
@pytest.mark.parametrize("begun", [0, 1])
def test_a_vault_that_cannot_be_written_stops_every_outcome_alike(
    ledger: sb.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ones: int, begun: int
) -> None:
    stream = opened(sparse(), ledger, tmp_path / "vault")
    for number in range(begun):
        ask(stream, number)

    def full(*_: object) -> None:
        raise sb.DataError("no space")

    monkeypatch.setattr(vault_room, "write_secret", full)
    with pytest.raises(sb.DataError, match="no space"):
        ask(stream, 5, ones)
    monkeypatch.undo()
    assert stream.used == begun
    assert ask(stream, 5, SURE) == 0


def test_a_lost_stale_foreign_or_damaged_state_stops_the_stream(
    ledger: sb.Ledger, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    stream = opened(sparse(), ledger, vault)
    ask(stream, 0)
    stale = state_file(vault).read_bytes()
    ask(stream, 1)
    ask(stream, 2)
    right, path = state_file(vault).read_bytes(), state_file(vault)
    ask(opened(sparse(), ledger, tmp_path / "two", request="other"), 0)
    other = state_file(tmp_path / "two").read_bytes()
    for content in (stale, other, b"", b"{}", b'{"a": [1]}', b"[1]", right[:40]):
        path.write_bytes(content)
        with pytest.raises(sb.LedgerError, match="vault") as caught:
            ask(opened(sparse(), ledger, vault), 3)
        # what json raises holds the whole text, and reports show what an error came from
        assert caught.value.__cause__ is caught.value.__context__ is None
    path.unlink()
    with pytest.raises(sb.LedgerError, match="vault"):
        ask(stream, 3)
    assert stream.used == 3
    assert stream.find(names(0, 2)).given.all()
    path.write_bytes(right)
    assert ask(opened(sparse(), ledger, vault), 3) == 0


@pytest.mark.parametrize("place", ["two", None])
def test_two_vaults_never_answer_with_a_secret_state_under_one_purchase(
    ledger: sb.Ledger, tmp_path: Path, place: str | None
) -> None:
    # nothing was answered yet, so another vault, or none, may take it up; whoever answers first
    # keeps it
    one = opened(sparse(), ledger, tmp_path / "one")
    two = opened(sparse(), ledger, None if place is None else tmp_path / place)
    ask(two, 0)
    for stream in (one, opened(sparse(), ledger, tmp_path / "one")):
        with pytest.raises(sb.LedgerError, match="vault"):
            ask(stream, 1)
    ask(two, 1)
    assert two.used == 2


@pytest.mark.parametrize("in_vault", [True, False])
def test_a_stream_is_neither_pickled_nor_copied(
    ledger: sb.Ledger, tmp_path: Path, in_vault: bool
) -> None:
    stream = opened(sparse(), ledger, tmp_path / "vault" if in_vault else None)
    ask(stream, 0)
    for attempt in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="secret state"):
            attempt(stream)


@pytest.mark.parametrize("asked", [0, 1])
def test_after_a_fork_only_one_side_of_a_stream_without_a_vault_goes_on(
    ledger: sb.Ledger, asked: int
) -> None:
    stream = opened(sparse(), ledger)
    for number in range(asked):
        ask(stream, number)
    child = os.fork()
    if child == 0:
        ended = 1
        try:
            ended = ask(stream, 7)
        finally:
            os._exit(ended)
    assert os.waitpid(child, 0)[1] == 0
    with pytest.raises(sb.LedgerError, match="secret state"):
        ask(stream, 8)
    assert stream.find(names(7)).given.all()


def test_a_closed_plan_gives_stored_answers_alone(ledger: sb.Ledger, spy: _SpyNoise) -> None:
    stream = opened(LABELS, ledger)
    before = stream.answer(votes(0, 250), names(0, 1))
    with pytest.raises(sb.LedgerError, match="2 answers, not 1"):
        stream.close(1)
    assert not stream.closed
    assert releasing.stored(ledger, "plan") is None
    stream.close(2, {"rounds": [2]})
    assert stream.closed
    after = stream.answer(votes(250, 0, 0), names(1, 0, 5))
    assert after.given.tolist() == [True, True, False]
    assert after.values[:2].tolist() == before.values[::-1].tolist()
    assert len(spy.sizes) == 1
    with pytest.raises(sb.LedgerError, match="closed already"):
        stream.close()
    found = releasing.stored(ledger, "plan")
    assert found is not None
    assert found.about == {"rounds": [2]}
    assert found.values.tolist() == before.values.tolist()
    assert (found.mechanism, found.shape) == (LABELS, stream._own.shape)
