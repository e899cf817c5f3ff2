"""The secret state of a stream under crashes, losses, mix-ups and copies: one state fits, or
nothing is answered."""

import copy
import itertools
import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import secretballot as sb
from secretballot.aggregation import Aggregator, SparseVectorAggregator
from secretballot.core.ledger import rows
from secretballot.door import ReleaseStream, secret_state
from secretballot.door.secret_state import StateStore
from secretballot.door.stored_answers import StoredAnswer

K = 250
SURE, EVEN = 0, K // 2
ACCOUNT = sb.PrivacyBudget(1000.0, 0.5)
GAUSSIAN = sb.GaussianAggregator(60.0, 6, budget=sb.PrivacyBudget(1.0, 1e-6))
SPARSE = SparseVectorAggregator(2.0, 2.0, 60, 3, n_queries=20, delta=1e-6)
EACH = pytest.mark.parametrize("plan", [GAUSSIAN, SPARSE], ids=["gaussian", "sparse"])
STREAMS = pytest.mark.parametrize("plan", [SPARSE], ids=["sparse"])


@pytest.fixture
def ledger(tmp_path: Path) -> sb.Ledger:
    return sb.Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=ACCOUNT)


def votes(*ones: int) -> sb.Votes:
    counts = np.array(ones)
    return sb.votes_of_counts(np.column_stack([K - counts, counts]), classes=["no", "yes"])


def opened(
    plan: Aggregator, ledger: sb.Ledger, vault: Path | None, request: str = "plan"
) -> ReleaseStream:
    return ReleaseStream(
        plan,
        ledger,
        classes=["no", "yes"],
        n_teachers=K,
        request=request,
        teachers="a",
        vault=vault,
    )


def ask(stream: ReleaseStream, number: int, ones: int = SURE) -> int:
    answer = stream.answer(votes(ones), [b"%d" % number])
    assert answer.given[0]
    return int(answer.labels[0])


def state_file(vault: Path) -> Path:
    (path,) = (vault / "streams").glob("*.state")
    return path


class _CrashError(Exception):
    pass


def _die(*_: object) -> None:
    raise _CrashError


def crash_in_a_draw(stream: ReleaseStream, first: int, *ones: int) -> None:
    """Draw, keep the state in the vault, and die before the answers are in the ledger."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows.Writer, "add_parts", _die)
        with pytest.raises(_CrashError):
            stream.answer(votes(*ones), [b"%d" % (first + n) for n in range(len(ones))])


# --- crashes ---


@STREAMS
@pytest.mark.parametrize(
    ("lost", "times", "begun"),
    [((EVEN,), 1, 2), ((EVEN,), 2, 0), ((SURE, SURE, EVEN, SURE), 1, 0), ((SURE, EVEN), 2, 2)],
)
def test_a_draw_that_a_crash_undid_leaves_no_trace(
    ledger: sb.Ledger,
    tmp_path: Path,
    plan: Aggregator,
    lost: tuple[int, ...],
    times: int,
    begun: int,
) -> None:
    vault = tmp_path / "vault"
    stream = opened(plan, ledger, vault)
    for number in range(begun):
        ask(stream, number)
    for time in range(times):
        crash_in_a_draw(opened(plan, ledger, vault), 50, *lost, *[SURE] * (2 * time))
    # whatever was drawn in vain, the stream goes on: across the places where the lost answers would
    # have been, too
    said = [
        ask(opened(plan, ledger, vault), number, ones)
        for number, ones in enumerate([SURE] * 8 + [EVEN] * 3)
    ]
    assert said == [0] * 8 + [-1] * 3
    assert opened(plan, ledger, vault).left == 0


def test_the_threshold_of_an_undone_draw_is_not_gone_on_with(
    ledger: sb.Ledger, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    stream = opened(SPARSE, ledger, vault)
    ask(stream, 0)
    kept = json.loads(state_file(vault).read_bytes())["states"]
    crash_in_a_draw(stream, 1, EVEN)
    both = json.loads(state_file(vault).read_bytes())["states"]
    assert len(both) == 2
    (name,) = both.keys() & kept.keys()
    assert both[name] == kept[name]
    with ledger.reading(1) as page:
        assert StoredAnswer.decode(page.last() or b"").mark == name


def test_whether_a_draw_can_be_stored_does_not_depend_on_it(
    ledger: sb.Ledger, tmp_path: Path
) -> None:
    # else a full disk would undo some outcomes and not others, and tell which
    sizes = set()
    for request, ones in itertools.product("ab", (SURE, EVEN)):
        vault = tmp_path / f"{request}{ones}"
        stream = opened(SPARSE, ledger, vault, request=f"{request}{ones}")
        for number in range(2):
            before = state_file(vault).read_bytes() if number else None
            ask(stream, number, ones)
            assert state_file(vault).read_bytes() != before
            sizes.add(state_file(vault).stat().st_size)
    assert len(sizes) == 1
    for low, high in ((0, -(2**62)), (None, None), ([0, 0, 0], [2**62, -(2**62), 5])):
        small = StoredAnswer(0, low, 0, "0" * 32).encode()  # type: ignore[arg-type]
        large = StoredAnswer(-1, high, 99_999, "0" * 32).encode()  # type: ignore[arg-type]
        assert len(small) == len(large)
        expected = StoredAnswer(-1, high, 99_999, "0" * 32)  # type: ignore[arg-type]
        assert StoredAnswer.decode(large) == expected


@pytest.mark.parametrize("ones", [SURE, EVEN])
@pytest.mark.parametrize("begun", [0, 1])
def test_a_vault_that_cannot_be_written_stops_every_outcome_alike(
    ledger: sb.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ones: int, begun: int
) -> None:
    stream = opened(SPARSE, ledger, tmp_path / "vault")
    for number in range(begun):
        ask(stream, number)

    def full(*_: object) -> None:
        raise sb.DataError("no space")

    monkeypatch.setattr(secret_state, "write_secret", full)
    with pytest.raises(sb.DataError, match="no space"):
        ask(stream, 5, ones)
    monkeypatch.undo()
    assert stream.used == begun
    assert ask(stream, 5, SURE) == 0


# --- losses and mix-ups ---


@STREAMS
def test_a_lost_or_stale_or_damaged_state_stops_the_stream(
    ledger: sb.Ledger, tmp_path: Path, plan: Aggregator
) -> None:
    vault = tmp_path / "vault"
    stream = opened(plan, ledger, vault)
    ask(stream, 0)
    stale = state_file(vault).read_bytes()
    ask(stream, 1)
    ask(stream, 2)
    right, path = state_file(vault).read_bytes(), state_file(vault)
    for content in (stale, b"", b"{}", b'{"stream": 1, "states": [1]}', right[:40]):
        path.write_bytes(content)
        with pytest.raises(sb.LedgerError, match="vault"):
            ask(opened(plan, ledger, vault), 3)
    path.unlink()
    with pytest.raises(sb.LedgerError, match="vault"):
        ask(stream, 3)
    assert stream.used == 3
    assert stream.find([b"0", b"2"]).given.all()
    path.write_bytes(right)
    assert ask(opened(plan, ledger, vault), 3) == 0


def test_a_state_of_another_stream_is_refused(ledger: sb.Ledger, tmp_path: Path) -> None:
    one, two = (
        opened(SPARSE, ledger, tmp_path / "one"),
        opened(SPARSE, ledger, tmp_path / "two", request="other"),
    )
    ask(one, 0)
    ask(two, 0)
    shutil.copy(state_file(tmp_path / "two"), state_file(tmp_path / "one"))
    with pytest.raises(sb.LedgerError, match="belongs to another ledger"):
        ask(one, 1)


@EACH
def test_two_vaults_never_answer_under_one_purchase(
    ledger: sb.Ledger, tmp_path: Path, plan: Aggregator
) -> None:
    # nothing was answered yet, so the second vault may take up the plan; whoever answers first
    # keeps it
    one, two = opened(plan, ledger, tmp_path / "one"), opened(plan, ledger, tmp_path / "two")
    ask(two, 0)
    for stream in (one, opened(plan, ledger, tmp_path / "one")):
        with pytest.raises(sb.LedgerError, match="vault"):
            ask(stream, 1)
    ask(two, 1)
    assert two.used == 2


@EACH
@pytest.mark.parametrize("first", [0, 1])
def test_a_stream_without_a_vault_and_one_with_never_both_answer(
    ledger: sb.Ledger, tmp_path: Path, plan: Aggregator, first: int
) -> None:
    streams = [opened(plan, ledger, None), opened(plan, ledger, tmp_path / "vault")]
    ask(streams[first], 0)
    with pytest.raises(sb.LedgerError, match="vault"):
        ask(streams[1 - first], 1)
    ask(streams[first], 1)


@EACH
def test_the_vault_of_another_ledger_is_refused_before_anything_is_spent(
    ledger: sb.Ledger, tmp_path: Path, plan: Aggregator
) -> None:
    vault = tmp_path / "vault"
    ask(opened(plan, ledger, vault), 0)
    other = sb.Ledger(tmp_path / "other.sqlite", dataset="registry", budget=ACCOUNT)
    with pytest.raises(sb.ParameterError, match=r"other terms \(ledger\).*Nothing was spent"):
        opened(plan, other, vault)
    assert other.history() == []


def test_an_older_copy_of_the_ledger_does_not_sell_the_plan_again(
    ledger: sb.Ledger, tmp_path: Path
) -> None:
    assert ledger.path is not None
    older = tmp_path / "older.sqlite"
    shutil.copy(ledger.path, older)
    vault = tmp_path / "vault"
    ask(opened(SPARSE, ledger, vault), 0)
    with pytest.raises(sb.LedgerError, match=r"is an older copy.*Nothing was spent"):
        opened(SPARSE, sb.Ledger.open_existing(older), vault)
    shutil.rmtree(vault / "ledgers")  # a vault without that memory knows its own plans still
    with pytest.raises(sb.LedgerError, match=r"the ledger has lost it.*Nothing was spent"):
        opened(SPARSE, sb.Ledger.open_existing(older), vault)
    assert sb.Ledger.open_existing(older).history() == []


def test_damaged_terms_are_refused(ledger: sb.Ledger, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    ask(opened(GAUSSIAN, ledger, vault), 0)
    (path,) = (vault / "streams").glob("*.terms")
    for content in (b"", b"[]", b'{"terms": {}}'):
        path.write_bytes(content)
        with pytest.raises(sb.LedgerError, match="is damaged"):
            opened(GAUSSIAN, ledger, vault)


def test_a_forfeited_plan_answers_nothing_new(ledger: sb.Ledger, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    stream = opened(GAUSSIAN, ledger, vault)
    ask(stream, 0)
    ledger.forfeit(stream.reservation, "A test.")
    assert (stream.closed, stream.left) == (True, 0)
    given = stream.answer(votes(SURE, SURE), [b"0", b"1"])
    assert given.given.tolist() == [True, False]
    with pytest.raises(sb.LedgerError, match="forfeited"):
        opened(GAUSSIAN, ledger, vault)


# --- copies ---


@pytest.mark.parametrize("in_vault", [True, False])
def test_a_stream_is_neither_pickled_nor_copied(
    ledger: sb.Ledger, tmp_path: Path, in_vault: bool
) -> None:
    stream = opened(SPARSE, ledger, tmp_path / "vault" if in_vault else None)
    ask(stream, 0)
    for attempt in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="secret state"):
            attempt(stream)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@STREAMS
@pytest.mark.parametrize("asked", [0, 1])
def test_after_a_fork_only_one_side_of_a_stream_without_a_vault_goes_on(
    ledger: sb.Ledger, plan: Aggregator, asked: int
) -> None:
    stream = opened(plan, ledger, None)
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
    assert stream.find([b"7"]).given.all()


def test_states_in_memory_are_kept_apart_by_name() -> None:
    store = StateStore(None, "account 1")
    assert store.load(None) is None
    first = store.save(None, {"n_below": 0, "noisy_threshold": 5})
    second = store.save(first, {"n_below": 1, "noisy_threshold": 7})
    third = store.save(first, {"n_below": 1, "noisy_threshold": 9})
    assert store.load(first) == {"n_below": 0, "noisy_threshold": 5}
    assert store.load(third) == {"n_below": 1, "noisy_threshold": 9}
    with pytest.raises(sb.LedgerError):
        store.load(second)
    assert "5" not in repr(store).split(" at ")[0]


def test_an_error_about_a_damaged_state_carries_nothing_of_it(
    ledger: sb.Ledger, tmp_path: Path
) -> None:
    # what json raises holds the whole text, and reports of errors show what an error came from
    stream = opened(SPARSE, ledger, tmp_path / "vault")
    ask(stream, 0)
    path = state_file(tmp_path / "vault")
    path.write_bytes(path.read_bytes().strip()[:-1])
    with pytest.raises(sb.LedgerError, match="is damaged") as caught:
        ask(stream, 1)
    assert caught.value.__cause__ is caught.value.__context__ is None
