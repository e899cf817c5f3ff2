"""Settings that are evaluated, and the noise that each would bring."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from secretballot.accounting import (
    PrivacyBudget,
    calibrate_abstention_table,
    calibrate_gaussian,
    calibrate_sparse_vector,
    calibrate_stream,
    needed_distance,
    noisy_votes,
    table_labels,
    teacher_shape,
)
from secretballot.accounting.calibration import MANY_LABELS, noise_share
from secretballot.accounting.recipes import THRESHOLD_SHARE, Terms, deviation, stream_mechanism
from secretballot.core.class_games import class_block
from secretballot.core.events import Stream, TableStream
from secretballot.core.mechanisms import (
    AbstentionTable,
    ConfidentLabels,
    Mechanism,
    NoisyVotes,
    SparseVector,
)
from secretballot.exceptions import ParameterError
from secretballot.planning.plan_model import CONFIDENT, STREAMS, TABLE, Setting, Task

ACTIVE = "margin"  # how points are asked in rounds
_TEACHER_STEP = 2.0  # between neighbouring numbers of teachers
_QUERY_STEP = 1.7  # between neighbouring numbers of labels
_LEAST_SHARD = 10  # records that a teacher should have, where that leaves a choice
_LONGEST_STREAM = 20_000  # queries of a stream: longer ones take minutes, and teach hardly more
_LEAST_QUERIES = 5  # labels for each class
_CONFIDENT_SHARE = 0.8  # of the teachers: the threshold of confident voting
_ASKED_PER_ANSWER = 3
_LEAST_ASKED = 1.5  # where fewer may be asked for each answer, a refusal only wastes the answer
STOPS = (1, 10, 100)  # abstentions of a stream
_HALF = 0.5  # of the unanimous votes should be answered, or a stream is no choice
_USUALLY_ANSWERED = 0.9  # chance at which a candidate's margin is stated
# Labels of more classes, of the squared noise of their counts: of many labels, and over their
# number; where a game is played, and by divergences.
GAME_LABELS, DIVERGENCE_LABELS = (0.658, 0.9), (0.755, 0.5)
_MOST_TABLE_TEACHERS = 2_000  # a longer table takes seconds to find and is hardly sharper


def teacher_counts(least: int, most: int, n_records: int) -> list[int]:
    """Return numbers of teachers K at even ratios, up to the most that leave each ten records."""
    top = max(least, min(most, n_records // _LEAST_SHARD))
    return _spaced(least, top, _TEACHER_STEP)


def _spaced(least: int, most: int, step: float) -> list[int]:
    """Return numbers between two ends at even ratios of at most `step`, of two leading digits."""
    if not most > least:
        return [least]
    steps = math.ceil(math.log(most / least) / math.log(step))
    return sorted({_two_digits(one, least, most) for one in np.geomspace(least, most, steps + 1)})


def _two_digits(value: float, least: int, most: int) -> int:
    """Return a number with two leading digits, within bounds."""
    digits = max(0, math.floor(math.log10(max(value, 1))) - 1)
    return int(min(max(round(value / 10**digits) * 10**digits, least), most))


def settings_of(task: Task, n_teachers: int, *, thorough: bool = True) -> Iterator[Setting]:
    """Yield the settings that are ranked by a forecast: those that answer every query and, where it
    should be thorough, those that refuse some."""
    yield from _noisy_settings(task, n_teachers)
    if thorough:
        yield from _stream_settings(task, n_teachers)
        yield from _confident_settings(task, n_teachers)


def _label_counts(task: Task) -> list[int]:
    """Return numbers of labels, from few to all public points."""
    return _spaced(min(task.n_public, _LEAST_QUERIES * task.n_classes), task.n_public, _QUERY_STEP)


def _noisy_settings(task: Task, n_teachers: int) -> Iterator[Setting]:
    """Yield settings that answer every query: labels of few to all public points, and noisy counts
    of all, a quarter, a sixteenth.

    Under Laplace noise where delta is 0, which keeps no Gaussian noise: then labels and counts cost
    the same, and fewer counts are known better than many.
    """
    labels, m = _label_counts(task), task.n_public
    gaussian = task.delta > 0
    counts = sorted({m, math.ceil(m / 4), math.ceil(m / 16)}) if gaussian else labels
    for release, sizes in (("labels", labels), ("counts", counts)):
        for size in sizes:
            yield Setting(n_teachers, "gaussian" if gaussian else "laplace", release, size)


def _confident_settings(task: Task, n_teachers: int) -> Iterator[Setting]:
    """Yield confident voting with few to many answers; none without a delta, or where hardly
    anything could be refused."""
    # Gaussian noise needs a delta
    for answers in _label_counts(task)[::2] if task.delta > 0 else ():
        queries = min(task.n_public, _ASKED_PER_ANSWER * answers)
        if queries >= _LEAST_ASKED * answers:
            threshold = max(1, round(_CONFIDENT_SHARE * n_teachers))
            plain = Setting(n_teachers, CONFIDENT, "labels", queries)
            yield replace(plain, threshold=threshold, max_answers=answers)


def _stream_settings(task: Task, n_teachers: int) -> Iterator[Setting]:
    """Yield sparse vectors or tables of abstentions, whichever answers less stable queries, as long
    as can be evaluated, that unanimous teachers would pass."""
    for stop in STOPS:
        event = _stream(task.budget, None, stop) if stop <= task.n_public else None
        # the distance that is needed grows with T, so no larger T has an event that passes either
        if event is None or needed_distance(event, _HALF) > (n_teachers - 1) // 2:
            return
        name = "abstention-table" if isinstance(event, TableStream) else "sparse-vector"
        longest = min(task.n_public, _LONGEST_STREAM)
        yield Setting(n_teachers, name, "labels", longest, max_abstentions=stop)


def _stream(budget: PrivacyBudget, name: str | None, max_abstentions: int) -> Stream | None:
    """Return the calibrated stream of a name, else the better of both; None where there is none."""
    calibrate: Any = {
        "sparse-vector": calibrate_sparse_vector,
        "abstention-table": calibrate_abstention_table,
    }.get(name or "", calibrate_stream)
    try:
        return calibrate(budget, max_abstentions) if budget.delta > 0 else None
    except ParameterError:
        return None


def tables_for(settings: Iterable[Setting], task: Task) -> list[Setting]:
    """Return labels by a table of chances in the place of those labels that are under Gaussian
    noise."""
    return [
        replace(setting, mechanism=TABLE)
        for setting in settings
        if (setting.mechanism, setting.release, task.n_classes) == ("gaussian", "labels", 2)
        and setting.n_teachers <= _MOST_TABLE_TEACHERS
    ]


def terms_of(task: Task, setting: Setting) -> Terms | None:
    """Return the mechanism of a setting for simulation; None where no noise keeps the budget.

    Gaussian noise and tables of chances are right to some per cent: a search for the least noise
    plays games for seconds, and no plan waits for it.
    """
    budget, release = task.budget, setting.release
    shape = teacher_shape(setting.n_queries, task.n_classes, setting.n_teachers)
    mechanism: Mechanism
    if setting.mechanism in STREAMS:
        event = _stream(budget, setting.mechanism, setting.max_abstentions or 1)
        if event is None:
            return None
        mechanism = stream_mechanism(event, setting.n_teachers)
    elif setting.mechanism == "laplace":
        mechanism = noisy_votes(budget, shape, release=release, noise="laplace")
    elif setting.mechanism == CONFIDENT:
        mechanism = _confident(task, setting)
    elif setting.mechanism == TABLE:
        mechanism = table_labels(budget, shape, exact=False)
    else:
        counts = release == "counts"
        mechanism = NoisyVotes(
            scale=_sigma(task, setting), release="counts" if counts else "labels"
        )
    return Terms(mechanism, shape, budget)


def _confident(task: Task, setting: Setting) -> ConfidentLabels:
    """Return confident voting with noise that is right to some per cent."""
    answers = setting.max_answers or 1
    shifts, share = (1 if task.n_classes == 2 else 2) * answers, THRESHOLD_SHARE
    # answers about a threshold, and labels, tell less than their counts
    labels = MANY_LABELS**2 if task.n_classes == 2 else GAME_LABELS[0]
    whole = (MANY_LABELS**2 * share + labels * (1 - share)) / (1 - share)
    sigma = _unit_of_counts(task.budget) * math.sqrt(shifts * whole)
    ratio = math.sqrt(setting.n_queries / share / (shifts / (1 - share)))
    return ConfidentLabels(
        threshold=setting.threshold or 1,
        max_answers=answers,
        threshold_sigma=ratio * sigma,
        sigma=sigma,
    )


def _sigma(task: Task, setting: Setting) -> float:
    """Return the sigma of Gaussian voting, in votes; for labels right to 2 %, of two classes where
    teachers are many."""
    n, unit = setting.n_queries, _unit_of_counts(task.budget)
    # one record moves two counts of several classes, and the single count of two
    counts = unit * math.sqrt(n if task.n_classes == 2 else 2 * n)
    if setting.release == "counts":
        return counts
    if task.n_classes == 2:
        return counts * noise_share(n)
    by_game, by_divergence = (
        counts * math.sqrt(min(1.0, many + few / n))
        for many, few in (GAME_LABELS, DIVERGENCE_LABELS)
    )
    return by_game if class_block(by_game, n) is not None else by_divergence


def _unit_of_counts(budget: PrivacyBudget) -> float:
    return calibrate_gaussian(budget, 100) / 10


def stated_noise(terms: Terms) -> float:
    """Return the standard deviation of the noise, of a table that of noise which shows an even vote
    as well, of a stream the margin that it answers nine times in ten, in votes."""
    mechanism = terms.mechanism
    if isinstance(mechanism, SparseVector | AbstentionTable):
        needed = needed_distance(mechanism.stream_event(), _USUALLY_ANSWERED)
        return 2 * math.ceil(needed) + 1.0 if math.isfinite(needed) else math.inf
    return deviation(mechanism, terms.shape.n_teachers or 0)
