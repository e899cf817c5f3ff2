"""Pictures of a release, as SVG for the inside of a page.

Every picture shows released values only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from secretballot._typing import FloatArray
from secretballot.released import ReleasedLabels
from secretballot.report.pictures.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PALE,
    SLATE,
    Picture,
    bars_picture,
    draw_histogram,
    grid,
    integer_ticks,
    short_name,
)
from secretballot.report.wording import number_text

_MOST_BARS = 12
_NAMED_SHARE = 22  # percent of the bar that a name and a number need
_BINS = 32
_SMALLEST = 0.01  # on the axis of moments; a number that came out as 0 is drawn there
_STAGE_COLOURS = (BLUE, ORANGE, INK)

#: What a release is of all that its account counts as spent.
_NAMES_OF_SUMS = {"basic": "this", "renyi": "so far"}


def draw_budget(certificate: Mapping[str, Any]) -> str:
    """Draw how much of the dataset's budget is spent: before, by this release, and what is left.

    Parameters
    ----------
    certificate : mapping
        Certificate of the release.
    """
    composition = certificate["composition"]
    budget, spent = composition["budget"], composition["spent_after"]
    kinds = [key for key in ("delta", "epsilon") if budget[key] > 0]
    plain_sum = composition["kind"] == "basic"

    def paint(axes: Any) -> None:
        for row, key in enumerate(kinds):
            # a Renyi filter prices all releases together: there is no part of this one alone
            own = min(certificate[key], spent[key]) if plain_sum else spent[key]
            left = max(0.0, budget[key] - spent[key])
            parts = (
                ("earlier", spent[key] - own, SLATE, INK),
                (_NAMES_OF_SUMS[composition["kind"]], own, BLUE, "white"),
                ("left", left, "white", INK),
            )
            _draw_stacked_bar(axes, row, [(*part, 100 * part[1] / budget[key]) for part in parts])
        axes.set_yticks(range(len(kinds)), kinds)
        axes.set_xlim(0, 100)
        axes.set_xlabel("share of the dataset's budget (%)")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)

    return Picture("budget", 0.75 + 0.5 * len(kinds), paint).inline()


def _draw_stacked_bar(axes: Any, row: int, parts: list[tuple[str, float, str, str, float]]) -> None:
    """Draw one bar of parts (name, amount, colour, ink, percent), named where there is space."""
    start = 0.0
    for name, amount, colour, ink, share in parts:
        if share > 0:
            axes.barh(
                row, share, left=start, height=0.62, color=colour, edgecolor=INK, linewidth=0.8
            )
        if share >= _NAMED_SHARE:
            words = f"{name} {number_text(float(f'{amount:.3g}'))}"
            axes.text(start + share / 2, row, words, ha="center", va="center", color=ink)
        start += share


def draw_votes(released: ReleasedLabels) -> str:
    """Draw what was released: noisy counts against the threshold, or how many of each label.

    Parameters
    ----------
    released : ReleasedLabels
        What was released.
    """
    counts, noise = released.noisy_counts, float(released.sigma or 0)
    if counts is None or not len(counts):
        return _draw_labels(released)
    if released.n_classes == 2 and not released.by_record:
        values: Any = counts if counts.ndim == 1 else counts[:, 1]
        middle = released.n_teachers / 2
        second = short_name(released.classes[1])
        words = f"noisy votes for {second}, of {released.n_teachers:,} teachers"
    else:
        ordered = np.sort(counts, axis=1)
        values, middle = ordered[:, -1] - ordered[:, -2], 0.0
        noise *= np.sqrt(2)  # the difference of two noisy counts carries both
        words = "noisy lead of the winning class (votes)"
    width = max(1.0, np.ptp(values) / _BINS)
    # an edge lies on the threshold, so that no bar holds both labels
    first, last = (np.floor((end - middle) / width) for end in (values.min(), values.max()))
    edges = middle + width * np.arange(first, last + 2)

    def paint(axes: Any) -> None:
        # within one standard deviation of the threshold noise may have decided
        axes.axvspan(middle - noise if middle else 0, middle + noise, color=PALE, linewidth=0)
        draw_histogram(axes, values, edges, [middle], words)
        axes.set_ylabel("queries")
        integer_ticks(axes.yaxis)

    return Picture("votes", 3.1, paint).inline()


def _draw_labels(released: ReleasedLabels) -> str:
    counts = np.bincount(released.labels[released.answered], minlength=released.n_classes)
    rows = _largest(released.classes, counts, "other classes")
    by_model = released.n_teachers == 0  # which leaves no point without an answer
    if not by_model:
        rows.append(("no answer", float(len(released.queries) - counts.sum())))
    words = f"{'public points' if by_model else 'queries'} with this released label"
    return bars_picture("votes", rows, words)


def _largest(names: Sequence[Any], amounts: Any, rest: str = "") -> list[tuple[str, float]]:
    """Return names and amounts; of more than fit in a picture the largest ones first, and the
    others added up where they have a name."""
    order = np.arange(len(amounts))
    if len(order) > _MOST_BARS:
        order = np.argsort(-amounts, kind="stable")
    found = [(short_name(names[k]), float(amounts[k])) for k in order[:_MOST_BARS]]
    others = order[_MOST_BARS:]
    if rest and len(others):
        found.append((f"{len(others)} {rest}", float(amounts[others].sum())))
    return found


def draw_confidence(confidence: FloatArray, n_classes: int, *, of_votes: bool = False) -> str:
    """Draw how sure the student is on public points.

    Parameters
    ----------
    confidence : array of shape (n,)
        Highest class probability of each point.
    n_classes : int
        Number of classes C; a guess has probability 1 / C.
    of_votes : bool
        Whether the probabilities are expected shares of the teachers.
    """
    middle = float(np.median(confidence))
    weights = np.full(len(confidence), 100 / len(confidence))
    # the axis begins at a guess: no highest probability can be lower
    edges = np.linspace(1 / n_classes, 1.0, 26)
    words = "the student's highest class probability"
    if of_votes:
        words = "share of teachers expected behind the label"

    def paint(axes: Any) -> None:
        values = np.clip(confidence, edges[0], 1.0)
        draw_histogram(axes, values, edges, [middle], words, weights=weights)
        axes.set_ylim(top=min(100.0, axes.get_ylim()[1]))  # no share is larger
        axes.set_xlim(edges[0], 1.0)
        axes.set_ylabel("public points (%)")

    return Picture("confidence", 2.9, paint).inline()


def released_sizes(terms: Mapping[str, Any]) -> list[FloatArray]:
    """Return, for each stage, the sizes of the released numbers over their noise, largest first.

    What counts records is left out: arrays of shape (n_coordinates,).
    """
    n_marks = len(terms["marks"])
    stages = [np.array(one[: len(one) - n_marks], dtype=np.float64) for one in terms["values"]]
    return [np.sort(np.abs(one))[::-1] / terms["sigma"] for one in stages]


def draw_moments(terms: Mapping[str, Any]) -> str:
    """Draw the released numbers of every stage by size, beside what noise alone would give.

    Parameters
    ----------
    terms : mapping
        What `stated` returns of a certificate of noisy sums.
    """
    sizes = released_sizes(terms)
    n = len(sizes[0])
    places = np.arange(1, n + 1)
    # the middle of the r-th largest of n, for a normal distribution
    alone = -ndtri((places - 0.5) / n / 2)

    def paint(axes: Any) -> None:
        axes.axhspan(_SMALLEST, 1.0, color=PALE, linewidth=0)
        # a number that came out as 0 has no place on an axis of logarithms
        axes.plot(places, np.maximum(alone, _SMALLEST), color=GREY, linestyle="--", linewidth=1.4)
        for number, size in enumerate(sizes):
            axes.plot(
                places,
                np.maximum(size, _SMALLEST),
                color=_STAGE_COLOURS[number % len(_STAGE_COLOURS)],
                linewidth=2.0 if number == 0 else 1.6,
                linestyle=("-", "-.", ":")[number // len(_STAGE_COLOURS) % 3],
                marker="o" if n <= 60 else "",
                markersize=2.5,
            )
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: number_text(value))
        axes.set_ylim(_SMALLEST * 3, 2 * max(float(size[0]) for size in sizes) + 4)
        axes.set_xlim(0, n + 1)
        words = [f"stage {number + 1}" for number in range(len(sizes))]
        axes.legend(
            axes.lines, ["noise alone", *words], frameon=False, loc="upper right", fontsize=9.5
        )
        axes.set_xlabel("released numbers, largest first")
        axes.set_ylabel("size, in standard\ndeviations of the noise")
        grid(axes, "y")

    return Picture("moments", 2.9, paint).inline()


def draw_columns(names: Sequence[str], shares: FloatArray) -> str:
    """Draw which share of what the model says comes from each column, the largest first.

    Parameters
    ----------
    names : sequence of str
    shares : array of shape (n_columns,)
        Together 1.
    """
    order = np.argsort(-shares, kind="stable")
    rows = _largest([names[place] for place in order], 100 * shares[order], "others")
    return bars_picture("columns", rows, "share of what the model says (%)", percent=True)


def draw_numbers(name: str, values: FloatArray, bounds: Sequence[float], words: str) -> str:
    """Draw how numbers are spread between public bounds, and beyond.

    Parameters
    ----------
    name : str
        Of the picture.
    values : array of shape (n,)
    bounds : two floats
    words : str
        What the numbers are.
    """

    low, high = min(bounds[0], values.min()), max(bounds[1], values.max())

    def paint(axes: Any) -> None:
        draw_histogram(axes, values, np.linspace(low, high, _BINS + 1), bounds, words)
        axes.set_ylabel("public points")
        integer_ticks(axes.yaxis)

    return Picture(name, 2.9, paint).inline()


def draw_shares(name: str, labels: Sequence[str], shares: FloatArray) -> str:
    """Draw at which share of public points each label is given.

    Parameters
    ----------
    name : str
        Of the picture.
    labels : sequence of str
    shares : array of shape (n_labels,)
        Of many labels the most frequent are drawn.
    """
    rows = _largest(labels, 100 * shares)
    return bars_picture(name, rows, "public points with this label (%)", percent=True)


def draw_curve(rounds: Sequence[int], curve: Sequence[float | None]) -> str:
    """Draw agreement with the final student against queries, for the rounds that have one; it is
    computed from public points and released labels, and is no accuracy.

    Parameters
    ----------
    rounds : sequence of int
        Queries of each.
    curve : sequence of float or None
        Share of the public pool, of one round at least.
    """
    known = [share is not None for share in curve]
    totals, shares = np.cumsum(rounds), [100 * share for share in curve if share is not None]

    def paint(axes: Any) -> None:
        axes.plot(totals[known], shares, color=BLUE, linewidth=1.4, marker="o", clip_on=False)
        axes.set_xlim(0, 1.04 * float(totals[-1]))
        # from at most 90 %, so that small changes do not look like large ones
        axes.set_ylim(min(90.0, 10 * np.floor(min(shares) / 10)), 100)
        axes.set_xlabel("queries released")
        axes.set_ylabel("agreement with the\nfinal student (% of the pool)")
        integer_ticks(axes.xaxis)
        grid(axes, "both")

    return Picture("curve", 2.9, paint).inline()
