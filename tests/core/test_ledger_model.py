"""The ledger against a model of a few lines, under random histories of calls, reopenings and
copies."""

import copy
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import pytest

from ledger_answers import answer as give
from ledger_answers import answer_of
from ledger_backends import Ledgers
from made_events import counts_event, pure_event
from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Ledger
from secretballot.exceptions import BudgetError, LedgerError

BUDGET = PrivacyBudget(1.0, 1e-5)
EPSILONS = (0.05, 0.1, 0.15, 0.3, 0.7)
DELTAS = (1e-9, 1e-7, 2e-6, 3e-6)
REQUESTS = "abcdefghijkl"


def decimal(value: float) -> Fraction:
    return Fraction(repr(value))


@dataclass
class Row:
    """What a ledger should know of a request."""

    number: int
    epsilon: float
    delta: float
    state: str = "reserved"
    answer: bytes | None = None


def reserve(ledger: Ledger, rows: dict[str, Row], request: str, rng: random.Random) -> None:
    epsilon, delta = rng.choice(EPSILONS), rng.choice(DELTAS)
    fits = sum(decimal(row.epsilon) for row in rows.values()) + decimal(epsilon) <= 1 and sum(
        decimal(row.delta) for row in rows.values()
    ) + decimal(delta) <= decimal(1e-5)
    for dear in ([pure_event(epsilon * 1.01, 1)], [counts_event(0.5, 1)]):
        with pytest.raises(BudgetError):
            ledger.reserve(dear, PrivacyBudget(epsilon, 1e-9), request=request, purpose="dear")
    bought = [pure_event(epsilon, 1)], PrivacyBudget(epsilon, delta)
    if request not in rows and fits:
        number = ledger.reserve(*bought, request=request, purpose="model")
        rows[request] = Row(number, epsilon, delta)
        assert number == len(rows)
    else:
        with pytest.raises(LedgerError if request in rows else BudgetError):
            ledger.reserve(*bought, request=request, purpose="model")


def close(ledger: Ledger, rows: dict[str, Row], request: str, rng: random.Random) -> None:
    row = rows.get(request, Row(99, 0, 0, "unknown"))
    answer = rng.choice([None, b"", rng.randbytes(9)])

    def store() -> None:
        if answer is None:
            ledger.forfeit(row.number, "model")
        else:
            give(ledger, row.number, answer)

    if row.state == "reserved":
        store()
        row.state, row.answer = "forfeited" if answer is None else "committed", answer
    else:
        with pytest.raises(LedgerError):
            store()


def keep_the_books(
    ledger: Ledger, reopen: Callable[[Ledger], Ledger], steps: int, rng: random.Random
) -> None:
    rows: dict[str, Row] = {}
    for _ in range(steps):
        work = rng.choice([reserve, reserve, close, close, None])
        if work is not None:
            work(ledger, rows, rng.choice(REQUESTS), rng)
        else:
            ledger = rng.choice([reopen, copy.deepcopy])(ledger)
        spent, left = ledger.spent(), ledger.remaining()
        exact = sum((decimal(row.epsilon) for row in rows.values()), Fraction(0))
        assert spent.epsilon == float(exact) <= BUDGET.epsilon
        assert spent.delta <= BUDGET.delta
        assert 0 <= left.epsilon <= float(1 - exact) + 1e-12
        assert left.delta >= 0
        assert [(e.id, e.epsilon, e.delta, e.state) for e in ledger.history()] == [
            (row.number, row.epsilon, row.delta, row.state) for row in rows.values()
        ]
        for request in rng.sample(REQUESTS, 3):
            row = rows.get(request)
            assert answer_of(ledger, request) == (row and row.answer)


@pytest.mark.parametrize("seed", range(8))
def test_a_ledger_in_memory_keeps_the_books_of_the_model(seed: int) -> None:
    ledger = Ledger.in_memory(dataset="registry", budget=BUDGET)
    keep_the_books(ledger, copy.deepcopy, 40, random.Random(seed))


def test_a_ledger_in_its_place_keeps_the_books_of_the_model(ledgers: Ledgers) -> None:
    for seed in (100, 101):
        ledger = Ledger(ledgers.place(str(seed)), dataset="registry", budget=BUDGET)
        keep_the_books(
            ledger,
            lambda one: pickle.loads(pickle.dumps(Ledger.open_existing(str(one.place)))),
            40,
            random.Random(seed),
        )
