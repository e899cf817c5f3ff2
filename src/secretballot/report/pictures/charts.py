"""Pictures of a release, as SVG for the inside of a page.

Every picture shows released values only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from secretballot._typing import FloatArray, IntArray
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
    if released.noisy_counts is None or not len(released.queries):
        return _draw_labels(released)
    if released.n_classes == 2 and not released.by_record:
        counts = released.noisy_counts
        return _draw_counts(released, counts if counts.ndim == 1 else counts[:, 1])
    return _draw_margins(released)


def _draw_counts(released: ReleasedLabels, counts: IntArray) -> str:
    half, sigma = released.n_teachers / 2, float(released.sigma or 0)
    width = max(1.0, np.ptp(counts) / 32)
    low = np.floor((counts.min() - half) / width)
    high = np.floor((counts.max() - half) / width) + 1
    # An edge lies on the threshold, so that no bar holds both labels.
    edges = half + width * np.arange(low, high + 1)

    def paint(axes: Any) -> None:
        heights, _ = np.histogram(counts, edges)
        below = edges[:-1] < half
        # within one standard deviation of the threshold noise may have decided
        axes.axvspan(half - sigma, half + sigma, color=PALE, linewidth=0)
        for chosen, colour, hatch in ((below, BLUE, ""), (~below, ORANGE, "////")):
            axes.bar(
                edges[:-1][chosen],
                heights[chosen],
                width,
                align="edge",
                color=colour,
                hatch=hatch,
                edgecolor="white",
                linewidth=0.5,
            )
        axes.axvline(half, color=INK, linewidth=1.2, linestyle="--")
        reach = 1.06 * max(abs(counts.min() - half), abs(counts.max() - half), 1.5 * sigma)
        axes.set_xlim(half - reach, half + reach)
        names = [short_name(value) for value in released.classes]
        for place, name, side in (
            (0.02, f"◀ {names[0]}", "left"),
            (0.98, f"{names[1]} ▶", "right"),
        ):
            axes.text(
                place, 1.02, name, transform=axes.transAxes, ha=side, va="bottom", weight="bold"
            )
        axes.set_xlabel(f"noisy votes for {names[1]}, of {released.n_teachers:,} teachers")
        axes.set_ylabel("queries")
        integer_ticks(axes.yaxis)
        grid(axes, "y")

    return Picture("votes", 3.1, paint).inline()


def _draw_margins(released: ReleasedLabels) -> str:
    assert released.noisy_counts is not None
    ordered = np.sort(released.noisy_counts, axis=1)
    margins = ordered[:, -1] - ordered[:, -2]
    # The difference of two noisy counts carries both noises.
    noise = float(released.sigma or 0) * np.sqrt(2)
    bins = min(_BINS, max(1, int(margins.max()) + 1))

    def paint(axes: Any) -> None:
        axes.axvspan(0, noise, color=PALE, linewidth=0)
        draw_histogram(axes, margins, bins, [0], "noisy lead of the winning class (votes)")
        axes.set_xlim(left=-0.02 * max(float(margins.max()), noise))
        axes.set_ylabel("queries")
        integer_ticks(axes.yaxis)

    return Picture("votes", 3.1, paint).inline()


def _draw_labels(released: ReleasedLabels) -> str:
    counts = np.bincount(released.labels[released.answered], minlength=released.n_classes)
    # of many classes the most frequent are named, so that the picture stays legible; the others
    # are added up, so that the bars still hold all answers
    order = _most_frequent_first(counts)
    found = [(short_name(released.classes[i]), int(counts[i])) for i in order[:_MOST_BARS]]
    if len(order) > _MOST_BARS:
        others = order[_MOST_BARS:]
        found.append((f"{len(others)} other classes", int(counts[others].sum())))
    colours = [BLUE] * len(found)
    by_model = released.n_teachers == 0  # which leaves no point without an answer
    if not by_model:
        found.append(("no answer", len(released.queries) - int(counts.sum())))
        colours.append("white")
    rows = [(name, count, f"{count:,}") for name, count in found]
    words = f"{'public points' if by_model else 'queries'} with this released label"
    return bars_picture("votes", rows, words, _fit_counts, colours=colours)


def _fit_counts(axes: Any) -> None:
    axes.set_xlim(0, 1.16 * max(1, *(bar.get_width() for bar in axes.patches)))
    integer_ticks(axes.xaxis)


def _most_frequent_first(amounts: Any) -> IntArray:
    """Return places in order; of more than fit in a picture, the largest amounts first."""
    if len(amounts) <= _MOST_BARS:
        return np.arange(len(amounts))
    return np.argsort(-amounts, kind="stable")


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
        near_right = middle > (1 + edges[0]) / 2
        # rounded to the side on which the sentence stays true: none is above 1
        bound = (np.floor if near_right else np.ceil)(100 * middle) / 100
        axes.annotate(
            f"half of the points {'above' if near_right else 'below'} {number_text(bound)}",
            (middle, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(2 if near_right else -2, 3),
            textcoords="offset points",
            ha="right" if near_right else "left",
            va="bottom",
        )
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
    found = [(short_name(names[place]), 100 * float(shares[place])) for place in order]
    if len(found) > _MOST_BARS:
        rest = found[_MOST_BARS - 1 :]
        others = (f"{len(rest)} others", sum(share for _, share in rest))
        found = [*found[: _MOST_BARS - 1], others]
    rows = [(name, share, f"{share:.1f} %") for name, share in found]
    least = min(0.0, *(share for _, share in found))
    most = max(share for _, share in found)
    # columns that work against each other may have negative shares, and others more than 100
    end = 100.0 if least == 0 else np.inf

    def fit(axes: Any) -> None:
        axes.set_xlim(1.1 * least, max(1.0, min(1.22 * most, end)))
        axes.axvline(0, color=GREY, linewidth=0.8)

    return bars_picture("columns", rows, "share of what the model says (%)", fit)


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
    order = _most_frequent_first(shares)[:_MOST_BARS]
    rows = [
        (short_name(labels[k]), 100 * float(shares[k]), f"{100 * shares[k]:.1f}") for k in order
    ]

    def fit(axes: Any) -> None:
        axes.set_xlim(0, 112)
        axes.set_xticks([0, 25, 50, 75, 100])

    return bars_picture(name, rows, "public points with this label (%)", fit)
