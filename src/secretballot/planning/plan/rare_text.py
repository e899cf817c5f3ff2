"""A plan about rare classes in words: of them accuracy is no figure."""

from collections.abc import Mapping

from secretballot.exceptions import Parameter
from secretballot.planning.plan.estimates import RareForecast
from secretballot.planning.plan.model import BALANCED, Plan, Task
from secretballot.planning.plan.wording import share_range
from secretballot.report.wording import count_text


def no_figure_parts(share: float, n_classes: int) -> tuple[str | Parameter, ...]:
    """Return the sentence about a stand-in with a class of this small share, parameters named."""
    option = ("positive_rate", "R, the share of the second class")
    if n_classes > 2:
        option = ("class_weight", "balanced")
    return (
        f"The rarest class of the stand-in has {100 * share:.2g} % of the rows: a student that"
        " never names it loses no more than that, so accuracy is no figure; plan for its recall"
        " with ",
        Parameter(option[0]),
        f" ({option[1]}).",
    )


def no_figure_sentences(plan: Plan) -> list[str]:
    """Return the sentence on accuracy where the stand-in has a rare class and the plan is not about
    it."""
    share = None if plan.moments is None else plan.moments.rare_share
    if share is None or plan.task.about_rare_classes:
        return []
    parts = no_figure_parts(share, plan.task.n_classes)
    return [
        "".join(
            f"--{part.name.replace('_', '-')}" if isinstance(part, Parameter) else part
            for part in parts
        )
    ]


def stated_words(task: Task) -> str:
    """Return what a task says of classes."""
    if isinstance(task.class_weight, Mapping):
        weights = ", ".join(f"{name} {value:g}" for name, value in task.class_weight.items())
        decisions = f"decisions count classes by weight: {weights}"
    elif task.class_weight == BALANCED:
        decisions = "decisions count classes as if they were equally frequent"
    else:
        decisions = "decisions count classes as they are"
    if task.positive_rate is None:
        return decisions
    return f"{100 * task.positive_rate:g} % are of the second class, as stated; {decisions}"


def student_words(plan: Plan) -> str:
    """Return what the student should reach."""
    if plan.moments is None or plan.moments.rare is None:
        return "not known before a labelled table like the private one is given (--like)"
    found = plan.moments.rare
    return (
        f"balanced accuracy {share_range(found.balanced_accuracy)}, recall of"
        f" {_name_of(plan, found)} {share_range(found.recall)}; a constant has"
        f" {1 / plan.task.n_classes:.3f} and 0"
    )


def rare_sentences(plan: Plan) -> list[str]:
    """Return why moments, what was tried, and what to beware of."""
    sentences = [
        "Only record moments were planned: votes know neither --positive-rate nor --class-weight."
    ]
    moments = plan.moments
    if moments is None or moments.rare is None:
        return [
            *sentences,
            "They cannot be forecast without a labelled public table like the private one; give one"
            " with --like.",
        ]
    found, task = moments.rare, plan.task
    if not found.balanced_accuracy.low > 1 / task.n_classes:
        # a warning comes before all else
        sentences.insert(
            0,
            f"Beware: a constant has balanced accuracy {1 / task.n_classes:.3f}, and this student"
            " is not surely better; the budget may be spent on noise.",
        )
    sentences.append(
        f"Accuracy would be {share_range(moments.student_accuracy)}, and is no figure: always"
        f" naming the most frequent class has {plan.constant_accuracy:.3f}."
    )
    few = moments.n_pool < task.n_public or moments.n_private < task.n_records
    read_off = "; what more rows bring is read off a line through these and half of them"
    sentences.append(
        f"{_name_of(plan, found, upper=True)} has {count_text(found.n_private, 'row')} of the"
        f" stand-in in the place of private records, and recall was measured on {found.n_scored:,}"
        " others. Tried with"
        f" {count_text(moments.n_private, 'stand-in row')} as private records, under noise that is"
        f" to them what it is to {count_text(task.n_records, 'record')}, and {moments.n_pool:,} as"
        f" public points{read_off if few else ''}."
    )
    return sentences


def rare_budget_lines(plan: Plan) -> list[str]:
    """Return balanced accuracy and recall at each epsilon."""
    if plan.moments is None or plan.moments.rare is None:
        return []
    here = plan.task.epsilon
    return [
        f"epsilon {epsilon:g}: balanced accuracy {share_range(balanced)}, recall"
        f" {share_range(recall)}{'; this plan' if epsilon == here else ''}"
        for epsilon, balanced, recall in plan.moments.rare.frontier
    ]


def _name_of(plan: Plan, found: RareForecast, *, upper: bool = False) -> str:
    """Return how a sentence calls the rarest class, at its beginning or within."""
    if plan.classes is not None:
        return f"{'C' if upper else 'c'}lass {str(plan.classes[found.place])!r}"
    place = "first" if found.place == 0 else "last"
    if 0 < found.place < plan.task.n_classes - 1:
        return f"{'C' if upper else 'c'}lass {found.place + 1}"
    return f"{'T' if upper else 't'}he {place} class"
