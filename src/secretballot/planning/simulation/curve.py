"""A task known from a learning curve, or a guess: one learner's accuracy by number of records."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq, least_squares
from scipy.special import log_ndtr, ndtr

from secretballot._typing import FloatArray
from secretballot._validation import check_count, check_finite, shown
from secretballot.accounting.recipes import Terms
from secretballot.exceptions import Parameter, ParameterError
from secretballot.planning.plan.model import Setting
from secretballot.planning.simulation.forecast import forecast
from secretballot.planning.simulation.votes import RunOutcome, VoteModel, VoteSample

# What is assumed where nothing is known. Studied on synthetic tasks of 2 to 10 classes and on
# scikit-learn's small tables, with logistic and tree teachers on 20 to 600 records.
USUAL_SLOPE = 0.5
SLOPE_SPREAD = 0.5  # deviation of log slope
POINT_SPREAD = 0.01  # deviation of a measured accuracy
GUESSED_LIMIT = 0.9
LIMIT_SPREAD = 0.3  # deviation of a guessed limit's distance from certainty, on the scale of votes
RECOVERED = 0.9  # part of the way from one teacher to the curve's limit that a vote goes
# trees have gone beyond, and networks of a few hundred digits not much more than half
RECOVERED_SPREAD = 0.2
# Right labels that teach as much as a release, beside its squared correlation with the truth:
# measured with logistic regression and students of counts on synthetic tasks, handwritten digits (8
# x 8) and tumours, it was a tenth to six tenths, and less where hardly anything can be learnt.
LABEL_EQUIVALENT = 0.25
LABEL_EQUIVALENT_SPREAD = 0.7  # deviation of its logarithm
FOLDS = (0.0, -1.3, 1.3, -0.6, 0.6)  # deviations from what is assumed, one for each fold
POINTS = 2000
MOST_RECORDS = 10**12  # of a curve; nobody has measured more
OFF = 0.03  # by so much a figure may lie off the fitted curve before it is stated
# where the highest of normal scores may lie, seen from the highest mean: beyond, chances are below
# 1e-11
ABOUT_THE_TOP = np.arange(-7.0, 8.5, 0.15)
BLOCK = 2_000_000  # numbers held at once
LEAST_SHARD = 5


@dataclass(frozen=True)
class LearningCurve:
    """Accuracy of one learner after s records: a power law from guessing towards a limit.

    The error is limit_error + (1 - 1 / C - limit_error) s^(-slope), that of guessing at one record.

    Attributes
    ----------
    n_classes : int
    limit : float
        Accuracy after any number of records, above 1 / C.
    slope : float

    Raises
    ------
    ParameterError
        If the limit or the slope is out of its range.

    Examples
    --------
    >>> curve = sb.planning.LearningCurve(n_classes=2, limit=0.9, slope=0.5)
    >>> curve.accuracy(100)
    0.86
    """

    n_classes: int
    limit: float
    slope: float = USUAL_SLOPE

    def __post_init__(self) -> None:
        check_count("n_classes", self.n_classes, minimum=2)
        if not 1 / self.n_classes < check_finite("limit", self.limit) <= 1:
            raise ParameterError(
                Parameter("limit"),
                f" is {self.limit}; give an accuracy above 1/{self.n_classes} and at most 1.",
            )
        if not 0 < check_finite("slope", self.slope) <= 5:
            raise ParameterError(
                Parameter("slope"), f" is {self.slope}; it must be above 0 and at most 5."
            )

    def accuracy(self, n_records: float) -> float:
        """Return the accuracy after so many records, at least one of them."""
        return self.towards(self.limit, n_records)

    def towards(self, limit: float, n_records: float) -> float:
        """Return the accuracy on the way to another limit."""
        return float(limit - (limit - 1 / self.n_classes) * max(1.0, n_records) ** -self.slope)

    @classmethod
    def fit(cls, accuracies: Mapping[int, float], n_classes: int) -> "LearningCurve":
        """Return the curve that fits measured accuracies, and a usual slope where they are few.

        Parameters
        ----------
        accuracies : mapping of int to float
            Accuracy at each number of records; one is enough.
        n_classes : int

        Raises
        ------
        ParameterError
            If there is no accuracy, or one lies outside of 1 / C to 1.
        """
        # limit and slope are fitted on scales without ends, so that no step leaves their range; the
        # last residual pulls the slope to the usual one, which alone decides where figures are few
        sizes, values = _checked_arrays(accuracies, check_count("n_classes", n_classes, minimum=2))
        guess = 1 / n_classes

        def misfit(unknown: FloatArray) -> FloatArray:
            limit, slope = _limit_at(unknown[0], guess), math.exp(unknown[1])
            predicted = limit - (limit - guess) * sizes**-slope
            return np.append(
                (predicted - values) / POINT_SPREAD,
                (unknown[1] - math.log(USUAL_SLOPE)) / SLOPE_SPREAD,
            )

        start = [
            float(np.clip(_clipped_logit((values.max() - guess) / (1 - guess)) + 0.5, -6, 6)),
            math.log(USUAL_SLOPE),
        ]
        found = least_squares(misfit, start, bounds=([-8, math.log(0.05)], [8, math.log(3.0)])).x
        return cls(n_classes, _limit_at(found[0], guess), math.exp(found[1]))


def _limit_at(place: float, guess: float) -> float:
    return guess + (1 - guess) / (1 + math.exp(-place))


def _clipped_logit(share: float) -> float:
    inside = min(max(share, 1e-3), 1 - 1e-3)
    return math.log(inside / (1 - inside))


def _checked_arrays(
    accuracies: Mapping[int, float], n_classes: int
) -> tuple[FloatArray, FloatArray]:
    if not isinstance(accuracies, Mapping) or not accuracies:
        raise ParameterError(
            Parameter("curve"),
            f" is {shown(accuracies)}; give an accuracy for at least one number of records.",
        )
    # percentages are the likeliest mistake, so the message names the rule for shares
    for size, value in accuracies.items():
        if check_count("a number of records of the curve", size) > MOST_RECORDS:
            raise ParameterError(
                Parameter("curve"),
                f" has the size {shown(size)}; give sizes of at most {MOST_RECORDS:.0e} records.",
            )
        if not 1 / n_classes < check_finite("an accuracy of the curve", value) <= 1:
            raise ParameterError(
                f"an accuracy of the curve is {shown(value)}; it must lie above a guess among"
                f" {n_classes} classes and be at most 1, as a share and not in percent."
            )
    sizes = sorted(accuracies)
    return np.array(sizes, dtype=np.float64), np.array(
        [accuracies[size] for size in sizes], dtype=np.float64
    )


class CurveModel(VoteModel):
    """Votes and students, imagined from a learning curve.

    At a point a teacher gives every class a score and votes for the highest. The true class has a
    lead of t over the others; every class has a deviation that all teachers share, by which points
    differ, and one of each teacher's own. So one teacher is right with chance R(t / sqrt(1 + nu^2))
    and the vote of infinitely many with chance R(t), where R(t) = P(t + g_0 > g_1, ..., g_(C-1))
    for standard normal g and nu is the size of a teacher's own deviation.

    Parameters
    ----------
    curve : LearningCurve, mapping of int to float, or None
        None: a guess.
    n_classes : int
    seed : int

    Raises
    ------
    ParameterError
        If a number is out of its range, or the curve is for another number of classes.

    Examples
    --------
    >>> model = sb.planning.CurveModel({100: 0.8, 1000: 0.9}, n_classes=2, seed=0)
    >>> sample = model.votes(n_teachers=50, n_records=5000, fold=0)
    >>> sample.counts.shape, bool((sample.counts.sum(axis=1) == 50).all())
    ((2000, 2), True)
    """

    n_folds = len(FOLDS)
    folds_average_out = False

    def __init__(
        self,
        curve: LearningCurve | Mapping[int, float] | None,
        *,
        n_classes: int,
        seed: int = 0,
    ) -> None:
        self.n_classes = check_count("n_classes", n_classes, minimum=2)
        self._seed = check_count("seed", seed, minimum=0)
        self.source = "guess" if curve is None else "curve"
        measured: int = 0
        if curve is None:
            self.curve = LearningCurve(n_classes, max(GUESSED_LIMIT, 1.5 / n_classes))
        elif isinstance(curve, LearningCurve):
            self.curve, measured = curve, 10
        else:
            self.curve, measured = LearningCurve.fit(curve, n_classes), len(curve)
        if self.curve.n_classes != self.n_classes:
            raise ParameterError(
                f"the curve is for {self.curve.n_classes} classes and the task has {n_classes};"
                " give one for as many."
            )
        self.constant_accuracy = 1 / self.n_classes
        # the more figures, the surer the limit; a curve given as such counts as ten of them
        self._spread = LIMIT_SPREAD / (1 + measured)
        off = _misfit_sentences(self.curve, curve) if isinstance(curve, Mapping) else ()
        self.assumptions = (
            *_assumption_sentences(self.curve, self.source),
            *off,
        )
        self._votes = lru_cache(256)(self._drawn_votes)

    def teacher_range(self, n_records: int) -> tuple[int, int]:
        """Return two teachers to as many as have `LEAST_SHARD` records each."""
        n = check_count("n_records", n_records)
        return min(2, n), max(1, n // LEAST_SHARD)

    def votes(self, n_teachers: int, n_records: int, fold: int) -> VoteSample:
        """Return votes of K teachers on shards of n / K records each."""
        return self._votes(n_teachers, n_records, fold)

    def _drawn_votes(self, n_teachers: int, n_records: int, fold: int) -> VoteSample:
        K, C = check_count("n_teachers", n_teachers), self.n_classes
        lead, own = self._lead_and_own(n_records / K, FOLDS[fold])
        # the same for every K, so that settings compare
        points = np.random.default_rng([self._seed, fold])
        truth = points.integers(C, size=POINTS)
        shared = points.standard_normal((POINTS, C))
        shared[np.arange(POINTS), truth] += lead
        chances = _arg_max_chances(shared / own)
        counts = np.random.default_rng([self._seed, fold, K, n_records]).multinomial(K, chances)
        return VoteSample(K, counts.astype(np.int64), truth)

    def _lead_and_own(self, shard: float, deviation: float) -> tuple[float, float]:
        """Return t and nu for teachers on such shards, in a fold that deviates so much."""
        C = self.n_classes
        limit = _lead_of_accuracy(self.curve.limit, C) * math.exp(self._spread * deviation)
        recovered = min(1.0, RECOVERED + RECOVERED_SPREAD * deviation)
        single = max(_lead_of_accuracy(self.curve.accuracy(shard), C), 1e-3)
        vote = single + recovered * max(0.0, limit - single)
        return vote, math.sqrt(max((vote / single) ** 2 - 1, 1e-4))

    def with_public(self, n_public: int) -> "CurveModel":
        """Return the model itself: it knows public points by the number of queries alone."""
        return self

    def simulate(self, setting: Setting, terms: Terms, n_records: int, fold: int) -> RunOutcome:
        """Return the curve's accuracy at the release's information, towards that of the vote."""
        sample = self.votes(setting.n_teachers, n_records, fold)
        expected = forecast(sample, terms)
        information = (
            LABEL_EQUIVALENT
            * math.exp(LABEL_EQUIVALENT_SPREAD * FOLDS[fold])
            * expected.information
        )
        student = max(1 / self.n_classes, self.curve.towards(expected.vote_accuracy, information))
        stated = expected.vote_accuracy, expected.label_accuracy, expected.answered
        return RunOutcome(student, *stated)


def _assumption_sentences(curve: LearningCurve, source: str) -> tuple[str, ...]:
    origin = (
        "This is a guess, not a measurement"
        if source == "guess"
        else "The curve goes on as a power law"
    )
    return (
        (
            f"{origin}: one learner is right on {curve.accuracy(30):.1%} of points after 30"
            f" records, {curve.accuracy(100):.1%} after 100, {curve.accuracy(1000):.1%} after"
            f" 1,000, {curve.limit:.1%} in the end."
        ),
        (
            f"A vote of many teachers goes about {RECOVERED:.0%} of the way from one teacher to the"
            " end of the curve."
        ),
        (
            "Points differ as if classes had normal scores, and at a point teachers err"
            " independently of each other."
        ),
        (
            "The student learns like a teacher would from as many right labels as the release"
            " stands for (a quarter of what its answers reveal of the truth), and in the end agrees"
            " with the vote."
        ),
        "All classes are equally frequent.",
    )


def _misfit_sentences(curve: LearningCurve, accuracies: Mapping[int, float]) -> tuple[str, ...]:
    """Return by how much the given figures are missed, as a sentence where it is much."""
    off = max(abs(curve.accuracy(size) - accuracy) for size, accuracy in accuracies.items())
    return (
        (f"The accuracies that were given lie up to {100 * off:.1f} points off this curve.",)
        if off > OFF
        else ()
    )


@lru_cache(4096)
def _lead_of_accuracy(accuracy: float, n_classes: int) -> float:
    """Return t with R(t) = accuracy, between 0 and 12."""
    if _right_chance(12.0, n_classes) <= accuracy:
        return 12.0
    if accuracy <= 1 / n_classes:
        return 0.0
    return float(brentq(lambda t: _right_chance(t, n_classes) - accuracy, -1e-9, 12.0))


def _right_chance(lead: float, n_classes: int) -> float:
    """Return R(lead): the chance that a normal score with this lead is the highest of C."""
    if n_classes == 2:
        return float(ndtr(lead / math.sqrt(2)))
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    return float(weights @ ndtr(nodes + lead) ** (n_classes - 1) / math.sqrt(2 * math.pi))


def _arg_max_chances(scores: FloatArray) -> FloatArray:
    """Return the chance of each class to be highest under standard normal noise; shape as given."""
    classes = scores.shape[1]
    if classes == 2:
        one = ndtr((scores[:, 1] - scores[:, 0]) / math.sqrt(2))
        return np.column_stack([1 - one, one])
    step = max(1, BLOCK // (classes * len(ABOUT_THE_TOP)))
    chances = np.concatenate(
        [_highest_chances(scores[i : i + step]) for i in range(0, len(scores), step)]
    )
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _highest_chances(scores: FloatArray) -> FloatArray:
    """Return ``int phi(x - s_c) prod_(j != c) Phi(x - s_j) dx`` for every class, on a grid.

    The other classes' product is that of all classes less the own factor, so the work grows with
    the classes and not with their square.
    """
    places = ABOUT_THE_TOP - (scores - scores.max(axis=1, keepdims=True))[:, :, None]
    below = log_ndtr(places)
    own = -(places**2) / 2 - below
    return np.asarray(np.exp(own + below.sum(axis=1, keepdims=True)).sum(axis=2))
