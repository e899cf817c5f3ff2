"""What comes before every draw: the checks of public numbers, the price, what the certificate
says of the ledger."""

import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from secretballot._validation import check_instance, check_name, check_path
from secretballot.aggregation import (
    Aggregator,
)
from secretballot.core.ledger import Ledger, LedgerEntry
from secretballot.core.ledger.rows import UnknownEndError
from secretballot.core.mechanisms import Mechanism, Shape
from secretballot.core.noise import ExactNoise, NoiseSource, ready_sampler
from secretballot.core.private import Votes
from secretballot.core.signals import signals_held_back
from secretballot.core.types import Guarantee
from secretballot.ensemble.votes import guarantee_of
from secretballot.exceptions import (
    BudgetError,
    CertificateError,
    LedgerError,
    Parameter,
    ParameterError,
)
from secretballot.privacy.accounting import Event, Price, PrivacyBudget, price
from secretballot.report.certificate.build import certificate_digest
from secretballot.report.certificate.fields import certificate_in
from secretballot.report.certificate.plan_checks import total_price
from secretballot.report.certificate.release_files import LABELS_FILE
from secretballot.report.certificate.released_rows import MAX_BYTES, most_bytes
from secretballot.report.certificate.verify import verify_certificate
from secretballot_verify import REFUSED, check_certificate

Answer = TypeVar("Answer")

#: What the numbers of a composition, not known before the purchase, may add to the text of an
#: answer, in bytes.
_SPARE = 256

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


def check_one_record_of_a_user(made: Guarantee, ledger: Ledger) -> None:
    """Refuse what is counted or bounded by user in an account about records.

    One more record of a user that stays may change what all of them add by more than was paid for:
    which of them votes, which scores count it, or a vector to another one within the bound. Votes
    of teachers are not like that.

    Raises
    ------
    LedgerError
        If that is the case; nothing was spent.
    """
    if made.unit == "user" != ledger.unit:
        raise LedgerError(
            f"The ledger of {ledger.dataset!r} is about {ledger.unit}s, and what is released by"
            " user does not add to that: one more record of a user may change more than was paid"
            " for; use a ledger about users. Nothing was spent."
        )


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


def noise_source() -> NoiseSource:
    """Return where all noise comes from, loaded and checked.

    Ask for it before anything is reserved.

    Raises
    ------
    SamplerError
        If the installed sampler is missing, broken or wrong.
    """
    ready_sampler()
    return ExactNoise()


def exact_noise() -> ExactNoise:
    """Return where estimates and choices get their noise, loaded and checked.

    It draws indices as well as integers.

    Raises
    ------
    SamplerError
        As for `noise_source`.
    """
    ready_sampler()
    return ExactNoise()


def has_terms(
    certificate: Mapping[str, Any],
    mechanism: Mechanism,
    shape: Shape,
    public: Mapping[str, Any],
    budget: PrivacyBudget,
) -> bool:
    """Return whether a certificate is about these terms at this price; its public settings may say
    more, which followed from what was drawn."""
    own = {
        "mechanism": mechanism.model_dump(mode="json"),
        "shape": shape.model_dump(mode="json"),
        "epsilon": budget.epsilon,
        "delta": budget.delta,
    }
    # through JSON, as the stored certificate went, so that equal terms compare as equal
    asked = json.loads(json.dumps(dict(public)))
    return all(certificate[name] == value for name, value in own.items()) and all(
        certificate["public"].get(name) == value for name, value in asked.items()
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


def room_for(content: object) -> int:
    """Return how many bytes are kept for an answer whose text is nowhere wider than `content`, a
    JSON value."""
    return len(json.dumps(content).encode()) + _SPARE


def encoded(content: object, room: int) -> bytes:
    """Return the bytes of an answer, as many as were kept for it.

    Their number must not depend on the outcome: it shows in the size of the ledger's file, and
    decides whether a full disk lets the answer be stored, before anything is released.
    """
    return json.dumps(content).encode().ljust(room)


# --- reserve, draw, store, return ---


def reserved(
    ledger: Ledger,
    events: tuple[Event, ...],
    budget: PrivacyBudget,
    certificate: Mapping[str, Any],
    *,
    request: str,
    purpose: str,
    queries: int | None = None,
    room: int = 0,
) -> tuple[int, bool]:
    """Return the number of a request's reservation, and whether it was made just now; every
    purchase is made here.

    One that was left without an answer goes on: nobody saw what was drawn under it.

    Parameters
    ----------
    certificate : mapping
        What will be written, with dummy answers of full size for those that are not known yet. Both
        verifiers look at it before anything is reserved.
    ledger, events, budget, request, purpose, queries, room
        As for `Ledger.reserve`.

    Raises
    ------
    ParameterError
        If a verifier would refuse the certificate, or the request was reserved for something else;
        nothing was spent.
    BudgetError
        If the ledger does not admit the price; nothing was spent.
    LedgerError
        If the ledger cannot be used, or the request was forfeited.
    """
    check_readable(certificate)
    try:
        return ledger.reserve(
            events, budget, request=request, purpose=purpose, queries=queries, room=room
        ), True
    except UnknownEndError:
        raise
    except LedgerError:
        entry = ledger.entry(request)
        if entry is None:
            raise
    return checked_entry(entry, events, budget).id, False


def checked_entry(
    entry: LedgerEntry, events: tuple[Event, ...], budget: PrivacyBudget
) -> LedgerEntry:
    """Return a reservation under which these events may be drawn.

    Raises
    ------
    ParameterError
        If it was made for other events or at another price.
    LedgerError
        If it was forfeited.
    """
    if entry.state == "forfeited":
        raise LedgerError(
            f"Request {entry.request!r} was forfeited and stays spent; ask under another key, which"
            " is a new charge."
        )
    if (entry.events, entry.epsilon, entry.delta) != (events, budget.epsilon, budget.delta):
        raise ParameterError(
            f"Request {entry.request!r} was reserved for something else; ask the same again, or ask"
            " under another key, which is a new charge."
        )
    return entry


def drawn_once(
    ledger: Ledger,
    events: tuple[Event, ...],
    budget: PrivacyBudget,
    certificate: Mapping[str, Any],
    draw: Callable[[dict[str, Any]], tuple[Answer, object]],
    known: Callable[[bytes], Answer],
    *,
    request: str,
    purpose: str,
    room: int,
) -> Answer:
    """Return an answer that was reserved, drawn and stored, in this order.

    Parameters
    ----------
    ledger, events, budget, certificate, request, purpose
        As for `reserved`.
    draw : callable
        Takes what the certificate says of the account; returns the answer, and the JSON value to
        store.
    known : callable
        Returns the answer behind stored bytes.
    room : int
        Bytes of the stored answer.

    Raises
    ------
    ParameterError, BudgetError, LedgerError
        As for `reserved`. Where the ledger fails, the same request goes on later.

    Privacy
    -------
    Order : what a crash or the ledger interrupts was returned to nobody, and is drawn anew under
        the same reservation. Whether an answer can be stored does not depend on it, as all have one
        size. A draw that fails by itself is not repeated: that may depend on what was drawn.
    """
    with signals_held_back():  # an end between purchase and answer draws once more
        number, _ = reserved(
            ledger, events, budget, certificate, request=request, purpose=purpose, room=room
        )
        composition = composition_of(ledger, number)
        try:
            answer, content = draw(composition)
            drawn = encoded(content, room)
        except BaseException:
            with contextlib.suppress(LedgerError):
                ledger.forfeit(number, "The draw ended before it was committed.")
            raise
        stored = stored_first(ledger, number, request, drawn)
    return answer if stored is drawn else known(stored)


def stored_first(ledger: Ledger, number: int, request: str, content: bytes) -> bytes:
    """Store an answer and return it, or the one that another process stored before.

    Raises
    ------
    LedgerError
        If none is stored for certain; then none may be returned.
    """
    try:
        ledger.commit(number, content)
    except UnknownEndError:
        raise
    except LedgerError:
        stored = ledger.released(request)
        if stored is None:
            raise
        return stored
    return content
