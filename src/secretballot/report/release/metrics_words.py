"""The metrics of a student in sentences, for the page and the model card; the majority comes first
where the student is no better."""

from secretballot.report.metrics import Metrics
from secretballot.report.wording import shown


def metrics_sentences(metrics: Metrics) -> list[str]:
    """Return sentences on how often the student is right, beside the most frequent class."""
    above, majority = metrics.above_majority, shown(metrics.majority)
    sentences = [
        f"Accuracy {metrics.accuracy:.4f} on {metrics.rows:,} public labelled rows (Wilson's"
        f" interval of 95 %: {metrics.interval.low:.4f} to {metrics.interval.high:.4f}); always"
        f" answering {majority} has {metrics.majority_accuracy:.4f}.",
        f"Balanced accuracy, the mean of the recalls, is {metrics.balanced_accuracy:.4f}."
        + ("" if metrics.auc is None else f" The area under the ROC curve is {metrics.auc:.4f}."),
    ]
    if metrics.calibration is not None:
        found = metrics.calibration
        sentences.append(
            f"Its answers say they are right with probability {found.said:.4f} in the mean, and"
            f" {metrics.accuracy:.4f} of them are; the expected calibration error is"
            f" {found.error:.4f}, the Brier score {found.brier:.4f}."
        )
    # a student that is no better is what a reader must learn first
    if not metrics.beats_majority and metrics.tells_apart:
        sentences.insert(
            0,
            f"The student is not right more often than always answering {majority}, but it tells"
            " classes apart: look at the balanced accuracy and at the recalls.",
        )
    elif not metrics.beats_majority:
        sentences.insert(
            0,
            f"The student is no better than the majority: the interval of 95 % of the difference to"
            f" always answering {majority} is {above.low:+.4f} to {above.high:+.4f}.",
        )
    return sentences
