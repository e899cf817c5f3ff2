"""Pictures of a release in rounds: points asked, what the student learnt, what is still open.

Drawn from public points and released labels alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from secretballot._typing import FloatArray
from secretballot.released import ReleasedLabels
from secretballot.report.extras import require_extra
from secretballot.report.pictures.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    Picture,
    grid,
    integer_ticks,
    short_name,
)
from secretballot.report.rounds.map import (
    MOST_ASKED,
    axis_name,
    class_marks,
    draw_query_map,
    thinned,
)
from secretballot.report.rounds.story import QueryStory
from secretballot.report.wording import number_text

__all__ = [
    "Segment",
    "draw_learning_curve",
    "draw_query_pictures",
    "draw_region_sizes",
    "draw_version_space",
    "line_view",
    "region_sizes",
    "space_segments",
]

_MOST_TICKS = 250
_SHADE = "#F3E3B5"
_NORMAL_95 = 1.959964  # quantile of the standard normal distribution at 97.5 %


@dataclass(frozen=True)
class Segment:
    """Part of the line that is still possible, for a direction or an end, in so many pieces."""

    low: float
    high: float
    direction: str = ""
    pieces: int = 1


def draw_query_pictures(story: QueryStory, released: ReleasedLabels) -> dict[str, Picture]:
    """Return the pictures of a story by name: some of ``map``, ``curve``, ``space``, ``region``.

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
        "region": draw_region_sizes(story),
    }
    return {name: picture for name, picture in found.items() if picture is not None}


def draw_learning_curve(story: QueryStory) -> Picture | None:
    """Draw agreement with the final student against queries; None where no round has a student.

    It is computed from public points and released labels, and is no accuracy.

    Parameters
    ----------
    story : QueryStory
    """
    totals = np.cumsum([len(entry["asked"]) for entry in story.rounds])
    known = np.array([entry["agreement"] is not None for entry in story.rounds], dtype=bool)
    if not known.any():
        return None
    shares = np.array(
        [100 * entry["agreement"] for entry in story.rounds if entry["agreement"] is not None]
    )

    def paint(axes: Any) -> None:
        axes.plot(totals[known], shares, color=BLUE, linewidth=1.4)
        axes.plot(
            totals[known],
            shares,
            linestyle="",
            marker="o",
            markersize=5.5,
            color=BLUE,
            gid="rounds",
            clip_on=False,
        )
        axes.set_xlim(0, 1.04 * float(totals[-1]))
        # from at most 90 %, so that small changes do not look like large ones
        axes.set_ylim(min(90.0, 10 * np.floor(float(shares.min()) / 10)), 100)
        axes.set_xlabel("queries released")
        axes.set_ylabel("agreement with the\nfinal student (% of the pool)")
        integer_ticks(axes.xaxis)
        grid(axes, "both")

    return Picture("curve", 2.9, paint)


def draw_version_space(story: QueryStory, released: ReleasedLabels) -> Picture | None:
    """Draw what is still possible on a line, over its points; None where none was told.

    Where little is left, the picture shows its neighbourhood only.

    Parameters
    ----------
    story : QueryStory
    released : ReleasedLabels
        The release that the story tells of.
    """
    segments = space_segments(story)
    return _draw_segments(story, released, segments) if segments else None


def space_segments(story: QueryStory) -> list[Segment]:
    """Return what a version space leaves of the line; nothing where the story has none on a line.

    Read are ``segments``, pairs [low, high], and ``thresholds``, objects with ``above``,
    ``at_most``, ``direction`` and ``segments``, how many pieces lie between these ends; of
    intervals, the pairs ``lower`` and ``upper`` of where each end may lie. An open end is None,
    "-inf" or "inf".
    """
    # an explanation is a strategy's own, perhaps a stranger's: what is not understood is not drawn
    space = story.explanation.get("version_space")
    if not isinstance(space, dict) or not story.is_line:
        return []
    if isinstance(space.get("thresholds"), list):
        found = [_segment_of_cut(entry) for entry in space["thresholds"]]
    elif "lower" in space and "upper" in space:
        found = [_segment_of_pair(space[end], f"{end} end") for end in ("lower", "upper")]
    else:
        listed = space.get("segments")
        found = [_segment_of_pair(pair, "") for pair in listed] if isinstance(listed, list) else []
    segments = [segment for segment in found if segment is not None]
    return segments if len(segments) == len(found) else []


def _segment_of_cut(entry: object) -> Segment | None:
    if not isinstance(entry, Mapping):
        return None
    pieces = entry.get("segments")
    direction = entry.get("direction")
    return _checked_segment(
        entry.get("above", ""),
        entry.get("at_most", ""),
        str(direction or ""),
        pieces if isinstance(pieces, int) else 1,
    )


def _segment_of_pair(pair: object, direction: str) -> Segment | None:
    return (
        _checked_segment(pair[0], pair[1], direction)
        if isinstance(pair, list) and len(pair) == 2
        else None
    )


def _checked_segment(
    low: object, high: object, direction: str = "", pieces: int = 1
) -> Segment | None:
    if low is None or low == "-inf":
        low = -np.inf
    if high is None or high == "inf":
        high = np.inf
    if not (_is_number(low) and _is_number(high) and low <= high):
        return None
    return Segment(float(low), float(high), direction, pieces)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def line_view(story: QueryStory, segments: Sequence[Segment]) -> tuple[float, float]:
    """Return which part of the line is drawn: all of the pool, or where the little left lies."""
    values = story.positions[:, 0]
    low, high = float(values.min()), float(values.max())
    reach = 0.04 * ((high - low) or 1.0)
    first, last = (
        min(segment.low for segment in segments),
        max(segment.high for segment in segments),
    )
    if last - first < 0.05 * (high - low) and low <= first and last <= high:
        margin = max(4 * (last - first), 0.005 * (high - low))
        return first - margin, last + margin
    return low - reach, high + reach


def _draw_segments(story: QueryStory, released: ReleasedLabels, segments: list[Segment]) -> Picture:
    values = story.positions[:, 0]
    asked = values[np.searchsorted(story.rows, story.asked)]
    left, right = line_view(story, segments)
    rows = [
        (marks.name, np.isin(released.labels, marks.labels), marks.colour, marks.marker)
        for marks in class_marks(released)
    ]
    rows += [("no answer", released.labels < 0, INK, "x")] if (released.labels < 0).any() else []

    spaces = list(dict.fromkeys(segment.direction for segment in segments))
    names = ["public pool", *_space_names(spaces, released), *(f"asked: {row[0]}" for row in rows)]

    def paint(axes: Any) -> None:
        near = np.sort(values[(values >= left) & (values <= right)])
        ticks = near[thinned(np.arange(len(near)), _MOST_TICKS)]
        axes.plot(
            ticks,
            np.zeros(len(ticks)),
            linestyle="",
            marker="|",
            markersize=9,
            color=GREY,
            markeredgewidth=0.6,
            gid="pool",
        )
        for segment in segments:
            ends = np.clip([segment.low, segment.high], left, right)
            axes.axvspan(*ends, color=_SHADE, linewidth=0, zorder=0)
            # The ends are marked too: they keep a segment visible however short it is.
            axes.plot(
                ends,
                [1 + spaces.index(segment.direction)] * 2,
                color=INK,
                linewidth=5,
                solid_capstyle="butt",
                marker="|",
                markersize=11,
                markeredgewidth=1.6,
                gid="segment",
            )
        for number, (_, chosen, colour, marker) in enumerate(rows):
            shown = asked[
                thinned(
                    np.flatnonzero(chosen & (asked >= left) & (asked <= right)), MOST_ASKED // 2
                )
            ]
            axes.plot(
                shown,
                np.full(len(shown), 1 + len(spaces) + number),
                linestyle="",
                marker=marker,
                markersize=5,
                color=colour,
                fillstyle="none",
                gid=f"label-{number}",
            )
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.set_xlim(left, right)
        axes.set_xlabel(axis_name(story.axes[0]))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)

    return Picture("space", 0.8 + 0.34 * len(names), paint)


def _space_names(directions: list[str], released: ReleasedLabels) -> list[str]:
    """Return what the rows of segments are called, with the side of the second class."""
    if len(directions) < 2:
        return ["still possible"] * len(directions)
    second = short_name(released.classes[1])
    sides = {"up": f"{second} above", "down": f"{second} below"}
    return [f"possible: {sides.get(direction, direction)}" for direction in directions]


def draw_region_sizes(story: QueryStory) -> Picture | None:
    """Draw the region of disagreement's size against points seen; None where no update tells it.

    Parameters
    ----------
    story : QueryStory
    """
    seen, sizes = region_sizes(story)
    if not len(seen):
        return None
    low, middle, high = sizes.T

    def paint(axes: Any) -> None:
        axes.plot(seen, middle, color=ORANGE, linewidth=1.2)
        # bars only where a sample was looked at: an exact size has no interval
        axes.vlines(
            seen[high > low],
            low[high > low],
            high[high > low],
            color=INK,
            linewidth=1.0,
            gid="intervals",
        )
        axes.plot(
            seen,
            middle,
            linestyle="",
            marker="s",
            markersize=5,
            color=ORANGE,
            gid="updates",
            clip_on=False,
        )
        _axis_of_points_seen(axes, seen)
        axes.set_ylim(0, 1.04 * max(float(high.max()), 1.0))
        axes.set_ylabel("region of disagreement\n(% of the points to come)")
        grid(axes, "both")

    return Picture("region", 2.9, paint)


def _axis_of_points_seen(axes: Any, seen: FloatArray) -> None:
    """Scale the axis so that updates at 1, 2, 4, 8, ... stand equally far apart."""
    axes.set_xlabel("public points seen, asked or not")
    if not seen.max() > 32:
        axes.set_xlim(0, 1.04 * max(1.0, float(seen.max())))
        integer_ticks(axes.xaxis)
        return
    ticker = require_extra("matplotlib.ticker", "report")
    axes.set_xscale("symlog", base=2, linthresh=1)
    axes.xaxis.set_major_locator(ticker.FixedLocator([0, *(4**power for power in range(16))]))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: number_text(value)))
    axes.set_xlim(0 if seen.min() < 1 else 1, 1.1 * seen.max())


def region_sizes(story: QueryStory) -> tuple[FloatArray, FloatArray]:
    """Return points seen, shape (n,), and the region's size after each update, shape (n, 3).

    The size is in percent of the points still to come, or of the pool where the strategy tells
    that. It stands between the ends of a Wilson 95 % interval where only some points were looked
    at; where all were, the ends are the size.
    """
    updates, distinct = story.explanation.get("updates"), story.explanation.get("points")
    n_points = (
        min(distinct, story.n_points)
        if isinstance(distinct, int) and distinct >= 1
        else story.n_points
    )
    sizes = (
        [_region_size(update, n_points) for update in updates] if isinstance(updates, list) else []
    )
    found = np.array([size for size in sizes if size is not None], dtype=np.float64).reshape(-1, 4)
    return found[:, 0], 100 * found[:, 1:]


def _region_size(update: object, n_points: int) -> tuple[float, float, float, float] | None:
    """Return points seen, lower end, share and upper end of one update, or None."""
    if (
        not isinstance(update, Mapping)
        or not _is_number(update.get("j"))
        or not 0 <= update["j"] <= n_points
    ):
        return None
    # a sample of the region where the strategy took one, else the region as it states it
    seen = float(update["j"])
    inside, looked = update.get("in_region"), update.get("examined")
    if _is_number(inside) and _is_number(looked) and 0 <= inside <= looked and looked > 0:
        share = inside / looked
        low, high = (
            (share, share) if looked >= n_points - seen else _wilson_interval(inside, looked)
        )
        return seen, low, share, high
    region = update.get("region")
    if not _is_number(region) or not 0 <= region <= n_points:
        return None
    share = region if region <= 1 else region / n_points
    return seen, share, share, share


def _wilson_interval(hits: float, tries: float) -> tuple[float, float]:
    """Return the ends of the Wilson score interval, 95 %, of a share."""
    square = _NORMAL_95**2
    middle = (hits + square / 2) / (tries + square)
    width = _NORMAL_95 / (tries + square) * np.sqrt(hits * (tries - hits) / tries + square / 4)
    return max(0.0, float(middle - width)), min(1.0, float(middle + width))
