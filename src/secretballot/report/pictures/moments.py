"""Pictures of released moments: what stands out of the noise, and which columns carry the model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from secretballot._typing import FloatArray
from secretballot.report.pictures.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PALE,
    Picture,
    draw_bars,
    grid,
    short_name,
)
from secretballot.report.wording import number_text

_MOST_COLUMNS = 12
_SMALLEST = 0.01  # on the axis; a number that came out as 0 stands there
_STAGE_COLOURS = (BLUE, ORANGE, INK)


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
    if len(found) > _MOST_COLUMNS:
        rest = found[_MOST_COLUMNS - 1 :]
        others = (f"{len(rest)} others", sum(share for _, share in rest))
        found = [*found[: _MOST_COLUMNS - 1], others]
    rows = [(name, share, f"{share:.1f} %") for name, share in found]

    def paint(axes: Any) -> None:
        draw_bars(axes, rows)
        least = min(0.0, *(share for _, share, _ in rows))
        most = max(share for _, share, _ in rows)
        # columns that work against each other may have negative shares, and others more than 100
        end = 100.0 if least == 0 else np.inf
        axes.set_xlim(1.1 * least, max(1.0, min(1.22 * most, end)))
        axes.axvline(0, color=GREY, linewidth=0.8)
        axes.set_xlabel("share of what the model says (%)")

    return Picture("columns", 0.8 + 0.3 * len(rows), paint).inline()
