"""PATE with passive student queries: from private records to a student that may be published."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, get_tags

from secretballot._typing import IntArray
from secretballot._validation import (
    ABSTENTIONS,
    RELATIONS,
    check_choice,
    check_count,
    check_instance,
    shown,
)
from secretballot.accounting import PrivacyBudget, check_useful, teacher_shape
from secretballot.accounting.recipes import Terms
from secretballot.core.ledger import Ledger, LedgerEntry
from secretballot.core.mechanisms import Mechanism, mechanism_in
from secretballot.core.private import Votes
from secretballot.core.types import VoteShape
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.pate.defaults import choose_release, choose_terms
from secretballot.learners.pate.estimated_size import EstimatedSize
from secretballot.learners.training.account import account_of_fit, check_keeping, required_budget
from secretballot.learners.training.inputs import declared_classes, random_rows
from secretballot.learners.training.learner_state import LearnerState
from secretballot.learners.training.point_digests import points_digest
from secretballot.learners.training.private_points import private_points
from secretballot.learners.training.shards import forget_records
from secretballot.learners.training.student_predictions import StudentPredictions
from secretballot.learners.training.surroundings import warn_inside_sklearn
from secretballot.learners.training.table import Table, private_table
from secretballot.learners.training.trial_fit import reads_sparse
from secretballot.named_learners import teacher_by_name
from secretballot.released import ReleasedLabels
from secretballot.releasing import ASKED, release_labels
from secretballot.report.certificate.build import choice_fields
from secretballot.students import default_student, fit_student
from secretballot.students.trial import Teaching, try_student
from secretballot.teachers.ensemble import TeacherEnsemble
from secretballot.teachers.executors import LOCAL, check_engine
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.votes import guarantee_of
from secretballot.vault import make_vault

DEFAULT_TEACHER = "logistic"


def _is_learner(student: Any) -> bool:
    """Return whether a student can be cloned and fitted; asked before its labels are paid for."""
    return not isinstance(student, type) and all(
        hasattr(student, name) for name in ("fit", "predict", "get_params")
    )


# scikit-learn ships no types
@dataclass(eq=False, repr=False)
class PATEClassifier(
    StudentPredictions,
    LearnerState,
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Learn a publishable classifier from private labels and public unlabelled points.

    The private records are cut into disjoint shards, one teacher per shard; the teachers vote on
    public points; the votes are released with noise; a student learns from them.

    Parameters
    ----------
    teacher : scikit-learn classifier, default a hardly regularised LogisticRegression
        Cloned for every shard. Preprocessing that is fitted belongs inside it, as a pipeline.
    student : scikit-learn classifier, optional
        Learns from the released labels. By default the student that measured best for what is
        released.
    n_teachers : int, default 250
        Number of shards K; public, chosen without looking at the private data.
    budget : PrivacyBudget
        (epsilon, delta) of this fit.
    mechanism : str or Mechanism, default "gaussian"
        What answers are drawn by: "gaussian", "vote-table" (two classes), "laplace",
        "sparse-vector", "abstention-table" or "confident"; "interactive" where queries are asked in
        rounds. A name is calibrated to `budget`; a mechanism, as `secretballot.accounting` makes
        them, is priced against it.
    n_queries : int, optional
        How many public points are labelled, chosen at random with `random_state`. By default all of
        them where noisy counts are released; where labels alone are, as many as leave a vote of
        margin 0.6 K right 19 times in 20.
    release : {"auto", "labels", "counts"}, default "auto"
        Labels alone, or noisy counts. "auto" releases counts for the default student, labels for
        any other.
    max_abstentions : int, optional
        Abstentions T after which the sparse vector stops. By default the largest T at which a vote
        of margin 0.6 K is answered.
    threshold : int, optional
        Votes that a query needs under the confident mechanism, or votes against the student under
        the interactive one. By default four fifths and half of the teachers.
    max_answers : int, optional
        Answers after which these two stop. By default about as many as leave a vote of margin
        0.6 K right 19 times in 20; three times as many queries may be asked.
    estimate_epsilon : float, optional
        Part of the budget's epsilon that pays for one private estimate of how stable the votes on
        the public pool are (`estimate_stability`). It sets, instead of the assumed margin of 0.6 K,
        the number of queries of labels, or `max_abstentions` of the sparse vector; the rest pays
        for the answers.
    relation : {"add-remove", "replace-one"}, default "add-remove"
        Relation that the promise is about. "replace-one" makes the number of records public.
    abstentions : {"drop", "random", "majority"}, default "drop"
        What the student makes of unanswered points.
    ledger : Ledger, optional
        Account of the private dataset. Without one the fit keeps an account of its own, in memory:
        then adding up several fits on the same data is up to you.
    vault : path, optional
        Secret folder where finished teachers are kept, so that an interrupted fit resumes.
    request : str, optional
        Key of this fit in the ledger: a fit with the same key reuses the stored release and spends
        nothing. Drawn where none is given.
    purpose : str, default ""
        Written on the certificate.
    n_jobs : int, optional
        Workers for the teachers, as in joblib.
    engine : str or distributed.Client, default "local"
        Where teachers are trained and vote: on this machine, or on a cluster that runs already and
        belongs to the trusted side. "dask://HOST:PORT", a client of Dask, or "dask" for this
        process's client; "ray" for the Ray that runs, or "ray://HOST:PORT". The release is the
        same. A model that is to be cloned takes a word, since clients cannot be copied.
    send_shards : bool, default False
        Whether the shards of a stored table are sent to the workers of a cluster, over its network.
        By default workers read them from storage that all share, and a run whose workers do not see
        it ends before anything is paid. A table in memory is sent in any case.
    random_state : int, optional
        Public seed of the fits and of the choice of public points; None is 0. Never of the noise.
    progress : callable, optional
        Called with (done, total) teachers.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    student_ : the fitted student
    released_labels_ : ReleasedLabels
        Everything that was released.
    certificate_ : dict
        What may be shown to a stranger.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record, or all records of one id where `units` is given.
    Relation : add or remove one unit; or replace one record in place.
    Sensitivity : one unit touches one shard, hence one teacher, hence one vote per query.
    Price : `budget`, composed in `ledger` with everything else released from the same data.
    Source : Liu et al. 2021, Algorithm 3 over Algorithms 1 and 2; Bassily et al. 2018, Algorithm 3.
    Rounding : upward.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, X_public = rng.normal(size=(2000, 2)), rng.normal(size=(50, 2))
    >>> model = sb.PATEClassifier(n_teachers=50, budget=sb.PrivacyBudget(epsilon=2.0, delta=1e-5))
    >>> model = model.fit(X, (X[:, 0] > 0).astype(int), X_public=X_public, classes=[0, 1])
    >>> model.predict(X_public).shape, model.certificate_["epsilon"]
    ((50,), 2.0)
    """

    #: Whether the records without their labels are the public points.
    _features_are_public = False
    #: Whether a strategy chooses what is asked.
    in_rounds = False

    teacher: Any = None
    student: Any = None
    _: KW_ONLY
    n_teachers: int = 250
    budget: PrivacyBudget | None = None
    mechanism: str | Mechanism = "gaussian"
    n_queries: int | None = None
    release: str = "auto"
    max_abstentions: int | None = None
    threshold: int | None = None
    max_answers: int | None = None
    estimate_epsilon: float | None = None
    relation: str = "add-remove"
    abstentions: str = "drop"
    ledger: Ledger | None = None
    vault: str | Path | None = None
    request: str | None = None
    purpose: str = ""
    n_jobs: int | None = None
    engine: Any = LOCAL
    send_shards: bool = False
    random_state: int | None = None
    progress: Callable[[int, int], None] | None = None

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        X_public: Any = None,
        classes: Sequence[Any] | None = None,
        units: Any = None,
        unit_name: str | None = None,
    ) -> Self:
        """Learn from private records and public points.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_records, n_features)
            Private.
        y : array of shape (n_records,)
            Private labels, each one of `classes`.
        X_public : like X, of shape (n_public, n_features)
            Public, unlabelled.
        classes : sequence of two or more values
            Public; never inferred from the private labels.
        units : array of shape (n_records,), optional
            Ids, such as patient numbers: all records of one id are protected together.
        unit_name : str, optional
            What the ids are, for the certificate.

        Raises
        ------
        ParameterError, DataError
            If something does not fit, or the student cannot learn from public points with dummy
            labels; nothing was spent. A student that passed this and yet cannot learn from what was
            released is refused after it: the release stands in the ledger, and another student may
            be fitted to it.
        BudgetError
            If the ledger does not admit the price; nothing was spent.
        """
        # The student comes after the release: what it cannot learn from stands in the ledger, and
        # another student may be fitted to it for nothing.
        X_public = self.fit_labels(
            X,
            y,
            X_public=X_public,
            classes=classes,
            units=units,
            unit_name=unit_name,
        )
        student = (
            default_student(self.released_labels_) if self.student is None else clone(self.student)
        )
        self.student_ = fit_student(
            student,
            X_public,
            self.released_labels_,
            abstentions=self.abstentions,
            random_state=self.random_state,
        )
        return self

    def fit_labels(
        self,
        X: Any,
        y: ArrayLike,
        *,
        X_public: Any = None,
        classes: Sequence[Any] | None = None,
        units: Any = None,
        unit_name: str | None = None,
    ) -> Any:
        """Do everything that `fit` does but train the student, which may happen where no private
        data ever was.

        Parameters
        ----------
        X, y, X_public, classes, units, unit_name
            As for `fit`.

        Returns
        -------
        array, sparse matrix or frame of shape (n_public, n_features)
            The public points, as a student takes them.

        Raises
        ------
        ParameterError, DataError, BudgetError
            As `fit` does; nothing was spent.

        Privacy
        -------
        As for the class: `released_labels_` and `certificate_` are all that comes out.
        """
        warn_inside_sklearn(alone=self.ledger is None)
        # asked now: with their types both tables are new objects
        same = X_public is X and not self._features_are_public
        names = declared_classes(classes)
        private, X_public = private_table(X, y, X_public, names, units, unit_name)
        self._check_settings(private.n_records)
        if same:
            raise private_points()
        released = self._release_votes(private, X_public, names)
        self.released_labels_, self.certificate_ = released, released.certificate
        self.classes_ = np.asarray(names)
        private.note_columns(self)
        return X_public

    def _check_settings(self, n_records: int) -> None:
        budget = required_budget(self.budget)
        check_keeping(self.ledger, self.vault, self.request)
        check_instance("mechanism", self.mechanism, (str, Mechanism))
        if self.student is not None and not _is_learner(self.student):
            raise ParameterError(
                Parameter("student"),
                f" is {shown(self.student)}; give an instance with fit, predict and get_params,"
                " as scikit-learn's classifiers have.",
            )
        check_count("n_teachers", self.n_teachers)
        check_engine(self.engine, self.n_jobs, send_shards=self.send_shards)
        check_choice("relation", self.relation, RELATIONS)
        check_choice("abstentions", self.abstentions, ABSTENTIONS)
        # A warning and no refusal: the number of records is private under add-remove, and whether a
        # fit goes through may not depend on it.
        if budget.delta * n_records >= 1:
            warnings.warn(
                f"delta is {budget.delta:g}; with 1/n or more, publishing whole records at"
                " random would pass. Choose a delta well below 1 over the number of records.",
                UserWarning,
                stacklevel=4,
            )

    def _release_votes(self, private: Table, X_public: Any, names: list[Any]) -> ReleasedLabels:
        """Return what was released: pay, train, let the teachers vote, draw.

        Teachers are trained once the account would pay; a request that was answered trains none.
        """
        account = self._open_account(private)
        declaration = self._public_declaration(private)
        made_for = guarantee_of(declaration["unit"], declaration["relation"])
        askable = self._askable_rows(n_rows(X_public))
        pool = teacher_shape(len(askable), len(names), self.n_teachers, made_for)
        settings: dict[str, Any] = {
            "classes": names,
            "request": self.request,
            "purpose": self.purpose,
            "declaration": declaration,
        }

        def cast(rows: IntArray) -> Votes:
            if not self._features_are_public:
                private.refuse_points(X_public)
            teacher = private.checked_teacher(self.teacher, X_public, len(names))
            self._try_student(X_public, names, len(rows))
            sparse = reads_sparse(teacher, X_public, len(names))
            ensemble = self._train_teachers(teacher, private, len(names), sparse)
            counts = ensemble.vote_counts(
                take_rows(X_public, rows), classes=names, guarantee=made_for
            )
            if self.vault is not None:
                forget_records(Path(self.vault))
            return counts

        def released(terms: Terms, source: Callable[[IntArray], Votes]) -> ReleasedLabels:
            rows = self._rows_to_ask(terms.shape.n_queries, askable)
            return release_labels(
                terms,
                lambda: source(rows),
                account,
                rows=rows,
                points_sha256=points_digest(take_rows(X_public, rows)),
                **settings,
            )

        if self.estimate_epsilon is None:
            return released(self.planned_terms(pool), cast)
        known = None if self.request is None else account.entry(self.request)
        if known is not None and known.state == "committed":
            # what the estimate set stands in the ledger, and trains nothing
            terms, settings["choices"] = self._terms_by_estimate(known, pool)
            return released(terms, cast)
        # an estimate is paid and drawn before the answers, since it sets their number and noise
        estimated = EstimatedSize.of_fit(self, pool, account)
        counts = cast(askable)
        choice = estimated.pay(counts, account, self.request)
        settings["choices"] = [choice_fields(choice)]
        return released(
            estimated.terms_by(choice),
            lambda rows: counts.take(np.searchsorted(askable, rows)),
        )

    def _terms_by_estimate(
        self, known: LedgerEntry, pool: VoteShape
    ) -> tuple[Terms, list[dict[str, Any]]]:
        """Return the terms of a release whose size an estimate has set, and what its certificate
        says of that.

        Raises
        ------
        ParameterError
            If it had none, or another price.
        """
        mechanism = mechanism_in(known.terms["mechanism"]) if known.terms else None
        public = dict(known.terms.get("public", {}))
        choices = public.pop(ASKED, {}).get("choices", [])
        budget, price = required_budget(self.budget), PrivacyBudget(known.epsilon, known.delta)
        paid = sum([choice["epsilon"] for choice in choices], start=known.epsilon)
        if (
            mechanism is None
            or [choice["epsilon"] for choice in choices] != [self.estimate_epsilon]
            # what is left beside an estimate is rounded down
            or not np.allclose((paid, known.delta), (budget.epsilon, budget.delta), 1e-9, 0)
        ):
            raise ParameterError(
                f"Request {self.request!r} was begun with other terms (estimate_epsilon or budget);"
                " go on with the same, or ask under another key. Nothing was spent."
            )
        shape = pool.first(known.terms["shape"]["n_queries"])
        return Terms(mechanism, shape, price, public), choices

    def planned_terms(self, pool: VoteShape) -> Terms:
        """Return mechanism and number of queries of a fit, from public numbers alone; nothing is
        paid.

        Parameters
        ----------
        pool : VoteShape
            Of the votes on all public points that may be asked.

        Raises
        ------
        ParameterError
            If a setting is out of its range, or nothing would be answered.
        """
        terms = choose_terms(
            self.mechanism,
            required_budget(self.budget),
            pool,
            n_queries=self.n_queries,
            max_abstentions=self.max_abstentions,
            threshold=self.threshold,
            max_answers=self.max_answers,
            confidence=getattr(self, "confidence", None),
            release=choose_release(self.release, self.student, self.mechanism),
            in_rounds=self.in_rounds,
        )
        # warns while it still costs nothing
        check_useful(terms.mechanism, terms.shape)
        return terms

    def _try_student(self, X_public: Any, names: list[Any], n_points: int) -> None:
        """Refuse a student that cannot learn from what will be released about so many points."""
        if self.student is None:  # what it will be is known to learn
            return
        counts = choose_release(self.release, self.student, self.mechanism) == "counts"
        votes = self.n_teachers if counts else None
        try_student(self.student, X_public, Teaching(names, n_points, votes))

    def _askable_rows(self, n_public: int) -> IntArray:
        """Return the rows of the public points that may be asked, in ascending order."""
        return np.arange(n_public)

    def _rows_to_ask(self, n_queries: int, askable: IntArray) -> IntArray:
        """Return the rows of the public points to ask, chosen at random by the public seed."""
        return askable[random_rows(len(askable), n_queries, self.random_state)]

    def _train_teachers(
        self, teacher: Any, private: Table, n_classes: int, sparse: bool
    ) -> TeacherEnsemble:
        return private.teachers(
            teacher, self.n_teachers, **self._training_settings(n_classes, sparse)
        )

    def _training_settings(self, n_classes: int, sparse: bool) -> dict[str, Any]:
        """Return how teachers are trained, in the words of `Table.teachers`."""
        return {
            "relation": self.relation,
            "vault": None if self.vault is None else make_vault(self.vault),
            "random_state": self.random_state,
            "n_classes": n_classes,
            "n_jobs": self.n_jobs,
            "engine": self.engine,
            "send_shards": self.send_shards,
            "progress": self.progress,
            "sparse": sparse,
        }

    def _open_account(self, private: Table) -> Ledger:
        """Return the account that pays, asked before hours go into teachers."""
        return account_of_fit(
            self.ledger,
            required_budget(self.budget),
            unit=self._protected_unit(private.unit == "user"),
            relation=self.relation,
        )

    def _public_declaration(self, private: Table) -> dict[str, object]:
        return {
            "unit": self._protected_unit(private.unit == "user"),
            "unit_column": private.unit_name,
            "relation": self.relation,
        }

    def _protected_unit(self, by_unit: bool) -> str:
        """Return whose data the promise is about."""
        return "user" if by_unit else "record"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        named = DEFAULT_TEACHER if self.teacher is None else self.teacher
        teacher = get_tags(teacher_by_name(named) if isinstance(named, str) else named)
        tags.input_tags.sparse = teacher.input_tags.sparse
        tags.input_tags.allow_nan = teacher.input_tags.allow_nan
        return tags
