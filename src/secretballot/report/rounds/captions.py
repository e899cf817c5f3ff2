"""What the pictures of a release in rounds show, and what they do not, in sentences."""

from secretballot.released import ReleasedLabels
from secretballot.report.rounds.map import MOST_ASKED, MOST_BACKGROUND
from secretballot.report.rounds.story import QueryStory
from secretballot.report.wording import count_text, shown

QUERY_TITLES = {
    "map": "The public pool",
    "curve": "What further labels changed",
}


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
