"""A certificate that holds verifies; one that was touched, or promises less than it cost, does
not."""

import os
from pathlib import Path
from typing import Any

import pytest
from made_releases import binary, counted, withheld

from made_certificates import changed, failed, renewed
from made_events import counts_event, json_of, label_event, pure_event, sparse_event, stable_event
from secretballot.released import ReleasedLabels
from secretballot.report.certificate.verify import verify_certificate

Place = tuple[str | int, ...]


def forged(certificate: dict[str, Any], *changes: tuple[Place, Any]) -> dict[str, Any]:
    """Return the certificate with changes and a digest that fits them."""
    for place, value in changes:
        certificate = changed(certificate, place, value)
    return renewed(certificate)


def test_a_true_certificate_verifies(released: ReleasedLabels) -> None:
    verification = verify_certificate(released.certificate)
    assert verification.ok, verification.failures
    assert verification.to_json()["ok"] is True
    names = "format fields digest events mechanism price released budget noise software"
    assert [check.name for check in verification.checks] == names.split()


def test_a_digest_that_was_not_renewed_is_seen(released: ReleasedLabels) -> None:
    certificate = released.certificate
    for place, value in ((("purpose",), "x"), (("price", "method"), "x"), (("delta",), 1e-4)):
        assert failed(changed(certificate, place, value)) >= {"digest"}
    assert failed(changed(certificate, ("price", "epsilon"), float("nan"))) == {"format"}


def test_a_field_that_is_gone_or_added_is_seen() -> None:
    certificate = binary().certificate
    for key in certificate:
        assert not verify_certificate({k: v for k, v in certificate.items() if k != key}).ok, key
    parts = (), ("price",), ("composition",), ("composition", "budget"), ("noise",), ("released",)
    for place in parts:
        assert failed(forged(certificate, ((*place, "approved"), True))) == {"fields"}, place
    assert failed(forged(certificate, (("mechanism", "approved"), True))) == {"fields"}


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ([(("public", "confidence"), 0.9)], "mechanism"),
        ([(("released", "values"), [[201]])], "released"),
        ([(("released", "rows"), [1])], "released"),
        ([(("price", "delta_recomputed"), 1e-300)], "price"),
        ([(("released", "classes"), ["a", "b", "c"])], "mechanism"),
        ([(("released", "classes"), ["1", 1])], "fields"),
        ([(("composition", "reservation"), 0)], "fields"),
        ([(("software", "opendp"), "0.14.1")], "software"),
        ([(("software",), {})], "fields"),
        ([(("purpose",), "x" * 20_000)], "format"),
        (
            [(("shape", "n_queries"), 30), (("shape", "moved"), 30), (("events", 0, "shifts"), 30)],
            "released",
        ),
        ([(("mechanism", "calibration"), "my own")], "fields"),
        ([(("composition", "spent_after", "epsilon"), 0.5)], "budget"),
        ([(("unit",), "record"), (("unit_column",), None)], "mechanism"),
        ([(("events", 0, "version"), 2)], "fields"),
        ([(("events", 0, "sigma"), 1e300), (("mechanism", "scale"), 1e300)], "fields"),
    ],
)
def test_a_forger_cannot_break_what_must_agree(changes: list[Any], check: str) -> None:
    assert check in failed(forged(binary().certificate, *changes))


def test_more_queries_than_the_plan_are_refused_where_they_do_not_enter_the_price() -> None:
    certificate = withheld().certificate
    assert failed(forged(certificate, (("released", "queries"), 51))) == {"released"}
    assert failed(forged(certificate, (("shape", "n_queries"), 1), (("shape", "moved"), 1))) == {
        "released"
    }


LABELS, RECORDS = ("label", "replace-one"), ("record", "replace-one")


@pytest.mark.parametrize(
    ("released", "promised", "fine"),
    [
        (LABELS, LABELS, True),
        (RECORDS, LABELS, True),
        (LABELS, RECORDS, False),
        (LABELS, ("record", "add-remove"), False),
        (("record", "add-remove"), LABELS, False),
        (("user", "replace-one"), LABELS, False),
        (("user", "add-remove"), LABELS, False),
        (("user", "add-remove"), ("record", "add-remove"), True),
        (("user", "replace-one"), RECORDS, False),
        (("user", "replace-one"), ("user", "replace-one"), True),
    ],
)
def test_a_release_adds_to_a_total_about_what_changes_with_its_unit(
    released: tuple[str, str], promised: tuple[str, str], fine: bool
) -> None:
    document = counted(unit=released[0], relation=released[1]).certificate
    account = {"unit": promised[0], "relation": promised[1]}
    paid = renewed(document, composition=document["composition"] | account)
    assert failed(paid) == (set() if fine else {"budget"})


def test_under_a_renyi_filter_the_whole_may_cost_less_than_the_sum() -> None:
    certificate = binary(kind="renyi").certificate
    cheaper = forged(certificate, (("composition", "spent_after", "epsilon"), 0.7))
    assert verify_certificate(cheaper).ok


def test_events_beyond_all_reason_are_refused_quickly() -> None:
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


@pytest.mark.parametrize("version", [2, True, 3.0])
def test_another_version_is_refused(version: object) -> None:
    check = verify_certificate(binary().certificate | {"version": version}).failures[0]
    assert check.name == "format"
    assert "this program reads version 3" in check.detail


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
def test_malformed_files_fail_without_a_traceback(tmp_path: Path, text: str) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(text)
    verification = verify_certificate(path)
    assert not verification.ok
    assert all(
        check.detail.endswith(".") and "\n" not in check.detail for check in verification.checks
    )


def test_files_that_cannot_be_read_fail(tmp_path: Path) -> None:
    assert failed(tmp_path / "none.json") == {"file"}
    assert failed(str(tmp_path)) == {"file"}
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xe9"}')
    assert failed(tmp_path / "latin.json") == {"file"}
    huge = tmp_path / "huge.json"
    huge.touch()
    os.truncate(huge, 60_000_000)
    assert "at most 10 MB" in verify_certificate(huge).failures[0].detail
