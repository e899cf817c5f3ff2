"""Numbers and choices that later steps are set by: drawn from private data, paid for, and named
on the certificate."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from secretballot._validation import check_count, shown
from secretballot.accounting import PrivacyBudget, calibrate_pure
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import ExponentialChoice, Mechanism, Shape, StabilityQuantile
from secretballot.core.private import Scores, Votes
from secretballot.core.releasing import AnswerStream, Released, Source, release, stream
from secretballot.core.types import Guarantee, ScoreShape
from secretballot.door import purchase
from secretballot.ensemble.votes import guarantee_of
from secretballot.exceptions import Parameter, ParameterError
from secretballot.report.certificate.build import (
    account_fields,
    certificate_of,
    check_declaration,
    choice_fields,
    describe_released,
)
from secretballot.report.certificate.methods import EXPONENTIAL


def estimate_stability(
    counts: Votes,
    ledger: Ledger,
    *,
    fraction: float,
    epsilon: float,
    request: str | None = None,
    purpose: str = "",
    declaration: Mapping[str, object] | None = None,
) -> Released:
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
    Released
        Its one value is a distance to instability in votes, with discrete Laplace noise of scale 1
        / epsilon.

    Raises
    ------
    ParameterError, BudgetError, LedgerError
        As for `secretballot.release`; nothing was spent.

    Privacy
    -------
    Unit, relation : as the votes were made for.
    Sensitivity : 1 vote, however many points (`StabilityQuantile`).
    Price : (epsilon, 0).
    Source : Bassily, Thakurta, Thakkar 2018, Remark 1, as differences 10 puts it right.
    Rounding : upward.

    Examples
    --------
    >>> ledger = sb.Ledger.in_memory(dataset="people", budget=sb.PrivacyBudget(1.0, 0.0))
    >>> votes = sb.votes_of_counts([[3, 97], [60, 40]])
    >>> paid = sb.estimate_stability(votes, ledger, fraction=0.5, epsilon=0.5)
    >>> paid.budget, paid.public["method"], paid.values.shape
    (PrivacyBudget(epsilon=0.5, delta=0.0), 'stability-quantile', (1, 1))
    """
    purchase.check_counts(counts)
    declaration = purchase.declaration_of(counts, declaration)
    purchase.check_sample(declaration)
    mechanism = StabilityQuantile(epsilon=_drawn_at(epsilon), fraction=fraction)
    return _released(
        mechanism,
        counts.shape,
        counts,
        {"method": mechanism.kind},
        ledger,
        epsilon=epsilon,
        request=request,
        purpose=purpose or "how stable the votes are",
        declaration=declaration,
    )


def choose_by_scores(
    scores: Callable[[], Scores],
    n_candidates: int,
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
) -> Released:
    """Choose one candidate by private scores, with probability proportional to exp(score / scale).

    Parameters
    ----------
    scores : callable
        Counts right answers of each candidate, or mistakes below 0, once price, account and a
        stored answer were looked at; secret. The candidates do not depend on these records, unless
        paid for.
    n_candidates : int
        Public.
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
    Released
        Its one value is the number of the chosen candidate.

    Raises
    ------
    ParameterError, BudgetError, LedgerError
        As for `secretballot.release`; nothing was spent.

    Privacy
    -------
    Unit : as the scores count. One more record may change which record of its user counts: then
        some scores rise and some fall, and the choice loses up to log((1 + e^(2 epsilon)) / 2) of
        it. So an account about records takes no scores by user.
    Relation : add-remove: scale 1 / epsilon, since all scores move one way. Replace-one: 2 /
        epsilon.
    Sensitivity : 1 for every score.
    Price : (epsilon, 0).
    Source : McSherry and Talwar 2007, Theorem 6; Nandi and Bassily 2020, Algorithm 7.
    Rounding : upward.
    """
    declared = check_declaration(declaration)
    shape = ScoreShape(guarantee=guarantee_of(declared["unit"], declared["neighbours"]))
    stated: dict[str, Any] = {
        "method": EXPONENTIAL,
        "n_candidates": check_count("n_candidates", n_candidates),
    }
    if names is not None:
        stated["candidates"] = _distinct_names(names, n_candidates)

    def counted(_: object) -> Scores:
        found = scores()
        if found.n_candidates != n_candidates:
            raise ParameterError("The scores are not one for each candidate. Nothing was spent.")
        return found

    return _released(
        ExponentialChoice(epsilon=_drawn_at(epsilon)),
        shape,
        counted,
        {**(about or {}), **stated},
        ledger,
        epsilon=epsilon,
        request=request,
        purpose=purpose or "which candidate is right most often",
        declaration=declaration,
        classes=classes,
        beside=beside,
    )


def reserve_choice(
    ledger: Ledger,
    *,
    epsilon: float,
    guarantee: Guarantee,
    request: str,
    purpose: str,
    classes: Sequence[object] = (0, 1),
) -> AnswerStream:
    """Reserve one choice, or take one up, that is drawn when its candidates are known.

    Parameters
    ----------
    guarantee : Guarantee
        What the scores will be counted by.
    ledger, epsilon, request, purpose, classes
        As for `choose_by_scores`.

    Returns
    -------
    AnswerStream
        Of one answer. The question is what tells later which candidates there were.

    Raises
    ------
    ParameterError, BudgetError, LedgerError
        As for `secretballot.release`; nothing was spent.

    Privacy
    -------
    Unit, relation, sensitivity, price : as for `choose_by_scores`; spent from the start, drawn or
        not.
    Source : Nandi and Bassily 2020, Algorithms 4 and 7.
    """
    purchase.check_ledger(ledger)
    declaration = {"unit": guarantee.unit, "neighbours": guarantee.relation}
    return stream(
        ScoreShape(guarantee=guarantee),
        ExponentialChoice(epsilon=_drawn_at(epsilon)),
        ledger,
        PrivacyBudget(epsilon, 0.0),
        request=request,
        public={"method": EXPONENTIAL},
        purpose=purpose,
        check=lambda planned: _check_named(planned, declaration, classes),
    )


def check_outcomes(
    choices: Sequence[Released], ledger: Ledger, declared: Mapping[str, object]
) -> None:
    """Refuse choices that do not add to the promise of a release from `ledger` under a declaration.

    Raises
    ------
    ParameterError
        If one was paid from another ledger, or is about another unit or relation; nothing was
        spent.
    """
    own, asked = account_terms(ledger), (str(declared["unit"]), str(declared["neighbours"]))
    # one certificate states one total, so all that it names must be paid from one account
    for choice in choices:
        account, made = account_fields(choice.account), choice.shape.guarantee
        if any(account[term] != value for term, value in own.items()):
            raise ParameterError(
                f"The choice {choice.purpose!r} was paid from another ledger than this release"
                " would be; use the ledger that paid for it. Nothing was spent."
            )
        if not covers((made.unit, made.relation), asked):
            raise ParameterError(
                f"The choice {choice.purpose!r} was paid for by {made.unit} under"
                f" {made.relation!r}, and the release is by {asked[0]} under {asked[1]!r}; choose"
                " by the same unit and relation. Nothing was spent."
            )


def covers(paid: tuple[str, str], asked: tuple[str, str]) -> bool:
    """Return whether a price about one (unit, relation) is one about another too.

    All records of a user are more than one record of theirs; a record replaced is more than its
    label changed. Not the other way round.
    """
    return guarantee_of(*paid).adds_to(guarantee_of(*asked), by_teachers=True)


def account_terms(ledger: Ledger) -> dict[str, Any]:
    """Return what tells an account from another one, as certificates state it."""
    return {
        "kind": ledger.composition,
        "dataset": ledger.dataset,
        "unit": ledger.unit,
        "neighbours": ledger.neighbours,
        "budget": ledger.budget.to_json(),
    }


def _drawn_at(epsilon: float) -> float:
    """Return the loss to draw at for a price of (epsilon, 0).

    Less by a hair, so that its rounded-up delta is 0.
    """
    return calibrate_pure(PrivacyBudget(epsilon, 0.0), 1)


def _released(
    mechanism: Mechanism,
    shape: Shape,
    private: Source,
    public: Mapping[str, Any],
    ledger: Ledger,
    *,
    epsilon: float,
    request: str | None,
    purpose: str,
    declaration: Mapping[str, object] | None,
    classes: Sequence[object] = (0, 1),
    beside: Sequence[Mapping[str, Any]] = (),
) -> Released:
    purchase.check_ledger(ledger)
    return release(
        shape,
        private,
        mechanism,
        ledger,
        PrivacyBudget(epsilon, 0.0),
        request=uuid.uuid4().hex if request is None else request,
        public=public,
        purpose=purpose,
        check=lambda planned: _check_named(planned, declaration, classes, beside),
    )


def _check_named(
    planned: Released,
    declaration: Mapping[str, object] | None,
    classes: Sequence[object],
    beside: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Refuse a number that no certificate could name.

    The one that is tried lists it among its choices, as that of a later release will, and is about
    a choice among candidates itself, of the same price.
    """
    own = ExponentialChoice(epsilon=_drawn_at(planned.budget.epsilon))
    shape = ScoreShape(guarantee=planned.shape.guarantee)
    public = {"n_candidates": 1, **planned.public, "method": EXPONENTIAL}
    named = replace(planned, public=public if planned.mechanism == own else planned.public)
    number = 1 + max((entry["reservation"] for entry in beside), default=0)
    one = np.zeros(1, dtype=np.int64)
    purchase.check_readable(
        certificate_of(
            replace(planned, mechanism=own, shape=shape, event=own.event(shape), public=public),
            describe_released(one, one, classes, 0) | {"values": [[0]]},
            declaration=declaration,
            choices=[*beside, choice_fields(named) | {"reservation": number}],
        )
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
