"""Other differentially private learners on the tables of real_tables.py, for record_tables.py, and
on UCI Adult.

    build/peers/bin/python benchmarks/record_tables_peers.py [n_runs] [table, or adult ...]

They need versions of scikit-learn and numpy of their own, so an environment of their own
(benchmarks/peers.txt says how to make it). Results go to build/record_tables_peers.jsonl, one line
a cell, and a run that is interrupted goes on. Where the peers are not installed, it says so.

- Opacus: a perceptron of one hidden layer, six settings; the best at each epsilon, in hindsight,
  is reported. Its own accountant ("prv") sets the noise.
- DP-EBM (interpret): its defaults, with the pool's ranges as public bounds. Two classes alone.
- diffprivlib: logistic regression, with rows cut to the pool's median length, and a forest, with
  the pool's ranges; the better of both in hindsight is reported. delta is 0: it offers no more.

All get what the public pool tells: scales, levels, ranges. delta 1e-5.
"""

import os

# one BLAS thread, so that figures do not depend on the machine
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import functools
import importlib.util
import sys
import warnings
from typing import Any

import numpy as np

from cells import Cells, number_given
from real_tables import BUILD, NAMES, Split, encoded, filled, missing_packages, split_of

DELTA = 1e-5
EPSILONS = (0.1, 0.5, 1.0, 2.0)
HIDDEN, RATE, CLIP = 64, 0.1, 1.0
#: Steps and learning rates of gradient descent with momentum.
SETTINGS = tuple((steps, rate) for steps in (200, 500) for rate in (0.05, 0.2, 0.6))
PEERS = ("Opacus", "DP-EBM", "diffprivlib")
PATH = BUILD / "record_tables_peers.jsonl"


@functools.cache
def noise_of(epsilon: float, steps: int) -> float:
    """Return Opacus's noise multiplier."""
    from opacus.accountants.utils import get_noise_multiplier

    return float(
        get_noise_multiplier(
            target_epsilon=epsilon,
            target_delta=DELTA,
            sample_rate=RATE,
            steps=steps,
            accountant="prv",
            epsilon_tolerance=0.005,
        )
    )


def opacus_accuracy(split: Split, epsilon: float, seed: int, setting: tuple[int, float]) -> float:
    """Return the accuracy of a perceptron trained by Opacus."""
    import torch
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    steps, rate = setting
    private, _, held_out = (torch.tensor(one, dtype=torch.float32) for one in encoded(split))
    y = torch.tensor(split.y)
    network = GradSampleModule(
        torch.nn.Sequential(
            torch.nn.Linear(private.shape[1], HIDDEN),
            torch.nn.Tanh(),
            torch.nn.Linear(HIDDEN, split.n_classes),
        )
    )
    optimizer = DPOptimizer(
        torch.optim.SGD(network.parameters(), lr=rate, momentum=0.9),
        noise_multiplier=noise_of(epsilon, steps),
        max_grad_norm=CLIP,
        expected_batch_size=RATE * len(y),
    )
    loss = torch.nn.CrossEntropyLoss()
    for _ in range(steps):
        batch = torch.rand(len(y)) < RATE
        optimizer.zero_grad()
        loss(network(private[batch]), y[batch]).backward()
        optimizer.step()
    with torch.no_grad():
        found = network(held_out).argmax(dim=1).numpy()
    return 100 * float(np.mean(found == split.y_held_out))


def ebm_accuracy(split: Split, epsilon: float, seed: int) -> float | None:
    """Return the accuracy of DP-EBM, None for more than two classes."""
    from interpret.privacy import DPExplainableBoostingClassifier

    if split.n_classes > 2:
        return None
    private, pool, held_out = filled(split)
    kinds = ["nominal" if is_level else "continuous" for is_level in split.levels]
    bounds = {
        i: (float(pool[name].min()), float(pool[name].max()))
        for i, (name, kind) in enumerate(zip(pool, kinds, strict=True))
        if kind == "continuous"
    }
    model = DPExplainableBoostingClassifier(
        epsilon=epsilon, delta=DELTA, feature_types=kinds, privacy_bounds=bounds, n_jobs=1
    )
    model.fit(private, split.y)
    return 100 * float(np.mean(model.predict(held_out) == split.y_held_out))


def diffprivlib_accuracy(split: Split, epsilon: float, seed: int, name: str) -> float:
    """Return the accuracy of one of diffprivlib's classifiers."""
    from diffprivlib.models import LogisticRegression, RandomForestClassifier

    private, pool, held_out = encoded(split)
    if name == "linear":
        length = float(np.median(np.linalg.norm(pool, axis=1)))
        model: Any = LogisticRegression(epsilon=epsilon, data_norm=length, max_iter=300)
    else:
        low, high = pool.min(axis=0), pool.max(axis=0)
        model = RandomForestClassifier(
            n_estimators=10,
            epsilon=epsilon,
            bounds=(low, high),
            classes=list(range(split.n_classes)),
        )
        private, held_out = np.clip(private, low, high), np.clip(held_out, low, high)
    model.fit(private, split.y)
    return 100 * float(np.mean(model.predict(held_out) == split.y_held_out))


def tried(accuracy: Any, *arguments: Any) -> dict[str, Any]:
    """Return an accuracy, None of a learner that fails."""
    try:
        return {"accuracy": accuracy(*arguments)}
    except (ValueError, RuntimeError, np.linalg.LinAlgError):
        return {"accuracy": None}


def by_settings(peers: Cells, name: str, epsilon: float, method: str) -> list[list[float]]:
    """Return a peer's accuracies, setting by setting."""
    cells = [
        (tuple(np.atleast_1d(key.get("setting", "only")).tolist()), found["accuracy"])
        for key, found in peers.items()
        if (key["table"], key["epsilon"], key["method"]) == (name, epsilon, method)
        and found["accuracy"] is not None
    ]
    by_setting: dict[tuple[Any, ...], list[float]] = {}
    for setting, value in cells:
        by_setting.setdefault(setting, []).append(value)
    most = max(map(len, by_setting.values()), default=0)
    # a setting that has not been run as often as the others is not compared yet
    return [values for values in by_setting.values() if len(values) == most]


def main(n_runs: int, names: list[str]) -> None:
    """Compute all cells that are not known, and print the mean of the best setting of each peer."""
    warnings.simplefilter("ignore")
    cells = Cells(PATH)
    for run in range(n_runs):
        for name in names:
            split = split_of(name, run)
            for epsilon in EPSILONS:
                key = {"table": name, "epsilon": epsilon, "run": run}
                for one in ("linear", "forest"):
                    cells.found(
                        {**key, "method": "diffprivlib", "setting": one},
                        functools.partial(tried, diffprivlib_accuracy, split, epsilon, run, one),
                    )
                cells.found(
                    {**key, "method": "DP-EBM"},
                    functools.partial(tried, ebm_accuracy, split, epsilon, run),
                )
                for setting in SETTINGS:
                    cells.found(
                        {**key, "method": "Opacus", "setting": list(setting)},
                        functools.partial(tried, opacus_accuracy, split, epsilon, run, setting),
                    )
    for name in names:
        for epsilon in EPSILONS:
            found = [by_settings(cells, name, epsilon, one) for one in PEERS]
            best = [max(map(np.mean, values), default=np.nan) for values in found]
            texts = [f"{peer} {value:.1f}" for peer, value in zip(PEERS, best, strict=True)]
            print(f"{name}, epsilon {epsilon:g}: {', '.join(texts)}", flush=True)


if __name__ == "__main__":
    peers = ("diffprivlib", "interpret", "opacus")
    if absent := [name for name in peers if not importlib.util.find_spec(name)]:
        sys.exit(print(f"Left out, as {', '.join(absent)} are not here; see benchmarks/peers.txt."))
    if missing_packages():
        sys.exit(print("Left out, as the packages with data are not here; see real_tables.py."))
    main(number_given(3), sys.argv[2:] or list(NAMES))
