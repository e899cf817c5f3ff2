"""Rows of labels.csv that were not paid for are refused, whoever renews the digests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from secretballot.released import ReleasedLabels
from secretballot.report.certificate.labels_file import labels_blocks
from secretballot.report.certificate.verify import Verification, verify_certificate

Make = Callable[..., ReleasedLabels]
MakeFolder = Callable[[ReleasedLabels], Path]
Seal = Callable[[Path, dict[str, Any]], None]


@pytest.fixture
def forge(make_folder: MakeFolder, seal: Seal) -> Callable[..., Verification]:
    """Return a forger: it writes other rows, counts them right on the certificate, and renews
    every digest."""

    def forged(released: ReleasedLabels, rows: bytes, **stated: int) -> Verification:
        folder = make_folder(released)
        (folder / "labels.csv").write_bytes(rows)
        certificate = {
            **released.certificate,
            "released": released.certificate["released"] | stated,
        }
        seal(folder, certificate)
        return verify_certificate(folder)

    return forged


def rows_of(released: ReleasedLabels, **other: Any) -> bytes:
    given = {
        name: getattr(released, name) for name in ("queries", "labels", "classes", "noisy_counts")
    } | other
    return b"".join(labels_blocks(**given))


def failures(verification: Verification) -> dict[str, str]:
    return {check.name: check.detail for check in verification.failures}


def test_the_forger_of_these_tests_passes_with_honest_rows(
    forge: Any, released: ReleasedLabels
) -> None:
    assert not failures(forge(released, rows_of(released)))


def test_thirty_abstentions_and_answers_at_one_that_was_paid_for_are_refused(
    forge: Any, make_withheld: Make
) -> None:
    labels = np.where(np.arange(60) % 2, 0, -1)
    honest = make_withheld(n=60, stops=1)
    found = failures(forge(honest, rows_of(honest, labels=labels), answered=30))
    assert set(found) == {"labels"}


def test_abstentions_of_a_mechanism_that_answers_everything_are_refused(
    forge: Any, make_voted: Make
) -> None:
    released = make_voted()
    labels = released.labels.copy()
    labels[7] = -1
    assert set(failures(forge(released, rows_of(released, labels=labels), answered=59))) == {
        "released",
        "labels",
    }


@pytest.mark.parametrize("place", [-1, 25_000 * 2**16])
def test_rows_of_no_pool_are_refused(forge: Any, make_binary: Make, place: int) -> None:
    released = make_binary()
    queries = released.queries.copy()
    queries[3] = place
    assert set(failures(forge(released, rows_of(released, queries=queries)))) == {"labels"}


@pytest.mark.parametrize("make", ["make_binary", "make_multi"])
def test_a_label_that_its_counts_do_not_give_is_refused(
    forge: Any, make: str, request: pytest.FixtureRequest
) -> None:
    released = request.getfixturevalue(make)()
    labels = released.labels.copy()
    labels[5] = (labels[5] + 1) % len(released.classes)
    assert set(failures(forge(released, rows_of(released, labels=labels)))) == {"labels"}


@pytest.mark.parametrize("count", [-(10**4), 10**4, 2**62])
def test_counts_that_noise_does_not_reach_are_refused(
    forge: Any, make_binary: Make, count: int
) -> None:
    released = make_binary()
    counts = released.noisy_counts.copy()
    counts[5] = count
    labels = (2 * counts.astype(float) >= 250).astype(int)
    assert set(
        failures(forge(released, rows_of(released, noisy_counts=counts, labels=labels)))
    ) == {"labels"}


def test_counts_beside_a_price_for_labels_are_refused_if_they_are_stated(
    forge: Any, make_voted: Make
) -> None:
    honest = make_voted()
    rows = rows_of(honest, noisy_counts=np.where(honest.labels, 200, 20))
    assert set(failures(forge(honest, rows, count_columns=1))) == {"released"}
