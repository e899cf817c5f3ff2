"""One hospital: trains teachers on its own records and sends their votes on the common points.

    python hospital.py SEED POINTS OUT trusted      # exact counts, for a curator who is trusted
    python hospital.py SEED POINTS OUT noisy        # counts with noise of its own, for anybody

Its records never leave this process. SEED replaces the hospital's own file, which here is
simulated.
"""

import json
import sys
from pathlib import Path

import numpy as np

import secretballot as sb

CLASSES, N_TEACHERS, N_RECORDS = ["healthy", "ill"], 100, 4000
BUDGET = sb.PrivacyBudget(epsilon=1.0, delta=1e-6)


def own_records(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return records and labels of this hospital."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_RECORDS, 4))
    ill = X[:, 0] - X[:, 1] + rng.normal(0, 0.7, N_RECORDS) > 0
    return X, np.where(ill, CLASSES[1], CLASSES[0])


def main() -> None:
    """Train, vote, and write what is sent."""
    seed, points, out, mode = int(sys.argv[1]), np.load(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
    X, y = own_records(seed)
    teachers = sb.train_teachers(
        "logistic", X, y, classes=CLASSES, n_teachers=N_TEACHERS, X_public=points
    )
    counts = teachers.vote(teachers.points(points))
    if mode == "trusted":
        out.mkdir(mode=0o700)  # counts are secret until they are released
        sb.write_votes(counts, out / "counts.npy")
        return
    # A person is a patient of one hospital alone, so the releases of all hospitals together have
    # the guarantee of each of them.
    ledger = sb.Ledger(out.with_suffix(".ledger"), dataset=f"hospital-{seed}", budget=BUDGET)
    purpose = "labels for the common points"
    released = sb.release(counts, "counts", ledger, BUDGET, purpose=purpose)
    out.write_text(json.dumps(released.to_json()))


if __name__ == "__main__":
    main()
