"""Rounds and choices of a certificate: do they fit the release, and is every choice paid for?"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from secretballot.accounting import delta_upper
from secretballot.report.certificate.models import (
    SLACK,
    VOTES,
    Certificate,
    Choice,
    Drawable,
    MethodAlone,
    check_integers,
    require,
)
from secretballot.report.wording import count_text, number_text

_SLOW_EVENTS = ("binary-labels", "class-labels", "confident", "sampled")
_MAX_SLOW_EVENTS = 10
_MAX_LABELS = 5_000  # in all choices: about the time of one large release


def total_price(certificate: Mapping[str, Any]) -> tuple[float, float]:
    """Return the (epsilon, delta) of the release and all its choices by basic composition."""
    parts = [certificate, *certificate.get("choices", ())]
    return math.fsum(part["epsilon"] for part in parts), math.fsum(part["delta"] for part in parts)


def stands_alone(certificate: Mapping[str, Any]) -> bool:
    """Return whether the account holds this release, with its choices, and holds no other.

    Then it was opened for this release, and knows of no other from the same data.
    """
    composition = certificate["composition"]
    amounts = [composition["budget"], composition["spent_after"]]
    return composition["kind"] == "basic" and all(
        math.isclose(amount[key], price, rel_tol=SLACK - 1)
        for amount in amounts
        for key, price in zip(("epsilon", "delta"), total_price(certificate), strict=True)
    )


def check_plan(certificate: Certificate) -> str:
    """Return a sentence on the plan of a certificate.

    Raises
    ------
    CertificateError
        If plan, mechanism, events and released labels contradict each other.
    """
    # the same number is in several places; each pair is compared, so that a forger who changes
    # one of them contradicts another
    plan, released, shape = certificate.plan, certificate.released, certificate.shape
    require(certificate.public.method == VOTES, "Votes of teachers alone are released in rounds.")
    planned, used, in_rounds = plan.planned, plan.used, sum(plan.rounds)
    require(
        getattr(shape, "n_queries", None) == planned,
        f"The plan is of {planned} queries, and the mechanism was set up for another number.",
    )
    require(used <= planned, f"{used} queries were used of a plan of {planned}; that is too many.")
    require(
        used == released.queries == in_rounds,
        f"The plan says that {used} queries were used; its rounds hold {in_rounds}, and"
        f" {released.queries} were released.",
    )
    require(
        (plan.left == "none") == (used == planned),
        f"The plan says {plan.left!r} of what was left; {planned - used} queries were left.",
    )
    refunds = plan.left != "returned" or certificate.composition.kind == "renyi"
    require(refunds, "Unused queries were returned; only a Renyi ledger can refund them.")
    reserved = count_text(planned, "reserved query")
    turns = count_text(len(plan.rounds), "round")
    return f"{used} of {reserved} used, in {turns}; the price is that of the whole reservation."


def check_choices(certificate: Certificate) -> str:
    """Return a sentence on the choices of a certificate.

    Raises
    ------
    CertificateError
        If a choice costs more than it states, or was not paid for by a reservation of its own.
    """
    # a forger may list choices that take hours to price: their number is bounded before any is
    choices = certificate.choices
    if not choices:
        return "Nothing was chosen with private data."
    _refuse_slow_choices(choices)
    for number, choice in enumerate(choices, 1):
        cost = delta_upper([choice.event], choice.epsilon)
        require(
            cost <= choice.delta * SLACK,
            f"Choice {number} cost delta {cost:.6g} at epsilon {choice.epsilon:.6g}; it states"
            f" {choice.delta:.6g}.",
        )
        _check_outcome(number, choice, certificate)
    reservations = [certificate.composition.reservation, *(one.reservation for one in choices)]
    apart = len(set(reservations)) == len(reservations)
    require(apart, "Two of the choices, or a choice and the release, name the same reservation.")
    epsilon, delta = total_price(certificate.document)
    return (
        f"{count_text(len(choices), 'choice')} priced again; release and choices together cost"
        f" epsilon {number_text(epsilon)} and delta {number_text(delta)} (sums)."
    )


def _refuse_slow_choices(choices: Sequence[Choice]) -> None:
    """Refuse more slow events than a release ever has: they would hold up the verifier."""
    # the games of labels take the longer the more labels they hold
    slow = [choice.event for choice in choices if choice.event.kind in _SLOW_EVENTS]
    labels = sum(getattr(event, "queries", 0) for event in slow)
    few = len(slow) <= _MAX_SLOW_EVENTS and (len(slow) <= 1 or labels <= _MAX_LABELS)
    require(
        few,
        f"{len(slow)} choices are label games or relabelled samples, of {labels} labels, which take"
        f" seconds each; at most {_MAX_SLOW_EVENTS} are priced, of {_MAX_LABELS} labels.",
    )


def _check_outcome(number: int, choice: Choice, certificate: Certificate) -> None:
    """Refuse a choice that is about another promise, or states more than the one number, or the
    labels, of its event."""
    choice.check_event()
    own, by_teachers = choice.shape.guarantee, choice.by_teachers
    adds = own.adds_to(certificate.guarantee, by_teachers=by_teachers)
    require(adds, f"Choice {number} is about another unit or relation.")
    # labels are named by their digest alone; of a number, everything that is stated must be what
    # one draw of the priced event can tell
    if choice.labels_sha256 is not None:
        return
    known = not isinstance(choice.public, MethodAlone)
    require(known, f"Choice {number} was drawn by no known mechanism; update secretballot.")
    check_integers([[choice.value]], 1, choice.public.drawable(choice) or Drawable(1, 1))
