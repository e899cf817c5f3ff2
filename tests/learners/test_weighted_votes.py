"""Fits by votes in which records have budgets of their own: shards, weights, refusals,
certificates."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.tree import DecisionTreeClassifier

import secretballot as sb
from secretballot import verify_release as second
from secretballot.exceptions import (
    DataError,
    ParameterError,
)
from secretballot.learners.pate.voters import GroupedVoters, teachers_for_groups, voters_in_groups
from secretballot.learners.training.budget_groups import BudgetGroups
from secretballot.learners.training.labelled_input import labelled_input
from secretballot.learners.training.shards import assign_shards_in_groups
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.report.certificate.build import certificate_digest

STRICT, OPEN = PrivacyBudget(0.5, 1e-5), PrivacyBudget(2.0, 1e-5)
BUDGETS = {"strict": STRICT, "open": OPEN}
N = 1200


def table(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N + 100, 2))
    y = (X[:, 0] + 0.2 * rng.normal(size=len(X)) > 0).astype(int)
    return {"X": X[:N], "y": y[:N], "X_public": X[N:]}


def named(n: int = N) -> np.ndarray:
    return np.where(np.arange(n) % 3 == 0, "strict", "open")


GROUPS: dict[str, Any] = {
    "budget_groups": named(),
    "group_budgets": BUDGETS,
    "groups_are_public": True,
}
SHARES: dict[str, Any] = {"group_shares": {"strict": 1, "open": 2}}


def fitted(**settings: Any) -> sb.PATEClassifier:
    model = sb.PATEClassifier(**{"n_teachers": 30, "n_queries": 6, **settings})
    shares = {} if settings.get("neighbours") == "replace-one" else SHARES
    return model.fit(**table(), classes=[0, 1], **GROUPS, **shares)


@pytest.mark.parametrize("kind", ["labels", "counts"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_fit_keeps_every_groups_promise_by_two_programs(neighbours: str, kind: str) -> None:
    account = sb.Ledger.in_memory(
        dataset="people", budget=PrivacyBudget(4.0, 1e-4), neighbours=neighbours
    )
    certificate = fitted(neighbours=neighbours, release=kind, ledger=account).certificate_
    mechanism = certificate["mechanism"]
    assert (certificate["epsilon"], certificate["delta"]) == (2.0, 1e-5)
    assert [group["teachers"] for group in mechanism["groups"]] == [10, 20]
    strict, full = (group["weight"] for group in mechanism["groups"])
    assert 20 < strict < 40
    assert full == 100
    assert certificate["released"]["n_teachers"] == 10 * strict + 20 * full
    assert sb.verify_certificate(certificate).ok
    event = certificate["events"][0]
    assert second.priced("price", certificate).verdict == second.CONFIRMED
    for group in event["groups"]:
        assert second.priced_group("group", group, event).verdict == second.CONFIRMED
    spent = account.spent_by_group()
    assert (spent["strict"].epsilon, spent["open"].epsilon) == (0.5, 2.0)
    assert account.spent().epsilon == 2.0


def test_forged_weights_are_refused_by_both_programs() -> None:
    certificate = fitted(release="labels", n_queries=4).certificate_
    mechanism = certificate["mechanism"]

    def forged(**changes: Any) -> dict[str, Any]:
        copied = copy.deepcopy(certificate)
        for path, value in changes.items():
            place = copied
            *steps, last = path.split("__")
            for step in steps:
                place = place[int(step)] if step.isdigit() else place[step]
            place[last] = value
        return {**copied, "digest": certificate_digest(copied)}

    strict = mechanism["groups"][0]
    votes = certificate["released"]["n_teachers"]
    squared = "events__0__groups__0__squared_sensitivity"
    cases = [
        forged(mechanism__groups__0__weight=strict["weight"] + 1),
        forged(mechanism__groups__0__teachers=strict["teachers"] + 1),
        forged(mechanism__groups__0__epsilon=0.1),
        forged(mechanism__groups__0__name="lax"),
        forged(mechanism__groups=[]),
        forged(mechanism__groups__0__weight=str(strict["weight"])),
        forged(mechanism__groups__0__epsilon="0.5"),
        forged(mechanism__groups__0__note="x"),
        forged(released__n_teachers=votes + 1),
        forged(
            assumptions=[line for line in certificate["assumptions"] if "budget group" not in line]
        ),
        forged(mechanism__groups__0__epsilon=0.1, events__0__groups__0__epsilon=0.1),
        forged(
            mechanism__groups__0__weight=60,
            released__n_teachers=votes + (60 - strict["weight"]) * strict["teachers"],
            **{squared: 3600},
        ),
        forged(**{squared: 1}),
        forged(mechanism__release="counts"),
        forged(unit="label"),
    ]
    assert [at for at, one in enumerate(cases) if sb.verify_certificate(one).ok] == []
    for one in cases:
        found = second.looked("mechanism", lambda one=one: second.check_mechanism(one))
        if found.verdict != second.REFUSED:
            event = one["events"][0]
            verdicts = {second.priced_group("g", g, event).verdict for g in event["groups"]}
            assert second.REFUSED in verdicts


def test_the_groups_that_allow_more_decide_more() -> None:
    """Where groups disagree, a point follows those whose votes weigh more."""
    rng = np.random.default_rng(3)
    X, X_public = rng.normal(size=(N, 1)), np.linspace(-2, 2, 60).reshape(-1, 1)
    groups = np.where(np.arange(N) < N // 2, "strict", "open")
    # as many of both: the open say 1 on the right, the strict on the left
    y = np.where(groups == "open", X[:, 0] > 0, X[:, 0] < 0).astype(int)
    model = sb.PATEClassifier(n_teachers=40, n_queries=60, release="counts")
    model.fit(
        X,
        y,
        X_public=X_public,
        classes=[0, 1],
        budget_groups=groups,
        group_budgets={"strict": PrivacyBudget(1.0, 1e-5), "open": PrivacyBudget(8.0, 1e-5)},
        groups_are_public=True,
        group_shares={"strict": 1, "open": 1},
    )
    clear = np.abs(X_public[:, 0]) > 0.5  # 40 fits had none of these wrong
    assert (model.predict(X_public) == (X_public[:, 0] > 0))[clear].mean() > 0.9


# --- shards ---


@pytest.mark.parametrize("with_units", [False, True])
def test_a_unit_reaches_one_teacher_of_its_own_group(tmp_path: Path, with_units: bool) -> None:
    vault = sb.vault.make_vault(tmp_path / "vault")
    units = np.arange(90) // 3 if with_units else None
    groups = np.arange(90) // 3 % 3
    shards = assign_shards_in_groups(90, [2, 3, 4], groups, "add-remove", units, vault)
    for place, number in enumerate([2, 3, 4]):
        own = shards[groups == place]
        assert own.min() >= 0
        assert own.max() < number
    if units is not None:
        assert all(len(set(shards[units == one])) == 1 for one in range(30))
        # whoever goes, nobody else moves
        rest = np.flatnonzero(units != 7)
        again = assign_shards_in_groups(
            87, [2, 3, 4], groups[rest], "add-remove", units[rest], vault
        )
        assert (again == shards[rest]).all()


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_unit_changes_the_votes_of_one_teacher_of_its_group(
    tmp_path: Path, neighbours: str
) -> None:
    """All teachers are trained on both neighbours, and asked one by one."""
    vault = sb.vault.make_vault(tmp_path / "vault")
    rng = np.random.default_rng(5)
    X, y, X_public = rng.normal(size=(240, 2)), rng.integers(0, 2, 240), rng.normal(size=(40, 2))
    groups, units = np.arange(240) // 2 % 3, np.arange(240) // 2
    budgets = dict.fromkeys("abc", OPEN)

    def ballots(rows: np.ndarray, classes: np.ndarray) -> list[list[list[int]]]:
        by_unit = units[rows] if neighbours == "add-remove" else None
        private, _ = labelled_input(X[rows], classes[rows], X_public, [0, 1], by_unit, None)
        private.divide(BudgetGroups(budgets, groups[rows]))
        made = private.teachers_of_groups(
            DecisionTreeClassifier(),
            [4, 5, 6],
            neighbours,
            vault,
            0,
            n_classes=2,
            send_shards=False,
        )
        (vault / "record.ids").unlink(missing_ok=True)
        return [
            [
                [0] * len(X_public) if one is None else one.predict(X_public).tolist()
                for one in ensemble._teachers
            ]
            for ensemble in made
        ]

    everybody = np.arange(240)
    whole, moved = ballots(everybody, y), 0
    for unit in (0, 1, 2, 60, 119):
        if neighbours == "add-remove":
            other = ballots(np.flatnonzero(units != unit), y)
        else:
            other = ballots(everybody, np.where(everybody == 2 * unit, 1 - y, y))
        for place, (one, two) in enumerate(zip(whole, other, strict=True)):
            changed = sum(a != b for a, b in zip(one, two, strict=True))
            assert changed <= (place == unit % 3)
            moved += changed
    assert moved > 0


def test_places_are_dealt_inside_each_group() -> None:
    groups = np.array([0, 1, 1, 0, 1, 1, 0, 1])
    shards = assign_shards_in_groups(8, [2, 3], groups, "replace-one", None, None)
    assert shards.tolist() == [0, 0, 1, 1, 2, 0, 0, 1]
    with pytest.raises(ParameterError, match="every teacher needs a record"):
        assign_shards_in_groups(8, [4, 3], groups, "replace-one", None, None)
    with pytest.raises(ParameterError, match="splits by position"):
        assign_shards_in_groups(8, [2, 3], groups, "replace-one", np.arange(8), None)


def test_teachers_are_divided_exactly_and_each_group_has_one() -> None:
    def of(n_teachers: int, *shares: float) -> list[int]:
        names = [str(place) for place in range(len(shares))]
        given = dict(zip(names, shares, strict=True))
        voters = voters_in_groups(dict.fromkeys(names, OPEN), n_teachers, given, None)
        return list(voters.teachers.values())

    assert of(250, 0.54, 0.37, 0.09) == [135, 93, 22] or sum(of(250, 0.54, 0.37, 0.09)) == 250
    assert of(250, 100, 150) == [100, 150]
    assert of(3, 1e9, 1e-9, 1) == [1, 1, 1]
    assert of(10, 1e9, 1e-9) == [9, 1]
    assert of(7, 1, 1, 1) in ([3, 2, 2], [2, 3, 2], [2, 2, 3])
    with pytest.raises(ParameterError, match="every group needs a teacher"):
        of(1, 1, 1)


def test_a_group_that_is_empty_is_not_told_under_add_remove() -> None:
    """Sizes are private there: whether a group has none, one or many records, all that is said
    beside the labels is the same, and nothing is refused."""
    said = set()
    X, X_public = table()["X"], table()["X_public"]
    for names in (np.full(N, "open"), np.where(np.arange(N) == 0, "strict", "open"), named()):
        for form in (np.asarray, csr_matrix):
            model = sb.PATEClassifier(n_teachers=12, n_queries=5, release="labels", request="r")
            model.fit(
                form(X),
                table()["y"],
                X_public=form(X_public),
                classes=[0, 1],
                **{**GROUPS, "budget_groups": names},
                **SHARES,
            )
            certificate = dict(model.certificate_)
            for changing in ("issued", "digest"):
                certificate.pop(changing)
            certificate["released"] = {**certificate["released"], "labels_sha256": ""}
            said.add(json.dumps(certificate, sort_keys=True))
    assert len(said) == 1


# --- going on, and asking again ---


def test_a_stored_release_is_for_the_same_groups_alone() -> None:
    account = sb.Ledger.in_memory(dataset="people", budget=PrivacyBudget(4.0, 1e-4))
    model = fitted(ledger=account, request="one")
    spent = account.spent()
    assert fitted(ledger=account, request="one").certificate_ == model.certificate_
    assert account.spent() == spent
    others = {**GROUPS, "group_budgets": {**BUDGETS, "strict": PrivacyBudget(0.4, 1e-5)}}
    again = sb.PATEClassifier(n_teachers=30, n_queries=12, ledger=account, request="one")
    with pytest.raises(ParameterError, match="answered before"):
        again.fit(**table(), classes=[0, 1], **others, **SHARES)
    with pytest.raises(ParameterError, match="answered before"):
        again.fit(**table(), classes=[0, 1], **GROUPS, group_shares={"strict": 2, "open": 1})
    with pytest.raises(ParameterError, match="answered before"):
        again.set_params(budget=OPEN).fit(**table(), classes=[0, 1])


def test_an_interrupted_fit_finds_the_teachers_of_each_group(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        if len(told) == 15:
            raise KeyboardInterrupt

    settings: dict[str, Any] = {"vault": tmp_path / "vault", "random_state": 1}
    with pytest.raises(KeyboardInterrupt):
        fitted(progress=progress, **settings)
    assert told[-1] == (15, 30)
    seen = len(told)
    fitted(progress=progress, **settings)
    assert told[seen:][-1] == (30, 30)
    assert told[seen][0] >= 10  # the first group's teachers were found
    assert not (tmp_path / "vault" / "record.ids").exists()


# --- refusals ---


@pytest.mark.parametrize(
    ("settings", "given", "sentence"),
    [
        ({}, {"groups_are_public": False}, "not declared public"),
        ({}, {"group_budgets": None}, "group_budgets is missing"),
        ({}, {"budget_groups": None}, "budget_groups is missing"),
        ({}, {"group_shares": None}, "group_shares is missing"),
        ({}, {"group_shares": {"strict": 1}}, "give a positive number for each group"),
        ({}, {"group_shares": {"strict": 0, "open": 1}}, "must be above 0"),
        ({}, {"group_shares": {"strict": float("nan"), "open": 1}}, "group_shares"),
        ({}, {"budget_groups": named(5)}, "has 5 names"),
        ({"n_teachers": 1}, {}, "every group needs a teacher"),
        ({"aggregator": "sparse-vector"}, {}, "go with Gaussian voting"),
        ({"aggregator": "vote-table"}, {}, "go with Gaussian voting"),
        ({"aggregator": "confident"}, {}, "go with Gaussian voting"),
        ({"aggregator": "laplace"}, {}, "go with Gaussian voting"),
        ({"estimate_epsilon": 0.1}, {}, "votes that all weigh alike"),
        ({"budget": STRICT}, {}, "the largest is that of the release"),
        ({"n_queries": 1000}, {}, "1000 queries are asked of 100 public rows"),
    ],
)
def test_what_does_not_go_with_groups_is_refused(
    settings: dict[str, Any], given: dict[str, Any], sentence: str
) -> None:
    model = sb.PATEClassifier(**{"n_teachers": 30, "n_queries": 6, **settings})
    with pytest.raises((ParameterError, DataError), match=sentence):
        model.fit(**table(), classes=[0, 1], **{**GROUPS, **SHARES, **given})


def test_other_learners_refuse_groups_and_shares_need_groups() -> None:
    active = sb.ActivePATEClassifier(n_teachers=30, n_queries=12)
    with pytest.raises(ParameterError, match="go with Gaussian voting"):
        active.fit(**table(), classes=[0, 1], **GROUPS, **SHARES)
    with pytest.raises(ParameterError, match="without groups"):
        sb.PATEClassifier(budget=OPEN).fit(**table(), classes=[0, 1], **SHARES)


def test_a_person_in_two_groups_and_public_sizes_that_point_are_refused() -> None:
    model = sb.PATEClassifier(n_teachers=30, n_queries=12)
    with pytest.raises(DataError, match="more than one budget group"):
        model.fit(**table(), classes=[0, 1], units=np.arange(N) // 2, **GROUPS, **SHARES)
    model = sb.PATEClassifier(n_teachers=30, n_queries=12, neighbours="replace-one")
    single = {**GROUPS, "budget_groups": np.where(np.arange(N) == 3, "strict", "open")}
    with pytest.raises(DataError, match="single record"):
        model.fit(**table(), classes=[0, 1], **single)
    none = {**GROUPS, "budget_groups": np.full(N, "open")}
    with pytest.raises(ParameterError, match="no record"):
        model.fit(**table(), classes=[0, 1], **none)


def test_a_ledger_with_less_than_a_group_or_with_a_list_refuses_before_anything_is_trained() -> (
    None
):
    small = sb.Ledger.in_memory(dataset="people", budget=PrivacyBudget(1.0, 1e-4))
    with pytest.raises(ParameterError, match="more than the budget of the ledger"):
        fitted(ledger=small)
    renyi = sb.Ledger.in_memory(
        dataset="people", budget=PrivacyBudget(4.0, 1e-4), composition="renyi"
    )
    certificate = fitted(ledger=renyi).certificate_
    assert sb.verify_certificate(certificate).ok
    assert renyi.spent_by_group()["strict"].epsilon < renyi.spent().epsilon


def test_voters_tell_what_is_public() -> None:
    voters = GroupedVoters(BUDGETS, {"strict": 100, "open": 150})
    assert voters.budget == OPEN
    assert 170 < voters.full_teachers < 190
    # as many votes as the teachers that suit the largest budget, while each has ten records
    assert teachers_for_groups(100, BUDGETS, {"strict": 1, "open": 1}, 10_000) == 156
    assert teachers_for_groups(100, BUDGETS, {"strict": 1, "open": 1}, 1200) == 120
    assert teachers_for_groups(100, BUDGETS, {"strict": 1, "open": 1}, 500) == 100
    groups = BudgetGroups(BUDGETS, np.array([0, 0, 1, 1, 1, 1]))
    assert voters_in_groups(BUDGETS, 6, None, groups).teachers == {"strict": 2, "open": 4}
