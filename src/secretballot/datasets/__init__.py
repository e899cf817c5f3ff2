"""Tables, their public schema, and data to try things on."""

from secretballot.datasets.reference import Split, a9a, adult_votes, data_folder, mnist, mnist_votes
from secretballot.datasets.schema import Encoding, Schema
from secretballot.datasets.synthetic import TwoClassSample, synthetic_massart, synthetic_two_class
from secretballot.datasets.tsybakov import TsybakovSample, TsybakovThresholds, synthetic_tsybakov
from secretballot.datasets.uci_adult import ADULT_CLASSES, ADULT_SCHEMA, ADULT_TARGET, Adult, adult

__all__ = [
    "ADULT_CLASSES",
    "ADULT_SCHEMA",
    "ADULT_TARGET",
    "Adult",
    "Encoding",
    "Schema",
    "Split",
    "TsybakovSample",
    "TsybakovThresholds",
    "TwoClassSample",
    "a9a",
    "adult",
    "adult_votes",
    "data_folder",
    "mnist",
    "mnist_votes",
    "synthetic_massart",
    "synthetic_tsybakov",
    "synthetic_two_class",
]
