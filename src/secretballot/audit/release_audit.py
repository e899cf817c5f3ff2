"""Does anything that a command releases distinguish neighbouring inputs better than promised?

The command is run many times, on the private file or on a neighbour of it. A few runs choose the
field that distinguishes the two best, and the others measure that field alone; hence the certified
bound pays for one hypothesis.
"""

import math
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from secretballot._typing import BoolArray, FloatArray
from secretballot._validation import check_count, check_probability
from secretballot.audit.bounds import Verdict, canary_bound, epsilon_from_guesses, group_privacy
from secretballot.audit.observation import CHANNELS, Field, Fields, Progress, Trial, run_trials
from secretballot.exceptions import DataError, ParameterError
from secretballot.report.certificate_models import total_price

_OUT = "out"
_LEAST_RUNS = 6
_LEAST_OF_A_WORLD = 4
_LEAST_TO_KNOW = 3  # runs of a world


@dataclass(frozen=True)
class Promise:
    """What a certificate allows between the two inputs.

    Attributes
    ----------
    epsilon, delta : float
        For the distance of the two inputs: of several steps, the promise for groups.
    steps : int
        Steps of the certificate's relation between the inputs.
    relation : str
        The certificate's.
    """

    epsilon: float
    delta: float
    steps: int
    relation: str


@dataclass(frozen=True)
class ChannelFinding:
    """What one channel reveals.

    Attributes
    ----------
    channel : str
    promised : bool
        Whether the guarantee is about it; timing and the curator's messages are reported and not
        judged.
    verdict : Verdict
        Counts on the runs held out, and the certified bound.
    detected_in : str or None
        Field that distinguishes most; it is a finding only where the bound is.
    """

    channel: str
    promised: bool
    verdict: Verdict
    detected_in: str | None = None


@dataclass(frozen=True)
class ReleaseAudit:
    """The result of a differential test.

    Attributes
    ----------
    command : str
    promise : Promise
    confidence : float
        Chance that no bound is above the truth, for each channel.
    runs, chosen_on : int
        All runs, and those that chose what to look at.
    exit_codes : dict
        How often each occurred.
    channels : list of ChannelFinding

    Examples
    --------
    >>> from secretballot.audit.release_audit import Promise
    >>> promise = Promise(epsilon=1.0, delta=1e-6, steps=1, relation="add-remove")
    >>> found = sb.audit.ReleaseAudit("label", promise, 0.95, 20, 10, {0: 20}, channels=[])
    >>> found.passed
    True
    """

    command: str
    promise: Promise
    confidence: float
    runs: int
    chosen_on: int
    exit_codes: dict[int, int]
    channels: list[ChannelFinding]

    @property
    def passed(self) -> bool:
        """Whether no promised channel certifies more than the promise."""
        return all(
            one.verdict.bound <= self.promise.epsilon for one in self.channels if one.promised
        )

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {"audit": "release", **asdict(self), "passed": self.passed}


def audit_release(
    command: Sequence[str] | str,
    private: str | Path,
    neighbour: str | Path,
    *,
    runs: int = 60,
    confidence: float = 0.99,
    steps: int = 1,
    program: Sequence[str] | None = None,
    n_jobs: int = 1,
    random_state: int | None = None,
    progress: Progress | None = None,
) -> ReleaseAudit:
    """Run a command on two neighbouring inputs, many times each, and attack what it releases.

    Every run has a process and a folder of its own, with the same names; which input it gets is the
    toss of a fair coin. A third of the runs choose what distinguishes the inputs: bytes, names,
    sizes, modes and parsed fields of all released files, and exit codes. The others certify, with
    confidence, a lower bound on the epsilon of the command.

    Parameters
    ----------
    command : sequence of str, or str
        Words of the command, without the program:
        ``learn patients.csv public.csv --target ill ...``. Files that it names are copied; the
        audit sets its ``--out`` behind the others, and observes ``release`` in that folder.
    private : path
        The private file, as the command names it.
    neighbour : path
        The neighbouring file, which takes its name in the second world.
    runs : int
        In all, about half of them on each input.
    confidence : float
        Chance that a bound is not above the truth.
    steps : int
        Steps of the certificate's relation between the inputs: a record replaced is two under
        add-remove.
    program : sequence of str, optional
        Words that start the program; this one by default.
    n_jobs : int
        Runs at the same time.
    random_state : int, optional
        Seed of which input each run gets.
    progress : callable, optional
        Called with the number of finished runs and the number of all.

    Returns
    -------
    ReleaseAudit

    Raises
    ------
    ParameterError
        If settings do not fit together, or no run released a certificate.
    DataError
        If a file cannot be read, or the command fails.

    Privacy
    -------
    A temporary folder holds copies of the private files until the end. The result describes
    released values, exit codes, messages and times only; messages may be private, and names of
    fields may hold text of a release.
    """
    # 1. refuse what cannot be, before anything runs
    n_runs = check_count("runs", runs, minimum=_LEAST_RUNS)
    alpha = 1 - check_probability("confidence", confidence)
    check_count("steps", steps)
    if not Path(neighbour).is_file():
        raise DataError(f"{str(neighbour)!r} cannot be read; name the neighbouring file.")
    # 2. the files of both worlds, and the words that find them
    words = shlex.split(command) if isinstance(command, str) else list(command)
    words, files, name = _prepared_command(words, Path(private))
    worlds = Path(private).read_bytes(), Path(neighbour).read_bytes()
    # 3. the runs
    coins, trials = run_trials(
        words,
        lambda coin: {**files, name: worlds[coin[0]]},
        f"{_OUT}/release",
        (n_runs, 1),
        program=program,
        jobs=check_count("n_jobs", n_jobs),
        random_state=random_state,
        progress=progress,
    )
    promise = _promise_of(trials, steps)
    return audit_trials(shlex.join(words), trials, coins[:, 0], promise, alpha=alpha)


def audit_trials(
    command: str, trials: Sequence[Trial], worlds: BoolArray, promise: Promise, *, alpha: float
) -> ReleaseAudit:
    """Choose a rule on the first runs, a third or a few more, and measure it on the others, for
    each channel.

    Parameters
    ----------
    command : str
        For the result.
    trials : sequence of Trial
    worlds : ndarray of bool, shape (n_trials,)
        Whether each was in the second world.
    promise : Promise
    alpha : float
        Chance that a bound is above the truth.
    """
    first = _runs_to_choose_on(worlds)
    left = len(trials) - first
    findings = []
    for channel in CHANNELS:
        fields = [trial.channels[channel] for trial in trials]
        found = _find_telltale(fields[:first], worlds[:first], left, alpha=alpha)
        verdict = _held_out(found, fields[first:], worlds[first:], delta=promise.delta, alpha=alpha)
        named = None if found is None else found.reading.name
        findings.append(ChannelFinding(channel, channel == "release", verdict, named))
    codes = [trial.exit_code for trial in trials]
    counted = {code: codes.count(code) for code in sorted(set(codes))}
    return ReleaseAudit(command, promise, 1 - alpha, len(trials), first, counted, findings)


def _runs_to_choose_on(worlds: BoolArray) -> int:
    """Return a third of the runs, or as many more as it takes, up to half, to know both worlds by
    several runs.

    Only coins already tossed decide where to stop, so those of the runs held out are as fair as
    before.
    """
    for first in range(len(worlds) // 3, len(worlds) // 2):
        if min(worlds[:first].sum(), (~worlds[:first]).sum()) >= _LEAST_OF_A_WORLD:
            return first
    return len(worlds) // 2


def _prepared_command(
    words: Sequence[str], private: Path
) -> tuple[list[str], dict[str, bytes], str]:
    """Return the words with plain file names, the other files by these names, and the private one's
    name."""
    files: dict[str, Path] = {}

    def plain_name(part: str) -> str:
        """Return the plain name of what is a file, having noted it, and anything else as it is."""
        if not os.path.isfile(part):
            return part
        path, name = Path(part).resolve(), Path(part).name
        while files.setdefault(name, path) != path:  # two files of one name
            name = f"2-{name}"
        journal = path.with_name(f"{path.name}-journal")  # a ledger is two files
        if journal.is_file():
            files[f"{name}-journal"] = journal
        return name

    prepared = ["".join(map(plain_name, re.split("([=,])", word))) for word in words]
    # the output has one fixed place, so that paths cannot distinguish the worlds; the last counts
    prepared += ["--out", _OUT]
    name = next((name for name, path in files.items() if path == private.resolve()), "")
    # each world gets its own private file under this name
    if files.pop(name, None) is None:
        raise ParameterError(
            f"The command does not name the private file {str(private)!r}; it must, by the same"
            " path."
        )
    return prepared, {name: path.read_bytes() for name, path in files.items()}, name


def _promise_of(trials: Sequence[Trial], steps: int) -> Promise:
    """Return what the first certificate allows between the two inputs."""
    certificate = next((trial.certificate for trial in trials if trial.certificate), {})
    if not {"epsilon", "delta", "relation"} <= set(certificate):
        raise ParameterError("No run released a certificate with a price; attack a release.")
    price = group_privacy(*total_price(certificate), steps)
    return Promise(*price, steps=steps, relation=str(certificate["relation"]))


# --- the field that distinguishes the worlds ---

_MODULI = (4096, 64, 16)
_MANY_VALUES = 3  # of a number that is cut in two
_CUTS = np.linspace(0.05, 0.95, 19)  # at these quantiles
_SHARES = (1.0, 0.75, 0.5, 0.25, 0.1, 0.05)  # of the runs that are guessed, the surest first


class Reading(NamedTuple):
    """One field, read in one way: as it is; what an integer leaves of a modulus, where addresses
    show; or whether a number is above a cut."""

    field: str
    modulus: int = 0
    cut: float | None = None

    @property
    def name(self) -> str:
        """The field, a place as in `observed_files`, and how it is read."""
        if self.modulus:
            return f"{self.field} mod {self.modulus}"
        return self.field if self.cut is None else f"{self.field} above {self.cut:g}"

    def value(self, run: Fields) -> Field | None:
        """Return what it reads of a run."""
        found = run.get(self.field)
        if self.modulus:
            return found % self.modulus if isinstance(found, int) else found
        return found if self.cut is None or not isinstance(found, int | float) else found > self.cut


@dataclass(frozen=True)
class _Telltale:
    """What a field says of the worlds.

    Attributes
    ----------
    reading : Reading
    weights : dict
        Log ratio of the two worlds for each value; of others 0.
    guesses : float
        Share of the runs to guess, the surest first.
    """

    reading: Reading
    weights: dict[Field | None, float]
    guesses: float = 1.0

    def scores(self, runs: Sequence[Fields]) -> FloatArray:
        """Return the log ratio of each run, shape (n_runs,); positive points to the second
        world."""
        return np.array([self.weights.get(self.reading.value(run), 0.0) for run in runs])


def _find_telltale(
    runs: Sequence[Fields], worlds: BoolArray, held_out_runs: int, *, alpha: float
) -> _Telltale | None:
    """Return the field that distinguishes the worlds best on these runs, None if none varies with
    them.

    Thousands of fields are tried and a few dozen runs are there, so a field counts by what *other*
    runs say about it: each run is scored by the log ratio of how often its value occurred in the
    two worlds among all other runs (leave one out). Values that occur once say nothing.

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
    own, n_second = worlds.astype(np.float64), int(worlds.sum())
    n_first = len(runs) - n_second
    if min(n_first, n_second) < _LEAST_TO_KNOW:  # too few of one world to know it by
        return None
    best: _Telltale | None = None
    least, chosen, seen = math.inf, own, set[bytes]()
    for reading in _readings(runs):
        read = [reading.value(run) for run in runs]
        numbers = {value: number for number, value in enumerate(dict.fromkeys(read))}
        codes = np.array([numbers[value] for value in read], dtype=np.int64)
        # a constant, a value of its own in every run, or what another reading says as well
        if not 1 < len(numbers) < len(runs) or codes.tobytes() in seen:
            continue
        seen.add(codes.tobytes())
        second = np.bincount(codes, own).astype(np.float64)
        first = np.bincount(codes).astype(np.float64) - second
        # what all other runs say of the value of each
        others = second[codes] - own, n_second - own, first[codes] - 1 + own, n_first - 1 + own
        scores = _log_ratio(*others)
        # the mean log loss of scores as log odds; log 2 of scores that say nothing
        loss = float(np.logaddexp(0.0, np.where(worlds, -scores, scores)).mean())
        if loss < least:
            weights = _log_ratio(second, n_second, first, n_first).tolist()
            best = _Telltale(reading, dict(zip(numbers, weights, strict=True)))
            least, chosen = loss, scores
    if best is None:
        return None
    return replace(best, guesses=_best_share(chosen, worlds, held_out_runs, alpha=alpha))


def _readings(runs: Sequence[Fields]) -> Iterator[Reading]:
    """Yield all readings of all fields that vary."""
    for field in dict.fromkeys(name for run in runs for name in run):
        values = {run.get(field) for run in runs}
        if len(values) == 1:
            continue
        yield Reading(field)
        if any(isinstance(value, int) and abs(value) >= _MODULI[-1] for value in values):
            yield from (Reading(field, modulus) for modulus in _MODULI)
        numbers = [value for run in runs if isinstance(value := run.get(field), int | float)]
        if len(set(numbers)) > _MANY_VALUES:
            # in the middle of gaps, whichever worlds the numbers are of
            cuts = np.quantile(numbers, _CUTS, method="midpoint").tolist()
            yield from (Reading(field, cut=cut) for cut in dict.fromkeys(cuts))


def _log_ratio(second: FloatArray, n_second: Any, first: FloatArray, n_first: Any) -> FloatArray:
    """Return the smoothed log ratio of the worlds; 0 of a value that occurred in neither."""
    ratio = np.log((second + 0.5) / (n_second + 1.0)) - np.log((first + 0.5) / (n_first + 1.0))
    return np.asarray(np.where(second + first > 0, ratio, 0.0), dtype=np.float64)


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


def _held_out(
    telltale: _Telltale | None,
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
    telltale : _Telltale or None
        None guesses nothing, and certifies nothing.
    runs, worlds
        As in `_find_telltale`; none of them had a part in choosing the field.
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
