"""Releases of votes that records cast for themselves: no teachers, and how many is private."""

from collections.abc import Mapping
from typing import Any

from secretballot._validation import FARTHEST, NEIGHBOURS, check_choice, check_count, check_finite
from secretballot.exceptions import CertificateError

RECORD_VOTES = "record-votes"
RECORD_VOTES_ASSUMPTIONS = (
    (
        "Of each unit one record votes, at most once at each public point and at no more of them"
        " than votes_per_record says."
    ),
    (
        "Where a record votes depends on that record and on public values alone; no other record"
        " has a say in it."
    ),
)
#: Terms of a release that also counts records which the public points do not cover: the share that
#: chance explains, and the noisy votes of such records, in as many cells as a record has votes.
COUNTED_UNCOVERED = ("expected_uncovered", "uncovered_votes")
#: The counts before the noise are at most this, by rule: how many records there were is private.
LARGEST_COUNT = 10**12


def is_by_record(certificate: Mapping[str, Any]) -> bool:
    """Return whether the release is one of votes that records cast for themselves."""
    return bool(certificate["mechanism"]["name"] == RECORD_VOTES)


def moved_counts(mechanism: Mapping[str, Any]) -> int:
    """Return how many counts one record moves by one, at most, as the mechanism's terms say.

    Raises
    ------
    ParameterError
        If a term is out of its range.
    """
    votes = check_count("votes_per_record", mechanism["votes_per_record"])
    relation = check_choice("neighbours", mechanism["neighbours"], NEIGHBOURS)
    # one that comes or goes brings its votes or takes them away; one that is replaced does both
    return votes if relation == "add-remove" else 2 * votes


def check_by_record(document: Mapping[str, Any]) -> None:
    """Refuse votes of records, whose terms were read, if they contradict the rest of the
    certificate.

    Raises
    ------
    CertificateError
        Naming the first contradiction.
    """
    mechanism = document["mechanism"]
    if document["released"]["n_teachers"]:
        raise CertificateError("Votes of records have no teachers; the certificate names some.")
    if mechanism["neighbours"] != document["neighbours"]:
        raise CertificateError(
            "The votes of records were priced under another relation than the release states."
        )
    if document["unit"] == "label":
        raise CertificateError("Records vote by record or by user, not by label.")
    # one more record of a user may change which of theirs votes, which moves twice as many counts
    if (document["unit"] == "user") != (document["composition"]["unit"] == "user"):
        raise CertificateError(
            "Votes of records by user and by record do not add to each other's promise."
        )
    if not mechanism["votes_per_record"] <= mechanism["n_queries"]:
        raise CertificateError("A record votes at more public points than there are.")
    if "expected_uncovered" in mechanism:
        _check_uncovered(mechanism)
    if "plan" in document:
        raise CertificateError("Votes of records are released as one table, without rounds.")


def _check_uncovered(mechanism: Mapping[str, Any]) -> None:
    """Refuse a share that is none, and votes of uncovered records that noise cannot reach."""
    share, votes = (mechanism[name] for name in COUNTED_UNCOVERED)
    if not 0 <= check_finite("expected_uncovered", share) <= 1:
        raise CertificateError("The expected share of uncovered records is no share.")
    far = FARTHEST * (mechanism["sigma"] + 1)
    if not (
        type(votes) is int and -far <= votes / mechanism["votes_per_record"] <= LARGEST_COUNT + far
    ):
        raise CertificateError(
            "The votes of uncovered records are no integer that noise of the stated size reaches."
        )
