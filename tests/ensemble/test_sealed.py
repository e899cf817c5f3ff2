import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from secretballot.ensemble.sealed import Sealed

from secretballot.ensemble.diagnostics.sealed_result import Diagnosis
from secretballot.ensemble.range_scores import PrivateRangeScores
from secretballot.ensemble.scores import PrivateScores
from secretballot.ensemble.votes import VoteCounts

SECRET = 424242
HELD = [
    VoteCounts(np.array([[SECRET, 1]]), ["a", "b"], SECRET + 1),
    Diagnosis("margins", {"points": 1}, {"margins": np.array([SECRET])}),
]
WAYS: list[Callable[[Any], Any]] = [
    *(np.asarray, list, len, float, iter, copy.copy, copy.deepcopy, pickle.dumps),
    lambda held: held[0],
    lambda held: SECRET in held,
    lambda held: held.__getstate__(),
    lambda held: held.__dataframe__(),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("held", HELD, ids=lambda held: type(held).__name__)
def test_no_way_leads_out_of_what_is_sealed(held: Sealed, way: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"private (votes|diagnosis) refuses? to") as refused:
        way(held)
    assert str(SECRET) not in str(refused.value)
    assert held
    assert str(SECRET) not in repr(held) + held._repr_html_()


def test_all_that_hold_private_values_are_sealed() -> None:
    assert {VoteCounts, Diagnosis, PrivateScores, PrivateRangeScores} <= set(
        Sealed.__subclasses__()
    )
