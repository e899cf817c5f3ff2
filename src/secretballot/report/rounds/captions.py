"""What the pictures of a release in rounds show, and what they do not, in sentences."""

import math

import numpy as np

from secretballot.released import ReleasedLabels
from secretballot.report.rounds.map import MOST_ASKED, MOST_BACKGROUND
from secretballot.report.rounds.pictures import Segment, line_view, region_sizes, space_segments
from secretballot.report.rounds.story import QueryStory
from secretballot.report.wording import count_text, number_text, shown

__all__ = ["QUERY_TITLES", "query_captions"]

QUERY_TITLES = {
    "map": "The public pool",
    "curve": "What further labels changed",
    "space": "What is still possible",
    "region": "The region of disagreement",
}

_MOST_SEGMENTS = 3


def query_captions(story: QueryStory, released: ReleasedLabels) -> dict[str, str]:
    """Return a caption for every picture that a story may have, by name.

    Parameters
    ----------
    story : QueryStory
    released : ReleasedLabels
        The release that the story tells of.
    """
    return {
        "map": _map_caption(story, released),
        "curve": _curve_caption(story),
        "space": _space_caption(story),
        "region": _region_caption(story),
    }


def _map_caption(story: QueryStory, released: ReleasedLabels) -> str:
    asked, silent = len(story.asked), int((~released.answered).sum())
    words = [
        f"{count_text(asked, 'point')} of {story.n_points:,} in the public pool"
        f" {'was' if asked == 1 else 'were'} asked, chosen by the strategy"
        f" {shown(story.strategy['name'])}; {silent:,} got no answer. Colour and shape tell the"
        " released label, which may be wrong."
    ]
    if story.projected == "principal components":
        words.append(
            "The points have more than two features: shown are the first two principal components"
            " of the standardised ones, cut at five standard deviations. Points that lie together"
            " here may be far apart."
        )
    elif story.is_line:
        words.append("The points have one feature; how high they lie means nothing.")
    if story.region is not None and story.region.any():
        known = len(story.rows) == story.n_points
        points = f"the {count_text(int(story.region.sum()), 'point')}" if known else "points"
        words.append(f"Shaded: {points} on which hypotheses that are still possible disagree.")
    # a thinned picture must say so, or a reader would count its points
    others = len(story.rows) - asked
    if asked > MOST_ASKED or others > MOST_BACKGROUND or len(story.rows) < story.n_points:
        some = f"{min(asked, MOST_ASKED):,} of those asked and " if asked > MOST_ASKED else ""
        words.append(
            f"To stay legible, {some}{min(others, MOST_BACKGROUND):,} of the others are drawn."
        )
    return " ".join(words)


def _curve_caption(story: QueryStory) -> str:
    return (
        "Each dot, after a round: on which share of the public pool the student of that round says"
        " what the final one says, which agrees with itself. Of many rounds some have no dot, nor"
        " have those from which nothing could be learnt yet. It was counted on the whole pool, from"
        " public points and released labels, and cost no budget. It shows when learning settled; it"
        " is no accuracy."
    )


def _space_caption(story: QueryStory) -> str:
    segments = space_segments(story)
    if not segments:
        return ""
    listed = ", ".join(_segment_text(segment) for segment in segments[:_MOST_SEGMENTS])
    more = f" and {len(segments) - _MOST_SEGMENTS:,} more" if len(segments) > _MOST_SEGMENTS else ""
    words = (
        f"What the released labels leave possible: {listed}{more}. Ticks: the public pool, thinned."
    )
    asked = story.positions[np.searchsorted(story.rows, story.asked), 0]
    left, right = line_view(story, segments)
    outside = int(((asked < left) | (asked > right)).sum())
    return (
        f"{words} Enlarged: {count_text(outside, 'asked point')} further away not shown."
        if outside
        else words
    )


def _region_caption(story: QueryStory) -> str:
    _, sizes = region_sizes(story)
    sampled = bool((sizes[:, 2] > sizes[:, 0]).any())
    return (
        "After each update, on which share of the public points still to come hypotheses that are"
        " still possible disagree; only there does a label tell anything."
        + (
            " Bars: 95 % intervals, where only some of the points were looked at."
            if sampled
            else ""
        )
    )


def _segment_text(segment: Segment) -> str:
    low, high = number_text(segment.low), number_text(segment.high)
    if not math.isfinite(segment.low):
        words = f"up to {high}" if math.isfinite(segment.high) else "everything"
    else:
        words = f"{low} to {high}" if math.isfinite(segment.high) else f"from {low} on"
    if segment.pieces > 1:
        words = f"{words} (in {segment.pieces:,} pieces)"
    return f"{segment.direction} {words}" if segment.direction.endswith(" end") else words
