"""Plan and choices on the certificate: honest ones verify and are worded, every lie in them is
caught."""

from typing import Any

import pytest
from made_releases import RECORDS, USERS, binary, drawn_choice, votes_of

from made_certificates import failed, renewed
from made_events import counts_event, json_of
from secretballot.accounting import (
    PrivacyBudget,
    calibrate_gaussian,
    calibrate_sparse_vector,
    price,
)
from secretballot.core.mechanisms import (
    ExponentialChoice,
    NoisyVotes,
    RelabelledSample,
    SparseVector,
    StabilityQuantile,
)
from secretballot.core.types import Sample, ScoreShape
from secretballot.exceptions import CertificateError
from secretballot.report.certificate.build import FIXED_BLINDLY, FIXED_OR_PAID
from secretballot.report.certificate.verify import verify_certificate

PLAN = {
    "planned": 100,
    "used": 60,
    "rounds": [20, 20, 20],
    "strategy": {"name": "disagreement", "slack": 0.5},
    "left": "kept",
}


ERROR = drawn_choice(
    StabilityQuantile(epsilon=0.1, fraction=0.5),
    votes_of(90),
    purpose="estimate of the error level",
    public={"method": "stability-quantile"},
    epsilon=0.1,
    delta=0.0,
    value=412,
    reservation=3,
)
STUDENT = drawn_choice(
    NoisyVotes(scale=calibrate_gaussian(PrivacyBudget(0.3, 1e-6), 4), release="counts"),
    votes_of(4),
    purpose="choice among 4 students",
    public={"method": "votes"},
    epsilon=0.3,
    delta=1e-6,
    labels_sha256="0" * 64,
    reservation=4,
)


def planned(**changes: Any) -> dict[str, Any]:
    """Return a certificate of 60 queries out of a plan of 100, with changes."""
    return binary(**{"scale": 45.0, "n_queries": 100, "plan": PLAN} | changes).certificate


def test_an_honest_plan_and_honest_choices_verify() -> None:
    document = planned(choices=[ERROR, STUDENT])
    verification = verify_certificate(document)
    assert verification.ok, verification.failures
    said = {check.name: check.detail for check in verification.checks}
    assert "60 of 100 reserved queries used, in 3 rounds" in said["plan"]
    assert "epsilon 1.4 and delta 1.1e-5" in said["choices"]
    assert said["fields"].endswith("plan and choices are present and in range.")
    assert document["version"] == 3


DRAWN = drawn_choice(
    ExponentialChoice(epsilon=0.1),
    ScoreShape(guarantee=USERS),
    purpose="which candidate is right most often",
    public={"method": "exponential-choice", "n_candidates": 2},
    epsilon=0.1,
    delta=0.0,
    value=1,
    reservation=3,
)
LOUDER = drawn_choice(ExponentialChoice(epsilon=5.0), ScoreShape(guarantee=USERS))
# a choice by record says nothing of all records of a user
BY_RECORD = drawn_choice(ExponentialChoice(epsilon=0.1), ScoreShape(guarantee=RECORDS))


@pytest.mark.parametrize(
    ("true", "change", "words"),
    [
        (PLAN, {"planned": 90}, "set up for another number"),
        (PLAN, {"used": 59}, "59 queries were used; its rounds hold 60, and 60"),
        (PLAN, {"rounds": [20, 20]}, "rounds hold 40"),
        (PLAN, {"left": "none"}, "40 queries were left"),
        (PLAN, {"left": "returned"}, "only a Renyi ledger"),
        (PLAN, {"strategy": {}}, "field plan.strategy.name is missing"),
        (PLAN, {"saved_epsilon": 0.4}, "field plan.saved_epsilon is unknown"),
        (STUDENT, {"epsilon": 0.2}, "Choice 1 cost delta"),
        (STUDENT, {"reservation": 7}, "same reservation"),
        (STUDENT, {"events": STUDENT["events"] * 2}, "field choices.0.events is"),
        (STUDENT, {"labels_sha256": "votes 201 49"}, "field choices.0.labels_sha256 is"),
        (STUDENT, {"value": 3}, "nothing else"),
        (STUDENT, {"mechanism": ERROR["mechanism"]}, "not those of the mechanism"),
        (STUDENT, {"shape": STUDENT["shape"] | {"moved": 2}}, "at every query"),
        (STUDENT, {"free": True}, "field choices.0.free is unknown"),
        (DRAWN, {"value": [201, 49, 198]}, "field choices.0.value is"),
        (DRAWN, {"value": "201 49"}, "field choices.0.value is"),
        (DRAWN, {"value": 2}, "could have drawn"),
        (DRAWN, {"public": {"method": "votes"}}, "no known mechanism"),
        (DRAWN, {"mechanism": {"kind": "exact-count", "epsilon": 0.1}}, "kind"),
        (DRAWN, LOUDER, "Choice 1 cost delta"),
        (DRAWN, BY_RECORD, "another unit"),
    ],
)
def test_every_lie_in_a_plan_or_a_choice_is_caught(
    true: dict[str, Any], change: dict[str, Any], words: str
) -> None:
    name = "plan" if true is PLAN else "choices"
    told, lie = ((one if true is PLAN else [one]) for one in (true, true | change))
    with pytest.raises(CertificateError, match=words):
        planned(**{name: lie})
    honest = planned(**{name: told})
    assert verify_certificate(honest).ok
    (failure,) = verify_certificate(renewed(honest, **{name: lie})).failures
    assert failure.name in (name, "fields")
    assert words in failure.detail


def test_the_price_must_be_that_of_the_whole_plan() -> None:
    """Events for the queries used alone would be the smaller epsilon that stopping early must
    not give."""
    event = counts_event(45.0, 60)
    small = renewed(
        planned(),
        events=[json_of(event)],
        price=planned()["price"] | {"delta_recomputed": price([event], epsilon=1.0).delta},
    )
    assert failed(small) == {"mechanism"}
    fewer = planned()["shape"] | {"n_queries": 60, "moved": 60}
    assert failed(renewed(small, shape=fewer)) == {"plan"}


def test_a_renyi_ledger_takes_queries_back() -> None:
    assert verify_certificate(planned(kind="renyi", plan=PLAN | {"left": "returned"})).ok


def test_choices_that_take_long_to_price_are_bounded() -> None:
    """One hundred label games of five seconds each would be a trap for whoever verifies."""
    labels = drawn_choice(NoisyVotes(scale=300.0), votes_of(10))
    many = [STUDENT | labels | {"reservation": 100 + number} for number in range(11)]
    document = renewed(planned(choices=[STUDENT]), choices=many)
    (detail,) = [
        check.detail for check in verify_certificate(document).failures if check.name == "choices"
    ]
    assert "at most 10" in detail


def test_what_was_spent_must_hold_the_choices() -> None:
    document = planned(choices=[STUDENT])
    spent = document["composition"] | {"spent_after": {"epsilon": 1.2, "delta": 2e-5}}
    assert failed(renewed(document, composition=spent)) == {"budget"}


def test_the_assumptions_follow_the_choices() -> None:
    chosen, blind = planned(choices=[ERROR]), planned()
    assert FIXED_OR_PAID in chosen["assumptions"]
    assert FIXED_BLINDLY not in chosen["assumptions"]
    assert "or chosen by a step listed under choices, at its own price." in FIXED_OR_PAID
    assert FIXED_BLINDLY in blind["assumptions"]
    for document, lines in ((chosen, blind), (blind, chosen)):
        assert failed(renewed(document, assumptions=lines["assumptions"])) == {"mechanism"}
    both = [*chosen["assumptions"], FIXED_BLINDLY]
    assert failed(renewed(chosen, assumptions=both)) == {"mechanism"}
    without = {key: value for key, value in chosen.items() if key != "choices"}
    assert failed(renewed(without)) == {"mechanism"}


def test_a_rejected_sample_is_priced_under_the_relation_of_the_release() -> None:
    """It costs less where records come and go than where they are replaced, and nothing is known
    of users."""
    stream = calibrate_sparse_vector(PrivacyBudget(0.5, 1e-6), 1)
    mechanism = RelabelledSample(
        stream=SparseVector(
            threshold_scale=stream.threshold_scale,
            query_scale=stream.query_scale,
            threshold=stream.threshold,
            max_abstentions=1,
        )
    )
    sample = Sample(sampled=10, out_of=1000, relabel_epsilon=1.0, request="one", serial="one")
    choice = STUDENT | drawn_choice(mechanism, votes_of(9, RECORDS, sample))
    with pytest.raises(CertificateError, match="another unit"):
        planned(choices=[choice])
    of_users = choice | {"shape": votes_of(9, USERS, sample).model_dump(mode="json")}
    assert failed(renewed(planned(choices=[STUDENT]), choices=[of_users])) == {"choices"}
