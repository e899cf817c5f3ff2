"""What has no price, or cannot be calibrated, is refused in a sentence that names the word at
fault."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest

from made_events import (
    abstention_event,
    confident_event,
    counts_event,
    json_of,
    pure_event,
    sampled_event,
    sparse_event,
    stable_event,
    table_event,
)
from secretballot.accounting import (
    PrivacyBudget,
    RenyiFilter,
    calibrate_abstention_table,
    calibrate_gaussian,
    calibrate_sparse_vector,
    calibrate_stream,
    calibrate_vote_table,
    confident_labels,
    delta_upper,
    event_in,
    noisy_votes,
    price,
    sparse_vector,
    teacher_shape,
    vote_quantiles,
)
from secretballot.accounting.calibration import largest_sample, sample_grid, stream_budget
from secretballot.exceptions import ParameterError

BUDGET, PURE, LEAST = (PrivacyBudget(1.0, delta) for delta in (1e-6, 0.0, 1e-305))
NONE, HALF = PrivacyBudget(1e-13, 1e-300), 2**52
SHAPE, STREAM = teacher_shape(10, 2, 250), sparse_event(3.0, 5.0, 20, 2)
COUNTS, SPARSE = json_of(counts_event(1.0, 1)), json_of(sparse_event(1.0, 1.0, 1, 1))
SUMS = {"kind": "vector-sum", "squared_sensitivity": 1, "coordinates": 1}
CALIBRATIONS = ("tight", "liu2021", "btt2018")
TABLE = json_of(table_event((HALF, HALF // 2, HALF // 4), 3, 10))


def sampled(**changes: Any) -> object:
    given = {"stream": STREAM, "sampled": 30, "out_of": 400, "relation": "replace-one"}
    return sampled_event(**{**given, **changes})


def relabelled(
    budget: PrivacyBudget = BUDGET,
    relation: str = "replace-one",
    n_records: int | None = 10,
    eta: float = 1.0,
) -> object:
    out_of = sample_grid(relation, n_records)
    stream = calibrate_stream(stream_budget(budget, relation, eta), 1)
    return largest_sample(budget, stream, out_of, relation, eta)


def confident(budget: PrivacyBudget = BUDGET, **settings: Any) -> object:
    return confident_labels(budget, SHAPE, **{"threshold": 5, **settings})


def sparse(budget: PrivacyBudget = BUDGET, **settings: Any) -> object:
    return sparse_vector(budget, 10, **{"max_abstentions": 1, **settings})


def cost(**given: float) -> object:
    return price([counts_event(1.0, 1)], **given)


def table(**changed: Any) -> object:
    drawn = {key: changed.pop(key) for key in ("weights", "n_teachers") if key in changed}
    return event_in(TABLE | {"chances": TABLE["chances"] | drawn} | changed)


# whose conversion alone costs more
DEAR_ORDER = {"budget": BUDGET, "max_abstentions": 5, "order": 1.5}
#: A function, a word of its sentence (a space where that is pydantic's), and what it is given.
REFUSED: list[tuple[Any, ...]] = [
    (calibrate_gaussian, "Laplace", (PURE, 3)),
    (calibrate_gaussian, "No noise fits", (NONE, 10**12)),
    (calibrate_abstention_table, "delta", (PURE, 5)),
    (calibrate_abstention_table, "max_abstentions", (LEAST, 5), DEAR_ORDER),
    (calibrate_vote_table, "delta", (PURE, 10, 100)),
    (calibrate_vote_table, " ", (BUDGET, 0, 10), (BUDGET, 10, 0), (BUDGET, 1.5, 10)),
    (calibrate_sparse_vector, "max_abstentions", (LEAST, 1)),
    (sparse, "delta", *({"budget": PURE, "calibration": one} for one in CALIBRATIONS)),
    (sparse, "max_abstentions", {"max_abstentions": 0}),
    (sparse, "calibration", {"calibration": "paper"}),
    (confident, "delta is 0", {"budget": PURE}),
    (confident, "threshold is 251, more votes than 250 teachers", {"threshold": 251}),
    (confident, "threshold", {"threshold": 0}, {"threshold": 2.5}),
    (confident, "one answer a query", {"max_answers": 11}),
    (relabelled, "delta", {"budget": PURE}),
    (relabelled, "n_records", {"n_records": None}),
    (relabelled, "more records", {"budget": PrivacyBudget(0.1, 1e-6), "n_records": 3}),
    (relabelled, "private", {"relation": "add-remove"}),
    (relabelled, "relation", {"relation": "user"}),
    (relabelled, "relabel_epsilon", {"eta": 0.0}),
    (noisy_votes, "release", {"budget": BUDGET, "shape": SHAPE, "release": "votes"}),
    (noisy_votes, "noise", {"budget": BUDGET, "shape": SHAPE, "noise": "uniform"}),
    *((vote_quantiles, "rank", {"budget": PURE, "shape": SHAPE, "rank": n}) for n in (0, 251)),
    (teacher_shape, " ", (0, 2, 9), (3, 1, 9), (3, 2, 0)),
    (pure_event, "epsilon", (1e13, 1)),
    (table_event, "weights", (itertools.repeat(HALF - 1), 1, 9)),  # a list that never ends
    (abstention_event, "order", (math.nan, 0.1, 0.1, 1), (1.0, 0.1, 0.1, 1)),
    (abstention_event, " ", (2.0, 0.0, 0.1, 1), (2.0, 0.1, 0.6, 1), (2.0, 0.1, 0.1, 0)),
    (delta_upper, " ", ([], 1.0), (["gaussian"], 1.0), ([None], 1.0)),
    (cost, " ", {}, {"epsilon": 1.0, "delta": 1e-6}, {"epsilon": math.nan}),
    (cost, " ", {"delta": 0.0}, {"delta": math.nan}),
    (RenyiFilter, "delta", (PURE,)),
    (RenyiFilter, "order", (BUDGET, 1.0), (BUDGET, 2.0)),
    (sampled, " ", {"sampled": 0}, {"sampled": 401}, {"sampled": 1.5}, {"out_of": 10**13}),
    (sampled, " ", {"relation": "both"}, {"stream": pure_event(1.0, 1)}),
    (sampled, " ", *({"relabel_epsilon": loss} for loss in (0.0, math.nan, 1e3))),
    (table, " ", {"queries": 0}, {"n_teachers": 0}, {"n_teachers": 2.5}),
    (table, " ", *({"weights": w} for w in ([], [HALF], [HALF, 0], [HALF, 1.5], [HALF, True]))),
    (
        table,
        " ",
        *({"weights": w} for w in ([HALF, 5, 6], [HALF + 1, 5], [HALF, *range(9, 3, -1)])),
    ),
    (event_in, " ", ({1: 2},), ([],), (None,), ({"sigma": 1.0, "shifts": 1},)),
    (event_in, " ", ({**COUNTS, "kind": "gauss"},), ({**COUNTS, "extra": 0},)),
    (event_in, " ", *(({**COUNTS, "sigma": sigma},) for sigma in (math.nan, "1", True))),
    (event_in, " ", *(({**COUNTS, "shifts": n},) for n in (0, 1.0, 10**12 + 1, {1}))),
    (event_in, " ", ({"kind": "counts", "sigma": 1.0},), ({**SPARSE, "refresh": False},)),
    (event_in, " ", ({"kind": "binary-labels", "chances": {"sigma": 1.0}, "queries": 1},)),
    (event_in, " ", ({**SUMS, "sigmas": [1.0]},)),
    (PrivacyBudget, "a number below 1e308", (10**400, 1e-6)),
    (PrivacyBudget, "delta", (1.0, 1.0), (1.0, math.nan), (1.0, -1e-9)),
    (delta_upper, "no event", ([counts_event(1.0, 1), None], 1.0)),
    # which fails with some chance
    (price, "delta", {"events": [stable_event(4.0, 60, 1)], "delta": 0.0}),
    (confident_event, "asked", (1.0, 1.0, 1, 2, 2)),
    (confident_event, "A threshold", (1.0, 1.0, 2, 1, 2, 4, 3)),
]


@pytest.mark.parametrize(
    ("work", "word", "given"),
    [(work, word, given) for work, word, *some in REFUSED for given in some],
)
def test_what_has_no_price_is_refused(work: Callable[..., object], word: str, given: Any) -> None:
    with pytest.raises(ParameterError, match=word):
        work(**given) if isinstance(given, dict) else work(*given)


def test_what_is_changed_there_is_right_as_it_stands() -> None:
    assert json_of(table()) == TABLE
    assert sampled(relabel_epsilon=1.0)
    assert confident()
    assert cost(epsilon=1.0)
    assert {event_in(one).kind for one in (COUNTS, SPARSE)} == {"counts", "sparse-stream"}
