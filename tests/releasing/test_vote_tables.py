"""Tables: reserved before drawn, stored once, and certificates that both verifiers
take and neither takes forged."""

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import secretballot as sb
import secretballot_verify as second
from exact_games.worlds import ScriptedNoise
from secretballot.accounting import noisy_means, noisy_votes, teacher_shape, vote_quantiles
from secretballot.accounting.recipes import Terms
from secretballot.core import releasing
from secretballot.core.mechanisms import NoisyVotes
from secretballot.core.types import Guarantee
from secretballot.exceptions import BudgetError, DataError, LedgerError, ParameterError
from secretballot.released import ReleasedTable
from secretballot.report.certificate import certificate_digest
from secretballot.teachers.votes import label_shape
from secretballot_verify.certificate import _FIELDS

BUDGET = sb.PrivacyBudget(2.0, 1e-6)
RECORD = Guarantee(unit="record", relation="add-remove")
NAMES = ["ill", "old", "tall"]
TEACHERS = 60


def account(**settings: Any) -> sb.Ledger:
    return sb.Ledger.in_memory(**{"dataset": "x", "budget": BUDGET, **settings})


def label_votes(**terms: Any) -> sb.Votes:
    rng = np.random.default_rng(0)
    shares = rng.random((6, 1, 3))
    return sb.teachers.label_votes(rng.random((6, TEACHERS, 3)) < shares, NAMES, **terms)


def number_votes() -> sb.Votes:
    return sb.teachers.number_votes(
        np.random.default_rng(1).normal(4.0, 1.0, (6, TEACHERS)), (0.0, 10.0), n_positions=50
    )


def labels(release: str = "labels", **ballot: Any) -> tuple[Terms, sb.Votes]:
    shape = label_shape(6, 3, TEACHERS, RECORD, **ballot)
    if (release, ballot) == ("labels", {"ballot": "sets"}):
        mechanism = NoisyVotes(scale=30.0)  # the least scale takes ten games of eight classes
    else:
        mechanism = noisy_votes(BUDGET, shape, release=release)
    named = {"ballot": "labels", "most_named": None} | ballot
    public = {"method": "votes-of-labels", "labels": NAMES, **named}
    return Terms(mechanism, shape, BUDGET, public), label_votes(**ballot)


def numbers(recipe: Any) -> tuple[Terms, sb.Votes]:
    shape = teacher_shape(6, 50, TEACHERS)
    public = {"method": "votes-of-numbers", "bounds": [0.0, 10.0]}
    return Terms(recipe(BUDGET, shape), shape, BUDGET, public), number_votes()


KINDS: dict[str, Callable[[], tuple[Terms, sb.Votes]]] = {
    "labels": labels,
    "capped": lambda: labels(most_named=1),
    "sets": lambda: labels(ballot="sets"),
    "counts": lambda: labels("counts"),
    "set counts": lambda: labels("counts", ballot="sets"),
    "mean": lambda: numbers(noisy_means),
    "median": lambda: numbers(vote_quantiles),
}


@cache
def certificate_of(kind: str) -> dict[str, Any]:
    return sb.releasing.release_table(*KINDS[kind](), account()).certificate


def second_verdict(certificate: dict[str, Any]) -> str:
    """Return what the second verifier finds in a certificate: ok, or what is wrong with it."""
    listed = certificate | {"files": {"README.txt": {"sha256": "0" * 64, "bytes": 1}}}
    try:
        second.certificate.check_shape(listed, _FIELDS, "certificate")
        second.certificate._check_mechanism(certificate)
        second.certificate._check_counts(certificate)
        second.certificate._check_account(certificate)
        second.certificate._check_assumptions(certificate)
    except second.WrongError as error:
        return str(error)
    return second._priced("price", certificate).verdict


@pytest.mark.parametrize("kind", KINDS)
def test_both_verifiers_take_the_certificate_and_the_answer_is_stored_once(kind: str) -> None:
    terms, votes = KINDS[kind]()
    ledger, rows = account(), [9, 1, 2, 3, 4, 5]
    table = sb.releasing.release_table(terms, votes, ledger, rows=rows, request="q")
    found = sb.verify_certificate(table.certificate)
    assert found.ok, found.failures
    # the game of sets alone takes minutes
    assert kind == "sets" or second_verdict(table.certificate) == second.CONFIRMED
    assert ledger.spent().epsilon == pytest.approx(2.0)

    def never() -> sb.Votes:
        raise AssertionError

    assert sb.releasing.release_table(terms, never, ledger, rows=rows, request="q") == table
    assert ReleasedTable.from_json(table.to_json()) == table
    assert table.rows.tolist() == rows
    assert len(table.values) == 6
    with pytest.raises(ParameterError, match="other terms"):
        sb.releasing.release_table(terms, votes, ledger, request="q")


FORGERIES: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "sigma": ("labels", lambda d: d["mechanism"].update(scale=d["mechanism"]["scale"] / 2)),
    "cap": ("labels", lambda d: d["public"].update(most_named=1)),
    "counts for labels": ("labels", lambda d: d["mechanism"].update(release="counts")),
    "sets": ("capped", lambda d: d["public"].update(ballot="sets", most_named=None)),
    "queries": ("capped", lambda d: d["shape"].update(n_queries=5)),
    "rows": ("labels", lambda d: d["released"]["rows"].append(77)),
    "a row twice": ("labels", lambda d: d["released"]["rows"].__setitem__(0, 1)),
    "no label": ("labels", lambda d: d["released"]["values"][0].__setitem__(0, 2)),
    "more columns": ("labels", lambda d: [one.append(1) for one in d["released"]["values"]]),
    "noise": ("median", lambda d: d["mechanism"].update(epsilon=d["mechanism"]["epsilon"] / 2)),
    "rank": ("median", lambda d: d["mechanism"].update(rank=TEACHERS + 1)),
    "a mean for a median": (
        "median",
        lambda d: d.update(mechanism={"kind": "noisy-means", "sigma": 1.0}),
    ),
    "off the grid": ("median", lambda d: d["released"]["values"][0].__setitem__(0, 50)),
    "grid": ("mean", lambda d: d["shape"].update(n_classes=2)),
    "moved": ("mean", lambda d: d["shape"].update(moved=1)),
    "range": ("mean", lambda d: d["public"].update(bounds=[1.0, 0.0])),
    "far": ("mean", lambda d: d["released"]["values"][0].__setitem__(0, 10**12)),
    "teachers": ("set counts", lambda d: d["shape"].update(n_teachers=10**6)),
    "a field": ("mean", lambda d: d["public"].update(more=1)),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_neither_verifier_takes_a_forged_certificate(name: str) -> None:
    kind, forge = FORGERIES[name]
    forged = copy.deepcopy(certificate_of(kind))
    forge(forged)
    forged["digest"] = certificate_digest(forged)
    assert not sb.verify_certificate(forged).ok
    assert second_verdict(forged) != second.CONFIRMED


def test_what_does_not_fit_is_refused_and_nothing_is_spent() -> None:
    terms, votes = KINDS["capped"]()
    ledger = account()
    for other in (label_votes(), number_votes(), label_votes(most_named=1, unit="user")):
        with pytest.raises(ParameterError, match="not of the shape"):
            sb.releasing.release_table(terms, other, ledger)
    for rows in ([1, 1, 2, 3, 4, 5], [1], [-1, 0, 1, 2, 3, 4]):
        with pytest.raises(DataError, match="rows"):
            sb.releasing.release_table(terms, votes, ledger, rows=rows)
    with pytest.raises(ParameterError, match="declaration says otherwise"):
        sb.releasing.release_table(
            terms, votes, ledger, declaration={"unit": "record", "relation": "replace-one"}
        )
    with pytest.raises(LedgerError):
        sb.releasing.release_table(terms, votes, account(relation="replace-one"))
    assert ledger.spent().epsilon == 0
    with pytest.raises(BudgetError):
        sb.releasing.release_table(terms, votes, account(budget=sb.PrivacyBudget(0.5, 1e-6)))


@pytest.mark.parametrize(
    ("ballot", "release", "noise", "expected"),
    [
        ("labels", "labels", [-2, 1, -1], [0, 1, 1]),  # half of the teachers is enough
        ("labels", "counts", [-2, 1, -1], [1, 2, 2]),
        ("sets", "labels", [0, 0, 0, 3, 0, 0, 0, 0], [1, 1, 0]),
        ("sets", "counts", [0, 0, 0, 3, 0, 0, 0, 0], [0, 1, 0, 3, 1, 1, 0, 1]),
    ],
)
def test_tables_are_what_was_drawn(
    ballot: str, release: Any, noise: list[int], expected: list[int], monkeypatch: Any
) -> None:
    cast = np.array([[[1, 0, 1], [1, 0, 0], [1, 1, 1], [0, 0, 1]]])
    votes = sb.teachers.label_votes(cast, NAMES, ballot=ballot)
    loose = sb.PrivacyBudget(100.0, 1e-2)
    monkeypatch.setattr(releasing, "noise_source", lambda: ScriptedNoise(noise, exact=True))
    public = {"method": "votes-of-labels", "labels": NAMES, "ballot": ballot, "most_named": None}
    terms = Terms(NoisyVotes(scale=2.0, release=release), votes.shape, loose, public)
    table = sb.releasing.release_table(terms, votes, account(budget=loose))
    assert table.answers.tolist() == [expected]
