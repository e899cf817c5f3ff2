"""Fits in which records have budgets of their own: promises, bounds, refusals, certificates."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import secretballot as sb
from secretballot import verify_release as second
from secretballot.exceptions import (
    BudgetError,
    CertificateError,
    DataError,
    LedgerError,
    ParameterError,
    SecretBallotError,
)
from secretballot.privacy.accounting import (
    BudgetGroup,
    GaussianEvent,
    GroupedVectorSumEvent,
    PrivacyBudget,
    PureEvent,
    VectorSumEvent,
    delta_upper,
    filter_for,
    renyi_divergence,
)
from secretballot.report.certificate.build import build_certificate, certificate_digest
from secretballot.report.certificate.coverage import coverage_on

STRICT, OPEN = PrivacyBudget(0.2, 1e-6), PrivacyBudget(2.0, 1e-6)
BUDGETS = {"strict": STRICT, "open": OPEN}
N = 3000


def table(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N + 1000, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=len(X)) > 0).astype(int)
    return {"X": X[:N], "y": y[:N], "X_public": X[N:]}


def named(n: int = N) -> np.ndarray:
    return np.where(np.arange(n) % 3 == 0, "strict", "open")


GROUPS: dict[str, Any] = {
    "budget_groups": named(),
    "group_budgets": BUDGETS,
    "groups_are_public": True,
}


def fitted(seed: int = 0, **settings: Any) -> sb.RecordMomentsClassifier:
    model = sb.RecordMomentsClassifier(**settings)
    return model.fit(**table(seed), classes=[0, 1], **GROUPS)


def event_of(certificate: dict[str, Any]) -> GroupedVectorSumEvent:
    event = sb.privacy.accounting.event_from_json(certificate["events"][0])
    assert isinstance(event, GroupedVectorSumEvent)
    return event


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_every_group_pays_its_own_budget_and_no_more(neighbours: str) -> None:
    certificate = fitted(neighbours=neighbours).certificate_
    mechanism, event = certificate["mechanism"], event_of(certificate)
    assert (certificate["epsilon"], certificate["delta"]) == (2.0, 1e-6)
    groups = {group["name"]: group for group in mechanism["groups"]}
    factor = 4 if neighbours == "replace-one" else 1
    for name, budget in BUDGETS.items():
        bound = groups[name]["bound"]
        own = event.of_group(name)
        assert own.squared_sensitivity == factor * bound**2
        assert own == VectorSumEvent(
            mechanism["sigma"], factor * bound**2, mechanism["coordinates"], 4
        )
        assert delta_upper([own], budget.epsilon) <= budget.delta
        more = VectorSumEvent(own.sigma, factor * (bound + 1) ** 2, own.coordinates, own.count)
        assert delta_upper([more], budget.epsilon) > budget.delta
    assert groups["open"]["bound"] == mechanism["bound"]
    # sizes are public where records are replaced, and only there
    sizes = {name: group.get("records") for name, group in groups.items()}
    assert sizes == (
        {"strict": 1000, "open": 2000}
        if neighbours == "replace-one"
        else {"strict": None, "open": None}
    )
    assert sb.verify_certificate(certificate).ok
    # what the marks count is the number that the sums are divided by
    weighed = (1000 * groups["strict"]["bound"] + 2000 * mechanism["bound"]) / mechanism["bound"]
    counted = coverage_on(mechanism)
    assert counted is not None
    room = 1e-9 if neighbours == "replace-one" else 5 * counted[2]
    assert counted[1] == pytest.approx(weighed, abs=room)
    assert weighed < 2300


def test_the_price_of_a_group_agrees_with_dp_accounting() -> None:
    from dp_accounting.pld import privacy_loss_distribution

    event = event_of(fitted().certificate_)
    for name, budget in BUDGETS.items():
        own = event.of_group(name)
        loss = privacy_loss_distribution.from_gaussian_mechanism(
            own.sigma / np.sqrt(own.squared_sensitivity),
            value_discretization_interval=1e-4,
            pessimistic_estimate=True,
        ).self_compose(own.count)
        found = loss.get_delta_for_epsilon(budget.epsilon)
        assert found == pytest.approx(delta_upper([own], budget.epsilon), rel=0.01)


def test_groups_that_may_be_spent_more_of_teach_more() -> None:
    """Too much noise would pass every test of privacy."""
    least = PrivacyBudget(0.02, 1e-6)
    scores = np.zeros((4, 2))
    for seed in range(4):
        rows, test = table(seed), table(100 + seed)
        for place, largest in enumerate((least, OPEN)):
            budgets = {"group_budgets": {"strict": least, "open": largest}}
            model = sb.RecordMomentsClassifier()
            model.fit(**rows, classes=[0, 1], **{**GROUPS, **budgets})
            scores[seed, place] = np.mean(model.predict(test["X"]) == test["y"])
    assert scores[:, 1].mean() > scores[:, 0].mean() + 0.05


def test_persons_are_bounded_together_in_their_group() -> None:
    persons = np.arange(N) // 3
    model = sb.RecordMomentsClassifier().fit(
        **table(),
        classes=[0, 1],
        units=persons,
        unit_name="patient",
        **{**GROUPS, "budget_groups": np.where(persons % 2 == 0, "strict", "open")},
    )
    assert sb.verify_certificate(model.certificate_).ok
    assert model.certificate_["unit"] == "user"
    with pytest.raises(DataError, match="more than one budget group"):
        sb.RecordMomentsClassifier().fit(**table(), classes=[0, 1], units=persons, **GROUPS)


@pytest.mark.parametrize("kind", ["number", "labels"])
def test_numbers_and_several_labels_take_groups_too(kind: str) -> None:
    rows = table()
    if kind == "number":
        model = sb.RecordMomentsRegressor(target_range=(-4, 4))
        model.fit(rows["X"], rows["X"][:, 0], X_public=rows["X_public"], **GROUPS)
    else:
        model = sb.RecordMomentsMultiLabelClassifier()
        y = (rows["X"] > 0).astype(int)
        model.fit(rows["X"], y, X_public=rows["X_public"], labels=["a", "b"], **GROUPS)
    certificate = model.certificate_
    assert [group["name"] for group in certificate["mechanism"]["groups"]] == ["strict", "open"]
    assert sb.verify_certificate(certificate).ok
    cheaper = json.loads(json.dumps(certificate))
    for part in (cheaper["mechanism"]["groups"], cheaper["events"][0]["groups"]):
        part[0]["epsilon"] = 0.1
    cheaper["digest"] = certificate_digest(cheaper)
    failures = sb.verify_certificate(cheaper).failures
    assert [check.name for check in failures] == ["price"]
    assert "'strict' more than" in failures[0].detail


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"groups_are_public": False}, "not declared public"),
        ({"groups_are_public": 1}, "not declared public"),
        ({"budget_groups": None}, "budget_groups is missing"),
        ({"group_budgets": None}, "group_budgets is missing"),
        ({"budget_groups": None, "group_budgets": None}, "without groups"),
        ({"group_budgets": {"strict": STRICT}}, "in row 1, no group of"),
        ({"group_budgets": {}}, "give a mapping"),
        ({"group_budgets": [STRICT]}, "give a mapping"),
        ({"group_budgets": {**BUDGETS, "x": 1.0}}, "give a PrivacyBudget"),
        ({"group_budgets": {**BUDGETS, " ": STRICT}}, "on one line"),
        ({"group_budgets": {**BUDGETS, 3: STRICT}}, "on one line"),
        ({"group_budgets": {"strict": PrivacyBudget(0.1, 0.0), "open": OPEN}}, "delta 0"),
        ({"group_budgets": {"strict": PrivacyBudget(0.1, 1e-5), "open": OPEN}}, "same delta"),
        ({"group_budgets": {"strict": PrivacyBudget(1e-9, 1e-12), "open": OPEN}}, "add nothing"),
        ({"group_budgets": {**BUDGETS, **{str(k): STRICT for k in range(15)}}}, "there may be 16"),
        ({"budget_groups": named(N - 1)}, "one for each of the 3000"),
        ({"budget_groups": 5}, "is an int; give a list"),
        ({"budget_groups": "strict"}, "is a str; give a list"),
        ({"budget_groups": np.where(np.arange(N) == 5, None, named())}, "in row 5, no group"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_spent(
    change: dict[str, Any], words: str
) -> None:
    ledger = sb.Ledger.in_memory(dataset="people", budget=PrivacyBudget(5.0, 1e-4))
    model = sb.RecordMomentsClassifier(ledger=ledger)
    with pytest.raises((ParameterError, DataError), match=words):
        model.fit(**table(), classes=[0, 1], **{**GROUPS, **change})
    assert ledger.releases() == 0


def test_a_group_of_one_record_is_refused_where_sizes_are_public_and_only_there() -> None:
    lonely = {**GROUPS, "budget_groups": np.where(np.arange(N) == 5, "strict", "open")}
    ledger = sb.Ledger.in_memory(
        dataset="people", budget=PrivacyBudget(5.0, 1e-4), neighbours="replace-one"
    )
    model = sb.RecordMomentsClassifier(ledger=ledger, neighbours="replace-one")
    with pytest.raises(DataError, match="'strict' has a single record"):
        model.fit(**table(), classes=[0, 1], **lonely)
    assert ledger.releases() == 0
    # a refusal would tell a neighbour with two of them from this one
    stated = []
    for names in (lonely["budget_groups"], np.where(np.arange(N) < 2, "strict", "open")):
        fit = sb.RecordMomentsClassifier().fit(
            **table(), classes=[0, 1], **{**GROUPS, "budget_groups": names}
        )
        mechanism = fit.certificate_["mechanism"]
        stated.append({key: mechanism[key] for key in ("groups", "n_records", "sigma", "bound")})
    assert stated[0] == stated[1]


@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_the_account_adds_up_what_each_group_has_paid(composition: str) -> None:
    whole = PrivacyBudget(12.0, 1e-4)
    ledger = sb.Ledger.in_memory(dataset="people", budget=whole, composition=composition)
    assert ledger.spent_by_group() == {}
    first = fitted(ledger=ledger, request="a").certificate_
    plain = GaussianEvent(100.0, 1)
    ledger.reserve((plain,), PrivacyBudget(0.5, 1e-6), request="b", purpose="")
    other = {"strict": PrivacyBudget(0.4, 2e-6), "gold": PrivacyBudget(3.0, 2e-6)}
    second_fit = sb.RecordMomentsClassifier(ledger=ledger, request="c").fit(
        **table(1),
        classes=[0, 1],
        **{**GROUPS, "group_budgets": other, "budget_groups": np.resize(["strict", "gold"], N)},
    )
    events = event_of(first), event_of(second_fit.certificate_)
    paid = ledger.spent_by_group()
    assert list(paid) == ["gold", "open", "strict"]
    if composition == "basic":
        # 0.2 + 0.5 + 0.4, and what a release does not name counts whole
        assert paid == {
            "strict": (1.1, 4e-6),
            "open": (5.5, 4e-6),
            "gold": (5.5, 4e-6),
        }
        assert ledger.spent() == (5.5, 4e-6)
        return
    rule = filter_for("renyi", whole)
    for name, amount in paid.items():
        own = [event.of_group(name) for event in events]
        loss = sum(renyi_divergence(one, rule.order) for one in [*own, plain])
        expected = loss / rule.divergence_limit * whole.epsilon
        assert amount.epsilon == pytest.approx(expected, rel=1e-9)
        assert amount.epsilon >= expected * (1 - 1e-12)
    assert paid["strict"].epsilon < paid["open"].epsilon / 2
    assert paid["open"].epsilon == pytest.approx(ledger.spent().epsilon)


def test_what_a_group_is_promised_beyond_the_price_of_its_release_is_not_added_up() -> None:
    ledger = sb.Ledger.in_memory(dataset="people", budget=PrivacyBudget(5.0, 1e-4))
    groups = (BudgetGroup("much", 1, 3.0, 1e-6), BudgetGroup("little", 1, 0.5, 1e-6))
    event = GroupedVectorSumEvent(800.0, 10_000, 7, 2, groups)
    ledger.reserve((event,), PrivacyBudget(1.0, 1e-6), request="a", purpose="")
    # beside another event the group's promise is not all that it pays
    beside = PrivacyBudget(1.5, 1e-6)
    ledger.reserve((event, PureEvent(0.1, 1)), beside, request="b", purpose="")
    assert ledger.spent_by_group() == {"much": (2.5, 2e-6), "little": (2.0, 2e-6)}


def test_another_budget_than_the_largest_and_more_than_the_ledger_are_refused() -> None:
    with pytest.raises(ParameterError, match="leave the budget out"):
        fitted(budget=PrivacyBudget(1.0, 1e-6))
    assert fitted(budget=OPEN).certificate_["epsilon"] == 2.0
    poor = sb.Ledger.in_memory(dataset="people", budget=PrivacyBudget(1.0, 1e-6))
    with pytest.raises(ParameterError, match="group 'open', more than the budget of the ledger"):
        fitted(ledger=poor)
    assert poor.releases() == 0


def test_a_stored_answer_is_that_of_its_groups(tmp_path: Path) -> None:
    ledger = sb.Ledger(tmp_path / "l", dataset="people", budget=PrivacyBudget(9.0, 1e-4))
    settings = {"ledger": ledger, "request": "a"}
    first = fitted(**settings)
    assert fitted(**settings).certificate_ == first.certificate_
    assert ledger.spent().epsilon == 2.0
    plain = sb.RecordMomentsClassifier(budget=OPEN, **settings)
    with pytest.raises(ParameterError, match="answered before"):
        plain.fit(**table(), classes=[0, 1])
    other = {**GROUPS, "group_budgets": {"strict": PrivacyBudget(0.3, 1e-6), "open": OPEN}}
    with pytest.raises(ParameterError, match="answered before"):
        sb.RecordMomentsClassifier(**settings).fit(**table(), classes=[0, 1], **other)


def test_no_ledger_and_no_certificate_takes_a_group_that_costs_more_than_it_says() -> None:
    certificate = fitted().certificate_
    event = event_of(certificate)
    cheap = GroupedVectorSumEvent(
        event.sigma,
        event.squared_sensitivity,
        event.coordinates,
        event.count,
        tuple(
            sb.privacy.accounting.BudgetGroup(
                group.name, event.squared_sensitivity, group.epsilon, group.delta
            )
            for group in event.groups
        ),
    )
    ledger = sb.Ledger.in_memory(dataset="people", budget=PrivacyBudget(5.0, 1e-4))
    with pytest.raises(BudgetError, match="'strict' more than"):
        ledger.reserve((cheap,), OPEN, request="a", purpose="")
    assert ledger.releases() == 0
    with pytest.raises(CertificateError, match="'strict' more than"):
        build_certificate(
            budget=OPEN,
            events=(cheap,),
            price=sb.privacy.accounting.price((cheap,), epsilon=2.0),
            **{key: certificate[key] for key in ("mechanism", "composition", "noise", "released")},
        )


def test_a_verifier_that_does_not_know_groups_refuses_them_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    certificate = fitted().certificate_
    kinds = sb.privacy.accounting.events._KINDS
    monkeypatch.delitem(kinds, "grouped-vector-sum")
    failures = sb.verify_certificate(certificate).failures
    assert "'grouped-vector-sum' is unknown" in failures[0].detail


def test_tables_on_disk_take_no_groups() -> None:
    from secretballot.learners.moments.private_input import _StoredInput
    from secretballot.learners.training.budget_groups import BudgetGroups

    groups = BudgetGroups(BUDGETS, np.zeros(2, dtype=np.int64))
    with pytest.raises(ParameterError, match="do not go with a table on disk"):
        _StoredInput.divide(object.__new__(_StoredInput), groups)


def test_a_ledger_of_another_unit_is_refused_as_ever() -> None:
    ledger = sb.Ledger.in_memory(dataset="p", budget=PrivacyBudget(5.0, 1e-4), unit="user")
    with pytest.raises((LedgerError, SecretBallotError)):
        fitted(ledger=ledger)
    assert ledger.releases() == 0


def test_the_second_verifier_prices_every_group() -> None:
    event = event_of(fitted().certificate_).to_json()
    for group in event["groups"]:
        found = second.priced_group("group", group, event)
        assert found.verdict == "ok", found
        dearer = group | {"squared_sensitivity": int(1.1 * group["squared_sensitivity"])}
        assert second.priced_group("group", dearer, event).verdict == "FAILED"
