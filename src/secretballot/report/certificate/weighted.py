"""Releases of votes that count several times: which groups of teachers cast how many, and the
event that follows."""

from collections.abc import Mapping
from typing import Any

from secretballot._validation import check_choice, check_count
from secretballot.exceptions import CertificateError
from secretballot.report.certificate.moments import GROUPS, GROUPS_ASSUMPTION

__all__ = ["WEIGHTED", "check_weighted", "n_teachers_of", "weighted_event"]

WEIGHTED = "weighted-gaussian"
_GROUP_FIELDS = {"name", "weight", "teachers", "epsilon", "delta"}


def n_teachers_of(certificate: Mapping[str, Any]) -> int:
    """Return how many teachers voted: the votes of a release, but where teachers cast several."""
    mechanism = certificate["mechanism"]
    if mechanism["name"] == WEIGHTED:
        return sum(int(group["teachers"]) for group in mechanism[GROUPS])
    return int(certificate["released"]["n_teachers"])


def weighted_event(mechanism: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event of weighted voting as JSON values.

    Raises
    ------
    CertificateError, ParameterError
        If a field is none, or out of its range.
    """
    _check_group_fields(mechanism[GROUPS])
    release = check_choice("release", mechanism["release"], ("labels", "counts"))
    queries = check_count("n_queries", mechanism["n_queries"])
    weights = [check_count("weight", group["weight"]) for group in mechanism[GROUPS]]
    two = mechanism["n_classes"] == 2
    # one teacher moves all its votes: one count of two classes, two counts of more
    moved = 1 if two else 2
    drawn = {
        "version": 1,
        "sigma": mechanism["sigma"],
        "squared_sensitivity": moved * max(weights) ** 2,
        "groups": [
            {
                "name": group["name"],
                "squared_sensitivity": moved * weight**2,
                "epsilon": group["epsilon"],
                "delta": group["delta"],
            }
            for group, weight in zip(mechanism[GROUPS], weights, strict=True)
        ],
    }
    if two and release == "labels":
        return drawn | {"event": "grouped-label-gaussian", "queries": queries}
    columns = 1 if two else mechanism["n_classes"]
    return drawn | {"event": "grouped-vector-sum", "coordinates": columns, "count": queries}


def check_weighted(document: Mapping[str, Any]) -> None:
    """Refuse groups of teachers that contradict the release: other votes than were cast, or a
    headline that is not the largest promise.

    What they cost is looked at with the price.

    Raises
    ------
    CertificateError
        If they do.
    ParameterError
        If a number is out of its range.
    """
    groups = document["mechanism"][GROUPS]
    # the fields first: what comes after reads them unchecked
    _check_group_fields(groups)
    votes = sum(
        check_count("weight", group["weight"]) * check_count("teachers", group["teachers"])
        for group in groups
    )
    if votes != document["released"]["n_teachers"]:
        raise CertificateError(
            "The groups of teachers cast another number of votes than the certificate states."
        )
    if document["unit"] == "label":
        raise CertificateError("Votes on labels alone have no budget groups.")
    if GROUPS_ASSUMPTION not in document["assumptions"]:
        raise CertificateError("The certificate does not say that its budget groups are public.")
    for key in ("epsilon", "delta"):
        if max(group[key] for group in groups) != document[key]:
            raise CertificateError(
                f"The {key} of the certificate is not the largest of its budget groups."
            )


def _check_group_fields(groups: object) -> None:
    """Refuse groups that are no list of objects with the fields of one, and nothing else.

    Raises
    ------
    CertificateError
        If they are not.
    """
    known = isinstance(groups, list | tuple) and len(groups) > 0
    if not known or not all(
        isinstance(group, Mapping) and set(group) == _GROUP_FIELDS
        for group in groups  # type: ignore[attr-defined]
    ):
        raise CertificateError(
            "The groups of teachers are no list of a name, a weight, a number of teachers and a"
            " budget each."
        )
