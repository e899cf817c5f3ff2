"""What the page and the texts of a release say of a table of numbers, or of sets of labels."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from secretballot._rows import take_rows
from secretballot._typing import AnyArray, FloatArray
from secretballot.released import ReleasedTable, labels_of_table
from secretballot.report.certificate.answers_file import ANSWERS_FILE
from secretballot.report.certificate.methods import LABEL_VOTES, NUMBER_VOTES
from secretballot.report.certificate.terms import stated
from secretballot.report.pictures.tables import draw_numbers, draw_shares
from secretballot.report.table_metrics import LabelsMetrics, NumberMetrics, TableMetrics
from secretballot.report.wording import count_text, number_text, shown, value_text

_MOST_POINTS = 10_000  # where there are more, every so many-th is tried
_MOST_LABELS = 12  # that a sentence names

_OF_LABELS = (
    "For each point and label, or set of labels, the votes are counted, and random noise with a"
    " Gaussian distribution on the integers is added to every count before it is used."
)
_OF_MEANS = (
    "The numbers are cut to public bounds and put on a public grid. At each point they are added"
    " up, and random noise with a Gaussian distribution on the integers is added to the sum."
)
_OF_QUANTILES = (
    "The numbers are cut to public bounds and put on a public grid. At each point one number of the"
    " grid is drawn, by chances that fall with the number of votes that would have to change for it"
    " to be the one asked for."
)


def table_facts(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page says of a table: words by their place."""
    terms = stated(certificate)
    if terms["method"] == LABEL_VOTES:
        counts = terms["release"] == "counts"
        names = _names_text([shown(name) for name in terms["labels"]])
        return {
            "sentence": _OF_LABELS,
            "released": "noisy counts" if counts else "labels",
            "vote": "names the labels that it finds",
            "leave": "Noisy counts leave" if counts else "Labels alone leave",
            "possible": f"The labels were fixed beforehand: {names}.",
            "heading": "How often each label was released",
            "student_heading": "How often the student gives each label",
        }
    low, high = map(number_text, terms["target_range"])
    drawn = _statistic_words(terms)
    return {
        "sentence": _OF_MEANS if "rank" not in terms else _OF_QUANTILES,
        "released": drawn,
        "vote": "names a number",
        "leave": f"{drawn.capitalize()} leave",
        "possible": f"The bounds of the numbers were fixed beforehand: {low} to {high}.",
        "heading": "The released numbers",
        "student_heading": "What the student predicts",
    }


def table_words(certificate: Mapping[str, Any]) -> str:
    """Return what a model learnt from a table answers, in one clause."""
    terms = stated(certificate)
    if terms["method"] == LABEL_VOTES:
        names = _names_text([shown(name) for name in terms["labels"]])
        n_labels = count_text(len(terms["labels"]), "label")
        return f"A classifier that says of {n_labels} which are there: {names}."
    low, high = map(number_text, terms["target_range"])
    return f"A regressor that answers a number from {low} to {high}."


def _statistic_words(terms: Mapping[str, Any]) -> str:
    if "rank" not in terms:
        return "noisy means"
    middle = terms["rank"] in (terms["n_teachers"] // 2, terms["n_teachers"] // 2 + 1)
    return "drawn medians" if middle else "drawn quantiles"


def table_rows(terms: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the parameters of a table as pairs of words; its answers are in a file of their
    own."""
    # of labels one by one a query has a row for each
    each = len(terms["labels"]) if terms.get("ballot") == "labels" else 1
    rows = [
        ("queries it was calibrated for", value_text(terms["n_queries"] // each)),
        ("teachers it was calibrated for", value_text(terms["n_teachers"])),
    ]
    if terms["method"] == LABEL_VOTES:
        cap = terms["most_named"]
        ballot = "sets as classes" if terms["ballot"] == "sets" else "labels one by one"
        rows += [
            ("labels", _names_text([shown(name) for name in terms["labels"]])),
            ("ballot", ballot),
        ]
        rows += [] if cap is None else [("labels that a teacher names, at most", value_text(cap))]
        rows += [("what is released", shown(terms["release"]))]
        return [*rows, ("standard deviation of the noise", f"{number_text(terms['sigma'])} votes")]
    low, high = map(number_text, terms["target_range"])
    rows += [("bounds", f"{low} to {high}"), ("positions", value_text(terms["n_classes"]))]
    if "rank" not in terms:
        noise = "standard deviation of the noise on a sum of positions"
        return [*rows, ("what is released", "the mean"), (noise, number_text(terms["sigma"]))]
    rank = f"the vote of rank {value_text(terms['rank'])} from below"
    return [
        *rows,
        ("what is released", rank),
        ("price parameter of one draw", number_text(terms["epsilon"])),
    ]


def deviation_of_mean(terms: Mapping[str, Any]) -> float:
    """Return the standard deviation of the noise on one released mean, in the unit of the
    target."""
    low, high = terms["target_range"]
    return float(terms["sigma"] / terms["n_teachers"] * (high - low) / (terms["n_classes"] - 1))


def table_quality(table: ReleasedTable, student: Any, X_public: Any) -> list[str]:
    """Return sentences on how strong the noise was, and what the student makes of it.

    Parameters
    ----------
    table : ReleasedTable
    student : fitted estimator or None
        Trained on it.
    X_public : table of shape (n, n_features), or None
        Public points, of which rows were asked.
    """
    terms = stated(table.certificate)
    points = [
        f"{count_text(len(table.rows), 'public point')} got an answer, all at once. Noise was added"
        " before, so an answer may differ from what the records say."
    ]
    if terms["method"] == LABEL_VOTES:
        if terms["release"] == "counts" and terms["ballot"] == "labels":
            # a label's own count is read against half of the teachers; a set's is not
            near = np.abs(table.answers - terms["n_teachers"] / 2) <= terms["sigma"]
            points.append(
                f"{int(near.sum()):,} of {near.size:,} released counts are so close to half of the"
                " teachers that the noise may well have decided: within one standard deviation of"
                " it."
            )
        return points
    if "rank" not in terms:
        points.append(
            "The noise on one released number has a standard deviation of"
            f" {number_text(float(f'{deviation_of_mean(terms):.3g}'))}; it is the same at every"
            " point and 0 in the mean, so a student of many points averages it out."
        )
    apart = _student_distance(table, student, X_public)
    if apart is not None:
        points.append(
            f"The student's numbers and the released ones differ by {number_text(apart)}, root mean"
            " squared, at these points. The noise is part of that, and it learnt from them: this is"
            " no error of the student."
        )
    return points


def _student_distance(table: ReleasedTable, student: Any, X_public: Any) -> float | None:
    """Return the root mean squared distance of the student's numbers from the released ones."""
    said = (
        None
        if student is None or X_public is None
        else _student_numbers(student, X_public, table.rows)
    )
    if said is None or said.shape != (len(table.rows),):
        return None
    distance = float(np.sqrt(np.mean((said - table.values[:, 0]) ** 2)))
    return float(f"{distance:.3g}") if math.isfinite(distance) else None


def _student_numbers(student: Any, X_public: Any, rows: Any) -> FloatArray | None:
    """Return what a student says at rows of the public pool, None where it says nothing there."""
    try:
        return np.asarray(student.predict(take_rows(X_public, rows)), dtype=np.float64)
    except MemoryError:  # what memory there is, is no property of the student
        raise
    # the student may be anybody's; a sentence less is no reason to lose a release
    except Exception:
        return None


def table_pictures(
    table: ReleasedTable, student: Any, X_public: Any
) -> tuple[dict[str, str], dict[str, str]]:
    """Return pictures of the answers and of the student, and the sentence for each.

    Parameters, with the shape of the points, are those of `table_quality`.
    """
    terms = stated(table.certificate)
    of_labels = terms["method"] == LABEL_VOTES
    asked = count_text(len(table.rows), "public point")
    if of_labels:
        names, given = terms["labels"], _named_labels(table)
        pictures = {"votes": draw_shares("votes", names, given.mean(axis=0))}
        captions = {"votes": f"Share of the {asked} asked that each label was released for."}
        if terms["release"] == "counts":
            captions["votes"] += (
                " It is read off noisy counts, and noise draws such a share towards one half."
            )
    else:
        values, bounds = table.values[:, 0], terms["target_range"]
        pictures = {"votes": draw_numbers("votes", values, bounds, "released number")}
        captions = {"votes": f"The answers at {asked}; the dashed lines are the public bounds."}
        if "rank" not in terms:
            captions["votes"] += (
                " Noise is in them, of a standard deviation of"
                f" {number_text(float(f'{deviation_of_mean(terms):.3g}'))}; so they may lie beyond"
                " the bounds."
            )
    if student is None or X_public is None:
        captions["confidence"] = (
            "No student was trained in this run."
            if student is None
            else "No public points were given to draw it on."
        )
        return pictures, captions
    # every so many-th row, without randomness: the same pool gives the same page
    step = max(1, math.ceil(X_public.shape[0] / _MOST_POINTS))
    said = _student_numbers(student, X_public, np.arange(0, X_public.shape[0], step))
    if said is None or said.ndim != (2 if of_labels else 1) or not np.isfinite(said).all():
        captions["confidence"] = "The student gave no answers to draw."
        return pictures, captions
    tried = count_text(len(said), "public point")
    if of_labels:
        pictures["confidence"] = draw_shares("confidence", terms["labels"], said.mean(axis=0))
        captions["confidence"] = f"Share of {tried} for which the student gives each label."
    else:
        pictures["confidence"] = draw_numbers(
            "confidence", said, terms["target_range"], "predicted number"
        )
        captions["confidence"] = f"The student's numbers at {tried}, cut to the public bounds."
    return pictures, captions


def _named_labels(table: ReleasedTable) -> AnyArray:
    """Return which labels were released at every point, 0 and 1 of shape (n_asked, n_labels)."""
    return np.column_stack([one.labels for one in labels_of_table(table)])


def answers_section(certificate: Mapping[str, Any]) -> str:
    """Return what stands in the file of answers."""
    terms = stated(certificate)
    begins = f"{ANSWERS_FILE}: `query` is the row (from 0) of the public points, "
    if terms["method"] == NUMBER_VOTES:
        drawn = "drawn number" if "rank" in terms else "noisy mean"
        return f"{begins}`value` the {drawn} in the unit of the target."
    counts = ""
    if terms["release"] == "counts":
        counts = (
            "; `noisy_count[...]` are the released noisy counts, in votes, from which the labels"
            " are read off"
        )
    return f"{begins}and each label has a column with 1 where it was released, else 0{counts}."


def table_metrics_sentences(metrics: TableMetrics) -> list[str]:
    """Return sentences on how good a student of a table is, beside the best constant; first that
    it is no better, where it is so."""
    if isinstance(metrics, NumberMetrics):
        below = metrics.below_constant
        sentences = [
            f"The mean absolute error is {_short_number(metrics.absolute_error)} on"
            f" {metrics.rows:,} public labelled rows; always answering their median,"
            f" {_short_number(metrics.median)}, has"
            f" {_short_number(metrics.constant_absolute_error)}.",
            f"The root mean squared error is {_short_number(metrics.squared_error)}; always"
            f" answering their mean, {_short_number(metrics.mean)}, has"
            f" {_short_number(metrics.constant_squared_error)}.",
        ]
        if not metrics.beats_constant:
            sentences.insert(
                0,
                "The student is no better than the best constant: the interval of 95 % of the"
                f" difference in mean squared error is {below.low:+.4g} to {below.high:+.4g}.",
            )
        return sentences
    above = metrics.above_majority
    majority = _names_text([shown(name) for name in metrics.majority]) or "no label"
    sentences = [
        f"The whole set of labels is right at {metrics.exact:.4f} of {metrics.rows:,} public"
        f" labelled rows (Wilson's interval of 95 %: {metrics.interval.low:.4f} to"
        f" {metrics.interval.high:.4f}); always answering the most frequent set ({majority}) has"
        f" {metrics.majority_exact:.4f}."
    ]
    if not metrics.beats_constant:
        sentences.insert(
            0,
            "The student gives the whole set right no more often than always answering the most"
            f" frequent one: the interval of 95 % of the difference is {above.low:+.4f} to"
            f" {above.high:+.4f}. Look at the labels one by one.",
        )
    return sentences


def table_metrics_rows(metrics: TableMetrics | None) -> list[tuple[str, ...]]:
    """Return a table of the labels one by one, its header first; nothing of a number."""
    if not isinstance(metrics, LabelsMetrics):
        return []
    header = ("label", "rows with it", "accuracy", "more frequent answer", "recall", "precision")
    rows: list[tuple[str, ...]] = [header]
    for name, one in zip(metrics.names, metrics.labels, strict=True):
        there = one.classes[1]
        found = (there.recall, there.precision)
        rows.append(
            (
                shown(name),
                f"{there.rows:,}",
                f"{one.accuracy:.4f}",
                f"{one.majority_accuracy:.4f}",
                *("-" if share is None else f"{share:.3f}" for share in found),
            )
        )
    return rows


def _short_number(value: float) -> str:
    return number_text(float(f"{value:.4g}"))


def _names_text(names: list[str]) -> str:
    more = len(names) - _MOST_LABELS
    return ", ".join(names[:_MOST_LABELS]) + (f" and {more} more" if more > 0 else "")
