"""Labels from the published vote files at equal (epsilon, delta = 1e-5): how often they are the
plurality, and right.

    python benchmarks/vote_file_labels.py [n_runs]

Every price is data-independent. The number of queries is the default of `secretballot label`, and
286 for MNIST, the number of answers of the published confident mechanism at epsilon 1.97 (whose
price depends on the data).
"""

import sys

import numpy as np

from public_data import adult, adult_votes, mnist, mnist_votes
from secretballot import Ledger, PrivacyBudget, release, votes_of_counts
from secretballot.core.mechanisms import NoisyVotes
from secretballot.learners.pate.mechanisms import choose_terms

DELTA = 1e-5
RUNS = 5


def rows() -> list[tuple[str, np.ndarray, np.ndarray, float, int | None]]:
    """Return name, counts, true labels, epsilon and number of queries (None: the default) of
    every setting."""
    digits, income = mnist_votes(), adult_votes()
    truth = (adult().test["income"] == ">50K").to_numpy().astype(int)
    images = mnist().y_test[: len(digits)]
    settings = [("mnist", digits, images, 1.97, 286), ("mnist", digits, images, 1.97, None)]
    return settings + [("adult", income, truth, epsilon, None) for epsilon in (0.1, 0.5, 1.0, 2.0)]


def main(runs: int) -> None:

    print(
        "| votes | epsilon | queries | sigma | label is plurality | label is right | plurality is"
        " right |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, counts, truth, epsilon, n_queries in rows():
        budget, votes = (
            PrivacyBudget(epsilon, DELTA),
            votes_of_counts(counts, range(counts.shape[1])),
        )
        terms = choose_terms("gaussian", budget, votes.shape, n_queries=n_queries)
        mechanism, n_asked = terms.mechanism, terms.shape.n_queries
        assert isinstance(mechanism, NoisyVotes)
        agree, right, best = [], [], []
        for run in range(runs):
            asked = np.random.default_rng(run).choice(votes.shape.n_queries, n_asked, replace=False)
            ledger = Ledger.in_memory(dataset=name, budget=budget)
            released = release(votes, mechanism, ledger, budget, queries=asked)
            plurality = counts[asked].argmax(axis=1)
            agree.append(np.mean(released.labels == plurality))
            right.append(np.mean(released.labels == truth[asked]))
            best.append(np.mean(plurality == truth[asked]))
        shares = " | ".join(f"{100 * np.mean(values):.1f}" for values in (agree, right, best))
        print(
            f"| {name} | {epsilon:g} | {n_asked} | {mechanism.scale:.1f} | {shares} |",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
