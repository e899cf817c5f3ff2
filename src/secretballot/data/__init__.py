"""Tables, their public schema, and data to try things on."""

from secretballot.data.reference import (
    ADULT_CLASSES,
    ADULT_SCHEMA,
    ADULT_TARGET,
    Adult,
    Split,
    adult,
    adult_votes,
    data_folder,
    mnist,
    mnist_votes,
)
from secretballot.data.schema import Encoding, Schema
from secretballot.data.synthetic import (
    TsybakovThresholds,
    TwoClassSample,
    synthetic_massart,
    synthetic_two_class,
)

__all__ = [
    "ADULT_CLASSES",
    "ADULT_SCHEMA",
    "ADULT_TARGET",
    "Adult",
    "Encoding",
    "Schema",
    "Split",
    "TsybakovThresholds",
    "TwoClassSample",
    "adult",
    "adult_votes",
    "data_folder",
    "mnist",
    "mnist_votes",
    "synthetic_massart",
    "synthetic_two_class",
]
