"""Pictures of diagnoses, for the curator: each says in itself that it is not releasable."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from secretballot.ensemble.diagnostics.sealed_result import NOT_RELEASABLE, Diagnosis
from secretballot.report.extras import MissingExtraError
from secretballot.report.pictures.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PALE,
    Picture,
    grid,
    integer_ticks,
)
from secretballot.runs.progress import Watch

__all__ = ["draw_diagnoses"]

_BARS = 25
_UPRIGHT = 7  # bars with room for a number of five digits beside each other


def draw_diagnoses(diagnoses: Mapping[str, Diagnosis], watch: Watch) -> dict[str, bytes]:
    """Return the pictures of diagnoses as files by name, SVG and PNG.

    None, with a note, where nothing can draw.

    Parameters
    ----------
    diagnoses : mapping of str to Diagnosis
        With "margins", "expected" and "stability"; with "reference" the margins are split by
        it.
    watch : Watch

    Privacy
    -------
    Sensitivity : one unit may move all of it; keep the pictures in the vault.
    """
    pictures = (
        _margins_picture(diagnoses["margins"], diagnoses.get("reference")),
        _high_margin_picture(diagnoses["expected"]),
        _stability_picture(diagnoses["stability"]),
    )
    try:
        drawn = {f"{picture.name}.svg": picture.svg() for picture in pictures}
        return drawn | {f"{picture.name}.png": picture.png() for picture in pictures}
    except MissingExtraError as error:
        watch.note(f"No pictures were drawn: {error}", private=False)
        return {}


def _picture_with_warning(name: str, words: str, paint: Callable[[Any], None]) -> Picture:
    """Return a picture with the warning written into it, and a few words on what is seen."""

    def whole(axes: Any) -> None:
        paint(axes)
        axes.set_title(NOT_RELEASABLE, loc="left", color=ORANGE, weight="bold", fontsize=10.5)
        axes.set_title(words, loc="right", color=INK, fontsize=9)

    return Picture(name, 3.1, whole)


def _margins_picture(found: Diagnosis, reference: Diagnosis | None) -> Picture:
    """Draw how many public points have which margin, split by whether one model agrees."""
    margins, k = found.values()["margins"], found.sizes["teachers"]
    # even: margins of two classes are all even, or all odd
    width = 2 * max(1, -(-(k + 1) // (2 * _BARS)))
    edges = np.arange(0, k + width + 1, width)
    parts = [("", margins, BLUE, "")]
    if reference is not None:
        agrees = reference.values()["margins"] > 0
        parts = [
            (f"it does not, or ties: {np.sum(~agrees):,}", margins[~agrees], ORANGE, "////"),
            (
                f"vote agrees with one model of all records: {np.sum(agrees):,}",
                margins[agrees],
                BLUE,
                "",
            ),
        ]

    def paint(axes: Any) -> None:
        below = np.zeros(len(edges) - 1)
        for label, values, colour, hatch in parts:
            heights, _ = np.histogram(values, edges)
            axes.bar(
                edges[:-1],
                heights,
                width,
                bottom=below,
                align="edge",
                color=colour,
                hatch=hatch,
                edgecolor="white",
                linewidth=0.4,
                label=label,
            )
            below = below + heights
        axes.set_xlabel(f"margin (votes, of {k:,} teachers)")
        axes.set_ylabel("public points")
        axes.set_xlim(0, edges[-1])
        integer_ticks(axes.yaxis)
        grid(axes, "y")
        if reference is not None:
            # room for the legend above the bars
            axes.set_ylim(0, 1.3 * below.max())
            axes.legend(loc="upper left", frameon=False, reverse=True)

    return _picture_with_warning("margins", f"{len(margins):,} points", paint)


def _high_margin_picture(found: Diagnosis) -> Picture:
    """Draw the curve of approximate high margin with its band."""
    values = found.values()

    def paint(axes: Any) -> None:
        axes.fill_between(
            values["levels"], values["low"], values["high"], step="post", color=PALE, linewidth=0
        )
        axes.step(values["levels"], values["shares"], where="post", color=BLUE, linewidth=1.8)
        axes.set_xlim(0, 0.5)
        axes.set_ylim(0, 1)
        axes.set_xlabel("Δ, expected margin of one teacher")
        axes.set_ylabel("ν, share of points at or below Δ")
        grid(axes, "both")

    return _picture_with_warning(
        "high-margin", f"{found.sizes['queries']:,} points; 95 % band of the whole curve", paint
    )


def _stability_picture(found: Diagnosis) -> Picture:
    """Draw the share of unstable queries against T, with the number of answers at each."""
    values, m = found.values(), found.sizes["queries"]

    def paint(axes: Any) -> None:
        places = np.arange(len(values["max_unstable"]))
        turned = 90 if len(places) > _UPRIGHT else 0  # else long numbers run into each other
        axes.bar(places, 100 * values["unstable"], 0.62, color=BLUE, edgecolor=INK, linewidth=0.8)
        for place, share, answered in zip(
            places, values["unstable"], values["answered"], strict=True
        ):
            words = f"{answered:,.0f}"
            axes.text(
                place, 100 * share + 2, words, ha="center", va="bottom", color=INK, rotation=turned
            )
        axes.set_xticks(places, [f"{t:,}" for t in values["max_unstable"]], rotation=turned)
        axes.set_ylim(0, 145 if turned else 118)
        axes.set_yticks(range(0, 101, 25))
        axes.set_xlabel("T, abstentions allowed")
        axes.set_ylabel("unstable queries (%)")
        axes.spines["left"].set_color(GREY)
        grid(axes, "y")

    return _picture_with_warning("stability", f"on each bar: expected answers of {m:,}", paint)
