"""Bounds of the papers as functions of public numbers: Table 1, and voting in numbers.

Citations: LZCW = Liu, Zhu, Chaudhuri, Wang 2021; BTT = Bassily, Thakurta, Thakkar 2018. "Item 9" is
that of `docs/explanation/differences.md`. A bound that says nothing has `vacuous` set.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.stats import binom

from secretballot._validation import (
    check_choice,
    check_count,
    check_finite,
    check_positive,
    check_probability,
    shown,
)
from secretballot.exceptions import Parameter, ParameterError

__all__ = [
    "ALGORITHMS",
    "FAILING_CLASS",
    "SETTINGS",
    "Rate",
    "VotingExample",
    "rate",
    "render_rates",
    "sample_complexity",
    "voting_fails",
    "voting_wins",
]

ALGORITHMS = ("gaussian", "sparse-vector-2018", "sparse-vector", "active")
SETTINGS = ("realizable", "tsybakov", "agnostic", "agnostic-voting")

_WORSE = "voting can be worse than the best hypothesis (Example 8)"
_NO_RATE = {
    ("gaussian", "agnostic"): _WORSE,
    ("sparse-vector", "agnostic"): _WORSE,
    ("active", "agnostic"): _WORSE,
    ("gaussian", "agnostic-voting"): "not analysed",
    ("sparse-vector-2018", "agnostic-voting"): "not analysed",
    ("active", "agnostic-voting"): "not analysed",
    ("sparse-vector", "agnostic-voting"): (
        "consistent where margins are high (Theorems 12 and 13)"
    ),
}


@dataclass(frozen=True)
class Rate:
    """Excess error of O~(max((d^a theta^b / (n epsilon))^p, (d / m)^q)) beyond the best error.

    Attributes
    ----------
    algorithm, setting : str
    records : float
        p; 0 if more private records do not help. nan where there is no rate.
    dimension : float
        a.
    coefficient : float
        b, of the disagreement coefficient.
    public : float
        q; 0 if more public points do not help. nan where there is no rate.
    best_factor : float
        1: consistent. 13: the bound approaches 13 times the best error. nan: no bound is known.
    remark : str
        What the paper prints where it differs, or why there is no rate.

    Examples
    --------
    >>> entry = sb.theory.rate("gaussian", "realizable")
    >>> round(entry.records, 4), entry.public, entry.vacuous
    (0.6667, 1.0, False)
    """

    algorithm: str
    setting: str
    records: float
    dimension: float
    coefficient: float
    public: float
    best_factor: float = 1.0
    remark: str = ""

    @property
    def vacuous(self) -> bool:
        """True if the bound vanishes for no n and m."""
        return not (self.records > 0 and self.public > 0)


def rate(algorithm: str, setting: str, tau: float | None = None) -> Rate:
    """Return an entry of Table 1 of Liu et al. 2021, at the best K and number of labelled points.

    Corrected (item 9): Gaussian voting under Tsybakov noise has the exponent 2 tau / (4 - tau) that
    follows from Theorem C.5, not the printed (2 - tau) / 2; the agnostic bound of 2018 has d^(3/5)
    / (n epsilon)^(2/5) (Remark C.4), not d^0.6 / (n^0.3 theta^0.3). All entries hide constants and
    logarithms. Vacuous at tau = 0.

    Parameters
    ----------
    algorithm : {"gaussian", "sparse-vector-2018", "sparse-vector", "active"}
        Gaussian voting on all labelled points; the sparse vector as Bassily, Thakurta, Thakkar 2018
        analyse it, and as Liu et al. do; Gaussian voting with active queries.
    setting : {"realizable", "tsybakov", "agnostic", "agnostic-voting"}
        The last one compares with h_inf^agg, what infinitely many teachers would say, instead of
        the best hypothesis.
    tau : float, optional
        Exponent of "tsybakov", in [0, 1]; for no other setting.

    Raises
    ------
    ParameterError
        If a word is unknown, or tau is missing, superfluous or out of its range.
    """
    # a tau where none belongs is refused too: it would be ignored without a word
    check_choice("algorithm", algorithm, ALGORITHMS)
    fits = tau is None
    if check_choice("setting", setting, SETTINGS) == "tsybakov":
        fits = tau is not None and 0 <= check_finite("tau", tau) <= 1
    if not fits:
        raise ParameterError(
            Parameter("tau"),
            f" is {shown(tau)}; give one in [0, 1] for the setting 'tsybakov', and for no other.",
        )
    if (algorithm, setting) in _NO_RATE:
        nan, remark = math.nan, _NO_RATE[algorithm, setting]
        return Rate(algorithm, setting, nan, nan, nan, nan, nan, remark)
    t = 1.0 if tau is None else float(tau)
    if algorithm == "sparse-vector-2018":
        if setting == "realizable":
            return Rate(algorithm, setting, 2 / 3, 1.5, 0.0, 0.5)
        remark = "the same as agnostic, whatever tau"
        if setting == "agnostic":
            remark = "printed: d^0.6 / (n^0.3 theta^0.3)"
        return Rate(algorithm, setting, 0.4, 1.5, 0.0, 0.5, 13.0, remark)
    if algorithm == "gaussian":
        remark = "printed exponent: (2 - tau) / 2" if setting == "tsybakov" else ""
        return Rate(algorithm, setting, 2 * t / (4 - t), 1.5, 0.0, 1.0, 1.0, remark)
    return Rate(algorithm, setting, t / (2 - t), 1.5, 0.5 if algorithm == "active" else 0.0, 1.0)


def sample_complexity(
    algorithm: str,
    setting: str,
    alpha: float,
    vc_dimension: int,
    epsilon: float,
    *,
    tau: float | None = None,
    theta: float = 1.0,
    constant: float = 1.0,
) -> tuple[float, float]:
    """Return the numbers of private records and of public points at which `rate` is alpha beyond
    its best error: integers, or infinity where no number is enough.

    n = d^a theta^b (constant / alpha)^(1 / p) / epsilon, m = d (constant / alpha)^(1 / q), rounded
    up. Hidden: `constant` and logarithms. In the realizable case n = d^1.5 / (alpha epsilon) and m
    = d / alpha for the sparse vector (Remark 6 of Liu et al. 2021).

    Parameters
    ----------
    algorithm, setting, tau
        As for `rate`.
    alpha : float
        In (0, 1).
    vc_dimension : int
    epsilon : float
    theta : float
        Disagreement coefficient, read by "active" alone.
    constant : float

    Examples
    --------
    >>> sb.theory.sample_complexity("active", "realizable", 0.1, 3, epsilon=1.0)
    (52.0, 30.0)
    """
    found, goal = rate(algorithm, setting, tau), check_probability("alpha", alpha)
    d, budget = check_count("vc_dimension", vc_dimension), check_positive("epsilon", epsilon)
    at, scale = check_positive("theta", theta), check_positive("constant", constant)
    # its exponents may be 0, by which the sizes below would divide
    if found.vacuous:
        return math.inf, math.inf
    size = d**found.dimension * at**found.coefficient / budget
    n = size * math.pow(scale / goal, 1 / found.records)
    m = d * math.pow(scale / goal, 1 / found.public)
    return _rounded_up_or_inf(n), _rounded_up_or_inf(m)


def _rounded_up_or_inf(value: float) -> float:
    return float(math.ceil(value * (1 - 1e-12))) if math.isfinite(value) else math.inf


def _formula_text(found: Rate) -> str:
    if math.isnan(found.records):
        return found.remark
    theta = " theta^1/2" if found.coefficient else ""
    private = f"(d^3/2{theta} / (n epsilon))"
    if found.records != 1:
        private += f"^({Fraction(found.records).limit_denominator(1000)})"
    public = "d / m" if found.public == 1 else "sqrt(d / m)"
    best = "" if found.best_factor == 1 else f"{found.best_factor:g} best + "
    return f"{best}max({private}, {public})"


def render_rates(taus: tuple[float, ...] = (0.25, 0.5, 1.0)) -> str:
    """Return Table 1 of Liu et al. 2021, corrected, as Markdown: settings by algorithms.

    Parameters
    ----------
    taus : tuple of float
        Exponents for which the Tsybakov setting gets a line.
    """
    lines = [["setting", *ALGORITHMS], ["---"] * (len(ALGORITHMS) + 1)]
    for setting in SETTINGS:
        for tau in taus if setting == "tsybakov" else (None,):
            name = setting if tau is None else f"{setting}, tau = {tau:g}"
            found = (rate(algorithm, setting, tau) for algorithm in ALGORITHMS)
            lines.append([name, *map(_formula_text, found)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


@dataclass(frozen=True)
class VotingExample:
    """Equally likely points, at each of which teachers are right independently with known chances.

    Attributes
    ----------
    agreement : tuple of float
        The chance at each point.
    best_error : float
        Error of the best hypothesis of the class.

    Examples
    --------
    >>> example = sb.theory.voting_wins(margin=0.2)
    >>> example.teacher_error
    0.30000000000000004
    >>> example.voting_error(101) < 0.001
    True
    """

    agreement: tuple[float, ...]
    best_error: float

    @property
    def teacher_error(self) -> float:
        """Expected error of one teacher."""
        return 1 - math.fsum(self.agreement) / len(self.agreement)

    def voting_error(self, n_teachers: int) -> float:
        """Return the expected error of the majority of K teachers; ties are broken at random."""
        k = check_count("n_teachers", n_teachers)
        right = np.asarray(self.agreement)
        wrong = binom.cdf((k - 1) // 2, k, right) + (
            0.5 * binom.pmf(k // 2, k, right) if k % 2 == 0 else 0.0
        )
        return float(np.mean(wrong))


FAILING_CLASS: tuple[tuple[int, ...], ...] = ((1, 1, 0, 0), (1, 0, 1, 0), (1, 0, 0, 1))
"""Example 8: what its three hypotheses say at the four points, where the label is always 1."""


def voting_fails() -> VotingExample:
    """Return Example 8 of Liu et al. 2021: every hypothesis errs 1/2, their majority 3/4.

    Four equally likely points, all of class 1. A teacher that minimises the empirical error with
    fair tie-breaking is each of `FAILING_CLASS` with chance 1/3, by symmetry, whatever its shard;
    so it is right always at the first point and with chance 1/3 at the others, and the vote tends
    to 3/4 exponentially fast in K.
    """
    agreement = tuple(sum(h[i] for h in FAILING_CLASS) / len(FAILING_CLASS) for i in range(4))
    return VotingExample(agreement, 0.5)


def voting_wins(margin: float) -> VotingExample:
    """Return Example 9 of Liu et al. 2021: teachers err 1/2 - margin, their majority hardly ever.

    Parameters
    ----------
    margin : float
        In (0, 1/2).
    """
    level = check_finite("margin", margin)
    if not 0 < level < 0.5:
        raise ParameterError(
            Parameter("margin"), f" is {shown(margin)}; it must lie above 0 and below 0.5."
        )
    return VotingExample((0.5 + level,) * 4, 0.5 - level)
