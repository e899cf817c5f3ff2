"""A plan made by hand, whose figures are easy to add up."""

from secretballot.planning.plan.model import (
    Candidate,
    Estimate,
    Expected,
    FrontierPoint,
    Improvement,
    Plan,
    Setting,
    Task,
)


def share(value: float, spread: float = 0.02) -> Estimate:
    return Estimate(value, value - spread, value + spread)


def candidate(
    setting: Setting,
    vote: float,
    label: float,
    student: float,
    answered: float | None = None,
    noise: float = 20.0,
) -> Candidate:
    """Return a candidate; all queries are answered unless said."""
    answers = float(setting.n_queries) if answered is None else answered
    ends = (answers, answers) if answered is None else (answers / 2, 2 * answers)
    expected = Expected(Estimate(answers, *ends), share(vote, 0.0), share(label), share(student))
    return Candidate(setting, noise, expected)


BEST = candidate(Setting(200, "gaussian", "counts", 1000), vote=0.86, label=0.70, student=0.84)
WEIGHED = (
    BEST,
    candidate(Setting(50, "gaussian", "counts", 1000), vote=0.90, label=0.60, student=0.80),
    candidate(
        Setting(200, "gaussian", "labels", 300, strategy="margin"),
        vote=0.86,
        label=0.81,
        student=0.838,
    ),
    candidate(Setting(200, "gaussian", "labels", 300), vote=0.86, label=0.79, student=0.78),
    candidate(
        Setting(400, "sparse-vector", "labels", 1000, max_abstentions=2),
        vote=0.84,
        label=0.92,
        student=0.70,
        answered=40,
    ),
)


def made_plan(
    best: Candidate = BEST,
    evaluated: tuple[Candidate, ...] = WEIGHED,
    *,
    constant: float = 0.6,
    frontier: tuple[FrontierPoint, ...] | None = None,
    improvements: tuple[Improvement, ...] | None = None,
    teacher: str = "logistic",
) -> Plan:
    """Return a plan for 10,000 records, 1,000 public points and two classes."""
    if frontier is None:
        frontier = (
            FrontierPoint(0.1, None),
            FrontierPoint(1.0, best),
            FrontierPoint(4.0, evaluated[-1]),
        )
    if improvements is None:
        improvements = (
            Improvement("twice the private records", share(0.87)),
            Improvement("two students", share(0.84)),
        )
    task = Task(10_000, 1_000, 2, 1.0, 1e-6, teacher)
    return Plan(
        task,
        ("Shards are alike.",),
        best,
        evaluated,
        constant,
        frontier,
        improvements,
        seed=0,
    )
