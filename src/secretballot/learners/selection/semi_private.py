"""The semi-private learner: one of a class that public points make finite, by all records."""

import math
import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from secretballot._typing import IntArray
from secretballot._validation import check_count, check_probability
from secretballot.accounting import PrivacyBudget
from secretballot.core.exponential import least_quotient
from secretballot.core.ledger import Ledger
from secretballot.core.private import Scores
from secretballot.data.stored import StoredTable
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.foreign_code import is_exact, isolated
from secretballot.hypotheses import DecisionStumps, Dichotomies, FiniteClass, HypothesisClass
from secretballot.hypotheses.base import check_hypotheses
from secretballot.hypotheses.intervals import IntervalDichotomies
from secretballot.learners.selection.candidates import (
    SAMPLE_ROWS,
    choose_candidate,
    chosen_release,
    refuse_other_accounts,
    with_candidates,
)
from secretballot.learners.training.account import required_budget
from secretballot.learners.training.inputs import (
    as_matrix,
    class_indices,
    dummy_rows,
    random_rows,
)
from secretballot.learners.training.learner import PayingLearner
from secretballot.learners.training.point_digests import doubles_digest
from secretballot.learners.training.table import Table, private_table
from secretballot.learners.training.targets import Target
from secretballot.releasing import choose_by_scores
from secretballot.students import HypothesisStudent
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.votes import guarantee_of


# scikit-learn ships no types
@dataclass(eq=False, repr=False)
class SemiPrivateClassifier(ClassifierMixin, PayingLearner):  # type: ignore[misc]
    """Choose a classifier by its mistakes on all private records, from a class made finite.

    The labellings that the class gives to the public points are its candidates, each by one
    representative that follows from these points alone; a private choice draws one by the
    mistakes on the private records. No record is held back and none is cut off into a shard, so for
    small classes this is the most accurate learner there is here.

    Parameters
    ----------
    hypotheses : HypothesisClass, or list of classifiers or of (name, classifier), optional
        A class, by default the decision stumps on all columns, distinguishes two classes. A list
        has two or more fitted classifiers: made from public data, or learnt from releases that
        stand in the same ledger. Any number of classes.
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
        counts one (`one_record_each`); for a list the id counts once, by the majority of its
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

    hypotheses: HypothesisClass | Sequence[Any] | None = None
    _: KW_ONLY
    n_cover: int | None = None

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
            Public, unlabelled. With a list of classifiers optional for numeric arrays.
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
        stored, same = isinstance(X, StoredTable), X_public is X
        target = Target.of_classes(classes)
        names = list(target.classes)
        budget = self._checked_budget(by_unit=X.unit == "user" if stored else units is not None)
        if self.n_cover is not None:
            check_count("n_cover", self.n_cover)
        listed = isinstance(self.hypotheses, list | tuple)
        if not listed:
            self._refuse_unfit_class(X, X_public, names)
        points = X_public
        if X_public is None and listed and not stored:
            X = as_matrix("X", X)
            points = dummy_rows(X, SAMPLE_ROWS)
        table, points = private_table(X, y, X if same else points, target, units, unit_name)
        account = self._account(budget, guarantee_of(table.unit, self.relation))
        if X_public is not None:
            table.refuse_points(points)
        table.note_columns(self)
        if listed:
            given = {"X_public": X_public, "units": units, "unit_name": unit_name}
            self._choose_candidate(X, y, names, account, budget, points, **given)
        else:
            self._choose_hypothesis(table, names, account, budget, points)
        self.certificate_ = self.released_.certificate
        self.classes_ = np.asarray(names)
        return self

    def _refuse_unfit_class(self, X: Any, X_public: Any, names: list[Any]) -> None:
        """Refuse what a class of hypotheses does not take."""
        if isinstance(X, StoredTable):
            raise ParameterError(
                Parameter("X"),
                " is a stored table, on which fitted classifiers alone are compared; give a list of"
                " them as hypotheses, or a table in memory.",
            )
        if self.hypotheses is not None and (
            isinstance(check_hypotheses(self.hypotheses), FiniteClass)
        ):
            raise ParameterError(
                Parameter("hypotheses"), " is a FiniteClass; give the list of its estimators."
            )
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
        if len(names) != 2:
            raise ParameterError(
                "Only binary classification is supported: a hypothesis distinguishes two classes,"
                f" and there are {len(names)}; give a list of fitted classifiers instead."
            )

    def _choose_hypothesis(
        self, table: Table, names: list[Any], account: Ledger, budget: PrivacyBudget, X_public: Any
    ) -> None:
        """Draw one labelling of the public points, and take its representative."""
        # Candidates follow from public points alone; private records only count mistakes. So the
        # number that is drawn names the same function to everybody who has these points.
        width = self.n_features_in_
        hypotheses = DecisionStumps(width) if self.hypotheses is None else self.hypotheses
        assert isinstance(hypotheses, HypothesisClass)
        rows = random_rows(n_rows(X_public), self.n_cover, self.random_state)
        points = np.asarray(take_rows(X_public, rows))
        dichotomies = hypotheses.dichotomies(points)

        def scores() -> Scores:
            [block] = table.one_of_each_unit(sys.maxsize)
            records = np.asarray(block.rows)
            return private_scores(dichotomies, records, block.targets, table.unit, self.relation)

        choice = choose_by_scores(
            scores,
            len(dichotomies),
            account,
            epsilon=budget.epsilon,
            classes=names,
            about={
                "hypotheses": hypotheses.name,
                "n_public": len(rows),
                "points_sha256": doubles_digest(points),
            },
            request=self.request,
            purpose=self.purpose
            or f"which of {len(dichotomies)} {hypotheses.name} makes the fewest mistakes",
            declaration={
                "unit": table.unit,
                "unit_column": table.unit_name,
                "relation": self.relation,
            },
        )
        self.hypothesis_ = dichotomies.hypothesis(choice.values.item())
        self.student_ = HypothesisStudent.of(self.hypothesis_, hypotheses, names, width)
        if hasattr(self, "feature_names_in_"):
            self.student_.feature_names_in_ = self.feature_names_in_
        self.choice_, self.n_candidates_ = choice, len(dichotomies)
        self.released_ = chosen_release(
            choice,
            self.hypothesis_.predict(points),
            rows,
            names,
            about={"hypothesis": self.hypothesis_.describe()},
            unit_column=table.unit_name,
            purpose=self.purpose,
        )

    def _choose_candidate(
        self,
        X: Any,
        y: Any,
        names: list[Any],
        account: Ledger,
        budget: PrivacyBudget,
        points: Any,
        **given: Any,
    ) -> None:
        """Draw one fitted classifier."""
        # The candidates' own releases were paid for by the same account, or are refused here; their
        # prices are added to the certificate at the end.
        assert isinstance(self.hypotheses, list | tuple)
        candidates = list(self.hypotheses)
        models = [one[1] if isinstance(one, tuple) else one for one in candidates]
        refuse_other_accounts(models, account)
        found = choose_candidate(
            candidates,
            X,
            y,
            classes=names,
            epsilon=budget.epsilon,
            ledger=account,
            relation=self.relation,
            request=self.request,
            purpose=self.purpose or f"which of {len(candidates)} candidates is right most often",
            **given,
        )
        rows = labels = np.empty(0, dtype=np.int64)
        if given["X_public"] is not None:
            rows = random_rows(n_rows(points), self.n_cover, self.random_state)
            predicted = found.candidate.predict(take_rows(points, rows))
            labels = class_indices(predicted, names, len(rows))
        stored = isinstance(X, StoredTable)
        own = chosen_release(
            found.choice,
            labels,
            rows,
            names,
            about={"chosen": found.name, "model": type(found.candidate).__name__},
            unit_column=X.unit_name if stored else given["unit_name"],
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
        moved = 1 if self.relation == "add-remove" else 2
        # each candidate that falls short by more is drawn less often than beta / n_candidates
        chances = self.n_candidates_ / check_probability("beta", beta)
        return least_quotient(moved, required_budget(self.budget).epsilon) * math.log(chances)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the chosen classifier's class for every row of `X`, an array of shape
        (n_rows,)."""
        return np.asarray(self.student_.predict(self._checked_points(X)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = isinstance(self.hypotheses, list | tuple)
        return tags


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
