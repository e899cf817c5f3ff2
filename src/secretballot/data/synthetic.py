"""The files of a clinic that never was, to try the program on."""

from pathlib import Path

import numpy as np
import pandas as pd

#: Splits and synthetic people come from a public random seed; no privacy rests on it.
_SEED = 20260
_PRIVATE, _PUBLIC, _TEST = 20_000, 2_000, 4_000


def write_clinic(folder: Path) -> None:
    """Write synthetic patients of one clinic: private.csv, public.csv and test.csv.

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
    folder.mkdir(parents=True, exist_ok=True)
    parts = {
        "private": frame.iloc[:_PRIVATE],
        "public": frame.iloc[_PRIVATE : _PRIVATE + _PUBLIC].drop(columns="readmitted"),
        "test": frame.iloc[_PRIVATE + _PUBLIC :],
    }
    for name, part in parts.items():
        part.to_csv(folder / f"{name}.csv", index=False)
