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
        ([1, 1], [], "row 1; .* each row of the pool once"),
        ([2, 3], [3], "row 3; .* each row of the pool once"),
        ([10], [], "row 10; it must propose rows from 0 to 9"),
        ([-1], [], "row -1; "),
        ([1.0], [], "integers"),
        ([True, False], [], "integers"),
        ([None], [], "integers"),
        ([[1, 2]], [], "a list"),
        (3, [], "a list"),
        ([1, 2, 3, 4], [], "a list of at most 3 rows"),
        (np.array([2**63], dtype=np.uint64), [], "row 9223372036854775808"),
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
