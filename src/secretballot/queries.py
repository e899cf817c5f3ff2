"""Which public point to ask next. A strategy sees public points and released labels only.

Strategies for any classes: random rows, rows that cover the pool, and rows where a learner of the
released labels is least sure. For two: where hypotheses that are still in the running disagree
(Algorithm 7 of Liu et al. 2021, with updates at powers of two; exactly for a class of hypotheses,
or by forced fits of any learner).
"""

import math
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import erf
from sklearn.base import clone
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import has_fit_parameter

from secretballot._points import take_rows
from secretballot._seeded import own_global_states, seed_of, with_own_seeds
from secretballot._typing import BoolArray, FloatArray, IntArray, Json, Names, Values
from secretballot._validation import check_choice, check_count, check_finite, named, refusal
from secretballot.exceptions import DataError, ParameterError
from secretballot.hypotheses import HypothesisClass, check_hypotheses
from secretballot.released import ReleasedLabels

__all__ = [
    "CheckedSelector",
    "ClusterSampling",
    "CommitteeSampling",
    "DisagreementSampling",
    "EntropySampling",
    "InRounds",
    "MarginSampling",
    "PassiveSampling",
    "PublicPool",
    "QuerySelector",
    "QueryStrategy",
    "rounds_of",
    "strategy_by_name",
]


_ROUNDS = 20  # where nothing else is set


@dataclass(frozen=True, eq=False)
class PublicPool:
    """All that is known before the first label: public points and public numbers.

    Attributes
    ----------
    X : array, sparse matrix or frame of shape (m, n_features)
        Public points, distinct, in the order of the stream.
    classes : tuple
        Class values; labels are their positions.
    n_queries : int
        Labels that are paid for, at most.
    random_state : int
        Public seed of the strategy.

    Examples
    --------
    >>> pool = sb.queries.PublicPool(np.zeros((5, 2)), ("no", "yes"), n_queries=3, random_state=0)
    >>> pool.n_points
    5
    """

    X: Any
    classes: Values
    n_queries: int
    random_state: int

    @property
    def n_points(self) -> int:
        """Number m of public points."""
        return int(self.X.shape[0])


class QueryStrategy(ABC):
    """How to choose queries. Holds public settings only, and may be used for any number of pools.

    Examples
    --------
    >>> class FirstRows(sb.queries.QueryStrategy):
    ...     def start(self, pool):
    ...         return NextRows(pool)
    ...     def describe(self):
    ...         return {"name": "first rows"}
    >>> FirstRows().describe()
    {'name': 'first rows'}
    """

    @abstractmethod
    def start(self, pool: PublicPool) -> "QuerySelector":
        """Return a selector for this pool.

        Raises
        ------
        ParameterError, DataError
            If the strategy cannot work on this pool; nothing was asked yet.
        """

    @abstractmethod
    def describe(self) -> Json:
        """Return name and settings as JSON values, for the certificate and the report."""


class QuerySelector(ABC):
    """One run through a pool: propose points, receive what was released, and so on.

    It is deterministic given the pool and what it received, so that an interrupted run can be
    taken again: the answers stored under the same questions cost nothing.

    Examples
    --------
    >>> class NextRows(sb.queries.QuerySelector):
    ...     def __init__(self, pool):
    ...         self.rows = np.arange(pool.n_points)
    ...     def propose(self, n):
    ...         rows, self.rows = self.rows[:n], self.rows[n:]
    ...         return rows
    ...     def receive(self, released):
    ...         self.rows = np.setdiff1d(self.rows, released.queries)
    >>> pool = sb.queries.PublicPool(np.arange(20.0)[:, None], (0, 1), n_queries=6, random_state=0)
    >>> NextRows(pool).propose(3).tolist()
    [0, 1, 2]
    """

    @abstractmethod
    def propose(self, n: int) -> IntArray:
        """Return at most `n` new rows of the pool, distinct; empty where no label would help.

        Parameters
        ----------
        n : int
            At least 1.
        """

    @abstractmethod
    def receive(self, released: ReleasedLabels) -> None:
        """Take in everything released so far; `released.queries` are rows of the pool."""


def default_round_size(n_queries: int) -> int:
    """Return how many queries a round has, where nothing else is set."""
    return max(1, n_queries // _ROUNDS)


class CheckedSelector(QuerySelector):
    """Run any strategy, and stop with one sentence at the first proposal that cannot be asked.

    Every step runs on global random states of its own, seeded by the pool's public random state: a
    strategy whose learner draws from them does not depend on what was done before.

    Parameters
    ----------
    strategy : QueryStrategy
    pool : PublicPool

    Examples
    --------
    >>> pool = sb.queries.PublicPool(np.arange(20.0)[:, None], (0, 1), n_queries=6, random_state=0)
    >>> selector = sb.queries.CheckedSelector(sb.queries.PassiveSampling(), pool)
    >>> len(selector.propose(4)), len(selector.propose(40))
    (4, 16)
    """

    def __init__(self, strategy: QueryStrategy, pool: PublicPool) -> None:
        self._pool, self._asked = pool, set[int]()
        with self._own_states():
            self._selector = strategy.start(pool)

    def propose(self, n: int) -> IntArray:
        """Return at most `n` rows that were checked.

        Raises
        ------
        DataError
            If what was proposed is no list of at most `n` integers, lies outside of the pool, or
            repeats a row.
        """
        n = check_count("n", n)
        with self._own_states():
            proposed = np.asarray(self._selector.propose(n))
        if proposed.ndim == 1 and not proposed.size:
            return np.empty(0, dtype=np.int64)
        # types first: a number of float type might round to a row that nobody meant
        fits = proposed.ndim == 1 and proposed.dtype.kind in "iu" and len(proposed) <= n
        rows = set(proposed.tolist()) if fits else set()
        new = rows - self._asked
        if not (fits and len(new) == len(proposed) and new <= set(range(self._pool.n_points))):
            raise DataError(
                f"the strategy proposed an array of {proposed.dtype} of shape {proposed.shape}; it"
                f" must propose a list of at most {n} integers, each row from 0 to"
                f" {self._pool.n_points - 1} once."
            )
        self._asked |= rows
        return proposed.astype(np.int64)

    def receive(self, released: ReleasedLabels) -> None:
        """Hand everything released so far to the strategy."""
        with self._own_states():
            self._selector.receive(released)

    def _own_states(self) -> AbstractContextManager[None]:
        """Return a context seeded by the pool and by how far the run has come."""
        return own_global_states(seed_of(self._pool.random_state, len(self._asked)))


@dataclass(frozen=True)
class _LabelledRows:
    """Rows of the pool with released labels.

    Attributes
    ----------
    rows, labels : ndarray of int64, shape (n,)
        Rows of the pool, and positions among the classes. Abstentions are not among them.
    weights : ndarray of float64, shape (n,)
        Confidence in each label, from 0 to 1; 1 where labels alone were released.
    asked : ndarray of int64, shape (n_queries,)
        All rows that were asked, abstentions included.
    """

    rows: IntArray
    labels: IntArray
    weights: FloatArray
    asked: IntArray

    @classmethod
    def none(cls) -> "_LabelledRows":
        """Return what is known before the first answer."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(nothing, nothing, np.empty(0), nothing)

    def among(self, rows: IntArray) -> "_LabelledRows":
        """Return the part that belongs to `rows`, of shape (k,)."""
        kept = np.isin(self.rows, rows)
        return _LabelledRows(
            self.rows[kept],
            self.labels[kept],
            self.weights[kept],
            self.asked[np.isin(self.asked, rows)],
        )

    @property
    def n_classes(self) -> int:
        """Number of classes of which a label is known."""
        return len(np.unique(self.labels))


def _labelled_rows(released: ReleasedLabels) -> _LabelledRows:
    """Return the answered queries of a release.

    The confidence in a label, where noisy counts are released, is 2 Phi(gap / noise) - 1: Phi(gap /
    noise) is the probability, under a flat prior, that the class with the larger noisy count also
    has the larger true one; 0 says that the label is no better than a guess. Labels alone are
    trusted fully.
    """
    queries, labels = released.queries, released.labels
    weights, counts, sigma = np.ones(len(labels)), released.noisy_counts, released.sigma
    if counts is not None and sigma is not None:
        if counts.ndim == 1:
            gap, noise = np.abs(counts - released.n_teachers / 2), sigma
        else:
            ordered = np.sort(counts, axis=1)
            gap, noise = (ordered[:, -1] - ordered[:, -2]).astype(np.float64), sigma * np.sqrt(2.0)
        # 2 Phi(x) - 1 = erf(x / sqrt 2)
        weights = erf(gap / (noise * np.sqrt(2.0)))
    answered = labels >= 0  # -1 stands for a query without an answer
    return _LabelledRows(queries[answered], labels[answered], weights[answered], queries)


def _scaled_points(X: Any) -> Any:
    """Return points with every column at standard deviation 1, and mean 0 unless they are sparse.

    Distances are the same with and without the mean, so sparse points stay sparse. Constant columns
    become 0 or, in sparse points, keep their value.

    Parameters
    ----------
    X : array, sparse matrix or frame of numbers, shape (m, n_features)

    Raises
    ------
    DataError
        If a column does not hold numbers, or a number is missing or infinite.
    """
    try:
        # dense points in one layout, so that a frame and an array of the same numbers round alike
        # and give the same run
        matrix = check_array(X, accept_sparse="csr", dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise DataError(
            f"the pool does not hold finite numbers alone ({error}), and this strategy measures"
            " distances; encode it (OneHotEncoder, SimpleImputer), or use passive sampling."
        ) from None
    return StandardScaler(with_mean=not sparse.issparse(matrix)).fit_transform(matrix)


class _OrderedSelector(QuerySelector):
    """Propose rows in an order fixed beforehand; no answer changes it.

    Parameters
    ----------
    order : array of int, shape (k,)
        Distinct rows of the pool.
    """

    def __init__(self, order: IntArray) -> None:
        self._left = order

    def propose(self, n: int) -> IntArray:
        """Return the next `n` rows of the order, or what is left of it."""
        rows, self._left = self._left[:n], self._left[n:]
        return rows

    def receive(self, released: ReleasedLabels) -> None:
        """Leave out rows that others asked; learn nothing."""
        self._left = self._left[~np.isin(self._left, released.queries)]


class PassiveSampling(QueryStrategy):
    """Ask random rows of the pool, by the public seed (Liu et al. 2021, Algorithm 3).

    The rows do not depend on how many are asked at a time: two rounds of 10 ask what one of 20
    asks.

    Examples
    --------
    >>> pool = sb.queries.PublicPool(np.arange(20.0)[:, None], (0, 1), n_queries=6, random_state=0)
    >>> rows = sb.queries.PassiveSampling().start(pool).propose(6)
    >>> len(set(rows.tolist()))
    6
    """

    def start(self, pool: PublicPool) -> _OrderedSelector:
        """Shuffle the pool by its public seed."""
        return _OrderedSelector(np.random.default_rng(pool.random_state).permutation(pool.n_points))

    def describe(self) -> Json:
        """Return the name."""
        return {"name": "passive"}


class ClusterSampling(QueryStrategy):
    """Ask the representatives of clusters: of each, the point nearest to its centre.

    Clusters are those of k-means on scaled columns, as many as there are labels to ask. They come
    by size, so that the first points asked stand for the most points of the pool. When all clusters
    are represented, their second nearest points follow, and so on. The order does not depend on how
    many are asked at a time.

    Examples
    --------
    >>> pool = sb.queries.PublicPool(np.arange(20.0)[:, None], (0, 1), n_queries=2, random_state=0)
    >>> rows = sb.queries.ClusterSampling().start(pool).propose(2)
    >>> sorted(row // 10 for row in rows.tolist())  # one of each half
    [0, 1]
    """

    def start(self, pool: PublicPool) -> _OrderedSelector:
        """Cluster the pool.

        Raises
        ------
        DataError
            If the pool does not hold finite numbers.
        """
        points = _scaled_points(pool.X)
        assigned, distances = _nearest_clusters(points, pool.n_queries, pool.random_state)
        order = np.lexsort((np.arange(len(assigned)), distances, assigned))
        sizes = np.bincount(assigned)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        # 0 for the representative, 1 for the next nearest
        rank = np.empty(len(assigned), dtype=np.int64)
        rank[order] = np.arange(len(assigned)) - starts[assigned[order]]
        return _OrderedSelector(np.lexsort((assigned, -sizes[assigned], rank)))

    def describe(self) -> Json:
        """Return the name."""
        return {"name": "cluster"}


def _spread_over(points: Any, weights: FloatArray, n: int, seed: int) -> IntArray:
    """Return `n` places among weighted points: the heaviest of each cluster of a weighted k-means.

    Parameters
    ----------
    points : array or CSR matrix of shape (k, n_features)
    weights : array of shape (k,)
        At least 0.
    n : int
        From 1 to k.
    seed : int

    Returns
    -------
    ndarray of int64, shape (n,), ascending
    """
    assigned, _ = _nearest_clusters(points, n, seed, weights + 1e-9)
    order = np.lexsort((np.arange(len(assigned)), -weights, assigned))
    first = np.concatenate([[True], np.diff(assigned[order]) > 0])
    chosen = order[first]
    # clusters may coincide or stay empty; the heaviest of the other points take their place
    others = np.setdiff1d(np.arange(len(weights)), chosen)
    heaviest = others[np.argsort(-weights[others], kind="stable")[: n - len(chosen)]]
    return np.sort(np.concatenate([chosen, heaviest])).astype(np.int64)


def _nearest_clusters(
    points: Any, n: int, seed: int, weights: FloatArray | None = None
) -> tuple[IntArray, FloatArray]:
    """Return each point's cluster and squared distance to its centre, both of shape (m,)."""
    m = points.shape[0]
    n = min(n, m)
    # Up to this many points k-means looks at all of them in every step.
    family = KMeans if m <= 5_000 else MiniBatchKMeans
    model = family(n, n_init=1, random_state=seed % (1 << 32))
    # fewer distinct points than clusters: some stay empty
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        assigned = np.asarray(model.fit(points, sample_weight=weights).labels_, dtype=np.int64)
    centres = np.asarray(model.cluster_centers_)
    if hasattr(points, "multiply"):  # sparse
        inner = np.asarray(points.multiply(centres[assigned]).sum(axis=1)).ravel()
    else:
        inner = np.einsum("ij,ij->i", points, centres[assigned])
    norms, lengths = (row_norms(each, squared=True) for each in (points, centres))
    return assigned, norms - 2 * inner + lengths[assigned]


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


_MEMBERS = 10


class _PoolLearner:
    """A scikit-learn classifier on the rows of one pool.

    Parameters
    ----------
    learner : scikit-learn classifier or None
        Cloned for every fit; open random states are set by the public seed. None stands for a
        logistic regression on scaled columns.
    pool : PublicPool
    default : scikit-learn classifier, optional
        What None stands for.

    Raises
    ------
    DataError
        If the pool has no points, or does not hold the numbers that the default learner needs.
    """

    def __init__(self, learner: Any, pool: PublicPool, default: Any = None) -> None:
        if not pool.n_points:
            raise DataError("the public pool has no points; give at least one.")
        if learner is None:
            learner = LogisticRegression(max_iter=1000) if default is None else default
            self.X = _scaled_points(pool.X)
        else:
            self.X = pool.X
        self._template = with_own_seeds(clone(learner), pool.random_state)
        self.name = type(self._template).__name__
        # what a fit weighs its points by, if it can
        self.weight_name = _weight_name(self._template)
        self.n_points, self.n_classes = pool.n_points, len(pool.classes)

    def fit(self, rows: IntArray, labels: IntArray, weights: FloatArray) -> Any:
        """Return a model fitted to rows of the pool, with weights where the learner takes them; all
        of shape (n,)."""
        given = {} if self.weight_name is None else {self.weight_name: weights}
        # a rough fit serves to choose a question
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            return clone(self._template).fit(take_rows(self.X, rows), labels, **given)

    def fit_known(self, known: _LabelledRows) -> Any:
        """Return a model fitted to what is known, with the weights of the answers."""
        return self.fit(known.rows, known.labels, known.weights)

    def predict(self, model: Any, rows: IntArray) -> IntArray:
        """Return the labels of rows of the pool, as positions among the classes, shape (n,)."""
        return np.asarray(model.predict(take_rows(self.X, rows)), dtype=np.int64)

    def try_fits(self, ask: Callable[[Any, Any], object]) -> None:
        """Fit to points of the pool with dummy labels, and ask the model about the whole pool.

        Raises
        ------
        DataError
            If the learner fails: better now than when labels have been paid for.
        """
        # spread over the pool, two for each class where there are as many
        # Points of the pool, with dummy labels, on which a learner is tried before anything is
        # asked.
        size = min(self.n_points, max(20, 2 * self.n_classes))
        if size < 2:
            return
        rows = np.linspace(0, self.n_points - 1, size).astype(np.int64)
        labels = np.arange(len(rows), dtype=np.int64) % self.n_classes
        try:
            ask(self.fit(rows, labels, np.ones(len(rows))), self.X)
        except Exception as failure:
            raise DataError(
                f"the learner {self.name} fails on the public points ({type(failure).__name__}:"
                f" {failure}); give one that takes them all, whichever it learnt from: encoders"
                " must ignore unknown categories."
            ) from failure


def _describe_learner(learner: Any) -> str:
    """Return a learner in one line, without addresses, for certificate and report."""
    if learner is None:
        return "LogisticRegression on scaled columns"
    return _ADDRESS.sub("", " ".join(repr(learner).split()))


def _weight_name(learner: Any) -> str | None:
    """Return the name under which `fit` takes sample weights, or None."""
    if isinstance(learner, Pipeline):
        name, last = learner.steps[-1]
        inner = _weight_name(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(learner, "sample_weight") else None


class _UncertaintySampling(QueryStrategy):
    """What strategies share that ask where a learner is unsure: a cold start, and spread rounds.

    Until labels of two classes are known, it asks as `ClusterSampling` does, which measured best or
    within a hundredth of the best on digits, breast cancer and normal classes. Then every round
    fits the learner to all answers so far, weighed by the confidence in each where noisy counts
    were released, takes the ``spread * n`` most uncertain points that were not asked, groups them
    by a k-means weighted by uncertainty, and asks one point of each group, so that a round is not n
    copies of one point (Zhdanov 2019, arXiv:1901.05954).

    Parameters
    ----------
    learner : scikit-learn classifier, optional
        By default a logistic regression on scaled columns. Open random states are set by the public
        seed. A `sklearn.frozen.FrozenEstimator` around a released student, such as that of
        `RecordMomentsClassifier`, learns nothing further.
    spread : int, default 5
        Candidates per point asked. 1 asks the most uncertain ones wherever they lie, begins with
        random rows, and measures no distances, which with a learner of its own serves pools that do
        not hold numbers.

    Raises
    ------
    ParameterError
        If `spread` is not an integer of at least 1.
    """

    name: str

    def __init__(self, learner: Any = None, *, spread: int = 5) -> None:
        self.learner, self.spread = learner, check_count("spread", spread)

    @property
    def _cold_start(self) -> QueryStrategy:
        return ClusterSampling() if self.spread > 1 else PassiveSampling()

    def start(self, pool: PublicPool) -> "QuerySelector":
        """Try the learner on points of the pool with dummy labels, and return a run.

        Raises
        ------
        DataError
            If learner or spread cannot work on such points, or the learner cannot say how sure it
            is.
        """
        return _UncertaintySelector(self, pool)

    def describe(self) -> Json:
        """Return name and settings."""
        return {
            "name": self.name,
            "learner": _describe_learner(self.learner),
            "cold_start": self._cold_start.describe(),
            "spread": self.spread,
        }

    @abstractmethod
    def _doubt_of_model(self, model: Any, X: Any) -> FloatArray:
        """Return how unsure one fitted model is about each point, at least 0, shape (n,)."""

    def _doubt_of_rows(
        self, learner: _PoolLearner, known: _LabelledRows, rows: IntArray, seeds: list[int]
    ) -> FloatArray:
        """Return how unsure the learner is about each row, at least 0, shape (len(rows),)."""
        return self._doubt_of_model(learner.fit_known(known), take_rows(learner.X, rows))


class MarginSampling(_UncertaintySampling):
    """Ask where the two likeliest classes are closest (Scheffer, Decomain and Wrobel 2001).

    A learner without `predict_proba` is asked for its `decision_function`.

    Examples
    --------
    >>> pool = sb.queries.PublicPool(np.arange(20.0)[:, None], (0, 1), n_queries=6, random_state=0)
    >>> selector = sb.queries.MarginSampling().start(pool)
    >>> first = selector.propose(6)  # no label is known yet: what the cold start asks
    >>> selector.receive(sb.ReleasedLabels(first, (first > 9).astype(int), (0, 1), 50))
    >>> bool((abs(selector.propose(2) - 9.5) < 5).all())  # then near the boundary
    True
    """

    name = "margin"

    def _doubt_of_model(self, model: Any, X: Any) -> FloatArray:
        ask = getattr(model, "predict_proba", None) or model.decision_function
        shares = np.asarray(ask(X), dtype=np.float64)
        if shares.ndim == 1:
            return 1.0 / (1.0 + np.abs(shares))
        ordered = np.sort(shares, axis=1)
        return 1.0 / (1.0 + ordered[:, -1] - ordered[:, -2])


class EntropySampling(_UncertaintySampling):
    """Ask where the learner's class probabilities have the largest entropy.

    Lewis and Gale 1994; Settles 2009.

    Examples
    --------
    >>> sb.queries.EntropySampling(spread=1).describe()["name"]
    'entropy'
    """

    name = "entropy"

    def _doubt_of_model(self, model: Any, X: Any) -> FloatArray:
        return _entropies_of_rows(np.asarray(model.predict_proba(X), dtype=np.float64))


class CommitteeSampling(_UncertaintySampling):
    """Ask where a committee is most divided.

    Query by committee: Seung, Opper and Sompolinsky 1992. Ten members are fitted to bootstrap
    samples of the released labels; what counts is the entropy of their votes, ties broken by the
    public seed.

    Examples
    --------
    >>> sb.queries.CommitteeSampling(spread=1).describe()["name"]
    'committee'
    """

    name = "committee"

    def _doubt_of_model(self, model: Any, X: Any) -> FloatArray:
        return np.zeros(len(model.predict(X)))  # a lone member is never divided

    def _doubt_of_rows(
        self, learner: _PoolLearner, known: _LabelledRows, rows: IntArray, seeds: list[int]
    ) -> FloatArray:
        rng = np.random.default_rng(seeds)
        n = len(known.rows)
        votes = np.zeros((len(rows), learner.n_classes))
        for _ in range(_MEMBERS):
            drawn = rng.integers(n, size=n)
            labels = known.labels[drawn]
            if len(np.unique(labels)) < 2:  # a member that saw one class votes for it
                votes[:, labels[0]] += 1
                continue
            model = learner.fit(known.rows[drawn], labels, known.weights[drawn])
            votes[np.arange(len(rows)), learner.predict(model, rows)] += 1
        # Far below the smallest difference between two entropies of votes.
        return _entropies_of_rows(votes / _MEMBERS) + 1e-9 * rng.random(len(rows))


class _UncertaintySelector(QuerySelector):
    """One run: cold start, then rounds of the most uncertain points, spread out."""

    def __init__(self, strategy: _UncertaintySampling, pool: PublicPool) -> None:
        self._strategy, self._pool = strategy, pool
        self._learner = _PoolLearner(strategy.learner, pool)
        self._learner.try_fits(strategy._doubt_of_model)
        self._points: Any = None
        if strategy.spread > 1:
            self._points = self._learner.X if strategy.learner is None else _scaled_points(pool.X)
        # The cold start plans for at least so many points, even if they are asked one by one.
        planned = max(default_round_size(pool.n_queries), 10)
        self._cold = strategy._cold_start.start(replace(pool, n_queries=planned))
        self._known = _LabelledRows.none()
        self._free = np.ones(pool.n_points, dtype=np.bool_)

    def propose(self, n: int) -> IntArray:
        """Return `n` rows, or what is left of the pool."""
        if not self._free.any():
            return np.empty(0, dtype=np.int64)
        rows = self._cold.propose(n) if self._known.n_classes < 2 else self._doubtful_rows(n)
        self._free[rows] = False
        return rows

    def receive(self, released: ReleasedLabels) -> None:
        """Take in everything released so far."""
        self._known = _labelled_rows(released)
        self._free[self._known.asked] = False
        self._cold.receive(released)

    def _doubtful_rows(self, n: int) -> IntArray:
        # Seeds depend on how many points were asked, so that a run that is taken up again draws the
        # same.
        free = np.flatnonzero(self._free)
        n = min(n, len(free))
        seeds = [self._pool.random_state, self._pool.n_points - len(free)]
        doubts = self._strategy._doubt_of_rows(self._learner, self._known, free, seeds)
        candidates = np.argsort(-doubts, kind="stable")[: n * self._strategy.spread]
        if n < len(candidates):
            seed = int(np.random.default_rng(seeds).integers(1 << 31))
            places = _spread_over(self._points[free[candidates]], doubts[candidates], n, seed)
            candidates = candidates[places]  # ascending places: the most uncertain first
        return free[candidates]


def _entropies_of_rows(shares: FloatArray) -> FloatArray:
    """Return the entropy of every row of probabilities, in nats, shape (n,)."""
    positive = np.where(shares > 0, shares, 1.0)
    return np.asarray(-(positive * np.log(positive)).sum(axis=1))


# Measured; see the docstring.
_EXACT_CONSTANT, _ORACLE_CONSTANT = 0.3, 0.1
# Guesses of the error of the best hypothesis on the labels of the service, and of the disagreement
# coefficient, which is 2 for thresholds.
_NOISE_RATE, _COEFFICIENT = 0.05, 2.0
# Weights of a forced label, in units of the weight of all answers, from hardly any to more than
# enough.
_FORCES = (0.01, 0.1, 1.0, 10.0, 100.0)


class _ExactRegion:
    """Region of the version space of a class that can be searched exactly.

    Parameters
    ----------
    hypotheses : HypothesisClass
    pool : PublicPool
    """

    def __init__(self, hypotheses: HypothesisClass, pool: PublicPool) -> None:
        self._X = pool.X
        self._space = hypotheses.version_space()

    def contains(self, rows: IntArray) -> BoolArray:
        """Ask the version space about `rows`; shape (n_rows,)."""
        return self._space.disagreement_region(take_rows(self._X, rows))

    def update(self, known: _LabelledRows, slack: float) -> None:
        """Restrict the version space."""
        self._space = self._space.restrict(
            take_rows(self._X, known.rows), known.labels, slack, known.weights
        )


class _OracleRegion:
    """Region of the hypotheses that a learner can reach, by constrained fits.

    A point lies in the region if a model exists that labels it otherwise than the best one and
    makes at most `slack` more mistakes on the answers. The models are sought by fits to the answers
    plus the point with the other label, at growing weights until the label is obeyed, then with as
    little force as will do. Where the learner minimises another loss than mistakes, both searches
    are approximate. A model found once decides for free every point on which it differs from the
    best. Until answers of two classes are known, every point lies in the region.

    Parameters
    ----------
    fits : _PoolLearner
    """

    def __init__(self, fits: _PoolLearner) -> None:
        self._fits = fits
        self._known = _LabelledRows.none()
        self._models: list[Any] = []  # the best one, then others within its slack
        self._most = 0.0  # mistakes, as far as they are weighed

    def contains(self, rows: IntArray) -> BoolArray:
        """Decide by the models that are known, and fit for the points that they leave open; shape
        (n_rows,)."""
        if not self._models:
            return np.ones(len(rows), dtype=np.bool_)
        labels, *others = (self._fits.predict(model, rows) for model in self._models)
        inside = np.zeros(len(rows), dtype=np.bool_)
        for said in others:
            inside |= said != labels
        for place, row in enumerate(rows.tolist()):
            found = None if inside[place] else self._model_saying(row, 1 - int(labels[place]))
            if found is not None:
                self._models.append(found)
                inside |= self._fits.predict(found, rows) != labels
        return inside

    def update(self, known: _LabelledRows, slack: float) -> None:
        """Fit the best model to the answers, and keep of the others those within its slack."""
        if known.n_classes < 2:
            return
        self._known = known
        models = [*self._unforced_models(known), *self._models]
        mistakes = [self._mistakes(model) for model in models]
        best = int(np.argmin(mistakes))  # among equals the newest fit
        self._most = mistakes[best] + slack + 1e-9
        self._models = [models[best]]
        for place, model in enumerate(models):
            # Models kept from one update to the next; each costs a prediction per point.
            if place != best and mistakes[place] <= self._most and len(self._models) <= 40:
                self._models.append(model)

    def _unforced_models(self, known: _LabelledRows) -> list[Any]:
        """Return a fit to the answers, and refits without its mistakes."""
        # The learner minimises another loss, in which points it gets wrong pull it off others.
        models: list[Any] = []
        kept = known
        # Refits of the best model without what it gets wrong.
        while len(models) <= 3 and kept.n_classes == 2:
            models.append(self._fits.fit_known(kept))
            right = self._fits.predict(models[-1], known.rows) == known.labels
            if right.all():
                break
            kept = known.among(known.rows[right])
        return models

    def _mistakes(self, model: Any) -> float:
        wrong = self._fits.predict(model, self._known.rows) != self._known.labels
        return float(self._known.weights[wrong].sum())

    def _model_saying(self, row: int, label: int) -> Any:
        """Return a model within the slack that gives a row a label, None where none was found."""
        disobeyed = 0.0
        for obeyed in _FORCES:
            model = self._forced_model(row, label, obeyed)
            if model is not None:
                break
            disobeyed = obeyed
        else:
            return None
        # obeyed, but at too many mistakes: as little force as will do may still bring a model
        # within the slack
        # Then the weight is narrowed down by halving its logarithm so many times: just enough
        # force costs the fewest mistakes.
        for _ in range(3 if disobeyed else 0):
            if self._mistakes(model) <= self._most:
                break
            force = math.sqrt(disobeyed * obeyed)
            weaker = self._forced_model(row, label, force)
            if weaker is None:
                disobeyed = force
            else:
                model, obeyed = weaker, force
        return model if self._mistakes(model) <= self._most else None

    def _forced_model(self, row: int, label: int, force: float) -> Any:
        """Return the model of the answers and of that label of a row at that force, None where it
        does not obey."""
        # The force is in units of all answers together, so that it means the same early and late.
        known = self._known
        model = self._fits.fit(
            np.append(known.rows, row),
            np.append(known.labels, label),
            np.append(known.weights, force * max(1.0, float(known.weights.sum()))),
        )
        return model if int(self._fits.predict(model, np.array([row]))[0]) == label else None


class _StreamSelector(QuerySelector):
    """One run of Algorithm 7 along the pool.

    Points are numbered j = 1, ..., m. After point j = 2^i the version space is updated on all
    answers so far; between updates the region of disagreement is fixed, so the points of (2^i,
    2^(i+1)] that lie in it are asked together, and the run asks exactly what the printed algorithm
    asks one by one. Abstentions teach nothing. The run ends when the stream does.

    Parameters
    ----------
    pool : PublicPool
    region : _ExactRegion or _OracleRegion
    slack : callable
        Of j: in mistakes.
    order : ndarray of int64, shape (m,)
        Rows of the pool that was given, of which the stream is made: this one speaks of them.
    """

    def __init__(
        self,
        pool: PublicPool,
        region: _ExactRegion | _OracleRegion,
        slack: Callable[[int], float],
        order: IntArray,
    ) -> None:
        self._region, self._slack, self._order = region, slack, order
        self._known = _LabelledRows.none()
        # requested, of which some are not yet proposed; and answers that the region knows
        self._requested = self._waiting = np.empty(0, dtype=np.int64)
        self._learnt = 0
        # the update at j = 1 is left out, and one after the last point would change nothing
        self._at, self._stop = 0, min(2, pool.n_points)

    def propose(self, n: int) -> IntArray:
        """Return up to `n` of the next points in the region, all of them before the next update.

        Raises
        ------
        ParameterError
            If an update is due and an answer to an earlier proposal is missing.
        """
        m = len(self._order)
        while len(self._waiting) < n and self._at < m:
            if self._at == self._stop:
                if len(self._waiting):
                    break
                self._update()
                self._stop = min(2 * self._stop, m)
            # Points whose place is found out together.
            block = np.arange(self._at, min(self._at + 256, self._stop))
            self._at += len(block)
            found = block[self._region.contains(block)]
            self._requested = np.concatenate([self._requested, found])
            # what was answered already, as in a run that is taken again, is not asked again
            new = found[~np.isin(found, self._known.asked)]
            self._waiting = np.concatenate([self._waiting, new])
        rows, self._waiting = self._waiting[:n], self._waiting[n:]
        return self._order[rows]

    def receive(self, released: ReleasedLabels) -> None:
        """Take in everything released so far."""
        known = _labelled_rows(released)
        places = np.argsort(self._order)  # of the rows in the stream
        self._known = replace(known, rows=places[known.rows], asked=places[known.asked])

    def _update(self) -> None:
        """Let the region learn from the answers to all that was requested."""
        if not np.isin(self._requested, self._known.asked).all():
            raise ParameterError(
                "propose was called before all answers to the last proposal came in; call receive"
                " with them first."
            )
        # without a new answer, a slack that grew with j would remove nothing
        known = self._known.among(self._requested)
        if len(known.rows) > self._learnt:
            self._learnt = len(known.rows)
            self._region.update(known, self._slack(self._stop))


class DisagreementSampling(QueryStrategy):
    """Ask where hypotheses disagree that are still in the running.

    Liu et al. 2021, supplement, Algorithm 7; after Hanneke 2014. The pool is a stream, in random
    order by its public seed: points of a sorted file would teach nothing about the rest. A point is
    asked if two hypotheses that are still in the running label it differently;
    after points 2, 4, 8, ... the hypotheses go that make more mistakes on the answers than the
    fewest plus a slack (see `slack_at`). Between updates all points of the region are asked
    together, which changes nothing. Two classes only; abstentions teach nothing; where noisy counts
    were released, a mistake weighs as much as the label is trusted, at most 1. The run ends with
    the stream, whatever is left of the reservation.

    With `hypotheses` the version space is kept exactly, and the run is the printed one. Otherwise
    hypotheses are what a learner reaches: a point is disputed if a fit forced to label it the other
    way stays within the slack. That takes several fits for every point outside of the region that
    is passed. Warm starts were measured not to help.

    Parameters
    ----------
    hypotheses : HypothesisClass, optional
        Class whose version space is kept exactly.
    learner : scikit-learn classifier, optional
        Must follow sample weights. By default, without `hypotheses`, a hardly penalised logistic
        regression on scaled columns.
    slack_constant : float, optional
        Constant c of the slack, at least 0. By default 0.3 with `hypotheses` and 0.1 with a
        learner. The theorem's is far larger, and would ask everything. Measured on thresholds with
        200 labels of 10,000 points, 60 runs each: 0.3 left a fiftieth of passive sampling's excess
        error with up to 10 % of the labels flipped and a fifth with 20 %; 0.1 lost the best
        threshold in one run of five already with 5 % flipped. With the default learner, 5 %
        flipped and 150 labels, 0.1 was right on 99.4 % of the points in 2 columns and on 97.2 % in
        10; 0.2 on 99.6 and 95.7 %, passive sampling on 98.2 and 93.7 %. There margin sampling was
        better still, 99.5 % in 10 columns.

    Raises
    ------
    ParameterError
        If a setting is out of its range.

    Notes
    -----
    Privacy does not depend on the slack: one too small may lose the best hypothesis, one too large
    asks like passive sampling.

    Examples
    --------
    >>> pool = sb.queries.PublicPool(np.arange(20.0)[:, None], (0, 1), n_queries=6, random_state=0)
    >>> strategy = sb.queries.DisagreementSampling(sb.hypotheses.Thresholds())
    >>> len(strategy.start(pool).propose(5))  # nothing is known yet, so the first two of the stream
    2
    """

    def __init__(
        self,
        hypotheses: HypothesisClass | None = None,
        learner: Any = None,
        *,
        slack_constant: float | None = None,
    ) -> None:
        self.hypotheses, self.learner = hypotheses, learner
        # each way to search has its own measured constant
        by_default = _EXACT_CONSTANT if hypotheses is not None else _ORACLE_CONSTANT
        self.slack_constant = by_default if slack_constant is None else slack_constant
        if not check_finite("slack_constant", self.slack_constant) >= 0:
            raise refusal("slack_constant", f" is {slack_constant!r}; it must be at least 0.")
        if hypotheses is not None:
            check_hypotheses(hypotheses)
            if learner is not None:
                raise ParameterError("hypotheses and learner are both given; give one of them.")

    def start(self, pool: PublicPool) -> QuerySelector:
        """Return a run along the pool.

        Raises
        ------
        DataError
            If there are more than two classes, or the learner fails on the points.
        ParameterError
            If the learner cannot be constrained.
        """
        if len(pool.classes) != 2:
            raise DataError(
                f"disagreement sampling is about two classes, and there are {len(pool.classes)};"
                " use margin sampling for more."
            )
        order = np.random.default_rng(pool.random_state).permutation(pool.n_points)
        pool = replace(pool, X=take_rows(pool.X, order))
        region: _ExactRegion | _OracleRegion
        if self.hypotheses is not None:
            region = _ExactRegion(self.hypotheses, pool)
            dimension = self.hypotheses.vc_dimension
        else:
            dimension = int(pool.X.shape[1]) + 1  # of halfspaces
            region = _OracleRegion(self._fits(pool))
        return _StreamSelector(pool, region, partial(self.slack_at, dimension=dimension), order)

    def slack_at(self, j: int, dimension: int) -> float:
        """Return how many more mistakes than the fewest a hypothesis may make after `j` points of
        the stream and stay in the running, in a class of that Vapnik-Chervonenkis dimension d.

        The bound j U(j, gamma_j) = c (D + sqrt(j e D)) with D = d log(theta) + log(1 / gamma_j),
        gamma_j = gamma / log2(2j)^2: c is `slack_constant`, e = 0.05 and theta = 2 guesses of the
        best error and of the disagreement coefficient, and gamma = 0.05 the chance that the best
        hypothesis is lost, were the constant the theorem's. Summed over the updates j = 2, 4, 8,
        ..., the gamma_j stay below 0.645 gamma.
        """
        gamma_j = 0.05 / math.log2(2 * j) ** 2
        complexity = dimension * math.log(_COEFFICIENT) + math.log(1 / gamma_j)
        return self.slack_constant * (complexity + math.sqrt(j * _NOISE_RATE * complexity))

    def _fits(self, pool: PublicPool) -> _PoolLearner:
        # Of the default learner: little penalty, so that it comes close to the fewest mistakes.
        learner = _PoolLearner(self.learner, pool, LogisticRegression(C=10.0, max_iter=1000))
        if learner.weight_name is None:
            raise ParameterError(
                f"the learner {learner.name} takes no sample weights: a learner that cannot be"
                " constrained; give one that follows them, such as LogisticRegression, or use"
                " margin sampling."
            )
        learner.try_fits(lambda model, X: model.predict(X))
        return learner

    def describe(self) -> Json:
        """Return name and settings."""
        return {
            "name": "disagreement",
            "hypotheses": None if self.hypotheses is None else self.hypotheses.name,
            "learner": _describe_learner(self.learner) if self.hypotheses is None else None,
            "slack_constant": self.slack_constant,
        }


_STRATEGIES: dict[str, Callable[[], QueryStrategy]] = {
    "passive": PassiveSampling,
    "disagreement": DisagreementSampling,
    "margin": MarginSampling,
    "entropy": EntropySampling,
    "committee": CommitteeSampling,
    "cluster": ClusterSampling,
}


def strategy_by_name(name: str) -> QueryStrategy:
    """Return the strategy of that name with its default settings.

    Parameters
    ----------
    name : {"passive", "disagreement", "margin", "entropy", "committee", "cluster"}
        "disagreement" is the form for any learner, with a logistic regression.

    Raises
    ------
    ParameterError
        If there is no strategy of that name.
    """
    return _STRATEGIES[check_choice("strategy", name, tuple(_STRATEGIES))]()


@dataclass(frozen=True, eq=False)
class InRounds:
    """Settings of queries that are asked in rounds.

    Parameters
    ----------
    strategy : QueryStrategy, optional
        How to choose; `MarginSampling` by default.
    round_size : int, optional
        Queries per round; a twentieth of all by default. The strategy learns from the answers
        between rounds.

    Examples
    --------
    >>> sb.queries.InRounds(round_size=20).strategy.describe()["name"]
    'margin'
    """

    strategy: QueryStrategy = field(default_factory=MarginSampling)
    round_size: int | None = None


_SETTINGS: dict[str, Names] = {
    name: () if name == "passive" else ("round_size",) for name in _STRATEGIES
}


def rounds_of(strategy: object) -> InRounds | None:
    """Return how a strategy asks in rounds; None of "passive", which asks at once.

    Parameters
    ----------
    strategy : str, QueryStrategy or InRounds
        A text is a name, with a setting or without: "margin:round_size=20".

    Raises
    ------
    ParameterError
        If it is no strategy.
    """
    if isinstance(strategy, InRounds):
        return strategy
    if isinstance(strategy, QueryStrategy):
        return InRounds(strategy)
    name, own = named("strategy", strategy, _SETTINGS)
    more: Json = dict(own)
    return None if name == "passive" else InRounds(strategy_by_name(name), **more)
