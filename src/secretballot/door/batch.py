"""A release as a whole: queries that are known beforehand, answered at once.

`core.releasing` checks, reserves, draws and stores; here stands what a certificate says of it.
"""

import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secretballot._typing import IntArray
from secretballot._validation import FARTHEST, MOST_ROWS, check_instance, name_part
from secretballot.accounting import PrivacyBudget
from secretballot.accounting.recipes import Terms, check_useful, deviation
from secretballot.aggregation import Aggregator
from secretballot.core import releasing
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import (
    ABSTAINED,
    ConfidentLabels,
    Mechanism,
    NoisyMeans,
    NoisyVotes,
)
from secretballot.core.private import MOST, Votes
from secretballot.core.releasing import AccountFacts, Released
from secretballot.core.types import VoteShape
from secretballot.door import purchase
from secretballot.door.outcomes import check_outcomes
from secretballot.ensemble.vote_tables import from_set_numbers
from secretballot.ensemble.votes import guarantee_of
from secretballot.exceptions import DataError, ParameterError
from secretballot.released import ReleasedLabels, ReleasedTable
from secretballot.report.certificate.build import (
    certificate_of,
    check_declaration,
    choice_fields,
    describe_released,
    time_and_software,
)
from secretballot.report.certificate.labels_file import class_value
from secretballot.report.certificate.methods import EXPECTED_UNCOVERED, VOTES

#: Of the terms, what was asked: no part of a certificate's public settings.
ASKED = "asked"
#: Votes, or what makes them once price, account and a stored answer were looked at.
VoteSource = Votes | Callable[[], Votes]
_NO_ROWS = np.zeros(0, dtype=np.int64)


def release(
    private: Votes,
    mechanism: Mechanism | Aggregator,
    ledger: Ledger,
    budget: PrivacyBudget | None = None,
    *,
    queries: ArrayLike | None = None,
    public_rows: ArrayLike | None = None,
    public: Mapping[str, Any] | None = None,
    request: str | None = None,
    purpose: str = "",
    declaration: Mapping[str, object] | None = None,
    choices: Sequence[Released] = (),
    points_sha256: str | None = None,
) -> ReleasedLabels:
    """Release labels, or noisy counts, under differential privacy, and account for it.

    Parameters
    ----------
    private : Votes
        Votes on the public points, of shape (n_queries, n_classes); secret.
    mechanism : Mechanism
        Fixed without looking at the votes, such as `noisy_votes` of
        `secretballot.accounting` returns.
    ledger : Ledger
        Account of the private dataset. The price is reserved there before any noise is drawn. Under
        "add-remove" an account about records also takes votes of teachers by user.
    budget : PrivacyBudget
        What is promised, and spent.
    queries : array of int, shape (l,), optional
        Rows of `private` to ask, distinct, in the order to ask them. All of them by default.
    public_rows : array of int, shape (l,), optional
        Row of the public pool that each asked query stands for, distinct; `queries` itself by
        default.
    public : mapping, optional
        ``method`` and its public settings, as JSON values; those of votes by default.
    request : str, optional
        Key of this release in the ledger. A request that was answered before gets the stored answer
        and costs nothing; one that was interrupted goes on, and is paid for once. A new key by
        default.
    purpose : str
        Why, in a few words; stored in the ledger and on the certificate, so public.
    declaration : mapping, optional
        ``unit_column`` and further ``assumptions``: what is known of how the votes came about; unit
        and relation are theirs. Without it the certificate says that nobody checked.
    choices : sequence of Released
        What the mechanism was set by, if private data had a say in it; for the certificate.
    points_sha256 : str, optional
        Digest of the values of the asked points, for the certificate: it ties the labels to them.

    Returns
    -------
    ReleasedLabels
        With its certificate.

    Raises
    ------
    DataError
        If a row is asked twice or does not exist.
    ParameterError
        If the mechanism does not fit the votes, or the request was begun with other terms.
    BudgetError
        If the mechanism costs more than `budget`, or the ledger does not admit it; nothing was
        spent.
    LedgerError
        If the ledger cannot be used or is about another unit or relation, or the request was
        forfeited before: what it reserved stays spent.
    SamplerError
        If the installed sampler is missing, broken or draws wrong noise; nothing was spent.

    Privacy
    -------
    Unit, relation, sensitivity : of the votes' shape.
    Price : of `mechanism.event(shape)`, at the budget's epsilon.
    Rounding : upward.

    Examples
    --------
    >>> votes = sb.votes_of_counts([[3, 97], [90, 10]], classes=["no", "yes"])
    >>> budget = sb.PrivacyBudget(2.0, 1e-6)
    >>> mechanism = sb.accounting.noisy_votes(budget, votes.shape)
    >>> ledger = sb.Ledger.in_memory(dataset="people", budget=budget)
    >>> sb.release(votes, mechanism, ledger, budget).label_values.tolist()
    ['yes', 'no']
    """
    check_instance("private", private, Votes, hint="give Votes, as votes_of_counts makes them")
    purchase.check_ledger(ledger)
    asked = _checked_rows(queries, private.shape.n_queries)
    named = asked if public_rows is None else _named_rows(public_rows, len(asked))
    votes = private.take(asked)
    terms = terms_of(mechanism, votes.shape, budget)
    return release_labels(
        terms if public is None else replace(terms, public=public),
        votes,
        ledger,
        classes=votes.classes,
        rows=named,
        request=request,
        purpose=purpose,
        declaration=purchase.declaration_of(private, declaration),
        choices=[choice_fields(choice) for choice in choices],
        outcomes=choices,
        points_sha256=points_sha256,
    )


def terms_of(
    mechanism: Mechanism | Aggregator, shape: VoteShape, budget: PrivacyBudget | None
) -> Terms:
    """Return the terms of a mechanism, or of an aggregator, which has its own budget.

    Raises
    ------
    ParameterError
        If it is neither, or there is no budget.
    """
    if isinstance(mechanism, Aggregator):
        teachers = shape.n_teachers or 0
        mechanism.check_useful(teachers)
        mechanism.events(teachers)  # refuses other teachers than it was priced for
        drawn = mechanism.core_mechanism(teachers)
        if isinstance(drawn, ConfidentLabels):  # no more answers than are asked for
            drawn = drawn.changed(max_answers=min(drawn.max_answers, shape.n_queries))
        return Terms(drawn, shape, mechanism.budget, mechanism.public)
    hint = "give a mechanism, such as noisy_votes returns"
    check_instance("mechanism", mechanism, Mechanism, hint=hint)
    check_instance("budget", budget, PrivacyBudget, hint="give a PrivacyBudget")
    assert isinstance(budget, PrivacyBudget)
    check_useful(mechanism, shape)
    return Terms(mechanism, shape, budget, {"method": VOTES})


def release_labels(
    terms: Terms,
    private: VoteSource,
    ledger: Ledger,
    *,
    classes: Sequence[Any],
    rows: IntArray,
    request: str | None = None,
    purpose: str = "",
    declaration: Mapping[str, object] | None = None,
    choices: Sequence[Mapping[str, Any]] = (),
    outcomes: Sequence[Released] = (),
    points_sha256: str | None = None,
) -> ReleasedLabels:
    """Release labels or noisy counts of votes that may not have been cast yet.

    Parameters
    ----------
    terms : Terms
    private : Votes, or callable
        A callable makes them, after all else was looked at.
    classes : sequence
    rows : array of int, shape (n_queries,)
        Rows of the public pool, distinct.
    choices : sequence of mapping
        As a certificate lists them.
    outcomes : sequence of Released
        Those of `choices` that were paid for just now.
    ledger, request, purpose, declaration, points_sha256
        As for `release`, whose errors these are.
    """
    shape, names = terms.shape, [class_value(value) for value in classes]
    teachers = shape.n_teachers or 0

    def described(values: IntArray) -> dict[str, Any]:
        labels, counts, beyond = _read(terms.mechanism, shape, values)
        told = describe_released(rows, labels, names, teachers, counts, points_sha256)
        if EXPECTED_UNCOVERED in terms.public:
            votes = shape.moved // (2 if shape.guarantee.relation == "replace-one" else 1)
            told["values"] = [[int(beyond.ravel()[:votes].sum())]]
        return told

    asked = {"rows": _digest(rows), "classes": names, "points_sha256": points_sha256}
    done, certificate = _certified(
        terms,
        private,
        ledger,
        asked=asked,
        described=described,
        request=request,
        purpose=purpose,
        declaration=declaration,
        choices=choices,
        outcomes=outcomes,
    )
    labels, counts, _ = _read(terms.mechanism, shape, done.values)
    sigma = None
    if counts is not None:
        assert isinstance(terms.mechanism, NoisyVotes)
        sigma = deviation(terms.mechanism)
    return ReleasedLabels(
        queries=rows,
        labels=labels,
        classes=tuple(classes),
        n_teachers=teachers,
        sigma=sigma,
        noisy_counts=counts,
        certificate=certificate,
    )


def release_table(
    terms: Terms,
    private: VoteSource,
    ledger: Ledger,
    *,
    rows: ArrayLike | None = None,
    request: str | None = None,
    purpose: str = "",
    declaration: Mapping[str, object] | None = None,
    points_sha256: str | None = None,
) -> ReleasedTable:
    """Release a table of answers to votes for sets of labels, or for numbers.

    Parameters
    ----------
    terms : Terms
        As `label_terms` and `number_terms` return them.
    private : Votes, or callable
        A callable makes them, after all else was looked at.
    rows : array of int, shape (n_queries,), optional
        Row of the public pool that each query stands for, distinct; 0, 1, ... by default.
    ledger, request, purpose, declaration, points_sha256
        As for `release`, whose errors these are.

    Returns
    -------
    ReleasedTable
        With its certificate.

    Privacy
    -------
    Unit, relation, sensitivity : of the shape: one teacher's votes at every query.
    Price : of `terms.mechanism.event(terms.shape)`, at the budget's epsilon.
    Rounding : upward.

    Examples
    --------
    >>> from secretballot.accounting.recipes import Terms
    >>> rows = np.random.default_rng(0).normal(5.0, 1.0, size=(3, 400))
    >>> votes, budget = sb.ensemble.number_votes(rows, (0.0, 10.0)), sb.PrivacyBudget(2.0, 1e-6)
    >>> public = {"method": "votes-of-numbers", "target_range": [0.0, 10.0]}
    >>> mechanism = sb.accounting.noisy_means(budget, votes.shape)
    >>> ledger = sb.Ledger.in_memory(dataset="heights", budget=budget)
    >>> terms = Terms(mechanism, votes.shape, budget, public)
    >>> table = sb.door.release_table(terms, votes, ledger)
    >>> bool((abs(table.values - 5) < 2).all()), sb.verify_certificate(table.certificate).ok
    (True, True)
    """
    check_useful(terms.mechanism, terms.shape)
    labels = terms.public.get("labels", [None])
    sets, n_asked = terms.public.get("ballot") == "sets", terms.n_points
    named = np.arange(n_asked) if rows is None else _named_rows(rows, n_asked)

    def described(values: IntArray) -> dict[str, Any]:
        answers = values.reshape(n_asked, -1)
        if sets and answers.shape[1] == 1:
            answers = from_set_numbers(answers[:, 0], len(labels))
        # what is described beside rows and values has no labels
        told = describe_released(
            _NO_ROWS, _NO_ROWS, (), terms.shape.n_teachers or 0, points_sha256=points_sha256
        )
        return told | {"rows": named.tolist(), "values": answers.tolist()}

    _, certificate = _certified(
        terms,
        private,
        ledger,
        asked={"rows": _digest(named), "points_sha256": points_sha256},
        described=described,
        request=request,
        purpose=purpose,
        declaration=declaration,
    )
    return ReleasedTable(certificate)


def _certified(
    terms: Terms,
    private: VoteSource,
    ledger: Ledger,
    *,
    asked: Mapping[str, Any],
    described: Callable[[IntArray], dict[str, Any]],
    request: str | None,
    purpose: str,
    declaration: Mapping[str, object] | None,
    choices: Sequence[Mapping[str, Any]] = (),
    outcomes: Sequence[Released] = (),
) -> tuple[Released, dict[str, Any]]:
    """Return what was released, and its certificate.

    `described` returns what a certificate says of released values, int64 of shape (n_answers,
    n_columns).
    """
    purchase.check_ledger(ledger)
    shape = terms.shape
    key = uuid.uuid4().hex if request is None else request
    declared = check_declaration(declaration)
    if guarantee_of(declared["unit"], declared["neighbours"]) != shape.guarantee:
        raise ParameterError(
            f"The votes were made for unit {shape.guarantee.unit!r} under"
            f" {shape.guarantee.relation!r}, and the declaration says otherwise. Nothing was spent."
        )
    if (declaration or {}).get("sample") is not None:
        raise ParameterError(
            "These teachers learned from a secret sample, and answer a stream alone; use"
            " AgnosticLabeler. Nothing was spent."
        )
    check_outcomes(outcomes, ledger, declared)

    def certified(done: Released) -> dict[str, Any]:
        return certificate_of(
            replace(done, public=dict(terms.public)),
            described(done.values),
            declaration=declaration,
            choices=list(choices) or None,
        )

    def made(_: Sequence[IntArray]) -> Votes:
        # before anything is made or paid: what could not be read would have cost the budget
        purchase.check_readable(certified(unpaid(terms, ledger, key, purpose)))
        return private() if callable(private) else private

    done = releasing.release(
        shape,
        made,
        terms.mechanism,
        ledger,
        terms.budget,
        request=key,
        public={
            **terms.public,
            ASKED: {**asked, "declaration": declaration, "choices": list(choices)},
        },
        purpose=purpose,
    )
    return done, certified(done)


def _digest(rows: IntArray) -> str:
    """Return what stands for rows of the public pool in the ledger, however many they are."""
    return hashlib.sha256(rows.astype("<i8").tobytes()).hexdigest()


def unpaid(terms: Terms, ledger: Ledger, request: str, purpose: str) -> Released:
    """Return a release with dummy answers, as long as any."""
    mechanism, shape, noise = terms.mechanism, terms.shape, releasing.noise_source()
    event, drawn = mechanism.event(shape), time_and_software()
    widest = 0 if mechanism.stops_at is None else ABSTAINED
    if isinstance(mechanism, NoisyMeans) or (
        isinstance(mechanism, NoisyVotes) and mechanism.release == "counts"
    ):
        steps = shape.n_classes - 1 if isinstance(mechanism, NoisyMeans) else 1
        far = int(FARTHEST * deviation(mechanism))
        widest = max(-far, (shape.n_teachers or MOST) * steps + far, key=lambda n: len(str(n)))
    return Released(
        request=request,
        purpose=purpose,
        mechanism=mechanism,
        shape=shape,
        event=event,
        budget=terms.budget,
        price=purchase.priced((event,), terms.budget),
        public=dict(terms.public),
        values=np.full(mechanism.answer_shape(shape), widest, dtype=np.int64),
        questions=(),
        noise={
            "exact": noise.exact,
            "description": noise.description,
            "software": drawn["software"],
        },
        issued=drawn["issued"],
        account=AccountFacts(
            dataset=ledger.dataset,
            composition=ledger.composition,
            guarantee=ledger.guarantee,
            budget=ledger.budget,
            spent_after=(0.0, 0.0),
            durable=ledger.durable,
            reservation=0,
        ),
    )


def _read(
    mechanism: Mechanism, shape: VoteShape, values: IntArray
) -> tuple[IntArray, IntArray | None, IntArray]:
    """Return labels, -1 where there is none, noisy counts where they are released, and those of
    the rows beyond the queries."""
    if not (isinstance(mechanism, NoisyVotes) and mechanism.release == "counts"):
        labels = np.full(shape.n_queries, ABSTAINED)
        labels[: len(values)] = values[:, 0]  # nothing after a stop
        return labels, None, values[:0]
    counts, beyond = values[: shape.n_queries], values[shape.n_queries :]
    if counts.shape[1] == 1:
        assert shape.n_teachers is not None
        counts = counts[:, 0]
        return (2 * counts >= shape.n_teachers).astype(np.int64), counts, beyond
    return counts.argmax(axis=1).astype(np.int64), counts, beyond


def _checked_rows(queries: ArrayLike | None, n_queries: int) -> IntArray:
    """Return the rows to ask as int64, distinct and in range."""
    rows = np.arange(n_queries) if queries is None else np.asarray(queries)
    rows = _distinct_rows("queries", rows)
    if not rows.max() < n_queries:
        raise DataError(f"queries go up to {rows.max()}; rows go from 0 to {n_queries - 1}.")
    return rows


def _named_rows(public_rows: ArrayLike, n_queries: int) -> IntArray:
    """Return the rows of the public pool that the queries stand for, as int64, distinct."""
    named = _distinct_rows("public_rows", np.asarray(public_rows))
    if len(named) != n_queries:
        raise DataError(
            f"public_rows names {len(named)} rows for {n_queries} queries; name one row for each"
            " query."
        )
    return named


def _distinct_rows(name: str, rows: NDArray[Any]) -> IntArray:
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows):
        raise DataError(
            name_part(name),
            f" has shape {rows.shape} and dtype {rows.dtype}; give one or more row numbers, as"
            " integers.",
        )
    if not rows.min() >= 0:
        raise DataError(name_part(name), f" has the row {rows.min()}; rows count from 0.")
    if not rows.max() < MOST_ROWS:
        raise DataError(
            name_part(name),
            f" has the row {rows.max()}; the last one may be {MOST_ROWS - 1}. Nothing was spent.",
        )
    if len(np.unique(rows)) < len(rows):
        raise DataError(
            name_part(name),
            " names a row twice; ask each row once and use the stored answer for repeats.",
        )
    return rows.astype(np.int64)
