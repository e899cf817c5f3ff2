"""Rounds and choices of a certificate: do they fit the release, and is every choice paid for?"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from secretballot.core.types import Guarantee, VoteShape
from secretballot.exceptions import CertificateError
from secretballot.report.certificate.chosen import EXPONENTIAL
from secretballot.report.certificate.events import (
    SLACK,
    events_delta,
    read_events,
)
from secretballot.report.certificate.terms import (
    STABILITY,
    check_event,
    check_integers,
    check_public,
)
from secretballot.report.wording import count_text, number_text

_SLOW_EVENTS = (
    "binary-labels",
    "class-labels",
    "confident",
    "sampled",
)
_MAX_SLOW_EVENTS = 10
_ANY = (-math.inf, math.inf)
_MAX_LABELS = 5_000  # in all choices: about the time of one large release


def total_price(certificate: Mapping[str, Any]) -> tuple[float, float]:
    """Return the (epsilon, delta) of the release and all its choices by basic composition."""
    parts = [certificate, *certificate.get("choices", ())]
    return math.fsum(part["epsilon"] for part in parts), math.fsum(part["delta"] for part in parts)


def stands_alone(certificate: Mapping[str, Any]) -> bool:
    """Return whether the account holds this release, with its choices, and has room for no other.

    Then it was opened for this release, and knows of no other from the same data.
    """
    composition = certificate["composition"]
    amounts = [composition["budget"], composition["spent_after"]]
    return composition["kind"] == "basic" and all(
        math.isclose(amount[key], price, rel_tol=SLACK - 1)
        for amount in amounts
        for key, price in zip(("epsilon", "delta"), total_price(certificate), strict=True)
    )


def check_plan(document: Mapping[str, Any]) -> str:
    """Return a sentence on the plan of a certificate, whose fields were checked before.

    Raises
    ------
    CertificateError
        If plan, mechanism, events and released labels contradict each other.
    """
    # the same number stands in several places; each pair is compared, so that a forger who changes
    # one of them contradicts another
    plan, released, rounds = document["plan"], document["released"], document["plan"]["rounds"]
    planned, used = plan["planned"], plan["used"]
    if document["shape"].get("n_queries") != planned:
        raise CertificateError(
            f"The plan is of {planned} queries, and the mechanism was set up for another number."
        )
    if not used <= planned:
        raise CertificateError(
            f"{used} queries were used of a plan of {planned}; that is too many."
        )
    if used != released["queries"]:
        raise CertificateError(
            f"The plan says that {used} queries were used; {released['queries']} were released."
        )
    if sum(rounds) != used:
        raise CertificateError(
            f"The rounds hold {sum(rounds)} queries together; the plan says that {used} were used."
        )
    if (plan["left"] == "none") != (used == planned):
        raise CertificateError(
            f"The plan says {plan['left']!r} of what was left; {planned - used} queries were left."
        )
    if plan["left"] == "returned" and document["composition"]["kind"] != "renyi":
        raise CertificateError(
            "The plan says that unused queries were returned; only a Renyi ledger can refund them."
        )
    asked, turns = count_text(planned, "reserved query"), count_text(len(rounds), "round")
    return f"{used} of {asked} used, in {turns}; the price is that of the whole reservation."


def check_choices(document: Mapping[str, Any]) -> str:
    """Return a sentence on the choices of a certificate, whose fields were checked before.

    Raises
    ------
    CertificateError
        If a choice costs more than it states, or was not paid for by a reservation of its own.
    """
    # a forger may list choices that take hours to price: their number is bounded before any is
    choices = document["choices"]
    reservations = [document["composition"]["reservation"]]
    _refuse_slow_choices(choices)
    for number, choice in enumerate(choices, 1):
        cost = events_delta(read_events(choice["events"]), choice["epsilon"])
        if not cost <= choice["delta"] * SLACK:
            raise CertificateError(
                f"Choice {number} cost delta {cost:.6g} at epsilon {choice['epsilon']:.6g}; it"
                f" states {choice['delta']:.6g}."
            )
        _check_outcome(number, choice, document)
        reservations.append(choice["reservation"])
    if len(set(reservations)) < len(reservations):
        raise CertificateError(
            "Two of the choices, or a choice and the release, name the same reservation."
        )
    if not choices:
        return "Nothing was chosen with private data."
    epsilon, delta = total_price(document)
    return (
        f"{count_text(len(choices), 'choice')} priced again; release and choices together cost"
        f" epsilon {number_text(epsilon)} and delta {number_text(delta)} (sums)."
    )


def _refuse_slow_choices(choices: Sequence[Mapping[str, Any]]) -> None:
    """Refuse more slow events than a release ever has: they would hold up the verifier."""
    slow = sum(
        event.get("kind") in _SLOW_EVENTS for choice in choices for event in choice["events"]
    )
    if slow > _MAX_SLOW_EVENTS:
        raise CertificateError(
            f"{slow} choices are label games or relabelled samples, which take seconds each; at"
            f" most {_MAX_SLOW_EVENTS} are priced."
        )
    numbers = [
        event.get("queries")
        for choice in choices
        for event in choice["events"]
        # the games of labels, which take the longer the more labels they hold
        if event.get("kind") in _SLOW_EVENTS
    ]
    # events that state no number are refused when they are read
    labels = sum(number for number in numbers if isinstance(number, int))
    if slow > 1 and labels > _MAX_LABELS:
        raise CertificateError(
            f"The choices are games of {labels} labels in all, which take minutes; at most"
            f" {_MAX_LABELS} are priced."
        )


def _check_outcome(number: int, choice: Mapping[str, Any], document: Mapping[str, Any]) -> None:
    """Refuse a choice that is about another promise, or states more than the one number, or the
    labels, of its event."""
    mechanism, shape = check_event(choice)
    promise = Guarantee(unit=document["unit"], relation=document["neighbours"])
    by_teachers = isinstance(shape, VoteShape) and shape.n_teachers is not None
    if not shape.guarantee.adds_to(promise, by_teachers=by_teachers):
        raise CertificateError(f"Choice {number} is about another unit or relation.")
    # labels are named by their digest alone; of a number, everything that is stated must be what
    # one draw of the priced event can tell
    if "labels_sha256" in choice:
        return
    public = choice["public"]
    if public["method"] not in (STABILITY, EXPONENTIAL):
        raise CertificateError(
            f"Choice {number} was drawn by no known mechanism; update secretballot."
        )
    check_public(mechanism, public)
    low, high = (0, public["n_candidates"] - 1) if public["method"] == EXPONENTIAL else _ANY
    check_integers([[choice["value"]]], 1, 1, low, high)
