"""What is printed of a model's metrics: first that it is no better than a guess, where it is so."""

from typing import TYPE_CHECKING

from secretballot.cli.outcome import say

if TYPE_CHECKING:
    from secretballot.report.metrics import Metrics


_MOST_CLASSES = 12  # of a confusion table that a terminal shows


def share_text(share: float | None) -> str:
    """Return a share with four digits, or a dash."""
    return "-" if share is None else f"{share:.4f}"


def print_no_better(metrics: "Metrics | None", whose: str = "") -> None:
    """Print the warning that belongs above everything else, where it is due."""
    if metrics is None or metrics.beats_majority:
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


def print_metrics(metrics: "Metrics | None", what: str) -> None:
    """Print metrics for a person; `what` says whose they are."""
    if metrics is None:
        return
    say(f"accuracy     {metrics.accuracy:.4f} of {what} on the labelled test file")
    low, high = metrics.accuracy_interval.low, metrics.accuracy_interval.high
    say(
        f"             {low:.4f} to {high:.4f} (Wilson's interval of 95 %, {metrics.rows:,} rows);"
        f" always {metrics.majority!r}: {metrics.majority_accuracy:.4f}"
    )
    area = "" if metrics.auc is None else f"; area under the ROC curve {metrics.auc:.4f}"
    say(f"balanced     {metrics.balanced_accuracy:.4f}, the mean of the recalls{area}")
    if metrics.calibration is not None:
        found = metrics.calibration
        say(
            f"calibration  {found.said:.4f} said, {metrics.accuracy:.4f} right; expected error"
            f" {found.error:.4f}, Brier score {found.brier:.4f}"
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
