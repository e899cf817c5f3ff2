"""What Appendix F of Liu et al. 2021 measures: how clearly teachers vote, and whether they vote as
one model would.

Used by `appendix_f.py`, which says what the numbers mean.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from public_data import ADULT_SCHEMA, ADULT_TARGET
from secretballot.data.schema import Schema
from secretballot.teachers import PositionPartition, TeacherEnsemble
from secretballot.teachers.margins import vote_margins

BINS = np.linspace(0, 0.5, 11)
CUMULATED = 200  # queries, as in Figure 3
PENALTIES = (0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class Sizes:
    """Rows, teachers and repetitions; the paper's by default.

    Attributes
    ----------
    n_private, n_queries, n_teachers : int
    compared : tuple of int
        Numbers of teachers whose votes are compared by margin; `n_teachers` is among them.
    n_others : int
        Further partitions of the private rows, from which alone the expected margin is estimated.
    """

    n_private: int = 36_631
    n_queries: int = 2_000
    n_teachers: int = 250
    compared: tuple[int, ...] = (50, 250, 1000)
    n_others: int = 4


class Split(NamedTuple):
    """Encoded rows: private ones with labels, public ones with labels that are only scored.
    Queries come first."""

    X: np.ndarray
    y: np.ndarray
    X_public: np.ndarray
    y_public: np.ndarray


@dataclass
class Findings:
    """What one seed shows.

    Attributes
    ----------
    numbers : dict
        Of the table, by penalty C and row.
    margins, expected, for_star : ndarray of shape (n_queries,)
        Realised and expected Delta_n(x), and the margin for h*.
    equal : ndarray of shape (n_queries,), bool
        Whether the vote is h*'s.
    by_margin : dict
        For every compared number of teachers, counts per bin of margins: points, and those at which
        the vote is h*'s.
    """

    numbers: dict[str, dict[str, float]] = field(default_factory=dict)
    margins: np.ndarray = field(default_factory=lambda: np.empty(0))
    expected: np.ndarray = field(default_factory=lambda: np.empty(0))
    for_star: np.ndarray = field(default_factory=lambda: np.empty(0))
    equal: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=bool))
    by_margin: dict[int, np.ndarray] = field(default_factory=dict)


def split(frame: pd.DataFrame, sizes: Sizes, seed: int) -> Split:
    """Return private and public rows, drawn at random and encoded by the public schema and
    public rows."""
    order = np.random.default_rng([seed, 0]).permutation(len(frame))
    parts = frame.iloc[order[: sizes.n_private]], frame.iloc[order[sizes.n_private :]]
    features = [part.drop(columns=ADULT_TARGET) for part in parts]
    schema = Schema.from_json(ADULT_SCHEMA, public=features[1])
    labels = [(part[ADULT_TARGET] == ">50K").to_numpy().astype(int) for part in parts]
    return Split(schema.encode(features[0]), labels[0], schema.encode(features[1]), labels[1])


def counted(data: Split, n_teachers: int, penalty: float, partition: int = 0) -> np.ndarray:
    """Return the votes on all public rows, shape (n_public, 2); partitions other than 0 are
    drawn at random."""
    n = len(data.y)
    shards = PositionPartition(n_teachers, n).assign()
    if partition:
        shards = np.random.default_rng([partition, 1]).permutation(shards)
    learner = LogisticRegression(C=penalty, max_iter=1000)
    teachers = TeacherEnsemble.fit(
        learner, data.X, data.y, shards, n_teachers=n_teachers, n_classes=2
    )
    return teachers.vote_counts(data.X_public)._unseal()[0]


def voted(counts: np.ndarray) -> np.ndarray:
    """Return the vote; a tie goes to class 1, as in the paper."""
    return (counts[:, 1] >= counts[:, 0]).astype(int)


def numbers(counts: np.ndarray, star: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return what the table says of one ensemble's votes, h*'s labels and the truth."""
    total = 2 * counts.sum(axis=1)
    margins, for_star = vote_margins(counts) / total, label_margins(counts, star) / total
    other = voted(counts) != star
    shuffled = np.random.default_rng(0).permutation(for_star)[:CUMULATED]
    first = np.cumsum(margins[:CUMULATED])
    return {
        "star": 100 * float(np.mean(star == y)),
        "vote": 100 * float(np.mean(voted(counts) == y)),
        "teacher": 100 * float(np.mean(counts[np.arange(len(y)), y] / counts.sum(axis=1))),
        "equal": 100 * float(np.mean(~other)),
        "clear": 100 * float(np.mean(margins > 0.3)),
        "very clear": 100 * float(np.mean(margins > 0.45)),
        "wrong": 100 * float(np.mean((margins > 0.3) & other)),
        "very wrong": 100 * float(np.mean((margins > 0.4) & other)),
        "correlation": correlation(margins, for_star),
        "cumulated": correlation(first, np.cumsum(for_star[:CUMULATED])),
        "shuffled": correlation(first, np.cumsum(shuffled)),
    }


def label_margins(counts: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the votes for a given label less those for the best other class, negative where
    outvoted; shape (n_queries,)."""
    chosen, others = labels[:, None], counts.copy()
    np.put_along_axis(others, chosen, -1, axis=1)
    return np.take_along_axis(counts, chosen, axis=1)[:, 0] - others.max(axis=1)


def expected_margins(counts: np.ndarray) -> np.ndarray:
    """Return the expected margin Delta_n(x) = |E[h(x)] - 1/2| of a teacher h trained on one shard,
    shape (n_queries,), from the votes of retrained ensembles, shape (n_ensembles, n_queries, 2)."""
    totals = counts.sum(axis=0)
    return np.abs(totals[:, 0] - totals[:, 1]) / (2 * totals.sum(axis=1))


def high_margin_shares(margins: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return nu(Delta), the share of points with a margin of at most Delta, for each level.

    A task has (nu, Delta)-approximate high margin if P[Delta_n(x) <= Delta] <= nu (Definition 10,
    with the inequality the right way round).
    """
    return np.searchsorted(np.sort(margins), levels, side="right") / len(margins)


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def by_margin(counts: np.ndarray, star: np.ndarray) -> np.ndarray:
    """Return, per bin of margins, the points and those at which the vote is h*'s, shape (2,
    n_bins)."""
    margins = vote_margins(counts) / (2 * counts.sum(axis=1))
    equal = voted(counts) == star
    # a margin on an edge belongs above it, however it was rounded
    edges = np.append(BINS[:-1] - 1e-9, BINS[-1])
    return np.array([np.histogram(some, edges)[0] for some in (margins, margins[equal])])


def study(frame: pd.DataFrame, sizes: Sizes, seed: int) -> Findings:
    """Return what one seed shows: the table's numbers for every penalty, all else for C = 1."""
    data, found = split(frame, sizes, seed), Findings()
    asked = slice(sizes.n_queries)
    for penalty in PENALTIES:
        star = (
            LogisticRegression(C=penalty, max_iter=2000).fit(data.X, data.y).predict(data.X_public)
        )
        counts = counted(data, sizes.n_teachers, penalty)
        found.numbers[f"{penalty:g}"] = numbers(counts[asked], star[asked], data.y_public[asked])
        if penalty == 1:
            look_closely(found, data, sizes, star, counts)
    return found


def look_closely(
    found: Findings, data: Split, sizes: Sizes, star: np.ndarray, counts: np.ndarray
) -> None:
    """Add margins of every query, the expected margin by other partitions, and agreement by
    number of teachers."""
    asked = slice(sizes.n_queries)
    others = [
        counted(data, sizes.n_teachers, 1.0, 1 + other)[asked] for other in range(sizes.n_others)
    ]
    found.expected = expected_margins(np.array(others))
    found.margins = vote_margins(counts[asked]) / (2 * sizes.n_teachers)
    found.for_star = label_margins(counts[asked], star[asked]) / (2 * sizes.n_teachers)
    found.equal = voted(counts[asked]) == star[asked]
    found.numbers["1"]["expected"] = correlation(found.expected, found.margins)
    found.numbers["1"]["error"] = float(np.sqrt(np.mean((found.expected - found.margins) ** 2)))
    for n_teachers in sizes.compared:
        votes = counts if n_teachers == sizes.n_teachers else counted(data, n_teachers, 1.0)
        found.by_margin[n_teachers] = by_margin(votes, star)
