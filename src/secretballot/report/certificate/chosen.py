"""Releases by the exponential mechanism: labels of one chosen model, not of votes."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from secretballot.exceptions import CertificateError

EXPONENTIAL = "exponential-choice"
EXPONENTIAL_ASSUMPTIONS = (
    (
        "The candidates and their order follow from public data, fixed random seeds and earlier"
        " releases, never from the private records that the choice was made by."
    ),
    "A candidate predicts each row from that row alone.",
)


def is_chosen(certificate: Mapping[str, Any]) -> bool:
    """Return whether the release is a choice among candidates, without teachers."""
    return bool(certificate["mechanism"]["name"] == EXPONENTIAL)


def check_chosen(document: Mapping[str, Any]) -> None:
    """Refuse a choice among candidates without its parameters, or with teachers.

    Raises
    ------
    CertificateError
        If mechanism, events and released labels contradict each other.
    """
    mechanism, released = document["mechanism"], document["released"]
    if released["n_teachers"]:
        raise CertificateError(
            "A choice among candidates has no teachers; the certificate names some."
        )
    if document["unit"] != document["composition"]["unit"] == "record":
        raise CertificateError("A choice by user does not add to a promise about records.")
    # the price first, then that the stated outcome is one that could have been drawn
    _check_draw(document)
    candidates, outcome = (_checked_integer(mechanism, key) for key in ("n_candidates", "outcome"))
    if not 0 <= outcome < candidates:
        raise CertificateError(
            f"The choice fell on number {outcome} of {candidates} candidates; there is no such one."
        )
    names = mechanism.get("candidates")
    if names is not None and not (isinstance(names, list) and len(names) == candidates):
        raise CertificateError(f"The names of the candidates are not a list of {candidates}.")
    if released["count_columns"] or released["answered"] != released["queries"]:
        raise CertificateError(
            "A chosen model answers every query, with a label alone; the certificate says"
            " otherwise."
        )


def _check_draw(document: Mapping[str, Any]) -> None:
    """Refuse a draw that is not the one pure event, at the scale that its relation needs."""
    mechanism, events = document["mechanism"], document["events"]
    if len(events) != 1 or (events[0].get("kind"), events[0].get("count")) != ("pure", 1):
        raise CertificateError(
            "A choice among candidates is one pure event, drawn once; the certificate says"
            " otherwise."
        )
    # exact arithmetic: the mechanism samples exactly with this scale, and its event must cover it
    # to the last digit
    paid, scale, monotone = (
        events[0].get("epsilon"),
        mechanism.get("scale"),
        mechanism.get("monotone"),
    )
    if mechanism.get("epsilon") != document["epsilon"]:
        raise CertificateError("The mechanism states another epsilon than the promise.")
    if not isinstance(monotone, bool) or (monotone and document["neighbours"] != "add-remove"):
        raise CertificateError(
            "All scores move one way under add-remove only; monotone must be true or false, and"
            " fit."
        )
    if (
        isinstance(scale, bool)
        or not isinstance(scale, int | float)
        or not Fraction(scale) * Fraction(paid) >= (1 if monotone else 2)
    ):
        raise CertificateError(
            "The scale of the exponential mechanism is missing, or too small for its event."
        )


def _checked_integer(mechanism: Mapping[str, Any], key: str) -> int:
    value = mechanism.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not value >= 0:
        raise CertificateError(f"The mechanism's {key} is {value!r}; it must be an integer.")
    return value
