"""From released labels and the public pool to a fitted student, which is tried with dummy labels
before anything is paid."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, assert_all_finite, column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from secretballot._points import class_shares, take_rows
from secretballot._seeded import own_global_states, public_seed, with_own_seeds
from secretballot._typing import FloatArray, IntArray
from secretballot._validation import ABSTENTIONS, check_choice, shown_error
from secretballot.exceptions import DataError, Parameter, ParameterError, SecretBallotError
from secretballot.named_learners import CLASSIFIERS, REGRESSORS, Maker, learner_by_name
from secretballot.released import ReleasedLabels
from secretballot.students.hypothesis_students import VotingStudent
from secretballot.students.noisy_counts import NoisyCountsClassifier, VoteShareClassifier
from secretballot.students.record_votes import RecordVotesStudent


def _has_probabilities(model: Any) -> bool:
    return hasattr(getattr(model, "classifier_", model.classifier), "predict_proba")


# scikit-learn ships no types
class NumberedClassesClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Number the classes that occur 0, 1, ... for a learner, and answer with the classes.

    Some learners, such as XGBoost's, refuse classes by name, and labels among which one number is
    missing. `fit_student` and the teachers put this around a learner that does.

    Parameters
    ----------
    classifier : classifier or pipeline
        Cloned and fitted to the numbers; it must predict them.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes that occurred, ascending: class number i is ``classes_[i]``.
    classifier_ : the fitted learner

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> student = sb.students.NumberedClassesClassifier(LogisticRegression())
    >>> student = student.fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> student.predict([[0.0], [3.0]]).tolist(), student.classifier_.classes_.tolist()
    (['low', 'high'], [0, 1])
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit a clone of the learner to the numbers of the classes.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_points, n_features)
        y : array of shape (n_points,)
        """
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        self.classifier_ = clone(self.classifier).fit(X, numbers.astype(np.int64))
        for name in ("n_features_in_", "feature_names_in_"):
            known = getattr(self.classifier_, name, None)
            if known is not None:
                setattr(self, name, known)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of every row of `X`, an array of shape (n_points,).

        Raises
        ------
        DataError
            If the learner answers with something else than the numbers that it was given.
        """
        check_is_fitted(self, "classifier_")
        # some learners answer with one column, or with whole floating-point numbers
        answers = np.asarray(self.classifier_.predict(X)).ravel()
        if not np.isin(answers, np.arange(len(self.classes_))).all():
            raise DataError(
                f"{type(self.classifier_).__name__} predicts values that are no number of a class;"
                " take a classifier that predicts the labels that it was fitted to."
            )
        values: NDArray[Any] = self.classes_[answers.astype(np.int64)]
        return values

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the learner's class probabilities, in the order of `classes_`, shape
        (n_points, n_classes)."""
        check_is_fitted(self, "classifier_")
        return np.asarray(self.classifier_.predict_proba(X))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.classifier).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags


_TRIAL_ROWS = 5  # that a new student has to predict before it counts as fitted


def default_student(released: ReleasedLabels) -> Any:
    """Return the unfitted student that measured best for what was released.

    Noisy counts of teachers' votes go to a `NoisyCountsClassifier`, those of records' votes to a
    `RecordVotesStudent`; labels alone to a logistic regression.
    """
    if released.by_record:
        return RecordVotesStudent()
    if released.noisy_counts is not None:
        return NoisyCountsClassifier(random_state=0)
    return LogisticRegression(max_iter=1000)


def learns_from_counts(student: Any) -> bool:
    """Return whether `fit_student` hands this student the noisy counts rather than the labels."""
    return isinstance(_last_step(student), VoteShareClassifier | RecordVotesStudent)


def fit_student(
    student: Any,
    X_public: Any,
    released: ReleasedLabels,
    *,
    abstentions: str = "drop",
    random_state: Any = None,
    basis: Any = None,
) -> Any:
    """Fit a student on what was released.

    A `NoisyCountsClassifier` or `GraphCountsClassifier`, alone or as the last step of a pipeline,
    learns from the noisy counts, and the whole pool serves it and the pipeline's transformers. Any
    other classifier learns from the labels. Of votes of records any other classifier learns from
    what a `RecordVotesStudent` says of the whole pool: the released label of one point is mostly
    noise. If only one class was released, there is nothing to distinguish, and a `DummyClassifier`
    that always answers it is returned. A learner that refuses the labels, as XGBoost does unless
    they are 0, 1, ..., gets them as these numbers, inside of a `NumberedClassesClassifier`. Of an
    interactive release it also learns from its own predictions that were confirmed.

    Parameters
    ----------
    student : scikit-learn classifier
        Cloned; the given object stays as it was.
    X_public : array, sparse matrix or data frame of shape (n_public, n_features)
        The whole public pool; ``released.queries`` are rows of it.
    released : ReleasedLabels
    abstentions : {"drop", "random", "majority"}, default "drop"
        What a student of labels makes of the unanswered points: leave them out, draw a class
        for each by the public seed, or take the most frequent released label. A student of counts
        leaves them out.
    random_state : int, RandomState or None
        Of the student, wherever it leaves its own `random_state` open, and of what is drawn. None
        takes fresh entropy of the system. In neither case are numpy's, Python's or torch's global
        generators used or moved.
    basis : transformer with `integers`, optional
        Of votes of records: what points were compared by; its clone is fitted on the pool. By
        default a `TableBasis`.

    Returns
    -------
    fitted classifier

    Raises
    ------
    DataError
        If a query is not a row of the pool, or the student wants counts that were not released, or
        cannot learn from what was released or predict what was asked.
    """
    check_choice("abstentions", abstentions, ABSTENTIONS)
    if not released.answered.any():
        return _knowing_nothing(released)
    refuse_beyond(X_public, released.queries)
    seed = public_seed(random_state, "student")
    released = _with_confirmations(
        lambda so_far: fit_student(student, X_public, so_far, random_state=random_state),
        X_public,
        released,
    )

    def fitted_afresh(learner: Any) -> Any:
        with own_global_states(seed):
            fresh = with_own_seeds(clone(learner), seed)
            fitted = _fitted_in_place(fresh, X_public, released, abstentions, seed, basis)
            # a student that learns and cannot predict is found out here, not by its readers
            few = take_rows(X_public, released.queries[:_TRIAL_ROWS])
            if not set(np.asarray(fitted.predict(few)).tolist()) <= set(released.classes):
                raise ValueError("it predicts values that are none of the classes")
            return fitted

    failure: Exception
    try:
        return fitted_afresh(student)
    except (SecretBallotError, MemoryError):  # what memory there is, is no property of the student
        raise
    except Exception as error:  # any learner may raise anything; all that it sees is public
        failure = error
    if not learns_from_counts(student):
        # once more from the same seed: what the first attempt did is forgotten
        try:
            return fitted_afresh(NumberedClassesClassifier(student))
        except MemoryError:
            raise
        except Exception as error:  # reported is what the learner states of the labels
            failure.add_note(f"Neither to the numbers of the classes: {type(error).__name__}.")
    raise DataError(
        f"the student {type(_last_step(student)).__name__} cannot learn from"
        f" {len(released.queries)} released answers ({shown_error(failure)});"
        " what was released stays paid for, so repeat with another student."
    ) from failure


def refuse_beyond(X_public: Any, rows: IntArray) -> None:
    """Refuse a release that asked rows which the public pool does not have."""
    n_public = np.shape(X_public)[0]
    if not rows.max() < n_public:
        raise DataError(f"The release asked row {rows.max()} of a public pool of {n_public} rows.")


def _fitted_in_place(
    student: Any, X_public: Any, released: ReleasedLabels, abstentions: str, seed: int, basis: Any
) -> Any:
    """Return the student fitted, in place but for a constant one."""
    if learns_from_counts(student):
        return _fit_counts(student, X_public, released)
    if released.by_record:
        # what a model of the votes of records says of the whole pool
        rows = X_public
        values = _fit_counts(RecordVotesStudent(basis), X_public, released).predict(X_public)
    else:
        queries, labels = _queries_and_labels(released, abstentions, seed)
        rows, values = take_rows(X_public, queries), released.class_values[labels]
    # most classifiers refuse to learn a single class
    if len(set(values.tolist())) == 1:
        return DummyClassifier(strategy="constant", constant=values[0]).fit(rows, values)
    return student.fit(rows, values)


def _fit_counts(student: Any, X_public: Any, released: ReleasedLabels) -> Any:
    # Transformers see the whole pool, of which the answered points are a part.
    if released.noisy_counts is None:
        raise DataError(
            "the student learns from noisy counts, but labels alone were released; release counts."
        )
    pool = X_public
    if isinstance(student, Pipeline):
        for _, transformer in student.steps[:-1]:
            if transformer is not None and transformer != "passthrough":
                pool = transformer.fit_transform(pool)
    answered, last = released.answered, _last_step(student)
    terms: dict[str, Any] = {"sigma": released.sigma, "classes": released.class_values}
    if not isinstance(last, RecordVotesStudent):
        terms["n_teachers"] = released.n_teachers
        if released.by_record:
            # the scale that a number of teachers is elsewhere: the votes at a point, in the mean
            mean = float(released.noisy_counts.sum(axis=1).mean())
            terms["n_teachers"] = max(1, round(mean))
    elif released.by_record:
        terms["votes_per_record"] = released.votes_per_record
    else:
        raise DataError(
            "RecordVotesStudent learns from votes of records, and teachers voted; take a"
            " NoisyCountsClassifier."
        )
    asked, counts = take_rows(pool, released.queries[answered]), released.noisy_counts[answered]
    last.fit(asked, counts, pool=pool, **terms)
    return student


def _knowing_nothing(released: ReleasedLabels) -> DummyClassifier:
    """Return a constant student, with a warning, of a release that answered nothing."""
    # Not an error: the release is paid for all the same, and its certificate is useful.
    warnings.warn(
        "no query was answered, so the student is a constant; use more teachers, fewer abstentions"
        " or Gaussian voting.",
        UserWarning,
        stacklevel=3,
    )
    classes = released.class_values
    return DummyClassifier(strategy="constant", constant=classes[0]).fit(
        np.zeros((len(classes), 1)), classes
    )


def _queries_and_labels(
    released: ReleasedLabels, abstentions: str, seed: int
) -> tuple[IntArray, IntArray]:
    """Return queries and label indices after the rule for unanswered points."""
    answered = released.answered
    if abstentions == "drop":
        return released.queries[answered], released.labels[answered]
    labels = released.labels.copy()
    if abstentions == "majority":
        labels[~answered] = np.bincount(labels[answered]).argmax()
    else:
        labels[~answered] = np.random.default_rng(seed).integers(
            released.n_classes, size=int((~answered).sum())
        )
    return released.queries, labels


def _last_step(student: Any) -> Any:
    return student.steps[-1][1] if isinstance(student, Pipeline) else student


# --- between rounds: what a student predicts, and what of that an interactive mechanism left
# standing (Papernot et al. 2018, Algorithm 2, line 4), read off released labels alone ---


class StudentInRounds:
    """Fit a student again before each round, to what was released and confirmed so far.

    Parameters
    ----------
    fit : callable
        Released labels to a student fitted to them.
    X_public : array, sparse matrix or frame of shape (n, n_features)
        Public points.
    classes : sequence
        Class values.
    n_teachers : int
    confidence : float
        Probability from which on a prediction that was not corrected counts as confirmed.
    """

    def __init__(
        self, fit: Any, X_public: Any, classes: Sequence[Any], n_teachers: int, confidence: float
    ) -> None:
        self._fit, self._X, self._classes = fit, X_public, tuple(classes)
        self._n_teachers, self._confidence = n_teachers, confidence
        self._rows = np.empty(0, dtype=np.int64)
        self._labels = np.empty(0, dtype=np.int64)

    @property
    def labels(self) -> IntArray:
        """Class index of every point so far, released or confirmed; -1 for the others."""
        return self._labels

    def predictions(self, rows: IntArray) -> FloatArray:
        """Return class probabilities of rows of the public points, shape (n, n_classes).

        Zeros as long as no student can be had: before two classes were released, or where it gives
        no probabilities.
        """
        nothing = np.zeros((len(rows), len(self._classes)))
        if not len(rows) or len(np.unique(self._labels[self._labels >= 0])) < 2:
            return nothing
        so_far = ReleasedLabels(
            queries=self._rows,
            labels=self._labels,
            classes=self._classes,
            n_teachers=self._n_teachers,
            sigma=None,
            noisy_counts=None,
        )
        try:
            student = self._fit(so_far)
        except DataError:  # it cannot learn from so little; it may from more
            return nothing
        if not hasattr(student, "predict_proba"):
            return nothing
        found = class_shares(student, take_rows(self._X, rows), self._classes)
        if not np.isfinite(found).all():
            return nothing
        shares = np.clip(found, 0.0, 1.0)
        scaled: FloatArray = shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True))
        return scaled

    def tell(self, rows: IntArray, labels: IntArray, predictions: FloatArray) -> None:
        """Note the answers of one round, shape (n,), and what they confirm of its predictions."""
        sure = predictions.max(axis=1, initial=0.0) >= self._confidence
        confirmed = np.where(sure, predictions.argmax(axis=1), -1)
        self._rows = np.concatenate([self._rows, rows])
        self._labels = np.concatenate([self._labels, np.where(labels < 0, confirmed, labels)])


def _with_confirmations(fit: Any, X_public: Any, released: ReleasedLabels) -> ReleasedLabels:
    """Return a release with the predictions that were confirmed, as labels of their points.

    The rounds of an interactive release are on its certificate, and the student is fitted again
    before each of them, as it was. Any other release is returned as it is.

    Parameters
    ----------
    fit : callable
        Released labels to a student fitted to them, as between the rounds.
    X_public : array, sparse matrix or frame of shape (n, n_features)
        The whole public pool.
    released : ReleasedLabels
    """
    public = released.certificate.get("public", {})
    rounds = released.certificate.get("plan", {}).get("rounds", ())
    if "confidence" not in public or sum(rounds) != len(released.queries):
        return released
    student = StudentInRounds(
        fit, X_public, released.classes, released.n_teachers, public["confidence"]
    )
    start = 0
    # round by round, since the student of each round learns from those before
    for size in rounds:
        rows, labels = (part[start : start + size] for part in (released.queries, released.labels))
        student.tell(rows, labels, student.predictions(rows))
        start += size
    return replace(released, labels=student.labels, certificate={})


def predicted_votes(predictions: ArrayLike, n_teachers: int) -> IntArray:
    """Return how many of the teachers a student's class probabilities stand for, rounded down.

    Whatever they are, the difference from them moves by one vote at most: they serve accuracy.

    Parameters
    ----------
    predictions : array of shape (n_queries, n_classes)
        Class probabilities; rows of zeros stand for no prediction.
    n_teachers : int
    """
    return np.asarray(np.floor(np.asarray(predictions) * n_teachers), dtype=np.int64)


_FEW_POINTS, _POINTS_OF_A_CLASS = 60, 4
_MOST_POINTS = 2000  # of the longest trial
_SHARE = 0.8  # of the dummy votes of a point that go to its class


@dataclass(frozen=True)
class Teaching:
    """What a student will be taught; all public.

    Attributes
    ----------
    classes : sequence
        Class values, as they will be released.
    n_points : int
        Public points that will have an answer.
    votes : int or None
        How many votes there are at a point, where noisy counts are released; None where labels
        alone are.
    by_record : bool
        Whether records cast the votes for themselves.
    """

    classes: Sequence[Any]
    n_points: int
    votes: int | None = None
    by_record: bool = False


def try_student(student: Any, X_public: Any, teaching: Teaching, *, basis: Any = None) -> Any:
    """Return a clone of the student, fitted to the first public points under dummy labels, which
    are the classes in turn: to as many as it will get, up to two thousand.

    Parameters
    ----------
    student : classifier
    X_public : array, sparse matrix or frame of shape (n_public, n_features)
    teaching : Teaching
    basis : transformer with `integers`, optional
        As for `fit_student`.

    Raises
    ------
    ParameterError
        If it cannot learn from them, or predict them.
    MemoryError
        If memory ran out.
    """
    try:
        return _trial_fit(student, X_public, teaching, basis)
    except MemoryError:  # what memory there is, is no property of the student
        raise
    except Exception as error:  # any learner may raise anything; points and labels are public
        cause = error.__cause__ if isinstance(error, DataError) else error
        problem = str(error).rstrip(".") if cause is None else shown_error(cause)
    raise ParameterError(
        Parameter("student"),
        " cannot be trained on the public points with dummy labels of the declared classes:"
        f" {problem}. Nothing was spent; fix the student, or take another one.",
    )


def _trial_fit(student: Any, X_public: Any, teaching: Teaching, basis: Any = None) -> Any:
    """Return a clone that was fitted to the first public points under dummy labels, and has
    predicted them, or raise whatever it raises; parameters are those of `try_student`."""
    few = max(_FEW_POINTS, _POINTS_OF_A_CLASS * len(teaching.classes))
    n_points = max(few, min(teaching.n_points, _MOST_POINTS))
    n_public = np.shape(X_public)[0]
    # the first ones again and again, where there are fewer
    points = take_rows(X_public, np.resize(np.arange(min(n_points, n_public)), n_points))
    with own_global_states(0), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dummies = _dummy_release(teaching, n_points)
        fitted = fit_student(student, points, dummies, random_state=0, basis=basis)
        fitted.predict(points)
    return fitted


def _dummy_release(teaching: Teaching, n_points: int) -> ReleasedLabels:
    """Return a release that says the classes in turn, of the kind that the student will get."""
    n_classes = len(teaching.classes)
    labels = np.arange(n_points) % n_classes
    about: dict[str, Any] = {"classes": tuple(teaching.classes), "n_teachers": 1}
    if teaching.votes is not None:
        shares = np.where(np.eye(n_classes)[labels] > 0, _SHARE, (1 - _SHARE) / (n_classes - 1))
        counts = np.rint(teaching.votes * shares).astype(np.int64)
        # of two classes teachers' votes are counted for the second alone
        about["noisy_counts"] = counts if teaching.by_record or n_classes > 2 else counts[:, 1]
        about["sigma"], about["n_teachers"] = 1.0, 0 if teaching.by_record else teaching.votes
    if teaching.by_record:
        guarantee = {"unit": "record", "relation": "add-remove"}
        shape = {"guarantee": guarantee, "moved": 1}
        about["certificate"] = {"public": {"method": "record-votes"}, "shape": shape}
    return ReleasedLabels(np.arange(n_points), labels, **about)


_AUTO: dict[str, Maker] = {"auto": lambda n_classes: None}
_CLASSIFIERS: dict[str, Maker] = {
    **_AUTO,
    "boosted": lambda n_classes: VotingStudent(random_state=0),
    **CLASSIFIERS,
    "logistic": lambda n_classes: LogisticRegression(max_iter=1000),
}
_REGRESSORS: dict[str, Maker] = {**_AUTO, **REGRESSORS}


def student_by_name(name: str, *, of_numbers: bool = False) -> Any:
    """Return a new learner of that name; None for "auto", the best measured for what is released.

    Parameters
    ----------
    name : str
        "auto", "boosted", a teacher's name, with settings or without, or "package.module:Class".
    of_numbers : bool
        Whether it learns a number; then "auto" or a name of such a teacher.

    Raises
    ------
    ParameterError
        If the name or one of its settings is unknown, or not taken by the learner, or the class
        cannot be imported, made or used as a classifier.
    """
    return learner_by_name(name, _REGRESSORS if of_numbers else _CLASSIFIERS, "student")
