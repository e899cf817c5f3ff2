"""Record moments of other targets than one class, on UCI Adult: numbers, several labels, private
labels; delta 1e-5.

    python benchmarks/record_moments_targets.py [n_runs]

Numbers and several labels: adult.data alone is cut by a fixed seed into 20,000 private records, a
pool of 6,000 whose targets are not read, and 6,561 held-out rows, which are only scored.

- A number from all other columns: coefficient of determination, in percent. The peer has no
  privacy: ridge regression in the same public basis.
- Income, married and man from the columns that do not say so: accuracy of each label, in percent.
  The peers are three fits of one label each, with a third of epsilon and of delta; and, without
  privacy, logistic regression in the same basis.

Private labels: all labels of adult.data, whose features are public; the half of adult.test that
record_moments.py holds out first is only scored. The peer is randomised response as in
label_private.py, with the likelihood of the drawn labels, on a linear encoding and in the same
basis. Its draws are seeded: good for a comparison only.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, Ridge

from adult_students import half
from cells import head_of, number_given, row_of, text_of
from label_private import Task, linear_task, response_accuracy
from public_data import ADULT_CLASSES, ADULT_TARGET, adult
from secretballot import PrivacyBudget, RecordMomentsClassifier, RecordMomentsRegressor
from secretballot.bases import TableBasis

DELTA = 1e-5
EPSILONS = (0.1, 0.5, 1.0, 2.0)
SPLIT_SEED, N_PRIVATE, N_PUBLIC = 0, 20_000, 6_000
#: Public bounds of each number, and the columns that say the same in other words.
NUMBERS: dict[str, tuple[tuple[float, float], list[str]]] = {
    "age": ((17, 90), []),
    "hours-per-week": ((1, 99), []),
    "education-num": ((1, 16), ["education"]),
}
LABELS = ["high income", "married", "man"]
PENALTY = 1.0  # of the regression without privacy


def parts(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """Return private, public and held-out rows of adult.data."""
    order = np.random.default_rng(SPLIT_SEED).permutation(len(frame))
    return [frame.iloc[rows] for rows in np.split(order, [N_PRIVATE, N_PRIVATE + N_PUBLIC])]


def determination(predicted: np.ndarray, true: np.ndarray) -> float:
    """Return the coefficient of determination in percent."""
    return 100 * float(1 - np.mean((true - predicted) ** 2) / np.var(true))


def row(words: str, runs: Callable[[float, int], Any], n_runs: int) -> str:
    """Return a row of a table: mean and standard deviation of the runs at every epsilon."""
    cells = []
    for epsilon in EPSILONS:
        scores = np.atleast_2d(np.array([runs(epsilon, run) for run in range(n_runs)]).T)
        cells.append(", ".join(map(text_of, scores)))
    return row_of(words, *cells)


def head(first: str, *, last: Sequence[str] = ()) -> str:
    """Return the head of a table with one column for each epsilon."""
    return head_of(first, *(f"epsilon {epsilon:g}" for epsilon in EPSILONS), *last)


def numbers(n_runs: int) -> None:
    """Print coefficients of determination."""
    print("\n" + head("number, bounds", last=["without privacy"]))
    for name, (bounds, same) in NUMBERS.items():
        print(row_of_number(name, bounds, same, n_runs), flush=True)


def row_of_number(name: str, bounds: tuple[float, float], same: list[str], n_runs: int) -> str:
    """Return the row of one number, from all columns but those that say the same."""
    tables = parts(adult().train)
    X, pool, rest = (frame.drop(columns=[name, *same]) for frame in tables)
    y, _, y_held_out = (frame[name].to_numpy(float) for frame in tables)

    def score(epsilon: float, run: int) -> float:
        model = RecordMomentsRegressor(epsilon=epsilon, delta=DELTA)
        return determination(
            model.fit(X, y, X_public=pool, bounds=bounds).predict(rest), y_held_out
        )

    basis = TableBasis().fit(pool)
    plain = Ridge(PENALTY).fit(basis.transform(X), y)
    without = determination(plain.predict(basis.transform(rest)), y_held_out)
    cells = row(f"{name}, {bounds[0]} to {bounds[1]}", score, n_runs)
    return f"{cells} {without:.1f} |"


def several_labels(n_runs: int) -> None:
    """Print accuracies of three labels, learnt at once and one by one."""
    private, public, held_out = parts(adult().train)
    said = [ADULT_TARGET, "marital-status", "relationship", "sex"]
    X, pool, rest = (frame.drop(columns=said) for frame in (private, public, held_out))
    Y, Y_held_out = (label_table(frame) for frame in (private, held_out))

    def at_once(epsilon: float, run: int) -> np.ndarray:
        model = RecordMomentsClassifier(epsilon=epsilon, delta=DELTA)
        model.fit(X, Y, X_public=pool, labels=LABELS)
        return accuracies(model.predict(rest))

    def one_by_one(epsilon: float, run: int) -> np.ndarray:
        third = PrivacyBudget(epsilon / len(LABELS), DELTA / len(LABELS))
        models = [
            RecordMomentsClassifier(epsilon=third.epsilon, delta=third.delta).fit(
                X, y, X_public=pool, classes=[0, 1]
            )
            for y in Y.T
        ]
        return accuracies(np.column_stack([model.predict(rest) for model in models]))

    def accuracies(predicted: np.ndarray) -> np.ndarray:
        return 100 * np.mean(predicted == Y_held_out, axis=0)

    basis = TableBasis().fit(pool)
    Z, Z_rest = basis.transform(X), basis.transform(rest)
    plain = [LogisticRegression(C=10, max_iter=2000).fit(Z, y).predict(Z_rest) for y in Y.T]
    without, most = accuracies(np.column_stack(plain)), accuracies(np.rint(Y.mean(axis=0)))
    for words, shares in (("logistic regression", without), ("the more frequent value", most)):
        print(f"\nWithout privacy, {words}: " + ", ".join(f"{share:.1f}" for share in shares))
    print("\n" + head(", ".join(LABELS)))
    print(row("one fit of all labels", at_once, n_runs), flush=True)
    print(row("three fits, a third of the budget each", one_by_one, n_runs), flush=True)


def label_table(frame: pd.DataFrame) -> np.ndarray:
    """Return the labels of records, 0 and 1 of shape (n_records, 3)."""
    return np.column_stack(
        [
            frame[ADULT_TARGET] == ADULT_CLASSES[1],
            frame["marital-status"] == "Married-civ-spouse",
            frame["sex"] == "Male",
        ]
    ).astype(int)


def private_labels(n_runs: int) -> None:
    """Print accuracies where labels alone are private."""
    one = half()
    basis = TableBasis().fit(one.X)
    in_basis: Task = (basis.transform(one.X), one.y, basis.transform(one.held_out), one.y_held_out)

    def score(epsilon: float, run: int) -> float:
        model = RecordMomentsClassifier(epsilon=epsilon, delta=DELTA)
        model.fit(one.X, one.y, classes=[0, 1], public_features=True)
        return 100 * float(np.mean(model.predict(one.held_out) == one.y_held_out))

    linear = linear_task(one.X, one.y, one.held_out, one.y_held_out)
    print()
    for words, (X, y, X_test, y_test) in (("linear encoding", linear), ("same basis", in_basis)):
        plain = LogisticRegression(C=10, max_iter=2000).fit(X, y).score(X_test, y_test)
        print(f"Without privacy, logistic regression, {words}: {100 * plain:.2f}")
    print("\n" + head("private labels"))
    print(row("record moments", score, n_runs), flush=True)
    for words, task in (("linear encoding", linear), ("same basis", in_basis)):

        def response(epsilon: float, run: int, task: Task = task) -> float:
            return response_accuracy(task, epsilon, run)

        print(row(f"randomised response, {words}", response, n_runs), flush=True)


def main(n_runs: int) -> None:
    """Print a table for each kind of target."""
    numbers(n_runs)
    several_labels(n_runs)
    private_labels(n_runs)


if __name__ == "__main__":
    main(number_given(3))
