"""The table of chances that answers the least stable queries within a budget, and the better of it
and the sparse vector.

What is returned was priced.
"""

import functools
import math
from contextlib import suppress

import numpy as np

from secretballot._typing import FloatArray
from secretballot._validation import check_count
from secretballot.accounting.abstention_table import distance_answered
from secretballot.accounting.calibration import calibrate_sparse_vector, needed_distance
from secretballot.accounting.rounding import check_has_delta
from secretballot.core.events import (
    MAX_CHARGE,
    MAX_ORDER,
    MIN_ANSWER,
    MIN_CHARGE,
    MIN_ORDER,
    Stream,
    TableStream,
)
from secretballot.core.losses import ORDERS, lost_epsilon
from secretballot.core.price import PrivacyBudget, delta_upper
from secretballot.exceptions import Parameter, ParameterError

# Part of delta kept for wrong answers. An answer at a tie may be ten times rarer for a few votes
# more of distance, so hardly any of delta should go to it.
_FAILURE_SHARE = 0.04
_STEPS = (16, 4, 1)  # among the orders, of the search for the best one
_MARGIN = 1e-8  # relative, of a charge; more than what the accountant rounds up
_USUAL = 0.999  # tables are compared by where they answer with this probability, as streams are


def calibrate_abstention_table(
    budget: PrivacyBudget, max_abstentions: int, *, order: float | None = None
) -> TableStream:
    """Return the table that answers the least stable queries within the budget.

    Compared by the distance at which a query is answered with probability 0.999.

    Parameters
    ----------
    budget : PrivacyBudget
        With delta above 0.
    max_abstentions : int
        Number T of abstentions at which the stream stops.
    order : float, optional
        Order of the table's inequalities; the best one by default. A Renyi filter of another order
        admits the table only if this one is at least its own.

    Raises
    ------
    ParameterError
        If delta is 0, a number is out of its range, or no table keeps the budget.
    """
    check_has_delta(budget, "a table of abstentions")
    unstable = check_count("max_abstentions", max_abstentions)
    found = _best_table(budget, unstable) if order is None else _table_at(budget, unstable, order)
    if found is None:
        raise ParameterError(
            "No table with ",
            Parameter("max_abstentions"),
            f" {unstable} keeps epsilon {budget.epsilon}, delta {budget.delta}; use fewer"
            " abstentions, a larger epsilon or a larger delta.",
        )
    return found


@functools.lru_cache(maxsize=256)  # plans, labels and their certificates ask for the same ones
def _best_table(budget: PrivacyBudget, t: int) -> TableStream | None:
    known: dict[int, float] = {}

    def distance(place: int) -> float:
        if place not in known:
            order = float(ORDERS[place]) if 0 <= place < len(ORDERS) else None
            event = None if order is None else _table_at(budget, t, order)
            known[place] = math.inf if event is None else distance_answered(event, _USUAL)
        return known[place]

    # where noise is Gaussian the same order is best: most divergence for its order
    best = int(np.argmax(_divergence_left(budget, ORDERS) / ORDERS))
    for step in _STEPS:
        while True:
            better = min((best - step, best, best + step), key=distance)
            if better == best or not distance(better) < distance(best):
                break
            best = better
    return _table_at(budget, t, float(ORDERS[best])) if distance(best) < math.inf else None


def _divergence_left(budget: PrivacyBudget, orders: FloatArray) -> FloatArray:
    """Return the largest divergence of each order that keeps the budget less the failures."""
    target = (1 - _FAILURE_SHARE) * budget.delta
    return budget.epsilon - np.maximum(0.0, lost_epsilon(orders, target))


def _table_at(budget: PrivacyBudget, t: int, order: float) -> TableStream | None:
    """Return the table of an order that uses up the budget, None where there is none."""
    left = float(_divergence_left(budget, np.array([order]))[0])
    charge = (order - 1) * left / t * (1 - _MARGIN)
    answer = -math.expm1(math.log1p(-_FAILURE_SHARE * budget.delta) / t) * (1 - _MARGIN)
    if not (MIN_ORDER <= order <= MAX_ORDER and charge >= MIN_CHARGE and answer >= MIN_ANSWER):
        return None
    event = TableStream(
        order=order, charge=min(charge, MAX_CHARGE), false_answer=answer, abstentions=t
    )
    return event if delta_upper([event], budget.epsilon) <= budget.delta else None


@functools.lru_cache(maxsize=256)
def calibrate_stream(budget: PrivacyBudget, max_abstentions: int) -> Stream:
    """Return the sparse vector or the table, whichever answers the less stable queries.

    Compared by the distance at which a query is answered with probability 0.999. The sparse vector
    is better where one abstention ends the stream.

    Raises
    ------
    ParameterError
        If delta is 0, `max_abstentions` is not a positive integer, or neither keeps the budget.
    """
    try:
        vector = calibrate_sparse_vector(budget, max_abstentions)
    except ParameterError:
        return calibrate_abstention_table(budget, max_abstentions)
    with suppress(ParameterError):
        both: list[Stream] = [vector, calibrate_abstention_table(budget, max_abstentions)]
        return min(both, key=needed_distance)
    return vector
