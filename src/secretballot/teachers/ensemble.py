"""Train one learner per shard, each from its own part, public settings and randomness of its own,
and count their votes on public points: linear ones stacked, the others one by one.

Some learners are trained many at a time. Such a learner has, besides what a classifier has:

- ``slots(n_features, n_teachers)``: how many shards of so many it takes at once, a public number;
- ``fit_shards(learners, parts)``, a class method that takes one learner and one part for each slot,
  with None for a slot that is empty, and returns one result for each.

It promises that what comes out of a slot follows from what went into it, from the number of slots
and from the slot's place, bit for bit. What is done here keeps all else fixed: which teachers share
a stack, and their places, follow from their numbers; a slot without a shard stays in its place and
is empty; and where a stack fails, its parts are tried again in the same places with the others
empty, until the shard that made it fail is alone.
"""

import hashlib
import json
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

import joblib
import numpy as np
import sklearn
from sklearn.utils.extmath import row_norms

from secretballot._seeded import ALONE, seed_of
from secretballot._typing import (
    AnyArray,
    BoolArray,
    Classifier,
    CountArray,
    FloatArray,
    IntArray,
    JsonView,
    Matrix,
    Progress,
)
from secretballot._validation import check_count, shown
from secretballot.core.private import Votes
from secretballot.core.types import Guarantee, Sample
from secretballot.data.stored import StoredShards
from secretballot.data.tally import check_classes
from secretballot.drafts import sweep_drafts
from secretballot.exceptions import DataError, ParameterError
from secretballot.foreign_code import isolated, one_thread, result_of
from secretballot.named_learners import check_learner
from secretballot.teachers.executors import LOCAL, Workers, workers_of
from secretballot.teachers.rows import as_table, block_bounds, n_rows, row_block, take_rows
from secretballot.teachers.votes import vote_margins
from secretballot.vault import make_vault, read_secret, write_secret

_T = TypeVar("_T")

#: Rows of one shard, of shape (n_records, n_features), and the indices of their classes.
_Part = tuple[Any, IntArray]


@dataclass(frozen=True)
class Recipe:
    """What every shard shares: the unfitted learner, its own seeds, the public random state,
    scikit-learn's settings."""

    teacher: Any
    random_state: int
    seeds: Mapping[str, int]
    settings: JsonView

    @classmethod
    def of(cls, teacher: Any, random_state: int) -> "Recipe":
        """Check the learner and find the seeds it takes.

        Raises
        ------
        ParameterError
            If it is no learner, or shares a random generator between teachers.
        """
        check_learner("teacher", teacher)
        # every source of randomness in the learner gets a seed of its teacher's own, nested ones
        # too
        params = teacher.get_params(deep=True)
        own_seeds = {
            name: params[name] for name in sorted(params) if name.split("__")[-1] == "random_state"
        }
        for name, own in own_seeds.items():
            # a generator that teachers share would make one depend on the shards of others
            if own is not None and (
                isinstance(own, bool) or not isinstance(own, (int, np.integer)) or own < 0
            ):
                raise ParameterError(
                    f"teacher's {name} is {shown(own)}; it must be None or an integer, never a"
                    " shared generator."
                )
        seeds = {name: 0 if own is None else int(own) + 1 for name, own in own_seeds.items()}
        return cls(teacher, random_state, seeds, sklearn.get_config())

    def fresh(self, number: int) -> Any:
        """Return an unfitted copy whose seeds depend on the teacher's number and public numbers
        alone."""
        model = sklearn.clone(self.teacher)
        seeds = {
            name: seed_of(self.random_state, number, place, own)
            for place, (name, own) in enumerate(self.seeds.items())
        }
        return model.set_params(**seeds) if seeds else model


class Shards:
    """Rows of the private table by shard, cut out one shard at a time."""

    def __init__(self, X: Matrix, y_index: IntArray, shards: IntArray, n_teachers: int) -> None:
        self.n_teachers = n_teachers
        self._X, self._y = as_table(X), y_index
        # stable: rows keep their order inside a shard, whatever the other shards hold
        order = np.argsort(shards, kind="stable")
        sizes = np.bincount(shards, minlength=n_teachers)
        self._rows = np.split(order, np.cumsum(sizes)[:-1])

    def part(self, number: int) -> _Part:
        """Return a copy of one shard's rows and labels."""
        rows = self._rows[number]
        return take_rows(self._X, rows), self._y[rows]

    def loader(self, number: int, *, send: bool) -> Callable[[], _Part]:
        """Return what holds one shard."""
        return partial(tuple, self.part(number))


#: Where the teachers' shards come from, one at a time: `part`, or a `loader` that can be pickled,
#: and holds the rows where they are sent or there is nothing to read them from. A shard that cannot
#: be read is no fault of its content and becomes no vote.
ShardSource = Shards | StoredShards


def _can_be_learned(y: IntArray) -> bool:
    """Return whether a shard's labels, of shape (n_records,), are of two classes or more."""
    return len(y) > 0 and not bool((y == y[0]).all())


def train_shard(recipe: Recipe, X: Matrix, y: IntArray, number: int) -> Any:
    """Fit one teacher; return None, which stands for the fixed vote, where its shard does not allow
    that.

    `X` has shape (n_records, n_features) and `y` shape (n_records,), of this shard alone.

    Raises
    ------
    ResourceError
        If the machine failed, and not the shard.
    """
    if not _can_be_learned(y):
        return None

    def fit() -> Any:
        model = recipe.fresh(number)
        model.fit(X, y)
        return model

    return alone(fit, seed_of(recipe.random_state, number), recipe.settings)


def alone(work: Callable[[], _T], seed: int, settings: JsonView) -> _T | None:
    """Return what a learner makes of its own part, in silence and with global random states of its
    own; None where it fails.

    Parameters
    ----------
    work : callable
    seed : int
        Of the random states.
    settings : mapping
        scikit-learn's configuration.

    Raises
    ------
    ResourceError
        If the machine failed, and not the learner.
    """

    def isolated_work() -> _T:
        with isolated(seed, settings):
            return work()

    return _result_once_seeded(isolated_work)


def _result_once_seeded(work: Callable[[], _T]) -> _T | None:
    """Return `result_of` the work, done again where it was the first to import torch.

    Torch's generators can be seeded for a step only once torch is there: what a step drew from them
    before would depend on whether it was the first.

    Raises
    ------
    ResourceError
        As `result_of` does.
    """
    imported = "torch" in sys.modules
    result = result_of(work)
    return result if imported or "torch" not in sys.modules else result_of(work)


def _trained(
    recipe: Recipe,
    source: ShardSource,
    numbers: Sequence[int],
    workers: Workers | None,
    *,
    send: bool = False,
) -> Generator[tuple[int, Any]]:
    """Yield (number, teacher or None) as the teachers are finished, in any order.

    Parameters
    ----------
    recipe : Recipe
    source : ShardSource
    numbers : list of int
        Of the teachers that are not finished.
    workers : Workers, optional
    send : bool
        Whether shards are sent though workers could read them.

    Raises
    ------
    ResourceError
        If the machine failed, here or where a task ran.
    DataError
        If a shard cannot be read, or teachers cannot be pickled.
    """
    n_slots = _slots_of(recipe.teacher, source) if numbers else 1
    # the teachers of a stack are trained together or not at all
    firsts = sorted({number - number % n_slots for number in numbers})
    units = [range(first, min(first + n_slots, source.n_teachers)) for first in firsts]
    if workers is None or not units:
        for unit in units:
            loaders = [partial(source.part, number) for number in unit]
            yield from _train_unit(unit, loaders, recipe, n_slots)
        return
    tasks = ((unit, [source.loader(number, send=send) for number in unit]) for unit in units)
    with closing(workers.results(_train_unit, tasks, recipe, n_slots)) as finished:
        for some in finished:
            yield from some


def _train_unit(
    numbers: Sequence[int], loaders: Sequence[Callable[[], _Part]], recipe: Recipe, n_slots: int
) -> list[tuple[int, Any]]:
    """Return (number, teacher or None) for teachers that are trained at once.

    Parameters
    ----------
    numbers : sequence of int
        One after the other; the last stack may have fewer of them than slots.
    loaders : list of callable
        Return the shard of each.
    recipe : Recipe
    n_slots : int
    """
    parts = [load() for load in loaders]
    if n_slots == 1:
        return [(numbers[0], train_shard(recipe, *parts[0], numbers[0]))]
    learners = [recipe.fresh(numbers[0] + place) for place in range(n_slots)]
    fit_shards = type(learners[0]).fit_shards
    # one that cannot be learned gets the fixed vote, and must not stop the others of its stack
    filled = [part if _can_be_learned(part[1]) else None for part in parts]
    models = _each_slot(
        lambda kept: list(fit_shards(learners, kept)),
        [*filled, *[None] * (n_slots - len(filled))],
        seed_of(recipe.random_state, numbers[0], 2),
        recipe.settings,
    )
    return list(zip(numbers, models, strict=False))


def _slots_of(teacher: Any, source: ShardSource) -> int:
    """Return how many unfitted learners are trained at once, by the width of the first shard."""
    if not all(callable(getattr(teacher, name, None)) for name in ("slots", "fit_shards")):
        return 1
    width = int(source.part(0)[0].shape[1])
    return _result_once_seeded(lambda: int(teacher.slots(width, source.n_teachers))) or 1


def _each_slot(
    work: Callable[[Sequence[Any]], list[_T | None]],
    slots: Sequence[Any],
    seed: int,
    settings: JsonView,
) -> list[Any]:
    """Return what the work makes of every slot, as `alone`, None for the empty ones and those that
    make it fail."""
    filled = [place for place, what in enumerate(slots) if what is not None]
    results: list[Any] = [None] * len(slots)
    waiting = [filled] if filled else []
    while waiting:
        places = waiting.pop()
        kept = [slots[place] if place in places else None for place in range(len(slots))]
        done = alone(partial(work, kept), seed, settings)
        if done is not None and len(done) == len(slots):
            for place in places:
                results[place] = done[place]
        elif len(places) > 1:
            middle = len(places) // 2
            waiting += [places[:middle], places[middle:]]
    return results


def ballots(
    ask: Callable[[Recipe, int, Any, Any, Any], _T],
    teacher: Any,
    source: ShardSource,
    X_public: Any,
    *,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Iterator[_T]:
    """Yield what a teacher of every shard says of the public points.

    Parameters
    ----------
    ask : `labels_of_shard` or `numbers_of_shard`
    teacher : classifier of 0 and 1, or regressor
    source : ShardSource
        Of parts with targets of 0 and 1, shape (n_records, n_labels), or numbers, shape
        (n_records,).
    X_public : table of shape (n_public, n_features)
    random_state : int
    progress : callable, optional
        Called with (teachers done, teachers in all).

    Raises
    ------
    ResourceError
        If the machine failed, and not a learner at its shard.

    Privacy
    -------
    Sensitivity : a ballot follows from the teacher's own shard, its number and public values.
    """
    recipe = Recipe.of(teacher, random_state)
    with one_thread():
        for number in range(source.n_teachers):
            ballot = ask(recipe, number, *source.part(number), X_public)
            if progress is not None:
                progress(number + 1, source.n_teachers)
            yield ballot


def labels_of_shard(
    recipe: Recipe, number: int, X: Any, Y: IntArray, points: Any
) -> tuple[BoolArray, FloatArray]:
    """Return what a teacher names at the public points, and how sure it is, shapes (n_public,
    n_labels).

    One copy of it learns each label. A label that the shard has throughout, or nowhere, is named
    throughout, or nowhere; one that cannot be learnt there is not named.
    """
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


def numbers_of_shard(recipe: Recipe, number: int, X: Any, y: FloatArray, points: Any) -> FloatArray:
    """Return the numbers that a teacher predicts at the public points, shape (n_public,).

    One that cannot be trained, or asked, predicts no number anywhere. A target that is nan leaves
    its record out.
    """
    known, found = np.flatnonzero(~np.isnan(y)), None
    if len(known):
        rows, targets = take_rows(X, known), y[known]
        # the seed is the teacher's own: a ballot depends on no other shard
        seed = seed_of(recipe.random_state, number, 3)
        found = alone(
            lambda: _predicted(recipe.fresh(number).fit(rows, targets), points, 0),
            seed,
            recipe.settings,
        )
    return np.full(n_rows(points), np.nan) if found is None else np.asarray(found)


def _named_points(
    recipe: Recipe, number: int, X: Any, has: IntArray, points: Any
) -> tuple[BoolArray, FloatArray]:
    """Return which points a learner of this shard gives the label, and how sure it is of that."""
    model = recipe.fresh(number).fit(X, has)
    sure = labels = _predicted(model, points, 2)
    if hasattr(model, "predict_proba"):
        shares = np.asarray(model.predict_proba(points), dtype=np.float64)
        sure = shares[:, list(model.classes_).index(1)]
    return labels == 1, sure


def _predicted(model: Any, points: Any, n_classes: int) -> Any:
    """Return what a learner predicts at points, shape (n_points,): class indices, int64; of 0
    classes numbers, float64.

    Raises
    ------
    ValueError
        If the prediction is not one declared class, or number, per row.
    """
    found = np.asarray(model.predict(points))
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.shape != (n_rows(points),) or found.dtype.kind not in "biufO":
        raise ValueError("a prediction must be one class or number per row")
    # Through floats, which compare nan and fractions away; class indices are exact in them.
    numbers = found.astype(np.float64)
    if not n_classes:
        return numbers
    if not bool(((numbers >= 0) & (numbers < n_classes) & (numbers == np.floor(numbers))).all()):
        raise ValueError("a prediction must be a declared class")
    return numbers.astype(np.int64)


_LINEAR = frozenset(
    [
        "LogisticRegression",
        "LogisticRegressionCV",
        "LinearSVC",
        "RidgeClassifier",
        "RidgeClassifierCV",
        "SGDClassifier",
    ]
)
_DOUBLE = np.finfo(np.float64)
# A decision that passed this magnitude on the way may have overflowed; the teacher is asked itself.
_LARGEST = 1e-6 * float(_DOUBLE.max)


#: A fitted teacher as `block @ weights.T + bias`, weights of shape (k, n_features), bias of shape
#: (k,): k = 1 for two classes, else one row per class; and the class index of each decision.
_LinearForm = tuple[FloatArray, FloatArray, tuple[int, ...]]


class _LinearStack:
    """Linear teachers that see the same columns and the same classes, stacked: their votes are
    counted by one matrix product per block, as their own `predict` would cast them.

    A stacked product sums in another order than a teacher does, so a decision value near zero may
    come out with the other sign. Both orders are within a rounding bound of the true value; where
    a value lies within that bound, the teacher is asked itself, on the same block, and its answer
    is taken. This is no nicety: the order of a stacked sum depends on which other teachers are in
    the stack, and no shard may decide a rounding of another's vote.

    Use `gather`: it takes the teachers that are surely linear and leaves the rest.
    """

    def __init__(self, models: Mapping[int, Classifier], forms: Sequence[_LinearForm]) -> None:
        self.models = dict(models)
        weights, biases, (self._classes, *_) = zip(*forms, strict=True)
        self._n_decisions = len(biases[0])
        self._weights, self._bias = np.concatenate(weights).T.copy(), np.concatenate(biases)
        with np.errstate(over="ignore"):
            self._norm = np.array([np.linalg.norm(one, axis=1).max() for one in weights])
        self._offset = np.array([np.abs(one).max() for one in biases])

    @classmethod
    def gather(cls, models: Mapping[int, Any], n_classes: int) -> list["_LinearStack"]:
        """Return stacks of the linear teachers among `models`."""
        groups: dict[Any, dict[int, _LinearForm]] = {}
        for number, model in models.items():
            # None too where a teacher's attributes are odd: its own predict says what it votes
            form = result_of(partial(_linear_form, model))
            if form is not None and min(form[2]) >= 0 and max(form[2]) < n_classes:
                groups.setdefault((form[2], form[0].shape[1]), {})[number] = form
        return [
            cls({number: models[number] for number in forms}, list(forms.values()))
            for forms in groups.values()
        ]

    def takes(self, X: Any) -> bool:
        """Return whether `X`, of shape (n_queries, n_features), is an array or a sparse matrix of
        doubles, whose arithmetic the bound covers, with the columns of these teachers."""
        is_plain = not hasattr(X, "iloc") and X.ndim == 2 and X.dtype == np.float64
        return is_plain and X.shape[1] == len(self._weights)

    def counts(self, poll: "Poll") -> CountArray:
        """Return the votes on all rows of a poll, of shape (n_queries, n_classes).

        Raises
        ------
        Exception
            What a teacher raises that had to be asked itself.
        """
        counts = poll.no_votes()
        for rows, block in poll.blocks():
            self._count(block, counts[rows], poll)
        return counts

    def _count(self, block: Any, counts: CountArray, poll: "Poll") -> None:
        """Add the votes on one block to the counts of its rows."""
        with np.errstate(all="ignore"):
            scores = np.asarray(block @ self._weights) + self._bias
            votes, distance = self._votes_and_distances(scores)
            # greater, rather than not less: a value that is not a number is unsure too
            bound = self._error_bound(row_norms(block), block.shape[1])
            sure = np.asarray((distance > bound).all(axis=0))
        for place, index in enumerate(self._classes):
            counts[:, index] += np.count_nonzero(votes[:, sure] == place, axis=1)
        if sure.all():
            return
        every_row, models = np.arange(len(counts)), list(self.models.values())
        # around the teachers alone: it takes longer than the product for one row
        with one_thread(), isolated(seed_of(poll.random_state), poll.settings):
            for teacher in np.flatnonzero(~sure).tolist():
                counts[every_row, _predicted(models[teacher], block.copy(), counts.shape[1])] += 1

    def _votes_and_distances(self, scores: FloatArray) -> tuple[AnyArray, FloatArray]:
        """Return votes as places in the classes, and how far each is from another, shapes (rows,
        teachers)."""
        if self._n_decisions == 1:
            return scores > 0, np.abs(scores)
        scores = scores.reshape(len(scores), len(self.models), self._n_decisions)
        top = np.partition(scores, -2, axis=2)[:, :, -2:]
        # Two decisions err, so half their gap is compared with the error of one.
        return scores.argmax(axis=2), (top[:, :, 1] - top[:, :, 0]) / 2

    def _error_bound(self, row_norms: FloatArray, width: int) -> FloatArray:
        """Return a bound on |stacked - teacher's own decision|, shape (rows, teachers).

        Infinite where unsure.

        With gamma = (n_features + a few) * eps, the standard bound of a dot product in any order is
        gamma * |x|.|w|, at most gamma * norm(x) * norm(w). Both sides err, and the factor 4 is
        generous.
        """
        size = row_norms[:, None] * self._norm + self._offset
        error = 4 * (width + 10) * (float(_DOUBLE.eps) * size + float(_DOUBLE.tiny))
        return np.where(np.maximum(size, row_norms[:, None]) < _LARGEST, error, np.inf)


def _linear_form(model: Any) -> _LinearForm | None:
    """Return the linear form of a fitted teacher, or None where its votes are not surely those
    of one."""
    # exact types only: a subclass may predict otherwise than its parent
    kind = type(model)
    if kind.__name__ not in _LINEAR or not kind.__module__.startswith("sklearn."):
        return None
    weights, classes = np.atleast_2d(model.coef_), np.asarray(model.classes_)
    decisions = 1 if len(classes) == 2 else len(classes)
    if weights.shape[:-1] != (decisions,) or classes.dtype.kind not in "iu":
        return None
    bias = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (decisions,))
    # with infinite or missing numbers the error bound says nothing, so the model votes by itself
    if weights.dtype != np.float64 or not (np.isfinite(weights).all() and np.isfinite(bias).all()):
        return None
    return weights, bias, tuple(int(value) for value in classes)


class Poll(NamedTuple):
    """What teachers are asked; public.

    Attributes
    ----------
    X : table of shape (n_queries, n_features)
    n_classes : int
    block_rows : int
        Rows given to a learner at once.
    random_state : int
        From which the global random states are seeded while a learner predicts.
    settings : mapping
        scikit-learn's configuration while a learner predicts.
    """

    X: Any
    n_classes: int
    block_rows: int
    random_state: int
    settings: JsonView

    def no_votes(self) -> CountArray:
        """Return counts of 0, of shape (n_queries, n_classes)."""
        return np.zeros((n_rows(self.X), self.n_classes), dtype=np.int32)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield copies of consecutive rows, and their places."""
        for start, stop in block_bounds(n_rows(self.X), self.block_rows):
            yield slice(start, stop), row_block(self.X, start, stop)


def count_ballots(teachers: Mapping[int, Classifier | None], poll: Poll) -> CountArray:
    """Count the votes of some teachers, asked one by one.

    Parameters
    ----------
    teachers : mapping of teacher number to fitted learner or None
        None, and any learner that fails on any block, votes its fixed class on every row.
    poll : Poll

    Returns
    -------
    ndarray of shape (n_queries, n_classes), int32

    Raises
    ------
    ResourceError
        If the machine failed, and not a learner at its shard.
    """
    counts, every_row = poll.no_votes(), np.arange(n_rows(poll.X))
    for number, model in teachers.items():
        # a teacher's randomness follows from its number, not from who was asked before it
        work, seed = partial(_votes_on_all, model, poll), seed_of(poll.random_state, number, 1)
        votes = None if model is None else alone(work, seed, poll.settings)
        # a teacher that cannot vote still casts one vote, for a class that its number fixes: how
        # many failed is private
        counts[every_row, number % poll.n_classes if votes is None else votes] += 1
    return counts


def _votes_on_all(model: Any, poll: Poll) -> AnyArray:
    votes = np.empty(n_rows(poll.X), dtype=np.min_scalar_type(poll.n_classes))
    for rows, block in poll.blocks():
        votes[rows] = _predicted(model, block, poll.n_classes)
    return votes


class _TeacherStore:
    """Finished teachers of one run, under `vault`/teachers, so that an interrupted run resumes
    where it stopped.

    A teacher's file holds private data. It is written whole or not at all, readable by its owner
    alone, and read back only when it belongs to the current user and to the very same run:
    unpickling runs code, and a teacher of other data would break the account of what was released.

    Parameters
    ----------
    vault : path
        Made with mode 0700 where absent, and closed to others where open.
    binding : str
        Digest of all that a teacher depends on; files of another binding are left alone.

    Raises
    ------
    DataError
        If the folder cannot be made or closed to others, or cannot be written.
    """

    def __init__(self, vault: Path, binding: str) -> None:
        self._folder = vault / "teachers"
        self._binding = binding
        self._waiting: dict[int, Any] = {}
        self._flushed = time.monotonic()
        for folder in (vault, self._folder):
            make_vault(folder)
        sweep_drafts(self._folder, "*.teachers")

    def load(self) -> dict[int, Any]:
        """Return the teachers found, by number.

        A file that is damaged, foreign or of another run counts as absent.
        """
        found: dict[int, Any] = {}
        for path in sorted(self._folder.glob(f"{self._binding[:16]}-*.teachers")):
            found.update(self._read_models(path))
        return found

    def add(self, number: int, model: Any) -> None:
        """Keep one teacher; it reaches the disk within two seconds of fitting or at `flush`."""
        self._waiting[number] = model
        if time.monotonic() - self._flushed > 2.0:
            self.flush()

    def flush(self) -> None:
        """Write every waiting teacher to the disk."""
        waiting, self._waiting = self._waiting, {}
        content = _pickled_model(waiting)
        self._flushed = time.monotonic()
        if waiting and content is not None:
            place = self._folder / f"{self._binding[:16]}-{min(waiting):06d}.teachers"
            write_secret(place, _bound(content, self._binding))

    def _read_models(self, path: Path) -> dict[int, Any]:
        # Whatever is wrong with the file, the teachers can be trained again.
        with suppress(Exception):
            return _value_in(read_secret(path, own=True), self._binding) or {}
        return {}


def _bound(payload: bytes, binding: str) -> bytes:
    """Return a pickled value as a file holds it: behind its digest, and that of what it depends
    on."""
    return f"{binding} {hashlib.sha256(payload).hexdigest()}\n".encode() + payload


def _value_in(content: bytes | None, binding: str) -> Any:
    """Return the value of a file, None where it is damaged or depends on something else."""
    _, _, payload = (content or b"").partition(b"\n")
    return pickle.loads(payload) if content == _bound(payload, binding) else None


def _pickled_model(model: Any) -> bytes | None:
    """Return a pickled model; None where it cannot be pickled, and is trained again in the next
    run."""
    try:
        return pickle.dumps(model)
    except Exception:
        return None


def learner_identity(learner: Any) -> str | None:
    """Return a digest of an unfitted learner with its settings, the same in every process; None
    where it cannot be pickled, since two that look alike may differ."""
    try:
        return str(joblib.hash(learner, hash_name="sha1"))
    except Exception:
        return None


# Entries of a block's decision values held at once: 2**21 doubles are 16 MiB.
_BLOCK_CELLS, _LEAST_ROWS = 2**21, 256
_VOTES_HERE = 2**16  # of teachers asked one by one; fewer do not repay sending teachers to workers
_BY_RECORD = Guarantee(unit="record", relation="add-remove")


class TeacherEnsemble:
    """Teachers trained on disjoint shards.

    Private, so it shows its shape alone and refuses to be pickled.

    Make one with `fit`.

    Attributes
    ----------
    n_teachers, n_classes : int
        The public shape.

    Privacy
    -------
    Unit : whatever the shards keep together.
    Sensitivity : a teacher is a function of its own shard, its number and public values, so one
        unit changes the votes of one teacher. What passes the process by other ways (time, a crash
        of the machine) is not covered.

    Examples
    --------
    >>> from secretballot.teachers.ensemble import Shards
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = np.zeros((6, 1)), np.array([0, 0, 1, 1, 1, 1])
    >>> shards = Shards(X, y, np.array([0, 0, 1, 1, 2, 2]), n_teachers=3)
    >>> teachers = sb.teachers.TeacherEnsemble.fit(DummyClassifier(), shards, n_classes=2)
    >>> teachers
    TeacherEnsemble(n_teachers=3, n_classes=2, teachers=<private>)
    >>> teachers.vote_counts(np.zeros((4, 1))).shape.n_queries
    4
    """

    def __init__(
        self,
        teachers: Sequence[Classifier | None],
        n_classes: int,
        random_state: int = 0,
        *,
        workers: Workers | None = None,
    ) -> None:
        self._teachers = list(teachers)
        self.n_teachers = len(self._teachers)
        self.n_classes = n_classes
        self._random_state = random_state
        self._workers = workers

    @cached_property
    def _stacks(self) -> list[_LinearStack]:
        # a session asks the same teachers point by point, and folding their weights takes longer
        # than a vote; a teacher is never fitted again
        return _LinearStack.gather(dict(enumerate(self._teachers)), self.n_classes)

    @classmethod
    def fit(
        cls,
        teacher: Classifier,
        source: ShardSource,
        *,
        n_classes: int,
        n_jobs: int | None = None,
        engine: Any = LOCAL,
        random_state: int = 0,
        kept: tuple[Path, str] | None = None,
        progress: Progress | None = None,
        send_shards: bool = False,
    ) -> "TeacherEnsemble":
        """Train one copy of `teacher` on every shard of a source.

        A shard that cannot be trained (no records, one class, a learner that fails) is no error:
        its teacher votes the class (teacher number mod `n_classes`) on every query, a rule that
        reads nothing.

        Parameters
        ----------
        teacher : classifier or pipeline
            With scikit-learn's fit, predict and get_params; copied for every shard.
        source : ShardSource
            Its labels are class indices from 0 to `n_classes` - 1: whoever made it checked that.
        n_classes : int
        n_jobs : int, optional
            Worker processes; None follows `joblib.parallel_config`, else one.
        engine : str, distributed.Client or concurrent.futures.Executor, default "local"
            Where teachers are trained, and vote: here, or on the workers of a cluster that runs
            already inside the trusted side. "dask://HOST:PORT", a client, or "dask" for this
            process's client; "ray" for the Ray that runs; or any executor.
            The votes are the same.
        random_state : int
            Public; with a teacher's number it fixes that teacher's randomness.
        kept : tuple of path and str, optional
            Folder in which finished teachers are kept, so that an interrupted run resumes, and a
            digest of the data and all settings that led to the shards.
        progress : callable, optional
            Called with (teachers done, teachers in all).
        send_shards : bool
            Whether a cluster's workers are sent the shards that lie in files, rather than read
            them.

        Raises
        ------
        ParameterError
            If a setting is out of range.
        DataError
            If the vault cannot be used, or a shard cannot be read.
        ResourceError
            If memory, files or processes ran out.
        """
        n_teachers = source.n_teachers
        check_count("random_state", random_state, minimum=0)
        recipe, workers = Recipe.of(teacher, random_state), workers_of(engine, n_jobs)
        store, finished = None, dict[int, Any]()
        if kept is not None and (learner := learner_identity(recipe.teacher)) is not None:
            about = learner, random_state, n_teachers, n_classes
            store = _TeacherStore(kept[0], _binding_of([kept[1], *about]))
            finished = store.load()
        # only numbers of this run count, whatever a stored file names
        finished = {number: finished[number] for number in range(n_teachers) if number in finished}
        waiting = [number for number in range(n_teachers) if number not in finished]
        if progress is not None and finished:
            progress(len(finished), n_teachers)
        models = _trained(recipe, source, waiting, workers, send=send_shards)
        # an interrupted fit keeps what it has; the same call goes on from there
        try:
            # closed at once where one of these raises, which takes back what waits elsewhere
            with one_thread(), closing(models):
                for number, model in models:
                    finished[number] = model
                    if store is not None:
                        store.add(number, model)
                    if progress is not None:
                        progress(len(finished), n_teachers)
        finally:
            if store is not None:
                store.flush()
        return cls(
            [finished[number] for number in range(n_teachers)],
            n_classes,
            random_state,
            workers=workers,
        )

    def vote_counts(
        self,
        X_public: Any,
        *,
        classes: object = None,
        guarantee: Guarantee = _BY_RECORD,
        sample: Sample | None = None,
    ) -> Votes:
        """Let every teacher vote on every public point.

        Parameters
        ----------
        X_public : table of shape (n_queries, n_features)
            Public points with the columns that the teachers were trained on.
        classes : list, optional
            The class values behind the indices; 0 to n_classes - 1 where none are given.
        guarantee : Guarantee, optional
            What the shards were made for; by record under add-remove by default.
        sample : Sample, optional
            The secret sample that the teachers learned from.

        Raises
        ------
        ResourceError
            If memory, files or processes ran out.
        """
        values = None if classes is None else check_classes(classes)
        counts = self._counted_votes(X_public)
        return Votes.of_teachers(counts, guarantee, classes=values, sample=sample)

    def margins(self, X_public: Any) -> IntArray:
        """Return the margin of the vote on every public point, shape (n_queries,).

        Parameters
        ----------
        X_public : table of shape (n_queries, n_features)

        Raises
        ------
        ResourceError
            If memory, files or processes ran out.

        Privacy
        -------
        Sensitivity : private, and not releasable: see `votes.vote_margins`. For the curator, and
            the vault.
        """
        return vote_margins(self._counted_votes(X_public))

    def _counted_votes(self, X_public: Any) -> CountArray:
        table = as_table(X_public)
        poll = Poll(
            table,
            self.n_classes,
            # blocks bound the memory, whatever the number of teachers and classes
            max(_LEAST_ROWS, _BLOCK_CELLS // (self.n_teachers * self.n_classes)),
            self._random_state,
            sklearn.get_config(),
        )
        # Whether one of them must be asked by itself depends on private records, and leaving its
        # isolation lets Python show the program's own warnings again: so they always are.
        with ALONE, warnings.catch_warnings():
            pass
        rest, counts = dict(enumerate(self._teachers)), poll.no_votes()
        for stack in self._stacks:
            # where one of them fails, all are asked one by one
            counted = result_of(partial(stack.counts, poll)) if stack.takes(table) else None
            if counted is not None:
                counts += counted
                rest = {n: model for n, model in rest.items() if n not in stack.models}
        if not rest:
            return counts
        workers = self._workers
        if workers is None or n_rows(table) * len(rest) <= _VOTES_HERE:
            with one_thread():
                return counts + count_ballots(rest, poll)
        # one group for each worker, so that the points are sent once to each
        groups = [list(rest.items())[first :: workers.n_slots] for first in range(workers.n_slots)]
        tasks = ((dict(group),) for group in groups if group)
        return sum(workers.results(count_ballots, tasks, poll), counts)

    def packed(self, about: Any) -> bytes:
        """Return the teachers as a file of a vault, with what else is to be known of them, for
        `unpacked`.

        Raises
        ------
        DataError
            If a teacher cannot be pickled.
        """
        payload = _pickled_model((self._teachers, self.n_classes, self._random_state, about))
        if payload is None:
            raise DataError(
                "The teachers cannot be pickled, so they cannot be kept in a vault; use another"
                " learner."
            )
        return _bound(payload, _binding_of(["kept"]))

    @classmethod
    def unpacked(cls, content: bytes) -> "tuple[TeacherEnsemble, Any] | None":
        """Return the teachers of a file that is our own and what else is known of them, None if it
        is damaged or of other library versions."""
        found = result_of(partial(_value_in, content, _binding_of(["kept"])))
        return None if found is None else (cls(*found[:3]), found[3])

    def __repr__(self) -> str:
        return (
            f"TeacherEnsemble(n_teachers={self.n_teachers}, n_classes={self.n_classes},"
            " teachers=<private>)"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "private teachers refuse to be pickled or copied; give fit a vault to keep them in."
        )


def _binding_of(bound: Sequence[Any]) -> str:
    """Return the name of what teachers depend on, the versions of the libraries that pickled
    them included."""
    versions = [sys.version, np.__version__, sklearn.__version__]
    return hashlib.sha256(json.dumps([list(bound), versions]).encode()).hexdigest()
