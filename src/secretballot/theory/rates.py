"""Table 1 of Liu et al. 2021 as a function, and sample complexities from it."""

import math
from dataclasses import dataclass
from fractions import Fraction

from secretballot._validation import (
    check_choice,
    check_instance,
    check_positive,
    check_probability,
    shown,
)
from secretballot.exceptions import Parameter, ParameterError
from secretballot.theory.ranges import check_count, check_share

ALGORITHMS = ("gaussian", "sparse-vector-2018", "sparse-vector", "active")
SETTINGS = ("realizable", "tsybakov", "agnostic", "agnostic-voting")


@dataclass(frozen=True)
class RiskBound:
    """An upper bound on an error or excess error.

    Attributes
    ----------
    value : float
        The bound; not cut at 1, so that one sees by how much a vacuous bound misses.
    trivial : float
        What holds without any theorem: 1 for an excess error or a disagreement, 1/2 for the error
        of a classifier.

    Examples
    --------
    >>> sb.theory.RiskBound(1.3).vacuous
    True
    """

    value: float
    trivial: float = 1.0

    @property
    def vacuous(self) -> bool:
        """True if the bound says no more than what holds anyway."""
        return not self.value < self.trivial


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
    >>> entry.excess(10**6, 10**4, vc_dimension=3, epsilon=1.0).vacuous
    False
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

    def excess(
        self,
        n_records: int,
        n_public: int,
        vc_dimension: int,
        epsilon: float,
        *,
        theta: float = 1.0,
        best_error: float = 0.0,
        constant: float = 1.0,
    ) -> RiskBound:
        """Return the rate at n, m, d and epsilon: (best_factor - 1) best_error + constant max(...).

        Hidden: `constant` and logarithms of m, n, 1 / delta, 1 / beta.

        Raises
        ------
        ParameterError
            If there is no rate, or a number is out of its range.
        """
        if math.isnan(self.records):
            raise ParameterError(
                f"There is no rate for {self.algorithm} in the setting {self.setting}:"
                f" {self.remark}"
            )
        d = check_count("vc_dimension", vc_dimension)
        ratio = d**self.dimension * check_positive("theta", theta) ** self.coefficient
        ratio /= check_count("n_records", n_records) * check_positive("epsilon", epsilon)
        public = math.pow(d / check_count("n_public", n_public), self.public)
        # the slower of the two parts, private and public, is the rate
        value = check_positive("constant", constant) * max(math.pow(ratio, self.records), public)
        return RiskBound(
            (self.best_factor - 1) * check_share("best_error", best_error, below=0.5) + value
        )


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
    if (check_choice("setting", setting, SETTINGS) == "tsybakov") != (tau is not None):
        raise ParameterError(
            Parameter("tau"),
            f" is {shown(tau)}; give one in [0, 1] for the setting 'tsybakov', and for no other.",
        )
    if setting.startswith("agnostic"):
        return _agnostic_rate(algorithm, setting)
    if algorithm == "sparse-vector-2018":
        if setting == "realizable":
            return Rate(algorithm, setting, 2 / 3, 1.5, 0.0, 0.5)
        check_share("tau", 1.0 if tau is None else tau)
        return Rate(
            algorithm, setting, 0.4, 1.5, 0.0, 0.5, 13.0, "the same as agnostic, whatever tau"
        )
    t = 1.0 if tau is None else check_share("tau", tau)
    if algorithm == "gaussian":
        remark = "printed exponent: (2 - tau) / 2" if setting == "tsybakov" else ""
        return Rate(algorithm, setting, 2 * t / (4 - t), 1.5, 0.0, 1.0, 1.0, remark)
    return Rate(algorithm, setting, t / (2 - t), 1.5, 0.5 if algorithm == "active" else 0.0, 1.0)


def _agnostic_rate(algorithm: str, setting: str) -> Rate:
    nan = math.nan
    if algorithm == "sparse-vector-2018" and setting == "agnostic":
        return Rate(
            algorithm, setting, 0.4, 1.5, 0.0, 0.5, 13.0, "printed: d^0.6 / (n^0.3 theta^0.3)"
        )
    if setting == "agnostic":
        remark = "voting can be worse than the best hypothesis (Example 8)"
        return Rate(algorithm, setting, nan, nan, nan, nan, nan, remark)
    if algorithm == "sparse-vector":
        remark = "consistent where margins are high (Theorems 12 and 13)"
        return Rate(algorithm, setting, nan, nan, nan, nan, 1.0, remark)
    return Rate(algorithm, setting, nan, nan, nan, nan, nan, "not analysed")


@dataclass(frozen=True)
class SampleComplexity:
    """Private records and public points for an excess error of alpha.

    Attributes
    ----------
    n_records, n_public : float
        Integers, or infinity where no number is enough.
    remark : str
        Beyond what error alpha is meant, or why there is no number.

    Examples
    --------
    >>> need = sb.theory.sample_complexity("active", "realizable", 0.1, 3, epsilon=1.0)
    >>> need.n_public, need.vacuous
    (30.0, False)
    """

    n_records: float
    n_public: float
    remark: str = ""

    @property
    def vacuous(self) -> bool:
        """True if no number is enough."""
        return math.isinf(self.n_records) or math.isinf(self.n_public)


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
) -> SampleComplexity:
    """Return the private and the public sample size at which `rate` is alpha.

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
    """
    found, goal = rate(algorithm, setting, tau), check_probability("alpha", alpha)
    d, budget = check_count("vc_dimension", vc_dimension), check_positive("epsilon", epsilon)
    at, scale = check_positive("theta", theta), check_positive("constant", constant)
    # its exponents may be 0, by which the sizes below would divide
    if found.vacuous:
        return SampleComplexity(
            math.inf, math.inf, found.remark or "at tau = 0 the bound does not fall"
        )
    size = d**found.dimension * at**found.coefficient / budget
    n = size * math.pow(scale / goal, 1 / found.records)
    m = d * math.pow(scale / goal, 1 / found.public)
    remark = "" if found.best_factor == 1 else f"beyond {found.best_factor:g} times the best error"
    return SampleComplexity(_rounded_up_or_inf(n), _rounded_up_or_inf(m), remark)


def _rounded_up_or_inf(value: float) -> float:
    return float(math.ceil(value * (1 - 1e-12))) if math.isfinite(value) else math.inf


def _exponent_text(value: float) -> str:
    """Return an exponent as a short fraction."""
    return str(Fraction(value).limit_denominator(1000)) if value != 1 else ""


def _formula_text(found: Rate) -> str:
    if math.isnan(found.records):
        return found.remark
    theta = " theta^1/2" if found.coefficient else ""
    private = f"(d^3/2{theta} / (n epsilon))" + (
        f"^({_exponent_text(found.records)})" if found.records != 1 else ""
    )
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
    check_instance("taus", taus, (tuple, list), hint="give exponents in [0, 1], such as (0.5, 1.0)")
    settings: list[tuple[str, float | None]] = [("realizable", None)]
    settings += [("tsybakov", check_share("tau", tau)) for tau in taus] + [
        ("agnostic", None),
        ("agnostic-voting", None),
    ]
    lines = []
    for setting, tau in settings:
        name = setting if tau is None else f"{setting}, tau = {tau:g}"
        lines.append(
            [name, *(_formula_text(rate(algorithm, setting, tau)) for algorithm in ALGORITHMS)]
        )
    lines = [["setting", *ALGORITHMS], ["---"] * (len(ALGORITHMS) + 1), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
