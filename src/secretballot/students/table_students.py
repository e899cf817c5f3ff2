"""Students of released tables: a number within public bounds, or several labels at once."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metaestimators import available_if

from secretballot._points import class_shares, take_rows
from secretballot._seeded import own_global_states, public_seed, with_own_seeds
from secretballot._typing import FloatArray, IntArray
from secretballot._validation import shown, shown_error
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.released import ReleasedSums, ReleasedTable, labels_of_table
from secretballot.students.fitting import default_student, fit_student, refuse_beyond
from secretballot.students.moments_student import ReleasedStudent


# scikit-learn ships no types
@dataclass(eq=False, repr=False)
class NumberStudent(RegressorMixin, ReleasedStudent):  # type: ignore[misc]
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
class LabelsStudent(ClassifierMixin, ReleasedStudent):  # type: ignore[misc]
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
    if isinstance(student, ReleasedStudent):
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
