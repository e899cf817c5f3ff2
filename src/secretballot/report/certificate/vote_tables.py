"""Releases of sets of labels, or of numbers, that teachers vote for: answers on the certificate."""

import math
from collections.abc import Mapping
from typing import Any

from secretballot._validation import FARTHEST, check_choice, check_count, check_finite
from secretballot.core.mechanisms import Mechanism, NoisyMeans, NoisyVotes
from secretballot.core.types import VoteShape
from secretballot.exceptions import CertificateError
from secretballot.report.certificate.fields import is_sentence

LABEL_VOTES = "votes-of-labels"
NUMBER_VOTES = "votes-of-numbers"
#: By method: kinds of mechanisms, public settings, and none that may be missing.
TABLE_FIELDS: dict[str, tuple[set[str], set[str], set[str]]] = {
    LABEL_VOTES: ({"noisy-votes"}, {"labels", "ballot", "most_named"}, set()),
    NUMBER_VOTES: ({"noisy-means", "vote-quantiles"}, {"target_range"}, set()),
}
_MOST_LABELS, _MOST_IN_SETS = 10_000, 8


def has_table(certificate: Mapping[str, Any]) -> bool:
    """Return whether teachers voted for sets of labels, or for numbers."""
    return certificate["public"]["method"] in TABLE_FIELDS


def table_columns(
    document: Mapping[str, Any], mechanism: Mechanism, shape: VoteShape
) -> tuple[int, int, float, float]:
    """Return for how many points a table is paid, how many integers the answer of each has, and
    between which numbers they lie.

    The settings are those of `TABLE_FIELDS` already.

    Raises
    ------
    CertificateError
        If settings and shape contradict each other.
    ParameterError
        If a setting is out of its range.
    """
    released, teachers = document["released"], shape.n_teachers or 0
    if released["queries"] or released["answered"] or released["count_columns"]:
        raise CertificateError(
            "The answers are released values, and no labels were released; the certificate lists"
            " some."
        )
    if "plan" in document:
        raise CertificateError("The answers are released as one table, without rounds.")
    if isinstance(mechanism, NoisyVotes):
        return _columns_of_labels(document["public"], mechanism, shape)
    if shape.moved != shape.n_queries:
        raise CertificateError("A teacher may vote for another number at every point.")
    bounds, steps = document["public"]["target_range"], shape.n_classes - 1
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise CertificateError("target_range is no two numbers.")
    first, last = (check_finite("target_range", bound) for bound in bounds)
    # finite bounds may lie further apart than the largest double
    if not first < last or not math.isfinite(last - first):
        raise CertificateError("target_range is out of range.")
    if not isinstance(mechanism, NoisyMeans):
        return shape.n_queries, 1, 0, steps
    far = FARTHEST * (mechanism.sigma + 1)
    return shape.n_queries, 1, -far, teachers * steps + far


def _columns_of_labels(
    public: Mapping[str, Any], mechanism: NoisyVotes, shape: VoteShape
) -> tuple[int, int, float, float]:
    labels, cap = public["labels"], public["most_named"]
    sets = check_choice("ballot", public["ballot"], ("labels", "sets")) == "sets"
    if not (isinstance(labels, list) and labels and all(map(is_sentence, labels))):
        raise CertificateError("labels is no list of names.")
    least, most = (2, _MOST_IN_SETS) if sets else (1, _MOST_LABELS)
    if len(set(labels)) < len(labels) or not least <= len(labels) <= most:
        raise CertificateError("labels names one twice, too many, or too few for sets.")
    if cap is not None and (sets or not check_count("most_named", cap) <= len(labels)):
        raise CertificateError("most_named is a cap that these labels do not have.")
    # a set gives way to another: what is in one of them alone moves
    rows, moved = len(labels), len(labels) if cap is None else min(len(labels), 2 * cap)
    if sets:
        rows, moved = 1, 1
    points = shape.n_queries // rows
    paid = shape.n_queries, shape.moved, shape.n_classes, mechanism.noise
    if paid != (points * rows, points * moved, 2 ** len(labels) if sets else 2, "gaussian"):
        raise CertificateError("The votes are not those of these labels, this ballot and this cap.")
    if mechanism.release == "labels":
        return points, len(labels), 0, 1
    far = FARTHEST * (mechanism.scale + 1)
    width = mechanism.answer_shape(shape)[1] * rows
    return points, width, -far, (shape.n_teachers or 0) + far
