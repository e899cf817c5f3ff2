"""A plan as text and as a picture: what is recommended, what to expect, and what would change
it."""

import functools
import textwrap
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import jinja2

from secretballot.planning.plan_model import (
    STREAMS,
    TABLE,
    Candidate,
    Estimate,
    Plan,
    Setting,
    Task,
    hidden_class,
)
from secretballot.report.pictures import BLUE, GREY, INK, ORANGE, Picture, grid
from secretballot.report.wording import count_text, number_text

WIDTH = 100  # characters of a line
_INDENT = 13  # of what a line says, behind its label
_WORTH_SAYING = 0.005  # half a point of accuracy
_RECIPES = {
    "sparse-vector": "sparse vector",
    "abstention-table": "table of abstentions",
    "confident": "confident labels",
    TABLE: "labels by a vote table",
}


def _recipe_name(setting: Setting) -> str:
    """Return how a reader calls the way in which a setting asks and answers."""
    plain = "noisy counts" if setting.release == "counts" else "noisy labels"
    name = _RECIPES.get(setting.mechanism, plain)
    return name if setting.strategy == "passive" else f"{name} in rounds ({setting.strategy})"


def _others(plan: Plan) -> list[Candidate]:
    """Return the best candidate of every other recipe."""
    found: dict[str, Candidate] = {}
    for candidate in filter(None, (plan.recommended, *plan.evaluated)):
        found.setdefault(_recipe_name(candidate.setting), candidate)
    return [*found.values()][1:]


def _share_range(estimate: Estimate) -> str:
    """Return a share with its range, such as "0.82 (0.79 to 0.85)"."""
    return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"


def _number_range(estimate: Estimate) -> str:
    """Return a number of answers with its range, alone where the range is that one number."""
    value, low, high = (f"{round(end):,}" for end in (estimate.value, estimate.low, estimate.high))
    return value if low == high else f"{value} ({low} to {high})"


def _setting_text(setting: Setting) -> str:
    more = [count_text(setting.n_teachers, "teacher"), count_text(setting.n_queries, "query")]
    if setting.max_abstentions is not None:
        more.append(f"{count_text(setting.max_abstentions, 'abstention')} allowed")
    if setting.max_answers is not None:
        more.append(f"at most {count_text(setting.max_answers, 'answer')}")
    return f"{_recipe_name(setting)}, {', '.join(more)}"


def _noise_text(candidate: Candidate) -> str:
    noise = number_text(float(f"{candidate.noise:.3g}"))
    if candidate.setting.mechanism in STREAMS:
        return f"a lead of {noise} votes is answered nine times in ten"
    like = " at an even vote" if candidate.setting.mechanism == TABLE else ""
    return f"noise of standard deviation {noise} votes{like}"


def _gain_text(plan: Plan, changed: Estimate) -> str:
    assert plan.recommended is not None  # of which it is a change
    gain = changed.value - plan.recommended.student_accuracy.value
    return f"{100 * gain:.1f} points more" if gain >= _WORTH_SAYING else "hardly more"


def _source_text(plan: Plan) -> str:
    text, tried, task = "simulated on the labelled public table", plan.moments, plan.task
    if tried is not None:
        text += f": {tried.n_private:,} of its rows as private records"
        text += f" and {tried.n_pool:,} as public points"
        # a stand-in may have fewer rows than the task
        if tried.n_pool < task.n_public or tried.n_private < task.n_records:
            text += ", extrapolated by a line through these and half of them"
    if plan.evaluated:
        text += f"; {count_text(len(plan.evaluated), 'setting')} of votes evaluated"
    return text


def _weights_text(task: Task) -> str:
    """Return what decisions count classes for, as the command line takes it."""
    weight = task.class_weight
    if not isinstance(weight, Mapping):
        return str(weight)
    return ",".join(f"{name}:{value:g}" for name, value in weight.items())


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "g": lambda value: f"{value:g}",
        "fixed": lambda share: f"{share:.3f}",
        "range": _share_range,
        "numbers": _number_range,
        "count": count_text,
    }
    environment.globals |= {
        "gain": _gain_text,
        "hidden": hidden_class,
        "noise": _noise_text,
        "others": _others,
        "setting": _setting_text,
        "source": _source_text,
        "weights": _weights_text,
    }
    source = files("secretballot.planning").joinpath("plan.txt.j2")
    return environment.from_string(source.read_text("utf-8"))


def plan_text(plan: Plan) -> str:
    """Return a plan as text.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    str
        Lines of at most a hundred characters, but for what cannot be broken.
    """
    lines = _template().render(p=plan, task=plan.task).splitlines()
    wrapped = (
        textwrap.fill(
            line,
            WIDTH,
            subsequent_indent=" " * _INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in lines
        if line.strip()
    )
    return "\n".join(wrapped) + "\n"


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
