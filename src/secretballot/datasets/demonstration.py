"""Small data that comes with the program, as files: a clinic that never was, and scikit-learn's
breast cancer data."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

#: Splits and synthetic people come from a public random seed; no privacy rests on it.
_SEED = 20260
_PRIVATE, _PUBLIC, _TEST = 20_000, 2_000, 4_000


@dataclass(frozen=True)
class DemonstrationFiles:
    """Files of one demonstration.

    Attributes
    ----------
    private, public, test : Path
        Labelled private records, unlabelled public ones, labelled test records.
    target : str
    classes : tuple of str
    """

    private: Path
    public: Path
    test: Path
    target: str
    classes: tuple[str, str]


def write_clinic(folder: Path) -> DemonstrationFiles:
    """Write synthetic patients of one clinic.

    Numbers, categories, a few gaps, and whether each came back.

    Parameters
    ----------
    folder : Path
        Where the files go; made if it is not there.
    """
    rng = np.random.default_rng(_SEED)
    rows = _PRIVATE + _PUBLIC + _TEST
    age = rng.integers(18, 95, rows)
    stay = 1 + rng.poisson(3.5, rows)
    pressure = rng.normal(115 + 0.3 * age, 14).round()
    ward = rng.choice(["surgery", "heart", "general", "lung"], rows, p=[0.3, 0.2, 0.35, 0.15])
    smoker = rng.random(rows) < 0.3
    risk = 0.05 * (age - 60) + 0.35 * (stay - 4) + 0.03 * (pressure - 130) + 1.2 * smoker
    risk += np.select([ward == "heart", ward == "lung"], [1.0, 0.7], -0.5)
    # a few missing values, as real tables have them: they must go through the same encoding
    frame = pd.DataFrame(
        {
            "age": age,
            "stay_days": stay,
            "pressure": np.where(rng.random(rows) < 0.03, np.nan, pressure),
            "ward": ward,
            "smoker": np.where(smoker, "yes", "no"),
            "readmitted": np.where(2.0 * risk + rng.logistic(size=rows) > 0, "yes", "no"),
        }
    )
    return _write_tables(folder, frame, "readmitted", (_PRIVATE, _PUBLIC))


def write_breast_cancer(folder: Path) -> DemonstrationFiles:
    """Write scikit-learn's breast cancer data, split at random into private, public and test
    records.

    Parameters
    ----------
    folder : Path
        Where the files go; made if it is not there.
    """
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer(as_frame=True)
    frame = data.data.rename(columns=lambda name: name.replace(" ", "_"))
    frame["diagnosis"] = np.where(data.target == 1, "benign", "malignant")
    frame = frame.iloc[np.random.default_rng(_SEED).permutation(len(frame))]
    return _write_tables(folder, frame, "diagnosis", (320, 120))


def _write_tables(
    folder: Path, frame: pd.DataFrame, target: str, sizes: tuple[int, int]
) -> DemonstrationFiles:
    """Write the first rows as private, the next as public without the target, the rest as test."""
    folder.mkdir(parents=True, exist_ok=True)
    first, second = sizes[0], sum(sizes)
    parts = {
        "private": frame.iloc[:first],
        "public": frame.iloc[first:second].drop(columns=target),
        "test": frame.iloc[second:],
    }
    for name, part in parts.items():
        part.to_csv(folder / f"{name}.csv", index=False)
    paths = {name: folder / f"{name}.csv" for name in parts}
    classes = sorted(set(frame[target]))
    return DemonstrationFiles(**paths, target=target, classes=(classes[0], classes[1]))
