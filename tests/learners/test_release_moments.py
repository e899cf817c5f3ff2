"""Sums over records as they are released: exactly, once, and about what was promised.

What all neighbours tell apart is enumerated in `test_moments_in_turn`.
"""

import json

import numpy as np
import pytest
from made_stages import BUDGET, RECORD, stages_of

import secretballot as sb
from exact_games.worlds import ScriptedNoise
from secretballot.accounting import PrivacyBudget
from secretballot.bases import TableBasis
from secretballot.bases.integer_model import with_constant
from secretballot.core import releasing
from secretballot.core.types import Guarantee
from secretballot.exceptions import DataError, LedgerError, ParameterError
from secretballot.learners import moments as release_module
from secretballot.learners.moment_vectors import vector_sums
from secretballot.learners.moments import release_moments
from secretballot.released import ReleasedLabels
from tiny_sums import records_of, sum_of

X = np.random.default_rng(0).normal(size=(900, 2))
BASIS = TableBasis().fit(X[:300])
POOL, MAPPED = (with_constant(BASIS.integers(part)) for part in (X[:300], X[300:]))
Y = (X[300:, 0] > 0).astype(np.int64)


def guarantee(unit="record", relation="add-remove"):
    return Guarantee(unit=unit, relation=relation)


def two_stages(about=RECORD, classes=("no", "yes")):
    n_records = 600 if about.relation == "replace-one" else None
    return stages_of(POOL, 2, about=about, classes=classes, n_records=n_records)


def people(about=RECORD, n=600):
    marks = np.column_stack([np.ones(n), np.zeros(n)]).astype(np.int64)
    persons = np.arange(n) // 2 if about.unit == "user" else None
    return records_of(MAPPED[:n], Y[:n], persons, marks)


def account(path=None, **terms):
    given = {"dataset": "people", "budget": PrivacyBudget(3.0, 1e-4), **terms}
    return sb.Ledger.in_memory(**given) if path is None else sb.Ledger(path, **given)


def released(ledger, records=None, own=None, **more):
    about = more.pop("about", guarantee())
    given = {
        "basis": {"name": "TableBasis"},
        "points_sha256": "0" * 64,
        "request": "a",
        "purpose": "try",
        "declaration": {"unit": about.unit, "relation": about.relation},
        **more,
    }
    stages = given.pop("stages", None) or two_stages(about)
    parts = [[records or people()]]
    sums = lambda asked: vector_sums(parts, asked, own or about)  # noqa: E731
    found = release_moments(sums, stages, ledger, BUDGET, **given)
    assert isinstance(found, ReleasedLabels)
    return found


def test_a_release_is_the_exact_sums_plus_the_noise(monkeypatch):
    ledger, stages = account(), two_stages()
    noise = np.arange(3 * stages.shape.coordinates)
    scripted = ScriptedNoise(noise.tolist(), exact=True)
    monkeypatch.setattr(releasing, "noise_source", lambda: scripted)
    found, sums = released(ledger, stages=stages), list[np.ndarray]()
    for added in np.split(noise, 3):
        sums.append(sum_of(people(), stages.asked_after(sums)) + added)
    assert found.certificate["released"]["values"] == [one.tolist() for one in sums]
    assert (found.n_teachers, found.certificate["purpose"]) == (0, "try")
    assert ledger.spent().epsilon == pytest.approx(1.0)


def test_a_known_request_gets_its_answer_and_other_terms_are_refused(tmp_path):
    ledger = account(tmp_path / "l")
    one = released(ledger)
    assert released(account(tmp_path / "l"), people(n=1)) == one
    for other in (
        {"basis": {"name": "other"}},
        {"points_sha256": "1" * 64},
        {"stages": two_stages(classes=("yes", "no"))},
        {"declaration": {"unit_column": "patient", "unit": "user"}},
    ):
        with pytest.raises(ParameterError, match="begun with other"):
            released(ledger, **other)
    assert ledger.releases() == 1


def test_a_promise_about_something_else_is_refused_before_anything_is_spent():
    replaced, users = guarantee(relation="replace-one"), guarantee("user")
    for ledger, about in (
        (account(relation="replace-one"), replaced),
        (account(unit="user"), users),
    ):
        with pytest.raises((ParameterError, DataError), match=r"not of the shape|coordinates"):
            released(ledger, people(), RECORD, about=about)
        with pytest.raises(LedgerError):
            released(ledger, people())
        assert ledger.releases() == 0
    with pytest.raises(ParameterError, match="another unit or relation"):
        released(ledger := account(), declaration={"unit": "user"})
    # one more record of a user, who stays, may move the sum by more than the bound
    with pytest.raises(LedgerError, match="does not add to that"):
        released(ledger, people(users), about=users)
    assert ledger.releases() == 0
    found = released(account(unit="user"), people(users), about=users)
    assert found.certificate["composition"]["unit"] == "user"


def test_the_certificate_that_is_read_before_payment_is_no_shorter_than_any(monkeypatch):
    read = []
    monkeypatch.setattr(release_module, "check_readable", read.append)
    found = released(account())
    assert len(json.dumps(read[0])) >= len(json.dumps(found.certificate))
