"""Does anything that a command releases distinguish neighbouring inputs better than promised?

Neighbouring tables are made from one: a record dropped, added, added with a missing value, or
replaced.
"""

import contextlib
import math
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from secretballot._typing import BoolArray
from secretballot._validation import (
    RECORD_CHANGES,
    check_choice,
    check_count,
    check_delta,
    check_positive,
    check_probability,
)
from secretballot.audit.bounds import Verdict, group_privacy, outcome_text, power_text
from secretballot.audit.observation import CHANNELS, Progress, Trial, run_trials
from secretballot.audit.telltale import find_telltale, held_out
from secretballot.data.cells import texts_of, vector_width, vectors_of
from secretballot.data.reading import read_table
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.report.certificate_models import total_price

# how much larger the numbers of a replaced or added record are: it should matter to its teacher
_FAR = 1000.0


def made_worlds(
    table: Path, change: str, *, target: str | None = None, row: int = 0
) -> tuple[bytes, bytes]:
    """Return a table and a neighbour of it as CSV files, in one style.

    Parameters
    ----------
    table : Path
        CSV or Parquet; vectors in it are written into the CSV files.
    change : {"drop", "add", "add-missing", "replace"}
        What happens to the record; an added one is a copy of it with numbers a thousand times as
        large and another class, a replaced one becomes that, and one added with a missing value is
        a copy without its first value.
    target : str, optional
        Column with the class.
    row : int
        Number of the record, from 0.

    Raises
    ------
    ParameterError
        If there is no such record.
    DataError
        If the table cannot be read.
    """
    number = check_count("row", row, minimum=0)
    before = read_table(table, role="private file")
    for name in before.columns:  # vectors, too, are texts in CSV files
        before[name] = texts_of(before[name])
    if not number < len(before):
        raise ParameterError(
            Parameter("row"),
            f" is {number}; the private file has no such record: give a number below its rows.",
        )
    record = before.iloc[[number]]
    if change == "drop":
        after = before.drop(index=before.index[number])
    elif change == "add-missing":
        feature = next(name for name in record.columns if name != target)
        after = pd.concat([before, record.assign(**{feature: ""})])
    else:
        unlike = _unlike_record(before, record, target)
        kept = before if change == "add" else before.drop(index=before.index[number])
        after = pd.concat([kept, unlike])
    # both are written anew by the same writer: another style of numbers would
    # distinguish the worlds by itself
    first, second = (world.to_csv(index=False).encode() for world in (before, after))
    return first, second


def _unlike_record(table: pd.DataFrame, record: pd.DataFrame, target: str | None) -> pd.DataFrame:
    """Return a record that its teacher will not overlook: far away, and of another class."""
    changed = record.copy()
    for name in record.columns:
        if name == target:
            others = [value for value in table[name] if value != record[name].iloc[0]]
            changed[name] = others[0] if others else record[name].iloc[0]
        else:
            with contextlib.suppress(ValueError, TypeError):  # texts stay as they are
                changed[name] = _far_value(record[name].iloc[0])
    return changed


def _far_value(cell: Any) -> str:
    """Return a number, or a vector, that is far away.

    Raises
    ------
    ValueError, TypeError
        If the cell is none.
    """
    width = vector_width(cell)
    if width is None:
        return str((float(cell) or 1.0) * _FAR)
    (vector,) = vectors_of(pd.Series([cell], dtype=object), width)
    return str([(number or 1.0) * _FAR for number in vector.tolist()])


_OUT = "out"
_LEAST_RUNS = 6
_LEAST_OF_A_WORLD = 4


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
        The certificate's, or "stated" where the price was stated by hand.
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

    @property
    def power(self) -> float:
        """The largest epsilon that this many runs could have certified.

        Larger promises cannot be refuted.
        """
        return max(one.verdict.power for one in self.channels)

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {"audit": "release", **asdict(self), "passed": self.passed, "power": self.power}

    def text(self) -> str:
        """Return the result for a person."""
        promise, percent = self.promise, f"{100 * self.confidence:g} %"
        steps = "" if promise.steps == 1 else f" over {promise.steps} steps"
        lines = [
            f"command      {self.command}",
            f"promise      epsilon {promise.epsilon:g}, delta {promise.delta:g}{steps}"
            f" ({promise.relation})",
            f"runs         {self.runs}: {self.chosen_on} to choose a field,"
            f" {self.runs - self.chosen_on} held out",
            power_text(self.power, promise.epsilon),
        ]
        for one in self.channels:
            found = one.verdict
            counted = f"{found.right} of {found.guesses} guesses right"
            unjudged = "" if one.promised else " (not promised)"
            lines.append(
                f"{one.channel:<12} epsilon >= {found.bound:.3f} at {percent};"
                f" {counted if found.guesses else 'no field to guess by'}{unjudged}"
            )
            if one.detected_in and found.bound > 0:
                lines.append(f"             detected in {one.detected_in}")
        return "\n".join([*lines, outcome_text(self.passed)])


def audit_release(
    command: Sequence[str] | str,
    private: str | Path,
    *,
    neighbour: str | Path | None = None,
    change: str | None = None,
    row: int = 0,
    runs: int = 60,
    confidence: float = 0.99,
    steps: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    released: str | None = None,
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
        audit sets its ``--out`` behind the others.
    private : path
        The private file, as the command names it.
    neighbour : path, optional
        The neighbouring file, which takes its name in the second world.
    change : {"drop", "add", "add-missing", "replace"}, optional
        In place of a neighbour: what to do to one record of a CSV or Parquet file.
    row : int
        Which record, from 0.
    runs : int
        In all, about half of them on each input.
    confidence : float
        Chance that a bound is not above the truth.
    steps : int, optional
        Steps of the certificate's relation between the inputs; 1, but 2 for ``change="replace"``
        under add-remove.
    epsilon, delta : float, optional
        The promise, where no certificate states it.
    released : str, optional
        Folder to observe, relative to the folder of the run; ``out/release`` of a command that has
        ``--out``.
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
        If settings do not fit together.
    DataError
        If a file cannot be read, or the command fails.

    Privacy
    -------
    A temporary folder holds copies of the private files until the end. The result describes
    released values, exit codes, messages and times only; messages may be private, and names of
    fields may hold text of a release.
    """
    # 1. refuse what cannot be, before anything runs
    words = shlex.split(command) if isinstance(command, str) else list(command)
    n_runs = check_count("runs", runs, minimum=_LEAST_RUNS)
    alpha = 1 - check_probability("confidence", confidence)
    if (neighbour is None) == (change is None):
        raise ParameterError(
            "Give either a neighbouring file or a change to make, not both or neither."
        )
    if change is not None:
        check_choice("change", change, RECORD_CHANGES)
        if _value_of(words, "--unit") is not None:
            raise ParameterError(
                "A change is made to one record, and the unit is a user; give the neighbouring"
                " file."
            )
    # 2. the files of both worlds, and the words that find them
    words, files, name, observed = _prepared_command(words, Path(private), released)
    if change is None:
        if not Path(str(neighbour)).is_file():
            raise DataError(f"{str(neighbour)!r} cannot be read; name the neighbouring file.")
        worlds = Path(private).read_bytes(), Path(str(neighbour)).read_bytes()
    else:
        target = _value_of(words, "--target")
        worlds = made_worlds(Path(private), change, target=target, row=row)
    # 3. the runs
    coins, trials = run_trials(
        words,
        lambda coin: {**files, name: worlds[coin[0]]},
        observed,
        (n_runs, 1),
        program=program,
        jobs=check_count("n_jobs", n_jobs),
        random_state=random_state,
        progress=progress,
    )
    promise = _allowed_promise(trials, change, steps, epsilon, delta)
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
        found = find_telltale(fields[:first], worlds[:first], left, alpha=alpha)
        verdict = held_out(found, fields[first:], worlds[first:], delta=promise.delta, alpha=alpha)
        named = None if found is None else found.name
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
    words: Sequence[str], private: Path, released: str | None
) -> tuple[list[str], dict[str, bytes], str, str]:
    """Return the words with plain file names, the other files by these names, the private one's
    name, and what to observe."""
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
    if _value_of(words, "--out") is not None or words[:1] in (["learn"], ["label"]):
        prepared += ["--out", _OUT]
    elif released is None:
        raise ParameterError(
            "The command has no --out; say with --released which folder it releases."
        )
    name = next((name for name, path in files.items() if path == private.resolve()), "")
    # each world gets its own private file under this name
    if files.pop(name, None) is None:
        raise ParameterError(
            f"The command does not name the private file {str(private)!r}; it must, by the same"
            " path."
        )
    contents = {name: path.read_bytes() for name, path in files.items()}
    return prepared, contents, name, released or f"{_OUT}/release"


def _value_of(words: Sequence[str], option: str) -> str | None:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def _allowed_promise(
    trials: Sequence[Trial],
    change: str | None,
    steps: int | None,
    epsilon: float | None,
    delta: float | None,
) -> Promise:
    """Return what the certificate, or else the caller, allows between the two inputs."""
    certificate = next(
        (trial.certificate for trial in trials if trial.certificate is not None), None
    )
    relation, price = "stated", (math.inf, 0.0)
    try:
        if certificate is not None:
            relation, price = str(certificate["relation"]), total_price(certificate)
    except (KeyError, TypeError):
        certificate = None  # of another program
    if certificate is None and epsilon is None:
        raise ParameterError(
            "No run released a certificate with a price; state the promise with epsilon and delta."
        )
    stated = (
        price[0] if epsilon is None else check_positive("epsilon", epsilon),
        price[1] if delta is None else check_delta("delta", delta),
    )
    if change is not None and change != "replace" and relation == "replace-one":
        raise ParameterError(
            "The certificate promises replace-one, where the number of records is public; use"
            " change replace."
        )
    # a replacement is two steps where the promise is about adding and removing
    distance = (
        steps if steps is not None else 1 + (change == "replace" and relation == "add-remove")
    )
    return Promise(*group_privacy(*stated, distance), steps=distance, relation=relation)
