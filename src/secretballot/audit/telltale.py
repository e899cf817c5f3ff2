"""Find the field that distinguishes two worlds, and measure it on runs it never saw.

Thousands of fields are tried and a few dozen runs are there, so a field counts by what *other* runs
say about it: each run is scored by the log ratio of how often its value occurred in the two worlds
among all other runs (leave one out). Values that occur once say nothing. One field is chosen, and
only it meets the runs held out; hence the certified bound pays for one hypothesis.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.audit.bounds import Verdict, canary_bound, epsilon_from_guesses
from secretballot.audit.observation import Field, Fields

_MODULI = (4096, 64, 16)
_MANY_VALUES = 3  # of a number that is cut in two
_SHARES = (1.0, 0.75, 0.5, 0.25, 0.1, 0.05)  # of the runs that are guessed, the surest first
_FOLDS = 3


@dataclass(frozen=True)
class Telltale:
    """One field, read in one way, with what each of its values says.

    Attributes
    ----------
    field : str
        Place, as in `observed_files`, or what an integer there leaves of 4096, 64 or 16.
    cut : float or None
        A number of which only is read whether it is above or below that.
    weights : dict
        Log ratio of the two worlds for each value; of others 0.
    guesses : float
        Share of the runs to guess, the surest first.
    """

    field: str
    cut: float | None
    weights: dict[Field | None, float]
    guesses: float = 1.0

    @property
    def name(self) -> str:
        """The field and how it is read."""
        return self.field if self.cut is None else f"{self.field} above or below {self.cut:g}"

    def scores(self, runs: Sequence[Fields]) -> FloatArray:
        """Return the log ratio of each run, shape (n_runs,); positive points to the second
        world."""
        read = [_value_read(_with_residues(run).get(self.field), self.cut) for run in runs]
        return np.array([self.weights.get(value, 0.0) for value in read])


def find_telltale(
    runs: Sequence[Fields], worlds: BoolArray, held_out_runs: int, *, alpha: float
) -> Telltale | None:
    """Return the field that distinguishes the worlds best on these runs, None if none varies with
    them.

    Parameters
    ----------
    runs : sequence of Fields
        Set aside for choosing.
    worlds : ndarray of bool, shape (n_runs,)
        Whether each run was in the second world.
    held_out_runs : int
        On how many runs the field will be measured: it sets how sure a guess has to be.
    alpha : float
        Of the bound that will be certified.
    """
    if min(worlds.sum(), (~worlds).sum()) < _FOLDS:  # too few of one world to know it by
        return None
    # every field in every reading; those that never vary are gone, equal ones are merged; the best
    # one by log loss on runs left out
    found = _candidates([_with_residues(run) for run in runs], worlds)
    if not found:
        return None
    telltale, scores = min(found, key=lambda pair: _log_loss(pair[1], worlds))
    share = _best_share(scores, worlds, held_out_runs, alpha=alpha)
    return replace(telltale, guesses=share)


def held_out(
    telltale: Telltale | None,
    runs: Sequence[Fields],
    worlds: BoolArray,
    *,
    delta: float,
    alpha: float,
) -> Verdict:
    """Measure a field on runs held out.

    `worlds` has shape (n_runs,), one entry for each of `runs`.

    Parameters
    ----------
    telltale : Telltale or None
        None guesses nothing, and certifies nothing.
    runs, worlds
        As in `find_telltale`; none of them had a part in choosing the field.
    delta : float
        At which epsilon is bounded.
    alpha : float
        Chance that the bound is above the truth.

    Returns
    -------
    Verdict
    """
    n = len(runs)
    power = epsilon_from_guesses(n, n, n, delta=delta, alpha=alpha)
    if telltale is None:
        return Verdict(right=0, guesses=0, coins=n, bound=0.0, power=power)
    # The number of guesses is fixed beforehand; a run without a score is guessed as well.
    found = canary_bound(
        telltale.scores(runs), worlds, delta=delta, alpha=alpha, share=telltale.guesses
    )
    # more guesses might have been right
    return replace(found, power=power)


def _candidates(runs: Sequence[Fields], worlds: BoolArray) -> list[tuple[Telltale, FloatArray]]:
    """Return all fields in all readings that vary and repeat, one for each different pattern over
    the runs, with the score of each run by what the others say."""
    seen: dict[bytes, tuple[Telltale, FloatArray]] = {}
    for name in dict.fromkeys(name for run in runs for name in run):
        values = [run.get(name) for run in runs]
        for cut in dict.fromkeys([None, _best_cut(values, worlds)]):
            read = [_value_read(value, cut) for value in values]
            codes, size = _coded(read)
            if not 1 < size < len(runs):
                continue  # a constant, or a value of its own in every run
            pattern = codes.tobytes()
            if pattern not in seen:
                weights = _ratios_by_value(codes, worlds, size).tolist()
                weight_of = dict(zip(dict.fromkeys(read), weights, strict=True))
                seen[pattern] = (
                    Telltale(name, cut, weight_of),
                    _left_out_scores(codes, worlds, size)
                    if cut is None
                    else _scores_across_folds(values, worlds),
                )
    return list(seen.values())


def _with_residues(run: Fields) -> Fields:
    """Return fields with those of the last digits of large integers, in which addresses show."""
    return run | {
        f"{name} mod {modulus}": value % modulus
        for name, value in run.items()
        for modulus in _MODULI
        if isinstance(value, int) and abs(value) >= modulus
    }


def _value_read(value: Field | None, cut: float | None) -> Field | None:
    return value if cut is None or not isinstance(value, int | float) else int(value > cut)


def _best_cut(values: Sequence[Field | None], worlds: BoolArray) -> float | None:
    """Return the number that parts the worlds best, in the middle of its gap.

    None unless both have numbers, and some of these differ.
    """
    known = [
        (value, world)
        for value, world in zip(values, worlds, strict=True)
        if isinstance(value, int | float)
    ]
    numbers = np.array([value for value, _ in known], dtype=np.float64)
    seconds = np.array([world for _, world in known], dtype=bool)
    if not seconds.any() or seconds.all() or not len(set(numbers.tolist())) > _MANY_VALUES:
        return None
    order = np.argsort(numbers, kind="stable")
    ordered, second = numbers[order], seconds[order]
    rates = np.abs(np.cumsum(second) / second.sum() - np.cumsum(~second) / (~second).sum())[:-1]
    gaps = np.diff(ordered)
    best = np.flatnonzero((rates >= rates[gaps > 0].max() - 1e-12) & (gaps > 0))
    place = best[np.argmax(gaps[best])]
    return float(ordered[place] + ordered[place + 1]) / 2


def _coded(read: Sequence[Field | None]) -> tuple[IntArray, int]:
    """Return a number for each value, in the order in which they came, and how many there are."""
    numbers = {value: number for number, value in enumerate(dict.fromkeys(read))}
    return np.array([numbers[value] for value in read], dtype=np.int64), len(numbers)


def _scores_across_folds(values: Sequence[Field | None], worlds: BoolArray) -> FloatArray:
    """Return scores by a cut that was chosen without the runs that it scores."""
    scores = np.zeros(len(values))
    fold = np.arange(len(values)) % _FOLDS
    for number in range(_FOLDS):
        out = fold == number
        others = [value for value, left_out in zip(values, out, strict=True) if not left_out]
        cut = _best_cut(others, worlds[~out])
        codes, size = _coded([_value_read(value, cut) for value in values])
        scores[out] = _ratios_by_value(codes[~out], worlds[~out], size)[codes[out]]
    return scores


def _counts_by_world(
    codes: IntArray, worlds: BoolArray, size: int
) -> tuple[FloatArray, FloatArray]:
    """Return how often each value occurred in the second world and in the first."""
    second, first = (
        np.bincount(codes[side], minlength=size).astype(np.float64) for side in (worlds, ~worlds)
    )
    return second, first


def _ratios_by_value(codes: IntArray, worlds: BoolArray, size: int) -> FloatArray:
    second, first = _counts_by_world(codes, worlds, size)
    return _log_ratio(second, worlds.sum(), first, (~worlds).sum())


def _log_ratio(second: FloatArray, n_second: Any, first: FloatArray, n_first: Any) -> FloatArray:
    """Return the smoothed log ratio of the worlds; 0 of a value that occurred in neither."""
    ratio = np.log((second + 0.5) / (n_second + 1.0)) - np.log((first + 0.5) / (n_first + 1.0))
    return np.asarray(np.where(second + first > 0, ratio, 0.0), dtype=np.float64)


def _left_out_scores(codes: IntArray, worlds: BoolArray, size: int) -> FloatArray:
    """Return for each run what all other runs say of its value."""
    second, first = _counts_by_world(codes, worlds, size)
    own = worlds.astype(np.float64)
    return _log_ratio(
        second[codes] - own,
        worlds.sum() - own,
        first[codes] - (1 - own),
        (~worlds).sum() - (1 - own),
    )


def _log_loss(scores: FloatArray, worlds: BoolArray) -> float:
    """Return the mean log loss of scores as log odds, in nats; log 2 of scores that say nothing."""
    return float(np.logaddexp(0.0, np.where(worlds, -scores, scores)).mean())


def _best_share(scores: FloatArray, worlds: BoolArray, n: int, *, alpha: float) -> float:
    """Return the share of runs to guess that promises the largest bound on `n` further runs."""
    order = np.argsort(-np.abs(scores), kind="stable")
    right = ((scores > 0) == worlds)[order]

    def promised(share: float) -> float:
        guessed = max(1, round(share * len(right)))
        rate = (right[:guessed].sum() + 0.5) / (guessed + 1)
        guesses = max(1, round(share * n))
        right_ones = math.floor(rate * guesses + 0.5)
        return epsilon_from_guesses(right_ones, guesses, n, delta=0.0, alpha=alpha)

    return max(_SHARES, key=promised) if n else 1.0
