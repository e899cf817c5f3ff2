"""What a certificate says, and that one that was touched, or promises too much, does not verify."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from made_releases import (
    CHOSEN,
    COMPARED,
    POOL,
    RECORDS,
    USERS,
    binary,
    counted,
    drawn_choice,
    withheld,
)

import secretballot_verify as second
from made_certificates import changed, failed, renewed
from made_events import counts_event, json_of, label_event, pure_event, sparse_event, stable_event
from secretballot.accounting import PrivacyBudget, price
from secretballot.core.mechanisms import ExponentialChoice, NoisyVotes
from secretballot.core.types import ScoreShape
from secretballot.exceptions import CertificateError, ParameterError
from secretballot.report.certificate import UNSEEN_TEACHERS, certificate_digest, with_files
from secretballot.report.verification import verify_certificate

ROOT = Path(__file__).parents[2]
FILE = {"sha256": "0" * 64, "bytes": 1}


def test_the_published_schema_describes_certificates(released):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs" / "reference" / "certificate.schema.json").read_text())
    certificate = json.loads(json.dumps(released.certificate))
    validator = jsonschema.validators.validator_for(schema)(schema)
    validator.validate(certificate)
    for wrong in ({"epsilon": 0}, {"events": []}, {"more": 1}, {"unit": "table"}):
        assert not validator.is_valid(certificate | wrong)


def test_the_digest_ignores_the_order_of_fields_and_nothing_else():
    text = '{"a":[0.1,"\\u00e9"],"b":1}'
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert digest == certificate_digest({"b": 1, "a": [0.1, "é"], "digest": "x"})
    assert digest == certificate_digest({"a": [0.1, "é"], "b": 1})
    assert certificate_digest({"a": 1}) != certificate_digest({"a": 1.0})


def test_without_a_declaration_nobody_vouches_for_the_teachers():
    certificate = binary(declaration=None).certificate
    assert (certificate["unit"], certificate["relation"]) == ("record", "add-remove")
    assert UNSEEN_TEACHERS in certificate["assumptions"]


@pytest.mark.parametrize(
    "declaration",
    [
        {"unit": "family"},
        {"unit": "label"},
        {"unit": "label", "relation": "add-remove"},
        {"relation": "swap"},
        {"unit_column": 3},
        {"assumptions": "one sentence"},
        {"not_protected": [1]},
        {"unti": "record"},
    ],
)
def test_a_declaration_with_unknown_words_is_refused(declaration):
    with pytest.raises(ParameterError):
        binary(declaration=declaration)


def test_events_beyond_the_promise_get_no_certificate():
    with pytest.raises(CertificateError, match="more than the promised"):
        binary(scale=5.0)
    with pytest.raises(CertificateError, match="more than the promised"):
        binary(budget=PrivacyBudget(0.1, 1e-5))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}])
def test_values_that_json_lacks_are_refused(value):
    with pytest.raises(CertificateError):
        binary(public={"method": "votes", "confidence": value})


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"": FILE},
        {"a/b": FILE},
        {"..": FILE},
        {"certificate.json": FILE},
        {"a" * 256: FILE},
        {"a": {"sha256": "0" * 63, "bytes": 1}},
        {"a": {"sha256": "0" * 64, "bytes": -1}},
        {"a": FILE | {"more": 1}},
        {str(number): FILE for number in range(1001)},
    ],
    ids=range(10),
)
def test_a_list_of_files_is_names_and_digests_alone(files):
    with pytest.raises(CertificateError, match="field files"):
        with_files(binary().certificate, files)


def forged(certificate, *changes):
    """Return the certificate with changes and a digest that fits them."""
    for place, value in changes:
        certificate = changed(certificate, place, value)
    return renewed(certificate)


def test_a_true_certificate_verifies(released):
    verification = verify_certificate(released.certificate)
    assert verification.ok, verification.failures
    assert verification.to_json()["ok"] is True
    names = "format fields digest events mechanism price released budget noise software"
    assert [check.name for check in verification.checks] == names.split()


def test_a_digest_that_was_not_renewed_is_seen(released):
    certificate = released.certificate
    for place, value in ((("purpose",), "x"), (("price", "method"), "x"), (("delta",), 1e-4)):
        assert failed(changed(certificate, place, value)) >= {"digest"}
    assert failed(changed(certificate, ("price", "epsilon"), float("nan"))) == {"format"}


def test_a_field_that_is_gone_or_added_is_seen():
    certificate = binary().certificate
    for key in certificate:
        assert not verify_certificate({k: v for k, v in certificate.items() if k != key}).ok, key
    parts = (), ("price",), ("composition",), ("composition", "budget"), ("noise",), ("released",)
    for place in parts:
        assert failed(forged(certificate, ((*place, "approved"), True))) == {"fields"}, place
    assert failed(forged(certificate, (("mechanism", "approved"), True))) == {"fields"}


#: What each verifier calls the check that fails.
FORGED = {
    "a setting of another mechanism": ([("public.confidence", 0.9)], "mechanism", "mechanism"),
    "counts of no noise": ([("released.values", [[201]])], "released", "queries"),
    "rows": ([("released.rows", [1])], "released", "queries"),
    "a smaller delta": ([("price.delta_recomputed", 1e-300)], "price", "price"),
    "a smaller epsilon": ([("epsilon", 0.5), ("price.epsilon", 0.5)], "price", "price"),
    "one class more": ([("released.classes", ["a", "b", "c"])], "mechanism", "mechanism"),
    "one class twice": ([("released.classes", ["1", 1])], "fields", "certificate"),
    "no reservation": ([("composition.reservation", 0)], "fields", "certificate"),
    "a sampler that is wrong": ([("software.opendp", "0.14.1")], "software", "software"),
    "no software": ([("software", {})], "fields", "certificate"),
    "long words": ([("purpose", "x" * 20_000)], "format", "certificate"),
    "a shorter plan": (
        [("shape.n_queries", 30), ("shape.moved", 30), ("events.0.shifts", 30)],
        "released",
        "queries",
    ),
    "fewer queries": ([("released.queries", 59)], "released", "queries"),
    "no counts": ([("released.count_columns", 0)], "released", "queries"),
    "a calibration": ([("mechanism.calibration", [201, 49])], "fields", "mechanism"),
    "less spent": ([("composition.spent_after.epsilon", 0.5)], "budget", "account"),
    "another relation": ([("composition.relation", "replace-one")], "budget", "account"),
    "another unit": ([("unit", "record"), ("unit_column", None)], "mechanism", "mechanism"),
    "an event of another version": ([("events.0.version", 2)], "fields", "mechanism"),
    "an event of other noise": ([("events.0.sigma", 20.0)], "mechanism", "mechanism"),
    "endless noise": (
        [("events.0.sigma", 1e300), ("mechanism.scale", 1e300)],
        "fields",
        "mechanism",
    ),
    "inexact noise": ([("noise.exact", False)], "noise", "certificate"),
    "a note": ([("note", "no")], "fields", "certificate"),
    "no files": ([("files", {})], "fields", "certificate"),
    "an early version": ([("version", 1)], "format", "certificate"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forger_who_renews_the_digest_is_seen_by_both(name):
    changes, first, other = FORGED[name]
    document = with_files(binary().certificate, {"README.txt": FILE})
    for place, value in changes:
        path = tuple(int(key) if key.isdigit() else key for key in place.split("."))
        document = changed(document, path, value)
    assert first in failed(renewed(document))
    found = [
        one
        for one in second.check_certificate(json.dumps(renewed(document)).encode())
        if one.verdict == second.REFUSED
    ]
    assert other in {one.name for one in found}
    assert all(len(one.detail) < 300 and one.detail.isprintable() for one in found)


def test_more_queries_than_the_plan_are_refused_where_they_do_not_enter_the_price():
    certificate = withheld().certificate
    assert failed(forged(certificate, (("released", "queries"), 51))) == {"released"}
    assert failed(forged(certificate, (("shape", "n_queries"), 1), (("shape", "moved"), 1))) == {
        "released"
    }


LABELS, OF_RECORDS = ("label", "replace-one"), ("record", "replace-one")


@pytest.mark.parametrize(
    ("released", "promised", "fine"),
    [
        (LABELS, LABELS, True),
        (OF_RECORDS, LABELS, True),
        (LABELS, OF_RECORDS, False),
        (LABELS, ("record", "add-remove"), False),
        (("record", "add-remove"), LABELS, False),
        (("user", "replace-one"), LABELS, False),
        (("user", "add-remove"), LABELS, False),
        (("user", "add-remove"), ("record", "add-remove"), True),
        (("user", "replace-one"), OF_RECORDS, False),
        (("user", "replace-one"), ("user", "replace-one"), True),
    ],
)
def test_a_release_adds_to_a_total_about_what_changes_with_its_unit(released, promised, fine):
    document = counted(unit=released[0], relation=released[1]).certificate
    account = {"unit": promised[0], "relation": promised[1]}
    paid = renewed(document, composition=document["composition"] | account)
    assert failed(paid) == (set() if fine else {"budget"})


def test_under_a_renyi_filter_the_whole_may_cost_less_than_the_sum():
    certificate = binary(kind="renyi").certificate
    cheaper = forged(certificate, (("composition", "spent_after", "epsilon"), 0.7))
    assert verify_certificate(cheaper).ok


def test_events_beyond_all_reason_are_refused_quickly():
    certificate = binary().certificate
    for event in (
        counts_event(1e6, 10**12),
        label_event(1e9, 10**12, None),
        pure_event(1e12, 10**12),
        sparse_event(1e12, 1e12, 0, 10**12),
        stable_event(1e12, 0, 10**12),
    ):
        document = forged(certificate, (("events",), [json_of(event)]))
        assert not verify_certificate(document).ok
    assert failed(forged(certificate, (("events",), [certificate["events"][0]] * 2000))) == {
        "fields"
    }


HEAD = '{"format": "secretballot/certificate", "version": '


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "null", "[]", "3", '"x"', "\x00", "{}", '{"format": 1}', "[" * 100_000),
        '{"format": "secretballot/certificate"}',
        *(f"{HEAD}{version}}}" for version in ("true", "0", "1")),
        *(f'{HEAD}3, "epsilon": {number}}}' for number in ("1e999", "NaN")),
        f'{HEAD}3, "version": 3}}',
        *(f'{HEAD}3, "a": {"9" * digits}}}' for digits in (5000, 50)),
        f'{HEAD}3, "a": {"[" * 50}{"]" * 50}}}',
    ],
    ids=range(20),
)
def test_malformed_files_fail_without_a_traceback(tmp_path, text):
    path = tmp_path / "certificate.json"
    path.write_text(text)
    verification = verify_certificate(path)
    assert not verification.ok
    assert all(
        check.detail.endswith(".") and "\n" not in check.detail for check in verification.checks
    )


def test_files_that_cannot_be_read_fail(tmp_path):
    assert failed(tmp_path / "none.json") == {"file"}
    assert failed(str(tmp_path)) == {"file"}
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xe9"}')
    assert failed(tmp_path / "latin.json") == {"file"}
    huge = tmp_path / "huge.json"
    huge.touch()
    os.truncate(huge, 60_000_000)
    assert "at most 10,000,000 are read" in verify_certificate(huge).failures[0].detail


PLAN = {
    "planned": 100,
    "used": 60,
    "rounds": [20, 20, 20],
    "strategy": {"name": "disagreement", "slack": 0.5},
    "left": "kept",
}


def planned(**changes):
    """Return a certificate of 60 queries out of a plan of 100, with changes."""
    return binary(
        **{"unit": "record", "scale": 45.0, "n_queries": 100, "plan": PLAN} | changes
    ).certificate


def test_an_honest_plan_and_honest_choices_verify():
    document = planned(choices=[CHOSEN, COMPARED])
    verification = verify_certificate(document)
    assert verification.ok, verification.failures
    said = {check.name: check.detail for check in verification.checks}
    assert "60 of 100 reserved queries used, in 3 rounds" in said["plan"]
    assert "epsilon 1.2 and delta 1e-5" in said["choices"]
    assert said["fields"].endswith("plan and choices are present and in range.")
    assert document["version"] == 3


DRAWN = drawn_choice(
    ExponentialChoice(epsilon=0.1),
    ScoreShape(guarantee=RECORDS),
    purpose="which candidate is right most often",
    public={"method": "exponential-choice", "n_candidates": 2},
    epsilon=0.1,
    delta=0.0,
    value=1,
    reservation=3,
)
LOUDER = drawn_choice(ExponentialChoice(epsilon=5.0), ScoreShape(guarantee=RECORDS))
# one more record of a user may move it by more
BY_USER = drawn_choice(ExponentialChoice(epsilon=0.1), ScoreShape(guarantee=USERS))


@pytest.mark.parametrize(
    ("true", "change", "words"),
    [
        (PLAN, {"planned": 90}, "set up for others"),
        (PLAN, {"used": 59}, "59 queries were used; its rounds hold 60, and 60"),
        (PLAN, {"rounds": [20, 20]}, "rounds hold 40"),
        (PLAN, {"left": "none"}, "of what was left: 40 queries"),
        (PLAN, {"left": "returned"}, "of what was left: 40 queries"),
        (PLAN, {"strategy": {}}, "field plan.strategy.name is missing"),
        (PLAN, {"saved_epsilon": 0.4}, "field plan.saved_epsilon is unknown"),
        (COMPARED, {"epsilon": 0.05}, "Choice 1 cost delta"),
        (COMPARED, {"reservation": 7}, "same reservation"),
        (COMPARED, {"events": COMPARED["events"] * 2}, "field choices.0.events is"),
        (COMPARED, {"labels_sha256": "votes 201 49"}, "field choices.0.labels_sha256 is"),
        (COMPARED, {"value": 3}, "nothing else"),
        (COMPARED, {"mechanism": CHOSEN["mechanism"]}, "not those of the mechanism"),
        (COMPARED, {"shape": COMPARED["shape"] | {"moved": 2}}, "at every query"),
        (COMPARED, {"free": True}, "field choices.0.free is unknown"),
        (DRAWN, {"value": [201, 49, 198]}, "field choices.0.value is"),
        (DRAWN, {"value": "201 49"}, "field choices.0.value is"),
        (DRAWN, {"value": 2}, "could have drawn"),
        (DRAWN, {"public": {"method": "votes"}}, "no known mechanism"),
        (DRAWN, {"mechanism": {"kind": "exact-count", "epsilon": 0.1}}, "kind"),
        (DRAWN, LOUDER, "Choice 1 cost delta"),
        (DRAWN, BY_USER, "another unit"),
    ],
)
def test_every_lie_in_a_plan_or_a_choice_is_caught(true, change, words):
    name = "plan" if true is PLAN else "choices"
    told, lie = ((one if true is PLAN else [one]) for one in (true, true | change))
    with pytest.raises(CertificateError, match=words):
        planned(**{name: lie})
    honest = planned(**{name: told})
    assert verify_certificate(honest).ok
    (failure,) = verify_certificate(renewed(honest, **{name: lie})).failures
    assert failure.name in (name, "fields")
    assert words in failure.detail


def test_the_price_must_be_that_of_the_whole_plan():
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


def test_a_renyi_ledger_takes_queries_back():
    assert verify_certificate(planned(kind="renyi", plan=PLAN | {"left": "returned"})).ok


def test_choices_that_take_long_to_price_are_bounded():
    """One hundred label games of five seconds each would be a trap for whoever verifies."""
    labels = drawn_choice(NoisyVotes(scale=300.0), POOL.changed(n_queries=10, moved=10))
    many = [COMPARED | labels | {"reservation": 100 + number} for number in range(11)]
    document = renewed(planned(choices=[COMPARED]), choices=many)
    (detail,) = [
        check.detail for check in verify_certificate(document).failures if check.name == "choices"
    ]
    assert "at most 10" in detail
    listed = with_files(document, {"README.txt": FILE})
    found = second.check_certificate(json.dumps(listed).encode())
    assert "choices" in {one.name for one in found if one.verdict == second.REFUSED}
    assert not any(one.name.startswith("choice ") for one in found)  # none was priced


def test_what_was_spent_must_hold_the_choices():
    document = planned(choices=[COMPARED])
    spent = document["composition"] | {"spent_after": {"epsilon": 1.05, "delta": 2e-5}}
    assert failed(renewed(document, composition=spent)) == {"budget"}


def test_the_assumptions_follow_the_choices():
    chosen, blind = planned(choices=[CHOSEN]), planned()
    (fixed,) = (one for one in blind["assumptions"] if "every parameter of the mechanism" in one)
    paid = ", or chosen by a step listed under choices, at its own price."
    assert fixed.removesuffix(".") + paid in chosen["assumptions"]
    assert fixed not in chosen["assumptions"]
    for document, lines in ((chosen, blind), (blind, chosen)):
        assert failed(renewed(document, assumptions=lines["assumptions"])) == {"mechanism"}
    both = [*chosen["assumptions"], fixed]
    assert failed(renewed(chosen, assumptions=both)) == {"mechanism"}
    without = {key: value for key, value in chosen.items() if key != "choices"}
    assert failed(renewed(without)) == {"mechanism"}
