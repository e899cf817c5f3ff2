"""The semi-private learner: one of a class that public points make finite, by all records."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from secretballot._typing import IntArray
from secretballot._validation import RELATIONS, check_choice, check_count, check_probability
from secretballot.accounting import PrivacyBudget
from secretballot.core.exponential import least_quotient
from secretballot.core.ledger import Ledger
from secretballot.core.private import Scores
from secretballot.core.releasing import Released
from secretballot.data.stored import StoredTable
from secretballot.exceptions import Argument, DataError, Parameter, ParameterError
from secretballot.foreign_code import is_exact, isolated
from secretballot.hypotheses import DecisionStumps, Dichotomies, FiniteClass, HypothesisClass
from secretballot.hypotheses.intervals import IntervalDichotomies
from secretballot.learners.selection.candidates import choose_candidate
from secretballot.learners.selection.release import (
    chosen_release,
    refuse_other_accounts,
    with_candidates,
)
from secretballot.learners.training.account import account_of_fit, check_keeping, required_budget
from secretballot.learners.training.inputs import (
    as_matrix,
    check_same_columns,
    class_indices,
    declared_classes,
    n_columns,
    random_rows,
    with_public_types,
)
from secretballot.learners.training.learner_state import LearnerState
from secretballot.learners.training.point_digests import doubles_digest
from secretballot.learners.training.private_rows import refuse_private_points
from secretballot.learners.training.shards import one_record_each
from secretballot.learners.training.surroundings import warn_inside_sklearn
from secretballot.learners.training.table import check_stored_table
from secretballot.releasing import choose_by_scores
from secretballot.students import HypothesisStudent
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.votes import guarantee_of


# scikit-learn ships no types
class SemiPrivateClassifier(LearnerState, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Choose a classifier by its mistakes on all private records, from a class made finite.

    The labellings that the class gives to the public points are its candidates, each by one
    representative that follows from these points alone; a private choice draws one by the
    mistakes on the private records. No record is held back and none is cut off into a shard, so for
    small classes this is the most accurate learner there is here.

    Parameters
    ----------
    hypotheses : HypothesisClass, optional
        By default the decision stumps on all columns. Two classes only.
    candidates : sequence of classifiers, or of (name, classifier), optional
        Two or more fitted ones instead of a class: made from public data, or learnt from releases
        that stand in the same ledger. Any number of classes.
    budget : PrivacyBudget
        Its epsilon is the price; nothing of its delta is spent.
    n_cover : int, optional
        How many public points make the class finite, chosen at random with `random_state`; by
        default all. Points cost accuracy where they are few and time where they are many, never
        privacy (`public_points_needed`).
    relation : {"add-remove", "replace-one"}, default "add-remove"
        Relation that the promise is about.
    ledger : Ledger, optional
        Account of the private dataset. Without one the fit keeps an account of its own, in memory:
        then adding up several fits on the same data is up to you.
    request : str, optional
        Key of this fit in the ledger: a fit with the same key reuses the stored choice and spends
        nothing.
    purpose : str, default ""
        Written on the certificate.
    random_state : int, optional
        Public seed of the choice of public points; None is 0. Never of the noise.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    student_ : the chosen classifier, to be published
    hypothesis_ : Hypothesis
        What was chosen of a class of hypotheses; says 1 for ``classes_[1]``.
    choice_ : Released
        The draw.
    released_ : ReleasedLabels
        What was released, as the labels that the chosen one gives to the public points.
    certificate_ : dict
        What may be shown to a stranger.
    n_candidates_ : int
        How many there were to choose from; public.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record, or all records of one id where `units` is given.
    Relation : add or remove one unit: all numbers of mistakes rise, scale 1 / epsilon. Or replace
        one record in place: some rise and some fall, scale 2 / epsilon.
    Sensitivity : 1 mistake for each candidate. Of the records of an id, a class of hypotheses
        counts one (`one_record_each`); for `candidates` the id counts once, by the majority of its
        records.
    Price : (epsilon, 0), composed in `ledger` with everything else released from the same data.
    Source : Nandi and Bassily 2020, Algorithm 7 (Alon, Bassily, Moran 2019); differences 8:
    mistakes are counted, never
        divided by a private number of records, and representatives never looked up with private
        data.
    Rounding : upward; the draw is exact, in integers.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(2000, 1))
    >>> model = sb.SemiPrivateClassifier(
    ...     sb.hypotheses.Thresholds(), budget=sb.PrivacyBudget(1.0, 0.0))
    >>> model = model.fit(
    ...     X, (X[:, 0] > 0.5).astype(int), X_public=np.linspace(0, 1, 21)[:, None], classes=[0, 1])
    >>> model.predict([[0.0], [1.0]]).tolist(), model.n_candidates_, model.certificate_["epsilon"]
    ([0, 1], 22, 1.0)
    """

    def __init__(
        self,
        hypotheses: HypothesisClass | None = None,
        candidates: Sequence[Any] | None = None,
        *,
        budget: PrivacyBudget | None = None,
        n_cover: int | None = None,
        relation: str = "add-remove",
        ledger: Ledger | None = None,
        request: str | None = None,
        purpose: str = "",
        random_state: int | None = None,
    ) -> None:
        self.hypotheses = hypotheses
        self.candidates = candidates
        self.budget = budget
        self.n_cover = n_cover
        self.relation = relation
        self.ledger = ledger
        self.request = request
        self.purpose = purpose
        self.random_state = random_state

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
        """Choose by private records.

        Parameters
        ----------
        X : array or frame of shape (n_records, n_features)
            Private.
        y : array of shape (n_records,)
            Private labels, each one of `classes`.
        X_public : like X, of shape (n_points, n_features)
            Public, unlabelled. With `candidates` optional for numeric arrays.
        classes : sequence of two or more values
            Public; never inferred from the private labels.
        units : array of shape (n_records,), optional
            Ids, such as patient numbers: all records of one id are protected together. With
            "add-remove" only.
        unit_name : str, optional
            What the ids are, for the certificate.

        Raises
        ------
        ParameterError, DataError
            If something does not fit, or the class is too large on these public points; nothing was
            spent.
        BudgetError
            If the ledger does not admit the price; nothing was spent.
        """
        # Settings, then columns by their public types, then the account: all of it before a score
        # is counted on a private record.
        warn_inside_sklearn(alone=self.ledger is None)
        same = X_public is X
        names = declared_classes(classes)
        self._check_settings(X.unit_name if isinstance(X, StoredTable) else units)
        if isinstance(X, StoredTable):
            self._fit_stored(X, y, X_public, names, units)
            return self
        X = as_matrix("X", X)
        if X_public is not None:
            X_public = as_matrix("X_public", X_public)
            check_same_columns(X, X_public)
            X, X_public = with_public_types(X, X_public), with_public_types(X_public, X_public)
        account = self._open_account(units is not None)
        refuse_private_points(X, X_public, same=same, units=units)
        fit = self._fit_class if self.candidates is None else self._fit_candidates
        fit(X, y, X_public, names, units, None if units is None else unit_name, account)
        self._note_release(names, n_columns(X))
        if _has_names(X):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        return self

    def _fit_stored(
        self, table: StoredTable, y: Any, X_public: Any, names: list[Any], units: Any
    ) -> None:
        """Choose among candidates by the records of a table on disk."""
        if self.candidates is None:
            raise ParameterError(
                Parameter("X"),
                " is a stored table, on which fitted classifiers alone are compared; give"
                " candidates, or a table in memory.",
            )
        points = as_matrix("X_public", X_public)
        check_stored_table(table, y, units, points, names)
        points = with_public_types(points, points)
        account = self._open_account(table.unit == "user")
        refuse_private_points(table, points)
        self._fit_candidates(table, None, points, names, None, table.unit_name, account)
        self._note_release(names, table.n_columns)

    def _note_release(self, names: list[Any], width: int) -> None:
        self.certificate_ = self.released_.certificate
        self.classes_ = np.asarray(names)
        self.n_features_in_ = width

    def _check_settings(self, units: Any) -> None:
        required_budget(self.budget)
        if self.hypotheses is not None and self.candidates is not None:
            raise ParameterError("Both hypotheses and candidates are given; give one of them.")
        if isinstance(self.hypotheses, FiniteClass) or not isinstance(
            self.hypotheses, HypothesisClass | None
        ):
            raise ParameterError(
                Parameter("hypotheses"),
                f" is a {type(self.hypotheses).__name__}; give a class such as Thresholds(), or"
                " give fitted estimators as candidates.",
            )
        if (
            check_choice("relation", self.relation, RELATIONS) == "replace-one"
            and units is not None
        ):
            raise ParameterError(
                Parameter("units"),
                " are given with ",
                Argument("relation", "replace-one"),
                ", which is about single records.",
            )
        if self.n_cover is not None:
            check_count("n_cover", self.n_cover)

    def _fit_class(
        self,
        X: Any,
        y: Any,
        X_public: Any,
        names: list[Any],
        units: Any,
        unit_name: str | None,
        account: Ledger,
    ) -> None:
        """Draw one labelling of the public points, and take its representative."""
        # Candidates follow from public points alone; private records only count mistakes. So the
        # number that is drawn names the same function to everybody who has these points.
        if X_public is None:
            raise DataError(
                Parameter("X_public"),
                " is missing; give public points, which make the class of hypotheses finite.",
            )
        if sparse.issparse(X):
            raise DataError(
                Parameter("X"),
                " is a sparse matrix, and sparse input is not supported here; give it as a dense"
                " array.",
            )
        index = class_indices(y, names, n_rows(X))
        if len(names) != 2:
            raise ParameterError(
                "Only binary classification is supported: a hypothesis distinguishes two classes,"
                f" and there are {len(names)}; give fitted classifiers as candidates instead."
            )
        hypotheses = DecisionStumps(n_columns(X)) if self.hypotheses is None else self.hypotheses
        rows = random_rows(n_rows(X_public), self.n_cover, self.random_state)
        points = np.asarray(take_rows(X_public, rows))
        dichotomies = hypotheses.dichotomies(points)
        kept = slice(None) if units is None else one_record_each(units, n_rows(X))
        unit = self._protected_unit(units is not None)

        def scores() -> Scores:
            records = np.asarray(X)[kept]
            return private_scores(dichotomies, records, index[kept], unit, self.relation)

        about = {
            "hypotheses": hypotheses.name,
            "n_public": len(rows),
            "points_sha256": doubles_digest(points),
        }
        choice = self._drawn_choice(
            scores, len(dichotomies), account, about, names, unit, unit_name
        )
        self.hypothesis_ = dichotomies.hypothesis(choice.values.item())
        self.student_ = HypothesisStudent.of(self.hypothesis_, hypotheses, names, n_columns(X))
        if _has_names(X):
            self.student_.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.choice_, self.n_candidates_ = choice, len(dichotomies)
        self.released_ = chosen_release(
            choice,
            self.hypothesis_.predict(points),
            rows,
            names,
            about={"hypothesis": self.hypothesis_.describe()},
            unit_column=unit_name,
            purpose=self.purpose,
        )

    def _drawn_choice(
        self,
        scores: Callable[[], Scores],
        n_candidates: int,
        account: Ledger,
        about: dict[str, Any],
        classes: list[Any],
        unit: str,
        unit_name: str | None,
    ) -> Released:
        assert self.budget is not None
        return choose_by_scores(
            scores,
            n_candidates,
            account,
            epsilon=self.budget.epsilon,
            classes=classes,
            about=about,
            request=self.request,
            purpose=self.purpose
            or f"which of {n_candidates} {about['hypotheses']} makes the fewest mistakes",
            declaration={
                "unit": unit,
                "unit_column": unit_name,
                "relation": self.relation,
            },
        )

    def _fit_candidates(
        self,
        X: Any,
        y: Any,
        X_public: Any,
        names: list[Any],
        units: Any,
        unit_name: str | None,
        account: Ledger,
    ) -> None:
        """Draw one fitted classifier."""
        # The candidates' own releases were paid for by the same account, or are refused here; their
        # prices are added to the certificate at the end.
        assert self.budget is not None
        assert self.candidates is not None
        candidates = list(self.candidates)
        models = [one[1] if isinstance(one, tuple) else one for one in candidates]
        refuse_other_accounts(models, account)
        found = choose_candidate(
            candidates,
            X,
            y,
            classes=names,
            epsilon=self.budget.epsilon,
            ledger=account,
            X_public=X_public,
            units=units,
            unit_name=unit_name,
            relation=self.relation,
            request=self.request,
            purpose=self.purpose or f"which of {len(candidates)} candidates is right most often",
        )
        rows = labels = np.empty(0, dtype=np.int64)
        if X_public is not None:
            rows = random_rows(n_rows(X_public), self.n_cover, self.random_state)
            said = found.candidate.predict(take_rows(X_public, rows))
            labels = class_indices(said, names, len(rows))
        own = chosen_release(
            found.choice,
            labels,
            rows,
            names,
            about={"chosen": found.name, "model": type(found.candidate).__name__},
            unit_column=unit_name,
            purpose=self.purpose,
        )
        self.student_ = getattr(found.candidate, "student_", found.candidate)
        self.choice_, self.n_candidates_ = found.choice, len(candidates)
        self.released_ = with_candidates(own, found.choice, models, found.index)

    def score_loss(self, beta: float) -> float:
        """Return how many more mistakes than the best candidate the chosen one makes, at most, but
        for `beta`.

        Parameters
        ----------
        beta : float
            Failure probability of the statement, over the draw.

        Returns
        -------
        float
            scale * log(n_candidates_ / beta), in private units; public, as it follows from public
            numbers.
        """
        check_is_fitted(self, "choice_")
        assert self.budget is not None
        moved = 1 if self.relation == "add-remove" else 2
        # each candidate that falls short by more is drawn less often than beta / n_candidates
        chances = self.n_candidates_ / check_probability("beta", beta)
        return least_quotient(moved, self.budget.epsilon) * math.log(chances)

    def _open_account(self, by_unit: bool) -> Ledger:
        """Return the account that pays."""
        unit = self._protected_unit(by_unit)
        check_keeping(self.ledger, None, self.request)
        return account_of_fit(
            self.ledger, required_budget(self.budget), unit=unit, relation=self.relation
        )

    def _protected_unit(self, by_unit: bool) -> str:
        return "user" if by_unit else "record"

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the chosen classifier's class for every row of `X`, an array of shape
        (n_rows,)."""
        check_is_fitted(self, "student_")
        matrix = as_matrix("X", X)
        validate_data(self, matrix, reset=False, skip_check_array=True)
        return np.asarray(self.student_.predict(matrix))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.candidates is not None
        return tags


def _has_names(X: Any) -> bool:
    """Return whether the columns have names in the sense of scikit-learn: strings."""
    return hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns)


def private_scores(
    dichotomies: Dichotomies, X: Any, y: IntArray, unit: str, relation: str
) -> Scores:
    """Return the mistakes of every representative on private records, counted below 0; of intervals
    by their ends.

    Parameters
    ----------
    dichotomies : Dichotomies
        Of public points.
    X : array of shape (n, n_features)
        Private records, one for each unit.
    y : ndarray of 0 and 1, shape (n,)
    unit : {"record", "user"}
    relation : {"add-remove", "replace-one"}

    Raises
    ------
    ParameterError, DataError
        If there are too many labellings, or records do not fit; no value is named.

    Privacy
    -------
    Unit, sensitivity : one record makes at most one mistake under each representative, none of
        which depends on it.
    What the hypotheses do to the global states of the process while they see records is undone.
    """
    if isinstance(dichotomies, IntervalDichotomies):
        _, starts, ends = dichotomies.prefix_mistakes_on(X, y)
        return Scores.of_ranges(starts, ends, guarantee_of(unit, relation))
    with isolated(0, sklearn.get_config()):
        mistakes = (
            dichotomies.errors_on(X, y)
            if is_exact(dichotomies)
            else Dichotomies.errors_on(dichotomies, X, y)  # which asks record by record
        )
    return Scores.of_candidates(-mistakes, guarantee_of(unit, relation))
