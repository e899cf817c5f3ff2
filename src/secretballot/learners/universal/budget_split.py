"""How the budget of a universal labeler is split between its two parts, from public numbers
alone."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from secretballot._validation import check_count, check_probability, shown
from secretballot.accounting import PrivacyBudget, Sampled
from secretballot.exceptions import Parameter, ParameterError

LEAST_SHARE = 0.1  # costs the first part a tenth of its sample and is always enough to be drawn
OPEN_SHARE = 0.5  # where nobody knows how many questions will come


@dataclass(frozen=True)
class BudgetSplit:
    """What each part may cost, so that both together cost what was asked.

    Attributes
    ----------
    total : PrivacyBudget
    first : PrivacyBudget or None
        Of the agnostic labeler; all of delta. None where there is none.
    endless : float
        Epsilon of the choice of a hypothesis, pure.
    n_first : int
        Questions after which the second part answers.
    why : str
        Where the split comes from.
    """

    total: PrivacyBudget
    first: PrivacyBudget | None
    endless: float
    n_first: int
    why: str

    @classmethod
    def of(
        cls, total: PrivacyBudget, epsilon_share: float, n_first: int, why: str
    ) -> "BudgetSplit":
        """Return the split that gives a share of epsilon to the second part, to three digits.

        Raises
        ------
        ParameterError
            If the share is not strictly between 0 and 1, or leaves one part nothing.
        """
        share = check_probability("epsilon_share", epsilon_share)
        endless = float(f"{share * total.epsilon:.3g}")
        # as decimals, which is how a ledger adds promises up
        whole, part = Fraction(repr(total.epsilon)), Fraction(repr(endless))
        first = float(whole - part)
        while first > 0 and Fraction(repr(first)) + part > whole:
            first = math.nextafter(first, 0.0)
        if not (first > 0 and endless > 0):
            raise ParameterError(
                Parameter("epsilon_share"),
                f" is {shown(epsilon_share)}, which leaves one part no epsilon; give one nearer"
                " to 0.5.",
            )
        return cls(total, PrivacyBudget(first, total.delta), endless, n_first, why)

    @classmethod
    def all_to_endless(cls, total: PrivacyBudget) -> "BudgetSplit":
        """Return the split without a first part."""
        return cls(total, None, total.epsilon, 0, "all public points are known beforehand")

    @classmethod
    def from_description(cls, about: Mapping[str, Any]) -> "BudgetSplit":
        """Rebuild the split from the object that `describe` made."""
        total = PrivacyBudget(about["epsilon"], about["delta"])
        first = about["first_epsilon"] and PrivacyBudget(about["first_epsilon"], about["delta"])
        return cls(
            total, first or None, about["endless_epsilon"], about["first_questions"], about["why"]
        )

    def describe(self) -> dict[str, object]:
        """Return the split as JSON values."""
        return {
            "epsilon": self.total.epsilon,
            "delta": self.total.delta,
            "first_epsilon": 0.0 if self.first is None else self.first.epsilon,
            "endless_epsilon": self.endless,
            "first_questions": self.n_first,
            "why": self.why,
        }

    def __str__(self) -> str:
        if self.first is None:
            return f"epsilon {self.total.epsilon:g} for all questions ({self.why})"
        return (
            f"epsilon {self.total.epsilon:g} = {self.first.epsilon:g} for the first {self.n_first}"
            f" questions + {self.endless:g} for all others ({self.why})"
        )


def error_constants(
    vc_dimension: int,
    n_first: int,
    *,
    epsilon: float,
    rate: float,
    n_teachers: int,
    relation: str,
) -> tuple[float, float]:
    """Return c_A and c_B: beyond the best hypothesis the parts err by about c_A / (n eps_A) and c_B
    / (n eps_B).

    Parameters
    ----------
    vc_dimension : int
        d.
    n_first : int
        Questions of the first part, which are the public points of the second.
    epsilon, rate, n_teachers
        Of an agnostic labeler: its epsilon, the share of the records that it samples, and its
        number K of teachers.
    relation : {"add-remove", "replace-one"}

    Notes
    -----
    A teacher of rate n / K relabelled records errs on about d K / (rate n) of the points, and the
    vote where a third of the teachers do: on three times as many. The rate is nearly proportional
    to epsilon, and K does not depend on it. The hypothesis loses scale log(number of labellings)
    mistakes (Sauer: at most (e m / d)^d labellings).
    """
    d, moved = vc_dimension, 1 if relation == "add-remove" else 2
    labellings = d * (1 + math.log(max(1.0, n_first / d)))
    return 3 * n_teachers * d * epsilon / rate, moved * labellings


def best_share(constants: tuple[float, float], n_first: int, n_queries: int) -> float:
    """Return the part of epsilon for the second part at which the average error of all questions is
    least.

    Parameters
    ----------
    constants : tuple of float
        c_A and c_B, as `error_constants` returns them.
    n_first : int
        Questions of the first part.
    n_queries : int
        All questions that are expected.

    Returns
    -------
    float
        With f = n_first / n_queries the least of f c_A / eps_A + (1 - f) c_B / eps_B is at eps_B /
        eps_A = sqrt(c_B (1 - f) / (c_A f)); kept between a tenth and nine tenths, since the second
        part must be payable even where it answers little.
    """
    f = min(1.0, n_first / check_count("n_queries", n_queries))
    ratio = math.sqrt(constants[1] * (1 - f) / (constants[0] * f))
    return min(1 - LEAST_SHARE, max(LEAST_SHARE, ratio / (1 + ratio)))


def split_budget(
    total: PrivacyBudget,
    planned: Callable[[PrivacyBudget], tuple[Sampled, int]],
    vc_dimension: int,
    n_first: int,
    *,
    n_queries: int | None,
    epsilon_share: float | None,
) -> BudgetSplit:
    """Return what each part may cost, from public numbers alone.

    Parameters
    ----------
    total : PrivacyBudget
    planned : callable
        Noise and sample, and number of teachers, of an agnostic labeler of that budget.
    vc_dimension, n_first : int
    n_queries : int or None
        All questions that are expected; None for many more than `n_first`.
    epsilon_share : float or None
        Share of epsilon for the second part, where it is given.

    Raises
    ------
    ParameterError
        If the share is out of its range, or no noise fits the budget.
    """
    if epsilon_share is not None:
        return BudgetSplit.of(total, epsilon_share, n_first, "as given")
    if n_queries is None:
        return BudgetSplit.of(total, OPEN_SHARE, n_first, "the number of questions is open")
    # The constants hardly depend on epsilon, so those of the largest first part serve for all.
    trial = PrivacyBudget(total.epsilon * (1 - LEAST_SHARE), total.delta)
    event, n_teachers = planned(trial)
    constants = error_constants(
        vc_dimension,
        n_first,
        epsilon=trial.epsilon,
        rate=event.rate,
        n_teachers=n_teachers,
        relation=event.relation,
    )
    why = f"the least average error of {n_queries} questions"
    return BudgetSplit.of(total, best_share(constants, n_first, n_queries), n_first, why)
