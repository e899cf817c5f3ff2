"""What comes before every draw: the checks of public numbers, the price, what the certificate
says of the ledger."""

import json
from collections.abc import Mapping
from typing import Any

from secretballot._validation import check_instance, check_name, check_path
from secretballot.accounting import Event, Price, PrivacyBudget, price
from secretballot.aggregation import (
    Aggregator,
)
from secretballot.core.ledger import Ledger
from secretballot.core.private import Votes
from secretballot.core.types import Guarantee
from secretballot.exceptions import (
    BudgetError,
    CertificateError,
    Parameter,
    ParameterError,
)
from secretballot.report.certificate.build import certificate_digest
from secretballot.report.certificate.fields import certificate_in
from secretballot.report.certificate.plan_checks import total_price
from secretballot.report.certificate.release_files import LABELS_FILE
from secretballot.report.certificate.released_rows import MAX_BYTES, most_bytes
from secretballot.report.certificate.verify import verify_certificate
from secretballot.teachers.votes import guarantee_of
from secretballot_verify import REFUSED, check_certificate

#: More files than a release has: the certificate that lists those is no longer than this one.
_LISTED = (LABELS_FILE, *(f"queries-{'x' * 20}.{place}" for place in range(19)))


def check_ledger(ledger: object) -> None:
    """Refuse anything but a ledger, with `ParameterError`."""
    check_instance(
        "ledger",
        ledger,
        Ledger,
        hint="give a Ledger, such as Ledger(path, dataset=..., budget=...)",
    )


def check_counts(counts: Votes) -> int:
    """Return the number of teachers; refuse anything but votes of teachers.

    Raises
    ------
    ParameterError
        If it is something else.
    """
    hint = "give Votes, as votes_of_teachers and votes_of_counts make them"
    check_instance("counts", counts, Votes, hint=hint)
    n_teachers = counts.shape.n_teachers
    if n_teachers is None:
        raise ParameterError(
            Parameter("counts"), " are votes of records; this is about votes of teachers."
        )
    return n_teachers


def check_types(aggregator: object, ledger: object) -> None:
    """Refuse an aggregator or an account that is none.

    Raises
    ------
    ParameterError
        If one of them is none.
    """
    hint = "give a calibrated aggregator, such as SparseVectorAggregator.calibrate returns"
    check_instance("aggregator", aggregator, Aggregator, hint=hint)
    check_ledger(ledger)


def check_keeping(ledger: object, vault: object, request: object) -> None:
    """Refuse, with `ParameterError`, an account, a vault or a key of a fit that is neither None
    nor one."""
    if ledger is not None:
        check_ledger(ledger)
    if vault is not None:
        check_path("vault", vault)
    if request is not None:
        check_name("request", request)


def check_sample(declaration: Mapping[str, object] | None) -> None:
    """Refuse teachers of a secret sample, whose price no recipe for others states.

    Raises
    ------
    ParameterError
        If these are declared to be such.
    """
    if (declaration or {}).get("sample") is not None:
        raise of_a_sample()


def of_a_sample() -> ParameterError:
    """Return the refusal of what such teachers are not priced for."""
    return ParameterError(
        "These teachers learned from a secret sample, and answer a stream alone; ask them through"
        " AgnosticLabeler. Nothing was spent."
    )


def declaration_of(
    counts: Votes, declaration: Mapping[str, object] | None
) -> Mapping[str, object] | None:
    """Return what is declared of how votes came about: by the caller, or else by the votes, of
    which nobody knows more.

    Raises
    ------
    ParameterError
        If the votes were made for another unit or relation, under which one unit may move other
        votes.
    """
    made = counts.shape.guarantee
    if counts.shape.sample is not None:
        raise of_a_sample()
    if declaration is None:
        if (made.unit, made.relation) == ("record", "add-remove"):
            return None
        return {"unit": made.unit, "neighbours": made.relation}
    check_declared(made, declaration, by_teachers=counts.shape.n_teachers is not None)
    return declaration


def check_declared(
    made: Guarantee,
    declared: Mapping[str, object],
    *,
    by_teachers: bool,
) -> None:
    """Refuse a declaration under which one unit may move more than a container's shape says.

    Raises
    ------
    ParameterError
        If it is one.
    """
    unit, neighbours = declared.get("unit", "record"), declared.get("neighbours", "add-remove")
    if not made.adds_to(guarantee_of(unit, neighbours), by_teachers=by_teachers):
        raise ParameterError(
            f"What is private was made for unit {made.unit!r} under {made.relation!r}, and"
            f" {unit!r} under {neighbours!r} is declared; declare what it was made for, or make it"
            " anew. Nothing was drawn."
        )


def check_readable(certificate: Mapping[str, Any]) -> None:
    """Refuse a certificate that one of the verifiers would refuse, such as one with classes that
    are too long.

    The account is shown as it is after a purchase that it admits, as the ledger decides on that.
    The second verifier plays no games here: they take minutes, and the library has just computed a
    price of the same events.

    Raises
    ------
    ParameterError
        If one would.
    """
    account, choices = certificate["composition"], certificate.get("choices", ())
    price = dict(zip(("epsilon", "delta"), total_price(certificate), strict=True))
    whole = {key: max(amount, price[key]) for key, amount in account["budget"].items()}
    number = 1 + max((choice["reservation"] for choice in choices), default=0)
    document = {
        **certificate,
        "composition": {**account, "budget": whole, "spent_after": whole, "reservation": number},
        "files": {name: {"sha256": "0" * 64, "bytes": 10**10} for name in _LISTED},
    }
    document["digest"] = certificate_digest(document)
    content = json.dumps(document, indent=2).encode()  # as a release folder has it
    try:
        refused = [check.detail for check in verify_certificate(certificate_in(content)).failures]
    except CertificateError as error:
        refused = [str(error)]
    refused += [one.detail for one in check_certificate(content) if one.verdict == REFUSED]
    if not refused and not most_bytes(document) <= MAX_BYTES:
        refused = [f"{LABELS_FILE} may have more than {MAX_BYTES // 10**6} MB."]
    if refused:
        raise ParameterError(
            f"The certificate of this release could not be verified. {refused[0]} Nothing was"
            " spent."
        )


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


# --- reserve, draw, store, return ---
