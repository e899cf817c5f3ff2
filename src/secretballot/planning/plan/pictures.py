"""The picture of a plan: accuracy by epsilon, drawn from public numbers and stand-in data alone."""

from collections.abc import Sequence
from typing import Any

from secretballot.planning.plan.estimates import Estimate
from secretballot.planning.plan.model import Plan
from secretballot.report.extras import require_extra
from secretballot.report.pictures import BLUE, GREY, INK, ORANGE, Picture, grid
from secretballot.report.wording import number_text

_LEAST_SPAN = 8.0  # factor between the ends of the axis of epsilon, so that there are ticks on it
_DASHED = (0, (5, 3))
Series = tuple[str, Sequence[tuple[float, Estimate]]]


def draw_plan_pictures(plan: Plan) -> dict[str, Picture]:
    """Return the picture of a plan by its name, ``frontier``.

    Parameters
    ----------
    plan : Plan
    """
    useful = [
        (point.epsilon, point.candidate.expected.student_accuracy)
        for point in plan.frontier
        if point.candidate is not None
    ]
    # a mark where nothing useful can be had: a gap in the line would look like a missing run
    useless = [point.epsilon for point in plan.frontier if point.candidate is None]
    series: list[Series] = [("student of votes", useful)] if useful else []
    if plan.moments is not None:
        series.append(("student of moments", plan.moments.frontier))
    constant = ("most frequent class alone", plan.constant_accuracy)
    here = ("this plan", plan.student_accuracy.value)
    return {"frontier": _drawn(plan, series, constant, here, useless)}


def _drawn(
    plan: Plan,
    series: Sequence[Series],
    constant: tuple[str, float],
    here: tuple[str, float],
    useless: Sequence[float],
) -> Picture:
    """Draw lines with their ranges against epsilon, what has to be beaten, and this plan."""
    estimates = [estimate for _, line in series for _, estimate in line]
    epsilons = [
        plan.task.epsilon,
        *useless,
        *(epsilon for _, line in series for epsilon, _ in line),
    ]
    beaten = 100 * constant[1]

    def paint(axes: Any) -> None:
        for colour, (name, line) in zip((BLUE, GREY), series, strict=False):
            _draw_with_ranges(axes, line, colour, name)
        axes.axhline(beaten, color=INK, linewidth=1.2, linestyle=_DASHED, label=constant[0])
        if useless:
            look = {"linestyle": "", "marker": "x", "markersize": 7, "color": INK}
            level = [beaten] * len(useless)
            axes.plot(useless, level, label="nothing useful", gid="useless", **look)
        axes.plot(
            [plan.task.epsilon],
            [100 * here[1]],
            linestyle="",
            marker="o",
            markersize=12,
            markerfacecolor="none",
            markeredgecolor=ORANGE,
            markeredgewidth=2.0,
            zorder=5,
            label=here[0],
            gid="recommended",
        )
        _scale_axes(axes, epsilons, [constant[1], here[1], *_ends(estimates)])
        axes.set_xlabel("epsilon of the release (nats)")
        axes.set_ylabel("on new points (%)")
        grid(axes, "both")
        # above the picture, where it covers nothing
        look = {"handletextpad": 0.5, "columnspacing": 1.4, "fontsize": 9, "frameon": False}
        axes.figure.legend(loc="outside upper left", ncols=2, **look)

    return Picture("frontier", 3.6, paint)


def _ends(estimates: Sequence[Estimate]) -> list[float]:
    return [end for one in estimates for end in (one.low, one.high)]


def _draw_with_ranges(
    axes: Any, line: Sequence[tuple[float, Estimate]], colour: str, name: str
) -> None:
    """Draw values as a line with marks, each with a bar over its range."""
    values = [100 * one.value for _, one in line]
    below = [100 * (one.value - one.low) for _, one in line]
    above = [100 * (one.high - one.value) for _, one in line]
    drawn, caps, bars = axes.errorbar(
        [epsilon for epsilon, _ in line],
        values,
        yerr=[below, above],
        color=colour,
        linewidth=1.4,
        marker="o",
        markersize=5,
        elinewidth=1.1,
        capsize=3,
        label=name,
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
