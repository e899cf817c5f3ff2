"""Releases of noisy sums over records: labels of a model that the certificate's sums fix."""

import math
from collections.abc import Mapping
from typing import Any

from secretballot._validation import check_count, check_finite
from secretballot.core.mechanisms import NoisySums
from secretballot.core.types import SumShape
from secretballot.exceptions import CertificateError
from secretballot.report.certificate.coverage import RECORDS, UNCOVERED
from secretballot.report.certificate.fields import is_digest, is_sentence

MOMENTS = "record-moments"
TARGET_MOMENTS = "record-moments-of-a-number"
LABELS_MOMENTS = "record-moments-of-labels"
#: Of a release whose first stage started from labels that were released before.
STARTED = "start"
CLASS_WEIGHTS = "class_weights"
#: Of which sums are released, and no labels.
SUMS_ALONE = (TARGET_MOMENTS, LABELS_MOMENTS)
_BASIS_ASSUMPTION = "The basis follows from the public points and its own settings alone."
MOMENTS_ASSUMPTIONS = (
    (
        "What a unit adds to the sums follows from its own records, from public data and from"
        " earlier releases, and is an integer vector no longer than the stated bound."
    ),
    _BASIS_ASSUMPTION,
)
#: Where labels alone are private.
LABEL_MOMENTS_ASSUMPTIONS = (
    (
        "What a label adds to the sum follows from itself and from public data, and another label"
        " in its place moves an integer vector by no more than twice the stated bound."
    ),
    _BASIS_ASSUMPTION,
)
_COMMON = {
    *("residual_units", "mark_weight", "marks", "expected_uncovered", "n_records"),
    *("basis", "basis_sha256", "weights", "covered_only"),
}
#: Public settings, and what follows from the released sums, by method.
MOMENTS_FIELDS = {
    MOMENTS: _COMMON,
    TARGET_MOMENTS: {*_COMMON, "target_range"},
    LABELS_MOMENTS: {*_COMMON, "labels"},
}
_LARGEST_UNIT = 2**20  # as the records take them
_MOST_STAGES = 100
_MARKS: tuple[list[str], ...] = ([RECORDS, UNCOVERED], [UNCOVERED], [])


def has_moments(certificate: Mapping[str, Any]) -> bool:
    """Return whether the release is that of noisy sums over records, without teachers."""
    return certificate["public"]["method"] in MOMENTS_FIELDS


def bound_of(squared_sensitivity: int, *, replaced: bool) -> int:
    """Return the longest vector of one unit, whose replacement moves a sum by twice as much."""
    return math.isqrt(squared_sensitivity // (4 if replaced else 1))


def check_moments(document: Mapping[str, Any], mechanism: NoisySums, shape: SumShape) -> None:
    """Refuse sums that are more than the event pays for, or settings that contradict the release.

    The settings are those of `MOMENTS_FIELDS` already.

    Raises
    ------
    CertificateError
        If settings, sums and released labels contradict each other.
    ParameterError
        If a setting is out of its range.
    """
    public, released = document["public"], document["released"]
    n_stages, coordinates = len(mechanism.sigmas), shape.coordinates
    if n_stages > _MOST_STAGES:
        raise CertificateError(f"The mechanism states more than {_MOST_STAGES} stages.")
    if len(set(mechanism.sigmas)) > 1:
        raise CertificateError("The stages have noise of several sizes.")
    replaced = shape.guarantee.relation == "replace-one"
    weight = check_count("mark_weight", public["mark_weight"], minimum=0)
    if not weight <= bound_of(shape.squared_sensitivity, replaced=replaced) // 4:
        raise CertificateError("A mark adds more than a quarter of the bound.")
    marks = public["marks"]
    if marks not in _MARKS:
        raise CertificateError("The marks are none that records have.")
    # features that are public are the public points: nothing is counted beside
    of_labels = document["unit"] == "label" and public["method"] == MOMENTS
    if (document["unit"] == "label", not marks, weight == 0) != (of_labels,) * 3:
        raise CertificateError("Sums count records or users beside, and only those of labels none.")
    if not 0 <= check_finite("expected_uncovered", public["expected_uncovered"]) <= 1:
        raise CertificateError("The expected share of uncovered records is no share.")
    if (public["n_records"] is None) != (RECORDS in marks):
        raise CertificateError(
            "The sums count records where no number of them is stated, and only there."
        )
    if (public["n_records"] is None) == replaced:
        raise CertificateError(
            "The number of records is public where one is replaced, and private where one comes or"
            " goes; the certificate says otherwise."
        )
    if public["n_records"] is not None:
        check_count("n_records", public["n_records"])
    covered_only = public["covered_only"]
    if not (
        isinstance(covered_only, list)
        and len(covered_only) == n_stages
        and all(isinstance(one, bool) for one in covered_only)
    ):
        raise CertificateError("covered_only is not true or false for each stage.")
    n_columns = _columns_of(document)
    if coordinates <= len(marks) or (coordinates - len(marks)) % n_columns:
        raise CertificateError("The coordinates are no whole number for each column of the model.")
    basis = public["basis"]
    if not (
        isinstance(basis, Mapping)
        and is_sentence(basis.get("name"))
        and is_digest(public["basis_sha256"])
    ):
        raise CertificateError("The basis is not named, or its digest is none.")
    _check_lists("weights", public["weights"], n_stages, coordinates - len(marks))
    if STARTED in public:
        _check_start(public[STARTED], coordinates - len(marks), of_labels=of_labels)
    if CLASS_WEIGHTS in public:
        _check_class_weights(public[CLASS_WEIGHTS], len(released["classes"]))
    _check_lists("residual_units", [public["residual_units"]], 1, n_stages)
    # beyond, the squares by which a vector's length is found would not fit their integers
    if not all(1 <= unit <= _LARGEST_UNIT for unit in public["residual_units"]):
        raise CertificateError(f"A residual unit is not from 1 to {_LARGEST_UNIT}.")


def _columns_of(document: Mapping[str, Any]) -> int:
    """Return the columns of the model; refuse labels beside a target that has none.

    Raises
    ------
    CertificateError
        If labels were released beside a target that has none, or its terms are none.
    """
    public, released = document["public"], document["released"]
    if public["method"] == MOMENTS:
        # of two classes one column says both
        return 1 if len(released["classes"]) == 2 else len(released["classes"])
    if released["queries"]:
        raise CertificateError("Sums were paid for, and no labels; the certificate lists some.")
    if public["method"] == LABELS_MOMENTS:
        labels = public["labels"]
        if not (isinstance(labels, list) and labels and all(map(is_sentence, labels))):
            raise CertificateError("labels is no list of names.")
        if len(set(labels)) < len(labels):
            raise CertificateError("labels names one twice.")
        return len(labels)
    bounds = public["target_range"]
    numbers = isinstance(bounds, list) and len(bounds) == 2
    if not numbers or not (
        check_finite("target_range", bounds[0]) < check_finite("target_range", bounds[1])
    ):
        raise CertificateError("target_range is no two numbers, the smaller one first.")
    return 1


def _check_class_weights(weights: object, n_classes: int) -> None:
    """Refuse weights of classes that are no positive number for each.

    Raises
    ------
    CertificateError
        If they are not.
    """
    known = isinstance(weights, list) and len(weights) == n_classes
    if not known or not all(
        check_finite(CLASS_WEIGHTS, one) > 0
        for one in weights  # type: ignore[attr-defined]
    ):
        raise CertificateError("The weights of classes are no positive number for each class.")


def _check_start(start: object, n_weights: int, *, of_labels: bool) -> None:
    """Refuse a start that names no release, or is no model of these coordinates.

    Raises
    ------
    CertificateError
        If it is none.
    """
    if of_labels:
        raise CertificateError("Sums of labels alone start from nothing; the certificate differs.")
    known = isinstance(start, Mapping) and set(start) == {"certificate", "weights"}
    if not known or not is_digest(start["certificate"]):  # type: ignore[index]
        raise CertificateError("The start is no digest of a certificate and weights.")
    _check_lists("weights of the start", [start["weights"]], 1, n_weights)  # type: ignore[index]


def _check_lists(name: str, lists: object, n_lists: int, length: int) -> None:
    """Refuse anything but so many lists of so many integers."""
    if not (isinstance(lists, list) and len(lists) == n_lists):
        raise CertificateError(f"The {name} are not one list for each stage.")
    for one in lists:
        if not (isinstance(one, list) and len(one) == length):
            raise CertificateError(f"A list of the {name} has not {length} integers.")
        if not all(type(value) is int for value in one):
            raise CertificateError(f"The {name} hold something else than integers.")
