"""Label-private learning on UCI Adult at equal (epsilon, delta = 1e-5): PATE against randomised response.

    python benchmarks/label_private.py [n_runs]

Private: the labels of adult.data. Public: its features. adult.test is only scored. Nothing was chosen on either: the
number of teachers follows from public numbers by the rule of `learn --records`, everything else is the default.

The peer is randomised response: every label is kept with probability e^epsilon / (1 + e^epsilon), else flipped, which
is epsilon-differentially private for labels with delta 0; then a logistic regression (C = 1) that knows the flip rate.
Two corrections: "unbiased", whose loss has the expectation of the loss on true labels (Natarajan et al. 2013), and
"forward", the likelihood of the flipped labels (Patrini et al. 2017). The coins of the peer are seeded: good for a
comparison only.
"""

import os

# one BLAS thread: teachers are small and many
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import sys  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from scipy.optimize import minimize  # noqa: E402
from scipy.special import expit  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

from secretballot import LabelPrivateClassifier, PrivacyBudget  # noqa: E402
from secretballot.datasets.schema import Schema  # noqa: E402
from secretballot.datasets.uci_adult import ADULT_SCHEMA, ADULT_TARGET, adult  # noqa: E402
from secretballot.learners.plan import choose_teachers  # noqa: E402

DELTA = 1e-5
EPSILONS = (0.5, 1.0, 2.0)
SKEWED = ["capital-gain", "capital-loss"]  # amounts of money: on a log scale, by public knowledge


def encoded() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return X and y of the records and of the test; features are scaled over all records, since they are public."""
    data = adult()
    frames = [on_log_scale(frame) for frame in (data.train, data.test)]
    schema = Schema.from_json(ADULT_SCHEMA, public=frames[0])
    X, X_test = (schema.encode(frame) for frame in frames)
    y, y_test = ((frame[ADULT_TARGET] == ">50K").to_numpy().astype(int) for frame in data)
    return X - X.mean(axis=0), y, X_test - X.mean(axis=0), y_test


def on_log_scale(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the features with amounts of money on a log scale."""
    features = frame.drop(columns=ADULT_TARGET)
    return features.assign(**{name: np.log1p(features[name]) for name in SKEWED})


def randomised_response(y: np.ndarray, epsilon: float, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return the labels, each flipped with the probability that epsilon asks for, and that probability."""
    flip = 1 / (1 + np.exp(epsilon))
    return np.where(rng.random(len(y)) < flip, 1 - y, y), flip


def fit_linear(loss: Callable[[np.ndarray], tuple[float, np.ndarray]], X: np.ndarray) -> np.ndarray:
    """Return weights, the last of them an intercept without penalty, that minimise a loss of scores plus |w|^2 / 2."""
    rows = np.column_stack([X, np.ones(len(X))])
    penalised = np.r_[np.ones(X.shape[1]), 0.0]

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = loss(rows @ w)
        return value + 0.5 * (penalised * w) @ w, rows.T @ slope + penalised * w

    return np.asarray(minimize(objective, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B").x)


def unbiased_loss(flipped: np.ndarray, flip: float) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Return the logistic loss on targets whose expectation over the flips is the true label; still convex."""
    target = (flipped - flip) / (1 - 2 * flip)
    return lambda s: (float(np.logaddexp(0, s).sum() - target @ s), expit(s) - target)


def forward_loss(flipped: np.ndarray, flip: float) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Return minus the log likelihood of the flipped labels."""

    def loss(s: np.ndarray) -> tuple[float, np.ndarray]:
        p = expit(s)
        q = flip + (1 - 2 * flip) * p
        slope = -(flipped / q - (1 - flipped) / (1 - q)) * (1 - 2 * flip) * p * (1 - p)
        return -float(np.log(np.where(flipped == 1, q, 1 - q)).sum()), slope

    return loss


def response_accuracy(correction: str, epsilon: float, run: int) -> float:
    """Return the test accuracy of one run of randomised response, in percent."""
    X, y, X_test, y_test = encoded()
    flipped, flip = randomised_response(y, epsilon, np.random.default_rng(run))
    w = fit_linear((unbiased_loss if correction == "unbiased" else forward_loss)(flipped, flip), X)
    return 100 * float(np.mean((X_test @ w[:-1] + w[-1] > 0) == y_test))


def vote_accuracy(dropped: float, aggregator: str, epsilon: float, run: int) -> float:
    """Return the test accuracy of one run of label-private PATE, in percent."""
    X, y, X_test, y_test = encoded()
    budget = PrivacyBudget(epsilon=epsilon, delta=DELTA)
    K = choose_teachers(budget, len(y) - int(dropped * len(y)), X.shape[1])
    model = LabelPrivateClassifier(
        n_teachers=K, budget=budget, dropped=dropped, aggregator=aggregator, random_state=run
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the sparse vector says where it answers nothing
        model.fit(X, y, classes=[0, 1])
    return 100 * float(np.mean(model.predict(X_test) == y_test))


WAYS: dict[str, Callable[[float, int], float]] = {
    "PATE, half the labels dropped": lambda epsilon, run: vote_accuracy(0.5, "gaussian", epsilon, run),
    "PATE, no label dropped": lambda epsilon, run: vote_accuracy(0.0, "gaussian", epsilon, run),
    "PATE, half dropped, sparse vector": lambda epsilon, run: vote_accuracy(0.5, "sparse-vector", epsilon, run),
    "randomised response, unbiased": lambda epsilon, run: response_accuracy("unbiased", epsilon, run),
    "randomised response, forward": lambda epsilon, run: response_accuracy("forward", epsilon, run),
}


def main(n_runs: int) -> None:
    """Print one row for each way, one column for each epsilon."""
    X, y, X_test, y_test = encoded()
    without = 100 * LogisticRegression(max_iter=1000).fit(X, y).score(X_test, y_test)
    print(f"Logistic regression on the true labels, without privacy: {without:.2f}\n")
    print("| way | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS) + " |")
    print("|---" * (1 + len(EPSILONS)) + "|")
    for name, way in WAYS.items():
        cells = []
        for epsilon in EPSILONS:
            scores = [way(epsilon, run) for run in range(n_runs)]
            deviation = np.std(scores, ddof=1) if n_runs > 1 else 0.0
            cells.append(f"{np.mean(scores):.2f} ± {deviation:.2f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
