"""The ledger against a model of a few lines, under random histories of calls, reopenings and
copies."""

import copy
import pickle
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

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
REQUESTS = tuple("abcdefghijkl")


def decimal(value: float) -> Fraction:
    return Fraction(repr(value))


class Account(RuleBasedStateMachine):
    """What a ledger should do: a dictionary of requests, and two sums."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, list[object]] = {}  # request: [number, epsilon, delta, state, answer]
        self.highest = 0.0

    def open(self) -> Ledger:
        raise NotImplementedError

    def reopen(self, ledger: Ledger) -> Ledger:
        raise NotImplementedError

    @initialize()
    def start(self) -> None:
        self.ledger = self.open()

    def fits(self, epsilon: float, delta: float) -> bool:
        epsilons = [decimal(row[1]) for row in self.rows.values()]
        deltas = [decimal(row[2]) for row in self.rows.values()]
        return sum(epsilons) + decimal(epsilon) <= 1 and sum(deltas) + decimal(delta) <= decimal(
            1e-5
        )

    @rule(
        request=st.sampled_from(REQUESTS),
        epsilon=st.sampled_from(EPSILONS),
        delta=st.sampled_from(DELTAS),
    )
    def reserve(self, request: str, epsilon: float, delta: float) -> None:
        try:
            number = self.ledger.reserve(
                [pure_event(epsilon, 1)],
                PrivacyBudget(epsilon, delta),
                request=request,
                purpose="model",
            )
        except LedgerError:
            assert request in self.rows
        except BudgetError:
            assert request not in self.rows
            assert not self.fits(epsilon, delta)
        else:
            assert request not in self.rows
            assert self.fits(epsilon, delta)
            self.rows[request] = [number, epsilon, delta, "reserved", None]
            assert number == len(self.rows)

    @rule(request=st.sampled_from(REQUESTS), epsilon=st.sampled_from(EPSILONS))
    def reserve_below_price(self, request: str, epsilon: float) -> None:
        for events in ([pure_event(epsilon * 1.01, 1)], [counts_event(0.5, 1)]):
            with pytest.raises(BudgetError):
                self.ledger.reserve(
                    events, PrivacyBudget(epsilon, 1e-9), request=request, purpose="model"
                )

    @rule(request=st.sampled_from(REQUESTS), answer=st.binary(max_size=9))
    def commit(self, request: str, answer: bytes) -> None:
        self.close(request, "committed", answer)

    @rule(request=st.sampled_from(REQUESTS))
    def forfeit(self, request: str) -> None:
        self.close(request, "forfeited", None)

    def close(self, request: str, state: str, answer: bytes | None) -> None:
        row = self.rows.get(request, [99, 0, 0, "unknown", None])
        try:
            if answer is None:
                self.ledger.forfeit(row[0], "model")
            else:
                give(self.ledger, row[0], answer)
        except LedgerError:
            assert row[3] != "reserved"
        else:
            assert row[3] == "reserved"
            row[3:] = [state, answer]

    @rule()
    def come_back(self) -> None:
        self.ledger = self.reopen(self.ledger)

    @rule()
    def copy(self) -> None:
        self.ledger = copy.deepcopy(self.ledger)

    @invariant()
    def books_agree(self) -> None:
        spent = self.ledger.spent()
        assert self.highest <= spent.epsilon <= BUDGET.epsilon
        assert spent.delta <= BUDGET.delta
        self.highest = spent.epsilon
        assert spent.epsilon == float(
            sum((decimal(row[1]) for row in self.rows.values()), Fraction(0))
        )
        entries = self.ledger.history()
        assert [[e.id, e.epsilon, e.delta, e.state] for e in entries] == [
            row[:4] for row in self.rows.values()
        ]
        for request in REQUESTS:
            assert answer_of(self.ledger, request) == self.rows.get(request, [None] * 5)[4]

    @invariant()
    def what_is_left_can_be_bought_and_no_more(self) -> None:
        left, spent = self.ledger.remaining(), self.ledger.spent()
        assert left.epsilon <= float(decimal(1.0) - decimal(spent.epsilon)) + 1e-12
        assert left.epsilon >= 0
        assert left.delta >= 0


class AccountInMemory(Account):
    def open(self) -> Ledger:
        return Ledger.in_memory(dataset="registry", budget=BUDGET)

    def reopen(self, ledger: Ledger) -> Ledger:
        return copy.deepcopy(ledger)


def account_in(places: Ledgers) -> type[Account]:
    """Return a machine whose accounts are in files, or in a database."""

    class AccountInPlace(Account):
        opened = 0

        def open(self) -> Ledger:
            type(self).opened += 1
            place = places.place(f"account {self.opened}")
            return Ledger(place, dataset="registry", budget=BUDGET)

        def reopen(self, ledger: Ledger) -> Ledger:
            return pickle.loads(pickle.dumps(Ledger.open_existing(str(ledger.place))))

    return AccountInPlace


def keep_the_books(machine: type[Account], examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_ledger_in_memory_keeps_the_books_of_the_model() -> None:
    keep_the_books(AccountInMemory, 20)


def test_a_ledger_in_its_place_keeps_the_books_of_the_model(ledgers: Ledgers) -> None:
    keep_the_books(account_in(ledgers), 4)
