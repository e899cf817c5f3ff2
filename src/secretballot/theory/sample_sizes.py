"""How many private records: what the theorems ask beside what the tight calibration asks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from secretballot._validation import check_choice, check_instance, check_positive, check_probability
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.theory.learning import agnostic_records, capacity, consistent_records
from secretballot.theory.ranges import check_budget, check_count, check_error
from secretballot.theory.relabelling import labeler_sizes, printed_labeler_records
from secretballot.theory.search import smallest_integer
from secretballot.theory.semi_private import semi_private_sizes, universal_records, universal_sizes
from secretballot.theory.stability import CALIBRATIONS, StreamSizes, rate_sizes, stream_sizes
from secretballot.theory.tables import as_figure, markdown_table

__all__ = [
    "SampleSize",
    "agnostic_learner_sizes",
    "learner_sizes",
    "render_sample_sizes",
    "sample_sizes",
]


@dataclass(frozen=True)
class SampleSize:
    """A row of the table.

    Attributes
    ----------
    construction, theorem, promise : str
        What it is about, and what holds with probability 1 - beta at the number of records.
    paper, tight : int or None
        Private records asked by the theorem as printed, and by the tight calibration; None where
        there is none.
    remark : str
        Why a figure is missing, or what is hidden.

    Examples
    --------
    >>> row = sb.theory.SampleSize("voting", "BTT 3.2", "rate <= 0.1", paper=None, tight=5000)
    >>> row.vacuous
    False
    >>> print(sb.theory.render_sample_sizes([row]).splitlines()[2])
    | voting | BTT 3.2 | rate <= 0.1 | - | 5,000 |  |
    """

    construction: str
    theorem: str
    promise: str
    paper: int | None
    tight: int | None
    remark: str = ""

    @property
    def vacuous(self) -> bool:
        """True if no number of records is enough, or none is known."""
        return self.paper is None and self.tight is None


def learner_sizes(
    alpha: float,
    beta: float,
    budget: PrivacyBudget,
    vc_dimension: int,
    *,
    calibration: str = "tight",
) -> tuple[int, StreamSizes]:
    """Return the public points m and the stream on them, for the realizable private learner.

    Source: "paper": Bassily, Thakurta, Thakkar 2018, Theorem 4.2: its proof ends at an error of 15
    a with chance 3 b, so a = alpha / 15 and b = beta / 3, and m is `agnostic_records`(a, b), since
    the theorem hides the constant of O((V + log(1 / b)) / a^2). "tight": the proof of Theorem 5 of
    Liu et al. 2021 for bounded noise of 0, which also fixes that answers of one stream are not
    independent (item 9): error <= 4 T / m + 5 `capacity` / m, alpha / 2 for each.

    Raises
    ------
    ParameterError
        If a number is out of its range; "paper" also if beta / 3 exceeds alpha / 15.
    """
    error, chance = check_probability("alpha", alpha), check_probability("beta", beta)
    if check_choice("calibration", calibration, CALIBRATIONS) == "paper":
        a, b = error / 15, chance / 3
        if not b <= a:
            raise ParameterError(
                Parameter("beta"),
                f" is {chance:g}; Theorem 4.2 holds for beta up to alpha / 5, here {error / 5:g}.",
            )
        m = agnostic_records(a, b, vc_dimension)
        return m, stream_sizes(m, a, 2 * b, budget, vc_dimension, calibration="paper")
    # alpha / 2 for the points here, alpha / 2 of 4 T / m for the answers below
    m = smallest_integer(lambda n: 5 * capacity(vc_dimension, n, chance / 2) <= error / 2 * n)
    return m, rate_sizes(m, error / 8, chance / 2, budget, vc_dimension)


def agnostic_learner_sizes(
    alpha: float,
    beta: float,
    budget: PrivacyBudget,
    vc_dimension: int,
    best_error: float,
    *,
    calibration: str = "tight",
) -> tuple[int, StreamSizes]:
    """Return the public points m and the stream on them, for an error of at most 7 gamma + alpha.

    Source: "paper": Bassily, Thakurta, Thakkar 2018, Theorem 4.3, O(alpha + gamma). The proof of
    Theorem 4.2 carried over gives the constants: the voted labels err at most 3 gamma + 7 a (Claim
    4.1), the best member disagrees with them at most 4 gamma + 7 a, the learner at most 4 gamma + 8
    a, so its error is at most 7 gamma + 15 a. Printed T and k. "tight": the proof of Theorem C.3 of
    Liu et al. 2021, error <= gamma + 2 T / m + 2 `uniform_deviation`, with T / m at most 3 gamma +
    alpha / 4.

    Raises
    ------
    ParameterError
        If a number is out of its range; "paper" also if beta / 3 exceeds alpha / 15.
    """
    error, chance = check_probability("alpha", alpha), check_probability("beta", beta)
    gamma = check_error("best_error", best_error)
    if check_choice("calibration", calibration, CALIBRATIONS) == "paper":
        a, b = error / 15, chance / 3
        if not b <= a:
            raise ParameterError(
                Parameter("beta"),
                f" is {chance:g}; Theorem 4.3 holds for beta up to alpha / 5, here {error / 5:g}.",
            )
        m = agnostic_records(a, b, vc_dimension)
        return m, stream_sizes(
            m, a, 2 * b, budget, vc_dimension, best_error=gamma, calibration="paper"
        )
    # alpha / 2 for the deviation here, alpha / 2 of 2 T / m for the answers below
    m = agnostic_records(error / 2, chance / 2, vc_dimension)
    return m, rate_sizes(m, error / 4, chance / 2, budget, vc_dimension, best_error=gamma)


def sample_sizes(
    alpha: float,
    beta: float,
    budget: PrivacyBudget,
    vc_dimension: int,
    n_queries: int,
    *,
    best_error: float = 0.1,
    constant: float = 1.0,
) -> list[SampleSize]:
    """Return how many private records every construction asks for, as printed and calibrated.

    Parameters
    ----------
    alpha, beta : float
        Accuracy and failure probability, in (0, 1).
    budget : PrivacyBudget
        With delta above 0.
    vc_dimension : int
        d.
    n_queries : int
        m, queries to be answered.
    best_error : float
        gamma, the error of the best member of the class in the agnostic rows, in (0, 1/2).
    constant : float
        Stands for the constants that theorems hide.

    Raises
    ------
    ParameterError
        If a number is out of its range. A theorem that does not reach the numbers has None in its
        row, and says why.
    """
    task = _Task(
        check_probability("alpha", alpha),
        check_probability("beta", beta),
        budget,
        check_count("vc_dimension", vc_dimension),
        check_count("n_queries", n_queries),
        check_error("best_error", best_error),
    )
    check_budget(budget)
    scale = check_positive("constant", constant)
    if not task.gamma > 0:
        raise ParameterError(
            Parameter("best_error"),
            " is 0; the agnostic rows need a gamma above 0, the others have it at 0.",
        )
    # without privacy first: what privacy costs is read off by comparing with these rows
    rows = _Rows()
    _add_rows_without_privacy(rows, task)
    _add_rows_by_voting(rows, task)
    _add_rows_by_selection(rows, task, scale)
    return rows.rows


@dataclass(frozen=True)
class _Task:
    """What is asked: accuracy, failure probability, budget, d, m, gamma."""

    a: float
    b: float
    budget: PrivacyBudget
    d: int
    m: int
    gamma: float


def _add_rows_without_privacy(rows: "_Rows", task: _Task) -> None:
    a, b, d = task.a, task.b, task.d
    rows.add(
        "non-private, realizable",
        "LZCW D.5; Blumer et al. 1989",
        f"error <= {a:g}",
        lambda: consistent_records(a, b, d, "paper"),
        lambda: consistent_records(a, b, d),
        "no privacy",
    )
    agnostic = f"error <= gamma + {a:g}"
    rows.add(
        "non-private, agnostic",
        "VC 1971",
        agnostic,
        None,
        lambda: agnostic_records(a, b, d),
        "no privacy",
    )


def _add_rows_by_voting(rows: "_Rows", task: _Task) -> None:
    a, b, budget, d = task.a, task.b, task.budget, task.d

    # computed by the table, where a refusal leaves a cell empty
    def voted(best: float, calibration: str) -> int:
        return rate_sizes(
            task.m, a, b, budget, d, best_error=best, calibration=calibration
        ).n_records

    for setting, best, promise in (
        ("realizable", 0.0, f"{a:g}"),
        ("agnostic", task.gamma, f"3 gamma + {a:g}"),
    ):
        rows.add(
            f"stability labeler, {setting}",
            "BTT 3.2",
            f"rate <= {promise}",
            partial(voted, best, "paper"),
            partial(voted, best, "tight"),
        )
    rows.add(
        "private learner, realizable",
        "BTT 4.2; LZCW 5",
        f"error <= {a:g}",
        lambda: learner_sizes(a, b, budget, d, calibration="paper")[1].n_records,
        lambda: learner_sizes(a, b, budget, d)[1].n_records,
    )
    rows.add(
        "private learner, agnostic",
        "BTT 4.3",
        f"error <= 7 gamma + {a:g}",
        lambda: (
            agnostic_learner_sizes(a, b, budget, d, task.gamma, calibration="paper")[1].n_records
        ),
        lambda: agnostic_learner_sizes(a, b, budget, d, task.gamma)[1].n_records,
    )


def _add_rows_by_selection(rows: "_Rows", task: _Task, constant: float) -> None:
    a, b, budget, d = task.a, task.b, task.budget, task.d
    # functions, not figures: a theorem that refuses leaves its cell empty
    rows.add(
        "agnostic labeler",
        "NB 3.3",
        f"rate <= gamma + {a:g}",
        lambda: printed_labeler_records(task.m, a, b, budget, d),
        lambda: labeler_sizes(task.m, a, b, budget, d, best_error=task.gamma).n_records,
    )
    rows.add(
        "semi-private learner",
        "ABM 4.1",
        f"error <= gamma + {a:g}",
        lambda: (
            semi_private_sizes(
                a, b, budget.epsilon, d, calibration="paper", constant=constant
            ).n_records
        ),
        lambda: semi_private_sizes(a, b, budget.epsilon, d).n_records,
        f"paper: hidden constant taken as {constant:g}; delta is not used",
    )
    rows.add(
        "universal labeler",
        "NB 4.1",
        f"rate <= gamma + {a:g}",
        lambda: universal_records(a, b, budget, d),
        lambda: universal_sizes(a, b, budget, d, best_error=task.gamma).n_records,
        "paper: spends epsilon twice",
    )


class _Rows:
    """Collects rows; a theorem that refuses leaves None and its reason."""

    def __init__(self) -> None:
        self.rows: list[SampleSize] = []

    def add(
        self,
        construction: str,
        theorem: str,
        promise: str,
        paper: Callable[[], int] | None,
        tight: Callable[[], int] | None,
        remark: str = "",
    ) -> None:
        """Add a row from two ways to compute it."""
        figures: dict[str, int | None] = {"paper": None, "tight": None}
        remarks = [remark] if remark else []
        for name, way in (("paper", paper), ("tight", tight)):
            # a theorem that does not reach these numbers is no reason to lose the table
            try:
                figures[name] = None if way is None else way()
            except ParameterError as refusal:
                remarks.append(f"{name}: {refusal}")
        row = SampleSize(
            construction, theorem, promise, figures["paper"], figures["tight"], "; ".join(remarks)
        )
        self.rows.append(row)


def render_sample_sizes(rows: Sequence[SampleSize]) -> str:
    """Return the rows of `sample_sizes` as a Markdown table."""
    check_instance("rows", rows, Sequence)
    for row in rows:
        check_instance("a row", row, SampleSize, hint="give rows of sample_sizes")
    header = (
        "construction",
        "theorem",
        "promise",
        "n by the theorem",
        "n by tight calibration",
        "remark",
    )
    return markdown_table(
        header,
        [
            (r.construction, r.theorem, r.promise, as_figure(r.paper), as_figure(r.tight), r.remark)
            for r in rows
        ],
    )
