"""Certificates of releases from a ledger with a list: both verifiers price the whole list, and
refuse a release that is not on it."""

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import secretballot as sb
from secretballot import verify_release as second
from secretballot.exceptions import BudgetError
from secretballot.privacy.accounting import (
    Event,
    GaussianEvent,
    LabelGaussianEvent,
    PrivacyBudget,
    PureEvent,
    VectorSumEvent,
    VoteTableEvent,
    calibrate_label_gaussian,
    delta_upper,
)
from secretballot.privacy.ledger import Ledger
from secretballot.publishing.release import write_release
from secretballot.report.certificate.build import certificate_digest
from secretballot.report.certificate.verify import verify_certificate
from secretballot.report.release.about_words import total_words

BUDGET = PrivacyBudget(1.0, 1e-6)
SIGMA = calibrate_label_gaussian(BUDGET, 40, 100)
LISTED = (LabelGaussianEvent(SIGMA, 40, 100),)


def votes(n: int = 15) -> sb.VoteCounts:
    ones = np.random.default_rng(0).integers(0, 101, n)
    return sb.VoteCounts.from_counts(np.column_stack([100 - ones, ones]), classes=["no", "yes"])


def released(ledger: Ledger) -> sb.ReleasedLabels:
    aggregator = sb.GaussianAggregator.from_ledger(ledger, 15, n_teachers=100)
    return sb.release(votes(), aggregator, ledger)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ledger = Ledger.in_memory(dataset="registry", budget=BUDGET, events=LISTED)
    released(ledger)
    place = tmp_path_factory.mktemp("listed") / "release"
    return write_release(place, released(ledger)).path


@pytest.fixture(scope="module")
def certificate(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "certificate.json").read_text()))


def test_both_verifiers_confirm_a_release_and_its_list(
    folder: Path, certificate: dict[str, Any]
) -> None:
    account = certificate["composition"]
    assert account["kind"] == "list"
    assert account["listed"] == [event.to_json() for event in LISTED]
    assert account["spent_after"] == account["budget"]
    # its own price is what it costs by itself, and the account's is that of the list
    assert 0.5 < certificate["epsilon"] < 0.75
    assert certificate["delta"] == 1e-6
    assert verify_certificate(folder).ok
    found = second.check_release(str(folder))
    assert second.exit_code(found) == 0
    assert [one.verdict for one in found if one.name == "list"] == [second.CONFIRMED]
    assert "past and future ones, promise ε = 1 and" in total_words(certificate)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "all releases from it together promise epsilon 1" in page


def more_listed(composition: dict[str, Any]) -> None:
    composition["listed"][0]["queries"] = 400


def less_listed(composition: dict[str, Any]) -> None:
    composition["listed"][0]["queries"] = 14


def other_noise(composition: dict[str, Any]) -> None:
    composition["listed"][0]["sigma"] *= 1.5


def other_kind(composition: dict[str, Any]) -> None:
    composition["listed"] = [GaussianEvent(SIGMA, 40).to_json()]


def no_list(composition: dict[str, Any]) -> None:
    del composition["listed"]


def empty_list(composition: dict[str, Any]) -> None:
    composition["listed"] = []


def list_of_words(composition: dict[str, Any]) -> None:
    composition["listed"] = ["labels"]


def unlistable(composition: dict[str, Any]) -> None:
    stability = {"event": "stability", "version": 1, "scale": 9.0, "threshold": 99, "count": 1}
    composition["listed"].append(stability)


def list_of_a_sum(composition: dict[str, Any]) -> None:
    composition["kind"] = "basic"


def part_spent(composition: dict[str, Any]) -> None:
    composition["spent_after"]["epsilon"] = 0.7


def smaller_promise(composition: dict[str, Any]) -> None:
    for name in ("budget", "spent_after"):
        composition[name]["epsilon"] = 0.9


@pytest.mark.parametrize(
    "change",
    [
        more_listed,
        less_listed,
        other_noise,
        other_kind,
        no_list,
        empty_list,
        list_of_words,
        unlistable,
        list_of_a_sum,
        part_spent,
        smaller_promise,
    ],
)
def test_both_verifiers_refuse_a_list_that_does_not_hold(
    change: Callable[[dict[str, Any]], None], certificate: dict[str, Any], tmp_path: Path
) -> None:
    forged = copy.deepcopy(certificate)
    change(forged["composition"])
    forged["digest"] = certificate_digest(forged)
    first = verify_certificate(forged)
    assert not first.ok
    assert all(len(one.detail) < 300 for one in first.checks)
    (tmp_path / "certificate.json").write_text(json.dumps(forged))
    # the files of the folder are missing, which is another refusal
    found = [
        one.name
        for one in second.check_release(str(tmp_path))
        if one.verdict == second.REFUSED and one.name not in ("files", "labels")
    ]
    if change not in (more_listed, smaller_promise):
        assert found in (["account"], ["certificate"])
    else:  # prices are taken where everything else holds
        assert second.priced_list(forged["composition"]).verdict == second.REFUSED


def test_choices_are_taken_off_the_list_too() -> None:
    listed = (LabelGaussianEvent(1.1 * SIGMA, 40, 100), PureEvent(0.05, 1))
    ledger = Ledger.in_memory(dataset="registry", budget=BUDGET, events=listed)
    paid = sb.estimate_minority(votes(), ledger, epsilon=0.05)
    aggregator = sb.GaussianAggregator.from_ledger(ledger, 15, n_teachers=100)
    answer = sb.release(votes(), aggregator, ledger, choices=[paid])
    document = answer.certificate
    assert verify_certificate(document).ok
    assert second.check_list(document) is None
    with pytest.raises(BudgetError, match="left: 25 labels of two classes"):
        sb.estimate_minority(votes(), ledger, epsilon=0.05)
    document = copy.deepcopy(document)
    document["composition"]["listed"] = [listed[0].to_json()]
    document["digest"] = certificate_digest(document)
    assert not verify_certificate(document).ok
    with pytest.raises(second.WrongError, match="not on its account's list"):
        second.check_list(document)


LABELS = LabelGaussianEvent(30.0, 20, 250)


MANY = LabelGaussianEvent(2000.0, 30_000, 250)  # more than the second verifier plays games of


@pytest.mark.parametrize(
    ("events", "decides"),
    [
        ([VectorSumEvent(900.0, 10**4, 30, 2), VectorSumEvent(700.0, 10**4, 9, 1)], True),
        ([LABELS, VectorSumEvent(1200.0, 10**4, 30, 2)], True),
        ([GaussianEvent(60.0, 30), VectorSumEvent(900.0, 10**4, 30, 2)], True),
        ([PureEvent(0.05, 4), PureEvent(0.1, 1)], True),
        ([MANY, LabelGaussianEvent(2500.0, 30_000, 250)], False),
        ([LABELS, PureEvent(0.05, 1)], False),
        ([VoteTableEvent((2**52, 2**51), 3, 10), GaussianEvent(60.0, 30)], False),
        ([GaussianEvent(3.0, 1), VectorSumEvent(900.0, 10**4, 30, 2)], False),
    ],
)
def test_the_second_verifier_prices_lists_and_says_where_it_cannot(
    events: list[Event], decides: bool
) -> None:
    ours = delta_upper(events, 0.5)
    part = {"epsilon": 0.5, "delta": ours * 1.05, "events": [event.to_json() for event in events]}
    verdict = second.priced("list", part, second.list_price).verdict
    assert verdict == (second.CONFIRMED if decides else second.UNDECIDED)
    less = part | {"delta": ours * 0.3}
    if ours and LABELS not in events:
        assert second.priced("list", less, second.list_price).verdict != second.CONFIRMED


def best_label_after_a_count(count: float, label: float, epsilon: float) -> float:
    """Return delta of a noisy count, and then of the label that tells most after what it told."""
    reach = math.ceil(9 * max(count, label))
    noise = np.arange(-reach, reach + 1)
    chances, of_labels = (np.exp(-(noise**2) / (2 * s * s)) for s in (count, label))
    chances, of_labels = chances / chances.sum(), of_labels / of_labels.sum()
    told = math.exp(epsilon) * np.exp((2 * noise - 1) / (2 * count**2))  # the count moved by one
    zeros = np.cumsum(of_labels)
    before, after = zeros[:-1], zeros[1:]
    value = np.zeros(len(noise))
    for p, q in ((before, after), (after, before)):  # the other votes have one more or one less
        by_label = np.maximum(0, p - told[:, None] * q) + np.maximum(
            0, (1 - p) - told[:, None] * (1 - q)
        )
        value = np.maximum(value, by_label.max(axis=1))
    return float(chances @ value)


def test_the_second_verifier_knows_that_labels_may_follow_from_what_came_before_them() -> None:
    """A game that is played first is worth less: its questions follow from nothing."""
    count, label, epsilon = 8.0, 5.0, 0.3
    told = best_label_after_a_count(count, label, epsilon)
    events = [GaussianEvent(count, 1).to_json(), LabelGaussianEvent(label, 1).to_json()]
    price = second.list_price(events, epsilon, told)
    assert "game" in price.method
    assert told <= price.upper <= 1.1 * told


def test_the_second_verifier_puts_like_events_together() -> None:
    apart = [event.to_json() for event in (LABELS, MANY, LABELS)]
    together = LabelGaussianEvent(30.0, 40, 250)
    assert second.merged(apart) == [together.to_json(), MANY.to_json()]


@pytest.mark.parametrize(
    ("listed", "asked"),
    [
        (LABELS, LABELS),
        (LabelGaussianEvent(30.0, 1), LABELS),
        (LABELS, LabelGaussianEvent(30.0, 1)),
        (PureEvent(0.2, 1), PureEvent(0.1, 1)),
        (PureEvent(0.1, 1), PureEvent(0.2, 1)),
        (VectorSumEvent(80.0, 100, 9), VectorSumEvent(8.5, 1, 3)),
        (VectorSumEvent(80.0, 100, 9), VectorSumEvent(8.0, 1, 3)),
        (VectorSumEvent(80.0, 100, 9), VectorSumEvent(80.0, 100, 10)),
        (VectorSumEvent(3.0, 1, 2), VectorSumEvent(3.5, 1, 2)),
        (GaussianEvent(9.0, 1), GaussianEvent(9.0, 7)),
        (GaussianEvent(9.0, 1), LABELS),
    ],
)
def test_both_verifiers_know_the_same_steps_as_covered(listed: Event, asked: Event) -> None:
    from secretballot.privacy.accounting import EventList

    first = EventList.of([listed]).taken_by([asked]) is not None
    assert second.covers(listed.to_json(), asked.to_json()) == first


def test_a_repeated_request_gets_its_answer_when_nothing_is_left() -> None:
    ledger = Ledger.in_memory(dataset="registry", budget=BUDGET, events=LISTED)
    aggregator = sb.GaussianAggregator.from_ledger(ledger, 40)
    first = sb.release(votes(40), aggregator, ledger, request="all of it")
    assert ledger.remaining_events() == ()
    again = sb.GaussianAggregator.from_ledger(ledger, 40, n_teachers=100)
    assert again == aggregator
    stored = sb.release(votes(40), again, ledger, request="all of it")
    assert np.array_equal(stored.labels, first.labels)
    with pytest.raises(BudgetError, match="left: nothing"):
        sb.release(votes(40), again, ledger)
    assert math.isclose(aggregator.budget.epsilon, 1.0, rel_tol=1e-2)


def test_noise_that_is_not_listed_or_ambiguous_is_refused() -> None:
    plain = Ledger.in_memory(dataset="registry", budget=BUDGET)
    with pytest.raises(sb.exceptions.LedgerError, match="has no list"):
        sb.GaussianAggregator.from_ledger(plain, 5)
    ledger = Ledger.in_memory(
        dataset="registry",
        budget=BUDGET,
        events=(LabelGaussianEvent(2 * SIGMA, 40, 100), LabelGaussianEvent(2 * SIGMA, 30, 90)),
    )
    assert sb.GaussianAggregator.from_ledger(ledger, 35).n_teachers == 100
    with pytest.raises(BudgetError, match="several kinds of noise"):
        sb.GaussianAggregator.from_ledger(ledger, 30)
    for asked in (
        {"n_queries": 41},
        {"n_queries": 5, "release": "counts"},
        {"n_queries": 5, "n_classes": 3},
    ):
        with pytest.raises(BudgetError, match="holds 40 labels of two classes"):
            sb.GaussianAggregator.from_ledger(ledger, **asked)
    with pytest.raises(BudgetError, match="'vote-table' are asked for"):
        sb.VoteTableAggregator.from_ledger(ledger, 5, n_teachers=100)


@pytest.mark.parametrize(
    ("release", "n_classes"),
    [("labels", 2), ("labels", 3), ("counts", 2), ("counts", 3), ("table", 2)],
)
def test_every_listable_aggregator_takes_its_noise_from_the_list(
    release: str, n_classes: int
) -> None:
    if release == "table":
        whole = sb.VoteTableAggregator.calibrate(BUDGET, 12, n_teachers=30)
    else:
        whole = sb.GaussianAggregator.calibrate(
            BUDGET, 12, n_classes=n_classes, n_teachers=30, release=release
        )
    ledger = Ledger.in_memory(dataset="registry", budget=BUDGET, events=whole.events(30))
    if release == "table":
        part = sb.VoteTableAggregator.from_ledger(ledger, 4, n_teachers=30)
    else:
        part = sb.GaussianAggregator.from_ledger(
            ledger, 4, n_classes=n_classes, n_teachers=30, release=release
        )
    cast = np.random.default_rng(1).multinomial(30, [1 / n_classes] * n_classes, 4)
    counts = sb.VoteCounts.from_counts(cast)
    for _ in range(3):
        answer = sb.release(counts, part, ledger)
        assert verify_certificate(answer.certificate).ok
        second.check_list(answer.certificate)
    assert ledger.remaining_events() == ()
