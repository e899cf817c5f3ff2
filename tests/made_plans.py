"""Plans as the planner returns them, without planning."""

from secretballot.planning.plan_model import Candidate, Estimate, Plan, Setting, Task

HALF = Estimate(0.5, 0.4, 0.6)
COUNTS = Setting(20, "gaussian", "counts", 50)


def plan_for(setting=COUNTS, share=HALF, **task):
    """Return a plan that recommends a setting, of which so much is expected."""
    best = Candidate(setting, 10.0, Estimate(40, 30, 50), share)
    usual = {"n_records": 600, "n_public": 50, "n_classes": 2, "epsilon": 4.0, "delta": 1e-5}
    frontier = ((4.0, share),)
    return Plan(Task(**usual | task), best, (best,), 0.5, frontier, (), 0)
