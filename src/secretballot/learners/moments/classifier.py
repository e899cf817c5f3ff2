"""Learn from every record by one noisy sum, in a basis that public points fix."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from secretballot.accounting import PrivacyBudget
from secretballot.bases import Basis
from secretballot.core.ledger import Ledger
from secretballot.learners.moments.base import MomentsLearner, student_of_labels
from secretballot.learners.moments.class_weights import checked_shares, checked_weights
from secretballot.learners.moments.targets import ClassTarget
from secretballot.learners.training.inputs import as_matrix
from secretballot.learners.training.student_predictions import StudentPredictions
from secretballot.released import ReleasedLabels
from secretballot.students.moments_student import MomentsStudent


# scikit-learn ships no types
class RecordMomentsClassifier(
    StudentPredictions,
    ClassifierMixin,  # type: ignore[misc]
    MomentsLearner,
):
    """Learn a publishable classifier from private records and a public pool, all records at once.

    Public points fix a basis. Every record adds its coordinates times what the model so far misses
    of its class to one sum, which is released with noise; the model is the logistic or softmax one
    whose moments on the pool meet the released ones. No record is cut off into a shard, so this is
    the most accurate learner here for tables. Use `PATEClassifier` for black-box learners, data in
    silos, and vote files.

    Parameters
    ----------
    basis : basis of `secretballot.bases`, optional
        Cloned and fitted to the public points; `TableBasis.suited_to` by default.
    student : scikit-learn classifier, optional
        Learns from the released labels of the public points. By default the model itself is the
        student (`MomentsStudent`).
    budget : PrivacyBudget
        (epsilon, delta) of this fit, with delta above 0. Left out with a ledger that has a list:
        its noise is the list's.
    n_stages : int, default 4
        Noisy sums, each starting from the model of the one before; at most 10.
    class_weight : "balanced" or mapping of class to float, optional
        What the decisions of the model count each class for, after the release and for no price.
        "balanced" counts all as if they were equally frequent: find a rare class, and call more
        points so by mistake. Probabilities and released labels are those of the weighted model.
    class_shares : mapping of class to float, optional
        A public statement of how frequent the classes are; one may be left out. Where one has 1
        record in 20 or fewer, the default basis has fewer bins and no whitening: weak directions
        would be all noise.
    neighbours : {"add-remove", "replace-one"}, default "add-remove"
        Relation of the promise.
    ledger : Ledger, optional
        Account of the private dataset. Without one the fit keeps an account of its own, in memory.
    request : str, optional
        Key of this fit in the ledger: the same key gets the stored answer, or goes on after an
        interruption.
    purpose : str
        Why, in a few words; public.
    random_state : int, optional
        Public seed of a `student`. Never of the noise.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    student_ : fitted classifier
    released_labels_ : ReleasedLabels
        Labels of all public points by the model; its certificate holds the released sums.
    certificate_ : dict
        What may be shown to a stranger.
    coverage_ : Coverage
        How many records have values that the public points do not show; released.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record, or all records of one id where `units` is given.
    Relation : add or remove one unit, or replace one record in place.
    Sensitivity : every unit's integer vector has at most a fixed L2 norm (`RecordSums`); twice
        that for replace-one.
    Price : `budget`, by one `VectorSum` over all stages, composed in `ledger` with everything
        else released from the same data.
    Source : the moments of a generalised linear model with unlabelled public data, as in
        arXiv:2403.03856; the price is proved in `docs/explanation/prices.md`, section 10.
    Rounding : upward; vectors, sums and noise are integers.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = sb.RecordMomentsClassifier(budget=sb.PrivacyBudget(epsilon=1.0, delta=1e-6))
    >>> model = model.fit(
    ...     X[:2000], (X[:2000, 0] > 0).astype(int), X_public=X[2000:], classes=[0, 1])
    >>> model.predict([[-2.0, 0.0], [2.0, 0.0]]).tolist(), model.certificate_["epsilon"]
    ([0, 1], 1.0)
    """

    def __init__(
        self,
        basis: Basis | None = None,
        student: Any = None,
        *,
        budget: PrivacyBudget | None = None,
        n_stages: int = 4,
        class_weight: str | Mapping[Any, float] | None = None,
        class_shares: Mapping[Any, float] | None = None,
        neighbours: str = "add-remove",
        ledger: Ledger | None = None,
        request: str | None = None,
        purpose: str = "",
        random_state: int | None = None,
    ) -> None:
        self.basis = basis
        self.student = student
        self.budget = budget
        self.n_stages = n_stages
        self.class_weight = class_weight
        self.class_shares = class_shares
        self.neighbours = neighbours
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
        start: ReleasedLabels | None = None,
    ) -> Self:
        """Learn from private records.

        Parameters
        ----------
        X : array, sparse matrix, list of rows or frame of shape (n_records, n_features)
            Private.
        y : sequence of shape (n_records,)
            Private labels, each one of `classes`.
        X_public : like X, of shape (n_public, n_features)
            Public points, unlabelled.
        classes : sequence of two or more values
            Public; never inferred from the private labels.
        units : array of shape (n_records,), optional
            Ids, such as patient numbers: all records of one id are protected together. With
            "add-remove" only, and with a `ledger` about users.
        unit_name : str, optional
            What the ids are, for the certificate.
        start : ReleasedLabels, optional
            An earlier release about the same public points and classes, by any learner: the stages
            start from a model of its labels instead of from nothing. It may come from another
            ledger; the certificate names it. What it cost comes on top.

        Raises
        ------
        ParameterError, DataError
            If something does not fit, or a `student` cannot learn from public points with dummy
            labels; nothing was spent.
        BudgetError
            If the ledger does not admit the price; nothing was spent.
        """
        self.fit_labels(
            X,
            y,
            X_public=X_public,
            classes=classes,
            units=units,
            unit_name=unit_name,
            start=start,
        )
        # everything released is kept by now, so a student that fails does not cost the model
        self.student_ = student_of_labels(
            self.student,
            self.student_,
            as_matrix("X_public", X_public),
            self.released_labels_,
            self.random_state,
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
        start: ReleasedLabels | None = None,
    ) -> Self:
        """Do all that `fit` does but fit a `student`, which is only tried: the model itself is
        there; parameters, with their shapes, and errors are those of `fit`."""
        target = ClassTarget.declared(classes)
        # settings by class are public, and refused before a private label is read
        shares = checked_shares(self.class_shares, target.classes)
        weights = checked_weights(self.class_weight, target.classes)
        learnt = self._fit_to(
            target, X, y, X_public, units, unit_name, start, self.student, weights, shares
        )
        assert isinstance(learnt.released, ReleasedLabels)
        self.released_labels_ = learnt.released
        self.student_ = MomentsStudent(learnt.basis, learnt.weights, list(target.classes))
        self.classes_ = np.asarray(list(target.classes))
        return self

    @property
    def _student_to_fit(self) -> Any:
        return MomentsStudent if self.student is None else self.student
