"""Events as data, certified prices, their inverses, and filters. Everything rounds upward."""

from secretballot.core.errors import COMPOSITIONS
from secretballot.core.events import (
    BinaryLabels,
    BoundedRange,
    ClassLabels,
    Confident,
    Counts,
    Event,
    Pure,
    Sampled,
    SparseStream,
    StableTests,
    Stream,
    TableStream,
    VectorSum,
    event_in,
)
from secretballot.core.filters import BasicFilter, Filter, RenyiFilter, Totals, filter_for
from secretballot.core.label_games import CHANCE_BITS, GaussianChances, TableChances
from secretballot.core.price import Price, PrivacyBudget, delta_upper, epsilon_upper, price
from secretballot.privacy.accounting.calibration import (
    calibrate_argmax_gaussian,
    calibrate_bounded_range,
    calibrate_confident,
    calibrate_gaussian,
    calibrate_label_gaussian,
    calibrate_pure,
    calibrate_sparse_vector,
    calibrate_vector_sum,
    calibrate_vote_table,
    estimated_vote_table,
    needed_distance,
)
from secretballot.privacy.accounting.sample_calibration import calibrate_relabelled
from secretballot.privacy.accounting.stream_recipes import (
    confident_labels,
    sparse_vector,
    table_of_abstentions,
)
from secretballot.privacy.accounting.table_calibration import (
    calibrate_abstention_table,
    calibrate_stream,
)

__all__ = [
    "CHANCE_BITS",
    "COMPOSITIONS",
    "BasicFilter",
    "BinaryLabels",
    "BoundedRange",
    "ClassLabels",
    "Confident",
    "Counts",
    "Event",
    "Filter",
    "GaussianChances",
    "Price",
    "PrivacyBudget",
    "Pure",
    "RenyiFilter",
    "Sampled",
    "SparseStream",
    "StableTests",
    "Stream",
    "TableChances",
    "TableStream",
    "Totals",
    "VectorSum",
    "calibrate_abstention_table",
    "calibrate_argmax_gaussian",
    "calibrate_bounded_range",
    "calibrate_confident",
    "calibrate_gaussian",
    "calibrate_label_gaussian",
    "calibrate_pure",
    "calibrate_relabelled",
    "calibrate_sparse_vector",
    "calibrate_stream",
    "calibrate_vector_sum",
    "calibrate_vote_table",
    "confident_labels",
    "delta_upper",
    "epsilon_upper",
    "estimated_vote_table",
    "event_in",
    "filter_for",
    "needed_distance",
    "price",
    "sparse_vector",
    "table_of_abstentions",
]
