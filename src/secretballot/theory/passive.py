"""Liu, Zhu, Chaudhuri, Wang 2021 on passive queries: Theorems 5, C.3 and C.5, step by step."""

import math
from dataclasses import dataclass

from secretballot._validation import check_positive, check_probability
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.theory.learning import capacity
from secretballot.theory.ranges import (
    check_at_least,
    check_budget,
    check_count,
    check_counts,
    check_error,
    check_share,
    check_tau,
)
from secretballot.theory.results import RiskBound

__all__ = [
    "PassiveSizes",
    "gaussian_student_bound",
    "gaussian_student_excess",
    "gaussian_teachers",
    "gaussian_voting_disagreement",
    "hoeffding_cutoff",
    "passive_sizes",
    "printed_scale",
    "printed_sigma",
    "sparse_vector_student_error",
    "student_excess",
    "teacher_disagreement",
]


def printed_sigma(n_queries: int, budget: PrivacyBudget) -> float:
    """Return sigma of Liu et al. 2021, Algorithm 1, in votes.

    It solves sqrt(2 l log(1 / delta)) / sigma + l / (2 sigma^2) = epsilon: (sqrt(2 l log(1 /
    delta)) + sqrt(2 l log(1 / delta) + 2 epsilon l)) / (2 epsilon). Right for two classes and any
    epsilon, and more noise than needed by a factor of about 1.5 (item 3): `privacy.accounting` has
    the exact prices.

    Parameters
    ----------
    n_queries : int
        l.
    budget : PrivacyBudget
        With delta above 0.
    """
    length, (epsilon, delta) = check_count("n_queries", n_queries), check_budget(budget)
    spread = 2 * length * math.log(1 / delta)
    return (math.sqrt(spread) + math.sqrt(spread + 2 * epsilon * length)) / (2 * epsilon)


def printed_scale(max_unstable: int, budget: PrivacyBudget) -> float:
    """Return lambda of Liu et al. 2021, Algorithm 2, line 2, in votes.

    (sqrt(2 T (epsilon + log(2 / delta))) + sqrt(2 T log(2 / delta))) / epsilon: right, and loose
    (item 2a).
    """
    t, (epsilon, delta) = check_count("max_unstable", max_unstable), check_budget(budget)
    log = math.log(2 / delta)
    return math.sqrt(2 * t) * (math.sqrt(epsilon + log) + math.sqrt(log)) / epsilon


def teacher_disagreement(
    n_records: int,
    n_teachers: int,
    vc_dimension: int,
    beta: float,
    tau: float,
    *,
    eta: float = 1.0,
    constant: float = 1.0,
) -> RiskBound:
    """Return a bound on each teacher's disagreement with the best hypothesis, under Tsybakov noise.

    Source: Liu et al. 2021, Lemma B.2 in the form of Theorem 15: constant eta^(2 / (2 - tau)) ((d K
    log(n / d) + log(2 K / beta)) / n)^(tau / (2 - tau)). Hidden: `constant`, universal. At tau = 0
    it is constant, hence vacuous for all n.

    Parameters
    ----------
    n_records, n_teachers, vc_dimension : int
        n of at least d K.
    beta : float
    tau : float
        In [0, 1].
    eta : float
        At least 1.
    constant : float

    Raises
    ------
    ParameterError
        If a number is out of its range.
    """
    k, d = check_count("n_teachers", n_teachers), check_count("vc_dimension", vc_dimension)
    n = check_at_least(
        "n_records", n_records, d * k, "one shard of vc_dimension records for each teacher"
    )
    exponent, chance = check_tau(tau), check_probability("beta", beta)
    if not check_positive("eta", eta) >= 1:
        raise ParameterError(
            Parameter("eta"), f" is {eta!r}; the Tsybakov noise condition has an eta of at least 1."
        )
    # n / d is at least K here, so that neither logarithm is negative
    size = (d * k * math.log(n / d) + math.log(2 * k / chance)) / n
    value = math.pow(eta, 2 / (2 - exponent)) * math.pow(size, exponent / (2 - exponent))
    return RiskBound(check_positive("constant", constant) * value)


def student_excess(
    max_unstable: int,
    n_public: int,
    vc_dimension: int,
    beta: float,
    *,
    n_voters: int = 1,
    form: str = "growth",
) -> RiskBound:
    """Return the excess error of a student of m labels, of which at most T differ from its target.

    Source: the last step of Theorem 5 (target h*), and Theorem 13 (target h_inf^agg, student in
    Vote_K(H), `n_voters` = K) of Liu et al. 2021: 4 T / m + 5 (K d + log(4 / beta)) / m. Corrected:
    the default has the growth function of the class instead of K d (see `uniform_bound`); for K
    voters the dimension is taken as K d, as printed, although it can be larger by a factor log K.
    Nothing is hidden. Vacuous for T above m / 4.

    Parameters
    ----------
    max_unstable, n_public, vc_dimension : int
        T, m, d.
    beta : float
    n_voters : int
        K of the student's class; 1 for H itself.
    form : {"growth", "paper"}
    """
    t, m = check_count("max_unstable", max_unstable, minimum=0), check_count("n_public", n_public)
    d = check_count("vc_dimension", vc_dimension) * check_count("n_voters", n_voters)
    return RiskBound((4 * t + 5 * capacity(d, m, beta, form)) / m)


@dataclass(frozen=True)
class PassiveSizes:
    """T, K and what Theorem 5 says of them.

    Attributes
    ----------
    max_unstable : int
        T, at least 1.
    n_teachers : int
        K.
    excess : RiskBound
    enough : bool
        False if T reaches m, or the teachers outnumber the records: then the theorem's T and K
        cannot be run.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(epsilon=1.0, delta=1e-6)
    >>> sizes = sb.theory.passive_sizes(10**7, 10**4, 3, budget, beta=0.05, tau=1.0)
    >>> sizes.max_unstable, sizes.enough
    (1, True)
    """

    max_unstable: int
    n_teachers: int
    excess: RiskBound
    enough: bool

    @property
    def vacuous(self) -> bool:
        """True if the bound says nothing, or T and K cannot be run."""
        return self.excess.vacuous or not self.enough


def passive_sizes(
    n_records: int,
    n_public: int,
    vc_dimension: int,
    budget: PrivacyBudget,
    beta: float,
    tau: float,
    *,
    constant: float = 1.0,
) -> PassiveSizes:
    """Return T, K and the excess error of sparse-vector voting on m points, under Tsybakov noise.

    Source: Liu et al. 2021, Theorem 5. T = constant (m^(4 - 2 tau) (d / (n epsilon))^(2 tau))^(1 /
    (4 - 3 tau)); K = 136 log(4 m T / min(delta, beta / 2)) sqrt(T log(2 / delta)) / epsilon (Lemma
    C.1); excess constant (d / m + (m (d / (n epsilon))^2)^(tau / (4 - 3 tau))). Hidden: `constant`
    and logarithms. Vacuous at tau = 0, and where T or K do not fit.

    Parameters
    ----------
    n_records, n_public, vc_dimension : int
        n, m, d.
    budget : PrivacyBudget
        With delta above 0.
    beta : float
    tau : float
        In [0, 1]; the realizable case is tau = 1.
    constant : float
    """
    n, m, d = check_counts(n_records=n_records, n_public=n_public, vc_dimension=vc_dimension)
    chance, (epsilon, delta) = check_probability("beta", beta), check_budget(budget)
    t, scale = check_tau(tau), check_positive("constant", constant)
    # T balances queries that may abstain against the noise that they cost
    ratio = d / (n * epsilon)
    root = 1 / (4 - 3 * t)
    unstable = max(
        1, math.ceil(scale * math.pow(m, (4 - 2 * t) * root) * math.pow(ratio, 2 * t * root))
    )
    logs = math.log(4 * m * unstable / min(delta, chance / 2)) * math.sqrt(
        unstable * math.log(2 / delta)
    )
    teachers = math.ceil(136 * logs / epsilon)
    excess = RiskBound(scale * (d / m + math.pow(m * ratio * ratio, t * root)))
    return PassiveSizes(unstable, teachers, excess, unstable < m and teachers * d <= n)


def hoeffding_cutoff(mean_error: float, n_queries: int, n_teachers: int, beta: float) -> int:
    """Return T of Theorem C.3 for teachers of that expected error, rounded up.

    Source: Liu et al. 2021, Theorem C.3: 3 (E[error] m + sqrt(m log(m / beta) / 2)). Corrected
    (item 6): the union is over the K teachers, so log(K / beta). Nothing is hidden; `cutoff` has
    the exact quantile, which is smaller.
    """
    m, k = check_counts(n_queries=n_queries, n_teachers=n_teachers)
    p, chance = check_share("mean_error", mean_error), check_probability("beta", beta)
    return math.ceil(3 * (p * m + math.sqrt(m * math.log(k / chance) / 2)))


def sparse_vector_student_error(
    n_records: int,
    n_public: int,
    vc_dimension: int,
    budget: PrivacyBudget,
    *,
    best_error: float = 0.0,
    constant: float = 1.0,
) -> RiskBound:
    """Return the error of the student of the sparse vector without a noise condition.

    Source: Liu et al. 2021, Theorem C.3 (after Bassily, Thakurta, Thakkar 2018). Realizable:
    constant (m (d / (n epsilon))^2 log(1 / delta) + sqrt(d / m)). Otherwise 13 best_error +
    constant (m^(1/3) (d / (n epsilon))^(2/3) + sqrt(d / m)). Hidden: `constant` and logarithms.
    Vacuous for best_error above 1/26 whatever n and m (a random guess has 1/2).

    Parameters
    ----------
    n_records, n_public, vc_dimension : int
    budget : PrivacyBudget
    best_error : float
        Error of the best hypothesis, in [0, 1/2).
    constant : float
    """
    n, m, d = check_counts(n_records=n_records, n_public=n_public, vc_dimension=vc_dimension)
    gamma, scale = check_error("best_error", best_error), check_positive("constant", constant)
    realizable = gamma == 0
    epsilon, delta = check_budget(budget, needs_delta=realizable)
    # delta enters in the realizable case alone, so a budget without it will do elsewhere
    ratio = d / (n * epsilon)
    private = (
        m * ratio**2 * math.log(1 / delta)
        if realizable
        else math.pow(m, 1 / 3) * math.pow(ratio, 2 / 3)
    )
    return RiskBound(13 * gamma + scale * (private + math.sqrt(d / m)), trivial=0.5)


def gaussian_teachers(n_records: int, n_queries: int, budget: PrivacyBudget) -> int:
    """Return K of Theorems 15 and C.5, rounded up: 6 sigma sqrt(2 log(2 n)), with `printed_sigma`
    for l queries.

    Source: Liu et al. 2021. Printed: 6 sqrt(log(2 n)) (sqrt(l log(1 / delta)) + sqrt(l log(1 /
    delta) + epsilon l)) / epsilon, the same. Nothing is hidden. Vacuous where it exceeds n.
    """
    n = check_count("n_records", n_records)
    return math.ceil(6 * printed_sigma(n_queries, budget) * math.sqrt(2 * math.log(2 * n)))


def gaussian_voting_disagreement(
    mean_disagreement: float, n_teachers: int, sigma: float, beta: float
) -> RiskBound:
    """Return how often a label of Gaussian voting differs from a target that teachers approximate.

    Source: Liu et al. 2021, Theorem 15, step 2: Markov's inequality on the votes against, given
    that the noise stays below s = sigma sqrt(2 log(2 / beta)): K mean / (K / 2 - s) + beta, which
    is 3 mean + 1 / n at the printed K and beta = 1 / n. Nothing is hidden. Vacuous where K <= 2 s.

    Parameters
    ----------
    mean_disagreement : float
        Mean over the teachers of their disagreement with the target, in [0, 1].
    n_teachers : int
    sigma : float
        Noise, in votes.
    beta : float
        Chance left to the noise; a choice of the proof.
    """
    k, mean = (
        check_count("n_teachers", n_teachers),
        check_share("mean_disagreement", mean_disagreement),
    )
    chance = check_probability("beta", beta)
    room = k / 2 - check_positive("sigma", sigma) * math.sqrt(2 * math.log(2 / chance))
    return RiskBound(k * mean / room + chance if room > 0 else math.inf)


def gaussian_student_bound(
    disagreement: float, n_public: int, vc_dimension: int, beta: float
) -> RiskBound:
    """Return the excess error of a student of m Gaussian labels that differ from h* that often.

    Source: Liu et al. 2021, proof of Theorem C.5, (8): 2 D + 2 sqrt(D c / m) + 4 c / m with c of
    `capacity` in the growth form; printed as 4 D + O~(d / m). Nothing is hidden.
    """
    d, m = check_share("disagreement", disagreement), check_count("n_public", n_public)
    over = capacity(vc_dimension, m, beta) / m
    return RiskBound(2 * d + 2 * math.sqrt(d * over) + 4 * over)


def gaussian_student_excess(
    n_records: int,
    n_public: int,
    vc_dimension: int,
    epsilon: float,
    tau: float,
    *,
    constant: float = 1.0,
) -> RiskBound:
    """Return the excess error of Gaussian voting on all m public points, under Tsybakov noise.

    Source: Liu et al. 2021, Theorem C.5 (for Algorithm 3 with Algorithm 1 and l = m): constant (d /
    m + (d sqrt(m) / (n epsilon))^(tau / (2 - tau))). Hidden: `constant` and logarithms, 1 / delta
    among them. Vacuous at tau = 0.

    Parameters
    ----------
    n_records, n_public, vc_dimension : int
    epsilon : float
    tau : float
        In [0, 1].
    constant : float
    """
    n, m, d = check_counts(n_records=n_records, n_public=n_public, vc_dimension=vc_dimension)
    t, private = check_tau(tau), d * math.sqrt(m) / (n * check_positive("epsilon", epsilon))
    return RiskBound(
        check_positive("constant", constant) * (d / m + math.pow(private, t / (2 - t)))
    )
