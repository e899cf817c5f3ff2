"""A release as a whole: queries that are known beforehand, answered at once."""

import functools
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secretballot._typing import IntArray
from secretballot._validation import MOST_ROWS, check_instance, name_part
from secretballot.aggregation import Aggregator, Answers, RecordVotesAggregator
from secretballot.aggregation.base import widest_count
from secretballot.aggregation.record_votes import UNCOVERED_VOTES
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import Mechanism
from secretballot.core.noise import NoiseSource
from secretballot.core.private import MOST, Votes
from secretballot.core.releasing import Released
from secretballot.core.types import VoteShape
from secretballot.door import purchase
from secretballot.door.outcomes import check_outcomes
from secretballot.exceptions import Argument, DataError, ParameterError
from secretballot.privacy.accounting import Price, PrivacyBudget
from secretballot.released import ReleasedLabels
from secretballot.report.certificate.build import (
    build_certificate,
    check_declaration,
    choice_fields,
    describe_released,
)


def release(
    counts: Votes,
    aggregator: Aggregator,
    ledger: Ledger,
    *,
    queries: ArrayLike | None = None,
    public_rows: ArrayLike | None = None,
    request: str | None = None,
    purpose: str = "",
    declaration: Mapping[str, object] | None = None,
    choices: Sequence[Released] = (),
    points_sha256: str | None = None,
    predictions: ArrayLike | None = None,
) -> ReleasedLabels:
    """Release what the teachers answer, under differential privacy, and account for it.

    Parameters
    ----------
    counts : Votes
        Votes on the public points; secret. Votes of records go with a `RecordVotesAggregator`
        for the same number of votes a record, the same unit and the same relation.
    aggregator : Aggregator
        Recipe and noise, fixed without looking at the votes.
    ledger : Ledger
        Account of the private dataset. The price is reserved there before any noise is drawn. Its
        unit and relation must be the declared ones; under "add-remove" an account about records
        also takes a release by user.
    queries : array of int, shape (l,), optional
        Rows of `counts` to ask, distinct, in the order to ask them. All of them by default.
    public_rows : array of int, shape (l,), optional
        Row of the public pool that each asked query stands for, distinct; `queries` itself by
        default.
    request : str, optional
        Key of this release in the ledger. A request that was answered before gets the stored answer
        and costs nothing; one that was interrupted goes on, and is paid for once. A new key by
        default.
    purpose : str
        Why, in a few words; stored in the ledger and on the certificate, so public.
    declaration : mapping, optional
        ``unit`` ("record" or "user"), ``unit_column``, ``neighbours`` and further ``assumptions``:
        what is known of how the teachers came about. Without it the votes' own declaration holds;
        of votes without one the release counts as one by record under "add-remove", and the
        certificate says that nobody checked.
    choices : sequence of Released
        What the aggregator was set by, if private data had a say in it; for the certificate.
    points_sha256 : str, optional
        Digest of the values of the asked points, for the certificate: it ties the labels to them.
    predictions : array of shape (l, n_classes), optional
        Class probabilities of a student of released labels on the asked points, in their order;
        for an `InteractiveAggregator` alone, which contradicts none without them. They are public:
        nothing private may have entered them that was not released.

    Returns
    -------
    ReleasedLabels
        With its certificate.

    Raises
    ------
    DataError
        If a row is asked twice or does not exist.
    ParameterError
        If the aggregator does not fit the votes, or would answer nothing.
    BudgetError
        If the ledger's budget does not admit the price; nothing was spent.
    LedgerError
        If the ledger cannot be used or is about another unit or relation, or the request was
        forfeited before: what it reserved stays spent.
    SamplerError
        If the installed sampler is missing, broken or draws wrong noise; nothing was spent.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher (`core.partition`).
    Relation : as declared; the mechanisms' prices hold for add/remove and replace-one alike.
    Sensitivity : one vote per query, or all votes of one teacher where they have weights.
    Price : `aggregator.events`, priced by `privacy.accounting` at `aggregator.budget`.
    Rounding : upward.
    """
    purchase.check_types(aggregator, ledger)
    check_instance("counts", counts, Votes, hint="give Votes, as votes_of_counts makes them")
    purchase.check_votes_of_records(counts, aggregator)
    declaration = purchase.declaration_of(counts, declaration)
    n_teachers = counts.shape.n_teachers or 0
    rows = _checked_rows(counts, aggregator, queries)
    named = rows if public_rows is None else _named_rows(public_rows, len(rows))
    key = uuid.uuid4().hex if request is None else request
    # a stored answer comes before the account is looked at: it was paid for, and costs nothing
    declared = check_declaration(declaration)

    mechanism, shape = purchase.terms_of(
        aggregator, counts.shape.n_classes, n_teachers, declared, key
    )

    def known(content: bytes) -> ReleasedLabels:
        stored = ReleasedLabels.from_json(json.loads(content))
        terms = mechanism, shape, aggregator.public, aggregator.budget
        return _same_question(stored, terms, named, points_sha256, key)

    answered = ledger.released(key)
    if answered is not None:
        return known(answered)

    # all that can be refused is refused before anything is reserved
    if counts.shape.n_teachers is None:
        purchase.check_one_record_of_a_user(counts.shape.guarantee, ledger)
    ledger.check_promise(str(declared["unit"]), str(declared["neighbours"]))
    check_outcomes(choices, ledger, declared)
    purchase.check_sample(aggregator.sample, declaration, key)
    purchase.check_predictions(aggregator, predictions, len(rows), n_teachers)
    events = (purchase.event_of(aggregator, mechanism, shape),)
    paid = purchase.priced(events, aggregator.budget)
    # before the purchase: an installation that cannot draw must cost nothing
    noise = purchase.noise_source()
    # one description twice: of the largest answers, whose room is reserved, and of those drawn
    describe = functools.partial(
        _released_labels,
        counts,
        aggregator,
        named,
        mechanism=mechanism,
        shape=shape,
        paid=paid,
        noise=noise,
        purpose=purpose,
        declaration=declaration,
        choices=choices,
        points_sha256=points_sha256,
    )
    widest = describe(
        _widest_answers(aggregator, counts, len(rows)), purchase.composition_of(ledger, 0)
    )
    room = purchase.room_for(widest.to_json())
    asked = counts.take(rows)  # before the purchase: what takes memory must not fail after it

    def draw(composition: dict[str, Any]) -> tuple[ReleasedLabels, object]:
        answers = purchase.drawn_answers(
            aggregator, asked._unseal()[0], n_teachers, noise, predictions
        )
        released = describe(answers, composition)
        return released, released.to_json()

    return purchase.drawn_once(
        ledger,
        events,
        aggregator.budget,
        widest.certificate,
        draw,
        known,
        request=key,
        purpose=purpose,
        room=room,
    )


def _same_question(
    stored: ReleasedLabels,
    terms: tuple[Mechanism, VoteShape, dict[str, Any], PrivacyBudget],
    named: IntArray,
    points_sha256: str | None,
    request: str,
) -> ReleasedLabels:
    """Return the stored answer if it answers this very question."""
    certificate = stored.certificate
    same = (
        purchase.has_terms(certificate, *terms)
        and np.array_equal(stored.queries, named)
        and certificate["released"].get("points_sha256") == points_sha256
    )
    if not same:
        raise ParameterError(
            f"The request {request!r} was answered before, with other queries, another aggregator"
            " or another promise; ask the same again, or use a new request."
        )
    return stored


def _checked_rows(
    counts: Votes,
    aggregator: Aggregator,
    queries: ArrayLike | None,
) -> IntArray:
    """Return the rows to ask as int64, distinct and in range."""
    rows = np.arange(counts.shape.n_queries) if queries is None else np.asarray(queries)
    rows = _distinct_rows("queries", rows)
    n_queries = counts.shape.n_queries
    if not rows.max() < n_queries:
        raise DataError(f"queries go up to {rows.max()}; rows go from 0 to {n_queries - 1}.")
    if len(rows) > aggregator.n_queries:
        raise ParameterError(
            f"{len(rows)} rows are asked, but the aggregator is calibrated for"
            f" {aggregator.n_queries}; choose {aggregator.n_queries} rows with queries=, or"
            " calibrate it with ",
            Argument("n_queries", len(rows)),
            ".",
        )
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


def _widest_answers(aggregator: Aggregator, counts: Votes, n_queries: int) -> Answers:
    """Return dummy answers whose text is as long as that of any answers."""
    n_classes, by_records = counts.shape.n_classes, counts.shape.n_teachers is None
    label = n_classes - 1
    if (aggregator.most_abstentions, aggregator.most_answers) != (None, None):
        label = max(-1, label, key=lambda value: len(str(value)))
    sigma, noisy = aggregator.sigma_of_counts, None
    outcome = {}
    if sigma is not None:
        shape = (n_queries,) if n_classes == 2 and not by_records else (n_queries, n_classes)
        one = widest_count(sigma, counts.shape.n_teachers or MOST)
        noisy = np.full(shape, one, dtype=np.int64)
        if isinstance(aggregator, RecordVotesAggregator) and counts.shape.spare_rows:
            outcome[UNCOVERED_VOTES] = aggregator.votes_per_record * one
    return Answers(np.full(n_queries, label, dtype=np.int64), noisy, n_queries, outcome)


def _released_labels(
    counts: Votes,
    aggregator: Aggregator,
    rows: IntArray,
    answers: Answers,
    composition: dict[str, Any],
    *,
    mechanism: Mechanism,
    shape: VoteShape,
    paid: Price,
    noise: NoiseSource,
    purpose: str,
    declaration: Mapping[str, object] | None,
    choices: Sequence[Released],
    points_sha256: str | None,
) -> ReleasedLabels:
    classes, n_teachers = counts.classes, counts.shape.n_teachers or 0
    # the certificate says what was drawn and what it cost; it is part of the stored answer
    certificate = build_certificate(
        mechanism=mechanism,
        shape=shape,
        public=aggregator.public,
        budget=aggregator.budget,
        price=paid,
        composition=composition,
        noise={"exact": noise.exact, "description": noise.description},
        released=describe_released(
            rows, answers.labels, classes, n_teachers, answers.noisy_counts, points_sha256
        )
        | ({"values": [[one] for one in answers.outcome.values()]} if answers.outcome else {}),
        declaration=declaration,
        purpose=purpose,
        choices=[choice_fields(choice) for choice in choices] or None,
    )
    return ReleasedLabels(
        queries=rows,
        labels=answers.labels,
        classes=classes,
        n_teachers=n_teachers,
        sigma=aggregator.sigma_of_counts,
        noisy_counts=answers.noisy_counts,
        certificate=certificate,
    )
