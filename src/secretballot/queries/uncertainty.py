"""Strategies for any classes: random rows, rows that cover the pool, and rows where a learner of
the released labels is least sure; and public points on one scale, for distances between them."""

import re
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
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
from secretballot._seeded import with_own_seeds
from secretballot._typing import FloatArray, IntArray, Json
from secretballot._validation import check_count
from secretballot.exceptions import DataError
from secretballot.queries.base import (
    LabelledRows,
    PublicPool,
    QuerySelector,
    QueryStrategy,
    default_round_size,
    labelled_rows,
)
from secretballot.released import ReleasedLabels

# Up to this many points k-means looks at all of them in every step.
_FULL_PASSES = 5_000


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


def spread_over(points: Any, weights: FloatArray, n: int, seed: int) -> IntArray:
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
    family = KMeans if m <= _FULL_PASSES else MiniBatchKMeans
    model = family(n, n_init=1, random_state=seed % (1 << 32))
    with warnings.catch_warnings():
        # fewer distinct points than clusters: some stay empty
        warnings.simplefilter("ignore", ConvergenceWarning)
        assigned = np.asarray(model.fit(points, sample_weight=weights).labels_, dtype=np.int64)
    centres = np.asarray(model.cluster_centers_)
    if hasattr(points, "multiply"):  # sparse
        inner = np.asarray(points.multiply(centres[assigned]).sum(axis=1)).ravel()
    else:
        inner = np.einsum("ij,ij->i", points, centres[assigned])
    norms, lengths = (row_norms(each, squared=True) for each in (points, centres))
    distances = norms - 2 * inner + lengths[assigned]
    return assigned, np.asarray(distances, dtype=np.float64)


# Points of the pool, with dummy labels, on which a learner is tried before anything is asked.
_TRIAL_ROWS = 20
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


# The cold start plans for at least so many points, even if they are asked one by one.
_COLD_POINTS = 10
_MEMBERS = 10
# Far below the smallest difference between two entropies of votes.
_TIE = 1e-9


class PoolLearner:
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
        with warnings.catch_warnings():
            # a rough fit serves to choose a question
            warnings.simplefilter("ignore", ConvergenceWarning)
            return clone(self._template).fit(take_rows(self.X, rows), labels, **given)

    def fit_known(self, known: LabelledRows) -> Any:
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
        size = min(self.n_points, max(_TRIAL_ROWS, 2 * self.n_classes))
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


def describe_learner(learner: Any) -> str:
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


class UncertaintySampling(QueryStrategy):
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
            "learner": describe_learner(self.learner),
            "cold_start": self._cold_start.describe(),
            "spread": self.spread,
        }

    @abstractmethod
    def _doubt_of_model(self, model: Any, X: Any) -> FloatArray:
        """Return how unsure one fitted model is about each point, at least 0, shape (n,)."""

    def _doubt_of_rows(
        self, learner: PoolLearner, known: LabelledRows, rows: IntArray, seeds: list[int]
    ) -> FloatArray:
        """Return how unsure the learner is about each row, at least 0, shape (len(rows),)."""
        model = learner.fit_known(known)
        return self._doubt_of_model(model, take_rows(learner.X, rows))


class MarginSampling(UncertaintySampling):
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
            return np.asarray(1.0 / (1.0 + np.abs(shares)))
        ordered = np.sort(shares, axis=1)
        return np.asarray(1.0 / (1.0 + ordered[:, -1] - ordered[:, -2]))


class EntropySampling(UncertaintySampling):
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


class CommitteeSampling(UncertaintySampling):
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
        self, learner: PoolLearner, known: LabelledRows, rows: IntArray, seeds: list[int]
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
        return _entropies_of_rows(votes / _MEMBERS) + _TIE * rng.random(len(rows))


class _UncertaintySelector(QuerySelector):
    """One run: cold start, then rounds of the most uncertain points, spread out."""

    def __init__(self, strategy: UncertaintySampling, pool: PublicPool) -> None:
        self._strategy, self._pool = strategy, pool
        self._learner = PoolLearner(strategy.learner, pool)
        self._learner.try_fits(strategy._doubt_of_model)
        self._points: Any = None
        if strategy.spread > 1:
            self._points = self._learner.X if strategy.learner is None else _scaled_points(pool.X)
        planned = max(default_round_size(pool.n_queries), _COLD_POINTS)
        self._cold = strategy._cold_start.start(replace(pool, n_queries=planned))
        self._known = LabelledRows.none()
        self._free = np.ones(pool.n_points, dtype=np.bool_)

    def propose(self, n: int) -> IntArray:
        """Return `n` rows, or what is left of the pool."""
        if not self._free.any():
            return np.empty(0, dtype=np.int64)
        is_cold = self._known.n_classes < 2
        rows = self._cold.propose(n) if is_cold else self._doubtful_rows(n)
        self._free[rows] = False
        return rows

    def receive(self, released: ReleasedLabels) -> None:
        """Take in everything released so far."""
        self._known = labelled_rows(released)
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
            places = spread_over(self._points[free[candidates]], doubts[candidates], n, seed)
            candidates = candidates[places]  # ascending places: the most uncertain first
        return free[candidates]


def _entropies_of_rows(shares: FloatArray) -> FloatArray:
    """Return the entropy of every row of probabilities, in nats, shape (n,)."""
    positive = np.where(shares > 0, shares, 1.0)
    return np.asarray(-(positive * np.log(positive)).sum(axis=1))
