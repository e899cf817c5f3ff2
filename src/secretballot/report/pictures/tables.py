"""Pictures of tables of numbers, and of sets of labels, as SVG that can stand inside a page."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from secretballot._typing import FloatArray
from secretballot.report.pictures.style import (
    BLUE,
    INK,
    Picture,
    draw_bars,
    grid,
    integer_ticks,
    short_name,
)

_MOST_LABELS = 12
_BARS = 32


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

    def paint(axes: Any) -> None:
        low, high = min(bounds[0], values.min()), max(bounds[1], values.max())
        axes.hist(
            values, np.linspace(low, high, _BARS + 1), color=BLUE, edgecolor="white", linewidth=0.5
        )
        for bound in bounds:
            axes.axvline(bound, color=INK, linewidth=1.2, linestyle="--")
        axes.set_xlabel(words)
        axes.set_ylabel("public points")
        integer_ticks(axes.yaxis)
        grid(axes, "y")

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
    order = list(range(len(labels)))
    if len(labels) > _MOST_LABELS:
        order = np.argsort(-shares, kind="stable")[:_MOST_LABELS].tolist()
    rows = [
        (short_name(labels[k]), 100 * float(shares[k]), f"{100 * shares[k]:.1f}") for k in order
    ]

    def paint(axes: Any) -> None:
        draw_bars(axes, rows)
        axes.set_xlim(0, 112)
        axes.set_xticks([0, 25, 50, 75, 100])
        axes.set_xlabel("public points with this label (%)")

    return Picture(name, 0.9 + 0.3 * len(rows), paint).inline()
