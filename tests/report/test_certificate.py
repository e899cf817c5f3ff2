"""What a certificate says, and that it can be written one way only."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from made_releases import binary

from secretballot.accounting import PrivacyBudget
from secretballot.exceptions import CertificateError, ParameterError
from secretballot.released import ReleasedLabels
from secretballot.report.certificate.build import (
    UNSEEN_TEACHERS,
    certificate_digest,
    describe_released,
    with_files,
)

ROOT = Path(__file__).parents[2]
FILE = {"sha256": "0" * 64, "bytes": 1}


def test_the_published_schema_describes_certificates(released: ReleasedLabels) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs" / "reference" / "certificate.schema.json").read_text())
    certificate = json.loads(json.dumps(released.certificate))
    jsonschema.validate(certificate, schema)
    for changed in ({"epsilon": 0}, {"events": []}, {"more": 1}, {"unit": "table"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(certificate | changed, schema)


def test_the_digest_ignores_the_order_of_fields_and_nothing_else() -> None:
    text = '{"a":[0.1,"\\u00e9"],"b":1}'
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert digest == certificate_digest({"b": 1, "a": [0.1, "é"], "digest": "x"})
    assert digest == certificate_digest({"a": [0.1, "é"], "b": 1})
    assert certificate_digest({"a": 1}) != certificate_digest({"a": 1.0})


def test_counts_of_no_query_have_their_columns() -> None:
    none = np.zeros(0, dtype=np.int64)
    for counts, columns in ((None, 0), (none, 1), (none.reshape(0, 3), 3)):
        described = describe_released(none, none, ["a", "b", "c"][: max(2, columns)], 5, counts)
        assert described["count_columns"] == columns


def test_without_a_declaration_nobody_vouches_for_the_teachers() -> None:
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
def test_a_declaration_with_unknown_words_is_refused(declaration: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        binary(declaration=declaration)


def test_events_beyond_the_promise_get_no_certificate() -> None:
    with pytest.raises(CertificateError, match="more than the promised"):
        binary(scale=5.0)
    with pytest.raises(CertificateError, match="more than the promised"):
        binary(budget=PrivacyBudget(0.1, 1e-5))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}])
def test_values_that_json_lacks_are_refused(value: object) -> None:
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
def test_a_list_of_files_is_names_and_digests_alone(files: dict[str, dict[str, object]]) -> None:
    with pytest.raises(CertificateError, match="field files"):
        with_files(binary().certificate, files)
