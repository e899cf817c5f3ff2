"""What the pages of a release are about: numbers and names, without a word around them."""

import math
from functools import cached_property
from typing import Any

import numpy as np

from secretballot._rows import take_rows
from secretballot._typing import AnyArray, FloatArray
from secretballot.exceptions import DataError
from secretballot.released import ReleasedLabels, ReleasedSums, ReleasedTable
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
#: What takes the place of a purpose where nobody stated one: the verb of the command line.
_VERBS = ("", "learn", "label")


class Facts:
    """Numbers and names of a release, and of its student on public points.

    Attributes
    ----------
    certificate, terms : dict
        The certificate, and what `stated` returns of it.
    kind : {"votes", "record-votes", "sums", "choice", "labels", "numbers"}
        The last two are tables.
    target : {"class", "number", "labels"}
    epsilon, delta : float
        Of the release and what was chosen for it.
    asked, answered : int
    classes : tuple
    counts : bool
        Whether noisy counts are released beside labels, with noise of `sigma`.
    """

    def __init__(
        self, released: ReleasedLabels | ReleasedSums, student: Any = None, X_public: Any = None
    ) -> None:
        self._released, self._student, self._points = released, student, X_public
        self.certificate, self.terms = released.certificate, stated(released.certificate)
        self.kind = _KINDS.get(self.terms["method"], "votes")
        self.target = "number" if "bounds" in self.terms else "labels"
        if isinstance(released, ReleasedLabels):
            self.target = "class"
        self.epsilon, self.delta = total_price(self.certificate)
        self.classes: tuple[Any, ...] = ()
        self.counts, self.sigma = False, 0.0
        self.asked = self.answered = 0
        if isinstance(released, ReleasedTable):
            self.asked = self.answered = len(released.rows)
        elif isinstance(released, ReleasedLabels):
            self.asked, self.answered = len(released.queries), int(released.answered.sum())
            self.classes, self.counts = tuple(released.classes), released.noisy_counts is not None
            self.sigma = float(released.sigma or 0)

    @property
    def about(self) -> list[tuple[str, str]]:
        """What the curator stated: of what, and the words, empty where nothing was stated."""
        certificate = self.certificate
        about, purpose = certificate.get("about", {}), str(certificate["purpose"]).strip()
        said = {"Purpose": "" if purpose in _VERBS else purpose}
        said |= {name.capitalize(): about.get(name, "") for name in ("controller", "contact")}
        if "title" in about:
            said["Account"] = certificate["composition"]["dataset"]
        return [(name, shown(words)) for name, words in said.items()]

    @property
    def near(self) -> tuple[int, int] | None:
        """How many answers are within one standard deviation of another one, and of how many; None
        where no counts tell."""
        released, terms = self._released, self.terms
        if isinstance(released, ReleasedSums):
            # a set's own count is not read against half of the teachers
            if terms.get("ballot") != "labels" or terms["release"] != "counts":
                return None
            close = np.abs(np.array(terms["values"]) - terms["n_teachers"] / 2) <= terms["sigma"]
            return int(close.sum()), close.size
        counts = released.noisy_counts
        if counts is None or not len(counts):
            return None
        if released.n_classes == 2 and not released.by_record:
            of_second = counts if counts.ndim == 1 else counts[:, 1]
            close = np.abs(of_second - released.n_teachers / 2) <= self.sigma
        else:
            # the difference of two noisy counts carries both noises
            ordered = np.sort(counts, axis=1)
            close = ordered[:, -1] - ordered[:, -2] <= np.sqrt(2) * self.sigma
        return int(close.sum()), len(counts)

    @property
    def agreement(self) -> tuple[int, int] | None:
        """At how many answered points the student says what was released, and of how many."""
        released = self._released
        if isinstance(released, ReleasedSums) or not released.answered.any():
            return None
        answered = np.flatnonzero(released.answered)
        answered = answered[:: -(-len(answered) // _MOST_POINTS)]
        said = self._said_at(released.queries[answered])
        wanted = [released.classes[index] for index in released.labels[answered]]
        if said is None or len(said) != len(wanted):
            return None
        pairs = zip(said.astype(object), wanted, strict=True)
        return sum(bool(one == other) for one, other in pairs), len(wanted)

    @property
    def apart(self) -> float | None:
        """Root mean squared distance of the student's numbers from the released ones."""
        table = self._released
        if not isinstance(table, ReleasedTable) or self.kind != "numbers":
            return None
        said = self._said_at(table.rows)
        if said is None or said.shape != (len(table.rows),) or said.dtype.kind not in "fiu":
            return None
        distance = float(np.sqrt(np.mean((said - table.values[:, 0]) ** 2)))
        return distance if math.isfinite(distance) else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the noise on one released mean, in the unit of the target."""
        terms = self.terms
        if self.kind != "numbers" or "rank" in terms:
            return None
        low, high = terms["bounds"]
        return float(terms["sigma"] / terms["n_teachers"] * (high - low) / (terms["n_classes"] - 1))

    @cached_property
    def counted(self) -> tuple[Coverage, float, float] | None:
        """Coverage by the public points, the number of records, and its standard error."""
        released = self._released
        if self.kind == "sums":
            return coverage_on(self.terms)
        if isinstance(released, ReleasedSums) or released.noisy_counts is None:
            return None
        return coverage_by_votes(self.terms, released.noisy_counts)

    def _said_at(self, rows: Any) -> AnyArray | None:
        if self._student is None or self._points is None:
            return None
        return answers_of_student(self._student, take_rows(self._points, rows))

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
