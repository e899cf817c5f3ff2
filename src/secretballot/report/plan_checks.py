"""Rounds and choices of a certificate: does the plan fit the release, and is every choice paid for?"""

import math
from collections.abc import Mapping
from typing import Any

from secretballot.exceptions import CertificateError
from secretballot.report.certificate_events import SLACK, check_relation_of, events_delta, paid_queries, read_events
from secretballot.report.wording import count_text, number_text

__all__ = ["check_choices", "check_plan", "total_price"]


def total_price(certificate: Mapping[str, Any]) -> tuple[float, float]:
    """Return the (epsilon, delta) of the release and all its choices, added up (basic composition)."""
    parts = [certificate, *certificate.get("choices", ())]
    return math.fsum(part["epsilon"] for part in parts), math.fsum(part["delta"] for part in parts)


def check_plan(document: Mapping[str, Any]) -> str:
    """Return a sentence on the plan of a certificate, whose fields were checked before.

    Raises
    ------
    CertificateError
        If plan, mechanism, events and released labels contradict each other.
    """
    plan, released, rounds = document["plan"], document["released"], document["plan"]["rounds"]
    planned, used = plan["planned"], plan["used"]
    if document["mechanism"].get("n_queries") != planned:
        raise CertificateError(f"The plan is of {planned} queries, and the mechanism was set up for another number.")
    if not used <= planned:
        raise CertificateError(f"{used} queries were used of a plan of {planned}; that is too many.")
    if used != released["queries"]:
        raise CertificateError(f"The plan says that {used} queries were used; {released['queries']} were released.")
    if sum(rounds) != used:
        raise CertificateError(f"The rounds hold {sum(rounds)} queries together; the plan says that {used} were used.")
    if (plan["left"] == "none") != (used == planned):
        raise CertificateError(f"The plan says {plan['left']!r} of what was left; {planned - used} queries were left.")
    if plan["left"] == "returned" and document["composition"]["kind"] != "renyi":
        raise CertificateError("The plan says that unspent queries were returned; only a renyi ledger takes them back.")
    paid = paid_queries(read_events(document["events"]), len(released["classes"]), released["count_columns"])
    if paid is not None and not planned <= paid:
        raise CertificateError(f"The events pay for {paid} queries, and the plan is of {planned}: not all is priced.")
    asked, turns = count_text(planned, "planned query"), count_text(len(rounds), "round")
    return f"{used} of {asked} used, in {turns}; the price is that of the whole plan."


def check_choices(document: Mapping[str, Any]) -> str:
    """Return a sentence on the choices of a certificate, whose fields were checked before.

    Raises
    ------
    CertificateError
        If a choice costs more than it states, or was not paid for by a reservation of its own.
    """
    choices = document["choices"]
    reservations = [document["composition"]["reservation"]]
    for number, choice in enumerate(choices, 1):
        cost = events_delta(read_events(choice["events"]), choice["epsilon"])
        if not cost <= choice["delta"] * SLACK:
            raise CertificateError(
                f"Choice {number} cost delta {cost:.6g} at epsilon {choice['epsilon']:.6g}; it states "
                f"{choice['delta']:.6g}."
            )
        for event in choice["events"]:
            check_relation_of(event, document)
        _check_drawn(number, choice, document["neighbours"])
        reservations.append(choice["reservation"])
    if len(set(reservations)) < len(reservations):
        raise CertificateError("Two of the choices, or a choice and the release, name the same reservation.")
    if not choices:
        return "Nothing was chosen with private data."
    epsilon, delta = total_price(document)
    return (
        f"{count_text(len(choices), 'choice')} priced again; release and choices together cost epsilon "
        f"{number_text(epsilon)} and delta {number_text(delta)} (sums)."
    )


def _check_drawn(number: int, choice: Mapping[str, Any], neighbours: str) -> None:
    """Refuse a choice whose mechanism, where it is stated, is not what its price is about."""
    outcome = choice["outcome"]
    mechanism = outcome.get("mechanism") if isinstance(outcome, Mapping) else None
    if not isinstance(mechanism, Mapping):
        return
    if mechanism.get("epsilon") != choice["epsilon"]:
        raise CertificateError(f"Choice {number} was drawn at another epsilon than it states.")
    if mechanism.get("monotone", False) is not False and neighbours != "add-remove":
        raise CertificateError(f"Choice {number} counts on scores that move one way, as they do under add-remove only.")
