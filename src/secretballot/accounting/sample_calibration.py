"""How large a secret sample may be, and what it may be asked by, under a budget.

What is returned was priced.
"""

import functools
import math

from secretballot._validation import (
    RELATIONS,
    Relation,
    check_choice,
    check_count,
    check_positive,
)
from secretballot.accounting.rounding import bisect_down, check_has_delta, first_integer
from secretballot.core.events import Sampled, Stream
from secretballot.core.price import PrivacyBudget, delta_upper
from secretballot.core.sampling import LARGE, relabelling_loss
from secretballot.exceptions import Parameter, ParameterError

# denominator of sampling rates under add-remove, where no number of records is known
_RATE_GRID = 10**6
# of the stream inside; a rate so small that more would do leaves no record to sample
_MOST_DELTA = 0.5


def sample_grid(relation: str, n_records: int | None) -> int:
    """Return out of how many the sample is drawn.

    The records, or a grid of rates where their number is private.

    Raises
    ------
    ParameterError
        If the number of records is missing under "replace-one", or given under "add-remove".
    """
    if check_choice("relation", relation, RELATIONS) == "replace-one":
        return check_count("n_records", n_records)
    if n_records is not None:
        raise ParameterError(
            Parameter("n_records"),
            " is given with 'add-remove', where it is private; leave it out.",
        )
    return _RATE_GRID


def stream_budget(budget: PrivacyBudget, relation: str, relabel_epsilon: float) -> PrivacyBudget:
    """Return the budget of the stream inside at which the sample serves best.

    Parameters
    ----------
    budget : PrivacyBudget
        For the whole; delta above 0.
    relation : {"replace-one", "add-remove"}
    relabel_epsilon : float
        Parameter of the choice of a labelling, in nats.

    Raises
    ------
    ParameterError
        If delta is 0, or `relabel_epsilon` not positive.

    Notes
    -----
    At the stream's epsilon e the rate is about q = min(1, (e^epsilon - 1) / (c e^e - 1)). The
    stream needs teachers in proportion to its noise, about 1 / e, so that a teacher's shard grows
    with q e. That is largest where c e^e (1 - e) = 1, at e = .94 for c = 7.02, or where q reaches 1
    if this comes later.
    """
    check_has_delta(budget, "the sparse vector")
    loss = relabelling_loss(relation, check_positive("relabel_epsilon", relabel_epsilon))
    best = bisect_down(lambda e: math.exp(loss + e) * (1 - e) <= 1, 0.0, 1.0, tolerance=1e-9)
    inside = max(best, budget.epsilon - loss)
    rate = math.expm1(min(budget.epsilon, LARGE)) / math.expm1(min(inside + loss, LARGE))
    return PrivacyBudget(inside, min(_MOST_DELTA, budget.delta / min(1.0, rate)))


@functools.lru_cache(maxsize=64)
def largest_sample(
    budget: PrivacyBudget,
    stream: Stream,
    out_of: int,
    relation: Relation,
    relabel_epsilon: float,
) -> Sampled:
    """Return the stream on the largest sample that the budget allows.

    Raises
    ------
    ParameterError
        If it does not allow one record to be sampled.
    """

    one = Sampled(
        stream=stream, sampled=1, out_of=out_of, relation=relation, relabel_epsilon=relabel_epsilon
    )

    def is_largest(sampled: int) -> bool:
        if sampled >= out_of:
            return True
        more = one.changed(sampled=sampled + 1)
        return delta_upper([more], budget.epsilon) > budget.delta

    # the price rises with the sample
    if largest := first_integer(is_largest):
        return one.changed(sampled=largest)
    raise ParameterError(
        f"epsilon {budget.epsilon:g} and delta {budget.delta:g} do not allow one of {out_of}"
        f" records to be sampled and relabelled at {relabel_epsilon:g}; use a larger epsilon, a"
        " smaller relabel_epsilon, or more records."
    )
