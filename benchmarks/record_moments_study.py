"""A study on adult.data alone: what one noisy sum over records could teach a model in a public
basis.

    python benchmarks/record_moments_study.py [n_seeds]

It sets the design of a learner that is still to be built, and releases
nothing: the noise is drawn from a seeded generator and does not pass the door. 20,000 rows of
adult.data stand for the private records, 6,000 others, without labels, for the public pool, and
the rest is scored. No row of adult.test is used.

A record with coordinates phi in the basis of the pool, and with class y, adds phi (y - q), clipped,
where q is what the model so far predicts for it: one half in the first stage. The sum, in integers,
gets Gaussian noise at the price of a `VectorSum`. The model is the logistic one whose moments
on the pool meet the released ones, with a penalty in each direction that follows from the noise.
"""

import os

# one BLAS thread, so that figures do not depend on the machine
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import sys
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from public_data import ADULT_CLASSES, ADULT_TARGET, adult
from secretballot.accounting import PrivacyBudget, calibrate_vector_sum
from secretballot.bases import TableBasis
from secretballot.bases.rotation import UNIT

EPSILONS, DELTA = (0.1, 0.5, 1.0, 2.0), 1e-5
N_PRIVATE, N_PUBLIC = 20_000, 6_000
RESIDUAL_UNIT = 2**12  # integers for 1.0 in a residual
WEIGHT_UNIT = 2**16  # integers for 1.0 in the weights of a model


@dataclass(frozen=True)
class Design:
    """What the study varies.

    Attributes
    ----------
    whitening : float
        Of the basis.
    clipped : float
        Share of the pool whose coordinates are longer than the bound of the first stage.
    later_bound : float
        Bound of later stages over the longest coordinates that the first stage keeps.
    prior : float
        Prior variance of the logit that the basis explains.
    curvature : float
        Mean of p (1 - p), assumed.
    intercept : float
        The constant coordinate; public points have a root mean square length of one.
    n_stages : int
    """

    whitening: float = 0.5
    clipped: float = 0.37
    later_bound: float = 0.4
    prior: float = 4.0
    curvature: float = 0.12
    intercept: float = 0.5
    n_stages: int = 2


@dataclass(frozen=True)
class Split:
    """Coordinates in units of 1 / `UNIT` of three parts of adult.data, and two parts' classes."""

    private: np.ndarray
    y_private: np.ndarray
    pool: np.ndarray
    held_out: np.ndarray
    y_held_out: np.ndarray


def split_of(design: Design) -> Split:
    """Return the coordinates under a design."""
    table = adult().train
    table, classes = table.drop(columns=ADULT_TARGET), table[ADULT_TARGET]
    order = np.random.default_rng(0).permutation(len(table))
    ends = N_PRIVATE, N_PRIVATE + N_PUBLIC
    parts = np.split(order, ends)
    basis = TableBasis(whitening=design.whitening).fit(table.iloc[parts[1]])
    constant = round(design.intercept * UNIT)
    private, pool, held_out = (
        np.column_stack([basis.integers(table.iloc[part]), np.full(len(part), constant)])
        for part in parts
    )
    y = (np.asarray(classes) == ADULT_CLASSES[1]).astype(np.int64)
    return Split(private, y[parts[0]], pool, held_out, y[parts[2]])


def predictions(coordinates: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return predicted probabilities in units of 1 / `RESIDUAL_UNIT`.

    Sums of integers below 2^53 are exact in floating point, in any order; what follows looks at one
    record at a time. So a record's prediction does not depend on the records around it.
    """
    logits = coordinates.astype(np.float64) @ np.rint(weights * WEIGHT_UNIT)
    return np.rint(RESIDUAL_UNIT * expit(logits / (UNIT * WEIGHT_UNIT))).astype(np.int64)


def clipped_sum(coordinates: np.ndarray, residuals: np.ndarray, bound: int) -> np.ndarray:
    """Return the sum of coordinates times residuals, each product of L2 norm at most `bound`."""
    squared = np.einsum("ij,ij->i", coordinates, coordinates)
    lengths = np.sqrt(squared.astype(np.float64)) * np.abs(residuals)
    factors = np.minimum(1.0, bound / np.maximum(lengths, 1.0))
    # towards zero: rounding makes no vector longer
    kept = np.trunc(coordinates * factors[:, None]).astype(np.int64)
    return kept.T @ residuals


def fitted_weights(
    pool: np.ndarray, target: np.ndarray, penalty: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Return the weights whose moments on the pool meet the target, by Newton's method.

    Minimises mean log(1 + exp(w phi)) - w target + sum penalty (w - start)^2 / 2, which is convex.
    """

    def objective(w: np.ndarray) -> float:
        spread = penalty @ (w - start) ** 2 / 2
        return float(np.logaddexp(0, pool @ w).mean() - w @ target + spread)

    w, value = start.copy(), objective(start)
    for _ in range(100):
        p = expit(pool @ w)
        gradient = pool.T @ p / len(pool) - target + penalty * (w - start)
        curvature = (pool * (p * (1 - p))[:, None]).T @ pool / len(pool) + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        length = 1.0
        while length > 1e-9 and objective(w - length * step) > value - 1e-4 * length * (
            gradient @ step
        ):
            length /= 2
        w = w - length * step
        before, value = value, objective(w)
        if before - value < 1e-12:
            break
    return w


def accuracies(split: Split, design: Design, epsilon: float, seed: int) -> list[float]:
    """Return the accuracy on the held-out rows after each stage."""
    rng, n, m = np.random.default_rng(seed), len(split.private), len(split.pool)
    pool = split.pool / UNIT
    longest = np.quantile(np.linalg.norm(pool, axis=1), 1 - design.clipped)
    mean_square, variance = (pool**2).mean(axis=0), pool.var(axis=0)
    # equal for all features before whitening, `prior` in all; and as much for the intercept
    prior = design.prior * variance / np.sum(variance**2)
    prior[-1] = design.prior / design.intercept**2
    curvature = design.curvature * mean_square
    weights, found = np.zeros(pool.shape[1]), []
    for stage in range(design.n_stages):
        share = 0.5 if stage == 0 else design.later_bound
        bound = int(share * longest * UNIT * RESIDUAL_UNIT)
        budget = PrivacyBudget(epsilon, DELTA)
        sigma = calibrate_vector_sum(budget, bound**2, len(weights), design.n_stages)
        residuals = RESIDUAL_UNIT * split.y_private - predictions(split.private, weights)
        total = clipped_sum(split.private, residuals, bound) + np.rint(
            rng.normal(0, sigma, len(weights))
        )
        scale = UNIT * RESIDUAL_UNIT * n
        q = predictions(split.pool, weights) / RESIDUAL_UNIT
        target = total / scale + pool.T @ q / m
        # the noise, and that records and pool are samples
        noise = (sigma / scale) ** 2 + (0.12 / n + 0.03 / m) * variance
        weights = fitted_weights(pool, target, noise / (curvature * prior), weights)
        prior = 1 / (1 / prior + curvature**2 / noise)
        found.append(np.mean((split.held_out @ weights > 0) == split.y_held_out))
    return found


def main() -> None:
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    base = Design()
    designs = {
        "as it stands": base,
        "3 stages": replace(base, n_stages=3),
        "whitening 0": replace(base, whitening=0.0),
        "whitening 1": replace(base, whitening=1.0),
        "nothing clipped": replace(base, clipped=0.001, later_bound=1.0),
        "prior variance 1": replace(base, prior=1.0),
        "prior variance 16": replace(base, prior=16.0),
    }
    split = split_of(base)
    model = LogisticRegression(C=100, max_iter=2000).fit(split.private / UNIT, split.y_private)
    plain = model.score(split.held_out / UNIT, split.y_held_out)
    print(f"no privacy, same basis, {split.pool.shape[1]} directions: {100 * plain:.2f}")
    print("| design |" + "".join(f" epsilon {epsilon:g} |" for epsilon in EPSILONS))
    print("|---|" + "---|" * len(EPSILONS))
    for name, design in designs.items():
        split = split_of(design)
        cells = [
            np.mean([accuracies(split, design, epsilon, seed)[-1] for seed in range(n_seeds)])
            for epsilon in EPSILONS
        ]
        print(f"| {name} |" + "".join(f" {100 * cell:.2f} |" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
