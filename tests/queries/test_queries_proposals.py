import numpy as np
import pytest

from secretballot.exceptions import DataError
from secretballot.queries import (
    CheckedSelector,
    PassiveSampling,
    PublicPool,
    QuerySelector,
    QueryStrategy,
)

POOL = PublicPool(X=np.zeros((10, 1)), classes=(0, 1), n_queries=5, random_state=0)


class Scripted(QueryStrategy, QuerySelector):
    """Proposes what the script says, whatever the answers are."""

    def __init__(self, *script):
        self.script = list(script)

    def start(self, pool):
        return self

    def describe(self):
        return {"name": "scripted"}

    def propose(self, n):
        return self.script.pop(0)

    def receive(self, released):
        self.received = released


@pytest.mark.parametrize(
    "rows",
    [
        *([1, 1], [2, 3], [10], [-1], [1.0], [True, False], [None], [[1, 2]], 5, [1, 2, 4, 5]),
        np.array([2**63], dtype=np.uint64),
    ],
    ids=str,
)
def test_proposals_that_cannot_be_asked_are_refused(rows):
    selector = CheckedSelector(Scripted([3], rows), POOL)
    selector.propose(3)
    with pytest.raises(DataError, match="at most 3 integers, each row from 0 to 9 once"):
        selector.propose(3)


def test_passive_rows_do_not_depend_on_the_rounds_and_follow_the_coins():
    one = PassiveSampling().start(POOL).propose(10).tolist()
    selector = PassiveSampling().start(POOL)
    assert [row for n in (3, 3, 4) for row in selector.propose(n).tolist()] == one
    other = PublicPool(X=POOL.X, classes=(0, 1), n_queries=5, random_state=1)
    assert PassiveSampling().start(other).propose(10).tolist() != one
