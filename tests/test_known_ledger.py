"""A vault remembers how far its ledgers had come, and refuses an older copy that was put back
alone."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import secretballot as sb
from secretballot.accounting.recipes import Terms
from secretballot.core.mechanisms import NoisyVotes
from secretballot.core.releasing import AnswerStream
from secretballot.drafts import try_lock
from secretballot.vault import keep_in_step, remember_head, seen_head
from sessions import stream_of

BUDGET = sb.PrivacyBudget(1.0, 1e-6)
COUNTS = sb.votes_of_counts([[250, 0], [0, 250]], classes=["no", "yes"])
SHAPE = COUNTS.shape.changed(n_queries=60, moved=60)


def opened(folder: Path) -> AnswerStream:
    ledger = sb.Ledger(folder / "ledger.sqlite", dataset="registry", budget=BUDGET)
    terms = Terms(NoisyVotes(scale=40.0), SHAPE, BUDGET)
    return stream_of(terms, ledger, ["no", "yes"], vault=folder / "vault")._stream


def copied(folder: Path) -> None:
    for name in ("ledger.sqlite", "ledger.sqlite-journal"):
        shutil.copy(folder / name, folder / f"old-{name}")


def put_back(folder: Path) -> None:
    for name in ("ledger.sqlite", "ledger.sqlite-journal"):
        shutil.copy(folder / f"old-{name}", folder / name)


def test_every_answer_is_remembered_and_not_only_the_purchase(tmp_path: Path) -> None:
    stream = opened(tmp_path)
    stream.answer(COUNTS, [b"a", b"b"])
    copied(tmp_path)
    stream.answer(COUNTS, [b"c", b"d"])
    put_back(tmp_path)
    with pytest.raises(sb.LedgerError, match=r"is an older copy.*Nothing was spent"):
        opened(tmp_path)


def test_the_newest_copy_is_taken_and_goes_on(tmp_path: Path) -> None:
    stream = opened(tmp_path)
    stream.answer(COUNTS, [b"a", b"b"])
    copied(tmp_path)
    put_back(tmp_path)
    again = opened(tmp_path)
    assert again.used == 2
    # what others add to the ledger is no loss
    other = sb.Ledger.open_existing(tmp_path / "ledger.sqlite")
    with other.answering(again.reservation) as page:
        first = page.parts()[0][1]
        page.add([(b"z", first)])
    assert opened(tmp_path).used == 3


def test_another_ledger_of_the_same_terms_is_refused(tmp_path: Path) -> None:
    ledger = sb.Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=BUDGET)
    shutil.copy(tmp_path / "ledger.sqlite", tmp_path / "twin.sqlite")
    keep_in_step(tmp_path / "vault", ledger)
    sb.estimate_stability(COUNTS, ledger, fraction=0.5, epsilon=0.5)
    twin = sb.Ledger.open_existing(tmp_path / "twin.sqlite")
    sb.estimate_stability(COUNTS, twin, fraction=0.5, epsilon=0.5)
    with pytest.raises(sb.LedgerError, match="or another one"):
        keep_in_step(tmp_path / "vault", twin)


def test_the_furthest_row_stays_and_damage_is_no_row(tmp_path: Path) -> None:
    place = tmp_path / "x.head"
    for position in (3, 9, 4):
        remember_head(place, position, f"{position:064x}")
    assert seen_head(place) == (9, f"{9:064x}")
    assert place.stat().st_mode & 0o777 == 0o600
    place.write_bytes(place.read_bytes()[:-1])
    assert seen_head(place) is None


def test_a_memory_that_cannot_be_written_loses_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = opened(tmp_path)
    shutil.rmtree(tmp_path / "vault" / "ledgers")
    (tmp_path / "vault" / "ledgers").touch()
    assert stream.answer(COUNTS, [b"a", b"b"]).given.all()


def test_of_several_writers_the_furthest_row_stays(tmp_path: Path) -> None:
    place, lost = tmp_path / "x.head", []

    def write(first: int) -> None:
        for position in range(first, 400, 4):
            remember_head(place, position, f"{position:064x}")
            found = seen_head(place)
            if found is None or found[0] < position:
                lost.append(position)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(1, 5)))
    assert lost == []
    assert seen_head(place) == (399, f"{399:064x}")


def test_a_memory_that_another_one_holds_lags_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secretballot.vault._PATIENCE_S", 0.05)
    place = tmp_path / "x.head"
    remember_head(place, 3, f"{3:064x}")
    folder = os.open(tmp_path, os.O_RDONLY)
    assert try_lock(folder)
    remember_head(place, 5, f"{5:064x}")
    assert seen_head(place) == (3, f"{3:064x}")
    os.close(folder)
    remember_head(place, 5, f"{5:064x}")
    assert seen_head(place) == (5, f"{5:064x}")
