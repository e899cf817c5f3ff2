"""Releases to report on, priced for real and small enough to be quick."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from made_certificates import ACCOUNT, build_certificate, files_in, reseal
from secretballot.accounting import PrivacyBudget
from secretballot.core.mechanisms import Mechanism, NoisyVotes, SparseVector
from secretballot.core.types import Guarantee, VoteShape
from secretballot.released import ReleasedLabels
from secretballot.report.certificate.build import describe_released, with_files
from secretballot.report.certificate.labels_file import labels_blocks


def certified(
    classes: Sequence[Any],
    labels: np.ndarray,
    *,
    mechanism: Mechanism,
    counts: np.ndarray | None = None,
    sigma: float | None = None,
    kind: str = "basic",
    n_queries: int | None = None,
    **changes: Any,
) -> ReleasedLabels:
    """Return a release of these labels, bought at (1, 1e-5) of (4, 4e-5)."""
    planned, queries = n_queries or len(labels), 3 * np.arange(len(labels))
    guarantee = Guarantee(unit="user", relation="add-remove")
    given = {
        "mechanism": mechanism,
        "shape": VoteShape(
            guarantee=guarantee,
            n_queries=planned,
            n_classes=len(classes),
            n_teachers=250,
            moved=planned,
        ),
        "public": {"method": "votes"},
        "budget": PrivacyBudget(1.0, 1e-5),
        "composition": ACCOUNT | {"kind": kind, "unit": "user", "relation": "add-remove"},
        "released": describe_released(queries, labels, classes, 250, counts),
        "purpose": "triage",
    }
    certificate = build_certificate(**(given | changes))
    return ReleasedLabels(queries, labels, classes, 250, sigma, counts, certificate)


def binary(
    classes: Sequence[Any] = ("no", "yes"), n: int = 60, scale: float = 32.0, **changes: Any
) -> ReleasedLabels:
    """Return released binary counts."""
    rng = np.random.default_rng(5)
    counts = np.clip(rng.normal(130, 90, n), -100, 350).astype(int)
    labels = (2 * counts >= 250).astype(int)
    mechanism = NoisyVotes(scale=scale, release="counts")
    return certified(classes, labels, mechanism=mechanism, counts=counts, sigma=scale, **changes)


def multi(classes: Sequence[Any] = (0, 1, 2), n: int = 40, **changes: Any) -> ReleasedLabels:
    """Return released counts of several classes."""
    counts = np.random.default_rng(6).integers(-50, 250, (n, len(classes)))
    mechanism = NoisyVotes(scale=60.0, release="counts")
    labels = counts.argmax(axis=1)
    return certified(classes, labels, mechanism=mechanism, counts=counts, sigma=60.0, **changes)


def withheld(
    classes: Sequence[Any] = ("a", "b", "c"), n: int = 50, stops: int = 4, **changes: Any
) -> ReleasedLabels:
    """Return labels from a sparse vector, some of them withheld."""
    labels = np.random.default_rng(7).integers(0, len(classes), n)
    labels[[n // 8, n // 3, n // 2]] = -1
    labels[9 * n // 10 :] = -1  # nothing is answered after the fourth abstention
    mechanism = SparseVector(
        threshold_scale=30.0, query_scale=60.0, threshold=1200, max_abstentions=stops
    )
    return certified(classes, labels, mechanism=mechanism, **changes)


def voted(
    classes: Sequence[Any] = ("no", "yes"), n: int = 60, scale: float = 32.0, **changes: Any
) -> ReleasedLabels:
    """Return binary labels alone."""
    labels = np.random.default_rng(8).integers(0, 2, n)
    return certified(classes, labels, mechanism=NoisyVotes(scale=scale), **changes)


@pytest.fixture(params=[binary, multi, withheld], ids=lambda make: make.__name__)
def released(request: pytest.FixtureRequest) -> ReleasedLabels:
    return request.param()


def sealed(folder: Path, certificate: dict[str, Any]) -> None:
    """Bind the certificate to the files of a folder, as a forger would, and write it."""
    (folder / "certificate.json").write_text(json.dumps(with_files(certificate, files_in(folder))))
    reseal(folder)


@pytest.fixture
def seal() -> Callable[[Path, dict[str, Any]], None]:
    return sealed


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[[ReleasedLabels], Path]:
    """Return a maker of release folders that hold the least: labels, a text and the certificate."""

    def make(released: ReleasedLabels) -> Path:
        folder = tmp_path / "release"
        folder.mkdir()
        blocks = labels_blocks(
            released.queries, released.labels, released.classes, released.noisy_counts
        )
        (folder / "labels.csv").write_bytes(b"".join(blocks))
        (folder / "README.txt").write_text("A private release.")
        sealed(folder, released.certificate)
        return folder

    return make


@pytest.fixture
def make_binary() -> Callable[..., ReleasedLabels]:
    return binary


@pytest.fixture
def make_multi() -> Callable[..., ReleasedLabels]:
    return multi


@pytest.fixture
def make_voted() -> Callable[..., ReleasedLabels]:
    return voted


@pytest.fixture
def make_withheld() -> Callable[..., ReleasedLabels]:
    return withheld
