"""The list of a new account, by what its releases will need: `secretballot ledger create`."""

from secretballot._validation import AggregatorName
from secretballot.aggregation import GaussianAggregator, VoteTableAggregator
from secretballot.exceptions import Argument, Parameter, ParameterError
from secretballot.privacy.accounting import Event, PrivacyBudget, listed_sums

__all__ = ["events_to_list"]


def events_to_list(
    budget: PrivacyBudget,
    *,
    labels: int | None = None,
    counts: int | None = None,
    sums: int | None = None,
    teachers: int | None = None,
    n_classes: int | None = None,
    aggregator: AggregatorName | None = None,
) -> tuple[Event, ...] | None:
    """Return events that all together cost a budget, with the least noise; None where none are
    asked for.

    Parameters
    ----------
    budget : PrivacyBudget
        Of all releases together.
    labels, counts, sums : int, optional
        How many labels of queries, or queries answered with noisy counts, or noisy sums over
        records, all releases together may take; one of the three.
    teachers : int, optional
        Number of teachers K of every release, of labels of two classes: they are priced for it.
    n_classes : int, optional
        Of labels and counts; 2 by default.
    aggregator : {"gaussian", "vote-table"}, optional
        Of labels, "gaussian" by default.

    Raises
    ------
    ParameterError
        If settings do not go together, or no noise keeps the budget.
    """
    given = {"labels": labels, "counts": counts, "sums": sums}
    asked = [name for name, number in given.items() if number is not None]
    for name, value, goes_with in (
        ("teachers", teachers, ("labels",)),
        ("classes", n_classes, ("labels", "counts")),
        ("aggregator", aggregator, ("labels",)),
    ):
        if value is not None and not set(asked) & set(goes_with):
            raise ParameterError(
                Parameter(name),
                f" says what is listed, and goes with {' or '.join(goes_with)} alone; leave it"
                " out.",
            )
    if not asked:
        return None
    for name in asked:
        if not (given[name] or 0) >= 1:
            raise ParameterError(f"{given[name]} {name} cannot be listed; list at least one.")
    if len(asked) > 1:
        raise ParameterError(
            f"{' and '.join(asked)} are both asked for; list one of them here, or several kinds of"
            " events from Python, with events= of Ledger."
        )
    if sums is not None:
        return (listed_sums(budget, sums),)
    classes = 2 if n_classes is None else n_classes
    if counts is not None:
        noise = GaussianAggregator.calibrate(budget, counts, n_classes=classes, release="counts")
        return noise.events(1)
    assert labels is not None
    if aggregator not in (None, "gaussian", "vote-table"):
        raise ParameterError(
            Parameter("aggregator"),
            f" is {aggregator!r}, whose answers cannot be taken one by one; list those of ",
            Argument("aggregator", "gaussian"),
            " or ",
            Argument("aggregator", "vote-table"),
            ".",
        )
    if aggregator == "vote-table":
        if teachers is None:
            raise ParameterError(
                Parameter("teachers"),
                " is missing; a table of chances is for one number of teachers, so give it.",
            )
        table = VoteTableAggregator.calibrate(
            budget, labels, n_classes=classes, n_teachers=teachers
        )
        return table.events(teachers)
    own = GaussianAggregator.calibrate(budget, labels, n_classes=classes, n_teachers=teachers)
    return own.events(teachers or 1)
