"""Three hospitals, each a process of its own, and the curator who learns from what they send.

    python curator.py FOLDER trusted    # the curator sees exact counts, and pays once for all
    python curator.py FOLDER noisy      # the curator sees noisy counts alone

Everybody knows the points beforehand. With a trusted curator the noise is that of one release, and
nobody else sees it without. Where nobody is trusted every hospital adds noise of its own: what the
three add up to is as noisy as the square root of three releases.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from hospital import BUDGET, CLASSES, N_TEACHERS
from sklearn.linear_model import LogisticRegression

import secretballot as sb

HOSPITALS, N_POINTS = (1, 2, 3), 200


def sent_by_hospitals(folder: Path, mode: str) -> list[Path]:
    """Run the hospitals; return what each of them sent."""
    points = folder / "points.npy"
    np.save(points, np.random.default_rng(0).normal(size=(N_POINTS, 4)))
    sent = [folder / f"hospital-{seed}" for seed in HOSPITALS]
    program = Path(__file__).with_name("hospital.py")
    running = [
        subprocess.Popen([sys.executable, str(program), str(seed), str(points), str(out), mode])
        for seed, out in zip(HOSPITALS, sent, strict=True)
    ]
    ended = [one.wait() for one in running]  # all of them, before anything is said
    if any(ended):
        raise SystemExit("A hospital failed; see what it says above.")
    return sent


def labels_by_trusted_curator(folder: Path, sent: list[Path]) -> np.ndarray:
    """Return the labels of one release of the counts of all hospitals together."""
    total = sum(np.load(out / "counts.npy") for out in sent)
    n_teachers = N_TEACHERS * len(sent)
    counts = sb.votes_of_counts(total, classes=CLASSES, n_teachers=n_teachers)
    ledger = sb.Ledger(folder / "all.ledger", dataset="three-hospitals", budget=BUDGET)
    purpose = "labels for the common points"
    released = sb.release(counts, "counts", ledger, BUDGET, purpose=purpose)
    (folder / "release.json").write_text(json.dumps(released.to_json()))
    return np.array(released.label_values)


def labels_by_anybody(sent: list[Path]) -> np.ndarray:
    """Return what most of the noisy counts say, once every certificate has been verified."""
    releases = [sb.ReleasedLabels.from_json(json.loads(out.read_text())) for out in sent]
    for one in releases:
        if not sb.verify_certificate(one.certificate).ok:
            raise SystemExit("A certificate does not verify.")
    # of two classes the votes for the second are released
    ill = np.sum([one.noisy_counts for one in releases], axis=0)
    return np.where(2 * ill >= N_TEACHERS * len(sent), CLASSES[1], CLASSES[0])


def main() -> None:
    """Learn a student, and say how good it is on points that nobody has seen."""
    folder, mode = Path(sys.argv[1]), sys.argv[2]
    sent = sent_by_hospitals(folder, mode)
    trusted = mode == "trusted"
    labels = labels_by_trusted_curator(folder, sent) if trusted else labels_by_anybody(sent)
    student = LogisticRegression().fit(np.load(folder / "points.npy"), labels)
    X = np.random.default_rng(9).normal(size=(20_000, 4))
    truth = np.where(X[:, 0] - X[:, 1] > 0, CLASSES[1], CLASSES[0])
    print(f"{mode}: {100 * (student.predict(X) == truth).mean():.1f} % right")


if __name__ == "__main__":
    main()
