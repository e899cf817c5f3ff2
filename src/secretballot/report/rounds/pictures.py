"""Pictures of a release in rounds: the map of the points asked, and what the student learnt.

Drawn from public points and released labels alone. On the map the class is shown by colour and by
shape, the round by a hollow or a filled mark, an abstention by a cross.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot.released import ReleasedLabels
from secretballot.report.pictures.style import (
    BLUE,
    INK,
    ORANGE,
    Picture,
    grid,
    integer_ticks,
    short_name,
)
from secretballot.report.rounds.story import QueryStory
from secretballot.report.wording import shown

QUERY_TITLES = {"map": "The public pool", "curve": "What further labels changed"}
MOST_BACKGROUND = 1500  # points; more cannot be distinguished, and each costs fifty bytes
MOST_ASKED = 600  # queries; more would hide each other
_STYLES = (
    (BLUE, "o"),
    (ORANGE, "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
    ("#56B4E9", "P"),
)
_LONGEST_AXIS = 36
_OTHERS = (INK, "*")
_BACKGROUND = "#B9BFC8"


@dataclass(frozen=True)
class ClassMarks:
    """How a class, or all the rare ones together, is drawn: name, labels, colour and shape."""

    name: str
    labels: Sequence[int]
    colour: str
    marker: str


@dataclass(frozen=True)
class _Layer:
    """Marks of one look, with their line in the legend."""

    gid: str
    name: str
    places: FloatArray
    style: dict[str, Any]


def thinned(places: IntArray, most: int) -> IntArray:
    """Return at most so many of `places`, evenly spread over their order.

    Parameters
    ----------
    places : int array of shape (k,)
    most : int
    """
    if len(places) <= most:
        return places
    return places[np.arange(most) * len(places) // most]


def class_marks(released: ReleasedLabels) -> list[ClassMarks]:
    """Return how classes are drawn; of many, the six most frequent have a look of their own."""
    available, classes = len(_STYLES), released.classes
    if released.n_classes <= available:
        named = list(range(released.n_classes))
    else:
        counts = np.bincount(released.labels[released.answered], minlength=released.n_classes)
        named = np.argsort(-counts, kind="stable")[:available].tolist()
    marks = [
        ClassMarks(short_name(classes[label]), [label], *_STYLES[place])
        for place, label in enumerate(named)
    ]
    rest = sorted(set(range(released.n_classes)) - set(named))
    return [*marks, ClassMarks(f"{len(rest)} other classes", rest, *_OTHERS)] if rest else marks


def axis_name(name: str) -> str:
    """Return what a coordinate is, as a string that fits along an axis."""
    text = shown(name)
    return text if len(text) <= _LONGEST_AXIS else text[: _LONGEST_AXIS - 1] + "…"


def draw_query_map(story: QueryStory, released: ReleasedLabels) -> Picture:
    """Draw the public pool with the queries, by released label and by early and late rounds.

    Parameters
    ----------
    story : QueryStory
    released : ReleasedLabels
        The release of which this is the history.
    """
    layers = [
        layer
        for layer in (_pool_layer(story), *_query_layers(story, released))
        if len(layer.places)
    ]
    legend = _legend_rows(layers)

    def paint(axes: Any) -> None:
        for layer in layers:
            axes.plot(*layer.places.T, linestyle="", gid=layer.gid, label=layer.name, **layer.style)
        axes.set_xlabel(axis_name(story.pool.axes[0]))
        axes.set_ylabel(
            "spread out to be seen" if story.pool.is_line else axis_name(story.pool.axes[1])
        )
        if story.pool.is_line:
            axes.set_yticks([])
            axes.set_ylim(-0.05, 1.05)
        axes.tick_params(length=3)
        _add_legend(axes, legend)

    return Picture("map", (2.6 if story.pool.is_line else 4.1) + 0.19 * len(legend), paint)


def _pool_layer(story: QueryStory) -> _Layer:
    """Return the points that were not asked."""
    others = np.flatnonzero(~np.isin(story.pool.rows, story.asked))
    look = {"marker": "o", "markersize": 2.2, "color": _BACKGROUND, "markeredgewidth": 0}
    return _Layer("pool", "not asked", story.pool.positions[thinned(others, MOST_BACKGROUND)], look)


def _query_layers(story: QueryStory, released: ReleasedLabels) -> list[_Layer]:
    shown = thinned(np.arange(len(story.asked)), MOST_ASKED)
    places = story.pool.positions[np.searchsorted(story.pool.rows, story.asked[shown])]
    labels = released.labels[shown]
    late = (story.round_of >= len(story.rounds) // 2)[shown]  # of one round only, all
    # marks cover about the same area however many there are
    size = float(np.clip(70 / np.sqrt(max(1, len(shown))), 3.4, 6.5))
    layers = []
    for number, marks in enumerate(class_marks(released)):
        look = {
            "marker": marks.marker,
            "markersize": size,
            "markeredgecolor": marks.colour,
            "markeredgewidth": 1.1,
        }
        for later, fill in ((False, "white"), (True, marks.colour)):
            chosen = np.isin(labels, marks.labels) & (late == later)
            name = (
                marks.name
                if len(story.rounds) < 2
                else f"{marks.name}, {_rounds_words(story, later)}"
            )
            gid = f"asked-{number}-{'late' if later else 'early'}"
            layers.append(_Layer(gid, name, places[chosen], look | {"markerfacecolor": fill}))
    cross = {"marker": "x", "markersize": size, "color": INK, "markeredgewidth": 1.2}
    return [*layers, _Layer("abstained", "no answer", places[labels < 0], cross)]


def _rounds_words(story: QueryStory, later: bool) -> str:
    """Return the numbers of the earlier or the later rounds, from 1, as words."""
    count = len(story.rounds)
    first, last = (count // 2 + 1, count) if later else (1, count // 2)
    return f"round {first}" if first == last else f"rounds {first} to {last}"


def _legend_rows(layers: Sequence[_Layer]) -> list[tuple[str, str]]:
    """Return pairs of gids for the lines of the legend: a class on one line, early, then late."""
    gids = [layer.gid for layer in layers]
    kinds = dict.fromkeys(gid.rsplit("-", 1)[0] for gid in gids if gid.startswith("asked-"))
    rows = [(f"{kind}-early", f"{kind}-late") for kind in kinds]
    rest: list[str] = [gid for gid in ("pool", "abstained") if gid in gids]
    if not any(early in gids for early, _ in rows):
        rest, rows = [late for _, late in rows] + rest, []
    return rows + [
        (rest[place], "".join(rest[place + 1 : place + 2])) for place in range(0, len(rest), 2)
    ]


def _add_legend(axes: Any, rows: Sequence[tuple[str, str]]) -> None:
    """Put the legend under the axes, where it can hide nothing."""
    # matplotlib fills columns from above, so pairs are handed over column by column, with an empty
    # entry where a line has no second one
    found = {line.get_gid(): line for line in axes.get_lines()}
    (gap,) = axes.plot([], [], linestyle="", label=" ")
    handles = [found.get(gid, gap) for column in zip(*rows, strict=True) for gid in column]
    if handles:
        axes.figure.legend(
            handles,
            [handle.get_label() for handle in handles],
            loc="outside lower left",
            ncols=2,
            frameon=False,
            fontsize=9,
            handletextpad=0.3,
            columnspacing=1.2,
            borderaxespad=0.2,
        )


def draw_query_pictures(story: QueryStory, released: ReleasedLabels) -> dict[str, Picture]:
    """Return the pictures of a story by name: ``map``, and ``curve`` where there is one.

    Parameters
    ----------
    story : QueryStory
    released : ReleasedLabels
        The release of which this is the history.
    """
    curve = draw_learning_curve(story)
    return {"map": draw_query_map(story, released)} | ({} if curve is None else {"curve": curve})


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
