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
    ("rows", "asked", "mend"),
    [
        ([1, 1], [], "row 1 twice"),
        ([2, 3], [3], "row 3 twice"),
        ([10], [], "row 10, outside of the pool; it must propose rows from 0 to 9"),
        ([-1], [], "row -1, outside"),
        ([1.0], [], "integers"),
        ([True, False], [], "integers"),
        (["1"], [], "integers"),
        ([None], [], "integers"),
        ([[1, 2]], [], "list of rows"),
        (3, [], "list of rows"),
        ([1, 2, 3, 4], [], "4 rows where 3 were wanted"),
        (np.array([2**63], dtype=np.uint64), [], "outside"),
    ],
)
def test_proposals_that_cannot_be_asked_are_refused(rows, asked, mend):
    selector = CheckedSelector(Scripted(asked, rows), POOL)
    selector.propose(3)
    with pytest.raises(DataError, match=mend):
        selector.propose(3)


def test_passive_rows_do_not_depend_on_the_rounds_and_follow_the_coins():
    one = PassiveSampling().start(POOL).propose(10).tolist()
    selector = PassiveSampling().start(POOL)
    assert [row for n in (3, 3, 4) for row in selector.propose(n).tolist()] == one
    other = PublicPool(X=POOL.X, classes=(0, 1), n_queries=5, random_state=1)
    assert PassiveSampling().start(other).propose(10).tolist() != one
