"""Releases of sets of labels, or of numbers, that teachers vote for: answers on the certificate."""

import math
from collections.abc import Mapping
from typing import Any

from secretballot._validation import (
    FARTHEST,
    check_choice,
    check_count,
    check_finite,
    check_positive,
)
from secretballot.exceptions import CertificateError
from secretballot.privacy.accounting import (
    BinaryLabels,
    BoundedRange,
    Counts,
    Event,
    GaussianChances,
    VectorSum,
)
from secretballot.report.certificate.fields import is_sentence

LABEL_VOTES = "votes-of-labels"
NUMBER_VOTES = "votes-of-numbers"
_COMMON = {"name", "n_queries", "n_teachers", "budget", "rows", "answers"}
#: What the mechanisms say of themselves, by their names.
TABLE_FIELDS = {
    LABEL_VOTES: {*_COMMON, "labels", "ballot", "most_named", "release", "sigma"},
    NUMBER_VOTES: {*_COMMON, "target_range", "n_positions", "statistic", "rank", "noise"},
}
_MOST_LABELS, _MOST_IN_SETS, _MOST_POSITIONS = 10_000, 8, 2**16


def has_table(certificate: Mapping[str, Any]) -> bool:
    """Return whether teachers voted for sets of labels, or for numbers."""
    return certificate["mechanism"]["name"] in TABLE_FIELDS


def moved_by_query(mechanism: Mapping[str, Any]) -> int:
    """Return how many counts of one query a teacher moves by one, at most, in votes of labels.

    Raises
    ------
    ParameterError
        If a term is out of its range.
    """
    if check_choice("ballot", mechanism["ballot"], ("labels", "sets")) == "sets":
        return 2
    labels, cap = len(mechanism["labels"]), mechanism["most_named"]
    # a set gives way to another: what is in one of them alone moves
    return labels if cap is None else min(labels, 2 * check_count("most_named", cap))


def table_event(mechanism: Mapping[str, Any]) -> Event:
    """Return the event of a whole table.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.
    """
    queries = check_count("n_queries", mechanism["n_queries"])
    if mechanism["name"] == LABEL_VOTES:
        release = check_choice("release", mechanism["release"], ("labels", "counts"))
        changes, sigma = queries * moved_by_query(mechanism), mechanism["sigma"]
        # each label is a vote on two classes, which has a price of its own, by a game
        if release == "labels" and mechanism["ballot"] == "labels":
            chances = GaussianChances(sigma=sigma, n_teachers=mechanism["n_teachers"])
            return BinaryLabels(chances=chances, queries=changes)
        return Counts(sigma=sigma, shifts=changes)
    steps = check_count("n_positions", mechanism["n_positions"], minimum=2) - 1
    if check_choice("statistic", mechanism["statistic"], ("mean", "quantile")) == "quantile":
        return BoundedRange(epsilon=mechanism["noise"], count=queries)
    return VectorSum(
        sigmas=(mechanism["noise"],),
        squared_sensitivity=queries * steps**2,
        coordinates=queries,
    )


def check_table(document: Mapping[str, Any]) -> None:
    """Refuse answers that are more, or other, than the event pays for, or contradict the release.

    The fields are those of `TABLE_FIELDS` already.

    Raises
    ------
    CertificateError
        If mechanism, answers and the rest contradict each other.
    ParameterError
        If a parameter is out of its range.
    """
    mechanism, released = document["mechanism"], document["released"]
    if released["queries"] or released["answered"] or released["count_columns"]:
        raise CertificateError(
            "The answers stand in the mechanism, and no labels were released; the certificate"
            " lists some."
        )
    teachers = check_count("n_teachers", mechanism["n_teachers"])
    if document["unit"] == "label":
        raise CertificateError("Votes of teachers are about records or users, not about labels.")
    if "plan" in document:
        raise CertificateError("The answers are released as one table, without rounds.")
    width, low, high = _columns_and_bounds(mechanism, teachers)
    rows, answers = mechanism["rows"], mechanism["answers"]
    if not isinstance(rows, list) or not all(type(row) is int and row >= 0 for row in rows):
        raise CertificateError("rows is no list of rows of the public pool.")
    if not rows or len(set(rows)) < len(rows) or not len(rows) <= mechanism["n_queries"]:
        raise CertificateError("rows names none, one twice, or more than were paid for.")
    if not isinstance(answers, list) or len(answers) != len(rows):
        raise CertificateError("There is not one answer for each row.")
    # type(value) is int: True counts as an integer elsewhere, and as none in JSON
    for answer in answers:
        if not isinstance(answer, list) or len(answer) != width:
            raise CertificateError(f"An answer is no list of {width} integers.")
        if not all(type(value) is int and low <= value <= high for value in answer):
            raise CertificateError("An answer is no integer that the mechanism could have drawn.")


def _columns_and_bounds(mechanism: Mapping[str, Any], teachers: int) -> tuple[int, float, float]:
    """Return how many integers an answer has, and between which numbers they lie."""
    if mechanism["name"] == LABEL_VOTES:
        labels, sets = mechanism["labels"], mechanism["ballot"] == "sets"
        if not (isinstance(labels, list) and labels and all(map(is_sentence, labels))):
            raise CertificateError("labels is no list of names.")
        most = _MOST_IN_SETS if sets else _MOST_LABELS
        if len(set(labels)) < len(labels) or len(labels) > most:
            raise CertificateError("labels names one twice, or too many.")
        cap = mechanism["most_named"]
        if cap is not None and (sets or not check_count("most_named", cap) <= len(labels)):
            raise CertificateError("most_named is a cap that these labels do not have.")
        if mechanism["release"] == "labels":
            return len(labels), 0, 1
        far = FARTHEST * (check_positive("sigma", mechanism["sigma"]) + 1)
        return 2 ** len(labels) if sets else len(labels), -far, teachers + far
    bounds, steps = mechanism["target_range"], mechanism["n_positions"] - 1
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise CertificateError("target_range is no two numbers.")
    first, last = (check_finite("target_range", bound) for bound in bounds)
    # finite bounds may lie further apart than the largest double
    if not first < last or not math.isfinite(last - first) or steps >= _MOST_POSITIONS:
        raise CertificateError("target_range or n_positions is out of range.")
    rank = mechanism["rank"]
    if (rank is None) != (mechanism["statistic"] == "mean"):
        raise CertificateError("A quantile states its rank, and a mean none.")
    if rank is not None:
        if not check_count("rank", rank) <= teachers:
            raise CertificateError("The rank is above the number of teachers.")
        return 1, 0, steps
    far = FARTHEST * (check_positive("noise", mechanism["noise"]) + 1)
    return 1, -far, teachers * steps + far
