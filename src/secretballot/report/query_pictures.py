"""Pictures of a release in rounds: which points were asked, what the student learnt from them, what is still open.

Drawn from public points and released labels alone.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from secretballot.released import ReleasedLabels
from secretballot.report.drawing import BLUE, GREY, INK, ORANGE, Picture, grid, whole_numbers
from secretballot.report.extras import require_extra
from secretballot.report.query_map import MOST_ASKED, axis_name, class_marks, draw_query_map, thinned
from secretballot.report.query_story import QueryStory
from secretballot.report.wording import number_text

__all__ = ["draw_learning_curve", "draw_query_pictures", "draw_version_space", "region_sizes", "space_segments"]

_MOST_TICKS = 250
_SHADE = "#F3E3B5"
_NORMAL_95 = 1.959964  # quantile of the standard normal law at 97.5 %

FloatArray = NDArray[np.float64]


def draw_query_pictures(story: QueryStory, released: ReleasedLabels) -> dict[str, Picture]:
    """Return all pictures there are of a story, by name: ``map``, ``curve`` and ``space``.

    Parameters
    ----------
    story : QueryStory
    released : ReleasedLabels
        The release that the story tells of.
    """
    found = {
        "map": draw_query_map(story, released),
        "curve": draw_learning_curve(story),
        "space": draw_version_space(story, released),
    }
    return {name: picture for name, picture in found.items() if picture is not None}


def draw_learning_curve(story: QueryStory) -> Picture | None:
    """Draw agreement with the final student on the public pool against queries; None where no round has a student.

    It is computed from public points and released labels, and is no accuracy.

    Parameters
    ----------
    story : QueryStory
    """
    totals = np.cumsum([len(entry["asked"]) for entry in story.rounds])
    known = np.array([entry["agreement"] is not None for entry in story.rounds], dtype=bool)
    if not known.any():
        return None
    shares = np.array([100 * entry["agreement"] for entry in story.rounds if entry["agreement"] is not None])

    def paint(axes: Any) -> None:
        axes.plot(totals[known], shares, color=BLUE, linewidth=1.4)
        axes.plot(
            totals[known], shares, linestyle="", marker="o", markersize=5.5, color=BLUE, gid="rounds", clip_on=False
        )
        axes.set_xlim(0, 1.04 * float(totals[-1]))
        axes.set_ylim(min(90.0, 10 * np.floor(float(shares.min()) / 10)), 100)
        axes.set_xlabel("queries released")
        axes.set_ylabel("agreement with the\nfinal student (% of the pool)")
        whole_numbers(axes.xaxis)
        grid(axes, "both")

    return Picture("curve", 2.9, paint)


def draw_version_space(story: QueryStory, released: ReleasedLabels) -> Picture | None:
    """Draw what is still possible: segments on a line, else the size of the region of disagreement; else None.

    Parameters
    ----------
    story : QueryStory
    released : ReleasedLabels
        The release that the story tells of.
    """
    segments = space_segments(story)
    if segments:
        return _draw_segments(story, released, segments)
    seen, sizes = region_sizes(story)
    return _draw_region_sizes(seen, sizes) if len(seen) else None


def space_segments(story: QueryStory) -> list[tuple[float, float]]:
    """Return the segments of a version space on the line, an open end as infinity; none where the story has none."""
    space = story.explanation.get("version_space")
    listed = space.get("segments") if isinstance(space, dict) and story.is_line else None
    if not isinstance(listed, list):
        return []
    pairs = [pair for pair in listed if isinstance(pair, list) and len(pair) == 2]
    if len(pairs) < len(listed) or not all(end is None or _is_number(end) for pair in pairs for end in pair):
        return []
    return [(-np.inf if low is None else float(low), np.inf if high is None else float(high)) for low, high in pairs]


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _draw_segments(story: QueryStory, released: ReleasedLabels, segments: list[tuple[float, float]]) -> Picture:
    values = story.positions[:, 0]
    asked = values[np.searchsorted(story.rows, story.asked)]
    reach = 0.04 * (float(np.ptp(values)) or 1.0)
    left, right = float(values.min()) - reach, float(values.max()) + reach
    rows = [(marks.name, np.isin(released.labels, marks.labels), marks.colour, marks.marker)
            for marks in class_marks(released)]  # fmt: skip
    rows += [("no answer", released.labels < 0, INK, "x")] if (released.labels < 0).any() else []

    def paint(axes: Any) -> None:
        ticks = values[thinned(np.argsort(values), _MOST_TICKS)]
        axes.plot(ticks, np.zeros(len(ticks)), linestyle="", marker="|", markersize=9, color=GREY,
                  markeredgewidth=0.6, gid="pool")  # fmt: skip
        for low, high in segments:
            ends = np.clip([low, high], left, right)
            axes.axvspan(*ends, color=_SHADE, linewidth=0, zorder=0)
            # The ends are marked too: they keep a segment visible however short it is.
            axes.plot(ends, [1, 1], color=INK, linewidth=5, solid_capstyle="butt", marker="|", markersize=11,
                      markeredgewidth=1.6, gid="segment")  # fmt: skip
        for place, (_, chosen, colour, marker) in enumerate(rows, 2):
            shown = asked[thinned(np.flatnonzero(chosen), MOST_ASKED // 2)]
            axes.plot(shown, np.full(len(shown), place), linestyle="", marker=marker, markersize=5, color=colour,
                      fillstyle="none", gid=f"label-{place - 2}")  # fmt: skip
        axes.set_yticks(range(2 + len(rows)), ["public pool", "still possible", *(f"asked: {row[0]}" for row in rows)])
        axes.set_ylim(-0.6, 1.6 + len(rows))
        axes.set_xlim(left, right)
        axes.set_xlabel(axis_name(story.axes[0]))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)

    return Picture("space", 0.8 + 0.34 * (2 + len(rows)), paint)


def region_sizes(story: QueryStory) -> tuple[FloatArray, FloatArray]:
    """Return points seen, shape (n,), and the size of the region after each update, shape (n, 3); n may be 0.

    The size is in percent of the pool, between the ends of a Wilson 95 % interval where only some points were
    looked at; the ends are the size itself where all were.
    """
    updates = story.explanation.get("updates")
    sizes = [_region_size(update, story.n_points) for update in updates] if isinstance(updates, list) else []
    found = np.array([size for size in sizes if size is not None], dtype=np.float64).reshape(-1, 4)
    return found[:, 0], 100 * found[:, 1:]


def _region_size(update: object, n_points: int) -> tuple[float, float, float, float] | None:
    """Return points seen, lower end, share and upper end of one update; None where it does not tell."""
    if not isinstance(update, Mapping) or not _is_number(update.get("j")) or not 0 <= update["j"] <= n_points:
        return None
    seen = float(update["j"])
    inside, looked = update.get("in_region"), update.get("examined")
    if _is_number(inside) and _is_number(looked) and 0 <= inside <= looked and looked > 0:
        share = inside / looked
        low, high = (share, share) if looked >= n_points - seen else _wilson(inside, looked)
        return seen, low, share, high
    region = update.get("region")
    if not _is_number(region) or not 0 <= region <= n_points:
        return None
    share = region if region <= 1 else region / n_points
    return seen, share, share, share


def _wilson(hits: float, tries: float) -> tuple[float, float]:
    """Return the ends of the Wilson score interval, 95 %, of a share."""
    square = _NORMAL_95**2
    middle = (hits + square / 2) / (tries + square)
    width = _NORMAL_95 / (tries + square) * np.sqrt(hits * (tries - hits) / tries + square / 4)
    return max(0.0, float(middle - width)), min(1.0, float(middle + width))


def _draw_region_sizes(seen: FloatArray, sizes: FloatArray) -> Picture:
    low, middle, high = sizes.T

    def paint(axes: Any) -> None:
        axes.plot(seen, middle, color=ORANGE, linewidth=1.2)
        axes.vlines(seen[high > low], low[high > low], high[high > low], color=INK, linewidth=1.0, gid="intervals")
        axes.plot(seen, middle, linestyle="", marker="s", markersize=5, color=ORANGE, gid="updates", clip_on=False)
        if seen.max() > 32 * max(1.0, seen.min()):  # updates at 1, 2, 4, 8, ...
            ticker = require_extra("matplotlib.ticker", "report")
            axes.set_xscale("symlog", base=2, linthresh=1)
            axes.xaxis.set_major_locator(ticker.FixedLocator([0, *(4**power for power in range(16))]))
            axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: number_text(value)))
            axes.set_xlim(0 if seen.min() < 1 else 1, 1.1 * seen.max())
        else:
            axes.set_xlim(0, 1.04 * max(1.0, float(seen.max())))
            whole_numbers(axes.xaxis)
        axes.set_ylim(0, 1.04 * max(float(high.max()), 1.0))
        axes.set_xlabel("public points seen, asked or not")
        axes.set_ylabel("region of disagreement\n(% of the pool)")
        grid(axes, "both")

    return Picture("space", 2.9, paint)
