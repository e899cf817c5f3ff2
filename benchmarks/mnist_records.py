"""MNIST with every training image its own teacher, at equal (epsilon, delta = 1e-5).

    python benchmarks/mnist_records.py [n_runs]

Private: the 60,000 training images and their labels. Public: test images 0-8999, whose labels are
not read. Held out: test images 9000-9999, which are only scored. Images are described by blurred
maps of gradient orientations, each image by itself; their settings were chosen by the error of
nearest neighbours within training images. The basis is the graph of the public images.

Beside it, on the same features: a softmax model by DP gradient descent, best of several settings
*in hindsight*, which no private run could know.
"""

import math
import time

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.special import softmax
from sklearn.svm import SVC

from cells import number_given
from public_data import mnist
from secretballot import RecordMomentsClassifier
from secretballot.accounting.calibration import gaussian_mu
from secretballot.bases import GraphBasis

DELTA = 1e-5
EPSILONS = (0.1, 0.5, 1.0)
N_POOL = 9000
N_ORIENTATIONS = 8
STEP = 3  # pixels from one place of the maps to the next
#: Steps and learning rates of descent; rows have length one, and are clipped to `CLIP`.
DESCENTS = [(steps, rate) for steps in (20, 40) for rate in (4.0, 16.0)]
CLIP = 1.0


def orientation_maps(image: np.ndarray) -> np.ndarray:
    """Return the square roots of blurred maps of gradient orientations of one image, of length
    one."""
    smooth = np.pad(gaussian_filter(image.astype(np.float64) / 255, 0.7), 3)
    down, across = np.gradient(smooth)
    size = np.hypot(across, down)
    turn = np.arctan2(down, across) / (2 * np.pi) * N_ORIENTATIONS
    maps = []
    for orientation in range(N_ORIENTATIONS):
        apart = np.abs((turn - orientation + N_ORIENTATIONS / 2) % N_ORIENTATIONS - 4)
        blurred = gaussian_filter(np.maximum(0, 1 - apart) * size, 2.0)
        maps.append(blurred[1::STEP, 1::STEP].ravel())
    found = np.sqrt(np.maximum(np.concatenate(maps), 0))
    return found / max(float(np.linalg.norm(found)), 1e-12)


def described(images: np.ndarray) -> np.ndarray:
    """Return the features of images, image by image: (n, 28, 28) to (n, n_features)."""
    return np.stack([orientation_maps(image) for image in images]).astype(np.float32)


def descended(
    X: np.ndarray, y: np.ndarray, epsilon: float, setting: tuple[int, float], seed: int
) -> np.ndarray:
    """Return weights of a softmax model by full-batch descent on clipped rows with Gaussian noise.

    Floating-point noise: good for a comparison, and for nothing else.
    """
    steps, rate = setting
    rng, w, truth = np.random.default_rng(seed), np.zeros((X.shape[1], 10)), np.eye(10)[y]
    sigma = CLIP * math.sqrt(steps) / gaussian_mu(epsilon, DELTA)
    for _ in range(steps):
        missed = softmax(X @ w, axis=1) - truth
        lengths = np.linalg.norm(missed, axis=1, keepdims=True)  # rows of X have length one
        kept = missed * np.minimum(1.0, CLIP / np.maximum(lengths, 1e-9))
        w -= rate * (X.T @ kept + rng.normal(0, sigma, w.shape)) / len(X)
    return w


def main(n_runs: int) -> None:
    """Print one row for each epsilon."""
    data = mnist()
    y, labels = data.y_train, data.y_test
    private, test = (
        described(images.reshape(-1, 28, 28)) for images in (data.X_train, data.X_test)
    )
    y_test = labels[N_POOL:]
    pool, held_out = test[:N_POOL], test[N_POOL:]
    print(
        "\n| epsilon | record moments | support-vector student |"
        f" DP descent, same features, best of {len(DESCENTS)} in hindsight | seconds a fit |\n"
        + "|---" * 5
        + "|"
    )
    for epsilon in EPSILONS:
        rows = []
        for _ in range(n_runs):
            begun = time.perf_counter()
            model = RecordMomentsClassifier(GraphBasis(scaled=False), epsilon=epsilon, delta=DELTA)
            model.fit(private, y, X_public=pool, classes=list(range(10)))
            seconds = time.perf_counter() - begun
            student = SVC(C=3.0).fit(pool, model.predict(pool))
            rows.append(
                (
                    100 * np.mean(model.predict(held_out) == y_test),
                    100 * student.score(held_out, y_test),
                    seconds,
                )
            )
        own, student_score, seconds = np.mean(rows, axis=0)
        descent = 100 * max(
            np.mean((held_out @ descended(private, y, epsilon, way, 0)).argmax(axis=1) == y_test)
            for way in DESCENTS
        )
        print(
            f"| {epsilon:g} | {own:.1f} | {student_score:.1f} | {descent:.1f} | {seconds:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main(number_given(1))
