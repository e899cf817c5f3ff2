"""Events as data, certified prices, their inverses, and filters. Everything rounds upward."""

from secretballot._validation import COMPOSITIONS
from secretballot.privacy.accounting.budget import Price, PrivacyBudget
from secretballot.privacy.accounting.calibration import (
    calibrate_confident,
    calibrate_gaussian,
    calibrate_label_gaussian,
    calibrate_pure,
    calibrate_sparse_vector,
    calibrate_vector_sum,
    needed_distance,
)
from secretballot.privacy.accounting.events import (
    ConfidentEvent,
    Event,
    GaussianEvent,
    LabelGaussianEvent,
    PureEvent,
    RelabelledSampleEvent,
    SparseVectorEvent,
    StabilityEvent,
    VectorSumEvent,
    event_from_json,
)
from secretballot.privacy.accounting.filters import (
    BasicFilter,
    Filter,
    Grant,
    RenyiFilter,
    Totals,
    filter_for,
)
from secretballot.privacy.accounting.pricing import (
    delta_upper,
    epsilon_upper,
    failure_probability,
    price,
    renyi_divergence,
)
from secretballot.privacy.accounting.sample_calibration import calibrate_relabelled

__all__ = [
    "COMPOSITIONS",
    "BasicFilter",
    "ConfidentEvent",
    "Event",
    "Filter",
    "GaussianEvent",
    "Grant",
    "LabelGaussianEvent",
    "Price",
    "PrivacyBudget",
    "PureEvent",
    "RelabelledSampleEvent",
    "RenyiFilter",
    "SparseVectorEvent",
    "StabilityEvent",
    "Totals",
    "VectorSumEvent",
    "calibrate_confident",
    "calibrate_gaussian",
    "calibrate_label_gaussian",
    "calibrate_pure",
    "calibrate_relabelled",
    "calibrate_sparse_vector",
    "calibrate_vector_sum",
    "delta_upper",
    "epsilon_upper",
    "event_from_json",
    "failure_probability",
    "filter_for",
    "needed_distance",
    "price",
    "renyi_divergence",
]
