"""Plans without what comes last."""

import pytest

from secretballot.planning import best_setting


@pytest.fixture
def recommended_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what a plan says of other budgets and sizes, which comes last and takes longest."""
    for part in ("_frontier_points", "_improvements_of"):
        monkeypatch.setattr(best_setting, part, lambda *_: ())
