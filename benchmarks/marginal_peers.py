"""Synthetic data from noisy marginals, on the tables and cuts of record_tables.py and on UCI Adult.

    build/marginals/bin/python benchmarks/marginal_peers.py [n_runs] [table, or adult ...]

An environment of its own has mbi==2.0.0, scikit-learn and pandas. Results go to
build/marginal_peers.jsonl, one line a cell, and a run that is interrupted goes on.

- label: the marginals of every column with the class, of which a log-linear model is made.
- MST: marginals of single columns, then of the pairs of a tree of columns that is chosen privately.
- AIM (arXiv:2201.12677): marginals that the data so far have most wrong, in rounds. "AIM" has pairs
  of columns as its workload, "AIM, label" pairs and triples with the class. Several are chosen
  between two fits, and the noise is the same in each round.

The data are the rows of the public pool, each with every class, and `mbi` finds the weights by
which they have the marginals that were measured, so that peers get of the pool what ours do.
Logistic regression and boosted trees learn from them. The best of all, and of two numbers of steps
of `mbi`, is reported *in hindsight*, which no private run could know. Numbers are in bins by
quantiles of the pool. What is protected is a record that comes or goes, as by ours. Gaussian noise
alone has its exact price; beside choices, that of concentrated privacy (Canonne, Kamath and Steinke
2020). Floating-point noise: good for a comparison, and for nothing else. delta 1e-5.
"""

import os

# one BLAS thread, so that figures do not depend on the machine
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import functools
import importlib.util
import itertools
import math
import sys
import warnings
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from cells import Cells, number_given
from real_tables import BUILD, Split, filled, missing_packages, split_of

DELTA, EPSILONS = 1e-5, (0.5, 1.0, 2.0)
NAMES = ("mushroom", "spambase", "magic", "adult")
N_BINS, RATE, STEPS = 16, 0.5, (50, 200)
#: Of AIM: rounds, marginals chosen in each, and the share of the price that measures them.
N_ROUNDS, AT_ONCE, MEASURED = 2, 8, 0.9
CLASS = "class"
Clique = tuple[str, ...]


def exact_rho(epsilon: float) -> float:
    """Return the rho of Gaussian noise alone at this price."""

    def excess(mu: float) -> float:
        far = math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
        return float(norm.cdf(mu / 2 - epsilon / mu) - far - DELTA)

    return float(brentq(excess, 0.01, 10)) ** 2 / 2


def concentrated_rho(epsilon: float) -> float:
    """Return the rho of concentrated privacy that implies this price."""
    orders = 1 + np.logspace(-2, 4, 10_000)
    odds = orders * np.log1p(-1 / orders) - np.log(orders - 1) - math.log(DELTA)

    def excess(rho: float) -> float:
        return float(np.min((orders - 1) * (orders * rho - epsilon) + odds))

    return float(brentq(excess, 1e-5, epsilon))


class Marginals:
    """Codes of a split's columns by its pool, what was measured of the private ones, and weights of
    the pool's rows with every class that fit it."""

    def __init__(self, split: Split) -> None:
        import optax
        from mbi import Dataset, Domain
        from mbi.extensions import ReweightedDatasetEstimator

        tables, n_classes = filled(split), split.n_classes
        self.records, pool, self.asked = (dict[str, np.ndarray]() for _ in tables)
        sizes = {CLASS: n_classes}
        for name, is_level in zip(tables[1], split.levels, strict=True):
            cells = [one[name].astype(str) if is_level else one[name] for one in tables]
            ends = (
                np.quantile(cells[1], np.arange(1, N_BINS) / N_BINS) if not is_level else cells[1]
            )
            known = np.unique(ends)  # a level that the pool lacks counts as the next one
            for one, found in zip(cells, (self.records, pool, self.asked), strict=True):
                found[name] = np.searchsorted(known, one.to_numpy())
            sizes[name] = len(known) + 1
        self.records[CLASS], self.names = split.y, list(sizes)
        n_rows = len(tables[1])
        self.rows = {name: np.repeat(codes, n_classes) for name, codes in pool.items()}
        self.rows[CLASS] = np.tile(np.arange(n_classes), n_rows)
        self.domain = Domain.fromdict(sizes)
        self.seeds = ReweightedDatasetEstimator(
            Dataset({name: self.rows[name] for name in sizes}, self.domain), optax.adam(RATE)
        )

    def begin(self, seed: int) -> None:
        """Forget what was measured."""
        self.measured, self.rng = list[Any](), np.random.default_rng(seed)

    def counts(self, clique: Clique, rows: Any, weights: np.ndarray | None = None) -> np.ndarray:
        """Return what is in each cell."""
        shape = self.domain.project(clique).shape
        places = np.ravel_multi_index([rows[name] for name in clique], shape)
        return np.bincount(places, weights, minlength=math.prod(shape)).astype(float)

    def measure(self, cliques: list[Clique], rho: float) -> float:
        """Measure marginals, by the same noise, at this price together; return its scale."""
        from mbi import LinearMeasurement

        sigma = math.sqrt(len(cliques) / (2 * rho))
        for clique in cliques:
            noisy = self.counts(clique, self.records)
            noisy += self.rng.normal(0, sigma, len(noisy))
            self.measured.append(LinearMeasurement(noisy, clique, sigma))
        return sigma

    def fit(self) -> list[np.ndarray]:
        """Return the weights after so many steps, for each of `STEPS`."""
        found: list[np.ndarray] = []
        self.seeds.estimate(
            self.domain,
            self.measured,
            iters=max(STEPS),
            callback_fn=lambda one: found.append(np.asarray(one.weights, dtype=float)),
        )
        return [found[steps // 50 - 1] for steps in STEPS]

    def wrong(self, clique: Clique, weights: np.ndarray) -> float:
        """Return how far a marginal of the weighted rows lies from the private one; private."""
        apart = self.counts(clique, self.records) - self.counts(clique, self.rows, weights)
        return float(np.abs(apart).sum())

    def choose(self, scores: dict[Clique, float], rho: float, reach: float = 1.0) -> Clique:
        """Return a choice by the exponential mechanism, whose price is rho."""
        scale = 2 * reach / math.sqrt(8 * rho)
        return max(scores, key=lambda one: scores[one] + self.rng.gumbel(0, scale))


def by_label(made: Marginals, epsilon: float) -> None:
    """Measure every column with the class."""
    made.measure([(name, CLASS) for name in made.names if name != CLASS], exact_rho(epsilon))


def by_tree(made: Marginals, epsilon: float) -> None:
    """Measure columns, choose a tree of pairs and measure these, by a third of the price each."""
    rho, names = concentrated_rho(epsilon) / 3, made.names
    made.measure([(name,) for name in names], rho)
    weights, part = made.fit()[0], {name: i for i, name in enumerate(names)}
    scores = {pair: made.wrong(pair, weights) for pair in itertools.combinations(names, 2)}
    tree: list[Clique] = []
    for _ in names[1:]:
        apart = {pair: one for pair, one in scores.items() if part[pair[0]] != part[pair[1]]}
        first, second = made.choose(apart, rho / (len(names) - 1))
        tree.append((first, second))
        part = {name: part[first] if at == part[second] else at for name, at in part.items()}
    made.measure(tree, rho)


def by_rounds(made: Marginals, epsilon: float, *, label: bool) -> None:
    """Measure what is most wrong, in rounds, after single columns for a tenth of the price."""
    pairs: list[Clique] = list(itertools.combinations(made.names, 2))
    # how many columns a triple shares with the workload, beside a pair with the class
    others = len(made.names) - 1
    weight = {2: 1.0, 3: 1 + others / (math.comb(others, 2) + 2 * others)}
    with_class = [one for one in pairs if CLASS in one]
    workload = pairs
    if label:
        workload = with_class + [(*one, CLASS) for one in pairs if CLASS not in one]
    rho, taken = concentrated_rho(epsilon), set[Clique]()
    made.measure([(name,) for name in made.names], 0.1 * rho)
    rho *= 0.9 / (N_ROUNDS * AT_ONCE)
    noise = math.sqrt(2 / math.pi) * math.sqrt(1 / (2 * MEASURED * rho))
    for _ in range(N_ROUNDS):
        weights = made.fit()[0]
        scores = {
            one: weight[len(one)] * (made.wrong(one, weights) - noise * made.domain.size(one))
            for one in workload
            if one not in taken
        }
        for _ in range(AT_ONCE):
            chosen = made.choose(scores, (1 - MEASURED) * rho, weight[max(map(len, scores))])
            made.measure([chosen], MEASURED * rho)
            taken.add(chosen)
            del scores[chosen]


METHODS = {
    "label": by_label,
    "AIM, label": functools.partial(by_rounds, label=True),
    "MST": by_tree,
    "AIM": functools.partial(by_rounds, label=False),
}


def accuracies(made: Marginals, split: Split, method: str, epsilon: float, run: int) -> Any:
    """Return the accuracy in percent of each that learns from what a method released."""
    made.begin(run)
    METHODS[method](made, epsilon)
    rows, asked = (
        np.column_stack([one[name] for name in made.asked]) for one in (made.rows, made.asked)
    )
    found = {}
    for steps, weights in zip(STEPS, made.fit(), strict=True):
        weights = weights / weights.mean()
        encoder = OneHotEncoder(handle_unknown="ignore")
        linear = make_pipeline(encoder, LogisticRegression(max_iter=300))
        linear.fit(rows, made.rows[CLASS], logisticregression__sample_weight=weights)
        trees = HistGradientBoostingClassifier(random_state=run)
        trees.fit(rows, made.rows[CLASS], sample_weight=weights)
        for name, one in (("logistic", linear), ("trees", trees)):
            right = one.predict(asked) == split.y_held_out
            found[f"{name} {steps}"] = 100 * float(np.mean(right))
    return found


def main(n_runs: int, names: list[str]) -> None:
    """Compute all cells that are not known, and print the mean of the best at each epsilon."""
    warnings.simplefilter("ignore")
    cells = Cells(BUILD / "marginal_peers.jsonl")
    for run, name in itertools.product(range(n_runs), names):
        split = split_of(name, run)
        made = Marginals(split)
        for method, epsilon in itertools.product(METHODS, EPSILONS):
            cells.found(
                {"table": name, "epsilon": epsilon, "run": run, "method": method},
                functools.partial(accuracies, made, split, method, epsilon, run),
            )
    for name, epsilon in itertools.product(names, EPSILONS):
        means = {
            f"{method}, {head} {steps}": np.mean(values)
            for method, head, steps in itertools.product(METHODS, ("logistic", "trees"), STEPS)
            if (
                values := cells.values(
                    f"{head} {steps}", table=name, epsilon=epsilon, method=method
                )
            )
        }
        best = max(means, key=means.__getitem__)
        print(f"{name}, epsilon {epsilon:g}: {means[best]:.1f} by {best}")


if __name__ == "__main__":
    if not importlib.util.find_spec("mbi") or missing_packages():
        sys.exit(print("Left out, as mbi or the packages with data are not here."))
    main(number_given(2), sys.argv[2:] or list(NAMES))
