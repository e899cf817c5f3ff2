"""Releases with what a certificate says of them: `core.releasing` checks, reserves, draws and
stores; here is what a stranger may check of it."""

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import IntArray, Json, JsonView
from secretballot._validation import (
    FARTHEST,
    MOST_ROWS,
    check_choice,
    check_count,
    check_instance,
    name_part,
    shown,
)
from secretballot.accounting import PrivacyBudget, calibrate_pure, check_useful
from secretballot.accounting.recipes import NAMED, Terms, deviation_of_counts
from secretballot.core import mechanisms, releasing
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import (
    ABSTAINED,
    ExponentialChoice,
    Mechanism,
    NoisyMeans,
    StabilityQuantile,
)
from secretballot.core.private import MOST, Scores, Votes
from secretballot.core.releasing import AnswerStream, Released
from secretballot.core.types import Guarantee, ScoreShape, VoteShape
from secretballot.exceptions import CertificateError, DataError, Parameter, ParameterError
from secretballot.released import ReleasedLabels, ReleasedTable, labels_in
from secretballot.report.certificate import (
    certificate_digest,
    certificate_of,
    check_declaration,
    choice_fields,
    describe_released,
)
from secretballot.report.certificate_models import (
    EXPECTED_UNCOVERED,
    EXPONENTIAL,
    class_value,
    total_price,
)
from secretballot.report.verification import (
    LABELS_FILE,
    MAX_BYTES,
    certificate_in,
    most_bytes,
    verify_certificate,
)
from secretballot.teachers.votes import from_set_numbers, guarantee_of
from secretballot_verify import REFUSED, check_certificate

__all__ = ["choose_by_scores", "estimate_stability", "release", "release_table"]

#: Of what a ledger keeps as public, what was asked: no setting that a certificate states.
ASKED = "asked"
#: Votes, or what makes them once price, account and a stored answer were looked at.
_VoteSource = Votes | Callable[[], Votes]
_NO_ROWS = np.zeros(0, dtype=np.int64)
#: More files than a release has: the certificate that lists those is no longer than this one.
_LISTED = (LABELS_FILE, *(f"queries-{'x' * 20}.{place}" for place in range(19)))


# --- labels, counts and tables ---


def release(
    private: Votes,
    mechanism: Mechanism | str,
    ledger: Ledger,
    budget: PrivacyBudget,
    *,
    queries: ArrayLike | None = None,
    request: str | None = None,
    purpose: str = "",
    declaration: JsonView | None = None,
    choices: Sequence[Released] = (),
    points_sha256: str | None = None,
) -> ReleasedLabels:
    """Release labels, or noisy counts, under differential privacy, and account for it.

    Parameters
    ----------
    private : Votes
        Votes on the public points, of shape (n_queries, n_classes); secret.
    mechanism : str or Mechanism
        "labels", "counts", "laplace" (labels, whose delta may be 0), "vote-table" (labels of two
        classes) or "stable" (the exact plurality where it is stable), with the least noise that
        keeps the budget; or a mechanism that was fixed without looking at the votes, as the
        functions of `secretballot.accounting` return them.
    ledger : Ledger
        Account of the private dataset. The price is reserved there before any noise is drawn. Under
        "add-remove" an account about records also takes votes of teachers by user.
    budget : PrivacyBudget
        What is promised, and spent.
    queries : array of int, shape (l,), optional
        Rows of `private` to ask, distinct, in the order to ask them. All of them by default. The
        released labels name the same rows.
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
        If the mechanism does not fit the votes or hardly ever answers, or the request was begun
        with other terms.
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
    >>> ledger = sb.Ledger.in_memory(dataset="people", budget=budget)
    >>> sb.release(votes, "labels", ledger, budget).label_values.tolist()
    ['yes', 'no']
    """
    check_instance("private", private, Votes, hint="give Votes, as votes_of_counts makes them")
    n_queries = private.shape.n_queries
    asked = _distinct_rows("queries", range(n_queries) if queries is None else queries, n_queries)
    votes, made = private.take(asked), private.shape.guarantee
    if isinstance(mechanism, str):
        check_instance("budget", budget, PrivacyBudget, hint="give a PrivacyBudget")
        name = check_choice("mechanism", mechanism, tuple(NAMED))
        mechanism = NAMED[name](budget, votes.shape)
    check_paid_by(mechanism, ledger, budget)
    if declaration is None and made != Guarantee(unit="record", relation="add-remove"):
        declaration = {"unit": made.unit, "relation": made.relation}
    check_useful(mechanism, votes.shape)
    paid = [(f"The choice {one.purpose!r}", one.account, one.shape.guarantee) for one in choices]
    check_one_account(paid, ledger.account_terms(), made)
    return release_labels(
        Terms(mechanism, votes.shape, budget),
        votes,
        ledger,
        classes=votes.classes,
        rows=asked,
        request=request,
        purpose=purpose,
        declaration=declaration,
        choices=[choice_fields(choice) for choice in choices],
        points_sha256=points_sha256,
    )


def release_labels(
    terms: Terms,
    private: _VoteSource,
    ledger: Ledger,
    *,
    classes: Sequence[Any],
    rows: IntArray,
    points_sha256: str | None = None,
    **about: Any,
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
    ledger, points_sha256
        As for `release`, whose errors these are.
    **about
        ``request``, ``purpose`` and ``declaration``, as for `release`; ``choices``, as a
        certificate lists them.
    """
    asked = {
        "rows": _digest(rows),
        "classes": [class_value(value) for value in classes],
        "points_sha256": points_sha256,
    }
    return _certified(
        terms,
        private,
        ledger,
        asked,
        lambda done: labels_released(done, rows, points_sha256),
        **about,
    )


def labels_released(
    done: Released,
    rows: IntArray,
    points_sha256: str | None,
    plan: JsonView | None = None,
    sizes: Mapping[str, int] = MappingProxyType({}),
) -> ReleasedLabels:
    """Return what was released about votes for classes, as labels and noisy counts, with its
    certificate.

    Parameters
    ----------
    done : Released
        With what was asked among its public settings.
    rows : ndarray of int64, shape (n,)
        Rows of the public pool, one for each query.
    points_sha256 : str or None
    plan : mapping, optional
        As for `certificate_of`.
    sizes : mapping
        What the certificate says of the numbers of queries and answers, where `rows` are a part.
    """
    shape, classes = done.shape, done.public[ASKED]["classes"]
    assert isinstance(shape, VoteShape)
    teachers = shape.n_teachers or 0
    found, counts = labels_in(done.mechanism, shape, done.values[: len(rows)])
    labels = np.full(len(rows), ABSTAINED)
    labels[: len(found)] = found  # nothing after a stop
    described = describe_released(rows, labels, classes, teachers, counts, points_sha256)
    if EXPECTED_UNCOVERED in done.public:
        votes = shape.moved // (2 if shape.guarantee.relation == "replace-one" else 1)
        beyond = done.values[len(rows) :].ravel()[:votes]
        described["values"] = [[int(beyond.sum())]]
    return ReleasedLabels(
        queries=rows,
        labels=labels,
        classes=tuple(classes),
        n_teachers=teachers,
        sigma=deviation_of_counts(done.mechanism),
        noisy_counts=counts,
        certificate=_certificate(done, {**described, **sizes}, plan),
    )


def release_table(
    terms: Terms,
    private: _VoteSource,
    ledger: Ledger,
    *,
    rows: ArrayLike | None = None,
    points_sha256: str | None = None,
    **about: Any,
) -> ReleasedTable:
    """Release a table of answers to votes for sets of labels, or for numbers.

    Parameters
    ----------
    terms : Terms
        As `label_terms` and `number_terms` return them.
    private : Votes, or callable
        A callable makes them, after all else was looked at.
    rows : array of int, shape (n_queries,), optional
        Row of the public pool that each query is, distinct; 0, 1, ... by default.
    ledger, points_sha256
        As for `release`, whose errors these are.
    **about
        ``request``, ``purpose`` and ``declaration``, as for `release`.

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
    >>> votes, budget = sb.teachers.number_votes(rows, (0.0, 10.0)), sb.PrivacyBudget(2.0, 1e-6)
    >>> public = {"method": "votes-of-numbers", "bounds": [0.0, 10.0]}
    >>> mechanism = sb.accounting.noisy_means(budget, votes.shape)
    >>> ledger = sb.Ledger.in_memory(dataset="heights", budget=budget)
    >>> terms = Terms(mechanism, votes.shape, budget, public)
    >>> table = sb.releasing.release_table(terms, votes, ledger)
    >>> bool((abs(table.values - 5) < 2).all()), sb.verify_certificate(table.certificate).ok
    (True, True)
    """
    check_useful(terms.mechanism, terms.shape)
    labels = terms.public.get("labels", [None])
    sets, n_asked = terms.public.get("ballot") == "sets", terms.n_points
    named = np.arange(n_asked) if rows is None else _distinct_rows("rows", rows, MOST_ROWS)
    if len(named) != n_asked:
        raise DataError(
            f"rows names {len(named)} rows for {n_asked} queries; name one row for each query."
        )

    def certified(done: Released) -> ReleasedTable:
        answers = done.values.reshape(n_asked, -1)
        if sets and answers.shape[1] == 1:
            answers = from_set_numbers(answers[:, 0], len(labels))
        # what is described beside rows and values has no labels
        fields = describe_released(
            _NO_ROWS, _NO_ROWS, (), terms.shape.n_teachers or 0, points_sha256=points_sha256
        )
        described = {**fields, "rows": named.tolist(), "values": answers.tolist()}
        return ReleasedTable(_certificate(done, described))

    asked = {"rows": _digest(named), "points_sha256": points_sha256}
    return _certified(terms, private, ledger, asked, certified, **about)


_Document = TypeVar("_Document", ReleasedLabels, ReleasedTable)


def _certified(
    terms: Terms,
    private: _VoteSource,
    ledger: Ledger,
    asked: JsonView,
    certified: Callable[[Released], _Document],
    *,
    request: str | None = None,
    purpose: str = "",
    declaration: JsonView | None = None,
    choices: Sequence[JsonView] = (),
) -> _Document:
    """Return what was released, as `certified` makes it of what was drawn."""
    check_paid_by(terms.mechanism, ledger, terms.budget)
    check_declared(declaration, terms.shape.guarantee)
    if "sample" in (declaration or {}):
        raise ParameterError(
            "These teachers learned from a secret sample, and answer a stream alone; use"
            " Labeler('agnostic'). Nothing was spent."
        )
    about = {**asked, "declaration": declaration, "choices": list(choices)}
    done = releasing.release(
        replace(terms, public={**terms.public, ASKED: about}, purpose=purpose),
        private if isinstance(private, Votes) else lambda _: private(),
        ledger,
        request=uuid.uuid4().hex if request is None else request,
        check=lambda planned: check_readable(certified(_widest(planned)).certificate),
    )
    return certified(done)


def _certificate(done: Released, described: JsonView, plan: JsonView | None = None) -> Json:
    """Return the certificate of what was released, which says what was asked."""
    public = dict(done.public)
    asked = public.pop(ASKED)
    return certificate_of(
        replace(done, public=public),
        described,
        declaration=asked["declaration"],
        plan=plan,
        choices=asked["choices"] or None,
    )


def _widest(planned: Released) -> Released:
    """Return a release that is planned, with answers as long as any."""
    mechanism, shape = planned.mechanism, planned.shape
    assert isinstance(shape, VoteShape)
    widest = 0 if mechanism.stops_at is None else ABSTAINED
    most, sigma = shape.n_teachers or MOST, deviation_of_counts(mechanism)
    if isinstance(mechanism, NoisyMeans):
        most, sigma = most * (shape.n_classes - 1), mechanism.sigma
    if sigma is not None:
        far = int(FARTHEST * sigma)
        widest = max(-far, most + far, key=lambda n: len(str(n)))
    return replace(planned, values=np.full(planned.values.shape, widest, dtype=np.int64))


# --- numbers and choices that later steps are set by ---


def estimate_stability(
    counts: Votes | Callable[[], Votes],
    ledger: Ledger,
    *,
    fraction: float,
    epsilon: float,
    shape: VoteShape | None = None,
    request: str | None = None,
    purpose: str = "",
) -> Released:
    """Release how stable the votes on a public pool are.

    All but a share `fraction` are at least so stable, about.

    Parameters
    ----------
    counts : Votes
        Votes of teachers on the pool, of shape (n_points, n_classes); secret. The pool is chosen
        without looking at them. Or, with their `shape`, what makes them once price, account and a
        stored answer were looked at.
    ledger : Ledger
    fraction : float
        Share of the points that may be less stable, in (0, 1).
    epsilon : float
        Price; pure, delta is 0.
    shape : VoteShape, optional
    request, purpose
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
    if shape is None:
        check_instance("counts", counts, Votes, hint="give Votes, as votes_of_counts makes them")
        shape = counts.shape  # type: ignore[union-attr]  # as was just looked at
    mechanism = StabilityQuantile(epsilon=_loss_of(epsilon), fraction=fraction)
    check_ledger(ledger)
    budget, public = PrivacyBudget(epsilon, 0.0), {"method": mechanism.kind}
    purpose = purpose or "how stable the votes are"
    return releasing.release(
        Terms(mechanism, shape, budget, public, purpose),
        counts if isinstance(counts, Votes) else lambda _: counts(),
        ledger,
        request=uuid.uuid4().hex if request is None else request,
        check=_check_named,
    )


def choose_by_scores(
    scores: Callable[[], Scores],
    n_candidates: int,
    ledger: Ledger,
    *,
    epsilon: float,
    names: Sequence[str] | None = None,
    classes: Sequence[object] = (0, 1),
    beside: Sequence[JsonView] = (),
    about: JsonView | None = None,
    request: str | None = None,
    purpose: str = "",
    declaration: JsonView | None = None,
) -> Released:
    """Choose one candidate by private scores, with chances that fall with the distance from the
    best.

    In an account of basic composition by permute-and-flip, which costs the same there and comes
    nearer to the best; in others by the exponential mechanism, which costs less beside other
    releases.

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
    declaration : mapping, optional
        As for `secretballot.release`; the scores must be counted for its unit and relation.
    ledger, epsilon, request, purpose
        As for `estimate_stability`.

    Returns
    -------
    Released
        Its one value is the index of the chosen candidate.

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
    Source : McSherry and Talwar 2007, Theorem 6; McKenna and Sheldon 2020, arXiv:2010.12603; Nandi
        and Bassily 2020, Algorithm 7.
    Rounding : upward.
    """
    declared = check_declaration(declaration)
    stated: Json = {
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

    check_ledger(ledger)
    made = guarantee_of(declared["unit"], declared["relation"])
    purpose = purpose or "which candidate is right most often"
    return releasing.release(
        _terms_of_choice(ledger, epsilon, made, {**(about or {}), **stated}, purpose),
        counted,
        ledger,
        request=uuid.uuid4().hex if request is None else request,
        check=lambda planned: _check_named(planned, declaration, classes, beside),
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
        Of one answer. The question identifies later which candidates there were.

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
    check_ledger(ledger)
    return releasing.stream(
        _terms_of_choice(ledger, epsilon, guarantee, {"method": EXPONENTIAL}, purpose),
        ledger,
        request=request,
        check=lambda planned: _check_named(planned, None, classes),
    )


def _loss_of(epsilon: float) -> float:
    """Return the loss to draw at for a price of (epsilon, 0).

    Less by a hair, so that its rounded-up delta is 0.
    """
    return calibrate_pure(PrivacyBudget(epsilon, 0.0), 1)


def _terms_of_choice(
    ledger: Ledger, epsilon: float, made: Guarantee, public: JsonView, purpose: str
) -> mechanisms.Terms:
    choice, budget = _choice(epsilon, ledger.composition), PrivacyBudget(epsilon, 0.0)
    return mechanisms.Terms(choice, ScoreShape(guarantee=made), budget, public, purpose)


def _choice(epsilon: float, composition: str) -> ExponentialChoice:
    """Return what chooses at a price of (epsilon, 0)."""
    # the loss of the exponential mechanism has a bounded range, which basic composition cannot use
    return ExponentialChoice(
        epsilon=_loss_of(epsilon),
        rule="permute-and-flip" if composition == "basic" else "exponential",
    )


def _check_named(
    planned: Released,
    declaration: JsonView | None = None,
    classes: Sequence[object] = (0, 1),
    beside: Sequence[JsonView] = (),
) -> None:
    """Refuse a number that no certificate could name.

    The one that is tried lists it among its choices, as that of a later release will, and is about
    a choice among candidates itself, of the same price.
    """
    made = planned.shape.guarantee
    own = _choice(planned.budget.epsilon, planned.account["kind"])
    shape = ScoreShape(guarantee=made)
    public = {"n_candidates": 1, **planned.public, "method": EXPONENTIAL}
    named = replace(planned, public=public if planned.mechanism == own else planned.public)
    number = 1 + max((entry["reservation"] for entry in beside), default=0)
    one = np.zeros(1, dtype=np.int64)
    check_readable(
        certificate_of(
            replace(planned, mechanism=own, shape=shape, event=own.event(shape), public=public),
            describe_released(one, one, classes, 0) | {"values": [[0]]},
            declaration=declaration or {"unit": made.unit, "relation": made.relation},
            choices=[*beside, choice_fields(named) | {"reservation": number}],
        )
    )


def _distinct_names(names: Sequence[str], n_candidates: int) -> list[str]:
    given = list(names)
    texts = all(isinstance(name, str) for name in given)
    if not texts or not len(set(given)) == len(given) == n_candidates:
        raise ParameterError(
            Parameter("names"),
            f" is {shown(given)}; give one string for each of the {n_candidates} candidates,"
            " distinct.",
        )
    return given


# --- what is refused before it is paid for ---


def check_paid_by(mechanism: object, ledger: object, budget: object) -> None:
    """Refuse, with `ParameterError`, what is no mechanism, no account or no budget."""
    hint = "give a mechanism, such as noisy_votes returns"
    check_instance("mechanism", mechanism, Mechanism, hint=hint)
    check_ledger(ledger)
    check_instance("budget", budget, PrivacyBudget, hint="give a PrivacyBudget")


def check_declared(declaration: JsonView | None, made: Guarantee) -> None:
    """Refuse, with `ParameterError`, a declaration of another unit or relation than the votes'."""
    declared = check_declaration(declaration)
    if guarantee_of(declared["unit"], declared["relation"]) != made:
        raise ParameterError(
            f"The votes were made for unit {made.unit!r} under {made.relation!r}, and the"
            " declaration says otherwise. Nothing was spent."
        )


def check_ledger(ledger: object) -> None:
    """Refuse anything but a ledger, with `ParameterError`."""
    hint = "give a Ledger, such as Ledger(path, dataset=..., budget=...)"
    check_instance("ledger", ledger, Ledger, hint=hint)


def check_one_account(
    parts: Iterable[tuple[str, JsonView, Guarantee]], account: JsonView, made: Guarantee
) -> None:
    """Refuse, with `ParameterError`, parts of one certificate that do not add up.

    Parameters
    ----------
    parts : iterable of (str, mapping, Guarantee)
        What each is, the account that paid for it as certificates state it, and what it is about.
    account, made
        Those of the release.
    """
    # one certificate states one total, so all that it names must be paid from one account
    for name, own, paid in parts:
        if not account.items() <= own.items():
            raise ParameterError(
                f"{name} was paid from another ledger ({own['dataset']!r}) than the release"
                f" ({account['dataset']!r}), or they differ in their terms; use the same ledger"
                " for all of them."
            )
        if not paid.adds_to(made, by_teachers=True):
            raise ParameterError(
                f"{name} was paid for by {paid.unit} under {paid.relation!r}, and the release is by"
                f" {made.unit} under {made.relation!r}; choose by the same unit and relation."
            )


def check_readable(certificate: JsonView) -> None:
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


def _digest(rows: IntArray) -> str:
    """Return what stands for rows of the public pool in the ledger, however many they are."""
    return hashlib.sha256(rows.astype("<i8").tobytes()).hexdigest()


def _distinct_rows(name: str, given: ArrayLike, n_rows: int) -> IntArray:
    rows = np.asarray(given)
    fault = ""
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows):
        fault = f" has shape {rows.shape} and dtype {rows.dtype}; give one or more integers."
    elif not (rows.min() >= 0 and rows.max() < n_rows):
        fault = f" names rows from {rows.min()} to {rows.max()}; rows go from 0 to {n_rows - 1}."
    elif len(np.unique(rows)) < len(rows):
        fault = " names a row twice; ask each once and use the stored answer for repeats."
    if fault:
        raise DataError(name_part(name), f"{fault} Nothing was spent.")
    return rows.astype(np.int64)
