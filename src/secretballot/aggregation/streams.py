"""The aggregator of a stream that stops at the T-th abstention, from its event."""

from secretballot.accounting import PrivacyBudget, Stream, TableStream
from secretballot.aggregation.abstention_table import AbstentionTableAggregator
from secretballot.aggregation.sparse_vector import SparseVectorAggregator

StreamAggregator = SparseVectorAggregator | AbstentionTableAggregator


def stream_aggregator(
    stream: Stream,
    n_queries: int,
    budget: PrivacyBudget,
    *,
    n_classes: int = 2,
    calibration: str = "given",
) -> StreamAggregator:
    """Return what answers as a stream does.

    Parameters
    ----------
    stream : SparseStream or TableStream
    n_queries, n_classes : int
    budget : PrivacyBudget
        Of a release; the door checks it.
    calibration : str
        How the noise was found, for the record.
    """
    if isinstance(stream, TableStream):
        return AbstentionTableAggregator(
            stream.order,
            stream.charge,
            stream.false_answer,
            stream.abstentions,
            n_queries=n_queries,
            n_classes=n_classes,
            budget=budget,
            calibration=calibration,
        )
    return SparseVectorAggregator(
        stream.threshold_scale,
        stream.query_scale,
        stream.threshold,
        stream.abstentions,
        n_queries=n_queries,
        n_classes=n_classes,
        budget=budget,
        calibration=calibration,
    )
