"""A plan in words: what is recommended, what to expect, why, and what would help."""

import csv
import io
import shlex
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from secretballot.planning.plan.model import (
    INTERACTIVE,
    STREAMS,
    TABLE,
    Candidate,
    Expected,
    FrontierPoint,
    Plan,
    Setting,
)
from secretballot.planning.plan.rare_text import (
    no_figure_sentences,
    rare_budget_lines,
    rare_sentences,
    stated_words,
    student_words,
)
from secretballot.planning.plan.wording import number_range, share_range
from secretballot.report.wording import count_text, number_text

WIDTH = 100  # characters of a line
WORTH_SAYING = 0.005  # half a point of accuracy: less is not worth a sentence
MOST_RIVALS = 4
#: Settings that have an option of their own; others are given by ``--set``.
SHOWN = (
    "epsilon",
    "delta",
    "method",
    "student",
    "teacher",
    "n_teachers",
    "classes",
    "class_weight",
)
SOURCES = {
    "stand-in": "simulated on a labelled public table in the place of the private one",
    "curve": "computed from the learning curve that was given",
    "guess": (
        "computed from a guess of how teachers learn, as neither a table nor a learning curve was"
        " given"
    ),
}

_LAST_WORDS = textwrap.fill(
    "No private data were read, so this plan costs no budget and may be shown to anyone. It"
    " is a forecast and no promise; the ranges should hold nine runs of ten, if what is"
    " assumed holds. Whoever changes a plan because of what came out of private data must"
    " pay for that choice.",
    WIDTH,
)


@dataclass(frozen=True)
class Losses:
    """Where the accuracy goes that a setting does not reach, in shares of all points.

    None is below 0, and they add up to 1 - student.

    Attributes
    ----------
    limit : float
        What the votes get wrong at the best number of teachers that was evaluated.
    shards : float
        What the votes would get right there beyond what they do, and the student does not make up
        for.
    noise : float
        From the exact vote to the released labels, as far as the student does not average it out
        again; 0 where the answered points are easier than all.
    points : float
        From there to the student.
    """

    limit: float
    shards: float
    noise: float
    points: float


def learn_options(plan: Plan) -> list[str]:
    """Return the options of ``secretballot learn`` that ask for the recommended method and
    setting."""
    options = []
    for name, value in plan.settings().items():
        if name == "classes":
            text = _csv_line(value)
        elif isinstance(value, Mapping):
            text = _csv_line([f"{one}:{weight!r}" for one, weight in value.items()])
        else:
            text = _exact_number(value) if isinstance(value, float) else str(value)
        given = shlex.quote(text if name in SHOWN else f"{name}={text}")
        options.append(f"--{name.replace('_', '-')} {given}" if name in SHOWN else f"--set {given}")
    return options


def _exact_number(value: float) -> str:
    """Return a number as short as it can be said, and be read as the same."""
    brief = f"{value:g}"
    return brief if float(brief) == value else repr(value)


def _csv_line(words: Sequence[object]) -> str:
    """Return words by commas, as options read them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(words)
    return line.getvalue()


def recipe_name(setting: Setting) -> str:
    """Return how a reader calls the way in which a setting asks and answers."""
    if setting.mechanism == "sparse-vector":
        name = "sparse vector"
    elif setting.mechanism == "abstention-table":
        name = "table of abstentions"
    elif setting.mechanism == "confident":
        name = "confident labels"
    elif setting.mechanism == INTERACTIVE:
        name = "interactive labels"
    elif setting.mechanism == TABLE:
        name = "labels by a table of chances"
    else:
        name = "noisy counts" if setting.release == "counts" else "noisy labels"
    return name if setting.strategy == "passive" else f"{name} in rounds ({setting.strategy})"


def losses(plan: Plan) -> Losses:
    """Return where the recommended setting loses accuracy."""
    expected = plan.votes.expected
    vote, label, student = (
        each.value
        for each in (expected.vote_accuracy, expected.label_accuracy, expected.student_accuracy)
    )
    best = max(candidate.expected.vote_accuracy.value for candidate in plan.evaluated)
    # a student that averages may be better than the vote it learns from, and easy points may have
    # better labels than all have votes; neither is a loss below 0, so that the parts add up
    reached = max(vote, student)
    noise = max(0.0, vote - max(label, student))
    points = max(0.0, reached - noise - student)
    return Losses(
        limit=1 - max(best, reached), shards=max(0.0, best - reached), noise=noise, points=points
    )


def rivals(plan: Plan) -> list[Candidate]:
    """Return the best candidate of every other recipe, best first, at most four."""
    found: dict[str, Candidate] = {recipe_name(plan.votes.setting): plan.votes}
    for candidate in sorted(plan.evaluated, key=student_accuracy, reverse=True):
        found.setdefault(recipe_name(candidate.setting), candidate)
    return list(found.values())[1 : MOST_RIVALS + 1]


def student_accuracy(candidate: Candidate) -> float:
    return candidate.expected.student_accuracy.value


def reasons(plan: Plan) -> list[str]:
    """Return what the accuracy is lost to, what binds, and why the rivals were not taken."""
    others = [*_other_numbers(plan), *rivals(plan)]
    return [
        *_warning_sentences(plan),
        *_loss_sentences(plan),
        _accuracy_chain_sentence(plan),
        *(_rival_sentence(plan, other) for other in others),
    ]


def _other_numbers(plan: Plan) -> list[Candidate]:
    """Return the best candidates of the recommended recipe with fewer and with more teachers."""
    ours = plan.votes.setting
    alike = [each for each in plan.evaluated if recipe_name(each.setting) == recipe_name(ours)]
    fewer = [each for each in alike if each.setting.n_teachers < ours.n_teachers]
    more = [each for each in alike if each.setting.n_teachers > ours.n_teachers]
    return [max(side, key=student_accuracy) for side in (fewer, more) if side]


def _points_text(share: float) -> str:
    """Return a share of points as "3.2 points"."""
    return f"{100 * share:.1f} points"


def _careless_sentences(plan: Plan) -> list[str]:
    """Return the warning of a delta that promises nothing, where it is due."""
    task = plan.task
    if task.delta * task.n_records < 1:
        return []
    return [
        f"Beware: delta {task.delta:g} is not below one over the"
        f" {count_text(task.n_records, 'record')}: a program that publishes one whole record at"
        " random would keep such a promise; use a much smaller delta."
    ]


def _warning_sentences(plan: Plan) -> list[str]:
    student, constant = plan.votes.expected.student_accuracy, plan.constant_accuracy
    # a plan for a worthless promise, or for a useless student, is worse than none: said first
    beware = _careless_sentences(plan)
    if student.low > constant:
        return beware
    return [
        *beware,
        (
            f"Beware: always naming the most frequent class is right {constant:.3f} of the time,"
            " and this student is not surely better; the budget may be spent on noise."
        ),
    ]


def _loss_sentences(plan: Plan) -> list[str]:
    parts, setting = losses(plan), plan.votes.setting
    per_teacher = number_text(round(plan.task.n_records / setting.n_teachers, 1))
    texts = {
        "shards": (
            f"too few records per teacher, {per_teacher} each, where the noise would be too large"
            " for fewer teachers"
        ),
        "noise": f"noise against the lead of the winning class: {_noise_words(plan.votes)}",
        "points": (
            f"too few answers to learn from, {number_range(plan.votes.expected.answered)} of "
            f"{count_text(setting.n_queries, 'query')}"
        ),
    }
    costs = {name: getattr(parts, name) for name in texts}
    # one cause is named as the one that binds; the others only where they cost half a point
    binding = max(costs, key=lambda name: costs[name])
    short = _points_text(1 - plan.votes.expected.student_accuracy.value)
    sentences = [
        f"Of the {short} of accuracy that the student is short of 100,"
        f" {_points_text(parts.limit)} are"
        " lost with any number of teachers that was evaluated: this is how hard the task is for"
        " them."
    ]
    if costs[binding] < WORTH_SAYING:
        return [*sentences, "Beyond that nothing binds: privacy costs less than half a point."]
    others = [
        f"{_points_text(costs[name])} by {text}"
        for name, text in texts.items()
        if name != binding and costs[name] >= WORTH_SAYING
    ]
    sentences.append(f"What binds is {texts[binding]}: {_points_text(costs[binding])}.")
    if others:
        sentences.append(f"Besides, {'; '.join(others)}.")
    return sentences


def _noise_words(candidate: Candidate) -> str:
    teachers, noise = candidate.setting.n_teachers, number_text(float(f"{candidate.noise:.3g}"))
    if candidate.setting.mechanism in STREAMS:
        return (
            f"a vote needs a lead of {noise} among {teachers} teachers to be answered nine times"
            " in ten"
        )
    if candidate.setting.mechanism == TABLE:
        return (
            f"an even vote among {teachers} teachers is told as by Gaussian noise of {noise} votes"
        )
    return f"a standard deviation of {noise} votes among {teachers} teachers"


def _accuracy_chain_sentence(plan: Plan) -> str:
    """Say how accurate the exact vote, the released labels and the student are, in that order."""
    expected = plan.votes.expected
    better = expected.student_accuracy.value - expected.label_accuracy.value
    # a student may be better than its labels, which calls for a reason
    ending = ""
    if plan.votes.setting.mechanism == INTERACTIVE:
        ending = (
            ", which also learns from those of its own predictions that the votes did not correct;"
            " these cost nothing and are no labels here"
        )
    elif better >= WORTH_SAYING:
        ending = f", by averaging over points {_points_text(better)} better than its labels"
    values = (
        each.value
        for each in (expected.vote_accuracy, expected.label_accuracy, expected.student_accuracy)
    )
    vote, label, student = (f"{value:.3f}" for value in values)
    return (
        f"The exact vote, which nobody will see, would be right {vote} of the time, the released"
        f" labels {label}, the student {student}{ending}."
    )


def _rival_sentence(plan: Plan, rival: Candidate) -> str:
    """Say what the best setting of another recipe would lead to, and why that is less."""
    ours, theirs = plan.votes.expected, rival.expected
    gap = ours.student_accuracy.value - theirs.student_accuracy.value
    setting = rival.setting
    asked = f"{count_text(setting.n_teachers, 'teacher')}, {count_text(setting.n_queries, 'query')}"
    asked += (
        ""
        if setting.max_abstentions is None
        else f", {count_text(setting.max_abstentions, 'abstention')} allowed"
    )
    if setting.max_answers is not None:
        asked += f", at most {count_text(setting.max_answers, 'answer')}"
    same = recipe_name(setting) == recipe_name(plan.votes.setting)
    name = asked if same else f"{recipe_name(setting)} ({asked})"
    student = f"student {share_range(theirs.student_accuracy)}"
    # plans are forecasts: where ranges overlap, the rival may do better in a given run
    overlap = theirs.student_accuracy.high >= ours.student_accuracy.low
    if gap < WORTH_SAYING:
        return (
            f"{name[0].upper()}{name[1:]} would do no worse, give or take half a point: {student}."
        )
    return (
        f"Why not {name}:"
        f" {student}{_reason_text(ours, rival)}{'; the ranges overlap' if overlap else ''}."
    )


def _reason_text(ours: Expected, rival: Candidate) -> str:
    """Say the plainest reason why a rival's student is worse, if there is one."""
    # few answers come first: they make a bad student whatever their labels are
    theirs, asked = rival.expected, rival.setting.n_queries
    # but for answers that correct a student: there are few of them where it is good
    if theirs.answered.value < asked / 2 and rival.setting.mechanism != INTERACTIVE:
        return (
            f", since {number_range(theirs.answered)} of {count_text(asked, 'query')} would be"
            " answered"
        )
    if theirs.label_accuracy.value < ours.label_accuracy.value - WORTH_SAYING:
        return f", since its labels would be right {theirs.label_accuracy.value:.3f} of the time"
    if theirs.vote_accuracy.value < ours.vote_accuracy.value - WORTH_SAYING:
        return f", since its votes would be right {theirs.vote_accuracy.value:.3f} of the time"
    if theirs.answered.value < ours.answered.value:
        return f", from {number_range(theirs.answered)} answers"
    return ""


def plan_text(plan: Plan) -> str:
    """Return a plan as a page of text.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    str
        Lines of at most a hundred characters, but for what cannot be broken.
    """
    if plan.recommended is None:
        parts = [
            _head_lines(plan),
            _bullet_list("Which method", [*_careless_sentences(plan), *rare_sentences(plan)]),
            _bullet_list("At other budgets", rare_budget_lines(plan)),
            _bullet_list("Assumed", plan.assumptions),
            _LAST_WORDS,
        ]
        return "\n\n".join(part for part in parts if part) + "\n"
    parts = [
        _head_lines(plan),
        _bullet_list("Which method", _method_sentences(plan)),
        # told where moments are recommended too: silos and files of votes need votes
        _bullet_list("Why" if plan.method == "pate" else "If you vote", reasons(plan)),
        _bullet_list("What would make it better", _improvement_lines(plan)),
        _bullet_list("At other budgets", [_budget_words(plan, point) for point in plan.frontier]),
        _bullet_list("Assumed", plan.assumptions),
        _LAST_WORDS,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _method_sentences(plan: Plan) -> list[str]:
    """Return which method is recommended and why, or why that cannot be said."""
    votes = plan.votes.expected.student_accuracy
    if plan.moments is None:
        if plan.task.mechanism is not None:
            return [
                f"Only votes were planned, and only by the {plan.task.mechanism} mechanism, since"
                " it was given."
            ]
        if plan.source == "stand-in" or plan.teachers_given:
            return ["Only votes were planned, since the number of teachers was given."]
        cannot = (
            "Record moments cannot be forecast without a labelled public table like the private"
            " one; give one with --like."
        )
        if plan.method == "pate":
            return [
                "Votes were planned, by the learning curve of a teacher. " + cannot,
            ]
        return [
            "Moments are recommended: where you hold the records yourself and they are a table,"
            " they are usually the better method, the more so the smaller epsilon is; all records"
            " add to one noisy sum, and none is lost to a shard. " + cannot,
            f"Votes, at their best setting by a guess: student {share_range(votes)}. Take the"
            " setting below with --method pate for black-box learners, silos and files of votes.",
        ]
    moments = plan.moments.student_accuracy
    sentences = no_figure_sentences(plan)
    apart = moments.low > votes.high or votes.low > moments.high
    sentences += [
        f"Record moments: student {share_range(moments)}. Votes, at their best setting: student"
        f" {share_range(votes)}. {'The ranges are apart.' if apart else 'The ranges overlap.'}"
    ]
    if plan.method == "record-moments":
        sentences.append(
            "Moments are recommended: they have nothing to set, all records add to one noisy sum,"
            " and none is lost to a shard. They need the records themselves. For black-box"
            " learners, silos and files of votes take the setting of votes below"
            " (--method pate)."
        )
    else:
        sentences.append(
            "Votes are recommended: their students do better here than a linear model in a public"
            " basis. Moments have nothing to set (--method record-moments)."
        )
    for epsilon, estimate in plan.moments.frontier:
        if epsilon != plan.task.epsilon:
            sentences.append(f"Moments at epsilon {epsilon:g}: student {share_range(estimate)}.")
    tried, asked = plan.moments, plan.task
    # a stand-in may have fewer rows than the task
    few = tried.n_pool < asked.n_public or tried.n_private < asked.n_records
    read_off = "; what more rows bring is read off a line through these and half of them"
    sentences.append(
        f"Tried with {count_text(plan.moments.n_private, 'stand-in row')} as private records, under"
        f" noise that is to them what it is to {count_text(plan.task.n_records, 'record')}, and"
        f" {plan.moments.n_pool:,} as public points"
        f"{read_off if few else ''}."
    )
    return sentences


def _head_lines(plan: Plan) -> str:
    task = plan.task
    plan_for = (
        f"{count_text(task.n_records, 'private record')},"
        f" {count_text(task.n_public, 'public point')}, {count_text(task.n_classes, 'class')},"
        f" epsilon {task.epsilon:g}, delta {task.delta:g}"
    )
    if plan.recommended is None:
        simulated = plan.moments is not None
        rows = {
            "plan for": plan_for,
            "method": _method_words(plan),
            "classes": stated_words(task),
            "student": student_words(plan),
            "forecast": SOURCES["stand-in"] if simulated else "none",
        }
        return _head_text(plan, rows)
    best = plan.recommended
    expected = best.expected
    rows = {
        "plan for": plan_for,
        "method": _method_words(plan),
        "recipe": f"{recipe_name(best.setting)}: {_noise_words(best)}",
        "answers": (
            f"{number_range(expected.answered)} of {count_text(best.setting.n_queries, 'query')}"
        ),
        "labels": f"{share_range(expected.label_accuracy)} right",
        "student": _student_words(plan),
        "forecast": (
            f"{SOURCES[plan.source]}; {count_text(len(plan.evaluated), 'setting')} evaluated"
        ),
    }
    if plan.method == "record-moments":
        # these rows are about votes alone
        for name in ("recipe", "answers", "labels"):
            del rows[name]
    return _head_text(plan, rows)


def _head_text(plan: Plan, rows: Mapping[str, str]) -> str:
    # the command comes second and is not wrapped like text: it is copied into a shell
    first, *rest = (_row_lines(name, text) for name, text in rows.items())
    return "\n".join([first, _command_lines(plan), *rest])


def _student_words(plan: Plan) -> str:
    alone = f"the most frequent class alone {plan.constant_accuracy:.3f}"
    if plan.student_accuracy is None:
        return f"not known before a labelled table like the private one is given (--like); {alone}"
    return f"{share_range(plan.student_accuracy)} right; {alone}"


def _method_words(plan: Plan) -> str:
    if plan.method == "record-moments":
        return "record moments: noisy sums over all records"
    return "votes of teachers on shards"


def _row_lines(name: str, text: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=f"{name:<13}",
        subsequent_indent=" " * 13,
        break_long_words=False,
    )


def _command_lines(plan: Plan) -> str:
    """Return the command as a shell takes it, broken between options only."""
    lines, line = [], "recommended  secretballot learn PRIVATE PUBLIC --target COL"
    for option in learn_options(plan):
        if len(line) + len(option) + 3 > WIDTH:
            lines.append(f"{line} \\")
            line = " " * 17 + option
        else:
            line += f" {option}"
    return "\n".join([*lines, line])


def _improvement_lines(plan: Plan) -> list[str]:
    """Return what each change of the task would bring, with a word where none would help."""
    now = plan.votes.expected.student_accuracy.value
    lines = [
        f"{each.change}: student {share_range(each.student_accuracy)},"
        f" {_gain_text(each.student_accuracy.value - now)}"
        for each in plan.improvements
    ]
    if plan.task.n_classes > 2 and plan.votes.setting.mechanism == "gaussian":
        lines.append(
            "two classes, if the question can be put so:"
            f" {_two_class_noise_text(plan.votes.setting.release)}"
        )
    if plan.improvements and all(
        each.student_accuracy.value - now < WORTH_SAYING for each in plan.improvements
    ):
        lines.append(
            "None of these would bring half a point: what is left is how hard the task is for the"
            " learners."
        )
    return lines


def _two_class_noise_text(release: str) -> str:
    """Return how much less noise two classes need: a teacher moves one count of theirs, not two."""
    values = "noisy counts" if release == "counts" else "labels"
    return f"the same number of {values} would take noise 1.4 times smaller"


def _gain_text(gain: float) -> str:
    return f"{_points_text(gain)} more" if gain >= WORTH_SAYING else "hardly more"


def _budget_words(plan: Plan, point: FrontierPoint) -> str:
    best, here = point.candidate, "; this plan" if point.epsilon == plan.task.epsilon else ""
    if best is None:
        return f"epsilon {point.epsilon:g}: nothing useful can be had{here}"
    setting = best.setting
    return (
        f"epsilon {point.epsilon:g}: student {share_range(best.expected.student_accuracy)} by"
        f" {recipe_name(setting)}, {count_text(setting.n_teachers, 'teacher')},"
        f" {count_text(setting.n_queries, 'query')}{here}"
    )


def _bullet_list(title: str, lines: Iterable[str]) -> str:
    """Return lines under a title; nothing where there are none."""
    items = [
        textwrap.fill(
            line, WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False
        )
        for line in lines
    ]
    return "\n".join([title, *items]) if items else ""
