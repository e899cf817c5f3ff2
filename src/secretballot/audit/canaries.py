"""Canaries in a poisoned private table, counted by an adversary who chooses every query.

After Chadha, Jagielski, Papernot, Choquette-Choo and Nasr 2024 (arXiv:2402.09403): all private
records but the canaries are the adversary's, and so are the public points. Each canary is in the
table by the toss of a fair coin, and its teacher, whichever it is, then votes otherwise on the
canary's point, where all queries of that canary are asked. Many runs with one canary each reach the
whole price of a release; one run may hold many canaries, which share its queries (Steinke, Nasr,
Jagielski 2023, arXiv:2305.08846). The number of right guesses bounds epsilon from below.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from secretballot._typing import FloatArray
from secretballot._validation import check_count, check_positive, check_probability
from secretballot.audit.bounds import Verdict, canary_bound
from secretballot.audit.observation import Fields, Progress, run_trials
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.report.wording import count_text

_RECORDS_PER_TEACHER = 30  # of each class: every teacher gets some of both but with chance e^-30
_CLASSES = ("no", "yes")


@dataclass(frozen=True)
class CanaryTask:
    """Tables that make one record matter as much as any can: teachers are poisoned to agree, and a
    canary adds one vote to every count on its point.

    Attributes
    ----------
    canaries : int
        Number of canaries, each with a column of its own.
    teachers : int
    queries : int
        In all; those left over by the canaries are asked far from all of them.
    """

    canaries: int
    teachers: int
    queries: int

    @property
    def queries_each(self) -> int:
        """Queries on the point of each canary."""
        # one point far from all canaries at least, so that no public column is a constant
        return (self.queries - 1) // self.canaries

    def private_table(self, present: Sequence[bool]) -> bytes:
        """Return the private table of a run, given which canaries are in it."""
        ordinary = [[*[0] * self.canaries, "no"]]
        poison = [[*[-1] * self.canaries, "yes"]]
        rows = (ordinary + poison) * (_RECORDS_PER_TEACHER * self.teachers)
        for number, there in enumerate(present):
            if there:
                rows = [*rows, [*self._canary_point(number), "yes"]]
        return _table_of([*self._column_names, "class"], rows)

    def public_table(self) -> bytes:
        """Return the points that are asked, canary by canary, then those far from all."""
        rows = [
            self._canary_point(number)
            for number in range(self.canaries)
            for _ in range(self.queries_each)
        ]
        rows += [[0] * self.canaries] * (self.queries - len(rows))
        return _table_of(self._column_names, rows)

    def scores(self, released: Fields) -> FloatArray:
        """Return one score for each canary from a release; above 0, it was rather there.

        Parameters
        ----------
        released : Fields
            Of the channel "release".

        Raises
        ------
        DataError
            If no counts were released.
        """
        counts = np.zeros(self.queries)
        for number in range(self.queries):
            point = released.get(f"labels.csv:query[{number}]")
            count = released.get(f"labels.csv:noisy_count[yes][{number}]")
            if not isinstance(point, int) or count is None:
                raise DataError(
                    "A run released no counts of all queries; a canary needs all of them."
                )
            counts[point] = float(count)
        own = counts[: self.canaries * self.queries_each].reshape(self.canaries, self.queries_each)
        return np.asarray(own.sum(axis=1) - self.queries_each / 2, dtype=np.float64)

    @property
    def _column_names(self) -> list[str]:
        return [f"c{number}" for number in range(self.canaries)]

    def _canary_point(self, canary: int) -> list[int]:
        return [int(number == canary) for number in range(self.canaries)]


def _table_of(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    """Return a table of numbers and class names as a CSV file."""
    return "".join(f"{','.join(map(str, row))}\n" for row in [header, *rows]).encode()


@dataclass(frozen=True)
class CanaryAudit:
    """What the canaries showed.

    Attributes
    ----------
    task : CanaryTask
    epsilon, delta : float
        The promise.
    runs : int
    verdict : Verdict
        Counts of all runs, and the certified bound.
    confidence : float

    Examples
    --------
    >>> from secretballot.audit.bounds import Verdict
    >>> from secretballot.audit.canaries import CanaryTask
    >>> task = CanaryTask(4, teachers=2, queries=9)
    >>> verdict = Verdict(right=30, guesses=40, coins=40, bound=0.4, power=3.0)
    >>> sb.audit.CanaryAudit(task, 1.0, 1e-6, 10, verdict, confidence=0.95).passed
    True
    """

    task: CanaryTask
    epsilon: float
    delta: float
    runs: int
    verdict: Verdict
    confidence: float

    @property
    def passed(self) -> bool:
        """Whether the bound is within the promise."""
        return self.verdict.bound <= self.epsilon

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {"audit": "canaries", **asdict(self), "passed": self.passed}


def audit_canaries(
    *,
    epsilon: float,
    delta: float,
    runs: int = 100,
    canaries: int = 1,
    n_teachers: int = 10,
    n_queries: int = 40,
    confidence: float = 0.99,
    program: Sequence[str] | None = None,
    n_jobs: int = 1,
    random_state: int | None = None,
    progress: Progress | None = None,
) -> CanaryAudit:
    """Attack a whole ``learn`` with canaries, poisoned teachers and chosen queries.

    Parameters
    ----------
    epsilon, delta : float
        Price at which ``learn`` runs.
    runs : int
        Runs, each in a process of its own.
    canaries : int
        Canaries in each run: 1 reaches the whole price, more share it.
    n_teachers, n_queries : int
        Of each run.
    confidence : float
        Chance that the bound is not above the truth.
    program, n_jobs, random_state, progress
        As in `audit_release`.

    Returns
    -------
    CanaryAudit

    Raises
    ------
    ParameterError, DataError
        If settings do not fit, or a run fails.
    """
    # 1. the task: tables and queries of the adversary's choice
    n_runs, alpha = check_count("runs", runs), 1 - check_probability("confidence", confidence)
    check_positive("epsilon", epsilon)
    task = CanaryTask(
        check_count("canaries", canaries),
        check_count("n_teachers", n_teachers, minimum=2),
        check_count("n_queries", n_queries),
    )
    if not task.queries_each >= 1:
        raise ParameterError(
            Parameter("n_queries"),
            f" is {n_queries}, too few for {count_text(canaries, 'canary')}; ask more.",
        )
    # 2. the runs
    public = task.public_table()
    coins, trials = run_trials(
        _learn_command(task, epsilon, delta),
        lambda present: {"private.csv": task.private_table(present), "public.csv": public},
        "out/release",
        (n_runs, canaries),
        program=program,
        jobs=check_count("n_jobs", n_jobs),
        random_state=random_state,
        progress=progress,
    )
    # 3. every canary is guessed from the answers of its own run
    scores = np.concatenate([task.scores(trial.channels["release"]) for trial in trials])
    verdict = canary_bound(scores, coins.ravel(), delta=delta, alpha=alpha)
    return CanaryAudit(task, epsilon, delta, n_runs, verdict, confidence)


def _learn_command(task: CanaryTask, epsilon: float, delta: float) -> tuple[str, ...]:
    """Return the command; trees fit a single record exactly, and the schema names every column
    as a number."""
    # the command line itself is attacked; what is not named here has its usual default
    return (
        *("learn", "private.csv", "public.csv", "--target", "class"),
        *("--classes", ",".join(_CLASSES), "--epsilon", repr(epsilon), "--delta", repr(delta)),
        *("--ledger", "own", "--n-teachers", str(task.teachers), "--teacher", "tree"),
        *("--set", f"n_queries={task.queries}", "--set", "mechanism=counts"),
        *("--out", "out"),
    )
