"""Pictures of a release, as SVG that can stand inside a page.

Every picture shows released values only.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot.released import ReleasedLabels
from secretballot.report.pictures.style import (
    BLUE,
    INK,
    ORANGE,
    PALE,
    SLATE,
    Picture,
    draw_bars,
    grid,
    integer_ticks,
    short_name,
)
from secretballot.report.wording import number_text

_MOST_CLASSES = 12
_NAMED_SHARE = 22  # percent of the bar that a name and a number need


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
    """Draw one bar of parts (name, amount, colour, ink, percent), named where there is room."""
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

    def paint(axes: Any) -> None:
        axes.axvspan(0, noise, color=PALE, linewidth=0)
        axes.hist(
            margins,
            bins=min(32, max(1, int(margins.max()) + 1)),
            color=BLUE,
            edgecolor="white",
            linewidth=0.5,
        )
        axes.axvline(0, color=INK, linewidth=1.2, linestyle="--")
        axes.set_xlim(left=-0.02 * max(float(margins.max()), noise))
        axes.set_xlabel("noisy lead of the winning class (votes)")
        axes.set_ylabel("queries")
        integer_ticks(axes.yaxis)
        grid(axes, "y")

    return Picture("votes", 3.1, paint).inline()


def _draw_labels(released: ReleasedLabels) -> str:
    counts = np.bincount(released.labels[released.answered], minlength=released.n_classes)
    # of many classes the most frequent are named, so that the picture stays legible; the others
    # are added up, so that the bars still hold all answers
    order = (
        np.argsort(-counts, kind="stable")
        if released.n_classes > _MOST_CLASSES
        else np.arange(len(counts))
    )
    found = [(short_name(released.classes[i]), int(counts[i])) for i in order[:_MOST_CLASSES]]
    if released.n_classes > _MOST_CLASSES:
        others = order[_MOST_CLASSES:]
        found.append((f"{len(others)} other classes", int(counts[others].sum())))
    colours = [BLUE] * len(found)
    by_model = released.n_teachers == 0  # which leaves no point without an answer
    if not by_model:
        found.append(("no answer", len(released.queries) - int(counts.sum())))
        colours.append("white")
    rows = [(name, count, f"{count:,}") for name, count in found]

    def paint(axes: Any) -> None:
        draw_bars(axes, rows, colours=colours)
        axes.set_xlim(0, 1.16 * max(1, *(count for _, count in found)))
        axes.set_xlabel(f"{'public points' if by_model else 'queries'} with this released label")
        integer_ticks(axes.xaxis)

    return Picture("votes", 0.8 + 0.3 * len(rows), paint).inline()


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
    # the axis begins at a guess: no highest probability can be lower

    def paint(axes: Any) -> None:
        weights = np.full(len(confidence), 100 / len(confidence))
        edges = np.linspace(1 / n_classes, 1.0, 26)
        axes.hist(
            np.clip(confidence, edges[0], 1.0),
            edges,
            weights=weights,
            color=BLUE,
            edgecolor="white",
            linewidth=0.5,
        )
        axes.axvline(middle, color=INK, linewidth=1.2, linestyle="--")
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
        share, chance = (
            "share of teachers expected behind the label",
            "the student's highest class probability",
        )
        axes.set_xlabel(share if of_votes else chance)
        axes.set_ylabel("public points (%)")
        grid(axes, "y")

    return Picture("confidence", 2.9, paint).inline()
