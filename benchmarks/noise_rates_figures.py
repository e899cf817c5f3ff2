"""Tables of what benchmarks/noise_rates.py has run: fitted slopes beside the theorems' rates.

    python benchmarks/noise_rates_figures.py [runs] [folder with cells.json, build/noise-rates]

Slopes are least squares through logarithms of means, over the cells in which the learner learns: in
no more than one run of twenty is the excess error above a quarter of that of the better constant
classifier. Intervals are 95 % of bootstraps over the runs of every cell, of which all that are
finished are taken. Against m two ranges are fitted: where the theorem's term 1 / m is above its
private term, and where it is below a tenth of it.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from noise_rates import LEARNERS, LEFT_MARGIN, TAUS, Cell, grid, read_cells
from secretballot.theory import rate

N_BOOTSTRAPS = 2000
DISAGREEMENT, EXCESS, TEACHER = 0, 1, 4  # columns of runs
THEOREMS = {"passive": "gaussian", "active": "active", "sparse vector": "sparse-vector"}


@dataclass(frozen=True)
class Place:
    """A finished cell: where it lies, its runs, and the theorem's two terms there, constants left
    out.

    Attributes
    ----------
    x : float
    runs : ndarray of shape (n_runs, 5) or (n_runs, 2)
        Disagreement and excess error of the student, the same of the vote without noise, a
        teacher's disagreement; the first two without privacy.
    public, private : float
        1 / m, and the bound on a teacher's disagreement (K / n)^(tau / (2 - tau)).
    learning : bool
        Whether no more than one run of twenty is nearly as bad as a constant classifier.
    """

    x: float
    runs: np.ndarray
    public: float
    private: float
    learning: bool


def place_of(cell: Cell, record: dict[str, Any]) -> Place:
    runs = np.array(record["runs"])
    plan = record["plan"] or {"teachers": 1, "points": cell.n}
    private = (plan["teachers"] / cell.n) ** (cell.tau / (2 - cell.tau))
    hopeless = runs[:, EXCESS] > cell.distribution.excess([0, 1]).min() / 4
    return Place(cell.x, runs, 1 / plan["points"], private, bool(hopeless.mean() <= 0.05))


def lines(
    cells: Iterable[Cell], finished: dict[str, Any]
) -> dict[tuple[str, str, float, str], list[Place]]:
    """Return the finished cells of every learner, world, tau and sweep, by ascending x."""
    found: dict[tuple[str, str, float, str], list[Place]] = {}
    for cell in sorted(cells, key=lambda cell: cell.x):
        if finished.get(cell.key):
            line = found.setdefault((cell.learner, cell.world, cell.tau, cell.sweep), [])
            line.append(place_of(cell, finished[cell.key]))
    return found


def bootstrapped_means(places: list[Place], figure: int) -> np.ndarray:
    """Return means of a figure over the runs of each place, shape (1 + N_BOOTSTRAPS, n_places),
    as measured first."""
    rng = np.random.default_rng(0)
    means = []
    for place in places:
        values = place.runs[:, figure]
        again = values[rng.integers(len(values), size=(N_BOOTSTRAPS, len(values)))].mean(axis=1)
        means.append(np.append(values.mean(), again))
    # a bootstrap of runs without any error has no logarithm
    return np.maximum(np.array(means).T, 1e-12)


def slope(places: list[Place], figure: int) -> tuple[float, float, float] | None:
    """Return the slope of log mean against log x and the ends of its interval; None below three
    places."""
    if len(places) < 3:
        return None
    x = np.log([place.x for place in places])
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    slopes = np.log(bootstrapped_means(places, figure)) @ weights
    low, high = np.quantile(slopes[1:], (0.025, 0.975))
    return float(slopes[0]), float(low), float(high)


def verdict(fitted: tuple[float, float, float], theory: float) -> str:
    """Say how a slope compares with the theorem's, which may be 0."""
    _, low, high = fitted
    if low <= theory <= high:
        return "agrees"
    if theory == 0:
        return "falls" if high < 0 else "rises"
    steeper = low > theory if theory > 0 else high < theory
    return "steeper" if steeper else "flatter"


def exponent(learner: str, tau: float) -> float:
    """Return the exponent of n epsilon in the theorem's bound, which for the last learner is
    Lemma B.2's."""
    return (
        rate(THEOREMS[learner], "tsybakov", tau).records if learner in THEOREMS else tau / (2 - tau)
    )


def rise(learner: str, tau: float) -> float:
    """Return the exponent of m in the theorem's private term when all m points are labelled."""
    if learner == "passive":
        return tau / (2 - tau) / 2  # Theorem C.5
    return tau / (4 - 3 * tau) if learner == "sparse vector" else 0.0  # Theorem 5; Theorem 15


def shown(fitted: tuple[float, float, float], sign: int = 1) -> str:
    low, high = sorted((sign * fitted[1], sign * fitted[2]))
    return f"{sign * fitted[0]:.2f} [{low:.2f}, {high:.2f}]"


def print_rates(found: dict[tuple[str, str, float, str], list[Place]], sweep: str) -> None:
    """Print a table of the exponents with which errors fall in n or epsilon."""
    print(f"\nAgainst {sweep}:\n")
    print(
        "| world | tau | learner | cells | p | a teacher | disagreement | | excess error | beside p"
        " | p / tau | |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for world, tau, learner in product(LEFT_MARGIN, TAUS, LEARNERS):
        places = [place for place in found.get((learner, world, tau, sweep), []) if place.learning]
        fits = slope(places, DISAGREEMENT), slope(places, EXCESS)
        if fits[0] is None or fits[1] is None:
            continue
        p, teacher = exponent(learner, tau), ""
        if learner in THEOREMS and (fit := slope(places, TEACHER)):
            teacher = f"{-fit[0]:.2f}"
        print(
            f"| {world} | {tau:g} | {learner} | {len(places)} | {p:.2f} | {teacher} |"
            f" {shown(fits[0], -1)} | {verdict(fits[0], -p)} | {shown(fits[1], -1)} |"
            f" {verdict(fits[1], -p)} | {p / tau:.2f} | {verdict(fits[1], -p / tau)} |"
        )


def print_public(found: dict[tuple[str, str, float, str], list[Place]]) -> None:
    """Print a table of the slopes in m, where 1 / m rules and where the private term does."""
    print("\nAgainst m, all of them labelled (active: as a pool):\n")
    print("| world | tau | learner | range of m | theorem | disagreement | | excess error | |")
    print("|---|---|---|---|---|---|---|---|---|")
    for world, tau, learner in product(LEFT_MARGIN, TAUS, THEOREMS):
        line = [place for place in found.get((learner, world, tau, "m"), []) if place.learning]
        few = [place for place in line if place.public > place.private]
        many = [place for place in line if place.public < place.private / 10]
        for places, theory in ((few, -1.0), (many, rise(learner, tau))):
            fits = slope(places, DISAGREEMENT), slope(places, EXCESS)
            if fits[0] is not None and fits[1] is not None:
                verdicts = [verdict(fit, theory) for fit in fits]
                print(
                    f"| {world} | {tau:g} | {learner} | {places[0].x:g} to {places[-1].x:g} |"
                    f" {theory:.2f} | {shown(fits[0])} | {verdicts[0]} | {shown(fits[1])} |"
                    f" {verdicts[1]} |"
                )


def main(arguments: list[str]) -> None:
    """Print the tables."""
    folder = Path(arguments[1]) if len(arguments) > 1 else Path("build/noise-rates")
    found = lines(dict.fromkeys(grid(full=True)), read_cells(folder))
    counts = [len(place.runs) for line in found.values() for place in line]
    print(f"{len(counts)} cells with {min(counts)} to {max(counts)} runs")
    print_rates(found, "n")
    print_rates(found, "epsilon")
    print_public(found)


if __name__ == "__main__":
    main(sys.argv[1:])
