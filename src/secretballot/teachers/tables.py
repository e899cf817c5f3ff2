"""Teachers of several labels, or of a number: one learner per shard, asked at once and let go."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np

from secretballot._seeded import seed_of
from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.foreign_code import one_thread
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.training import Recipe, ShardSource, alone

T = TypeVar("T")
Progress = Callable[[int, int], None]


def label_ballots(
    teacher: Any, source: ShardSource, X_public: Any, **more: Any
) -> Iterator[tuple[BoolArray, FloatArray]]:
    """Yield what each teacher names at the public points, and how sure it is, shapes (n_public,
    n_labels).

    One copy of `teacher` learns each label on each shard. A label that a shard has throughout, or
    nowhere, is named throughout, or nowhere; one that cannot be learnt there is not named.

    Parameters
    ----------
    teacher : classifier of 0 and 1
    source : ShardSource
        Of parts with targets of 0 and 1, shape (n_records, n_labels).
    X_public : table of shape (n_public, n_features)
    **more
        random_state (0 by default), and progress, called with (teachers done, teachers in all).

    Raises
    ------
    ResourceError
        If the machine failed, and not a learner at its shard.

    Privacy
    -------
    Sensitivity : a ballot follows from the teacher's own shard, its number and public values.
    """
    return _ballots(_labels_of_shard, teacher, source, X_public, **more)


def number_ballots(
    teacher: Any, source: ShardSource, X_public: Any, **more: Any
) -> Iterator[FloatArray]:
    """Yield the numbers that each teacher predicts at the public points, shape (n_public,).

    A teacher that cannot be trained, or asked, predicts no number anywhere. A target that is nan
    leaves its record out.

    Parameters
    ----------
    teacher : regressor
    source : ShardSource
        Of parts with targets that are numbers, shape (n_records,).
    X_public, **more
        As for `label_ballots`, whose errors these are.

    Privacy
    -------
    Sensitivity : as for `label_ballots`.
    """
    return _ballots(_numbers_of_shard, teacher, source, X_public, **more)


def _ballots(
    ask: Callable[[Recipe, int, Any, Any, Any], T],
    teacher: Any,
    source: ShardSource,
    X_public: Any,
    *,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Iterator[T]:
    """Yield what a teacher of every shard answers: by its number, its part and the points."""
    recipe = Recipe.of(teacher, random_state)
    with one_thread():
        for number in range(source.n_teachers):
            ballot = ask(recipe, number, *source.part(number), X_public)
            if progress is not None:
                progress(number + 1, source.n_teachers)
            yield ballot


def _labels_of_shard(
    recipe: Recipe, number: int, X: Any, Y: IntArray, points: Any
) -> tuple[BoolArray, FloatArray]:
    named = np.zeros((n_rows(points), Y.shape[1]), dtype=bool)
    sure = np.zeros(named.shape)
    for label, has in enumerate(Y.T if len(Y) else ()):
        if (has == has[0]).all():
            named[:, label], sure[:, label] = bool(has[0]), float(has[0])
            continue
        # of the teacher and the label alone: a ballot depends on no other shard
        seed = seed_of(recipe.random_state, number, 3, label)
        work = partial(_named_points, recipe, number, X, has, points)
        found = alone(work, seed, recipe.settings)
        if found is not None:
            named[:, label], sure[:, label] = found
    return named, sure


def _numbers_of_shard(
    recipe: Recipe, number: int, X: Any, y: FloatArray, points: Any
) -> FloatArray:
    known, found = np.flatnonzero(~np.isnan(y)), None
    if len(known):
        work = partial(_predicted_numbers, recipe, number, take_rows(X, known), y[known], points)
        # the seed is the teacher's own: a ballot depends on no other shard
        seed = seed_of(recipe.random_state, number, 3)
        found = alone(work, seed, recipe.settings)
    return np.full(n_rows(points), np.nan) if found is None else np.asarray(found)


def _named_points(
    recipe: Recipe, number: int, X: Any, has: IntArray, points: Any
) -> tuple[BoolArray, FloatArray]:
    """Return which points a learner of this shard gives the label, and how sure it is of that."""
    model = recipe.fresh(number).fit(X, has)
    labels = np.asarray(model.predict(points), dtype=np.float64)
    if labels.shape != (n_rows(points),) or not np.isin(labels, (0.0, 1.0)).all():
        raise ValueError("a prediction must be 0 or 1 per row")
    sure = labels
    if hasattr(model, "predict_proba"):
        shares = np.asarray(model.predict_proba(points), dtype=np.float64)
        sure = shares[:, list(model.classes_).index(1)]
    return labels == 1, sure


def _predicted_numbers(
    recipe: Recipe, number: int, X: Any, y: FloatArray, points: Any
) -> FloatArray:
    """Return what a learner of this shard predicts at the points, shape (n_points,)."""
    model = recipe.fresh(number).fit(X, y)
    numbers = np.asarray(model.predict(points), dtype=np.float64)
    if numbers.shape == (n_rows(points), 1):
        numbers = numbers[:, 0]
    if numbers.shape != (n_rows(points),):
        raise ValueError("a prediction must be one number per row")
    return numbers
