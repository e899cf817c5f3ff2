"""Plans in words: the figures add up, what binds is named, and every rival gets its reason."""

import shlex
from dataclasses import replace

import pytest
from made_plan import WEIGHED, candidate, made_plan

from secretballot.planning.plan.model import Plan, Setting
from secretballot.planning.plan.text import (
    learn_options,
    losses,
    plan_text,
)


def one(vote: float, label: float, student: float, best_vote: float | None = None) -> Plan:
    """Return a plan of one candidate, and one with fewer teachers whose vote is right so often."""
    ours = candidate(Setting(200, "gaussian", "labels", 300), vote, label, student)
    other = candidate(
        Setting(20, "gaussian", "labels", 300), best_vote or vote, label, student - 0.1
    )
    return made_plan(ours, (ours, other))


def test_losses_add_up_to_what_the_student_is_short_of() -> None:
    for plan in (made_plan(), one(0.9, 0.8, 0.7), one(0.7, 0.9, 0.75), one(0.8, 0.7, 0.85, 0.95)):
        parts = losses(plan)
        total = parts.limit + parts.shards + parts.noise + parts.points
        assert total == pytest.approx(1 - plan.recommended.expected.student_accuracy.value)
        assert min(parts.limit, parts.shards, parts.noise, parts.points) >= 0


def test_the_options_are_those_of_learn() -> None:
    assert (
        " ".join(learn_options(made_plan()))
        == "--method pate --epsilon 1 --delta 1e-06 --set n_records=10000 --n-teachers 200"
        " --set n_queries=1000 --set mechanism=counts"
    )
    # the price that was planned, and none that is a little larger
    plan = made_plan()
    odd = replace(plan, task=replace(plan.task, epsilon=0.123456789))
    assert learn_options(odd)[1] == "--epsilon 0.123456789"
    for setting in (WEIGHED[2].setting, WEIGHED[4].setting):
        plan = replace(
            made_plan(teacher="tree"), recommended=next(c for c in WEIGHED if c.setting == setting)
        )
        words = shlex.split(" ".join(learn_options(plan)))
        assert words[words.index("--teacher") + 1] == "tree"
        assert ("strategy=margin" in words) == (setting.strategy == "margin")
        abstaining = "mechanism=sparse-vector:max_abstentions=2" in words
        assert abstaining == (setting.mechanism == "sparse-vector")


def test_the_command_of_the_page_is_one_a_shell_takes() -> None:
    text = plan_text(made_plan(teacher="sklearn.naive_bayes:GaussianNB"))
    start = text.index("secretballot learn")
    words = shlex.split(text[start : text.index("\nmethod")].replace("\\\n", " "))
    assert words[:6] == ["secretballot", "learn", "PRIVATE", "PUBLIC", "--target", "COL"]
    assert words[6:] == shlex.split(
        " ".join(learn_options(made_plan(teacher="sklearn.naive_bayes:GaussianNB")))
    )
