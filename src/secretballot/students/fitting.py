"""From released labels and the public pool to a fitted student."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from secretballot._points import take_rows
from secretballot._seeded import own_global_states, public_seed, with_own_seeds
from secretballot._typing import IntArray
from secretballot._validation import ABSTENTIONS, check_choice, shown_error
from secretballot.exceptions import DataError, SecretBallotError
from secretballot.released import ReleasedLabels
from secretballot.students.confirmed import with_confirmations
from secretballot.students.noisy_counts import NoisyCountsClassifier, VoteShareClassifier
from secretballot.students.numbered_classes import NumberedClassesClassifier
from secretballot.students.record_votes import RecordVotesStudent

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
    n_public = X_public.shape[0] if hasattr(X_public, "shape") else len(X_public)
    if not released.answered.any():
        return _knowing_nothing(released)
    if not released.queries.max() < n_public:
        raise DataError(
            f"the release asked row {released.queries.max()} of a public pool of {n_public} rows."
        )
    seed = public_seed(random_state, "student")
    released = with_confirmations(
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
        by_record = released.by_record
        terms["n_teachers"] = _votes_per_point(released) if by_record else released.n_teachers
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


def _votes_per_point(released: ReleasedLabels) -> int:
    """Return how many votes of records a point got on average, as the noisy counts tell: the scale
    that a number of teachers is elsewhere. Nothing else is made of it."""
    assert released.noisy_counts is not None
    return max(1, round(float(released.noisy_counts.sum(axis=1).mean())))


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
