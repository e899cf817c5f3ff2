"""The pictures of `appendix_f.py`: Figures 2 and 3 of Liu et al. 2021 on UCI Adult, and
agreement by margin."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.stats import binomtest

from appendix_f_study import BINS, CUMULATED, Findings, high_margin_shares
from secretballot.report.pictures.style import BLUE, INK, ORANGE, Picture, grid

GREEN = "#009E73"  # of Okabe and Ito, as the others
LEVELS = np.linspace(0, 0.5, 101)
SIGNED = np.linspace(-0.5, 0.5, 41)  # edges of the histogram
NOTE = "UCI Adult, public data: no privacy noise"


def curve(axes: Any, x: np.ndarray, runs: np.ndarray, colour: str, dash: str, label: str) -> None:
    """Draw the mean of the runs in percent, with a band from the least to the largest."""
    axes.plot(x, 100 * runs.mean(axis=0), color=colour, linestyle=dash, linewidth=1.6, label=label)
    axes.fill_between(
        x, 100 * runs.min(axis=0), 100 * runs.max(axis=0), color=colour, alpha=0.2, linewidth=0
    )


def note(axes: Any, text: str = NOTE) -> None:
    axes.set_title(text, fontsize=8.5, color="#5B616A", loc="left")


def margins_picture(findings: list[Findings]) -> Picture:
    """Figure 2 as a curve: the share of queries with a margin up to Delta."""

    def paint(axes: Any) -> None:
        realised, expected = (
            np.array([high_margin_shares(values, LEVELS) for values in some])
            for some in (
                [found.margins for found in findings],
                [found.expected for found in findings],
            )
        )
        against = np.array(
            [
                np.searchsorted(np.sort(f.for_star), LEVELS, side="right") / len(f.for_star)
                for f in findings
            ]
        )
        curve(axes, LEVELS, realised, BLUE, "-", "realised: 250 teachers' votes")
        curve(axes, LEVELS, expected, ORANGE, "--", "expected: 4 other partitions")
        curve(axes, LEVELS, against, GREEN, ":", "margin for h* (negative: against)")
        axes.set(
            xlabel="margin Delta (share of teachers above one half)",
            ylabel="queries with margin up to Delta (%)",
        )
        axes.set(xlim=(0, 0.5), ylim=(0, None))
        axes.legend(frameon=False, loc="upper left")
        grid(axes, "both")
        note(axes)

    return Picture("appendix-f-figure-2", 3.6, paint)


def histogram_picture(findings: list[Findings]) -> Picture:
    """Figure 2 as a histogram: how many queries have which margin for h*; the negative ones are
    votes against it."""

    def paint(axes: Any) -> None:
        shares = 100 * np.array(
            [np.histogram(f.for_star, SIGNED)[0] / len(f.for_star) for f in findings]
        )
        equal = 100 * np.mean([f.equal.mean() for f in findings])
        zoom = axes.inset_axes((0.11, 0.3, 0.52, 0.36))
        for panel in (axes, zoom):
            bars(panel, shares)
            grid(panel, "y")
        axes.set(
            xlabel="margin for h* (share of teachers above one half)",
            ylabel="queries (%)",
            xlim=(-0.5, 0.5),
        )
        names = (f"vote equals h*: {equal:.1f} %", f"vote is against h*: {100 - equal:.1f} %")
        axes.legend(axes.containers[:2], names, frameon=False, loc="upper left")
        zoom.set(xlim=(-0.35, 0.2), ylim=(0, 2.2))
        zoom.tick_params(labelsize=8.5)
        zoom.set_title("the same, enlarged", fontsize=8.5)
        note(axes)

    return Picture("appendix-f-figure-2-histogram", 3.6, paint)


def bars(axes: Any, shares: np.ndarray) -> None:
    """Draw the mean over the seeds as bars, from the least to the largest as a line."""
    mean, low, high = shares.mean(axis=0), shares.min(axis=0), shares.max(axis=0)
    middles, width = (SIGNED[:-1] + SIGNED[1:]) / 2, 0.86 * (SIGNED[1] - SIGNED[0])
    right = middles > 0
    axes.bar(middles[right], mean[right], width, facecolor=BLUE, edgecolor=BLUE, linewidth=0.8)
    axes.bar(
        middles[~right],
        mean[~right],
        width,
        facecolor="white",
        edgecolor=ORANGE,
        hatch="//////",
        linewidth=0.8,
    )
    seen = high > 0
    ends = [(mean - low)[seen], (high - mean)[seen]]
    axes.errorbar(middles[seen], mean[seen], ends, fmt="none", ecolor=INK, elinewidth=0.9)


def sums_picture(findings: list[Findings]) -> Picture:
    """Figure 3: sums of both margins over the first queries, and the same with one of them
    shuffled."""

    def paint(axes: Any) -> None:
        for found in findings:
            summed = np.cumsum(found.margins[:CUMULATED])
            shuffled = np.random.default_rng(0).permutation(found.for_star)[:CUMULATED]
            (by_chance,) = axes.plot(
                summed, np.cumsum(shuffled), color=ORANGE, linewidth=0.9, linestyle="--"
            )
            (as_asked,) = axes.plot(
                summed, np.cumsum(found.for_star[:CUMULATED]), color=BLUE, linewidth=1
            )
        diagonal = axes.axline((0, 0), slope=1, color=INK, linewidth=0.8, linestyle=":")
        axes.legend(
            [as_asked, by_chance, diagonal],
            ["margins of the same queries", "one margin shuffled", "always with h*"],
            frameon=False,
            loc="upper left",
        )
        axes.set(
            xlabel=f"sum of margins Delta, up to {CUMULATED} queries",
            ylabel="sum of margins for h*",
        )
        axes.set(xlim=(0, None), ylim=(0, None))
        grid(axes, "both")
        note(axes, f"{NOTE}; a line for each seed")

    return Picture("appendix-f-figure-3", 3.8, paint)


def points_picture(findings: list[Findings]) -> Picture:
    """Figure 3 query by query: every query of the first seed, on one of two lines."""

    def paint(axes: Any) -> None:
        found = findings[0]
        # moved a little up or down: many queries have the same number of votes
        places = found.for_star + np.random.default_rng(0).uniform(
            -0.015, 0.015, len(found.margins)
        )
        for some, colour, marker, label in (
            (found.equal, BLUE, "o", "equals"),
            (~found.equal, ORANGE, "s", "is against"),
        ):
            text = f"vote {label} h*: {np.sum(some):,} of {len(some):,} queries"
            look = {"markersize": 3, "alpha": 0.45, "markeredgewidth": 0, "linestyle": "none"}
            axes.plot(
                found.margins[some], places[some], marker=marker, color=colour, label=text, **look
            )
        axes.set(
            xlabel="margin Delta (share of teachers above one half)",
            ylabel="margin for h*",
            xlim=(0, 0.51),
        )
        axes.legend(frameon=False, loc="upper left", markerscale=1.8)
        grid(axes, "both")
        note(axes, f"{NOTE}; one seed")

    return Picture("appendix-f-figure-3-points", 3.8, paint)


def calibration(
    findings: list[Findings], n_teachers: int
) -> Iterator[tuple[float, float, float, float]]:
    """Yield middle of a bin, share of points where the vote is against h*, and the ends of Wilson's
    95 % interval.

    The share is that of all seeds; the interval is as wide as one seed's, since the rows of seeds
    overlap.
    """
    points, equal = np.sum([found.by_margin[n_teachers] for found in findings], axis=0)
    for place in np.flatnonzero(points):
        one_seed = max(1, round(points[place] / len(findings)))
        share = 1 - equal[place] / points[place]
        ends = binomtest(round(share * one_seed), one_seed).proportion_ci(method="wilson")
        yield (
            (BINS[place] + BINS[place + 1]) / 2,
            share,
            min(ends.low, share),
            max(ends.high, share),
        )


def calibration_picture(findings: list[Findings]) -> Picture:
    """How often the vote is against h*, by margin, for several numbers of teachers of the same
    private rows."""

    def paint(axes: Any) -> None:
        looks = zip((GREEN, BLUE, ORANGE), "^os", ("--", "-", ":"), (-0.006, 0, 0.006), strict=True)
        for n_teachers, (colour, marker, dash, aside) in zip(
            findings[0].by_margin, looks, strict=False
        ):
            middle, share, low, high = 100 * np.array(list(calibration(findings, n_teachers))).T
            place, none = middle / 100 + aside, share == 0
            look = {"color": colour, "elinewidth": 0.9, "capsize": 2, "markersize": 4.5}
            share, ends = np.where(none, np.nan, share), (share - low, high - share)
            axes.errorbar(
                place,
                share,
                ends,
                marker=marker,
                linestyle=dash,
                label=f"K = {n_teachers:,}",
                **look,
            )
            axes.errorbar(
                place[none], high[none], 0.4 * high[none], uplims=True, linestyle="none", **look
            )
        axes.set(yscale="log", ylim=(0.001, 60), xlim=(0, 0.5))
        axes.set(
            xlabel="margin Delta (share of teachers above one half)",
            ylabel="vote differs from h* (% of points)",
        )
        axes.legend(
            frameon=False, loc="lower left", title="teachers of the same rows", alignment="left"
        )
        plain_percents(axes.yaxis)
        grid(axes, "both")
        note(axes)

    return Picture("appendix-f-agreement", 3.8, paint)


def plain_percents(axis: Any) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set(major_locator=FixedLocator([0.01, 0.1, 1, 10, 50]), minor_locator=NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


PICTURES: tuple[Callable[[list[Findings]], Picture], ...] = (
    margins_picture,
    histogram_picture,
    sums_picture,
    points_picture,
    calibration_picture,
)
