"""Events as data, certified prices, their inverses, and filters. Everything rounds upward."""

from secretballot.accounting.calibration import (
    calibrate_gaussian,
    calibrate_label_gaussian,
    calibrate_pure,
    calibrate_sparse_vector,
    calibrate_vote_table,
    least_scale,
    needed_distance,
)
from secretballot.accounting.recipes import (
    WeakSignalWarning,
    check_useful,
    noisy_means,
    noisy_votes,
    table_labels,
    teacher_shape,
    vote_quantiles,
)
from secretballot.accounting.stream_recipes import (
    confident_labels,
    sparse_vector,
    stable_value,
    table_of_abstentions,
)
from secretballot.accounting.table_calibration import (
    calibrate_abstention_table,
    calibrate_stream,
)
from secretballot.core.events import (
    BinaryLabels,
    BoundedRange,
    ClassLabels,
    Confident,
    Counts,
    Pure,
    Sampled,
    SparseStream,
    StableTests,
    TableStream,
    VectorSum,
    event_in,
)
from secretballot.core.filters import BasicFilter, RenyiFilter, Totals
from secretballot.core.label_games import GaussianChances, TableChances
from secretballot.core.price import Price, PrivacyBudget, delta_upper, epsilon_upper, price

__all__ = [
    "BasicFilter",
    "BinaryLabels",
    "BoundedRange",
    "ClassLabels",
    "Confident",
    "Counts",
    "GaussianChances",
    "Price",
    "PrivacyBudget",
    "Pure",
    "RenyiFilter",
    "Sampled",
    "SparseStream",
    "StableTests",
    "TableChances",
    "TableStream",
    "Totals",
    "VectorSum",
    "WeakSignalWarning",
    "calibrate_abstention_table",
    "calibrate_gaussian",
    "calibrate_label_gaussian",
    "calibrate_pure",
    "calibrate_sparse_vector",
    "calibrate_stream",
    "calibrate_vote_table",
    "check_useful",
    "confident_labels",
    "delta_upper",
    "epsilon_upper",
    "event_in",
    "least_scale",
    "needed_distance",
    "noisy_means",
    "noisy_votes",
    "price",
    "sparse_vector",
    "stable_value",
    "table_labels",
    "table_of_abstentions",
    "teacher_shape",
    "vote_quantiles",
]
