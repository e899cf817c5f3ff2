"""How plans write estimates."""

from secretballot.planning.plan.estimates import Estimate


def share_range(estimate: Estimate) -> str:
    """Return a share with its range, such as "0.82 (0.79 to 0.85)"."""
    return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"


def number_range(estimate: Estimate) -> str:
    """Return a number of answers with its range, alone where the range is that one number."""
    value, low, high = (f"{round(end):,}" for end in (estimate.value, estimate.low, estimate.high))
    return value if low == high else f"{value} ({low} to {high})"
