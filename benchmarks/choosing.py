"""What tuning by a paid choice, or by a paid estimate, is worth on UCI Adult at epsilon 1, delta
1e-5.

    python benchmarks/choosing.py [n_runs]

Data, split and encoding are those of adult_students.py; nothing here was chosen on the held-out
half. Every way has the same budget. The ways that choose set a tenth of the private records aside
for it, by `hold_out`.

Fixed rule: all of epsilon for one fit at the K of `choose_teachers`, with noisy counts or with
labels. Three fits: K and release differ, epsilon 0.3 each, and 0.1 for the choice. One fit: epsilon
0.9 for noisy counts, three students learn from them, and 0.1 for the choice. Estimate: labels,
epsilon 0.1 for the stability of the typical vote, which sets l.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from adult_students import DELTA, STATED_RECORDS, half
from cells import head_of, number_given, row_of, text_of
from secretballot import Ledger, NoisyCountsClassifier, PATEClassifier, PrivacyBudget
from secretballot.learners.pate_mechanisms import choose_teachers
from secretballot.learners.selection import choose_candidate
from secretballot.learners.table import hold_out
from secretballot.students import fit_student

EPSILON, PART, PRICE, SHARE = 1.0, 0.3, 0.1, 0.1
BUDGET = PrivacyBudget(EPSILON, DELTA)
X, Y, POOL, X_TEST, Y_TEST = half().linear
K = choose_teachers(BUDGET, STATED_RECORDS, X.shape[1])
SMALL, LARGE = max(10, K // 3), min(3 * K, STATED_RECORDS // 10)


def score(model: Any) -> float:
    """Return the held-out accuracy in percent."""
    return 100 * float((model.predict(X_TEST) == Y_TEST).mean())


def fit(rows: np.ndarray, run: int, **settings: Any) -> PATEClassifier:
    """Return a fit on some private records."""
    model = PATEClassifier(**{"n_teachers": K, **BUDGET.to_json(), "random_state": run, **settings})
    return model.fit(X[rows], Y[rows], X_public=POOL, classes=[0, 1])


def chosen(candidates: list[tuple[str, Any]], held: np.ndarray, ledger: Ledger) -> float:
    """Return the accuracy of the chosen candidate."""
    found = choose_candidate(
        candidates,
        X[held],
        Y[held],
        classes=[0, 1],
        epsilon=PRICE,
        ledger=ledger,
        X_public=POOL[:40],
    )
    return score(dict(candidates)[found.certificate_["public"]["chosen"]])


def fixed(release: str) -> Callable[[int], float]:
    """Return the fixed rule for a kind of release."""
    return lambda run: score(fit(np.arange(len(X)), run, mechanism=release))


def three_fits(run: int) -> float:
    """Tune K and what is released: every candidate needs a release of its own."""
    ledger = Ledger.in_memory(dataset="adult", budget=BUDGET)
    taught, held = hold_out(len(X), SHARE)
    part = PrivacyBudget(PART, 0.33 * DELTA)
    settings = [(SMALL, "counts"), (LARGE, "counts"), (LARGE, "labels")]
    fits = [
        (
            f"K={k}, {release}",
            fit(taught, run, n_teachers=k, mechanism=release, **part.to_json(), ledger=ledger),
        )
        for k, release in settings
    ]
    return chosen(fits, held, ledger)


def one_fit(run: int) -> float:
    """Tune the student: all candidates learn from one release."""
    ledger = Ledger.in_memory(dataset="adult", budget=BUDGET)
    taught, held = hold_out(len(X), SHARE)
    rest = PrivacyBudget(EPSILON - PRICE, DELTA)
    first = fit(taught, run, **rest.to_json(), ledger=ledger, mechanism="counts")
    others: dict[str, Any] = {
        "logistic on the labels": LogisticRegression(max_iter=1000, C=0.1),
        "tree on the labels": DecisionTreeClassifier(max_depth=5, random_state=0),
    }
    released = first.released_
    students = [(name, fit_student(student, POOL, released)) for name, student in others.items()]
    return chosen([(NoisyCountsClassifier.__name__, first), *students], held, ledger)


def estimated(run: int) -> float:
    """Let a paid estimate set the number of labels."""
    sizes = f"estimate:epsilon={PRICE}"
    return score(fit(np.arange(len(X)), run, mechanism="labels", n_queries=sizes))


WAYS: dict[str, Callable[[int], float]] = {
    "fixed rule, counts": fixed("counts"),
    "fixed rule, labels": fixed("labels"),
    "three fits, choice": three_fits,
    "one fit, three students, choice": one_fit,
    "labels, estimate sets l": estimated,
}


def main(n_runs: int) -> None:
    """Print one row for each way."""
    print(f"K = {K}; candidates K = {SMALL} and {LARGE}\n\n" + head_of("way", "accuracy (sd)"))
    for name, way in WAYS.items():
        print(row_of(name, text_of([way(run) for run in range(n_runs)], 2)), flush=True)


if __name__ == "__main__":
    main(number_given(5))
