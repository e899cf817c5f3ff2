"""Appendix F of Liu et al. 2021 on UCI Adult: how clearly teachers vote, and whether they vote as
one model would.

    python benchmarks/appendix_f.py [n_seeds] [folder for the pictures] [first seed]

The sizes of the paper: all 48,842 rows, of which 36,631 are called private and 12,211 public; 250
logistic regressions of 146 or 147 private rows each vote on 2,000 of the public ones; h* is one
logistic regression of all private rows. Every seed draws the split, the queries and the partition
anew. Another first seed gives a set of other seeds.

No privacy here: Adult is public, no noise is drawn, no ledger is opened, and margins are shown as
they are. On private records every number and picture of this page would be a secret
(`secretballot.teachers.votes`).

- Delta_n(x) = |E[h(x)] - 1/2|, the expected margin of a teacher h. The paper estimates it by the
  250 votes at x, the realised margin; here it is estimated by four more partitions of the same
  private rows too.
- The margin for h* is 1/2 - P[h(x) != h*(x)], below 0 where the vote is against h*. With the
  absolute value that the appendix prints around it, it would be Delta_n(x) again, whatever h* says.

Neither the paper nor the reference figures state the encoding and the penalty of the regressions.
Here: the package's own encoding by the public schema, and scikit-learn's default, C = 1. The
reference has three seeds: a new one of the same distribution falls within their range half of the
time only, and the accuracy of 2,000 queries has a standard deviation of 0.8 points.

The sums over 200 queries correlate nearly as well when one margin is shuffled among the queries:
two sums of mostly positive numbers grow together whatever they are. It shows no agreement; the
correlation query by query does.

With a folder, Figures 2 and 3 are drawn there.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from cells import number_given
from public_data import ADULT_SCHEMA, ADULT_TARGET, adult
from secretballot.core.partition import PositionPartition
from secretballot.data.schema import Schema
from secretballot.report.pictures import BLUE, INK, ORANGE, Picture, grid
from secretballot.teachers import TeacherEnsemble
from secretballot.teachers.ensemble import Shards
from secretballot.teachers.votes import vote_margins

CUMULATED = 200  # queries, as in Figure 3
GREEN = "#009E73"  # of Okabe and Ito, as the others
LEVELS = np.linspace(0, 0.5, 101)
NOTE = "UCI Adult, public data: no privacy noise"


@dataclass(frozen=True)
class Sizes:
    """Rows, teachers and repetitions; the paper's by default.

    Attributes
    ----------
    n_private, n_queries, n_teachers : int
    n_others : int
        Further partitions of the private rows, from which alone the expected margin is estimated.
    """

    n_private: int = 36_631
    n_queries: int = 2_000
    n_teachers: int = 250
    n_others: int = 4


class Split(NamedTuple):
    """Encoded rows: private ones with labels, public ones with labels that are only scored.
    Queries come first."""

    X: np.ndarray
    y: np.ndarray
    X_public: np.ndarray
    y_public: np.ndarray


@dataclass(frozen=True)
class Findings:
    """What one seed shows.

    Attributes
    ----------
    numbers : dict
        Of the table, by its rows.
    margins, expected, for_star : ndarray of shape (n_queries,)
        Realised and expected Delta_n(x), and the margin for h*.
    """

    numbers: dict[str, float]
    margins: np.ndarray
    expected: np.ndarray
    for_star: np.ndarray


def split(frame: pd.DataFrame, sizes: Sizes, seed: int) -> Split:
    """Return private and public rows, drawn at random and encoded by the public schema and
    public rows."""
    order = np.random.default_rng([seed, 0]).permutation(len(frame))
    parts = frame.iloc[order[: sizes.n_private]], frame.iloc[order[sizes.n_private :]]
    features = [part.drop(columns=ADULT_TARGET) for part in parts]
    schema = Schema.from_json(ADULT_SCHEMA, public=features[1])
    labels = [(part[ADULT_TARGET] == ">50K").to_numpy().astype(int) for part in parts]
    return Split(schema.encode(features[0]), labels[0], schema.encode(features[1]), labels[1])


def counted(data: Split, n_teachers: int, partition: int = 0) -> np.ndarray:
    """Return the votes on all public rows, shape (n_public, 2); partitions other than 0 are
    drawn at random."""
    n = len(data.y)
    shards = PositionPartition(n_teachers, n).assign()
    if partition:
        shards = np.random.default_rng([partition, 1]).permutation(shards)
    learner = LogisticRegression(max_iter=1000)
    source = Shards(data.X, data.y, shards, n_teachers)
    teachers = TeacherEnsemble.fit(learner, source, n_classes=2)
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


def study(frame: pd.DataFrame, sizes: Sizes, seed: int) -> Findings:
    """Return what one seed shows."""
    data, asked = split(frame, sizes, seed), slice(sizes.n_queries)
    star = LogisticRegression(max_iter=2000).fit(data.X, data.y).predict(data.X_public)[asked]
    counts = counted(data, sizes.n_teachers)[asked]
    others = [counted(data, sizes.n_teachers, 1 + other)[asked] for other in range(sizes.n_others)]
    expected = expected_margins(np.array(others))
    margins = vote_margins(counts) / (2 * sizes.n_teachers)
    found = numbers(counts, star, data.y_public[asked])
    found["expected"] = correlation(expected, margins)
    found["error"] = float(np.sqrt(np.mean((expected - margins) ** 2)))
    for_star = label_margins(counts, star) / (2 * sizes.n_teachers)
    return Findings(found, margins, expected, for_star)


#: Of each number its name, the range of three seeds of the reference, and what the paper says.
ROWS = {
    "star": ("accuracy of h*, %", "83.9-86.4", ""),
    "vote": ("accuracy of the vote, %", "83.6-85.7", ""),
    "teacher": ("accuracy of a teacher, mean, %", "80.4-81.3", ""),
    "equal": ("vote equals h*, %", "97.4-97.7", '"in most cases"'),
    "clear": ("margin above .3, %", "74-76", '"the large majority"'),
    "very clear": ("margin above .45, %", "51-56", ""),
    "wrong": ("margin above .3, vote unequal to h*, %", "0-0.15", '"only in very rare cases"'),
    "very wrong": ("margin above .4, vote unequal to h*, %", "0", ""),
    "correlation": (
        "correlation of the two margins, query by query",
        ".94-.97",
        '"highly correlated"',
    ),
    "cumulated": ("correlation of their sums over 200 queries", "", '"nearly perfect linear line"'),
    "shuffled": ("the same, one margin shuffled among the queries", "", ""),
    "expected": ("correlation of expected and realised margin", "", ""),
    "error": ("root mean square of their difference", "", ""),
}


def print_table(findings: list[Findings]) -> None:
    """Print mean, least and largest of the seeds, beside the reference and the paper's words."""
    print(f"| | ours, {len(findings)} seeds | reference | the paper |\n|---|---|---|---|")
    for name, (words, reference, said) in ROWS.items():
        values = [found.numbers[name] for found in findings]
        mean, low, high = (f"{one:.3g}" for one in (np.mean(values), min(values), max(values)))
        print(f"| {words} | {mean} ({low}-{high}) | {reference} | {said} |")


def curve(axes: Any, x: np.ndarray, runs: np.ndarray, colour: str, dash: str, label: str) -> None:
    """Draw the mean of the runs in percent, with a band from the least to the largest."""
    axes.plot(x, 100 * runs.mean(axis=0), color=colour, linestyle=dash, linewidth=1.6, label=label)
    axes.fill_between(
        x, 100 * runs.min(axis=0), 100 * runs.max(axis=0), color=colour, alpha=0.2, linewidth=0
    )


def note(axes: Any, text: str = NOTE) -> None:
    axes.set_title(text, fontsize=8.5, color="#5B616A", loc="left")


def margins_picture(findings: list[Findings]) -> Picture:
    """Figure 2 as a curve: the share of queries with a margin up to Delta."""

    def paint(axes: Any) -> None:
        for name, colour, dash, words in (
            ("margins", BLUE, "-", "realised: 250 teachers' votes"),
            ("expected", ORANGE, "--", "expected: 4 other partitions"),
            ("for_star", GREEN, ":", "margin for h* (negative: against)"),
        ):
            shares = [high_margin_shares(getattr(one, name), LEVELS) for one in findings]
            curve(axes, LEVELS, np.array(shares), colour, dash, words)
        axes.set(
            xlabel="margin Delta (share of teachers above one half)",
            ylabel="queries with margin up to Delta (%)",
        )
        axes.set(xlim=(0, 0.5), ylim=(0, None))
        axes.legend(frameon=False, loc="upper left")
        grid(axes, "both")
        note(axes)

    return Picture("appendix-f-figure-2", 3.6, paint)


def sums_picture(findings: list[Findings]) -> Picture:
    """Figure 3: sums of both margins over the first queries, and the same with one of them
    shuffled."""

    def paint(axes: Any) -> None:
        for found in findings:
            summed = np.cumsum(found.margins[:CUMULATED])
            shuffled = np.random.default_rng(0).permutation(found.for_star)[:CUMULATED]
            (by_chance,) = axes.plot(
                summed, np.cumsum(shuffled), color=ORANGE, linewidth=0.9, linestyle="--"
            )
            (as_asked,) = axes.plot(
                summed, np.cumsum(found.for_star[:CUMULATED]), color=BLUE, linewidth=1
            )
        diagonal = axes.axline((0, 0), slope=1, color=INK, linewidth=0.8, linestyle=":")
        axes.legend(
            [as_asked, by_chance, diagonal],
            ["margins of the same queries", "one margin shuffled", "always with h*"],
            frameon=False,
            loc="upper left",
        )
        axes.set(
            xlabel=f"sum of margins Delta, up to {CUMULATED} queries",
            ylabel="sum of margins for h*",
        )
        axes.set(xlim=(0, None), ylim=(0, None))
        grid(axes, "both")
        note(axes, f"{NOTE}; a line for each seed")

    return Picture("appendix-f-figure-3", 3.8, paint)


def draw(findings: list[Findings], folder: Path) -> None:
    """Write both pictures, as SVG and PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    for picture in (margins_picture(findings), sums_picture(findings)):
        (folder / f"{picture.name}.svg").write_bytes(picture.svg())
        (folder / f"{picture.name}.png").write_bytes(picture.png())


def main(n_seeds: int, folder: Path | None, first_seed: int) -> None:
    """Print the table; with a folder, draw the pictures there."""
    frame = pd.concat(list(adult()), ignore_index=True)
    findings = [study(frame, Sizes(), first_seed + one) for one in range(n_seeds)]
    if folder is not None:
        draw(findings, folder)
    print_table(findings)


if __name__ == "__main__":
    main(
        number_given(10), Path(sys.argv[2]) if len(sys.argv) > 2 else None, number_given(0, place=3)
    )
