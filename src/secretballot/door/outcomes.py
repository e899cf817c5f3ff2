"""Numbers and choices that later steps are set by: drawn from private data, paid for, and named
on the certificate."""

import functools
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._validation import shown
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import (
    ExponentialChoice,
    Mechanism,
    Shape,
    StabilityQuantile,
    State,
    mechanism_in,
    range_of,
    shape_in,
)
from secretballot.core.noise import ExactNoise
from secretballot.core.private import Scores, Votes
from secretballot.core.types import Guarantee, ScoreShape
from secretballot.door import purchase
from secretballot.ensemble.votes import guarantee_of
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import Event, PrivacyBudget, calibrate_pure
from secretballot.report.certificate.build import (
    build_certificate,
    check_declaration,
    describe_released,
    time_and_software,
)
from secretballot.report.certificate.chosen import EXPONENTIAL

_STORED = ("purpose", "public", "outcome", "epsilon", "composition", "drawn")


@dataclass(frozen=True)
class PaidOutcome:
    """One number that left the door to set something by; public.

    Attributes
    ----------
    purpose : str
        What it is for.
    mechanism : Mechanism
        What drew.
    shape : VoteShape or ScoreShape
        Of what it was drawn from.
    public : dict
        ``method`` and public settings, as JSON values.
    outcome : int
        The number: votes, or the position of the chosen candidate.
    epsilon, delta : float
        What was paid for it.
    composition : dict
        The ledger that paid, as a certificate states it: its name, its promise, and what was spent
        just after.
    drawn : dict
        When it was drawn and by which software, as a certificate states it.

    Examples
    --------
    >>> ledger = sb.Ledger.in_memory(dataset="people", budget=sb.PrivacyBudget(1.0, 0.0))
    >>> votes = sb.votes_of_counts([[3, 97], [60, 40]])
    >>> paid = sb.estimate_stability(votes, ledger, fraction=0.5, epsilon=0.5)
    >>> paid.epsilon, paid.delta, paid.public["method"], paid.reservation
    (0.5, 0.0, 'stability-quantile', 1)
    """

    purpose: str
    mechanism: Mechanism
    shape: Shape
    public: dict[str, Any]
    outcome: int
    epsilon: float
    delta: float
    composition: dict[str, Any]
    drawn: dict[str, Any]

    @property
    def event(self) -> Event:
        """What was drawn, to the accountant."""
        return self.mechanism.event(self.shape)

    @property
    def unit(self) -> str:
        """Whose data the price is about."""
        return self.shape.guarantee.unit

    @property
    def neighbours(self) -> str:
        """The relation."""
        return self.shape.guarantee.relation

    @property
    def reservation(self) -> int:
        """Its number in the ledger."""
        return int(self.composition["reservation"])

    def to_certificate(self) -> dict[str, Any]:
        """Return the entry for the ``choices`` of a certificate."""
        return {
            "purpose": self.purpose,
            "mechanism": self.mechanism.model_dump(mode="json"),
            "shape": self.shape.model_dump(mode="json"),
            "public": self.public,
            "events": [self.event.model_dump(mode="json")],
            "epsilon": self.epsilon,
            "delta": self.delta,
            "value": self.outcome,
            "reservation": self.reservation,
        }


def estimate_stability(
    counts: Votes,
    ledger: Ledger,
    *,
    fraction: float,
    epsilon: float,
    request: str | None = None,
    purpose: str = "",
    declaration: Mapping[str, object] | None = None,
) -> PaidOutcome:
    """Release how stable the votes on a public pool are.

    All but a share `fraction` are at least so stable, about.

    Parameters
    ----------
    counts : Votes
        Votes on the pool, of shape (n_points, n_classes); secret. The pool is chosen without
        looking at them.
    ledger : Ledger
    fraction : float
        Share of the points that may be less stable, in (0, 1).
    epsilon : float
        Price; pure, delta is 0.
    request, purpose, declaration
        As for `secretballot.release`.

    Returns
    -------
    PaidOutcome
        The outcome is a distance to instability in votes, with discrete Laplace noise of scale 1 /
        epsilon.

    Raises
    ------
    ParameterError, BudgetError, LedgerError
        As for `secretballot.release`; nothing was spent.

    Privacy
    -------
    Unit, relation : as declared.
    Sensitivity : 1 vote, however many points (`StabilityQuantile`).
    Price : (epsilon, 0).
    Source : Bassily, Thakurta, Thakkar 2018, Remark 1, as differences 10 puts it right.
    Rounding : upward.
    """
    purchase.check_counts(counts)
    declaration = purchase.declaration_of(counts, declaration)
    mechanism = StabilityQuantile(epsilon=_drawn_at(epsilon), fraction=fraction)
    declared = check_declaration(declaration)
    guarantee = guarantee_of(declared["unit"], declared["neighbours"])
    # the votes are opened inside the draw, hence after the price is reserved
    return _paid_outcome(
        mechanism,
        counts.shape.model_copy(update={"guarantee": guarantee}),
        {"method": mechanism.kind},
        float(epsilon),
        lambda noise: int(mechanism.draw(counts.shape, counts._unseal(), noise, State())[0][0, 0]),
        ledger,
        request,
        purpose or "how stable the votes are",
        declaration,
    )


def choose_by_scores(
    scores: Scores,
    ledger: Ledger,
    *,
    epsilon: float,
    names: Sequence[str] | None = None,
    classes: Sequence[object] = (0, 1),
    beside: Sequence[Mapping[str, Any]] = (),
    about: Mapping[str, object] | None = None,
    request: str | None = None,
    purpose: str = "",
    declaration: Mapping[str, object] | None = None,
) -> PaidOutcome:
    """Choose one candidate by private scores, with probability proportional to exp(score / scale).

    Parameters
    ----------
    scores : Scores
        Right answers of each candidate, or mistakes counted below 0; secret. The candidates do not
        depend on these records, unless paid for.
    names : sequence of str, optional
        What the candidates are called, for the certificate; public and distinct.
    classes : sequence, optional
        What the chosen candidate will label public points with, for the certificate.
    beside : sequence of mapping, optional
        What that certificate will list under ``choices`` beside this one.
    about : mapping, optional
        What the candidates are, as JSON values; public, for the certificate. A stored answer is one
        about the same.
    ledger, epsilon, request, purpose, declaration
        As for `estimate_stability`; the scores must be counted for the declared unit and relation.

    Returns
    -------
    PaidOutcome
        The outcome is the position of the chosen candidate.

    Raises
    ------
    ParameterError, BudgetError, LedgerError
        As for `secretballot.release`; nothing was spent.

    Privacy
    -------
    Unit : as the scores count.
    Relation : add-remove: scale 1 / epsilon, since all scores move one way. Replace-one: 2 /
        epsilon.
    Sensitivity : 1 for every score.
    Price : (epsilon, 0).
    Source : McSherry and Talwar 2007, Theorem 6; Nandi and Bassily 2020, Algorithm 7.
    Rounding : upward.
    """
    # unit and relation first: scale and price follow from how the scores move under them
    made = scores.shape.guarantee
    purchase.check_declared(made, check_declaration(declaration), by_teachers=False)
    check_scores_account(ledger, made)
    mechanism = ExponentialChoice(epsilon=_drawn_at(epsilon))
    stated: dict[str, Any] = {"method": EXPONENTIAL, "n_candidates": scores.n_candidates}
    if names is not None:
        stated["candidates"] = _distinct_names(names, scores.n_candidates)
    declared = check_declaration(declaration)
    return _paid_outcome(
        mechanism,
        ScoreShape(guarantee=guarantee_of(declared["unit"], declared["neighbours"])),
        {**(about or {}), **stated},
        float(epsilon),
        lambda noise: drawn_by(mechanism, scores, noise),
        ledger,
        request,
        purpose or "which candidate is right most often",
        declaration,
        classes,
        beside,
    )


def check_scores_account(ledger: Ledger, made: Guarantee) -> None:
    """Refuse an account to whose promise a choice by scores of this guarantee does not add.

    One more record may change which record of its user counts: then some scores rise and some fall,
    and the choice loses up to log((1 + e^(2 epsilon)) / 2) of it.

    Raises
    ------
    LedgerError
        If it does not; nothing was spent.
    """
    purchase.check_ledger(ledger)
    ledger.check_promise(made.unit, made.relation)
    purchase.check_one_record_of_a_user(made, ledger)


def drawn_by(mechanism: ExponentialChoice, scores: Scores, noise: ExactNoise) -> int:
    """Return the number of the candidate that is drawn; of ranges without listing them."""
    opened = scores._unseal()
    chosen = int(mechanism.draw(scores.shape, opened, noise, State())[0][0, 0])
    if len(opened) == 1:
        return chosen
    found = range_of(chosen)
    if found is None:
        return 0
    # as `IntervalDichotomies` counts them
    first, last = found
    return 1 + first * len(opened[0]) - first * (first - 1) // 2 + last - first


def _drawn_at(epsilon: float) -> float:
    """Return the loss to draw at for a price of (epsilon, 0).

    Less by a hair, so that its rounded-up delta is 0.
    """
    return calibrate_pure(PrivacyBudget(epsilon, 0.0), 1)


def check_outcomes(
    choices: Sequence[PaidOutcome], ledger: Ledger, declared: Mapping[str, object]
) -> None:
    """Refuse choices that do not add to the promise of a release from `ledger` under a declaration.

    Raises
    ------
    ParameterError
        If one was paid from another ledger, or is about another unit or relation; nothing was
        spent.
    """
    own = {
        "kind": ledger.composition,
        "dataset": ledger.dataset,
        "unit": ledger.unit,
        "neighbours": ledger.neighbours,
        "budget": ledger.budget.to_json(),
    }
    # one certificate states one total, so all that it names must be paid from one account
    for choice in choices:
        if any(choice.composition.get(term) != value for term, value in own.items()):
            raise ParameterError(
                f"The choice {choice.purpose!r} was paid from another ledger than this release"
                " would be; use the ledger that paid for it. Nothing was spent."
            )
        if not covers(
            (choice.unit, choice.neighbours), (str(declared["unit"]), str(declared["neighbours"]))
        ):
            raise ParameterError(
                f"The choice {choice.purpose!r} was paid for by {choice.unit} under"
                f" {choice.neighbours!r}, and the release is by {declared['unit']} under"
                f" {declared['neighbours']!r}; choose by the same unit and relation. Nothing was"
                " spent."
            )


def covers(paid: tuple[str, str], asked: tuple[str, str]) -> bool:
    """Return whether a price about one (unit, relation) is one about another too.

    All records of a user are more than one record of theirs; a record replaced is more than its
    label changed. Not the other way round.
    """
    return guarantee_of(*paid).adds_to(guarantee_of(*asked), by_teachers=True)


def _paid_outcome(
    mechanism: Mechanism,
    shape: Shape,
    public: dict[str, Any],
    epsilon: float,
    draw: Callable[[ExactNoise], int],
    ledger: Ledger,
    request: str | None,
    purpose: str,
    declaration: Mapping[str, object] | None,
    classes: Sequence[object] = (0, 1),
    beside: Sequence[Mapping[str, Any]] = (),
) -> PaidOutcome:
    """Check, price, ready the noise, then draw once.

    A known request gets its stored answer.
    """
    purchase.check_ledger(ledger)
    declared = check_declaration(declaration)
    unit, neighbours = str(declared["unit"]), str(declared["neighbours"])
    key = uuid.uuid4().hex if request is None else request
    purchase.check_sample(None, declaration, key)
    stored = ledger.released(key)
    asked = mechanism, shape, json.loads(json.dumps(public)), epsilon
    known = functools.partial(_same_question, asked=asked, request=key)
    if stored is not None:
        return known(stored)
    ledger.check_promise(unit, neighbours)
    budget = PrivacyBudget(epsilon, 0.0)
    # before the purchase: an installation that cannot draw must cost nothing
    noise = purchase.exact_noise()

    def describe(outcome: int, composition: dict[str, Any]) -> PaidOutcome:
        drawn = time_and_software()
        return PaidOutcome(
            purpose, mechanism, shape, public, outcome, epsilon, 0.0, composition, drawn
        )

    account = purchase.composition_of(ledger, 0)
    room = purchase.room_for(_stored_fields(describe(_WIDEST, account)))
    certificate = dummy_certificate(describe(0, account), noise, declaration, classes, beside)

    def drawn(composition: dict[str, Any]) -> tuple[PaidOutcome, object]:
        choice = describe(draw(noise), composition)
        return choice, _stored_fields(choice)

    return purchase.drawn_once(
        ledger,
        (mechanism.event(shape),),
        budget,
        certificate,
        drawn,
        known,
        request=key,
        purpose=purpose,
        room=room,
    )


def dummy_certificate(
    choice: PaidOutcome,
    noise: ExactNoise,
    declaration: Mapping[str, object] | None,
    classes: Sequence[object],
    beside: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return a certificate that lists a number among its choices, as that of a later release will,
    and is about a choice among candidates itself, of the same price.

    Parameters
    ----------
    choice : PaidOutcome
        Not yet drawn.
    noise : ExactNoise
    declaration : mapping or None
    classes : sequence
        Of the released labels.
    beside : sequence of mapping
        What else is listed under ``choices``.
    """
    own = ExponentialChoice(epsilon=_drawn_at(choice.epsilon))
    shape = ScoreShape(guarantee=choice.shape.guarantee)
    one = np.zeros(1, dtype=np.int64)
    number = 1 + max((entry["reservation"] for entry in beside), default=0)
    budget = PrivacyBudget(choice.epsilon, choice.delta)
    return build_certificate(
        mechanism=own,
        shape=shape,
        public={"n_candidates": 1, **choice.public, "method": EXPONENTIAL},
        budget=budget,
        price=purchase.priced((own.event(shape),), budget),
        composition=choice.composition,
        noise={"exact": noise.exact, "description": noise.description},
        released=describe_released(one, one, classes, 0) | {"values": [[0]]},
        declaration=declaration,
        purpose=choice.purpose,
        choices=[*beside, choice.to_certificate() | {"reservation": number}],
    )


_WIDEST = -(2**63)  # no outcome has more digits


def _stored_fields(choice: PaidOutcome) -> dict[str, Any]:
    models = {"mechanism": choice.mechanism, "shape": choice.shape}
    return {field: getattr(choice, field) for field in _STORED} | {
        name: model.model_dump(mode="json") for name, model in models.items()
    }


def choice_of(stored: Mapping[str, Any]) -> PaidOutcome:
    """Return the choice whose fields were stored."""
    mechanism = mechanism_in(stored["mechanism"])
    shape = shape_in(mechanism, stored["shape"])
    fields = {field: stored[field] for field in _STORED}
    return PaidOutcome(mechanism=mechanism, shape=shape, delta=0.0, **fields)


def _same_question(
    content: bytes, asked: tuple[Mechanism, Shape, dict[str, Any], float], request: str
) -> PaidOutcome:
    """Return the stored answer if it answers this very question, about the same unit and
    relation."""
    stored = json.loads(content)
    if isinstance(stored, dict) and set(stored) == {*_STORED, "mechanism", "shape"}:
        found = choice_of(stored)
        if (found.mechanism, found.shape, found.public, found.epsilon) == asked:
            return found
    raise ParameterError(
        f"The request {request!r} was answered before, with another question; ask the same"
        " again, or use a new request."
    )


def _distinct_names(names: Sequence[str], n_candidates: int) -> list[str]:
    given = list(names)
    if (
        len(given) != n_candidates
        or len(set(given)) < len(given)
        or not all(isinstance(name, str) for name in given)
    ):
        raise ParameterError(
            Parameter("names"),
            f" is {shown(given)}; give one string for each of the {n_candidates} candidates,"
            " distinct.",
        )
    return given
