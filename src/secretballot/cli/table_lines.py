"""What is printed of a run on a number, or on several labels."""

from typing import TYPE_CHECKING, Any

from secretballot.cli.outcome import print_folders, release_summary, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from secretballot.report.table_metrics import LabelsMetrics, NumberMetrics, TableMetrics
    from secretballot.runs.progress import Note
    from secretballot.runs.table_votes import TableOutcome


def table_summary(outcome: "TableOutcome", notes: list["Note"]) -> dict[str, Any]:
    """Return the outcome for machines; notes that depend on private data are left out."""
    certificate = outcome.certificate
    return {
        "method": "votes",
        "metrics": None if outcome.metrics is None else outcome.metrics.to_json(),
        "epsilon": certificate["epsilon"],
        "delta": certificate["delta"],
        "queries": outcome.queries,
        **release_summary(outcome, notes),
    }


def print_table_lines(outcome: "TableOutcome") -> None:
    """Print the outcome for a person: first what a person wants to know, last what there is to
    do."""
    certificate = outcome.certificate
    if outcome.metrics is not None:
        _print_metrics(outcome.metrics)
    price = f"epsilon {certificate['epsilon']:g}, delta {certificate['delta']:g}"
    say(f"guarantee    {price} for each {certificate['unit']}")
    say(f"released     {_released_words(certificate, outcome.queries)}")
    print_folders(outcome)


def _released_words(certificate: "Mapping[str, Any]", queries: int) -> str:
    """Return what was released, in words."""
    from secretballot.report.certificate.terms import stated

    terms = stated(certificate)
    points = f"at {queries:,} public points"
    if "labels" in terms:
        what = "labels" if terms["release"] == "labels" else "noisy counts of labels"
        if terms["release"] == "counts" and terms["ballot"] == "sets":
            what = "noisy counts of sets of labels"
        return f"{what}, {len(terms['labels'])} of them, {points}"
    if "rank" not in terms:
        return f"noisy means of the votes {points}"
    return f"quantiles of the votes, of rank {terms['rank']} of {terms['n_teachers']}, {points}"


def _print_metrics(metrics: "TableMetrics") -> None:
    from secretballot.report.table_metrics import NumberMetrics

    if isinstance(metrics, NumberMetrics):
        _print_number(metrics)
    else:
        _print_labels(metrics)


def _print_number(metrics: "NumberMetrics") -> None:
    if not metrics.beats_constant:
        below = metrics.squared_error_below_constant
        say(
            "no better than the best constant: 95 % interval of the difference in mean squared"
            f" error {below.low:+.4g} to {below.high:+.4g}"
        )
    say(
        f"error        {metrics.mean_absolute_error:.4g} in the mean (absolute), of the student on"
        f" the labelled test file of {metrics.rows:,} rows; always the median,"
        f" {metrics.median:.4g}: {metrics.constant_mean_absolute_error:.4g}"
    )
    say(
        f"             {metrics.root_mean_squared_error:.4g} root mean squared; always the mean,"
        f" {metrics.mean:.4g}: {metrics.constant_root_mean_squared_error:.4g}"
    )


def _print_labels(metrics: "LabelsMetrics") -> None:
    often = ", ".join(metrics.majority) or "no label"
    # said first: the figures below look good where a constant does as well
    if not metrics.beats_constant:
        low, high = metrics.above_majority.low, metrics.above_majority.high
        say(
            "the whole set is right no more often than the most frequent one: 95 % interval of the"
            f" difference {low:+.4f} to {high:+.4f}"
        )
    say(
        f"exact set    {metrics.exact:.4f} of the student on the labelled test file of"
        f" {metrics.rows:,} rows; always {often!r}: {metrics.majority_exact:.4f}"
    )
    width = max(10, *map(len, metrics.labels))
    say(f"{'label':<{width}}     rows  accuracy  majority  recall  precision")
    for name, one in metrics.labels.items():
        there = one.classes[1]
        recall, precision = (
            "-" if share is None else f"{share:.4f}" for share in (there.recall, there.precision)
        )
        say(
            f"{name:<{width}} {there.rows:>8,}  {one.accuracy:>8.4f}  {one.majority_accuracy:>8.4f}"
            f"  {recall:>6}  {precision:>9}"
        )
