"""A plan as data: the task, what is recommended, what to expect, and what else was evaluated."""

import functools
import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

import jinja2

from secretballot._typing import Json
from secretballot._validation import check_count
from secretballot.accounting import PrivacyBudget
from secretballot.report.pictures import BLUE, GREY, INK, ORANGE, Picture, grid
from secretballot.report.wording import count_text, number_text

STREAMS = ("sparse-vector", "abstention-table")  # that stop at the T-th abstention
TABLE = "vote-table"
CONFIDENT = "confident"  # that has a threshold and a number of answers
#: A class is rare up to this share.
RARE = 0.05
#: Records of a class that the noise of record moments at epsilon 1 hides.
_HIDDEN = 100


@dataclass(frozen=True)
class Estimate:
    """A number that is expected, and the range in which nine runs of ten should fall.

    Attributes
    ----------
    value, low, high : float

    Examples
    --------
    >>> sb.planning.Estimate(value=0.82, low=0.79, high=0.85).high
    0.85
    """

    value: float
    low: float
    high: float


def hidden_class(share: float, n_records: int | None, epsilon: float) -> str:
    """Return in one sentence that noise hides the rarest class of record moments, of which public
    labels have this share; where no number of records is stated, of how many; "" where it does not,
    or the class is not rare."""
    hidden = _HIDDEN / epsilon
    if share > RARE or (n_records is not None and share * n_records >= hidden):
        return ""
    if n_records is None:
        counted = f"of fewer than {math.ceil(hidden / share):,} records too few are of it"
    else:
        counted = f"about {round(share * n_records)} of the records are of it"
    return (
        f"The rarest class has {100 * share:.2g} % of the public labels: {counted}, and noise hides"
        f" fewer than {round(hidden)}: the release may be worthless for it; join it with another"
        " class, or raise epsilon."
    )


@dataclass(frozen=True)
class MomentsForecast:
    """What record moments would reach, tried on a stand-in.

    Attributes
    ----------
    student_accuracy : Estimate
        Share of new points that the student gets right, at the task's epsilon.
    frontier : tuple of (float, Estimate)
        The same at other epsilons, in rising order.
    n_private, n_pool : int
        Rows of the stand-in that represented private records and for public points.
    rare_share : float or None
        Share of the rarest class of the stand-in, where it is so small that accuracy is no figure.

    Examples
    --------
    >>> better = sb.planning.Estimate(0.86, 0.84, 0.88)
    >>> sb.planning.MomentsForecast(better, ((1.0, better),), 3000, 500).student_accuracy.value
    0.86
    """

    student_accuracy: Estimate
    frontier: tuple[tuple[float, Estimate], ...]
    n_private: int
    n_pool: int
    rare_share: float | None = None


@dataclass(frozen=True)
class Task:
    """What is to be learnt, in public numbers.

    Attributes
    ----------
    n_records : int
        Publicly stated number n of private records.
    n_public : int
        Number m of public points.
    n_classes : int
    epsilon, delta : float
        Budget of the release.
    teacher, student : str
        Names as `secretballot learn` knows them.
    class_weight : "balanced", mapping of str to float, or None
        What decisions count each class for, by the names of the classes.

    Raises
    ------
    ParameterError
        If a number is out of its range.

    Examples
    --------
    >>> task = sb.planning.Task(
    ...     n_records=20_000, n_public=1000, n_classes=2, epsilon=1.0, delta=1e-6
    ... )
    >>> task.budget.epsilon
    1.0
    """

    n_records: int
    n_public: int
    n_classes: int
    epsilon: float
    delta: float
    teacher: str = "logistic"
    student: str = "auto"
    class_weight: str | Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        check_count("n_records", self.n_records)
        check_count("n_public", self.n_public)
        check_count("n_classes", self.n_classes, minimum=2)
        PrivacyBudget(epsilon=self.epsilon, delta=self.delta)
        if isinstance(self.class_weight, Mapping):
            # as a file has them, in which all names are texts
            weights = {str(name): weight for name, weight in self.class_weight.items()}
            object.__setattr__(self, "class_weight", weights)

    @property
    def budget(self) -> PrivacyBudget:
        """The budget of the release."""
        return PrivacyBudget(epsilon=self.epsilon, delta=self.delta)


@dataclass(frozen=True)
class Setting:
    """What can be chosen before the private data are touched.

    Attributes
    ----------
    n_teachers : int
        K.
    mechanism : str
        "gaussian", "vote-table", "laplace", "sparse-vector", "abstention-table" or "confident".
    release : str
        "labels" or "counts".
    n_queries : int
        l, the public points that are asked; for a sparse vector or a table the longest stream.
    max_abstentions : int or None
        T of a sparse vector or a table, None for all other voting.
    strategy : str
        "passive", or the name of a query strategy that asks in rounds.
    threshold, max_answers : int or None
        Of confident voting, None for all other.

    Examples
    --------
    >>> setting = sb.planning.Setting(250, "gaussian", "labels", n_queries=500)
    >>> setting.strategy
    'passive'
    """

    n_teachers: int
    mechanism: str
    release: str
    n_queries: int
    max_abstentions: int | None = None
    strategy: str = "passive"
    threshold: int | None = None
    max_answers: int | None = None

    @property
    def named(self) -> str:
        """The mechanism with its settings, as `secretballot learn` has it."""
        if self.mechanism == "gaussian":
            return self.release
        more = {
            "release": self.release if self.mechanism == "laplace" else None,
            "max_abstentions": self.max_abstentions,
            "threshold": self.threshold,
            "max_answers": self.max_answers,
        }
        given = ",".join(f"{key}={value}" for key, value in more.items() if value is not None)
        return f"{self.mechanism}:{given}" if given else self.mechanism


@dataclass(frozen=True)
class Candidate:
    """A setting that was evaluated, its noise, and what it should lead to.

    Attributes
    ----------
    setting : Setting
    noise : float
        In votes: the standard deviation of the noise on counts that labels are read off; of a
        sparse vector, the margin that is answered nine times in ten.
    answered : Estimate
        Queries that get an answer.
    student_accuracy : Estimate
        Share of new points that the student gets right.

    Examples
    --------
    >>> share = sb.planning.Estimate(0.82, 0.79, 0.85)
    >>> answered = sb.planning.Estimate(500, 500, 500)
    >>> setting = sb.planning.Setting(250, "gaussian", "labels", n_queries=500)
    >>> sb.planning.Candidate(setting, 40.0, answered, share).student_accuracy.value
    0.82
    """

    setting: Setting
    noise: float
    answered: Estimate
    student_accuracy: Estimate


@dataclass(frozen=True)
class Plan:
    """A recommendation with its reasons, made of public numbers and stand-in data alone.

    It holds nothing private, so it may be shown to anyone.

    Attributes
    ----------
    task : Task
    recommended : Candidate or None
        The best setting of votes; None where there is none that beats a constant, and where the
        task is about rare classes, which record moments alone are planned for.
    evaluated : tuple of Candidate
        All that were evaluated, best first; the recommended one among them.
    constant_accuracy : float
        Accuracy of a student that always says the most frequent class: what has to be beaten.
    frontier : tuple of (float, Estimate or None)
        What the student of the best votes should reach at other epsilons, in rising order; None
        where nothing useful can be had.
    improvements : tuple of (str, Estimate)
        What one change of the task, in words, would bring; most helpful first.
    seed : int
        Of the simulation.
    moments : MomentsForecast or None
        What record moments would reach, the other method; None where that was not tried.
    classes : tuple of (str or int), or None
        The classes by name, for the run to come; None where only their number is known.

    Examples
    --------
    `secretballot.plan` makes plans; here is one by hand.

    >>> share = sb.planning.Estimate(0.82, 0.79, 0.85)
    >>> setting = sb.planning.Setting(250, "gaussian", "labels", n_queries=500)
    >>> best = sb.planning.Candidate(setting, 40.0, sb.planning.Estimate(500, 500, 500), share)
    >>> task = sb.planning.Task(20_000, 1000, n_classes=2, epsilon=1.0, delta=1e-6)
    >>> plan = sb.Plan(task, best, (best,), 0.5, (), (), seed=0)
    >>> plan.settings()["n_teachers"]
    250
    """

    task: Task
    recommended: Candidate | None
    evaluated: tuple[Candidate, ...]
    constant_accuracy: float
    frontier: tuple[tuple[float, Estimate | None], ...]
    improvements: tuple[tuple[str, Estimate], ...]
    seed: int
    moments: MomentsForecast | None = None
    classes: tuple[str | int, ...] | None = None

    @property
    def method(self) -> str:
        """The recommended method of `secretballot learn`: "record-moments" or "pate".

        Moments, which have nothing to set, unless votes are better beyond the ranges, or are all
        that was planned.
        """
        if self.recommended is None or self.moments is None:
            return "record-moments" if self.recommended is None else "pate"
        theirs = self.recommended.student_accuracy
        return "pate" if theirs.low > self.moments.student_accuracy.high else "record-moments"

    @property
    def student_accuracy(self) -> Estimate:
        """What the student of the recommended method should reach."""
        if self.moments is not None and self.method == "record-moments":
            return self.moments.student_accuracy
        assert self.recommended is not None
        return self.recommended.student_accuracy

    def to_json(self) -> Json:
        """Return the plan as JSON values."""
        # through JSON and back: tuples become lists, and nan is refused here, not by a reader
        plain: Json = json.loads(json.dumps(asdict(self), allow_nan=False))
        return {"format": "secretballot/plan", "version": 1, **plain}

    def settings(self) -> Json:
        """Return what the recommendation sets of a run, by the names of its settings; nothing that
        has its usual value."""
        task, votes = self.task, self.recommended if self.method == "pate" else None
        found: Json = {
            "method": self.method,
            "epsilon": task.epsilon,
            "delta": task.delta,
            "n_records": task.n_records,
            "classes": self.classes,
            "student": None if task.student == "auto" else task.student,
        }
        if votes is None:
            weight: object = task.class_weight
            if weight is None and self.moments is not None:
                weight = "none"  # a run would balance what the plan did not
            found |= {"class_weight": weight}
        else:
            setting = votes.setting
            found |= {
                "teacher": None if task.teacher == "logistic" else task.teacher,
                "n_teachers": setting.n_teachers,
                "n_queries": setting.n_queries,
                "mechanism": setting.named,
                "strategy": None if setting.strategy == "passive" else setting.strategy,
            }
        return {name: value for name, value in found.items() if value is not None}

    def forecast(self) -> Json:
        """Return what the recommendation expects, each range as value, low and high; as the plan of
        a run has it."""
        found: Json = {
            "n_public": self.task.n_public,
            "n_classes": self.task.n_classes,
            "student_accuracy": self.student_accuracy,
        }
        if self.recommended is not None and self.method == "pate":
            found["answered"] = self.recommended.answered
        return {
            name: [one.value, one.low, one.high] if isinstance(one, Estimate) else one
            for name, one in found.items()
        }


_WIDTH = 100  # characters of a line
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
            _WIDTH,
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
        look: Json = {"color": INK, "linewidth": 1.2, "linestyle": "--"}
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
