"""A table of answers to votes for sets of labels, or for numbers: all queries at once."""

import json
import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import IntArray
from secretballot._validation import check_instance
from secretballot.aggregation import TableVoting
from secretballot.core.ledger import Ledger
from secretballot.core.noise import ExactNoise
from secretballot.core.private import Votes
from secretballot.door import purchase
from secretballot.ensemble.votes import guarantee_of
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.privacy.accounting import Price
from secretballot.released import ReleasedTable
from secretballot.report.certificate.build import (
    build_certificate,
    check_declaration,
    describe_released,
)

_NO_ROWS = np.zeros(0, dtype=np.int64)


def release_table(
    votes: Votes,
    voting: TableVoting,
    ledger: Ledger,
    *,
    rows: ArrayLike | None = None,
    request: str | None = None,
    purpose: str = "",
    declaration: Mapping[str, object] | None = None,
    points_sha256: str | None = None,
) -> ReleasedTable:
    """Release what the teachers answer at all queries, under differential privacy, and account for
    it.

    Parameters
    ----------
    votes : Votes
        Secret.
    voting : LabelSetVoting or NumberVoting
        Recipe and noise for these votes, fixed without looking at them.
    ledger : Ledger
        Account of the private dataset. The price is reserved there before any noise is drawn.
    rows : array of int, shape (n_queries,), optional
        Row of the public pool that each query stands for, distinct; 0, 1, ... by default.
    request : str, optional
        Key of this release in the ledger. One that was answered before gets the stored answer and
        costs nothing. A new key by default.
    purpose : str
        Why, in a few words; public.
    declaration : mapping, optional
        As for `secretballot.release`.
    points_sha256 : str, optional
        Digest of the values of the asked points, for the certificate.

    Returns
    -------
    ReleasedTable
        With its certificate.

    Raises
    ------
    DataError
        If `rows` names a row twice, or not one for each query.
    ParameterError
        If the recipe does not fit the votes, or the request was used for something else.
    BudgetError
        If the ledger's budget does not admit the price; nothing was spent.
    LedgerError
        If the ledger cannot be used, or is about another unit or relation.
    SamplerError
        If the installed sampler is missing, broken or draws wrong noise; nothing was spent.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : as declared; the price holds for add/remove and replace-one alike.
    Sensitivity : one teacher's votes at every query, within what the recipe states.
    Price : `voting.event`, priced by `privacy.accounting` at `voting.budget`.
    Rounding : upward.

    Examples
    --------
    >>> votes = np.random.default_rng(0).normal(5.0, 1.0, size=(3, 400))
    >>> cast = sb.ensemble.number_votes(votes, (0.0, 10.0))
    >>> voting = sb.aggregation.NumberVoting.calibrate(
    ...     sb.PrivacyBudget(2.0, 1e-6), 3, n_teachers=400, target_range=(0.0, 10.0))
    >>> ledger = sb.Ledger.in_memory(dataset="heights", budget=sb.PrivacyBudget(2.0, 1e-6))
    >>> table = sb.door.release_table(cast, voting, ledger)
    >>> bool((abs(table.values - 5) < 2).all()), sb.verify_certificate(table.certificate).ok
    (True, True)
    """
    check_instance("voting", voting, TableVoting, hint="give a LabelSetVoting or a NumberVoting")
    purchase.check_ledger(ledger)
    purchase.check_counts(votes)
    named = _checked_rows(rows, voting.asked(votes.shape), voting.n_queries)
    declaration = purchase.declaration_of(votes, declaration)
    key = uuid.uuid4().hex if request is None else request
    declared = check_declaration(declaration)
    known = known_table(ledger, key, voting, named, declared, points_sha256)
    if known is not None:
        return known
    # all that can be refused is refused before anything is reserved
    ledger.check_promise(str(declared["unit"]), str(declared["neighbours"]))
    purchase.check_sample(declaration)
    voting.check_useful()
    paid = purchase.priced((voting.event,), voting.budget)
    # before the purchase: an installation that cannot draw must cost nothing
    noise = purchase.exact_noise()

    def certified(
        answers: IntArray, composition: dict[str, Any]
    ) -> tuple[ReleasedTable, dict[str, Any]]:
        released = _certified_table(
            voting, named, answers, composition, paid, noise, purpose, declaration, points_sha256
        )
        return released, released.to_json()

    widest = certified(voting.widest(len(named)), purchase.composition_of(ledger, 0))
    return purchase.drawn_once(
        ledger,
        (voting.event,),
        voting.budget,
        widest[0].certificate,
        lambda composition: certified(voting.draw(votes._unseal()[0], noise), composition),
        lambda content: _same_table(content, key, voting, named, declared, points_sha256),
        request=key,
        purpose=purpose,
        room=purchase.room_for(widest[1]),
    )


def known_table(
    ledger: Ledger,
    request: str,
    voting: TableVoting,
    rows: IntArray,
    declared: Mapping[str, object],
    points_sha256: str | None,
) -> ReleasedTable | None:
    """Return what was released under a request before, None if nothing was.

    `rows` are those of the public pool that are asked, int64 of shape (n_asked,).

    Raises
    ------
    ParameterError
        If it answered another question.
    """
    stored = ledger.released(request)
    if stored is None:
        return None
    return _same_table(stored, request, voting, rows, declared, points_sha256)


def _same_table(
    content: bytes,
    request: str,
    voting: TableVoting,
    rows: IntArray,
    declared: Mapping[str, object],
    points_sha256: str | None,
) -> ReleasedTable:
    """Return the stored table if it answers this very question."""
    document = json.loads(content)
    if document.get("format") == ReleasedTable.FORMAT:
        found = ReleasedTable.from_json(document)
        shape = voting.shape_of(guarantee_of(declared["unit"], declared["neighbours"]))
        terms = voting.core_mechanism, shape, voting.public, voting.budget
        if (
            purchase.has_terms(found.certificate, *terms)
            and found.certificate["released"]["rows"] == rows.tolist()
            and found.certificate["unit_column"] == declared["unit_column"]
            and found.certificate["released"].get("points_sha256") == points_sha256
        ):
            return found
    raise ParameterError(
        f"The request {request!r} was answered before, with another question; ask the same again,"
        " or use a new request."
    )


def _checked_rows(rows: ArrayLike | None, n_asked: int, paid: int) -> IntArray:
    """Return the rows of the public pool that are asked, distinct, one for each query."""
    named = np.arange(n_asked) if rows is None else np.asarray(rows)
    if named.shape != (n_asked,) or named.dtype.kind not in "iu" or not (named >= 0).all():
        raise DataError(
            Parameter("rows"),
            f" have shape {named.shape} and dtype {named.dtype}; name one row of the public pool"
            f" for each of {n_asked} queries.",
        )
    if len(np.unique(named)) < n_asked:
        raise DataError(Parameter("rows"), " name a row twice; ask each once.")
    if not n_asked <= paid:
        raise ParameterError(
            f"{n_asked} queries are asked of a recipe priced for {paid}; ask fewer or calibrate it"
            " for more. Nothing was spent."
        )
    return named.astype(np.int64)


def _certified_table(
    voting: TableVoting,
    rows: IntArray,
    answers: IntArray,
    composition: dict[str, Any],
    paid: Price,
    noise: ExactNoise,
    purpose: str,
    declaration: Mapping[str, object] | None,
    points_sha256: str | None,
) -> ReleasedTable:
    """Return the answers with their certificate, on which they stand."""
    declared = check_declaration(declaration)
    certificate = build_certificate(
        mechanism=voting.core_mechanism,
        shape=voting.shape_of(guarantee_of(declared["unit"], declared["neighbours"])),
        public=voting.public,
        budget=voting.budget,
        price=paid,
        composition=composition,
        noise={"exact": noise.exact, "description": noise.description},
        # what is described beside rows and values has no labels
        released=describe_released(
            _NO_ROWS, _NO_ROWS, (), voting.n_teachers, points_sha256=points_sha256
        )
        | {"rows": rows.tolist(), "values": answers.tolist()},
        declaration=declaration,
        purpose=purpose,
    )
    return ReleasedTable(certificate)
