"""Pictures of a release in rounds: points asked, and what the student learnt.

Drawn from public points and released labels alone.
"""

from typing import Any

import numpy as np

from secretballot.released import ReleasedLabels
from secretballot.report.pictures.style import BLUE, Picture, grid, integer_ticks
from secretballot.report.rounds.map import draw_query_map
from secretballot.report.rounds.story import QueryStory

QUERY_TITLES = {"map": "The public pool", "curve": "What further labels changed"}


def draw_query_pictures(story: QueryStory, released: ReleasedLabels) -> dict[str, Picture]:
    """Return the pictures of a story by name: ``map``, and ``curve`` where there is one.

    Parameters
    ----------
    story : QueryStory
    released : ReleasedLabels
        The release that the story tells of.
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
