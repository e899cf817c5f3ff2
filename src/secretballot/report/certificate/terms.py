"""What a certificate states of its release: a mechanism of the core, the shape of what it was drawn
from, the one event that follows from both, and public settings."""

import json
from collections.abc import Mapping
from typing import Any

from secretballot._validation import check_finite, check_probability, shown
from secretballot.core.mechanisms import (
    Mechanism,
    NoisyVotes,
    Shape,
    mechanism_in,
    shape_in,
)
from secretballot.core.types import LARGEST, VoteShape
from secretballot.exceptions import CertificateError
from secretballot.report.certificate.by_record import EXPECTED_UNCOVERED, RECORD_VOTES
from secretballot.report.certificate.chosen import EXPONENTIAL
from secretballot.report.certificate.moments import (
    CLASS_WEIGHTS,
    MOMENTS,
    MOMENTS_FIELDS,
    STARTED,
    SUMS_ALONE,
    bound_of,
)
from secretballot.report.certificate.vote_tables import TABLE_FIELDS

VOTES = "votes"
STABILITY = "stability-quantile"
CONFIDENCE = "confidence"
#: Methods without classes: what they release stands in "released".
WITHOUT_CLASSES = (*SUMS_ALONE, *TABLE_FIELDS)
_CONFIDENT = "confident-labels"
_ANSWERS_SOME = (_CONFIDENT, "stable-value")
_ABSTAINS = ("sparse-vector", "abstention-table", "relabelled-sample")
#: By method, the kinds of mechanisms, the public settings, and those that may be missing.
_METHODS: dict[str, tuple[set[str], set[str], set[str]]] = {
    VOTES: ({"noisy-votes", "table-labels", *_ANSWERS_SOME, *_ABSTAINS}, set(), {CONFIDENCE}),
    RECORD_VOTES: ({"noisy-votes"}, set(), {EXPECTED_UNCOVERED}),
    **{name: ({"noisy-sums"}, fields, set()) for name, fields in MOMENTS_FIELDS.items()},
    MOMENTS: ({"noisy-sums"}, MOMENTS_FIELDS[MOMENTS], {STARTED, CLASS_WEIGHTS}),
    **TABLE_FIELDS,
    EXPONENTIAL: ({EXPONENTIAL}, {"n_candidates"}, set()),
    STABILITY: ({STABILITY}, set(), set()),
}


def terms_in(part: Mapping[str, Any]) -> tuple[Mechanism, Shape]:
    """Return the mechanism and the shape that a certificate, or one of its choices, states.

    Raises
    ------
    ParameterError
        If one of them is none of the core.
    """
    mechanism = mechanism_in(part["mechanism"])
    return mechanism, shape_in(mechanism, part["shape"])


def check_event(part: Mapping[str, Any]) -> tuple[Mechanism, Shape]:
    """Return the terms of a certificate or a choice, once its event is theirs.

    Raises
    ------
    CertificateError, ParameterError
        If there is another event, or a term is none of the core.
    """
    mechanism, shape = terms_in(part)
    by_teachers = isinstance(shape, VoteShape) and part["public"]["method"] == VOTES
    if by_teachers and shape.moved != shape.n_queries:  # type: ignore[union-attr]
        raise CertificateError("A teacher may vote otherwise at every query.")
    event = mechanism.event(shape).model_dump(mode="json")
    # as text: 2.0 and true are equal to 2 and 1
    if json.dumps(part["events"], sort_keys=True) != json.dumps([event], sort_keys=True):
        raise CertificateError(
            "The events are not those of the mechanism: its noise, its queries and what it releases"
            " have another price."
        )
    return mechanism, shape


def check_terms(document: Mapping[str, Any]) -> tuple[Mechanism, Shape]:
    """Refuse terms that contradict each other, or the promise; return them.

    Raises
    ------
    CertificateError
        Naming the first contradiction.
    ParameterError
        If a parameter is out of its range.
    """
    mechanism, shape = check_event(document)
    promise = shape.guarantee.unit, shape.guarantee.relation
    if promise != (document["unit"], document["neighbours"]):
        raise CertificateError("The shape is about another unit or relation than the promise.")
    released, public, method = (
        document["released"],
        document["public"],
        document["public"]["method"],
    )
    check_public(mechanism, public)
    if (not released["classes"]) != (method in WITHOUT_CLASSES):
        raise CertificateError(
            "Labels have two or more classes, and sums or tables alone have none; the certificate"
            " says otherwise."
        )
    teachers = (shape.n_teachers or 0) if isinstance(shape, VoteShape) else 0
    if released["n_teachers"] != teachers:
        raise CertificateError("The shape states another n_teachers than the certificate.")
    if isinstance(shape, VoteShape):
        if (shape.n_teachers is None) != (method == RECORD_VOTES):
            raise CertificateError(
                "Votes are those of teachers, or of records that are no teachers."
            )
        if shape.guarantee.unit == "label" and (method in TABLE_FIELDS or method == RECORD_VOTES):
            raise CertificateError("Such votes are about records or users, not about labels.")
        if method not in TABLE_FIELDS and shape.n_classes != len(released["classes"]):
            raise CertificateError("The shape states another n_classes than the certificate.")
    return mechanism, shape


def check_public(mechanism: Mechanism, public: Mapping[str, Any]) -> None:
    """Refuse settings of no known method, of another mechanism, or that lack or add a field.

    Raises
    ------
    CertificateError, ParameterError
        Naming the first such setting.
    """
    kinds, fields, optional = _METHODS.get(public["method"], (set(), set(), set()))
    kind = mechanism.kind  # type: ignore[attr-defined]
    if kind not in kinds:
        raise CertificateError(
            f"The method {shown(public['method'])} is unknown to this program, or has no mechanism"
            f" {shown(kind)}; update secretballot."
        )
    found = set(public) - {"method"}
    # a choice also carries words on its candidates
    wrong = fields - found if public["method"] == EXPONENTIAL else (found - optional) ^ fields
    if wrong:
        raise CertificateError(f"The public settings lack or add the field {shown(min(wrong))}.")
    if CONFIDENCE in found and public["method"] == VOTES:
        check_probability(CONFIDENCE, public[CONFIDENCE])
        if kind != _CONFIDENT:
            raise CertificateError("Only confident labels are confirmed with a confidence.")
    if EXPECTED_UNCOVERED in found and not (
        0 <= check_finite(EXPECTED_UNCOVERED, public[EXPECTED_UNCOVERED]) <= 1
    ):
        raise CertificateError("The expected share of uncovered records is no share.")
    candidates = public.get("n_candidates", 1)
    if public["method"] == EXPONENTIAL and not (type(candidates) is int and candidates >= 1):
        raise CertificateError("The number of candidates is none.")


def check_integers(values: object, n_rows: int, n_columns: int, low: float, high: float) -> None:
    """Refuse released values that are not so many rows of so many integers within bounds.

    Raises
    ------
    CertificateError
        If they are not.
    """
    if not isinstance(values, list) or len(values) != n_rows:
        raise CertificateError(f"The released values are not {n_rows} lists.")
    low, high = max(low, -LARGEST), min(high, LARGEST)
    for row in values:
        if not isinstance(row, list) or len(row) != n_columns:
            raise CertificateError(f"A list of released values has not {n_columns} integers.")
        # True counts as an integer elsewhere, and as none in JSON
        if not all(type(one) is int and low <= one <= high for one in row):
            raise CertificateError(
                "A released value is no integer that the mechanism could have drawn."
            )


def count_columns_of(mechanism: Mechanism, shape: Shape) -> int:
    """Return how many noisy counts for each query stand beside labels."""
    if not isinstance(mechanism, NoisyVotes) or mechanism.release == "labels":
        return 0
    return mechanism.answer_shape(shape)[1]


def noise_of_counts(mechanism: Mechanism) -> float:
    """Return how far noise on counts reaches usually, in votes."""
    if not isinstance(mechanism, NoisyVotes):
        return 0.0
    # above the standard deviation of Laplace noise
    return mechanism.scale if mechanism.noise == "gaussian" else 1.5 * mechanism.scale


def most_abstentions(mechanism: Mechanism) -> int | None:
    """Return after how many abstentions nothing more is answered, 0 where there are none; None
    where they end nothing."""
    kind = mechanism.kind  # type: ignore[attr-defined]
    if kind in _ANSWERS_SOME:
        return None
    return (mechanism.stops_at or 0) if kind in _ABSTAINS else 0


def stated(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Return mechanism, shape, public settings and released integers of a certificate in one
    mapping, for those who show them: with ``sigma``, ``bound``, ``n_stages`` and
    ``votes_per_record`` where there are such.

    Parameters
    ----------
    certificate : mapping
        That verifies, or was written here.
    """
    mechanism, shape = certificate["mechanism"], certificate["shape"]
    # a stream that a relabelled sample is asked, and the sample
    inner = {**mechanism.get("stream", {}), **(shape.get("sample") or {})}
    found = {**inner, **mechanism, **shape, **certificate["public"]}
    found |= {key: certificate["released"].get(key) for key in ("rows", "values")}
    replaced = shape["guarantee"]["relation"] == "replace-one"
    if "sigmas" in mechanism:
        found |= {"sigma": mechanism["sigmas"][0], "n_stages": len(mechanism["sigmas"])}
        found["bound"] = bound_of(shape["squared_sensitivity"], replaced=replaced)
    if mechanism["kind"] == "noisy-votes":
        found["sigma"] = mechanism["scale"]
    if certificate["public"]["method"] == RECORD_VOTES:
        found["votes_per_record"] = shape["moved"] // (2 if replaced else 1)
    return found
