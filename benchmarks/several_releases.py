"""What several releases of one ledger may tell under each composition, all of them together within
(1, 1e-6): labels each at the same quality, and noise on sums at the same number of stages."""

import argparse
import json
import math
from collections.abc import Callable

from scipy.special import ndtri

from secretballot.learners.pate.defaults import last_that_holds
from secretballot.privacy.accounting import (
    Grant,
    LabelGaussianEvent,
    ListFilter,
    PrivacyBudget,
    RenyiFilter,
    calibrate_vector_sum,
    delta_upper,
    filter_for,
    listed_sums,
)

TEACHERS, MARGIN = 250, 150  # votes: 200 to 50
MOST = 20_000
STAGES = 4  # of one release of record moments
BOUND = 10**6  # units of the grid


def renyi_of(total: PrivacyBudget) -> RenyiFilter:
    rule = filter_for("renyi", total)
    assert isinstance(rule, RenyiFilter)
    return rule


def labels_each(total: PrivacyBudget, sigma: float, releases: int) -> dict[str, int]:
    """Return how many labels each of so many releases may take, at one noise."""

    def labels(number: int) -> LabelGaussianEvent:
        return LabelGaussianEvent(sigma, number, TEACHERS)

    def within(budget: PrivacyBudget) -> Callable[[int], bool]:
        return lambda number: delta_upper([labels(number)], budget.epsilon) <= budget.delta

    part = PrivacyBudget(total.epsilon / releases, total.delta / releases)
    renyi = renyi_of(total)

    def admitted(number: int) -> bool:
        grant = Grant((labels(number),), total.epsilon, total.delta)
        return renyi.admits((releases - 1) * [grant], grant)

    whole = last_that_holds(within(total), MOST)
    ListFilter(total, [labels(whole)]).check_promise()
    return {
        "basic": last_that_holds(within(part), MOST),
        "renyi": last_that_holds(admitted, MOST),
        "list": whole // releases,
    }


def noise_of_sums(total: PrivacyBudget, releases: int) -> dict[str, float]:
    """Return the noise of one sum, as a multiple of its sensitivity, where each of so many releases
    has `STAGES` of them."""
    part = PrivacyBudget(total.epsilon / releases, total.delta / releases)
    renyi = renyi_of(total)
    # a divergence of order a is a / (2 noise^2) for each sum
    of_renyi = math.sqrt(renyi.order * STAGES * releases / (2 * renyi.divergence_limit))
    listed = listed_sums(total, STAGES * releases)
    return {
        "basic": calibrate_vector_sum(part, BOUND**2, 500, STAGES) / BOUND,
        "renyi": of_renyi,
        "list": listed.sigma / math.sqrt(listed.squared_sensitivity),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    asked = parser.parse_args()
    total = PrivacyBudget(asked.epsilon, asked.delta)
    for wrong in (0.05, 0.01):
        sigma = MARGIN / (2 * float(ndtri(1 - wrong)))
        for releases in (1, 2, 4):
            found = labels_each(total, sigma, releases)
            print(json.dumps({"wrong": wrong, "releases": releases, "labels each": found}))
    for releases in (1, 2, 4):
        found_noise = {name: round(x, 2) for name, x in noise_of_sums(total, releases).items()}
        print(json.dumps({"releases": releases, "noise of a sum": found_noise}))


if __name__ == "__main__":
    main()
