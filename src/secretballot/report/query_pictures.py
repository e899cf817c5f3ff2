"""Pictures of a release in rounds: which points were asked, what the student learnt from them, what is still open.

Drawn from public points and released labels alone. Class is told by colour and by shape, the round by a hollow or a
filled mark, an abstention by a cross.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secretballot.released import ReleasedLabels
from secretballot.report.drawing import BLUE, GREY, INK, ORANGE, Picture, grid, short_name, whole_numbers
from secretballot.report.query_story import QueryStory

__all__ = ["draw_learning_curve", "draw_query_map", "draw_query_pictures", "draw_version_space", "space_segments"]

_MOST_BACKGROUND = 1500  # more cannot be told apart, and each costs fifty bytes
_MOST_ASKED = 1200
_STYLES = ((BLUE, "o"), (ORANGE, "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v"), ("#56B4E9", "P"))
_OTHERS = (INK, "*")
_BACKGROUND, _REGION = "#C9CED6", "#E9C46A"

IntArray = NDArray[np.int64]
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


def thinned(places: IntArray, most: int) -> IntArray:
    """Return at most so many of `places`, evenly spread over their order."""
    if len(places) <= most:
        return places
    return places[np.arange(most) * len(places) // most]


def draw_query_map(story: QueryStory, released: ReleasedLabels) -> Picture:
    """Draw the public pool with the queries, by released label and by early and late rounds.

    The region of disagreement, where the story has one, is shaded by larger points of another colour.

    Parameters
    ----------
    story : QueryStory
    released : ReleasedLabels
        The release that the story tells of.
    """

    def paint(axes: Any) -> None:
        _paint_pool(axes, story)
        _paint_queries(axes, story, released)
        axes.set_xlabel(story.axes[0])
        if story.is_line:
            axes.set_ylabel("spread out to be seen")
            axes.set_yticks([])
            axes.set_ylim(-0.05, 1.05)
        else:
            axes.set_ylabel(story.axes[1])
        axes.tick_params(length=3)
        _legend(axes)

    return Picture("map", (3.0 if story.is_line else 4.3) + 0.22 * _legend_lines(story, released), paint)


def _paint_pool(axes: Any, story: QueryStory) -> None:
    asked = np.isin(story.rows, story.asked)
    inside = np.zeros(len(story.rows), dtype=bool) if story.region is None else story.region
    shown = thinned(np.flatnonzero(~asked), _MOST_BACKGROUND)
    for chosen, colour, size, name, gid in (
        (~inside[shown], _BACKGROUND, 2.2, "not asked", "pool"),
        (inside[shown], _REGION, 4.6, "not asked, in the region of disagreement", "region"),
    ):
        if chosen.any():
            places = story.positions[shown[chosen]]
            axes.plot(
                places[:, 0], places[:, 1], linestyle="", marker="o", markersize=size, color=colour,
                markeredgewidth=0, label=name, gid=gid,
            )  # fmt: skip


def _paint_queries(axes: Any, story: QueryStory, released: ReleasedLabels) -> None:
    shown = thinned(np.arange(len(story.asked)), _MOST_ASKED)
    places = story.positions[np.searchsorted(story.rows, story.asked[shown])]
    labels, late = released.labels[shown], _is_late(story)[shown]
    size = float(np.clip(70 / np.sqrt(max(1, len(shown))), 3.2, 6.5))
    for kind, (name, members) in enumerate(_groups(released)):
        colour, marker = _STYLES[kind] if kind < len(_STYLES) else _OTHERS
        for later in (False, True):
            chosen = np.isin(labels, members) & (late == later)
            if chosen.any():
                axes.plot(
                    places[chosen, 0], places[chosen, 1], linestyle="", marker=marker, markersize=size,
                    markeredgecolor=colour, markerfacecolor=colour if later else "white", markeredgewidth=1.1,
                    label=_query_name(name, story, later), gid=f"asked-{kind}-{'late' if later else 'early'}",
                )  # fmt: skip
    silent = labels < 0
    if silent.any():
        axes.plot(
            places[silent, 0], places[silent, 1], linestyle="", marker="x", markersize=size, color=INK,
            markeredgewidth=1.2, label="no answer", gid="abstained",
        )  # fmt: skip


def _query_name(name: str, story: QueryStory, later: bool) -> str:
    if len(story.rounds) < 2:
        return name
    return f"{name}, {_rounds_text(story, later)}"


def _rounds_text(story: QueryStory, later: bool) -> str:
    """Return the numbers of the earlier or the later rounds, from 1, as words."""
    count = len(story.rounds)
    first, last = (count // 2 + 1, count) if later else (1, count // 2)
    return f"round {first}" if first == last else f"rounds {first} to {last}"


def _is_late(story: QueryStory) -> NDArray[np.bool_]:
    """Return, for each query, whether its round is in the second half; all are where there is one round only."""
    late: NDArray[np.bool_] = story.round_of >= len(story.rounds) // 2
    return late


def _groups(released: ReleasedLabels) -> list[tuple[str, Sequence[int]]]:
    """Return classes with a style of their own, and all others together; the frequent ones come first."""
    room = len(_STYLES)
    if released.n_classes <= room:
        return [(short_name(value), [index]) for index, value in enumerate(released.classes)]
    counts = np.bincount(released.labels[released.answered], minlength=released.n_classes)
    order = np.argsort(-counts, kind="stable")
    named: list[tuple[str, Sequence[int]]] = [
        (short_name(released.classes[index]), [int(index)]) for index in order[:room]
    ]
    return [*named, (f"{released.n_classes - room} other classes", order[room:].tolist())]


def _legend(axes: Any) -> None:
    """Put the legend under the axes, where it can hide nothing."""
    handles, names = axes.get_legend_handles_labels()
    if handles:
        axes.figure.legend(
            handles, names, loc="outside lower left", ncols=2, frameon=False, fontsize=9, handletextpad=0.3,
            columnspacing=1.2, borderaxespad=0.2,
        )  # fmt: skip


def _legend_lines(story: QueryStory, released: ReleasedLabels) -> int:
    late = _is_late(story)
    kinds = sum(
        bool((np.isin(released.labels, members) & (late == later)).any())
        for _, members in _groups(released)
        for later in (False, True)
    )
    kinds += bool((~released.answered).any()) + 1 + (story.region is not None and bool(story.region.any()))
    return -(-kinds // 2)


def draw_learning_curve(story: QueryStory) -> Picture | None:
    """Draw agreement with the final student on the public pool against queries; None where no round has a student.

    It is computed from public points and released labels, and is no accuracy.

    Parameters
    ----------
    story : QueryStory
    """
    totals = np.cumsum([len(entry["asked"]) for entry in story.rounds])
    known = [(int(x), 100 * entry["agreement"]) for x, entry in zip(totals, story.rounds, strict=True)
             if entry["agreement"] is not None]  # fmt: skip
    if not known:
        return None
    places, shares = np.array(known).T

    def paint(axes: Any) -> None:
        axes.plot(places, shares, color=BLUE, linewidth=1.4)
        axes.plot(places, shares, linestyle="", marker="o", markersize=5.5, color=BLUE, gid="rounds", clip_on=False)
        axes.set_xlim(0, 1.04 * float(totals[-1]))
        axes.set_ylim(min(90.0, 10 * np.floor(float(shares.min()) / 10)), 100)
        axes.set_xlabel("queries released")
        axes.set_ylabel("agreement with the\nfinal student (% of the pool)")
        whole_numbers(axes.xaxis)
        grid(axes, "both")

    return Picture("curve", 2.9, paint)


def space_segments(story: QueryStory) -> list[tuple[float, float]]:
    """Return the segments of a version space on the line, an open end as infinity; none where the story has none."""
    space = story.explanation.get("version_space")
    listed = space.get("segments") if isinstance(space, dict) and story.is_line else None
    if not isinstance(listed, list):
        return []
    segments = []
    for pair in listed:
        if not (isinstance(pair, list) and len(pair) == 2 and all(_is_end(end) for end in pair)):
            return []
        low, high = pair
        segments.append((-np.inf if low is None else float(low), np.inf if high is None else float(high)))
    return segments


def _is_end(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


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
    sizes = _region_sizes(story)
    return None if sizes is None else _draw_region_sizes(*sizes)


def _draw_segments(story: QueryStory, released: ReleasedLabels, segments: list[tuple[float, float]]) -> Picture:
    values = story.positions[:, 0]
    reach = 0.04 * (float(np.ptp(values)) or 1.0)
    left, right = float(values.min()) - reach, float(values.max()) + reach
    asked = story.positions[np.searchsorted(story.rows, story.asked), 0]
    rows = [name for name, members in _groups(released)]

    def paint(axes: Any) -> None:
        # One row of marks for each class, from below: pool, segments, then the answers.
        pool = thinned(np.argsort(values), _MOST_BACKGROUND)
        axes.plot(values[pool], np.zeros(len(pool)), linestyle="", marker="|", markersize=8, color=GREY,
                  markeredgewidth=0.5, gid="pool")  # fmt: skip
        for low, high in segments:
            low, high = max(low, left), min(high, right)
            axes.axvspan(low, high, color="#F3E3B5", linewidth=0, zorder=0)
            # A point is a segment too; the ends keep it visible at any width.
            axes.plot([low, high], [1, 1], color=INK, linewidth=5, solid_capstyle="butt", marker="|", markersize=11,
                      markeredgewidth=1.6, gid="segment")  # fmt: skip
        for kind, (_, members) in enumerate(_groups(released)):
            colour, marker = _STYLES[kind] if kind < len(_STYLES) else _OTHERS
            chosen = thinned(np.flatnonzero(np.isin(released.labels, members)), _MOST_ASKED // 2)
            axes.plot(asked[chosen], np.full(len(chosen), 2 + kind), linestyle="", marker=marker, markersize=5,
                      color=colour, fillstyle="none", gid=f"label-{kind}")  # fmt: skip
        axes.set_yticks(range(2 + len(rows)), ["public pool", "still possible", *(f"asked: {row}" for row in rows)])
        axes.set_ylim(-0.6, 1.6 + len(rows))
        axes.set_xlim(left, right)
        axes.set_xlabel(story.axes[0])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)

    return Picture("space", 1.2 + 0.38 * (2 + len(rows)), paint)


def _region_sizes(story: QueryStory) -> tuple[FloatArray, FloatArray] | None:
    """Return points seen and the size of the region of disagreement, in percent of the pool, after each update."""
    updates = story.explanation.get("updates")
    if not isinstance(updates, list) or not all(isinstance(entry, dict) for entry in updates):
        return None
    pairs = [(entry.get("j"), entry.get("region")) for entry in updates]
    if not pairs or any(not (_is_end(value) and value is not None) for pair in pairs for value in pair):
        return None
    seen, sizes = np.array(pairs, dtype=np.float64).T
    if not ((sizes >= 0).all() and (seen >= 0).all()):
        return None
    return seen, 100 * sizes / (1 if sizes.max() <= 1 else story.n_points)


def _draw_region_sizes(seen: FloatArray, shares: FloatArray) -> Picture:
    def paint(axes: Any) -> None:
        axes.plot(seen, shares, color=ORANGE, linewidth=1.4, drawstyle="steps-post")
        axes.plot(seen, shares, linestyle="", marker="s", markersize=5, color=ORANGE, gid="updates", clip_on=False)
        axes.set_xlim(0, 1.04 * max(1.0, float(seen.max())))
        axes.set_ylim(0, 1.05 * max(float(shares.max()), 1e-9))
        axes.set_xlabel("public points seen, asked or not")
        axes.set_ylabel("region of disagreement\n(% of the pool)")
        whole_numbers(axes.xaxis)
        grid(axes, "both")

    return Picture("space", 2.9, paint)
