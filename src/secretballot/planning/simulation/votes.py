"""How teachers are believed to vote: the one thing that a forecast needs to know of a task."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from secretballot._typing import IntArray
from secretballot.accounting.recipes import Terms
from secretballot.planning.plan.model import Setting


@dataclass(frozen=True, eq=False)
class VoteSample:
    """Simulated votes of K teachers of one shard size on points like the public ones; no secret.

    Attributes
    ----------
    n_teachers : int
        K.
    counts : ndarray of int64, shape (n_points, n_classes)
        Votes; every row sums to K.
    truth : ndarray of int64, shape (n_points,)
        Index of the true class of each point, the label that a record there would carry.
    """

    n_teachers: int
    counts: IntArray
    truth: IntArray


@dataclass(frozen=True)
class RunOutcome:
    """What came of one simulated run.

    Attributes
    ----------
    student : float
        Accuracy of the student on new points.
    vote : float
        Share of points whose exact plurality is the true class.
    labels : float
        Share of the answers that are the true class; 0 where there are none.
    answered : float
        Queries that got an answer.
    """

    student: float
    vote: float
    labels: float
    answered: float


class VoteModel(ABC):
    """What is known of a task without private data: how teachers vote, and how students learn.

    A model repeats what it does in folds, as like each other as two runs of the real thing, so that
    the spread over folds says how sure a forecast is. It is deterministic given its seed.

    Attributes
    ----------
    source : str
        "stand-in", "curve" or "guess".
    n_classes : int
    n_folds : int
    folds_average_out : bool
        True where folds differ by the data they are measured on, so that their mean is surer than
        each; False where they stand for different beliefs, of which one is true.
    constant_accuracy : float
        Accuracy of always saying the most frequent class.
    assumptions : tuple of str
        What is taken to be so, in sentences.
    """

    source: str
    n_classes: int
    n_folds: int
    folds_average_out: bool = True
    constant_accuracy: float
    assumptions: tuple[str, ...]

    @abstractmethod
    def teacher_range(self, n_records: int) -> tuple[int, int]:
        """Return the least and the largest number of teachers that can be simulated."""

    @abstractmethod
    def votes(self, n_teachers: int, n_records: int, fold: int) -> VoteSample:
        """Return votes of K teachers on shards of n / K records each."""

    def can_simulate(self, setting: Setting) -> bool:
        """Return whether `simulate` can simulate a setting; by default those that ask at random."""
        return setting.strategy == "passive"

    def with_public(self, n_public: int) -> "VoteModel | None":
        """Return the model for another number of public points, None where it cannot tell."""
        return None

    @abstractmethod
    def simulate(self, setting: Setting, terms: Terms, n_records: int, fold: int) -> RunOutcome:
        """Return what comes of one simulated run of `setting` with this noise."""
