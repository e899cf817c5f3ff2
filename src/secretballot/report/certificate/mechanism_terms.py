"""What a certificate's mechanism states, and the events that follow from it, to the last one."""

from collections.abc import Mapping
from typing import Any

from secretballot._validation import (
    check_choice,
    check_count,
    check_positive,
    check_probability,
    shown,
)
from secretballot.exceptions import CertificateError
from secretballot.privacy.accounting import (
    BinaryLabels,
    ClassLabels,
    Confident,
    Counts,
    Event,
    GaussianChances,
    Pure,
    Sampled,
    SparseStream,
    Stream,
    TableChances,
    TableStream,
)
from secretballot.report.certificate.by_record import COUNTED_UNCOVERED, RECORD_VOTES, moved_counts
from secretballot.report.certificate.chosen import EXPONENTIAL
from secretballot.report.certificate.moments import (
    CLASS_WEIGHTS,
    MOMENTS,
    MOMENTS_FIELDS,
    STARTED,
    SUMS_ALONE,
    has_moments,
    moments_event,
)
from secretballot.report.certificate.vote_tables import TABLE_FIELDS, has_table, table_event

_STREAM = ("threshold_scale", "query_scale", "threshold", "max_unstable", "refresh")
_TABLE = ("order", "charge", "false_answer", "max_unstable")
_SAMPLE = ("sampled", "out_of", "neighbours", "relabel_epsilon")
_COMMON = ("name", "n_queries", "n_classes", "calibration", "budget")
_CONFIDENT = ("threshold", "threshold_sigma", "sigma", "max_answers")

# Every field that `Aggregator.describe` writes; a choice also carries words on its candidates.
_FIELDS = {
    "gaussian": {*_COMMON, "sigma", "release", "n_teachers"},
    "laplace": {*_COMMON, "scale", "release"},
    "vote-table": {*_COMMON, "weights", "n_teachers"},
    "confident": {*_COMMON, *_CONFIDENT},
    "interactive": {*_COMMON, *_CONFIDENT, "confidence"},
    "sparse-vector": {*_COMMON, *_STREAM},
    "abstention-table": {*_COMMON, *_TABLE},
    "relabelled-sample": {*_COMMON, *_STREAM, *_SAMPLE},
    **MOMENTS_FIELDS,
    **TABLE_FIELDS,
    RECORD_VOTES: {*_COMMON, "sigma", "votes_per_record", "neighbours"},
}
#: Mechanisms without classes: what they release stands in their own fields.
_WITHOUT_CLASSES = (*SUMS_ALONE, *TABLE_FIELDS)
#: Mechanisms that refuse a query as they like, and stop after a number of answers.
ANSWERS_SOME = ("confident", "interactive")
_CALIBRATIONS = ("given", "tight", "paper", "liu2021", "btt2018")


def check_terms(document: Mapping[str, Any]) -> None:
    """Refuse a mechanism that is unknown, has other fields, or contradicts what was released.

    Raises
    ------
    CertificateError
        Naming the first such field.
    ParameterError
        If a parameter is out of its range.
    """
    mechanism, released = document["mechanism"], document["released"]
    name = mechanism["name"]
    if (not released["classes"]) != (name in _WITHOUT_CLASSES):
        raise CertificateError(
            "Labels have two or more classes, and sums or tables alone have none; the certificate"
            " says otherwise."
        )
    if name == EXPONENTIAL:
        return
    if name not in _FIELDS:
        raise CertificateError(
            f"The mechanism {shown(name)} is unknown to this program; update secretballot."
        )
    different = set(mechanism) ^ _fields_of(mechanism)
    if different:
        raise CertificateError(
            f"The mechanism {name!r} lacks or adds the field {shown(min(different))}."
        )
    if "calibration" in mechanism:
        check_choice("calibration", mechanism["calibration"], _CALIBRATIONS)
    budget = mechanism["budget"]
    same = budget == {"epsilon": document["epsilon"], "delta": document["delta"]}
    if not same or any(
        isinstance(number, bool) for number in budget.values()
    ):  # true is equal to 1
        raise CertificateError("The mechanism states another budget than the certificate.")
    if name not in _WITHOUT_CLASSES and (
        check_count("n_classes", mechanism["n_classes"], minimum=2) != len(released["classes"])
    ):
        raise CertificateError("The mechanism states another n_classes than the certificate.")
    if mechanism.get("n_teachers") not in (None, released["n_teachers"]):
        raise CertificateError("The mechanism states another n_teachers than the certificate.")


def _fields_of(mechanism: Mapping[str, Any]) -> set[str]:
    """Return the fields that a known mechanism must have, and no other."""
    counted = mechanism["name"] == RECORD_VOTES and not set(COUNTED_UNCOVERED).isdisjoint(mechanism)
    optional = set(COUNTED_UNCOVERED) if counted else set()
    if mechanism["name"] == "relabelled-sample" and _has_table(mechanism):
        return {*_COMMON, *_TABLE, *_SAMPLE}
    if mechanism["name"] == MOMENTS:
        optional |= {STARTED, CLASS_WEIGHTS} & {*mechanism}
    return _FIELDS[mechanism["name"]] | optional


def event_of_terms(document: Mapping[str, Any]) -> Event:
    """Return the event of a mechanism whose fields were checked, as the accountant prices it.

    Parameters
    ----------
    document : mapping
        The certificate.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.
    """
    mechanism, queries = document["mechanism"], document["mechanism"].get("n_queries")
    name = mechanism["name"]
    if has_table(document):
        return table_event(mechanism)
    if has_moments(document):
        return moments_event(mechanism, document["neighbours"])
    if name in ANSWERS_SOME:
        return _confident_event(mechanism, document["released"]["n_teachers"])
    if name == "vote-table":
        if mechanism["n_classes"] != 2:
            raise CertificateError("A table of chances is for two classes, and there are others.")
        chances = {key: mechanism[key] for key in ("weights", "n_teachers")}
        return BinaryLabels(chances=TableChances(**chances), queries=queries)
    if name == RECORD_VOTES:
        return Counts(sigma=mechanism["sigma"], shifts=moved_counts(mechanism))
    if name in ("gaussian", "laplace"):
        return _noisy_event(mechanism)
    # what is left asks a stream of queries, alone or with a relabelled sample
    stream = _stream_of(mechanism)
    if name != "relabelled-sample":
        return stream
    return Sampled(
        stream=stream,
        sampled=mechanism["sampled"],
        out_of=mechanism["out_of"],
        relation=mechanism["neighbours"],
        relabel_epsilon=mechanism["relabel_epsilon"],
    )


def _stream_of(mechanism: Mapping[str, Any]) -> Stream:
    """Return the event of a stream that stops at the T-th abstention."""
    by_table = _has_table(mechanism)
    kind = TableStream if by_table else SparseStream
    fields = {key: mechanism[key] for key in (_TABLE if by_table else _STREAM)}
    return kind(abstentions=fields.pop("max_unstable"), **fields)


def _has_table(mechanism: Mapping[str, Any]) -> bool:
    """Return whether a stream answers by a table of chances, as its fields say."""
    return "charge" in mechanism


def _noisy_event(mechanism: Mapping[str, Any]) -> Event:
    """Return the event of voting under Gaussian or Laplace noise."""
    release = check_choice("release", mechanism["release"], ("labels", "counts"))
    queries, binary = check_count("n_queries", mechanism["n_queries"]), mechanism["n_classes"] == 2
    # one teacher moves one vote: one count of two classes, two counts of more
    moved = queries if binary else 2 * queries
    if mechanism["name"] == "laplace":
        return Pure(epsilon=1 / check_positive("scale", mechanism["scale"]), count=moved)
    sigma = mechanism["sigma"]
    if release == "counts":
        return Counts(sigma=sigma, shifts=moved)
    # labels alone have a price of their own, by a game
    if binary:
        chances = GaussianChances(sigma=sigma, n_teachers=mechanism["n_teachers"])
        return BinaryLabels(chances=chances, queries=queries)
    return ClassLabels(sigma=sigma, queries=queries)


def _confident_event(mechanism: Mapping[str, Any], n_teachers: int) -> Confident:
    """Return the event of confident or interactive voting."""
    # the price does not depend on these two, but a reader does
    threshold = check_count("threshold", mechanism["threshold"])
    if not threshold <= n_teachers:
        raise CertificateError(
            f"The mechanism states a threshold of {threshold} votes, more than there were teachers."
        )
    if "confidence" in mechanism:
        check_probability("confidence", mechanism["confidence"])
    return Confident(
        threshold_sigma=mechanism["threshold_sigma"],
        sigma=mechanism["sigma"],
        queries=mechanism["n_queries"],
        answers=mechanism["max_answers"],
        n_classes=mechanism["n_classes"],
    )


def count_columns_of(mechanism: Mapping[str, Any]) -> int:
    """Return how many noisy counts for each query the mechanism releases."""
    if mechanism["name"] == RECORD_VOTES:
        return int(mechanism["n_classes"])
    if mechanism.get("release") != "counts" or mechanism["name"] in TABLE_FIELDS:
        return 0
    return 1 if mechanism["n_classes"] == 2 else int(mechanism["n_classes"])


def most_queries(mechanism: Mapping[str, Any]) -> int | None:
    """Return the most queries that are paid for; None for one model, which answers all."""
    if mechanism["name"] in (EXPONENTIAL, *MOMENTS_FIELDS):
        return None
    return check_count("n_queries", mechanism["n_queries"])


def noise_of_counts(mechanism: Mapping[str, Any]) -> float:
    """Return how far noise on counts reaches usually, in votes, of a checked mechanism."""
    if mechanism["name"] == "laplace":
        return 1.5 * check_positive("scale", mechanism["scale"])  # above its standard deviation
    return float(mechanism["sigma"])


def most_answers(mechanism: Mapping[str, Any]) -> int | None:
    """Return the most answers that are paid for, where it is fewer than the queries; else None."""
    if mechanism["name"] not in ANSWERS_SOME:
        return None
    return check_count("max_answers", mechanism["max_answers"])


def most_abstentions(mechanism: Mapping[str, Any]) -> int:
    """Return after how many abstentions nothing more is answered; 0 where there are none."""
    return int(mechanism.get("max_unstable", 0))
