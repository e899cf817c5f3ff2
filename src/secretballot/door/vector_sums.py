"""Noisy sums over records, stage by stage under one reservation."""

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import LARGEST_INTEGER
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.rows import UnknownEndError, repeated
from secretballot.core.mechanisms import NoisySums
from secretballot.core.noise import ExactNoise
from secretballot.core.signals import signals_held_back
from secretballot.core.types import Guarantee, SumShape
from secretballot.door import purchase
from secretballot.exceptions import LedgerError, ParameterError
from secretballot.privacy.accounting import Price, PrivacyBudget, VectorSum
from secretballot.privacy.mechanisms import NoisyVectorSum
from secretballot.records import Records, Residuals
from secretballot.released import ReleasedLabels, ReleasedSums
from secretballot.report.certificate.build import (
    build_certificate,
    canonical_json,
    check_declaration,
    describe_released,
)

_WIDEST = 1 - LARGEST_INTEGER  # no released integer has more digits


@dataclass(frozen=True, eq=False)
class StagedSums:
    """What is asked of the records; public, and fixed before any of them is looked at.

    Attributes
    ----------
    mechanism : NoisyVectorSum
    n_stages : int
    budget : PrivacyBudget
    about : mapping
        ``method`` and all other public settings, as JSON values: for the certificate, and what
        tells this request from another one.
    stage : callable
        Returns, from the sums released so far, what the next stage asks of every record.
    outcome : callable
        Returns, from all released sums, the fields that they add to `about`, as JSON values, and
        the class of every public point, as an index; of none where there are no classes.
    classes : tuple
        None where the target is no class: then sums are released, and no labels.
    points_sha256 : str
        Digest of the public points.

    Released sums are a list of arrays of int64, of shape (mechanism.coordinates,).
    """

    mechanism: NoisyVectorSum
    n_stages: int
    budget: PrivacyBudget
    about: Mapping[str, Any]
    stage: Callable[[Sequence[IntArray]], Residuals]
    outcome: Callable[[Sequence[IntArray]], tuple[dict[str, Any], IntArray]]
    classes: tuple[Any, ...]
    points_sha256: str

    @property
    def event(self) -> VectorSum:
        """What all stages together are to the accountant."""
        return self.mechanism.event(self.n_stages)

    def terms(self, declared: Mapping[str, object]) -> tuple[NoisySums, SumShape]:
        """Return what the core would draw the sums by, and from."""
        unit, relation = str(declared["unit"]), str(declared["neighbours"])
        shape = SumShape(
            guarantee=Guarantee.model_validate({"unit": unit, "relation": relation}),
            coordinates=self.mechanism.coordinates,
            squared_sensitivity=self.mechanism.squared_sensitivity,
        )
        return NoisySums(sigmas=(self.mechanism.sigma,) * self.n_stages), shape


def release_sums(
    records: Records,
    asked: StagedSums,
    ledger: Ledger,
    *,
    request: str | None = None,
    purpose: str = "",
    declaration: Mapping[str, object] | None = None,
) -> ReleasedLabels | ReleasedSums:
    """Release the noisy sums of all stages, under differential privacy, and account for them.

    Parameters
    ----------
    records : Records
        Secret.
    asked : StagedSums
    ledger : Ledger
        Account of the private dataset; the price of all stages is reserved there before any noise
        is drawn.
    request : str, optional
        Key of this release in the ledger. One that was answered before gets the stored answer; one
        that was interrupted goes on after its last stored stage. A new key by default.
    purpose : str
        Why, in a few words; public.
    declaration : mapping, optional
        As for `secretballot.release`.

    Returns
    -------
    ReleasedLabels or ReleasedSums
        Labels of public points by the last model, where there are classes, with the certificate,
        which holds the sums.

    Raises
    ------
    ParameterError
        If the request was used for something else.
    BudgetError
        If the sums cost more than their budget, or the ledger does not admit it; nothing was spent.
    LedgerError
        If the ledger cannot be used, or is about another unit or relation.
    SamplerError
        If the installed sampler is missing, broken or draws wrong noise; nothing was spent.

    Privacy
    -------
    Unit, relation : as declared.
    Sensitivity : the mechanism's bound in each stage, whatever earlier stages released.
    Price : one `VectorSum` over all stages, adaptively composed.
    Rounding : upward.

    Notes
    -----
    Nothing secret lives from one stage to the next, so there is no vault: a stage needs the
    records, public values and what earlier stages released. A stage is drawn and stored in one
    transaction; what was not stored was not released, and is drawn anew.
    """
    purchase.check_ledger(ledger)
    declared = check_declaration(declaration)
    if asked.mechanism.replaced != (declared["neighbours"] == "replace-one"):
        raise ParameterError(
            f"The noise is for another relation than {declared['neighbours']!r}; calibrate it"
            " again. Nothing was spent."
        )
    purchase.check_declared(records.guarantee, declared, by_teachers=False)
    purchase.check_one_record_of_a_user(records.guarantee, ledger)
    key = uuid.uuid4().hex if request is None else request
    question = _question_of(asked, declared)
    stored = ledger.released(key)
    if stored is not None:
        return _same_release(stored, asked, declared, key)
    ledger.check_promise(str(declared["unit"]), str(declared["neighbours"]))
    purchase.check_sample(declaration)
    paid = purchase.priced((asked.event,), asked.budget)
    # before the purchase: an installation that cannot draw must cost nothing
    noise = purchase.exact_noise()

    def certified(
        sums: Sequence[IntArray], outcome: tuple[dict[str, Any], IntArray], reservation: int
    ) -> ReleasedLabels | ReleasedSums:
        return _certified_release(
            asked, sums, outcome, ledger, reservation, paid, noise, purpose, declaration
        )

    sums = [np.full(asked.mechanism.coordinates, _WIDEST)] * asked.n_stages
    widest = certified(sums, _widest_outcome(asked), 0)
    # An end between purchase and answer loses nothing here: the same request goes on. So signals
    # are held back for each stage alone.
    room = purchase.room_for(widest.to_json())
    number = _reservation_of(asked, ledger, widest.certificate, key, purpose, room)
    sums = []
    try:
        while len(sums) < asked.n_stages:
            sums.append(_released_stage(records, asked, ledger, number, question, sums, noise))
        with signals_held_back():
            released = certified(sums, asked.outcome(sums), number)
            content = purchase.encoded(released.to_json(), room)
            ledger.commit(number, content, parts=asked.n_stages)
    except UnknownEndError:
        raise
    except LedgerError:
        # another process may have finished the same request meanwhile: its answer is the answer
        stored = ledger.released(key)
        if stored is None:
            raise
        return _same_release(stored, asked, declared, key)
    return released


def _question_of(asked: StagedSums, declared: Mapping[str, object]) -> bytes:
    """Return what tells this request from others: the digest of its public terms."""
    terms = {
        "about": asked.about,
        "events": [asked.event.model_dump(mode="json")],
        "budget": asked.budget.to_json(),
        "classes": list(asked.classes),
        "points_sha256": asked.points_sha256,
        "unit": [declared["unit"], declared["unit_column"], declared["neighbours"]],
    }
    plain = json.loads(json.dumps(terms, default=repr))  # a class that no certificate takes
    return hashlib.sha256(canonical_json(plain).encode()).digest()


def _reservation_of(
    asked: StagedSums,
    ledger: Ledger,
    certificate: Mapping[str, Any],
    key: str,
    purpose: str,
    room: int,
) -> int:
    """Return the number of the request's reservation, made now unless it goes on."""
    entry = ledger.entry(key)
    if entry is not None:
        return purchase.checked_entry(entry, (asked.event,), asked.budget).id
    number, _ = purchase.reserved(
        ledger,
        (asked.event,),
        asked.budget,
        certificate,
        request=key,
        purpose=purpose,
        queries=asked.n_stages,
        room=room,
    )
    return number


@repeated  # what was drawn and not stored was seen by nobody
def _released_stage(
    records: Records,
    asked: StagedSums,
    ledger: Ledger,
    reservation: int,
    question: bytes,
    before: Sequence[IntArray],
    noise: ExactNoise,
) -> IntArray:
    """Return the noisy sum of the next stage: the stored one, or one drawn now and stored."""
    own = question + len(before).to_bytes(2, "big")
    with ledger.reading(reservation) as page:
        answers = dict(page.parts())
    if own not in answers:
        _refuse_other_terms(answers, question, reservation)
        # Outside the transaction, as it takes long: public values of earlier stages, then the sum.
        total = _stage_sum(records, asked, before)
        with signals_held_back(), ledger.answering(reservation) as page:
            answers = dict(page.parts())
            # else another process has drawn this stage meanwhile, and there is one answer only
            if own not in answers:
                _refuse_other_terms(answers, question, reservation)
                drawn = asked.mechanism.release(total, noise)
                page.add([(own, drawn.astype("<i8").tobytes())])
                answers[own] = drawn.astype("<i8").tobytes()
    return np.frombuffer(answers[own], dtype="<i8").astype(np.int64)


def _stage_sum(records: Records, asked: StagedSums, before: Sequence[IntArray]) -> IntArray:
    """Return the exact sum of the next stage, which must be what was paid for."""
    sums, paid = records.sums(asked.stage(before)), asked.mechanism
    made = sums.shape.squared_sensitivity, sums.shape.coordinates
    priced = paid.squared_sensitivity, paid.coordinates
    if made != priced:
        raise ParameterError(
            f"Squared sensitivity and coordinates of a stage are {made}; {priced} were paid for."
        )
    return sums._unseal()[0]


def _refuse_other_terms(answers: Mapping[bytes, bytes], question: bytes, reservation: int) -> None:
    """Refuse to answer under a reservation that was begun with another question."""
    # more answers than stages would be more than was paid for
    if any(known[:-2] != question for known in answers):
        raise ParameterError(
            f"Reservation {reservation} was begun with other public points, classes or settings; go"
            " on with the same ones, or use a new request."
        )


def _widest_outcome(asked: StagedSums) -> tuple[dict[str, Any], IntArray]:
    """Return dummy fields and labels whose text is as long as that of any outcome."""
    # of sums of nothing the outcome is found at once, and it has as many values as any
    nothing = [np.zeros(asked.mechanism.coordinates, dtype=np.int64)] * asked.n_stages
    outcome, labels = asked.outcome(nothing)
    label = max(range(len(asked.classes)), key=lambda value: len(str(value)), default=0)
    return {name: _as_widest(value) for name, value in outcome.items()}, np.full_like(labels, label)


def _as_widest(value: Any) -> Any:
    """Return a JSON value with every integer and truth value in it as long as any."""
    if isinstance(value, list):
        return [_as_widest(item) for item in value]
    if isinstance(value, bool):
        return False
    return _WIDEST if isinstance(value, int) else value


def _certified_release(
    asked: StagedSums,
    sums: Sequence[IntArray],
    outcome: tuple[dict[str, Any], IntArray],
    ledger: Ledger,
    reservation: int,
    paid: Price,
    noise: ExactNoise,
    purpose: str,
    declaration: Mapping[str, object] | None,
) -> ReleasedLabels | ReleasedSums:
    """Return what the stages come to, with its certificate."""
    fields, labels = outcome
    rows = np.arange(len(labels))
    mechanism, shape = asked.terms(check_declaration(declaration))
    certificate = build_certificate(
        mechanism=mechanism,
        shape=shape,
        public={**asked.about, **fields},
        budget=asked.budget,
        price=paid,
        composition=purchase.composition_of(ledger, reservation),
        noise={"exact": noise.exact, "description": noise.description},
        # 0: no teachers vote, the labels are those of one model
        released=describe_released(
            rows, labels, asked.classes, 0, points_sha256=asked.points_sha256
        )
        | {"values": [one.tolist() for one in sums]},
        declaration=declaration,
        purpose=purpose,
    )
    if not asked.classes:
        return ReleasedSums(certificate)
    return ReleasedLabels(rows, labels, asked.classes, 0, certificate=certificate)


def _same_release(
    content: bytes, asked: StagedSums, declared: Mapping[str, object], request: str
) -> ReleasedLabels | ReleasedSums:
    """Return the stored release if it answers this very question."""
    document = json.loads(content)
    kind = ReleasedLabels if asked.classes else ReleasedSums
    # what is of another kind answered another question
    stored = kind.from_json(document) if document.get("format") == kind.FORMAT else None
    if stored is None or not _has_same_terms(stored, asked, declared):
        raise ParameterError(
            f"The request {request!r} was answered before, with another question; ask the same"
            " again, or use a new request."
        )
    return stored


def _has_same_terms(
    stored: ReleasedLabels | ReleasedSums, asked: StagedSums, declared: Mapping[str, object]
) -> bool:
    """Return whether a stored release has the terms that are asked for."""
    document = stored.certificate
    return (
        # what was not asked for is another question
        document["public"].get("start") == asked.about.get("start")
        and purchase.has_terms(document, *asked.terms(declared), asked.about, asked.budget)
        and document["unit_column"] == declared["unit_column"]
        and list(getattr(stored, "classes", ())) == list(asked.classes)
        and document["released"].get("points_sha256") == asked.points_sha256
    )
