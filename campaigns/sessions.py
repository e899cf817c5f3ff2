"""Sessions at the price of their mechanism."""

from typing import Any

import secretballot as sb
from secretballot.accounting import epsilon_upper
from secretballot.core.mechanisms import Mechanism


def begun(
    teachers: sb.TrainedTeachers,
    mechanism: Mechanism,
    ledger: sb.Ledger,
    n_queries: int,
    *,
    delta: float = 1e-6,
    request: str = "session",
) -> Any:
    """Return a session of so many questions."""
    event = mechanism.event(teachers.shape(n_queries))
    price = sb.PrivacyBudget(epsilon_upper((event,), delta), delta)
    return sb.LabelingSession(
        teachers, mechanism, ledger, price, n_queries=n_queries, request=request
    )
