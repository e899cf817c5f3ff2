"""What is printed of a model's metrics: first that it is no better than a guess, where it is so."""

from typing import TYPE_CHECKING, Any

from secretballot.cli.outcome import say

if TYPE_CHECKING:
    from secretballot.report.metrics import Metrics
    from secretballot.report.table_metrics import LabelsMetrics, NumberMetrics, TableMetrics


_MOST_CLASSES = 12  # of a confusion table that a terminal shows


def share_text(share: float | None) -> str:
    """Return a share with four digits, or a dash."""
    return "-" if share is None else f"{share:.4f}"


def print_no_better(metrics: "Metrics | TableMetrics | None", whose: str = "") -> None:
    """Print the warning that belongs above everything else, where it is due."""
    from secretballot.report.metrics import Metrics

    if not isinstance(metrics, Metrics) or metrics.beats_majority:
        return
    if metrics.tells_apart:
        say(
            f"{whose}right less often than always answering {metrics.majority!r}, but it finds"
            f" what that would miss: balanced accuracy {metrics.balanced_accuracy:.4f}"
        )
        return
    say(
        f"{whose}no better than the majority: accuracy {metrics.accuracy:.4f}, and"
        f" {metrics.majority_accuracy:.4f} for always answering {metrics.majority!r}"
        f" (95 % interval of the difference: {metrics.above_majority.low:+.4f} to"
        f" {metrics.above_majority.high:+.4f})"
    )


def print_metrics_line(metrics: "Metrics | TableMetrics | None") -> None:
    """Print the figures of a model that a person looks for first."""
    found: Any = metrics
    if found is None:
        return
    if hasattr(found, "accuracy"):
        say(f"accuracy   {_accuracy_text(found)}")
    elif hasattr(found, "exact"):
        often = ", ".join(found.majority) or "no label"
        say(f"exact set  {found.exact:.3f}; always {often!r} {found.majority_exact:.3f}")
    else:
        say(
            f"error      {found.root_mean_squared_error:.4g} root mean squared; always the mean"
            f" {found.constant_root_mean_squared_error:.4g}; {found.mean_absolute_error:.4g}"
            " absolute"
        )


def _accuracy_text(metrics: "Metrics") -> str:
    low, high = metrics.accuracy_interval.low, metrics.accuracy_interval.high
    area = "" if metrics.auc is None else f"; AUC {metrics.auc:.3f}"
    return (
        f"{metrics.accuracy:.3f} ({low:.3f} to {high:.3f}); always {metrics.majority!r}"
        f" {metrics.majority_accuracy:.3f}; balanced {metrics.balanced_accuracy:.3f}{area}"
    )


def print_metrics(metrics: "Metrics | TableMetrics") -> None:
    """Print all metrics of one model."""
    from secretballot.report.metrics import Metrics
    from secretballot.report.table_metrics import NumberMetrics

    say(f"{metrics.rows:,} rows, taken to be public: the figures are exact")
    if isinstance(metrics, NumberMetrics):
        _print_number(metrics)
        return
    if not isinstance(metrics, Metrics):
        _print_labels(metrics)
        return
    brier = "" if metrics.calibration is None else f"; Brier {metrics.calibration.brier:.3f}"
    say(f"accuracy   {_accuracy_text(metrics)}{brier}")
    if metrics.calibration is not None:
        found = metrics.calibration
        say(
            f"calibrated {found.said:.3f} said, {metrics.accuracy:.3f} right; expected error"
            f" {found.error:.3f}"
        )
    _print_classes(metrics)


def _print_classes(metrics: "Metrics") -> None:
    """Print recall and precision of each class, and the confusion table beside them."""
    few = len(metrics.classes) <= _MOST_CLASSES
    names = [str(one.name) for one in metrics.classes]
    widths = [max(8, len(name)) for name in names]
    first = max(10, *map(len, names))
    answers = "  ".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
    say(f"{'class':<{first}}     rows  recall  precision{'   answered ' + answers if few else ''}")
    for one, counts in zip(metrics.classes, metrics.confusion, strict=True):
        row = "  ".join(f"{count:>{width},}" for count, width in zip(counts, widths, strict=True))
        say(
            f"{one.name!s:<{first}} {one.rows:>8,}  {share_text(one.recall):>6}"
            f"  {share_text(one.precision):>9}{'            ' + row if few else ''}"
        )


def _print_number(metrics: "NumberMetrics") -> None:
    if not metrics.beats_constant:
        below = metrics.squared_error_below_constant
        say(
            "no better than the best constant: 95 % interval of the difference in mean squared"
            f" error {below.low:+.4g} to {below.high:+.4g}"
        )
    say(
        f"error      {metrics.root_mean_squared_error:.4g} root mean squared; always the mean,"
        f" {metrics.mean:.4g}: {metrics.constant_root_mean_squared_error:.4g}"
    )
    say(
        f"           {metrics.mean_absolute_error:.4g} absolute; always the median,"
        f" {metrics.median:.4g}: {metrics.constant_mean_absolute_error:.4g}"
    )


def _print_labels(metrics: "LabelsMetrics") -> None:
    # first: the figures below look good where a constant does as well
    if not metrics.beats_constant:
        low, high = metrics.above_majority.low, metrics.above_majority.high
        say(
            "the whole set is right no more often than the most frequent one: 95 % interval of the"
            f" difference {low:+.4f} to {high:+.4f}"
        )
    print_metrics_line(metrics)
    width = max(10, *map(len, metrics.labels))
    say(f"{'label':<{width}}     rows  accuracy  majority  recall  precision")
    for name, one in metrics.labels.items():
        there = one.classes[1]
        recall, precision = share_text(there.recall), share_text(there.precision)
        say(
            f"{name:<{width}} {there.rows:>8,}  {one.accuracy:>8.4f}  {one.majority_accuracy:>8.4f}"
            f"  {recall:>6}  {precision:>9}"
        )
