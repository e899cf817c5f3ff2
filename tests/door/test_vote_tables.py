"""Tables at the door: reserved before drawn, stored once, and certificates that both verifiers
take and neither takes forged."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import secretballot as sb
import secretballot_verify as second
from secretballot.aggregation import LabelSetVoting, NumberVoting
from secretballot.exceptions import BudgetError, DataError, LedgerError, ParameterError
from secretballot.released import ReleasedTable
from secretballot.report.certificate.build import certificate_digest
from secretballot_verify.certificate import FIELDS

BUDGET = sb.PrivacyBudget(2.0, 1e-6)
NAMES = ["ill", "old", "tall"]
TEACHERS = 60


def account(**settings: Any) -> sb.Ledger:
    return sb.Ledger.in_memory(**{"dataset": "x", "budget": BUDGET, **settings})


def label_votes(**terms: Any) -> sb.Votes:
    rng = np.random.default_rng(0)
    shares = rng.random((6, 1, 3))
    return sb.ensemble.label_votes(rng.random((6, TEACHERS, 3)) < shares, NAMES, **terms)


def number_votes() -> sb.Votes:
    return sb.ensemble.number_votes(
        np.random.default_rng(1).normal(4.0, 1.0, (6, TEACHERS)), (0.0, 10.0), n_positions=50
    )


KINDS = {
    "labels": lambda: (label_votes(), {}),
    "capped": lambda: (label_votes(most_named=1), {"most_named": 1}),
    "sets": lambda: (label_votes(ballot="sets"), {"ballot": "sets"}),
    "counts": lambda: (label_votes(), {"release": "counts"}),
    "set counts": lambda: (label_votes(ballot="sets"), {"ballot": "sets", "release": "counts"}),
    "mean": lambda: (number_votes(), {"n_positions": 50}),
    "median": lambda: (number_votes(), {"n_positions": 50, "statistic": "quantile"}),
}


def question(kind: str) -> tuple[Any, Any]:
    votes, terms = KINDS[kind]()
    if votes.shape.n_classes == 50:
        voting: Any = NumberVoting.calibrate(
            BUDGET, 6, n_teachers=TEACHERS, target_range=(0.0, 10.0), **terms
        )
    else:
        voting = LabelSetVoting.calibrate(BUDGET, 6, n_teachers=TEACHERS, labels=NAMES, **terms)
    return votes, voting


def second_verdict(certificate: dict[str, Any]) -> str:
    """Return what the second verifier finds in a certificate: ok, or what is wrong with it."""
    listed = certificate | {"files": {"README.txt": {"sha256": "0" * 64, "bytes": 1}}}
    try:
        second.certificate.check_shape(listed, FIELDS, "certificate")
        second.certificate.check_mechanism(certificate)
        second.certificate.check_counts(certificate)
        second.certificate.check_account(certificate)
        second.certificate.check_assumptions(certificate)
    except second.WrongError as error:
        return str(error)
    return second.priced("price", certificate).verdict


@pytest.mark.parametrize("kind", KINDS)
def test_both_verifiers_take_the_certificate_and_the_answer_is_stored_once(kind: str) -> None:
    votes, voting = question(kind)
    ledger = account()
    table = sb.door.release_table(votes, voting, ledger, rows=[9, 1, 2, 3, 4, 5], request="q")
    found = sb.verify_certificate(table.certificate)
    assert found.ok, found.failures
    # of sets alone a game of minutes is left undecided
    taken = (second.CONFIRMED, second.UNDECIDED) if kind == "sets" else (second.CONFIRMED,)
    assert second_verdict(table.certificate) in taken
    assert ledger.spent().epsilon == pytest.approx(2.0)
    again = sb.door.release_table(votes, voting, ledger, rows=[9, 1, 2, 3, 4, 5], request="q")
    assert again == table
    assert ReleasedTable.from_json(table.to_json()) == table
    assert table.rows.tolist() == [9, 1, 2, 3, 4, 5]
    assert len(table.values) == 6
    with pytest.raises(ParameterError, match="another question"):
        sb.door.release_table(votes, voting, ledger, request="q")


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
    "range": ("mean", lambda d: d["public"].update(target_range=[1.0, 0.0])),
    "far": ("mean", lambda d: d["released"]["values"][0].__setitem__(0, 10**12)),
    "teachers": ("set counts", lambda d: d["shape"].update(n_teachers=10**6)),
    "a field": ("mean", lambda d: d["public"].update(more=1)),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_neither_verifier_takes_a_forged_certificate(name: str) -> None:
    kind, forge = FORGERIES[name]
    votes, voting = question(kind)
    forged = copy.deepcopy(sb.door.release_table(votes, voting, account()).certificate)
    forge(forged)
    forged["digest"] = certificate_digest(forged)
    assert not sb.verify_certificate(forged).ok
    assert second_verdict(forged) != second.CONFIRMED


@pytest.mark.parametrize("other", ["votes", "record-moments"])
def test_a_table_is_no_other_release_and_no_other_release_a_table(other: str) -> None:
    votes, voting = question("mean")
    forged = copy.deepcopy(sb.door.release_table(votes, voting, account()).certificate)
    forged["public"]["method"] = other
    forged["digest"] = certificate_digest(forged)
    assert not sb.verify_certificate(forged).ok
    assert second_verdict(forged) != second.CONFIRMED


def test_what_does_not_fit_is_refused_and_nothing_is_spent() -> None:
    votes, voting = question("capped")
    ledger = account()
    with pytest.raises(ParameterError, match="calibrated for other votes"):
        sb.door.release_table(label_votes(), voting, ledger)
    with pytest.raises(ParameterError, match="calibrated for other votes"):
        sb.door.release_table(votes, question("mean")[1], ledger)
    with pytest.raises(ParameterError, match="voting"):
        sb.door.release_table(votes, None, ledger)  # type: ignore[arg-type]
    for rows in ([1, 1, 2, 3, 4, 5], [1], [-1, 0, 1, 2, 3, 4]):
        with pytest.raises(DataError, match="rows"):
            sb.door.release_table(votes, voting, ledger, rows=rows)
    with pytest.raises(ParameterError, match="is declared; declare what it was made for"):
        sb.door.release_table(
            votes, voting, ledger, declaration={"unit": "record", "neighbours": "replace-one"}
        )
    with pytest.raises(LedgerError):
        sb.door.release_table(label_votes(most_named=1, neighbours="replace-one"), voting, ledger)
    few = LabelSetVoting.calibrate(BUDGET, 2, n_teachers=TEACHERS, labels=NAMES, most_named=1)
    with pytest.raises(ParameterError, match="priced for 2"):
        sb.door.release_table(votes, few, ledger)
    assert ledger.spent().epsilon == 0
    with pytest.raises(BudgetError):
        sb.door.release_table(votes, voting, account(budget=sb.PrivacyBudget(0.5, 1e-6)))


def test_noise_that_does_not_keep_its_budget_is_refused() -> None:
    votes = label_votes()
    voting = LabelSetVoting(1.0, 6, n_teachers=TEACHERS, labels=NAMES, budget=BUDGET)
    with pytest.raises(BudgetError, match="calibrate it again"):
        sb.door.release_table(votes, voting, account())


def test_stored_answers_have_one_size_whatever_came_out() -> None:
    # positions of one digit and of two take as much room
    sizes = set()
    for level in (0.0, 9.9):
        cast = sb.ensemble.number_votes(np.full((6, TEACHERS), level), (0.0, 10.0), n_positions=50)
        ledger = account()
        sb.door.release_table(cast, question("median")[1], ledger, request="q")
        stored = ledger.released("q")
        assert stored is not None
        sizes.add(len(stored))
    assert len(sizes) == 1
