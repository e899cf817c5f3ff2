"""Plans in words: the figures add up, what binds is named, and every rival gets its reason."""

import re
import shlex
from dataclasses import replace

import pytest
from made_plan import BEST, WEIGHED, candidate, made_plan, share

from secretballot.aggregation import GaussianAggregator
from secretballot.planning.plan.model import Estimate, FrontierPoint, Improvement, Plan, Setting
from secretballot.planning.plan.text import (
    WIDTH,
    learn_options,
    losses,
    number_range,
    plan_text,
    reasons,
    recipe_name,
    rivals,
    share_range,
)
from secretballot.privacy.accounting import PrivacyBudget


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


@pytest.mark.parametrize(
    ("plan", "binds"),
    [
        (one(0.9, 0.7, 0.69), "What binds is noise against the lead of the winning class"),
        (one(0.8, 0.8, 0.79, best_vote=0.9), "What binds is too few records per teacher, 50 each"),
        (
            one(0.9, 0.88, 0.7),
            "What binds is too few answers to learn from, 300 of 300 queries: 18.0 points",
        ),
        (one(0.9, 0.898, 0.896), "Beyond that nothing binds"),
    ],
    ids=("noise", "shards", "points", "nothing"),
)
def test_what_binds_is_the_largest_loss(plan: Plan, binds: str) -> None:
    text = " ".join(reasons(plan))
    assert binds in text
    assert text.count("binds") == 1


def test_a_student_that_may_be_worse_than_naming_one_class_is_said_first() -> None:
    assert "Beware" not in plan_text(made_plan(constant=0.819))
    plan = made_plan(constant=0.82)
    assert reasons(plan)[0].startswith(
        "Beware: always naming the most frequent class is right 0.820 of the time"
    )


def test_rivals_are_the_best_of_every_other_recipe() -> None:
    assert rivals(made_plan()) == [WEIGHED[2], WEIGHED[3], WEIGHED[4]]
    names = [recipe_name(rival.setting) for rival in rivals(made_plan())]
    assert names == ["noisy labels in rounds (margin)", "noisy labels", "sparse vector"]


def test_each_rival_has_its_figures_and_its_reason() -> None:
    rounds, labels, vector = reasons(made_plan())[-3:]
    assert rounds.startswith(
        "Noisy labels in rounds (margin) (200 teachers, 300 queries) would do no worse"
    )
    assert "0.838 (0.818 to 0.858)" in rounds
    assert labels.startswith(
        "Why not noisy labels (200 teachers, 300 queries): student 0.780 (0.760 to 0.800)"
    )
    assert "overlap" not in labels
    assert "2 abstentions allowed" in vector
    assert "since 40 (20 to 80) of 1,000 queries would be answered" in vector


def test_other_numbers_of_teachers_are_told_from_the_recommended() -> None:
    more = candidate(Setting(500, "gaussian", "counts", 1000), vote=0.80, label=0.78, student=0.79)
    worst = candidate(Setting(900, "gaussian", "counts", 1000), vote=0.70, label=0.70, student=0.70)
    text = [
        sentence
        for sentence in reasons(made_plan(evaluated=(*WEIGHED, more, worst)))
        if re.match(r"Why not \d+ teachers", sentence)
    ]
    assert text == [
        (
            "Why not 50 teachers, 1,000 queries: student 0.800 (0.780 to 0.820), since its labels"
            " would be right 0.600 of the time; the ranges overlap."
        ),
        (
            "Why not 500 teachers, 1,000 queries: student 0.790 (0.770 to 0.810), since its votes"
            " would be right 0.800 of the time."
        ),
    ]


def test_a_rival_whose_range_reaches_into_ours_is_said_to() -> None:
    near = candidate(Setting(200, "gaussian", "labels", 300), vote=0.86, label=0.70, student=0.81)
    assert reasons(made_plan(evaluated=(BEST, near)))[-1].endswith("; the ranges overlap.")
    worse = replace(near, expected=replace(near.expected, vote_accuracy=share(0.5)))
    assert (
        "since its votes would be right 0.500 of the time"
        in reasons(made_plan(evaluated=(BEST, worse)))[-1]
    )


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


def test_where_nothing_helps_that_is_said() -> None:
    text = plan_text(made_plan(improvements=(Improvement("twice the epsilon", share(0.842)),)))
    assert "None of these would bring half a point" in " ".join(text.split())
    bare = plan_text(made_plan(improvements=(), frontier=()))
    assert "What would make it better" not in bare
    assert "At other budgets" not in bare


def test_a_budget_for_which_nothing_is_useful_is_told_in_a_plan_too() -> None:
    text = plan_text(made_plan(frontier=(FrontierPoint(1.0, None),)))
    assert "epsilon 1: nothing useful can be had; this plan" in text


def test_estimates_in_words() -> None:
    assert share_range(Estimate(0.8234, 0.8, 0.85)) == "0.823 (0.800 to 0.850)"
    assert number_range(Estimate(1200.4, 1200.1, 1200.4)) == "1,200"
    assert number_range(Estimate(40, 20.6, 80)) == "40 (21 to 80)"


def test_a_careless_delta_is_said_first() -> None:
    plan = made_plan()
    careless = replace(plan, task=replace(plan.task, delta=1e-4))
    assert reasons(careless)[0].startswith(
        "Beware: delta 0.0001 is not below one over the 10,000 records"
    )
    assert reasons(careless)[1:] == reasons(plan)


@pytest.mark.parametrize("release", ["labels", "counts"])
def test_what_two_classes_would_save_is_true(release: str) -> None:
    budget = PrivacyBudget(epsilon=1.0, delta=1e-6)
    many, two = (
        GaussianAggregator.calibrate(budget, 300, n_classes=c, release=release) for c in (10, 2)
    )
    assert many.sigma / two.sigma == pytest.approx(1.4, abs=0.05)
    best = replace(BEST, setting=replace(BEST.setting, release=release))
    plan = made_plan(best, (best,))
    assert "two classes" not in plan_text(plan)
    words = " ".join(plan_text(replace(plan, task=replace(plan.task, n_classes=10))).split())
    assert (
        "two classes, if the question can be put so: the same number of"
        f" {'noisy ' * (release == 'counts')}{release}" in words
    )
    assert "1.4 times smaller" in words
