"""A plan made by hand, whose figures are easy to add up."""

from secretballot.planning.plan_model import Candidate, Estimate, Plan, Setting, Task


def share(value, spread=0.02):
    return Estimate(value, value - spread, value + spread)


def candidate(setting, student, answered):
    answers = Estimate(answered, answered, answered)
    return Candidate(setting, 20.0, answers, share(student))


BEST = candidate(Setting(200, "gaussian", "counts", 1000), 0.84, 1000)
IN_ROUNDS = Setting(200, "gaussian", "labels", 300, strategy="margin")
STREAM = Setting(400, "sparse-vector", "labels", 1000, max_abstentions=2)
WEIGHED = (
    BEST,
    candidate(Setting(50, "gaussian", "counts", 1000), 0.80, 1000),
    candidate(IN_ROUNDS, 0.838, 300),
    candidate(Setting(200, "gaussian", "labels", 300), 0.78, 300),
    candidate(STREAM, 0.70, 40),
)


def made_plan():
    """Return a plan for 10,000 records, 1,000 public points and two classes."""
    frontier = ((0.1, None), (1.0, share(0.84)), (4.0, share(0.7)))
    improvements = ("twice the private records", share(0.87)), ("two students", share(0.84))
    task = Task(10_000, 1_000, 2, 1.0, 1e-6)
    return Plan(task, BEST, WEIGHED, 0.6, frontier, improvements, seed=0)
