"""Settings that are evaluated, and the noise that each would bring."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from secretballot.accounting import (
    PrivacyBudget,
    Stream,
    TableStream,
    calibrate_abstention_table,
    calibrate_gaussian,
    calibrate_sparse_vector,
    confident_labels,
    needed_distance,
    noisy_votes,
    table_labels,
    teacher_shape,
)
from secretballot.accounting.recipes import Terms, deviation, table_deviation
from secretballot.accounting.stream_recipes import CONFIDENCE, THRESHOLD_SHARE, stream_mechanism
from secretballot.core.class_games import class_block
from secretballot.core.label_games import GaussianChances, game_work
from secretballot.core.mechanisms import (
    AbstentionTable,
    ConfidentLabels,
    NoisyVotes,
    SparseVector,
    TableLabels,
)
from secretballot.core.types import VoteShape
from secretballot.exceptions import Parameter, ParameterError
from secretballot.planning.plan.model import (
    INTERACTIVE,
    STREAMS,
    TABLE,
    THRESHOLDS,
    Setting,
    Task,
)

ACTIVE = "margin"  # how points are asked in rounds
TEACHER_STEP = 1.6  # between neighbouring numbers of teachers
QUERY_STEP = 1.7  # between neighbouring numbers of labels
LEAST_SHARD = 10  # records that a teacher should have, where that leaves a choice
LONGEST_STREAM = (
    # queries of a sparse vector; the forecast of longer ones takes minutes, for hardly more to
    # learn from
    20_000
)
LEAST_QUERIES = 5  # labels for each class
CONFIDENT_SHARE = 0.8  # of the teachers: the threshold of confident voting
ASKED_PER_ANSWER = 3
CORRECTING_SHARE = 0.25  # of the teachers: the threshold of interactive voting
ASKED_PER_CORRECTION = 2
LEAST_ASKED = 1.5  # where fewer may be asked for each answer, a refusal only wastes the answer
STOPS = (1, 3, 10, 30, 100, 300, 1000)  # T of a sparse vector
FEWER_STOPS = (10, 100)
SHORT_GAME = 2e8  # multiplications; a calibration plays some ten games
HALF = 0.5  # of the unanimous votes should be answered, or a stream is no choice
USUALLY_ANSWERED = 0.9  # chance at which a candidate's margin is stated
# A label of two classes tells 2 / pi of what its noisy count does where many are released, and all
# of it where one is; between, this power of their number fits the calibrated noise to 1 % at
# epsilon 0.01 to 4 and to some percent up to 20.
MANY_LABELS = math.sqrt(2 / math.pi)
LABELS_POWER = 0.6
# Of more classes, of the squared noise of their counts: of many labels, and over their number.
MANY_CLASS_LABELS, FEW_CLASS_LABELS = 0.755, 0.5
MANY_GAME_LABELS, FEW_GAME_LABELS = 0.658, 0.9  # where a game is played
MOST_TABLE_TEACHERS = 2_000  # a longer table takes seconds to find and is hardly sharper
SHORT_TABLE = 1_000  # labels, up to which the calibration of a table takes some seconds
SHORT_DIVERGENCE = 300.0  # votes of noise, up to which a calibration takes about a second


def teacher_counts(least: int, most: int, n_records: int) -> list[int]:
    """Return numbers of teachers K at even ratios, up to the most that leave each ten records."""
    top = max(least, min(most, n_records // LEAST_SHARD))
    steps = max(1, math.ceil(math.log(top / least) / math.log(TEACHER_STEP))) if top > least else 0
    return sorted({_two_digits(k, least, top) for k in np.geomspace(least, top, steps + 1)})


def _two_digits(value: float, least: int, most: int) -> int:
    """Return a number with two leading digits, within bounds."""
    digits = max(0, math.floor(math.log10(max(value, 1))) - 1)
    return int(min(max(round(value / 10**digits) * 10**digits, least), most))


def gaussian_settings(task: Task, n_teachers: int) -> Iterator[Setting]:
    """Yield labels of few to all public points, and noisy counts of all, a quarter, a sixteenth."""
    m, start = task.n_public, min(task.n_public, LEAST_QUERIES * task.n_classes)
    steps = math.ceil(math.log(m / start) / math.log(QUERY_STEP)) if m > start else 0
    for queries in sorted({_two_digits(q, start, m) for q in np.geomspace(start, m, steps + 1)}):
        yield Setting(n_teachers, "gaussian", "labels", queries)
    for queries in sorted({m, math.ceil(m / 4), math.ceil(m / 16)}):
        yield Setting(n_teachers, "gaussian", "counts", queries)


def laplace_settings(task: Task, n_teachers: int) -> Iterator[Setting]:
    """Yield labels and noisy counts of few to all public points: both cost the same.

    Noise grows with their number, so that fewer counts are known better than many.
    """
    for setting in gaussian_settings(task, n_teachers):
        if setting.release == "labels":
            yield Setting(n_teachers, "laplace", "labels", setting.n_queries)
            yield Setting(n_teachers, "laplace", "counts", setting.n_queries)


def confident_settings(task: Task, n_teachers: int) -> Iterator[Setting]:
    """Yield confident voting with few to many answers, three queries for each, a threshold of four
    fifths of the teachers; none without a delta, or where hardly anything could be refused."""
    # Gaussian noise needs a delta
    if not task.delta > 0:
        return
    labels = [
        one.n_queries for one in gaussian_settings(task, n_teachers) if one.release == "labels"
    ]
    for answers in labels[::2]:
        queries = min(task.n_public, ASKED_PER_ANSWER * answers)
        if queries >= LEAST_ASKED * answers:
            yield Setting(
                n_teachers,
                "confident",
                "labels",
                queries,
                threshold=max(1, round(CONFIDENT_SHARE * n_teachers)),
                max_answers=answers,
            )


def interactive_settings(task: Task, n_teachers: int) -> Iterator[Setting]:
    """Yield interactive voting with few to many answers, two queries for each, asked in rounds, and
    a threshold of a quarter of the teachers; none without a delta."""
    if not task.delta > 0:
        return
    labels = [
        one.n_queries for one in gaussian_settings(task, n_teachers) if one.release == "labels"
    ]
    for answers in labels:
        queries = ASKED_PER_CORRECTION * answers
        if queries < task.n_public:  # or a strategy has nothing to choose
            yield Setting(
                n_teachers,
                INTERACTIVE,
                "labels",
                queries,
                strategy=ACTIVE,
                threshold=max(1, round(CORRECTING_SHARE * n_teachers)),
                max_answers=answers,
            )


def noisy_settings(task: Task, n_teachers: int) -> Iterator[Setting]:
    """Yield settings that answer every query: under Gaussian noise, or under Laplace noise where
    delta is 0, which keeps no Gaussian noise, or that is asked for."""
    gaussian = task.delta > 0 and task.mechanism != "laplace"
    return (gaussian_settings if gaussian else laplace_settings)(task, n_teachers)


def stream_settings(
    task: Task, n_teachers: int, noise: "Noise", stops: tuple[int, ...]
) -> Iterator[Setting]:
    """Yield sparse vectors or tables of abstentions, whichever answers less stable queries or is
    asked for, as long as can be evaluated, that unanimous teachers would pass."""
    names = (task.mechanism,) if task.mechanism in STREAMS else STREAMS
    for stop in stops:
        event = noise.event(stop, names) if stop <= task.n_public else None
        # the distance that is needed grows with T, so no larger T has an event that passes either
        if event is None or needed_distance(event, HALF) > (n_teachers - 1) // 2:
            return
        longest = min(task.n_public, LONGEST_STREAM)
        name = "abstention-table" if isinstance(event, TableStream) else "sparse-vector"
        yield Setting(n_teachers, name, "labels", longest, max_abstentions=stop)


def table_setting(setting: Setting, task: Task) -> Setting | None:
    """Return labels by a table of chances in the place of labels under Gaussian noise; None where
    there is none."""
    gaussian_labels = setting.mechanism == "gaussian" and setting.release == "labels"
    if not gaussian_labels or task.n_classes != 2 or setting.n_teachers > MOST_TABLE_TEACHERS:
        return None
    return replace(setting, mechanism=TABLE)


class Noise:
    """The noise of settings at one budget; calibrations are kept.

    Labels of two classes are priced by a game, and a search for their noise plays some ten of them.
    Its outcome is well known where labels are many, so no plan waits for it.

    Parameters
    ----------
    budget : PrivacyBudget
    n_classes : int
    """

    def __init__(self, budget: PrivacyBudget, n_classes: int) -> None:
        self.budget, self._n_classes = budget, n_classes

    def terms(self, setting: Setting) -> Terms:
        """Return the mechanism of a setting for simulation, with Gaussian noise as `sigma` says.

        Raises
        ------
        ParameterError
            If no noise keeps the budget.
        """
        if setting.mechanism == "laplace":
            return self.laplace(setting)
        if setting.mechanism in THRESHOLDS:
            return self._confident(setting, exact=False)
        shape = self._shape(setting)
        if setting.mechanism == TABLE:
            return Terms(table_labels(self.budget, shape, exact=False), shape, self.budget)
        if setting.max_abstentions is None:
            counts = setting.release == "counts"
            noise = NoisyVotes(scale=self.sigma(setting), release="counts" if counts else "labels")
            return Terms(noise, shape, self.budget)
        stream = stream_mechanism(self.event_of(setting), setting.n_teachers)
        return Terms(stream, shape, self.budget)

    def calibrated(self, setting: Setting) -> Terms:
        """Return the mechanism that a run would use; that of `terms` where it takes long."""
        shape = self._shape(setting)
        if setting.mechanism in THRESHOLDS:
            return self._confident(setting, exact=True)
        if setting.mechanism == TABLE and setting.n_queries <= SHORT_TABLE:
            return Terms(table_labels(self.budget, shape), shape, self.budget)
        if setting.mechanism != "gaussian" or self._game_multiplications(setting) > SHORT_GAME:
            return self.terms(setting)
        sharp = noisy_votes(self.budget, shape, release=setting.release)
        return Terms(sharp, shape, self.budget)

    def laplace(self, setting: Setting) -> Terms:
        """Return calibrated votes under Laplace noise."""
        shape = self._shape(setting)
        mechanism = noisy_votes(self.budget, shape, release=setting.release, noise="laplace")
        return Terms(mechanism, shape, self.budget)

    def _shape(self, setting: Setting) -> VoteShape:
        return teacher_shape(setting.n_queries, self._n_classes, setting.n_teachers)

    def _confident(self, setting: Setting, *, exact: bool) -> Terms:
        """Return confident or interactive voting, calibrated where that is quick and asked for.

        Else with noise that is right to some per cent.
        """
        assert setting.max_answers is not None
        assert setting.threshold is not None
        shifts = (1 if self._n_classes == 2 else 2) * setting.max_answers
        share = THRESHOLD_SHARE
        # answers about a threshold, and labels, tell less than their counts
        labels = MANY_LABELS**2 if self._n_classes == 2 else MANY_GAME_LABELS
        whole = (MANY_LABELS**2 * share + labels * (1 - share)) / (1 - share)
        sigma = _unit_of_counts(self.budget) * math.sqrt(shifts * whole)
        ratio = math.sqrt(setting.n_queries / share / (shifts / (1 - share)))
        cost = game_work(GaussianChances(sigma=ratio * sigma), setting.n_queries)
        public: dict[str, Any] = {"method": "votes"}
        if setting.mechanism == INTERACTIVE:
            public["confidence"] = CONFIDENCE
        numbers: dict[str, Any] = {
            "threshold": setting.threshold,
            "max_answers": setting.max_answers,
        }
        shape = self._shape(setting)
        mechanism: ConfidentLabels
        if exact and cost <= 3 * SHORT_GAME:  # three or four games of each kind are played
            mechanism = confident_labels(self.budget, shape, **numbers)
        else:
            mechanism = ConfidentLabels(threshold_sigma=ratio * sigma, sigma=sigma, **numbers)
        return Terms(mechanism, shape, self.budget, public)

    def event(self, max_abstentions: int, names: tuple[str, ...] = STREAMS) -> Stream | None:
        """Return the calibrated sparse vector or table, whichever answers less stable queries.

        None where there is none.
        """
        found = [_calibrated_event(self.budget, name, max_abstentions) for name in names]
        return min((one for one in found if one is not None), key=needed_distance, default=None)

    def event_of(self, setting: Setting) -> Stream:
        """Return the calibrated stream of a setting that has a number of abstentions.

        Raises
        ------
        ParameterError
            If no noise keeps the budget.
        """
        assert setting.max_abstentions is not None
        event = _calibrated_event(self.budget, setting.mechanism, setting.max_abstentions)
        if event is None:
            raise ParameterError(
                f"No {setting.mechanism} voting with ",
                Parameter("max_abstentions"),
                f" {setting.max_abstentions} keeps the budget.",
            )
        return event

    def sigma(self, setting: Setting) -> float:
        """Return the sigma of Gaussian voting, in votes.

        For labels right to 2 %, of two classes where teachers are many.
        """
        n, unit = setting.n_queries, _unit_of_counts(self.budget)
        # one record moves two counts of several classes, and the single count of two
        if self._n_classes > 2:
            if setting.release == "counts":
                return unit * math.sqrt(2 * n)
            by_game = unit * math.sqrt(2 * n * min(1.0, MANY_GAME_LABELS + FEW_GAME_LABELS / n))
            if class_block(by_game, n) is not None:
                return by_game
            # by divergences, where no game is played
            return unit * math.sqrt(2 * n * min(1.0, MANY_CLASS_LABELS + FEW_CLASS_LABELS / n))
        if setting.release == "counts":
            return unit * math.sqrt(n)
        # a label of two classes tells less than its count, so it needs less noise
        part_of_noise = MANY_LABELS + (1 - MANY_LABELS) * n**-LABELS_POWER
        return float(unit * part_of_noise * math.sqrt(n))

    def _game_multiplications(self, setting: Setting) -> float:
        """Return what a game costs, in multiplications; 0 where none is played."""
        if setting.release == "counts":
            return 0.0
        if self._n_classes > 2:  # not counted: dear where there is much noise
            return 0.0 if self.sigma(setting) <= SHORT_DIVERGENCE else math.inf
        noise = GaussianChances(sigma=self.sigma(setting), n_teachers=setting.n_teachers)
        return game_work(noise, setting.n_queries)


def stated_noise(terms: Terms) -> float:
    """Return the standard deviation of the noise, of a table that of noise which tells an even vote
    as well, of a stream the margin that it answers nine times in ten, in votes."""
    mechanism = terms.mechanism
    if isinstance(mechanism, ConfidentLabels):
        return mechanism.sigma
    if isinstance(mechanism, TableLabels):
        return table_deviation(mechanism, terms.shape.n_teachers or 0)
    if isinstance(mechanism, NoisyVotes):
        return deviation(mechanism)
    assert isinstance(mechanism, SparseVector | AbstentionTable)
    needed = needed_distance(mechanism.stream_event(), USUALLY_ANSWERED)
    return 2 * math.ceil(needed) + 1.0 if math.isfinite(needed) else math.inf


@lru_cache(1024)
def _calibrated_event(budget: PrivacyBudget, name: str, max_abstentions: int) -> Stream | None:
    # kept, as is that there is none: a plan asks for the same few of them hundreds of times
    if not budget.delta > 0:
        return None
    calibrate = calibrate_sparse_vector if name == "sparse-vector" else calibrate_abstention_table
    try:
        return calibrate(budget, max_abstentions)
    except ParameterError:
        return None


@lru_cache(1024)
def _unit_of_counts(budget: PrivacyBudget) -> float:
    return calibrate_gaussian(budget, 100) / 10
