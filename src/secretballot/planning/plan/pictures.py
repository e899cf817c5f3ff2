"""Pictures of a plan: accuracy by epsilon, the settings evaluated, accuracy by teachers.

Drawn from the plan alone, hence from public numbers and stand-in data.
"""

from collections.abc import Sequence
from typing import Any

from secretballot.planning.plan.estimates import Estimate, RareForecast
from secretballot.planning.plan.model import Candidate, Plan
from secretballot.planning.plan.text import recipe_name, student_accuracy
from secretballot.report.extras import require_extra
from secretballot.report.pictures.style import BLUE, GREY, INK, ORANGE, PALE, Picture, grid
from secretballot.report.wording import number_text

_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_STEP = 5.0  # points between the marks of recipes that belong in one place
_LEAST_SPAN = 8.0  # factor between the ends of an axis of sizes, so that there are ticks on it
_RECOMMENDED = {
    "linestyle": "",
    "marker": "o",
    "markersize": 12,
    "markerfacecolor": "none",
    "markeredgecolor": ORANGE,
    "markeredgewidth": 2.0,
    "zorder": 5,
}


def draw_plan_pictures(plan: Plan) -> dict[str, Picture]:
    """Return the pictures of a plan by name: ``frontier``, ``candidates`` and ``teachers``.

    A plan about rare classes has the first alone, and none where nothing was forecast.

    Parameters
    ----------
    plan : Plan
    """
    if plan.recommended is None:
        rare = None if plan.moments is None else plan.moments.rare
        return {} if rare is None else {"frontier": draw_rare_frontier(plan, rare)}
    return {
        "frontier": draw_frontier(plan),
        "candidates": draw_candidates(plan),
        "teachers": draw_teachers(plan),
    }


def draw_frontier(plan: Plan) -> Picture:
    """Draw the student's accuracy against epsilon with its ranges, and what has to be beaten.

    Parameters
    ----------
    plan : Plan
    """
    useful = [
        (point.epsilon, point.candidate) for point in plan.frontier if point.candidate is not None
    ]
    # a mark where nothing useful can be had: a gap in the line would look like a missing run
    useless = [point.epsilon for point in plan.frontier if point.candidate is None]
    constant = 100 * plan.constant_accuracy
    # moments that could not be forecast have no place here: the mark is that of the votes
    forecast = plan.student_accuracy or plan.votes.expected.student_accuracy
    here = 100 * forecast.value
    moments = () if plan.moments is None else plan.moments.frontier
    votes_alone = plan.method == "pate" and plan.moments is None
    name = "student, nine runs of ten" if votes_alone else "student of votes"

    mark = "this plan" if plan.student_accuracy is not None else "votes of this plan"

    def paint(axes: Any) -> None:
        _scale_axis_of_sizes(
            axes.xaxis, [plan.task.epsilon, *(point.epsilon for point in plan.frontier)]
        )
        estimates = [candidate.expected.student_accuracy for _, candidate in useful]
        _draw_with_ranges(axes, [epsilon for epsilon, _ in useful], estimates, BLUE, name)
        if moments:
            estimates = estimates + [estimate for _, estimate in moments]
            _draw_with_ranges(
                axes,
                [epsilon for epsilon, _ in moments],
                [estimate for _, estimate in moments],
                GREY,
                "student of moments",
            )
        axes.axhline(
            constant,
            color=INK,
            linewidth=1.2,
            linestyle=(0, (5, 3)),
            label="most frequent class alone",
        )
        if useless:
            axes.plot(
                useless,
                [constant] * len(useless),
                linestyle="",
                marker="x",
                markersize=7,
                color=INK,
                label="nothing useful",
                gid="useless",
            )
        axes.plot([plan.task.epsilon], [here], **_RECOMMENDED, label=mark, gid="recommended")
        _scale_percent_axis(
            axes,
            [constant, here, *(100 * end for each in estimates for end in (each.low, each.high))],
        )
        axes.set_xlabel("epsilon of the release (nats)")
        axes.set_ylabel("accuracy on new points (%)")
        grid(axes, "both")
        _add_legend(axes)

    return Picture("frontier", 3.6, paint)


def draw_rare_frontier(plan: Plan, rare: RareForecast) -> Picture:
    """Draw balanced accuracy and the recall of the rarest class against epsilon, with their ranges.

    Parameters
    ----------
    plan : Plan
    rare : RareForecast
        Of the plan.
    """
    epsilons = [epsilon for epsilon, _, _ in rare.frontier]
    balanced = [estimate for _, estimate, _ in rare.frontier]
    recalls = [estimate for _, _, estimate in rare.frontier]
    constant = 100 / plan.task.n_classes
    here = 100 * rare.balanced_accuracy.value

    def paint(axes: Any) -> None:
        _scale_axis_of_sizes(axes.xaxis, [plan.task.epsilon, *epsilons])
        _draw_with_ranges(axes, epsilons, balanced, BLUE, "balanced accuracy")
        _draw_with_ranges(axes, epsilons, recalls, GREY, "recall of the rarest class")
        axes.axhline(
            constant,
            color=INK,
            linewidth=1.2,
            linestyle=(0, (5, 3)),
            label="balanced accuracy of a constant",
        )
        axes.plot([plan.task.epsilon], [here], **_RECOMMENDED, label="this plan", gid="recommended")
        # the axis holds all ranges, the constant and this plan
        ends = [100 * end for each in (*balanced, *recalls) for end in (each.low, each.high)]
        _scale_percent_axis(axes, [constant, here, *ends])
        axes.set_xlabel("epsilon of the release (nats)")
        axes.set_ylabel("on new points (%)")
        grid(axes, "both")
        _add_legend(axes)

    return Picture("frontier", 3.6, paint)


def draw_candidates(plan: Plan) -> Picture:
    """Draw the settings that were evaluated: teachers against queries, shaded by the student.

    Every recipe has a mark. Where several belong in one place, they stand side by side; of settings
    of one recipe the best is on top.

    Parameters
    ----------
    plan : Plan
    """
    recipes = list(dict.fromkeys(recipe_name(candidate.setting) for candidate in plan.evaluated))
    shares = [100 * student_accuracy(candidate) for candidate in plan.evaluated]
    # one colour for a whole point at least, or differences of chance would look like large ones
    low, high = min(shares), max(max(shares), min(shares) + 1)
    shifts = _shifts_of_marks(plan.evaluated)

    def paint(axes: Any) -> None:
        normed = require_extra("matplotlib.colors", "report").Normalize(low, high)
        look = {
            "cmap": "Blues",
            "norm": normed,
            "s": 24,
            "edgecolors": INK,
            "linewidths": 0.5,
            "clip_on": False,
        }
        for (recipe, shift), chosen in _candidates_by_shift(plan.evaluated, shifts).items():
            number = recipes.index(recipe)
            axes.scatter(
                [candidate.setting.n_queries for candidate in chosen],
                [candidate.setting.n_teachers for candidate in chosen],
                c=[100 * student_accuracy(candidate) for candidate in chosen],
                **look,
                marker=_marker_of(number),
                gid=f"recipe-{number}",
                transform=_shifted_transform(axes, shift),
            )
        # entries of the legend by themselves: those of the scatter would show one shade of many
        for number, recipe in enumerate(recipes):
            axes.plot(
                [],
                [],
                linestyle="",
                marker=_marker_of(number),
                markersize=6,
                label=_short_recipe_name(recipe),
                markerfacecolor=PALE,
                markeredgecolor=INK,
                markeredgewidth=0.6,
            )
        best = plan.votes.setting
        axes.plot(
            [best.n_queries],
            [best.n_teachers],
            **_RECOMMENDED,
            label="this plan",
            gid="recommended",
            transform=_shifted_transform(axes, shifts[_place_and_recipe(plan.votes)]),
        )
        _scale_axis_of_sizes(
            axes.xaxis, [candidate.setting.n_queries for candidate in plan.evaluated]
        )
        _scale_axis_of_sizes(
            axes.yaxis, [candidate.setting.n_teachers for candidate in plan.evaluated]
        )
        axes.set_xlabel("queries asked (l)")
        axes.set_ylabel("teachers (K)")
        grid(axes, "both")
        _add_shade_bar(axes, normed)
        _add_legend(axes)

    return Picture("candidates", 4.2, paint)


def _place_and_recipe(candidate: Candidate) -> tuple[int, int, str]:
    setting = candidate.setting
    return setting.n_queries, setting.n_teachers, recipe_name(setting)


def _shifts_of_marks(candidates: Sequence[Candidate]) -> dict[tuple[int, int, str], float]:
    """Return how far aside, in points, the mark of each place and recipe stands."""
    together: dict[tuple[int, int], list[str]] = {}
    for queries, teachers, recipe in dict.fromkeys(map(_place_and_recipe, candidates)):
        together.setdefault((queries, teachers), []).append(recipe)
    return {
        (*place, recipe): _STEP * (rank - (len(recipes) - 1) / 2)
        for place, recipes in together.items()
        for rank, recipe in enumerate(recipes)
    }


def _candidates_by_shift(
    candidates: Sequence[Candidate], shifts: dict[tuple[int, int, str], float]
) -> dict[tuple[str, float], list[Candidate]]:
    """Return the candidates of each recipe that are shifted equally, the best on top."""
    groups: dict[tuple[str, float], list[Candidate]] = {}
    for candidate in sorted(candidates, key=student_accuracy):
        groups.setdefault(
            (recipe_name(candidate.setting), shifts[_place_and_recipe(candidate)]), []
        ).append(candidate)
    return groups


def _shifted_transform(axes: Any, shift: float) -> Any:
    """Return the transform of data that puts marks so many points aside."""
    transforms = require_extra("matplotlib.transforms", "report")
    return axes.transData + transforms.ScaledTranslation(shift / 72, 0, axes.figure.dpi_scale_trans)


def _marker_of(number: int) -> str:
    return _MARKERS[number % len(_MARKERS)]


def draw_teachers(plan: Plan) -> Picture:
    """Draw what the number of teachers does to the exact vote, the released labels and the student.

    For each number of teachers, the best setting of the recommended recipe.

    Parameters
    ----------
    plan : Plan
    """
    # rising accuracy, so that the best of each number of teachers stays; the recommended one is
    # drawn in any case, though a plainer setting may be recommended than the best
    recipe, best = recipe_name(plan.votes.setting), {}
    for candidate in sorted(plan.evaluated, key=student_accuracy):
        if recipe_name(candidate.setting) == recipe:
            best[candidate.setting.n_teachers] = candidate
    best[plan.votes.setting.n_teachers] = plan.votes
    teachers = sorted(best)

    def paint(axes: Any) -> None:
        expected = [best[number].expected for number in teachers]
        student = [each.student_accuracy for each in expected]
        vote = [100 * each.vote_accuracy.value for each in expected]
        label = [100 * each.label_accuracy.value for each in expected]
        axes.plot(
            teachers,
            vote,
            color=INK,
            linewidth=1.2,
            linestyle=(0, (5, 3)),
            marker="^",
            markersize=5,
            label="exact vote",
            gid="vote",
        )
        axes.plot(
            teachers,
            label,
            color=ORANGE,
            linewidth=1.2,
            linestyle=(0, (1, 1.5)),
            marker="s",
            markersize=5,
            label="released labels",
            gid="labels",
        )
        _draw_with_ranges(axes, teachers, student, BLUE, "student, nine runs of ten")
        here = plan.votes
        axes.plot(
            [here.setting.n_teachers],
            [100 * student_accuracy(here)],
            **_RECOMMENDED,
            label="this plan",
            gid="recommended",
        )
        _scale_axis_of_sizes(axes.xaxis, teachers)
        _scale_percent_axis(
            axes, [*vote, *label, *(100 * end for each in student for end in (each.low, each.high))]
        )
        axes.set_xlabel(f"teachers (K); {_short_recipe_name(recipe)}")
        axes.set_ylabel("right (%)")
        grid(axes, "both")
        _add_legend(axes)

    return Picture("teachers", 3.6, paint)


def _short_recipe_name(recipe: str) -> str:
    """Return the name of a recipe as a legend of two columns has room for it."""
    return recipe.replace(" in rounds", "")


def _draw_with_ranges(
    axes: Any, places: list[float] | list[int], estimates: list[Estimate], colour: str, name: str
) -> None:
    """Draw values as a line with marks, each with a bar over its range."""
    values = [100 * each.value for each in estimates]
    ends = [
        [100 * (each.value - each.low) for each in estimates],
        [100 * (each.high - each.value) for each in estimates],
    ]
    line, caps, bars = axes.errorbar(
        places,
        values,
        yerr=ends,
        color=colour,
        linewidth=1.4,
        marker="o",
        markersize=5,
        elinewidth=1.1,
        capsize=3,
        label=name,
    )
    # a mark at 100 %, where the axis ends, stays whole
    for part in (line, *caps, *bars):
        part.set_clip_on(False)


def _scale_axis_of_sizes(axis: Any, sizes: list[float] | list[int]) -> None:
    """Make an axis logarithmic, with room at its ends and ticks at 1, 2, 5 times powers of ten."""
    ticker = require_extra("matplotlib.ticker", "report")
    room = max(1.35, (_LEAST_SPAN * min(sizes) / max(sizes)) ** 0.5)
    low, high = min(sizes) / room, max(sizes) * room
    axis.axes.set(**{f"{axis.axis_name}scale": "log", f"{axis.axis_name}lim": (low, high)})
    wide = high / low > 300
    axis.set_major_locator(
        ticker.LogLocator(10, (1.0,), numticks=5)
        if wide
        else ticker.LogLocator(10, (1.0, 2.0, 5.0))
    )
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: number_text(value)))


def _scale_percent_axis(axes: Any, values: list[float]) -> None:
    """Let the axis of percents hold all values with some room, and end at 0 and 100."""
    low, high = min(values), max(values)
    room = max(2.0, 0.08 * (high - low))
    axes.set_ylim(max(0.0, low - room), min(100.0, high + room))
    ticker = require_extra("matplotlib.ticker", "report")
    axes.yaxis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))


def _add_shade_bar(axes: Any, normed: Any) -> None:
    cm = require_extra("matplotlib.cm", "report")
    bar = axes.figure.colorbar(cm.ScalarMappable(normed, "Blues"), ax=axes, pad=0.02, aspect=28)
    bar.set_label("accuracy of the student (%)")
    bar.outline.set_linewidth(0.6)
    bar.outline.set_edgecolor(GREY)


def _add_legend(axes: Any) -> None:
    """Put the legend above the picture, where it covers nothing."""
    axes.figure.legend(
        loc="outside upper left",
        ncols=2,
        frameon=False,
        fontsize=9,
        handletextpad=0.5,
        columnspacing=1.4,
    )
