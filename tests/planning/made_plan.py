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
    setting: Setting, vote: float, label: float, student: float, answered: float
) -> Candidate:
    answers = Estimate(answered, answered, answered)
    return Candidate(setting, 20.0, Expected(answers, share(vote), share(label), share(student)))


BEST = candidate(Setting(200, "gaussian", "counts", 1000), 0.86, 0.70, 0.84, 1000)
IN_ROUNDS = Setting(200, "gaussian", "labels", 300, strategy="margin")
STREAM = Setting(400, "sparse-vector", "labels", 1000, max_abstentions=2)
WEIGHED = (
    BEST,
    candidate(Setting(50, "gaussian", "counts", 1000), 0.90, 0.60, 0.80, 1000),
    candidate(IN_ROUNDS, 0.86, 0.81, 0.838, 300),
    candidate(Setting(200, "gaussian", "labels", 300), 0.86, 0.79, 0.78, 300),
    candidate(STREAM, 0.84, 0.92, 0.70, 40),
)


def made_plan() -> Plan:
    """Return a plan for 10,000 records, 1,000 public points and two classes."""
    points = ((0.1, None), (1.0, BEST), (4.0, WEIGHED[-1]))
    frontier = tuple(FrontierPoint(epsilon, best) for epsilon, best in points)
    improvements = (
        Improvement("twice the private records", share(0.87)),
        Improvement("two students", share(0.84)),
    )
    task = Task(10_000, 1_000, 2, 1.0, 1e-6)
    return Plan(task, ("Shards are alike.",), BEST, WEIGHED, 0.6, frontier, improvements, seed=0)
