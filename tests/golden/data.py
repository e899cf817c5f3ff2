"""Small tables for golden runs, of integers that numpy's legacy generator draws alike for ever."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

N, N_PUBLIC, N_NEW = 400, 60, 60


@cache
def plane(classes: int = 2) -> dict[str, Any]:
    """Return records and points on a plane, whose class is a strip of it but for one in ten."""
    drawn = np.random.RandomState(27)
    X = drawn.randint(-400, 401, (N + N_PUBLIC + N_NEW, 3)) / 100
    total = X[:, 0] + X[:, 1]
    cuts = {2: [0.0], 3: [-1.0, 1.0]}[classes]
    y = np.digitize(total, cuts)
    noisy = np.where(drawn.randint(10, size=len(y)) == 0, drawn.randint(classes, size=len(y)), y)
    return {
        "X": X[:N],
        "y": noisy[:N],
        "units": np.arange(N) // 2,
        "numbers": 2 * X[:N, 0] - X[:N, 2],
        "sets": np.column_stack([X[:N, 0] > 0, X[:N, 1] > 1, X[:N, 2] > 2]).astype(int),
        "X_public": X[N : N + N_PUBLIC],
        "X_new": X[N + N_PUBLIC :],
        "y_new": y[N + N_PUBLIC :],
        "classes": list(range(classes)),
    }


@cache
def line() -> dict[str, Any]:
    """Return many records on a line, whose class is a threshold's but for one in ten."""
    drawn = np.random.RandomState(28)
    X = drawn.randint(0, 10_001, (3060, 1)) / 10_000
    y = np.where(drawn.randint(10, size=len(X)) == 0, 1, 0) ^ (X[:, 0] > 0.4)
    asked = np.array([[0.02], [0.05], [0.1], [0.9], [0.95], [0.99], [0.02], [0.5]])
    more = {"X_public": X[3000:], "X_new": X[3000:]}
    return {"X": X[:3000], "y": y[:3000].astype(int), "asked": asked, "classes": [0, 1], **more}


@cache
def clinic() -> pd.DataFrame:
    """Return a table with a column of every kind: number, category, date, text and vector."""
    drawn = np.random.RandomState(29)
    n = 500
    age, ward = drawn.randint(20, 90, n), drawn.randint(3, size=n)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(drawn.randint(700, size=n), unit="D")
    words = np.array(["cough", "fever", "rest", "pain", "check", "sleep", "walk", "night"])
    notes = [" ".join(words[drawn.randint(8, size=6)]) for _ in range(n)]
    ill = (age + 10 * (ward == 1) + drawn.randint(-10, 11, n) > 60).astype(int)
    return pd.DataFrame(
        {
            "person": [f"p{i // 2}" for i in range(n)],
            "age": age,
            "ward": np.array(["north", "south", "west"])[ward],
            "day": day.strftime("%Y-%m-%d"),
            "note": notes,
            "v0": drawn.randint(-100, 101, n) / 10,
            "v1": drawn.randint(-100, 101, n) / 10,
            "ill": np.array(["no", "yes"])[ill],
        }
    )
