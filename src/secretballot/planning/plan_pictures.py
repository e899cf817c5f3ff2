"""The picture of a plan: accuracy by epsilon, drawn from public numbers and stand-in data alone."""

from collections.abc import Sequence
from typing import Any

from secretballot.planning.plan_model import Estimate, Plan
from secretballot.report.extras import require_extra
from secretballot.report.pictures import BLUE, GREY, INK, ORANGE, Picture, grid
from secretballot.report.wording import number_text

_LEAST_SPAN = 8.0  # factor between the ends of the axis of epsilon, so that there are ticks on it
Line = Sequence[tuple[float, Estimate]]


def draw_plan_pictures(plan: Plan) -> dict[str, Picture]:
    """Return the picture of a plan by its name, ``frontier``: lines with their ranges against
    epsilon, what has to be beaten, and this plan.

    Parameters
    ----------
    plan : Plan
    """
    useful = [(epsilon, one) for epsilon, one in plan.frontier if one is not None]
    series: list[tuple[str, str, Line]] = [("student of votes", BLUE, useful)] if useful else []
    if plan.moments is not None:
        series.append(("student of moments", GREY, plan.moments.frontier))
    drawn = [point for _, _, line in series for point in line]
    epsilons = [plan.task.epsilon, *(epsilon for epsilon, _ in plan.frontier)]
    epsilons += [epsilon for epsilon, _ in drawn]
    ends = [end for _, one in drawn for end in (one.low, one.high)]
    constant, here = plan.constant_accuracy, plan.student_accuracy.value

    def paint(axes: Any) -> None:
        for name, colour, line in series:
            _draw_with_ranges(axes, line, colour, name)
        look: dict[str, Any] = {"color": INK, "linewidth": 1.2, "linestyle": "--"}
        axes.axhline(100 * constant, label="most frequent class alone", **look)
        look = {"facecolors": "none", "edgecolors": ORANGE, "linewidths": 2.0}
        axes.scatter([plan.task.epsilon], [100 * here], 144, label="this plan", zorder=5, **look)
        _scale_axes(axes, epsilons, [constant, here, *ends])
        axes.set_xlabel("epsilon of the release (nats)")
        axes.set_ylabel("on new points (%)")
        grid(axes, "both")
        # above the picture, where it covers nothing
        look = {"handletextpad": 0.5, "columnspacing": 1.4, "fontsize": 9, "frameon": False}
        axes.figure.legend(loc="outside upper left", ncols=2, **look)

    return {"frontier": Picture("frontier", 3.6, paint)}


def _draw_with_ranges(axes: Any, line: Line, colour: str, name: str) -> None:
    """Draw values as a line with marks, each with a bar over its range."""
    values = [100 * one.value for _, one in line]
    below = [100 * (one.value - one.low) for _, one in line]
    above = [100 * (one.high - one.value) for _, one in line]
    look = {"linewidth": 1.4, "marker": "o", "markersize": 5, "elinewidth": 1.1, "capsize": 3}
    epsilons = [epsilon for epsilon, _ in line]
    drawn, caps, bars = axes.errorbar(
        epsilons, values, yerr=[below, above], color=colour, label=name, **look
    )
    # a mark at 100 %, where the axis ends, stays whole
    for part in (drawn, *caps, *bars):
        part.set_clip_on(False)


def _scale_axes(axes: Any, epsilons: Sequence[float], shares: Sequence[float]) -> None:
    """Make epsilon logarithmic, with ticks at 1, 2, 5 times powers of ten, and let the axis of
    percents hold all shares with some space and end at 0 and 100."""
    ticker = require_extra("matplotlib.ticker", "report")
    margin = max(1.35, (_LEAST_SPAN * min(epsilons) / max(epsilons)) ** 0.5)
    low, high = min(epsilons) / margin, max(epsilons) * margin
    axes.set(xscale="log", xlim=(low, high))
    axes.xaxis.set_major_locator(ticker.LogLocator(10, (1.0,) if high / low > 300 else (1, 2, 5)))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: number_text(value)))
    least, most = 100 * min(shares), 100 * max(shares)
    margin = max(2.0, 0.08 * (most - least))
    axes.set_ylim(max(0.0, least - margin), min(100.0, most + margin))
    axes.yaxis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))
