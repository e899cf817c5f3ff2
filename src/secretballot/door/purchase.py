"""What comes before every draw: the checks of public numbers, the price, what the certificate says of the ledger."""

from collections.abc import Mapping
from typing import Any

from secretballot._validation import check_instance, check_name, check_path
from secretballot.aggregation import Aggregator
from secretballot.ensemble.votes import VoteCounts
from secretballot.exceptions import BudgetError, ParameterError
from secretballot.privacy.accounting import Event, Price, PrivacyBudget, price
from secretballot.privacy.ledger import Ledger
from secretballot.privacy.noise import ExactNoise, NoiseSource

__all__ = [
    "check_counts",
    "check_keeping",
    "check_ledger",
    "check_sample",
    "check_types",
    "choice_noise",
    "composition_of",
    "events_of",
    "noise_source",
    "priced",
]

_NONE_NEEDED = object()  # None is what a caller may have given for votes


def check_ledger(ledger: object) -> None:
    """Refuse anything but a ledger, with `ParameterError`."""
    check_instance("ledger", ledger, Ledger, hint="give a Ledger, such as Ledger(path, dataset=..., budget=...)")


def check_counts(counts: object) -> None:
    """Refuse anything but counted votes, with `ParameterError`."""
    hint = "give VoteCounts, as VoteCounts.from_votes and VoteCounts.from_counts make them"
    check_instance("counts", counts, VoteCounts, hint=hint)


def check_types(aggregator: object, ledger: object, counts: object = _NONE_NEEDED) -> None:
    """Refuse a plan, an account or votes that are none, with `ParameterError`."""
    if counts is not _NONE_NEEDED:
        check_counts(counts)
    hint = "give a calibrated plan, such as GaussianAggregator.calibrate returns"
    check_instance("aggregator", aggregator, Aggregator, hint=hint)
    check_ledger(ledger)


def check_keeping(ledger: object, vault: object, request: object) -> None:
    """Refuse, with `ParameterError`, an account, a vault or a key of a fit that is neither None nor one."""
    if ledger is not None:
        check_ledger(ledger)
    if vault is not None:
        check_path("vault", vault)
    if request is not None:
        check_name("request", request)


def check_sample(sample: Mapping[str, Any] | None, declaration: Mapping[str, object] | None, request: str) -> None:
    """Refuse a price for a secret sample without the teachers of that sample, and these teachers for anything else.

    Parameters
    ----------
    sample : mapping or None
        What the aggregator's price speaks of (`Aggregator.sample`).
    declaration : mapping or None
        Of the teachers: ``sample``, if they learned from one, says how it was drawn, and under ``plan`` what for.
    request : str
        Key of the release in the ledger.

    Raises
    ------
    ParameterError
        If the two differ, or the sample was drawn for another plan.
    """
    declared = (declaration or {}).get("sample")
    if declared is None and sample is None:
        return
    if declared is None:
        raise ParameterError(
            "The price is that of teachers of a secret sample, and these are not declared to be such; use "
            "AgnosticLabeler, or an aggregator for teachers of all records. Nothing was spent."
        )
    if declared != {**(sample or {}), "plan": request}:
        raise ParameterError(
            "These teachers learned from a secret sample that was drawn for one plan, and this is another; fit a new "
            "AgnosticLabeler under another name. Nothing was spent."
        )


def noise_source() -> NoiseSource:
    """Return where all noise comes from."""
    return ExactNoise()


def choice_noise() -> ExactNoise:
    """Return where estimates and choices get their noise; it draws indices as well as whole numbers."""
    return ExactNoise()


def events_of(aggregator: Aggregator, n_classes: int, n_teachers: int) -> tuple[Event, ...]:
    """Return what the aggregator's answers are to the accountant, if it fits the votes.

    Raises
    ------
    ParameterError
        If it is calibrated for other votes, or would answer nothing.
    """
    if n_classes != aggregator.n_classes:
        raise ParameterError(
            f"The votes are on {n_classes} classes, but the aggregator is calibrated for {aggregator.n_classes}; "
            f"calibrate it with n_classes={n_classes}."
        )
    aggregator.check_useful(n_teachers)
    return aggregator.events(n_teachers)


def priced(events: tuple[Event, ...], budget: PrivacyBudget) -> Price:
    """Return the price at the promised epsilon; refuse noise that does not keep its own budget.

    Raises
    ------
    BudgetError
        If the events cost more than `budget`; nothing was spent.
    """
    paid = price(events, epsilon=budget.epsilon)
    if not paid.delta <= budget.delta:
        raise BudgetError(
            f"The aggregator's events cost delta {paid.delta:.6g} at epsilon {budget.epsilon:.6g}, "
            f"more than its budget's {budget.delta:.6g}; calibrate it again. Nothing was spent."
        )
    return paid


def composition_of(ledger: Ledger, reservation: int) -> dict[str, Any]:
    """Return what the certificate says of the account that paid."""
    spent = ledger.spent()
    return {
        "kind": ledger.composition,
        "dataset": ledger.dataset,
        "unit": ledger.unit,
        "neighbours": ledger.neighbours,
        "budget": ledger.budget.to_json(),
        "spent_after": {"epsilon": spent.epsilon, "delta": spent.delta},
        "durable": ledger.durable,
        "reservation": reservation,
    }
