"""What the PATE papers' runs cost by their votes, sanitised, and for any votes.

    python benchmarks/vote_dependent_prices.py

Votes of 250 teachers, delta 1e-5. The first table has the runs of Papernot et al. 2018 with a
threshold: the epsilon by the votes is private, and so is what smooth sensitivity would make of it
here, which follows the paper's appendix B (continuous noise, the chance of each answer as its
weight) and is no proof for a fixed order. The second has the same number of labels without a
threshold: what `publish_vote_loss` would tell, with its true value and its true spread, both
private, beside the price for any votes, which is neither.
"""

import math

import numpy as np
from scipy.ndimage import maximum_filter1d
from scipy.special import log_ndtr, ndtr, ndtri_exp
from secretballot.runs.diagnosis.vote_dependent import diagnose_vote_dependent_price

from secretballot.aggregation import ConfidentAggregator, GaussianAggregator
from secretballot.aggregation.vote_loss import UNITS_PER_NAT, VoteLoss
from secretballot.datasets import adult_votes, mnist_votes
from secretballot.ensemble.votes import VoteCounts
from secretballot.privacy.accounting import (
    ConfidentEvent,
    PrivacyBudget,
    calibrate_smooth_gaussian,
    epsilon_upper,
)
from secretballot.privacy.accounting.likely_outcome import likely_outcome_renyi
from secretballot.privacy.accounting.smooth_gaussian import LOG_STEP, smooth_renyi_at

DELTA, TEACHERS = 1e-5, 250
GRID = 8  # positions for each vote
DISTANCES = 150


def spare(order: float) -> float:
    """Return what the conversion of Canonne, Kamath and Steinke adds to a divergence."""
    return (order * math.log1p(-1 / order) - math.log(order - 1) - math.log(DELTA)) / (order - 1)


def losses(n_classes: int, sigma: float, order: float, reach: int) -> np.ndarray:
    """Return the loss of a label at leads from -4 votes on, never rising."""
    wide = 2 * sigma if n_classes == 2 else math.sqrt(2) * sigma
    leads = np.arange(-4 * GRID, reach * GRID + 1) / GRID
    log_q = np.minimum(math.log(n_classes - 1) + log_ndtr(-leads / wide), -1e-9)
    effective = math.sqrt(2) * sigma if n_classes == 2 else sigma
    found = likely_outcome_renyi(log_q, effective, order)
    return np.maximum.accumulate(found[::-1])[::-1]


def within(values: np.ndarray, votes: int) -> np.ndarray:
    """Return the largest value within so many positions."""
    return maximum_filter1d(values, 2 * votes + 1, mode="nearest") if votes else values


def changes(values: np.ndarray, moved: int) -> np.ndarray:
    """Return how far a value changes within so many positions, either way."""
    padded = np.pad(values, moved, mode="edge")
    return np.maximum(np.abs(padded[: -2 * moved] - values), np.abs(values - padded[2 * moved :]))


def sanitised(counts: np.ndarray, terms: ConfidentAggregator) -> tuple[float, ...]:
    """Return the least of epsilon and one deviation over settings: epsilon, deviation, order."""
    ordered = np.sort(counts, axis=1)[:, ::-1].astype(float)
    wide = math.sqrt(2) * terms.sigma if counts.shape[1] > 2 else 2 * terms.sigma
    log_tails = log_ndtr(-(ordered[:, :1] - ordered[:, 1:]) / wide)
    log_mean = np.log(np.exp(log_tails).mean(axis=1) + 1e-300)
    lead = np.floor((-ndtri_exp(log_mean) * wide + 4) * GRID).astype(int)
    top = ordered[:, 0].astype(int)
    away = (np.arange(TEACHERS + 1) - terms.threshold) / terms.threshold_sigma
    passing = ndtr(away)
    best = (math.inf, math.inf, 0.0)
    for order in (8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 24.0):
        label = losses(counts.shape[1], terms.sigma, order, TEACHERS)
        asked = likely_outcome_renyi(
            np.minimum(np.minimum(log_ndtr(away), log_ndtr(-away)), -1e-9),
            math.sqrt(2) * terms.threshold_sigma,
            order,
        )
        at = np.clip(lead, 0, len(label) - 1)
        value = (asked[top] + passing[top] * label[at]).sum()
        by_distance = []
        for d in range(DISTANCES):
            moves = within(changes(asked, 1), d)[top]
            moves = (
                moves + within(passing, d)[top] * within(changes(label, 2 * GRID), 2 * GRID * d)[at]
            )
            moves = moves + within(changes(passing, 1), d)[top] * within(label, 2 * GRID * d)[at]
            by_distance.append(moves.sum())
        for beta in (0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04):
            smooth = max(math.exp(-beta * d) * s for d, s in enumerate(by_distance))
            for ratio in (1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0):
                paid = smooth_renyi_at(np.array([order]), ratio, round(1000 * beta), 1e9)[0]
                epsilon = value + paid + math.log(1 / DELTA) / (order - 1)
                if epsilon + ratio * smooth < sum(best[:2]):
                    best = (epsilon, ratio * smooth, order)
    return best


def with_thresholds() -> None:
    """Print the papers' runs."""
    print("run | by the votes: papers' conversion, improved | sanitised, +- | for any votes")
    runs = {
        "MNIST, 640 asked, 286 answered": (mnist_votes()[:640], 200, 150.0, 286, 10),
        "Adult, 1500 asked, 538 answered": (adult_votes()[:1500], 300, 200.0, 538, 2),
    }
    for name, (counts, threshold, noise, answers, n_classes) in runs.items():
        terms = ConfidentAggregator(
            threshold, noise, 40.0, len(counts), max_answers=answers, n_classes=n_classes,
            delta=DELTA,
        )  # fmt: skip
        found = diagnose_vote_dependent_price(VoteCounts.from_counts(counts), terms).values()
        epsilon, spread, order = sanitised(counts, terms)
        print(
            f"{name} | {found['epsilon']:.3f}, {found['epsilon_improved']:.3f} |"
            f" {epsilon:.2f} +- {spread:.2f} (order {order:g}) | {found['price']:.3f}",
            flush=True,
        )
    svhn = ConfidentEvent(200.0, 40.0, queries=8500, answers=3098, n_classes=10)
    print(
        f"SVHN, 8500 asked, 3098 answered | no file | no file | {epsilon_upper([svhn], 1e-6):.3f}"
    )


def without_thresholds() -> None:
    """Print what may be published of the same labels without a threshold."""
    print(
        "\nlabels | order | loss by the votes | as epsilon | cost of telling | spread | any votes"
    )
    for name, counts in (("MNIST", mnist_votes()[:286]), ("Adult", adult_votes()[:538])):
        n_classes = counts.shape[1]
        run = GaussianAggregator(
            40.0, n_queries=len(counts), n_classes=n_classes, delta=DELTA,
            n_teachers=TEACHERS if n_classes == 2 else None,
        )  # fmt: skip
        price = epsilon_upper(run.events(TEACHERS), DELTA)
        for cost in (0.5, 1.0, 2.0):
            rows = []
            for order in (8.0, 10.0, 12.0, 15.0, 20.0):
                for steps in (8, 12, 20, 30):
                    try:
                        budget = PrivacyBudget(cost, DELTA)
                        event = calibrate_smooth_gaussian(budget, steps, 20.0 * steps)
                    except ValueError:
                        continue
                    loss = VoteLoss(run, TEACHERS, order, steps)
                    at = loss.positions(counts)
                    number = loss.scale_number(at, event.noise_ratio)
                    spread = event.noise_ratio * math.exp(number * LOG_STEP) / UNITS_PER_NAT
                    value = loss.value(at) / UNITS_PER_NAT
                    rows.append((value + spare(order) + spread, order, value, spread))
            _, order, value, spread = min(rows)
            print(
                f"{name}, {len(counts)} | {order:g} | {value:.2f} | {value + spare(order):.2f} |"
                f" {cost:g} | {spread:.2f} | {price:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    with_thresholds()
    without_thresholds()
