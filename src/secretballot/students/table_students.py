"""Students of released tables and sums, fitted from the start: a number within public bounds,
several labels at once, and a linear model in a public basis, as released moments have fixed it."""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.linear_model import RidgeCV
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from secretballot._points import class_shares, take_rows
from secretballot._seeded import own_global_states, public_seed, with_own_seeds
from secretballot._typing import FloatArray, IntArray
from secretballot._validation import shown, shown_error
from secretballot.bases import Basis, TableBasis
from secretballot.bases.integer_model import (
    PROBABILITY_UNIT,
    IntegerLabels,
    IntegerLine,
    IntegerModel,
    LinearModel,
    Smoothed,
)
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.released import ReleasedSums, ReleasedTable, labels_of_table
from secretballot.students.fitting import default_student, fit_student, refuse_beyond


# scikit-learn ships no types
class _ReleasedStudent(BaseEstimator):  # type: ignore[misc]
    """What students of released values have in common: they are fitted from the start, and learn
    nothing further."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None) -> Self:
        """Return the student as it is: what it knows was released."""
        return self


def _has_classes(student: Any) -> bool:
    return student.bounds is None


@dataclass(eq=False, repr=False)
class MomentsStudent(_ReleasedStudent):
    """Predict by released weights in a basis that public points have fixed.

    Made by `RecordMomentsClassifier` and `RecordMomentsRegressor`; it is fitted from the start, and
    learns nothing further.

    Parameters
    ----------
    basis : basis of `secretballot.bases`
        Fitted to public points.
    weights : ndarray of int64, shape (n_coordinates, n_columns)
        Released; of the basis's directions, and of the constant.
    classes : sequence of two or more values
    labels : sequence of str
        In their place, names of labels, each of which is there or not.
    bounds : tuple of two floats
        In their place, bounds of a number.
    before : Smoothed, optional
        The prediction that the weights correct.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or a list of n_labels ndarrays of 0 and 1
    n_features_in_ : int

    Examples
    --------
    >>> basis = sb.bases.TableBasis().fit([[age] for age in range(60)])
    >>> weights = np.zeros((basis.n_directions_ + 1, 1), dtype=np.int64)
    >>> student = sb.MomentsStudent(basis, weights, ["no", "yes"])
    >>> student.predict_proba([[30]]).tolist()
    [[0.5, 0.5]]
    >>> sb.MomentsStudent(basis, weights, bounds=(0, 40)).predict([[30]]).tolist()
    [20.0]
    """

    basis: Basis
    weights: IntArray
    classes: Sequence[Any] | None = None
    _: KW_ONLY
    labels: Sequence[str] | None = None
    bounds: tuple[float, float] | None = None
    before: Smoothed | None = None

    @property
    def n_features_in_(self) -> int:
        """Columns of the points."""
        return int(self.basis.n_features_in_)

    @property
    def classes_(self) -> Any:
        """Class values, shape (n_classes,); of several labels 0 and 1 for each."""
        if self.labels is not None:
            return [np.array([0, 1]) for _ in self.labels]
        return np.asarray(self.classes)

    @property
    def model(self) -> LinearModel:
        """The model in integers."""
        kind = IntegerLine if self.bounds else IntegerLabels if self.labels else IntegerModel
        return kind(self.weights, self.before)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row of `X`, shape (n_points,); which labels are
        more probable than not, 0 and 1 of shape (n_points, n_labels); or the number, within its
        bounds, shape (n_points,)."""
        model, rows = self.model, self._rows(X)
        if isinstance(model, IntegerModel):
            return np.asarray(self.classes_[model.labels(rows)])
        shares = model.predictions(rows)
        if self.bounds is None:
            return (shares > PROBABILITY_UNIT // 2).astype(np.int64)
        low, high = self.bounds
        return np.asarray(low + (high - low) * (shares[:, 0] / PROBABILITY_UNIT))

    # scikit-learn ships no types
    @available_if(_has_classes)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class, or label, for every row of `X`, shape (n_points,
        n_classes) or (n_points, n_labels)."""
        model, rows = self.model, self._rows(X)
        if not isinstance(model, IntegerModel):
            return model.predictions(rows) / PROBABILITY_UNIT
        counts = model.probabilities(rows)
        shares: FloatArray = counts / counts.sum(axis=1, keepdims=True)
        return shares

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy on points of shape (n_points, n_features); of a number the
        coefficient of determination."""
        measure = accuracy_score if self.bounds is None else r2_score
        return float(measure(y, self.predict(X)))

    def column_shares(self, X: Any) -> FloatArray:
        """Return how much of what the model says on these points comes from each column.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_points, n_features)
            Public points.

        Returns
        -------
        ndarray of shape (n_features,)
            Share of the variance of the linear functions (of classes: of the logits), as the
            covariance of a column's part with the whole; together 1, or all 0 where the model says
            the same of all points. A share is below 0 where a column's part mostly takes back what
            others say.

        Raises
        ------
        DataError
            If the basis mixes all columns, as a `KernelBasis` does.
        """
        check_is_fitted(self.basis)
        if not isinstance(self.basis, TableBasis):
            raise DataError(
                f"A {type(self.basis).__name__} mixes all columns, so none has a share of its own;"
                " use a TableBasis."
            )
        weights = self.weights.astype(np.float64)
        if self.before is not None:
            # what it says, as nearly as linear functions of the coordinates say it
            rows = self._rows(X)
            logits = self.before.logits(rows)
            weights += np.linalg.lstsq(rows[:, : len(weights)].astype(np.float64), logits)[0]
        # of more than two classes only differences between logits mean something
        if self.labels is None and self.weights.shape[1] > 1:
            weights -= weights.mean(axis=1, keepdims=True)
        return self.basis.column_shares(X, weights[:-1])

    def _rows(self, X: Any) -> IntArray:
        check_is_fitted(self.basis)
        return self.basis.rows(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.bounds is None:
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags


# scikit-learn ships no types
@dataclass(eq=False, repr=False)
class NumberStudent(RegressorMixin, _ReleasedStudent):  # type: ignore[misc]
    """Predict a number by a fitted regressor, cut to public bounds.

    Parameters
    ----------
    regressor : fitted scikit-learn regressor
        Trained on released numbers and public points.
    bounds : tuple of two floats
        Bounds of what is predicted.

    Attributes
    ----------
    n_features_in_ : int

    Examples
    --------
    >>> from secretballot.students import NumberStudent
    >>> from sklearn.linear_model import LinearRegression
    >>> line = LinearRegression().fit([[0.0], [1.0]], [0.0, 10.0])
    >>> NumberStudent(line, (0.0, 8.0)).predict([[0.5], [2.0]]).round(6).tolist()
    [5.0, 8.0]
    """

    regressor: Any
    bounds: tuple[float, float]

    @property
    def n_features_in_(self) -> int:
        """Columns of the points."""
        return int(self.regressor.n_features_in_)

    def predict(self, X: Any) -> FloatArray:
        """Return the number of every row of `X`, within the bounds, shape (n_points,)."""
        numbers = np.asarray(self.regressor.predict(X), dtype=np.float64)
        return np.clip(numbers.reshape(-1), *self.bounds)


def _have_probabilities(student: Any) -> bool:
    return all(hasattr(one, "predict_proba") for one in student.students)


# scikit-learn ships no types
@dataclass(eq=False, repr=False)
class LabelsStudent(ClassifierMixin, _ReleasedStudent):  # type: ignore[misc]
    """Predict several labels by a fitted classifier for each of them.

    Parameters
    ----------
    students : list of n_labels fitted scikit-learn classifiers
        Of 0 and 1; trained on released labels or counts and public points.
    labels : sequence of n_labels str
        Their names.

    Attributes
    ----------
    classes_ : list of n_labels ndarrays
        0 and 1, for each label.
    n_features_in_ : int

    Examples
    --------
    >>> from secretballot.students import LabelsStudent
    >>> from sklearn.linear_model import LogisticRegression
    >>> line = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    >>> LabelsStudent([line], ["old"]).predict([[0.1], [0.9]]).tolist()
    [[0], [1]]
    """

    students: Sequence[Any]
    labels: Sequence[str]

    @property
    def classes_(self) -> list[NDArray[Any]]:
        """0 and 1, for each label."""
        return [np.array([0, 1]) for _ in self.labels]

    @property
    def n_features_in_(self) -> int:
        """Columns of the points."""
        return int(self.students[0].n_features_in_)

    def predict(self, X: Any) -> IntArray:
        """Return which labels the classifiers give, 0 and 1 of shape (n_points, n_labels)."""
        return np.column_stack([np.asarray(one.predict(X)) for one in self.students])

    # scikit-learn ships no types
    @available_if(_have_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every label, shape (n_points, n_labels); of classifiers that
        all give some."""
        return np.column_stack([class_shares(one, X, [0, 1])[:, 1] for one in self.students])


def default_regressor() -> Any:
    """Return the unfitted student of released numbers that measured best: a ridge regression, whose
    strength the points set among themselves."""
    return make_pipeline(StandardScaler(), RidgeCV(alphas=np.logspace(-1, 5, 25)))


def fit_table_student(
    student: Any, X_public: Any, table: ReleasedTable, *, random_state: int = 0
) -> NumberStudent | LabelsStudent:
    """Fit a student on a released table.

    Parameters
    ----------
    student : scikit-learn regressor or classifier, or None
        Cloned; of several labels once for each. None takes the one that measured best.
    X_public : array, sparse matrix or frame of shape (n_public, n_features)
        The whole public pool; ``table.rows`` are rows of it.
    table : ReleasedTable
    random_state : int
        Of the student.

    Raises
    ------
    DataError
        If a row is none of the pool, or the student cannot learn from what was released.
    """
    refuse_beyond(X_public, table.rows)
    terms = table.certificate["public"]
    # only tables of numbers have a range; those of labels have a student for each
    if "bounds" in terms:
        template = default_regressor() if student is None else student
        points = take_rows(X_public, table.rows)
        regressor = fitted_to_public(template, points, table.values[:, 0], random_state)
        return NumberStudent(regressor, tuple(terms["bounds"]))
    students = [
        fit_student(
            default_student(one) if student is None else student,
            X_public,
            one,
            random_state=random_state,
        )
        for one in labels_of_table(table)
    ]
    return LabelsStudent(students, list(terms["labels"]))


def table_student_of(student: Any, table: ReleasedSums) -> Any:
    """Return a student that was fitted elsewhere, as one of the target of a table, or of sums.

    Parameters
    ----------
    student : fitted regressor, or sequence of fitted classifiers, one for each label
        Or a student of tables, or of sums, already.
    table : ReleasedTable or ReleasedSums

    Raises
    ------
    ParameterError
        If it is no student of this table.
    """
    if isinstance(student, _ReleasedStudent):
        return student
    terms = table.certificate["public"]
    if "bounds" in terms and hasattr(student, "predict"):
        return NumberStudent(student, tuple(terms["bounds"]))
    labels = terms.get("labels")
    if labels is not None and isinstance(student, list | tuple) and len(student) == len(labels):
        return LabelsStudent(list(student), list(labels))
    wanted = "one regressor" if labels is None else f"a list of {len(labels)} classifiers"
    raise ParameterError(
        Parameter("student"),
        f" is {shown(student)}, and the release is one of {wanted}; give the `student_` of its"
        " model, a name, or a learner that is not fitted.",
    )


def fitted_to_public(learner: Any, points: Any, targets: Any, random_state: int | None) -> Any:
    """Return a clone that learnt public values, of shape (n_points,), at public points, by the
    public seed.

    Raises
    ------
    DataError
        If it cannot; the message holds what it said of public values.
    """
    seed = public_seed(random_state or 0, "student")
    try:
        with own_global_states(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return with_own_seeds(clone(learner), seed).fit(points, targets)
    except MemoryError:  # what memory there is, is no property of the student
        raise
    except Exception as error:  # any learner may raise anything; all that it sees is public
        raise DataError(
            f"The student cannot learn from what was released ({shown_error(error)}); fit another"
            " one to `released_`."
        ) from None
