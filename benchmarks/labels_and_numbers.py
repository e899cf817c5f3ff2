"""Several labels and numbers by votes of teachers, on Adult: ballots, means against medians, and
record moments beside them.

    python benchmarks/labels_and_numbers.py [n_teachers]

Labels: income above 50K, married, a man. The number: age, between 17 and 90. Private: 28,000 rows
of adult.data; public pool: 2,000 others; held out: the rest. Numbers of all columns but the
targets and what nearly is one; teachers are logistic and ridge regressions on one-hot columns. One
run each: differences of a point are chance.
"""

import sys
import warnings

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import secretballot as sb
from public_data import ADULT_CLASSES, ADULT_TARGET, adult

DELTA, EPSILONS, PRIVATE, POOL = 1e-5, (1.0, 2.0, 4.0), 28_000, 2_000
LABELS = ("rich", "married", "man")
BALLOTS = {
    "labels one by one, counts": {},
    "labels alone": {"mechanism": "labels"},
    "at most one label, counts": {"mechanism": "auto:most_named=1"},
    "sets, counts": {"mechanism": "sets"},
}


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return features and labels of adult.data, in an order of its own."""
    table = adult().train.sample(frac=1.0, random_state=0, ignore_index=True)
    labels = pd.DataFrame(
        {
            "rich": table[ADULT_TARGET] == ADULT_CLASSES[1],
            "married": table["marital-status"].astype(str) == "Married-civ-spouse",
            "man": table["sex"].astype(str) == "Male",
        }
    ).astype(int)
    dropped = [ADULT_TARGET, "marital-status", "sex", "relationship"]
    return table.drop(columns=dropped), labels


def one_hot(public: pd.DataFrame) -> object:
    """Return columns as numbers, by the levels that the public points show."""
    texts = make_column_selector(dtype_exclude="number")
    levels = OneHotEncoder(handle_unknown="ignore", min_frequency=8, sparse_output=False)
    numbers = make_column_selector(dtype_include="number")
    return make_column_transformer((levels, texts), (StandardScaler(), numbers)).fit(public)


def main() -> None:
    """Print both tables."""
    n_teachers = int(sys.argv[1]) if len(sys.argv) > 1 else 250
    warnings.simplefilter("ignore")
    features, labels = tables()
    cuts = [slice(0, PRIVATE), slice(PRIVATE, PRIVATE + POOL), slice(PRIVATE + POOL, None)]
    encoder = one_hot(features.iloc[cuts[1]])
    private, pool, held_out = (encoder.transform(features.iloc[cut]) for cut in cuts)
    y, truth = (labels.iloc[cut].to_numpy() for cut in (cuts[0], cuts[2]))
    print(f"right labels of {', '.join(LABELS)}, in per cent; {n_teachers} teachers")
    plain = [LogisticRegression(max_iter=300).fit(private, y[:, j]) for j in range(3)]
    shown("no privacy", [one.predict(held_out) for one in plain], truth)
    shown("one side", [np.full(len(truth), round(y[:, j].mean())) for j in range(3)], truth)
    for epsilon in EPSILONS:
        budget = sb.PrivacyBudget(epsilon, DELTA)
        for name, settings in BALLOTS.items():
            model = sb.PATEClassifier(
                n_teachers=n_teachers,
                epsilon=budget.epsilon,
                delta=budget.delta,
                n_queries=400,
                **settings,
            ).fit(private, y, X_public=pool, labels=LABELS)
            shown(f"epsilon {epsilon:g}, {name}", model.predict(held_out).T, truth)
        moments = sb.RecordMomentsClassifier(epsilon=budget.epsilon, delta=budget.delta)
        moments.fit(private, y, X_public=pool, labels=LABELS)
        shown(f"epsilon {epsilon:g}, record moments", moments.predict(held_out).T, truth)
    numbers_of_age(features, cuts, n_teachers)


def shown(name: str, columns: list[np.ndarray], truth: np.ndarray) -> None:
    """Print how many of each label are right."""
    right = [100 * (column == truth[:, j]).mean() for j, column in enumerate(columns)]
    print(f"{name:<40}", " / ".join(f"{value:.1f}" for value in right), flush=True)


def numbers_of_age(features: pd.DataFrame, cuts: list[slice], n_teachers: int) -> None:
    """Print the root of the mean squared error of predicted ages, in years."""
    rest = features.drop(columns="age")
    encoder = one_hot(rest.iloc[cuts[1]])
    private, pool, held_out = (encoder.transform(rest.iloc[cut]) for cut in cuts)
    y, truth = (features["age"].iloc[cut].to_numpy(float) for cut in (cuts[0], cuts[2]))
    print("\nroot mean squared error of age, years")
    plain = make_pipeline(StandardScaler(), Ridge()).fit(private, y).predict(held_out)
    for name, found in (("no privacy", plain), ("the mean", np.full(len(truth), y.mean()))):
        print(f"{name:<40} {np.sqrt(((found - truth) ** 2).mean()):.2f}")
    for epsilon in EPSILONS:
        budget = sb.PrivacyBudget(epsilon, DELTA)
        for statistic in ("mean", "quantile"):
            model = sb.PATERegressor(
                n_teachers=n_teachers,
                epsilon=budget.epsilon,
                delta=budget.delta,
                mechanism=statistic,
            ).fit(private, y, X_public=pool, bounds=(17, 90))
            error = np.sqrt(((model.predict(held_out) - truth) ** 2).mean())
            asked = len(model.released_.rows)
            print(f"epsilon {epsilon:g}, {statistic} of {asked} points".ljust(40), f"{error:.2f}")
        moments = sb.RecordMomentsRegressor(epsilon=budget.epsilon, delta=budget.delta)
        moments.fit(private, y, X_public=pool, bounds=(17, 90))
        error = np.sqrt(((moments.predict(held_out) - truth) ** 2).mean())
        print(f"epsilon {epsilon:g}, record moments".ljust(40), f"{error:.2f}", flush=True)


if __name__ == "__main__":
    main()
