"""Label-private learning at equal (epsilon, delta = 1e-5), PATE against randomised response: UCI
Adult and MNIST.

    python benchmarks/label_private.py [n_runs]

Private: the labels of adult.data and of MNIST's training images. Public: their features; of MNIST
the first fifty principal components, found over all training images, since they are public. The
customary tests are only scored. Nothing was chosen on them: the number of teachers follows from
public numbers by the rule of `learn --set n_records=N`, everything else is the default.

The peer is randomised response: of C classes, every label is kept with probability e^epsilon /
(e^epsilon + C - 1), else another one is drawn, which is epsilon-differentially private for labels
with delta 0; then a logistic regression (L2 penalty 1) of the likelihood of the drawn labels
(Patrini et al. 2017). The random draws of the peer are seeded: good for a comparison only.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from adult_students import on_log_scale, parted
from cells import head_of, number_given, row_of, text_of
from public_data import ADULT_SCHEMA, adult, mnist
from secretballot import PATEClassifier, PrivacyBudget
from secretballot.data.schema import Schema
from secretballot.learners.pate_mechanisms import choose_teachers

DELTA = 1e-5
EPSILONS = (0.5, 1.0, 2.0)

Task = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def adult_task() -> Task:
    """Return X and y of the records and of the test."""
    (X, y), (X_test, y_test) = map(parted, adult())
    return linear_task(X, y, X_test, y_test)


def linear_task(X: pd.DataFrame, y: np.ndarray, X_test: pd.DataFrame, y_test: np.ndarray) -> Task:
    """Return the encoding of features, centred over all records, since they are public."""
    frames = [on_log_scale(frame) for frame in (X, X_test)]
    schema = Schema.from_json(ADULT_SCHEMA, public=frames[0])
    Z, Z_test = (schema.encode(frame) for frame in frames)
    return Z - Z.mean(axis=0), y, Z_test - Z.mean(axis=0), y_test


def mnist_task() -> Task:
    """Return X and y of the training images and of the test, as principal components of the
    training images."""
    data = mnist()
    components = PCA(50, random_state=0).fit(data.X_train / 255)
    return (
        components.transform(data.X_train / 255),
        data.y_train,
        components.transform(data.X_test / 255),
        data.y_test,
    )


def randomised_response(
    y: np.ndarray, n_classes: int, epsilon: float, rng: np.random.Generator
) -> np.ndarray:
    """Return every label with the probability that epsilon allows, else one of the others."""
    keep = np.exp(epsilon) / (np.exp(epsilon) + n_classes - 1)
    others = (y + rng.integers(1, n_classes, len(y))) % n_classes
    return np.where(rng.random(len(y)) < keep, y, others)


def fit_response(X: np.ndarray, drawn: np.ndarray, lift: float, floor: float) -> np.ndarray:
    """Return weights, the last row intercepts without penalty, that minimise |W|^2 / 2 and minus
    the log likelihood of the drawn labels, of shape (n, n_classes) with one 1 in each row."""
    rows = np.column_stack([X, np.ones(len(X))])
    shape = rows.shape[1], drawn.shape[1]
    penalised = np.r_[np.ones(X.shape[1]), 0.0][:, None]

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        W = flat.reshape(shape)
        p = softmax(rows @ W, axis=1)
        own = (p * drawn).sum(axis=1, keepdims=True)
        q = floor + lift * own
        slope = rows.T @ (-lift / q * own * (drawn - p)) + penalised * W
        return -float(np.log(q).sum()) + 0.5 * float((penalised * W**2).sum()), slope.ravel()

    start, limits = np.zeros(shape[0] * shape[1]), {"maxiter": 500}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=limits)
    return np.asarray(found.x).reshape(shape)


def response_accuracy(task: Task, epsilon: float, run: int) -> float:
    """Return the test accuracy of one run of randomised response, in percent."""
    X, y, X_test, y_test = task
    n_classes = int(y.max()) + 1
    drawn = randomised_response(y, n_classes, epsilon, np.random.default_rng(run))
    # chance of each other label; the true one has e^epsilon times that
    floor = 1 / (np.exp(epsilon) + n_classes - 1)
    one_hot = (drawn[:, None] == np.arange(n_classes)).astype(float)
    W = fit_response(X, one_hot, np.expm1(epsilon) * floor, floor)
    return 100 * float(np.mean((X_test @ W[:-1] + W[-1]).argmax(axis=1) == y_test))


def vote_accuracy(dropped: float, task: Task, epsilon: float, run: int) -> float:
    """Return the test accuracy of one run of label-private PATE, in percent."""
    X, y, X_test, y_test = task
    budget = PrivacyBudget(epsilon=epsilon, delta=DELTA)
    K = choose_teachers(budget, len(y) - int(dropped * len(y)), X.shape[1])
    model = PATEClassifier(n_teachers=K, **budget.to_json(), random_state=run)
    classes = list(range(int(y.max()) + 1))
    model.fit(X, y, classes=classes, public_features=True, dropped=dropped)
    return 100 * float(np.mean(model.predict(X_test) == y_test))


WAYS: dict[str, Callable[[Task, float, int], float]] = {
    "PATE, half the labels dropped": partial(vote_accuracy, 0.5),
    "PATE, no label dropped": partial(vote_accuracy, 0.0),
    "randomised response": response_accuracy,
}


def main(n_runs: int) -> None:
    """Print a table for each task: one row for each way, one column for each epsilon."""
    # images take long: three runs at most
    for name, task, most in (
        ("Adult", adult_task(), n_runs),
        ("MNIST", mnist_task(), min(n_runs, 3)),
    ):
        X, y, X_test, y_test = task
        without = 100 * LogisticRegression(max_iter=1000).fit(X, y).score(X_test, y_test)
        print(f"\n{name}. Logistic regression on the true labels, without privacy: {without:.2f}\n")
        print(head_of("way", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)))
        for words, way in WAYS.items():
            runs = [[way(task, epsilon, run) for run in range(most)] for epsilon in EPSILONS]
            print(row_of(words, *(text_of(scores, 2) for scores in runs)), flush=True)


if __name__ == "__main__":
    main(number_given(5))
