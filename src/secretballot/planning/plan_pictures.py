"""The picture of a plan: accuracy by epsilon, drawn from public numbers and stand-in data alone."""

from collections.abc import Sequence
from typing import Any

from secretballot.planning.plan_model import Estimate, Plan
from secretballot.report.pictures import BLUE, GREY, INK, ORANGE, Picture, grid
from secretballot.report.wording import number_text


def plan_picture(plan: Plan) -> Picture:
    """Return lines with their ranges against epsilon, what has to be beaten, and this plan.

    Parameters
    ----------
    plan : Plan
    """
    votes = [(epsilon, one) for epsilon, one in plan.frontier if one is not None]
    moments = [] if plan.moments is None else plan.moments.frontier

    def paint(axes: Any) -> None:
        _draw_with_ranges(axes, votes, BLUE, "student of votes")
        _draw_with_ranges(axes, moments, GREY, "student of moments")
        look: dict[str, Any] = {"color": INK, "linewidth": 1.2, "linestyle": "--"}
        axes.axhline(100 * plan.constant_accuracy, label="most frequent class alone", **look)
        here = [plan.task.epsilon], [100 * plan.student_accuracy.value]
        look = {"facecolors": "none", "edgecolors": ORANGE, "linewidths": 2.0}
        axes.scatter(*here, 144, label="this plan", zorder=5, **look)
        axes.set(xscale="log", xlabel="epsilon of the release (nats)", ylabel="on new points (%)")
        ticks = [epsilon for epsilon, _ in plan.frontier or moments]
        axes.set_xticks(ticks, [number_text(epsilon) for epsilon in ticks])
        axes.minorticks_off()
        axes.margins(0.08)
        axes.set_ylim(top=min(100.0, axes.get_ylim()[1]))
        grid(axes, "both")
        # above the picture, where it covers nothing
        look = {"handletextpad": 0.5, "columnspacing": 1.4, "fontsize": 9, "frameon": False}
        axes.figure.legend(loc="outside upper left", ncols=2, **look)

    return Picture("frontier", 3.6, paint)


def _draw_with_ranges(
    axes: Any, line: Sequence[tuple[float, Estimate]], colour: str, name: str
) -> None:
    """Draw values as a line with marks, each with a bar over its range."""
    if not line:
        return
    values = [100 * one.value for _, one in line]
    ranges = [[100 * (one.value - one.low), 100 * (one.high - one.value)] for _, one in line]
    look = {"linewidth": 1.4, "marker": "o", "markersize": 5, "elinewidth": 1.1, "capsize": 3}
    yerr = [*zip(*ranges, strict=True)]
    epsilons = [epsilon for epsilon, _ in line]
    # a mark at 100 %, where the axis ends, stays whole
    axes.errorbar(epsilons, values, yerr, color=colour, label=name, clip_on=False, **look)
