"""Votes of records: only under their own price, and stored in a size that tells
nothing."""

from typing import Any

import numpy as np
import pytest
from test_stored_sizes import _Noise

import secretballot as sb
from exact_games.worlds import ScriptedNoise
from secretballot._points import NearestPoints
from secretballot.accounting import noisy_votes
from secretballot.accounting.recipes import Terms
from secretballot.core import releasing
from secretballot.core.mechanisms import NoisyVotes
from secretballot.core.types import Guarantee
from secretballot.exceptions import ParameterError
from secretballot.releasing import release_labels
from secretballot.teachers.votes import votes_of_records

BUDGET = sb.PrivacyBudget(1.0, 1e-5)
POINTS = np.arange(30)[:, None]


RECORD = Guarantee(unit="record", relation="add-remove")
REPLACED = Guarantee(unit="record", relation="replace-one")


def votes(n: int = 40, k: int = 3, promise: Guarantee = RECORD) -> sb.Votes:
    rng = np.random.default_rng(0)
    records = rng.integers(0, 30, (n, 1)), rng.integers(0, 2, n), np.ones(n, dtype=bool)
    return votes_of_records([records], NearestPoints(POINTS, k), ["no", "yes"], promise)


def priced(secret: sb.Votes) -> NoisyVotes:
    return noisy_votes(BUDGET, secret.shape, release="counts")


def account(**terms: str) -> sb.Ledger:
    return sb.Ledger.in_memory(dataset="registry", budget=BUDGET, **terms)


def released(
    secret: sb.Votes, ledger: sb.Ledger, apart: Any = None, **more: Any
) -> sb.ReleasedLabels:
    if apart is None:
        apart = {"expected_uncovered": 0.02} if secret.shape.spare_rows else {}
    terms = Terms(priced(secret), secret.shape, BUDGET, {"method": "record-votes", **apart})
    made = secret.shape.guarantee
    if made != RECORD:
        more = {"declaration": {"unit": made.unit, "relation": made.relation}} | more
    rows = np.arange(secret.shape.n_queries)
    return release_labels(terms, secret, ledger, classes=secret.classes, rows=rows, **more)


def test_the_true_counts_leave_with_the_noise_that_was_drawn_and_nothing_else(monkeypatch) -> None:
    secret = votes()
    noise = np.arange(60) - 30
    monkeypatch.setattr(releasing, "noise_source", lambda: ScriptedNoise(noise, exact=True))
    out = released(secret, account())
    assert np.array_equal(out.noisy_counts, secret._unseal()[0] + noise.reshape(30, 2))
    assert np.array_equal(out.labels, out.noisy_counts.argmax(axis=1))
    assert out.n_teachers == 0
    assert out.certificate["events"] == [
        {"kind": "counts", "sigma": priced(secret).scale, "shifts": 3}
    ]
    assert sb.verify_certificate(out.certificate).ok


def test_votes_leave_under_their_own_price_only() -> None:
    ledger = account()
    # four votes of a record at the price of three, and a record that is replaced at that of one
    replacing = account(relation="replace-one")
    for secret, paying in ((votes(k=4), ledger), (votes(promise=REPLACED), replacing)):
        with pytest.raises(sb.BudgetError, match="calibrate it again"):
            sb.release(secret, priced(votes()), paying, BUDGET)
        assert not paying.history()
    # votes of teachers are no votes of records
    with pytest.raises(sb.ParameterError, match="could not be verified"):
        released(sb.votes_of_counts([[3, 97]] * 30), ledger)
    assert not ledger.history()


def apart(n: int, uncovered: int, k: int = 3) -> sb.Votes:
    """Return votes of n records, the first ones uncovered."""
    rng = np.random.default_rng(0)
    records = rng.integers(0, 30, (n, 1)), rng.integers(0, 2, n), np.arange(n) >= uncovered
    nearest = NearestPoints(POINTS, k)
    return votes_of_records([records], nearest, ["no", "yes"], RECORD, counts_uncovered=True)


def test_uncovered_records_are_counted_at_the_same_price(monkeypatch) -> None:
    assert priced(apart(40, 7)) == priced(votes())
    secret, noise = apart(40, 7), np.arange(64) - 30
    monkeypatch.setattr(releasing, "noise_source", lambda: ScriptedNoise(noise, exact=True))
    out = released(secret, account())
    table = secret._unseal()[0]
    assert np.array_equal(out.noisy_counts, table[:30] + noise[:60].reshape(30, 2))
    # three cells with one vote of each of the seven, and their noise; the fourth is none
    assert out.certificate["released"]["values"][0][0] == 3 * 7 + noise[60:63].sum()
    assert out.certificate["public"]["expected_uncovered"] == 0.02


def test_what_is_counted_apart_is_asked_and_cast_together() -> None:
    ledger = account()
    with pytest.raises(ParameterError, match="could not be verified"):
        released(apart(40, 7), ledger, apart={})
    assert ledger.spent().epsilon == 0
    first = released(apart(40, 7), ledger, request="one")
    assert sb.verify_certificate(first.certificate).ok
    assert released(apart(40, 7), ledger, request="one").certificate == first.certificate
    with pytest.raises(ParameterError, match="other terms"):
        released(votes(), ledger, request="one")


def test_the_answer_is_as_long_however_many_records_vote_or_are_uncovered(
    tmp_path, monkeypatch
) -> None:
    sizes = set()
    for number, (n, uncovered, noise) in enumerate([(5, 0, 0), (9000, 9000, 99), (5, 5, -99)]):
        ledger = sb.Ledger(tmp_path / f"{number}.sqlite", dataset="registry", budget=BUDGET)
        monkeypatch.setattr(releasing, "noise_source", lambda noise=noise: _Noise(noise))
        released(apart(n, uncovered), ledger, request="one")
        sizes.add(ledger.path.stat().st_size)
    assert len(sizes) == 1
