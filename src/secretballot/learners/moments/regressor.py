"""Learn to predict a number from every record by one noisy sum, in a basis that public points
fix."""

from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from secretballot._typing import FloatArray
from secretballot.accounting import PrivacyBudget
from secretballot.bases import Basis
from secretballot.core.ledger import Ledger
from secretballot.learners.moments.base import MomentsLearner
from secretballot.learners.moments.targets import NumberTarget
from secretballot.learners.training.student_predictions import checked_points
from secretballot.released import ReleasedSums
from secretballot.students.moments_student import MomentsRegressionStudent


# scikit-learn ships no types
class RecordMomentsRegressor(RegressorMixin, MomentsLearner):  # type: ignore[misc]
    """Learn a linear model of a number from private records and a public pool, all at once.

    As `RecordMomentsClassifier`, with a number in the place of a class: every record adds its
    coordinates times what the model so far misses of its target to one sum, which is released with
    noise. The model is the penalised least-squares one whose moments on the pool meet the released
    ones; second moments are those of the pool, and cost nothing.

    Parameters
    ----------
    target_range : tuple of two floats
        Public bounds of the target, in its own unit; required, and never inferred from private
        targets. Targets beyond are cut, and predictions lie within. Noise grows with the width.
    basis : basis of `secretballot.bases`, optional
        Cloned and fitted to the public points; `TableBasis.suited_to` by default.
    budget : PrivacyBudget
        (epsilon, delta) of this fit, with delta above 0. Left out with a ledger that has a list:
        its noise is the list's.
    n_stages : int, default 4
        Noisy sums, each starting from the model of the one before; at most 10.
    neighbours, ledger, request, purpose
        As for `RecordMomentsClassifier`.

    Attributes
    ----------
    student_ : MomentsRegressionStudent
        The model, without anything private; it can be pickled.
    released_sums_ : ReleasedSums
        What left the door. There are no labels of public points, so `write_release` does not take
        it: publish certificate and student.
    certificate_ : dict
        What may be shown to a stranger; it holds the released sums.
    coverage_ : Coverage
        How many records have values that the public points do not show; released.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record, or all records of one id where `units` is given.
    Relation : add or remove one unit, or replace one record in place.
    Sensitivity : every unit's integer vector has at most a fixed L2 norm
        (`secretballot.core.private.RecordSums`); twice that for replace-one.
    Price : `budget`, by one `VectorSum` over all stages, composed in `ledger` with everything
        else released from the same data.
    Source : least squares with public second moments, as in arXiv:2508.18037; the price is proved
        in `docs/explanation/prices.md`, section 10.
    Rounding : upward; vectors, sums and noise are integers.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = sb.RecordMomentsRegressor(
    ...     (-5.0, 5.0), budget=sb.PrivacyBudget(epsilon=1.0, delta=1e-6))
    >>> model = model.fit(X[:2000], 2 * X[:2000, 0], X_public=X[2000:])
    >>> below, above = model.predict([[-1.0, 0.0], [1.0, 0.0]])
    >>> bool(below < -1 and above > 1), model.certificate_["epsilon"]
    (True, 1.0)
    """

    def __init__(
        self,
        target_range: tuple[float, float] | None = None,
        basis: Basis | None = None,
        *,
        budget: PrivacyBudget | None = None,
        n_stages: int = 4,
        neighbours: str = "add-remove",
        ledger: Ledger | None = None,
        request: str | None = None,
        purpose: str = "",
    ) -> None:
        self.target_range = target_range
        self.basis = basis
        self.budget = budget
        self.n_stages = n_stages
        self.neighbours = neighbours
        self.ledger = ledger
        self.request = request
        self.purpose = purpose

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        X_public: Any = None,
        units: Any = None,
        unit_name: str | None = None,
    ) -> Self:
        """Learn from private records.

        Parameters
        ----------
        X : array, sparse matrix, list of rows or frame of shape (n_records, n_features)
            Private.
        y : sequence of shape (n_records,)
            Private targets. What is beyond `target_range`, or infinite, is cut; a text counts as
            the number that it says. A target that is nan, or no number, leaves its record out of
            the sums, and no other.
        X_public : like X, of shape (n_public, n_features)
            Public points, without targets.
        units : array of shape (n_records,), optional
            Ids, such as patient numbers: all records of one id are protected together. With
            "add-remove" only, and with a `ledger` about users.
        unit_name : str, optional
            What the ids are, for the certificate.

        Raises
        ------
        ParameterError, DataError
            If something does not fit; nothing was spent.
        BudgetError
            If the ledger does not admit the price; nothing was spent.
        """
        target = NumberTarget.within(self.target_range)
        learnt = self._fit_to(target, X, y, X_public, units, unit_name)
        # no classes are declared here, so the sums alone come out, and no labels of public points
        assert isinstance(learnt.released, ReleasedSums)
        self.released_sums_ = learnt.released
        self.student_ = MomentsRegressionStudent(
            learnt.basis, learnt.weights, (target.low, target.high)
        )
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the predicted number of every row of `X`, within `target_range`, shape
        (n_rows,)."""
        points = checked_points(self, X)
        return self.student_.predict(points)
