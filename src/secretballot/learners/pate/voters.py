"""Teachers in budget groups: how many each group has, and what they are asked by."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from secretballot._validation import check_count, check_finite, shown
from secretballot.aggregation import WeightedGaussianAggregator
from secretballot.exceptions import Argument, Parameter, ParameterError
from secretballot.learners.pate.defaults import choose_label_queries
from secretballot.learners.training.budget_groups import BudgetGroups, largest_of
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.privacy.accounting.gaussian import gaussian_mu
from secretballot.report.certificate.moments import GROUPS
from secretballot.report.certificate.weighted import WEIGHTED

__all__ = ["GroupedVoters", "teachers_for_groups", "voters_in_groups", "voters_of"]


@dataclass(frozen=True)
class GroupedVoters:
    """Budget groups and how many teachers each of them has; public.

    Attributes
    ----------
    budgets : dict of str to PrivacyBudget
    teachers : dict of str to int
        In the same order.
    """

    budgets: dict[str, PrivacyBudget]
    teachers: dict[str, int]

    @property
    def budget(self) -> PrivacyBudget:
        """The largest budget, that of the release."""
        return largest_of(None, self.budgets)

    @property
    def full_teachers(self) -> int:
        """About how many teachers of full weight cast as many votes."""
        weights = _rough_weights(self.budgets)
        weighed = (number * weights[name] for name, number in self.teachers.items())
        return max(1, round(sum(weighed)))

    def told(self) -> list[tuple[str, int, float, float]]:
        """Return names, numbers of teachers and promises."""
        return [
            (name, self.teachers[name], own.epsilon, own.delta)
            for name, own in self.budgets.items()
        ]

    def aggregator(
        self, *, n_classes: int, n_public: int, n_queries: int | None, release: str
    ) -> WeightedGaussianAggregator:
        """Return weighted voting, calibrated to the groups' budgets.

        By default every public point is asked where counts are released; where labels are, as many
        as leave a vote of a clear margin right 19 times in 20.

        Raises
        ------
        ParameterError
            If more queries are asked than there are public points, or no vote keeps a budget.
        """
        if n_queries is not None and check_count("n_queries", n_queries) > n_public:
            raise ParameterError(
                f"{n_queries} queries are asked of {n_public} public rows; ask at most as many as"
                " there are, or give more public rows."
            )
        if n_queries is None and release == "counts":
            n_queries = n_public
        elif n_queries is None:
            n_queries = choose_label_queries(self.budget, self.full_teachers, n_classes, n_public)
        return WeightedGaussianAggregator.calibrate(
            self.budgets, self.teachers, n_queries, n_classes=n_classes, release=release
        )


def voters_of(certificate: Mapping[str, Any]) -> int | list[tuple[str, int, float, float]]:
    """Return how many teachers voted, and where they are in groups what `GroupedVoters.told` tells
    of them."""
    mechanism = certificate["mechanism"]
    if mechanism["name"] != WEIGHTED:
        return int(certificate["released"]["n_teachers"])
    fields = ("name", "teachers", "epsilon", "delta")
    return [tuple(group[field] for field in fields) for group in mechanism[GROUPS]]


def voters_in_groups(
    budgets: dict[str, PrivacyBudget],
    n_teachers: int,
    group_shares: Any,
    groups: BudgetGroups | None,
) -> GroupedVoters:
    """Return how many of the teachers each group has, at least one.

    Parameters
    ----------
    budgets : dict of str to PrivacyBudget
    n_teachers : int
    group_shares : mapping of str to float, or None
        Share of the records that is expected in each group, in any unit.
    groups : BudgetGroups or None
        Where their sizes are public: they are the shares that are not given.

    Raises
    ------
    ParameterError
        If no shares are given where sizes are private, they are none, or teachers are fewer than
        groups.
    """
    if group_shares is None and groups is None:
        raise ParameterError(
            Parameter("group_shares"),
            " is missing: under ",
            Argument("neighbours", "add-remove"),
            " the sizes of budget groups are private, so teachers cannot be divided by them. Say"
            " what share of the records you expect in each group, such as {'strict': 0.3, 'open':"
            " 0.7}.",
        )
    if group_shares is None:
        assert groups is not None
        # exact, so that every machine divides the teachers alike
        shares = {name: Fraction(groups.records_of(at)) for at, name in enumerate(budgets)}
        for name, size in shares.items():
            if not size > 0:
                raise ParameterError(
                    Parameter("group_budgets"),
                    f" names the group {shown(name)}, which has no record; leave it out.",
                )
    else:
        shares = _checked_shares(group_shares, budgets)
    if check_count("n_teachers", n_teachers) < len(budgets):
        raise ParameterError(
            Parameter("n_teachers"),
            f" is {n_teachers} with {len(budgets)} budget groups; every group needs a teacher.",
        )
    return GroupedVoters(budgets, _teachers_by_shares(n_teachers, shares))


def teachers_for_groups(
    n_teachers: int,
    budgets: Mapping[str, PrivacyBudget],
    shares: Mapping[str, float],
    n_records: int,
) -> int:
    """Return how many teachers cast about as many votes as so many of full weight, as far as each
    still has ten records on average.

    Parameters
    ----------
    n_teachers : int
        That suit the largest budget.
    budgets : mapping of str to PrivacyBudget
    shares : mapping of str to float
        Of the teachers in each group, in any unit.
    n_records : int
        Publicly stated.
    """
    weights = _rough_weights(budgets)
    mean = sum(shares[name] * weights[name] for name in budgets) / sum(shares.values())
    return max(n_teachers, min(round(n_teachers / mean), n_records // 10))


def _rough_weights(budgets: Mapping[str, PrivacyBudget]) -> dict[str, float]:
    """Return about how much a vote of each group counts, one of the largest budget being 1."""
    means = {name: gaussian_mu(own.epsilon, own.delta) for name, own in budgets.items()}
    largest = max(means.values())
    return {name: mean / largest for name, mean in means.items()}


def _checked_shares(group_shares: Any, budgets: Mapping[str, PrivacyBudget]) -> dict[str, Fraction]:
    """Return a positive share for each group."""
    given = list(group_shares) if isinstance(group_shares, Mapping) else [group_shares]
    if not isinstance(group_shares, Mapping) or set(given) != set(budgets):
        raise ParameterError(
            Parameter("group_shares"),
            f" names {', '.join(map(shown, given))}; give a positive number for each group of ",
            Parameter("group_budgets"),
            f" ({', '.join(map(shown, budgets))}) and no other.",
        )
    shares = {}
    for name in budgets:
        share = check_finite("group_shares", group_shares[name])
        if not share > 0:
            raise ParameterError(
                Parameter("group_shares"),
                f" has {share:g} for the group {shown(name)}; it must be above 0.",
            )
        shares[name] = Fraction(share)
    return shares


def _teachers_by_shares(n_teachers: int, shares: Mapping[str, Fraction]) -> dict[str, int]:
    """Return teachers in proportion to shares, at least one for each; exact, so that every
    machine divides alike."""
    whole = sum(shares.values())
    due = {name: n_teachers * share / whole for name, share in shares.items()}
    found = {name: max(1, int(number)) for name, number in due.items()}
    while sum(found.values()) < n_teachers:
        found[max(due, key=lambda name: due[name] - found[name])] += 1
    while sum(found.values()) > n_teachers:  # some have one that is not due
        several = [name for name in due if found[name] > 1]
        found[max(several, key=lambda name: found[name] - due[name])] -= 1
    return found
