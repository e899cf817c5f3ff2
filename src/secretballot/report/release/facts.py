"""What the pages of a release are about: numbers and names, without a word around them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._rows import take_rows
from secretballot._typing import AnyArray, FloatArray, IntArray
from secretballot.exceptions import DataError
from secretballot.released import ReleasedLabels, ReleasedTable
from secretballot.report.certificate.coverage import Coverage, coverage_by_votes, coverage_on
from secretballot.report.certificate.methods import (
    EXPONENTIAL,
    LABEL_VOTES,
    NUMBER_VOTES,
    RECORD_VOTES,
    SUMS,
)
from secretballot.report.certificate.plan_checks import total_price
from secretballot.report.certificate.terms import stated
from secretballot.report.wording import at_most_text, percent_text, power_bound, shown

_FALSE_ALARMS = (0.001, 0.01, 0.05)
_MOST_POINTS = 10_000  # where there are more, every so many-th is tried
_KINDS = {
    EXPONENTIAL: "choice",
    RECORD_VOTES: "record-votes",
    LABEL_VOTES: "labels",
    NUMBER_VOTES: "numbers",
    **dict.fromkeys(SUMS, "sums"),
}
#: What stands in the place of a purpose where nobody stated one: the verb of the command line.
_VERBS = ("", "learn", "label", "choose")


@dataclass(frozen=True, eq=False)
class Facts:
    """Numbers and names of a release.

    Attributes
    ----------
    certificate, terms : dict
        The certificate, and what `stated` returns of it.
    kind : {"votes", "record-votes", "sums", "choice", "labels", "numbers"}
        The last two are tables.
    epsilon, delta : float
        Of the release and what was chosen for it.
    asked, answered : int
    classes : tuple
    counts : bool
        Whether noisy counts stand beside labels, with noise of `sigma`.
    about : list of pair of str
        What the curator said: of what, and the words, empty where nothing was said.
    near : pair of int or None
        How many answers are within one standard deviation of another one, and of how many.
    agreement : pair of int or None
        At how many answered points the student says what was released, and of how many.
    apart, deviation : float or None
        Root mean squared distance of the student's numbers from the released ones, and standard
        deviation of the noise on one of these, in the unit of the target.
    counted : tuple or None
        Coverage by the public points, the number of records, and its standard error.
    """

    certificate: dict[str, Any]
    terms: dict[str, Any]
    kind: str
    epsilon: float
    delta: float
    asked: int
    answered: int
    classes: tuple[Any, ...]
    counts: bool
    sigma: float
    about: list[tuple[str, str]]
    near: tuple[int, int] | None
    agreement: tuple[int, int] | None
    apart: float | None
    deviation: float | None
    counted: tuple[Coverage, float, float] | None

    @classmethod
    def of(
        cls, released: ReleasedLabels | ReleasedTable, student: Any = None, X_public: Any = None
    ) -> "Facts":
        """Return the facts of a release, and of its student on public points."""
        certificate, terms = released.certificate, stated(released.certificate)
        kind = _KINDS.get(terms["method"], "votes")
        epsilon, delta = total_price(certificate)
        classes = () if isinstance(released, ReleasedTable) else tuple(released.classes)
        given: dict[str, Any] = {"agreement": None, "apart": None, "deviation": None}
        if isinstance(released, ReleasedTable):
            asked = len(released.rows)
            given |= {"asked": asked, "answered": asked, "counts": False, "sigma": 0.0}
            if kind == "numbers":
                given["apart"] = _distance(released, student, X_public)
                given["deviation"] = _deviation_of_mean(terms)
            given |= {"near": _near_half(released, terms), "counted": None}
        else:
            own = kind in ("choice", "sums")
            given |= {
                "asked": len(released.queries),
                "answered": int(released.answered.sum()),
                "counts": released.noisy_counts is not None,
                "sigma": float(released.sigma or 0),
                "near": None if own else _near_ties(released),
                "agreement": None if own else _agreement(released, student, X_public),
                "counted": _counted(terms, kind, released.noisy_counts),
            }
        return cls(
            certificate=certificate,
            terms=terms,
            kind=kind,
            epsilon=epsilon,
            delta=delta,
            classes=classes,
            about=_about(certificate),
            **given,
        )

    @property
    def warning(self) -> str:
        """What to say aloud of public points that miss a part of the records; else nothing."""
        return self.counted[0].warning if self.counted and self.counted[0].is_poor else ""

    @property
    def factor(self) -> str:
        """By how much odds change, at most; a larger exponent would overflow."""
        return at_most_text(math.exp(min(self.epsilon, 700.0)))

    @property
    def tests(self) -> list[tuple[str, str]]:
        """How often a test is right at most, beside how often it is wrong."""
        return [
            (
                percent_text(100 * alarm),
                percent_text(100 * power_bound(self.epsilon, self.delta, alarm)),
            )
            for alarm in _FALSE_ALARMS
        ]


def answers_of_student(student: Any, points: Any, method: str = "predict") -> AnyArray | None:
    """Return what a student says of public points, None where it says nothing.

    It may be anybody's: a sentence or a picture less is no reason to lose a release. What memory
    there is, is no property of the student.
    """
    try:
        return np.asarray(getattr(student, method)(points))
    except MemoryError:
        raise
    except Exception:
        return None


def some_points(X_public: Any) -> Any:
    """Return at most ten thousand public points: every so many-th, without randomness."""
    step = max(1, math.ceil(X_public.shape[0] / _MOST_POINTS))
    return X_public.iloc[::step] if hasattr(X_public, "iloc") else X_public[::step]


def student_confidence(student: Any, X_public: Any) -> FloatArray:
    """Return the student's highest class probability on at most ten thousand public points.

    Raises
    ------
    DataError
        If the student gives no probabilities.
    """
    shares = answers_of_student(student, some_points(X_public), "predict_proba")
    if shares is None or shares.ndim != 2 or not shares.size or shares.dtype.kind != "f":
        raise DataError(f"{type(student).__name__} gives labels without probabilities.")
    confidence: FloatArray = shares.max(axis=1).astype(np.float64)
    if not np.isfinite(confidence).all():
        raise DataError(f"{type(student).__name__} gave probabilities that are no numbers.")
    return confidence


def name_of_learner(student: Any) -> str:
    """Return the name of what learnt; one that numbers the classes for it is left out."""
    match type(student).__name__:
        case "NumberedClassesClassifier":
            return type(student.classifier_).__name__
        case "NumberStudent":
            return _last_name(student.regressor)
        case "LabelsStudent":
            return " and ".join(dict.fromkeys(map(_last_name, student.students)))
    return type(student).__name__


def _last_name(learner: Any) -> str:
    """Return the name of a learner, of a pipeline that of its last step."""
    return type(learner.steps[-1][1] if hasattr(learner, "steps") else learner).__name__


def _about(certificate: dict[str, Any]) -> list[tuple[str, str]]:
    about, purpose = certificate.get("about", {}), str(certificate["purpose"]).strip()
    said = {"Purpose": "" if purpose in _VERBS else purpose}
    said |= {name.capitalize(): about.get(name, "") for name in ("controller", "contact")}
    if "title" in about:
        said["Account"] = certificate["composition"]["dataset"]
    return [(name, shown(words)) for name, words in said.items()]


def _counted(
    terms: dict[str, Any], kind: str, noisy_counts: IntArray | None
) -> tuple[Coverage, float, float] | None:
    if kind == "sums":
        return coverage_on(terms)
    if kind == "record-votes" and noisy_counts is not None:
        return coverage_by_votes(terms, noisy_counts)
    return None


def _near_ties(released: ReleasedLabels) -> tuple[int, int] | None:
    """Return at how many queries the lead is within the noise; None where no counts are there."""
    counts = released.noisy_counts
    if counts is None or not len(counts):
        return None
    sigma = float(released.sigma or 0)
    if released.n_classes == 2 and not released.by_record:
        of_second = counts if counts.ndim == 1 else counts[:, 1]
        close = np.abs(of_second - released.n_teachers / 2) <= sigma
    else:
        # the difference of two noisy counts carries both noises
        ordered = np.sort(counts, axis=1)
        close = ordered[:, -1] - ordered[:, -2] <= np.sqrt(2) * sigma
    return int(close.sum()), len(counts)


def _near_half(table: ReleasedTable, terms: dict[str, Any]) -> tuple[int, int] | None:
    """Return how many counts of labels are within the noise of half of the teachers; a set's own
    count is not read against that."""
    if terms.get("ballot") != "labels" or terms["release"] != "counts":
        return None
    close = np.abs(table.answers - terms["n_teachers"] / 2) <= terms["sigma"]
    return int(close.sum()), close.size


def _deviation_of_mean(terms: dict[str, Any]) -> float | None:
    if "rank" in terms:
        return None
    low, high = terms["target_range"]
    return float(terms["sigma"] / terms["n_teachers"] * (high - low) / (terms["n_classes"] - 1))


def _distance(table: ReleasedTable, student: Any, X_public: Any) -> float | None:
    if student is None or X_public is None:
        return None
    said = answers_of_student(student, take_rows(X_public, table.rows))
    if said is None or said.shape != (len(table.rows),) or said.dtype.kind not in "fiu":
        return None
    distance = float(np.sqrt(np.mean((said - table.values[:, 0]) ** 2)))
    return distance if math.isfinite(distance) else None


def _agreement(released: ReleasedLabels, student: Any, X_public: Any) -> tuple[int, int] | None:
    if student is None or X_public is None or not released.answered.any():
        return None
    answered = np.flatnonzero(released.answered)
    answered = answered[:: -(-len(answered) // _MOST_POINTS)]
    said = answers_of_student(student, take_rows(X_public, released.queries[answered]))
    wanted = [released.classes[index] for index in released.labels[answered]]
    if said is None or len(said) != len(wanted):
        return None
    said = said.astype(object)
    return sum(bool(one == other) for one, other in zip(said, wanted, strict=True)), len(wanted)
