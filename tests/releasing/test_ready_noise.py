"""A sampler that is missing, broken or wrong costs nothing, whichever release is
taken."""

import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import secretballot as sb
from noisy_plans import noisy, priced, released
from secretballot.accounting import sparse_vector
from secretballot.accounting.recipes import Terms
from secretballot.core import noise as room
from secretballot.core.private import Scores
from secretballot.core.types import Guarantee
from secretballot.learners.session import LabelStream
from secretballot.releasing import choose_by_scores, reserve_choice
from sessions import stream_of

RECORD = Guarantee(unit="record", relation="add-remove")
BUDGET = sb.PrivacyBudget(1.0, 1e-6)
TABLE = np.array([[250, 0], [0, 250]])
COUNTS = sb.votes_of_counts(TABLE, classes=["no", "yes"])
GAUSSIAN = noisy(20.0, 2, budget=BUDGET, n_teachers=250)
SPARSE = priced(sparse_vector(BUDGET, 2, max_abstentions=1), 2, 250, budget=BUDGET)


def streamed(terms: Terms) -> Callable[[sb.Ledger], object]:
    return lambda ledger: stream_of(terms, ledger, ["no", "yes"]).answer(TABLE, [b"a", b"b"])


def reserved(ledger: sb.Ledger) -> object:
    terms: dict[str, Any] = {"epsilon": 0.5, "request": "later", "guarantee": RECORD}
    bought = reserve_choice(ledger, **terms, purpose="which")
    return bought.answer(Scores.of_candidates([3, 4], RECORD), [b"points"])


PATHS: dict[str, Callable[[sb.Ledger], object]] = {
    "batch": lambda ledger: released(COUNTS, GAUSSIAN, ledger),
    "batch of the sparse vector": lambda ledger: released(COUNTS, SPARSE, ledger),
    "stream": streamed(GAUSSIAN),
    "stream of the sparse vector": streamed(SPARSE),
    "stability": lambda ledger: sb.estimate_stability(COUNTS, ledger, fraction=0.5, epsilon=0.5),
    "choice": lambda ledger: choose_by_scores(
        lambda: Scores.of_candidates([3, 4], RECORD), 2, ledger, epsilon=0.5
    ),
    "reserved choice": reserved,
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Forget, before and after, that this process has checked the sampler."""
    room.ready_sampler.cache_clear()
    yield
    room.ready_sampler.cache_clear()


def refused(way: Callable[[sb.Ledger], object], ledger: sb.Ledger) -> str:
    with pytest.raises(sb.SamplerError) as error:
        way(ledger)
    assert ledger.history() == []
    assert ledger.spent() == (0.0, 0.0)
    sentence = str(error.value)
    assert sentence.endswith("Nothing was drawn for a release.")
    assert len(sentence) < 400
    assert sentence.isprintable()
    return sentence


def without_package(monkeypatch: pytest.MonkeyPatch) -> str:
    def missing(_: str) -> str:
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "version", missing)
    return "does not draw: PackageNotFoundError"


def with_failing_draw(monkeypatch: pytest.MonkeyPatch) -> str:
    def broken(law: str, scale: float) -> Any:
        raise RuntimeError("no entropy")

    monkeypatch.setattr(room, "_noise_measurement", broken)
    return "does not draw: RuntimeError"


def with_bad_version(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "0.14.1")
    return "OpenDP, version '0.14.1', draws no right noise on this machine (it is known to)"


@pytest.mark.parametrize(
    ("way", "broken"),
    [
        *((way, without_package) for way in PATHS),
        *(("batch", broken) for broken in (with_failing_draw, with_bad_version)),
    ],
)
def test_a_broken_sampler_leaves_the_ledger_untouched(way, broken, ledger, monkeypatch) -> None:
    sentence = broken(monkeypatch)
    assert sentence in refused(PATHS[way], ledger)


def test_a_sampler_of_another_scale_leaves_the_ledger_untouched(ledger, monkeypatch) -> None:
    real = room._noise_measurement
    monkeypatch.setattr(room, "_noise_measurement", lambda law, scale: real(law, 0.7 * scale))
    assert "draws no right noise on this machine (" in refused(PATHS["batch"], ledger)


def test_answers_that_are_stored_need_no_sampler(ledger, tmp_path, monkeypatch) -> None:
    def opened() -> LabelStream:
        return stream_of(GAUSSIAN, ledger, ["no", "yes"], vault=tmp_path / "v")

    monkeypatch.setattr(room, "first_failure", lambda *_: None)
    opened().answer(TABLE, [b"a", b"b"])
    room.ready_sampler.cache_clear()
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "0.14.0")
    assert opened().answer(TABLE, [b"a", b"b"]).given.all()


PROGRAM = """
import json, sys
import secretballot as sb
from releasing.test_ready_noise import BUDGET, PATHS
from secretballot.core.ledger import Ledger

late, reserve = {}, Ledger.reserve

def watched(self, *given, **named):
    number = reserve(self, *given, **named)
    self.loaded = set(sys.modules)
    return number

Ledger.reserve = watched
for number, (name, way) in enumerate(PATHS.items()):
    ledger = sb.Ledger(f"{sys.argv[1]}/{number}.sqlite", dataset="registry", budget=BUDGET)
    way(ledger)
    late[name] = sorted(set(sys.modules) - ledger.loaded)
print(json.dumps(late))
"""


def test_nothing_is_imported_between_a_reservation_and_its_answer(tmp_path: Path) -> None:
    # one process for each way would show each alone; the ways are ordered so that the later ones
    # share the least
    paths = [str(Path(__file__).parents[1]), *(path for path in sys.path if path)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {name: [] for name in PATHS}
