"""Plans in words: the figures add up, what binds is named, and every rival gets its reason."""

import shlex
from dataclasses import replace

import pytest
from made_plan import WEIGHED, candidate, made_plan

from secretballot.planning.plan.model import Estimate, Plan, Setting
from secretballot.planning.plan.text import (
    WIDTH,
    learn_options,
    losses,
    number_range,
    plan_text,
    recipe_name,
    rivals,
    share_range,
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


def test_losses_by_hand() -> None:
    parts = losses(one(0.86, 0.80, 0.77, best_vote=0.90))
    assert (parts.limit, parts.shards, parts.noise, parts.points) == pytest.approx(
        (0.10, 0.04, 0.06, 0.03)
    )
    # the student averages: the noise costs what it does not give back
    parts = losses(one(0.86, 0.60, 0.82))
    assert (parts.noise, parts.points) == pytest.approx((0.04, 0.0))
    # a student better than its vote makes up for small shards
    parts = losses(one(0.80, 0.70, 0.85, best_vote=0.90))
    assert (parts.limit, parts.shards, parts.noise, parts.points) == pytest.approx(
        (0.10, 0.05, 0.0, 0.0)
    )


def test_rivals_are_the_best_of_every_other_recipe() -> None:
    assert rivals(made_plan()) == [WEIGHED[2], WEIGHED[3], WEIGHED[4]]
    names = [recipe_name(rival.setting) for rival in rivals(made_plan())]
    assert names == ["noisy labels in rounds (margin)", "noisy labels", "sparse vector"]


def test_the_options_are_those_of_learn() -> None:
    assert (
        " ".join(learn_options(made_plan()))
        == "--epsilon 1 --delta 1e-06 --records 10000 --teachers 200 --queries 1000 --aggregator"
        " gaussian --release counts"
    )
    # the price that was planned, and none that is a little larger
    plan = made_plan()
    odd = replace(plan, task=replace(plan.task, epsilon=0.123456789))
    assert learn_options(odd)[0] == "--epsilon 0.123456789"
    for setting in (WEIGHED[2].setting, WEIGHED[4].setting):
        plan = replace(
            made_plan(teacher="tree"), recommended=next(c for c in WEIGHED if c.setting == setting)
        )
        words = shlex.split(" ".join(learn_options(plan)))
        assert words[-2:] == ["--teacher", "tree"]
        assert ("--strategy" in words) == (setting.strategy == "margin")
        assert ("--max-unstable" in words) == (setting.aggregator == "sparse-vector")


def test_the_command_of_the_page_is_one_a_shell_takes() -> None:
    text = plan_text(made_plan(teacher="sklearn.naive_bayes:GaussianNB"))
    start = text.index("secretballot learn")
    words = shlex.split(text[start : text.index("\nmethod")].replace("\\\n", " "))
    assert words[:6] == ["secretballot", "learn", "PRIVATE", "PUBLIC", "--target", "COL"]
    assert words[6:] == shlex.split(
        " ".join(learn_options(made_plan(teacher="sklearn.naive_bayes:GaussianNB")))
    )


def test_the_page_says_all_there_is() -> None:
    text = plan_text(made_plan())
    assert max(map(len, text.splitlines())) <= WIDTH
    flat = " ".join(text.split())
    for part in (
        "10,000 private records, 1,000 public points, 2 classes, epsilon 1, delta 1e-06",
        "answers 1,000 of 1,000 queries",
        "labels 0.700 (0.680 to 0.720) right",
        "student 0.840 (0.820 to 0.860) right; the most frequent class alone 0.600",
        "5 settings evaluated",
        "twice the private records: student 0.870 (0.850 to 0.890), 3.0 points more",
        "two students: student 0.840 (0.820 to 0.860), hardly more",
        "epsilon 0.1: nothing useful can be had",
        "1,000 queries; this plan",
        "Shards are alike.",
        "No private data were read",
        "must pay for that choice",
    ):
        assert part in flat, part


def test_estimates_in_words() -> None:
    assert share_range(Estimate(0.8234, 0.8, 0.85)) == "0.823 (0.800 to 0.850)"
    assert number_range(Estimate(1200.4, 1200.1, 1200.4)) == "1,200"
    assert number_range(Estimate(40, 20.6, 80)) == "40 (21 to 80)"
