"""The ledger as an account: what may be bought, what stays spent, and what a handle is."""

import contextlib
import multiprocessing
import os
import pickle
import re
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from fractions import Fraction
from pathlib import Path

import pytest

from ledger_backends import DatabaseLedgers, Ledgers
from made_events import counts_event, pure_event
from secretballot.accounting import PrivacyBudget, Pure
from secretballot.core.ledger import Amount, Ledger
from secretballot.exceptions import BudgetError, LedgerError, ParameterError

BUDGET = PrivacyBudget(1.0, 1e-5)
EVENTS = (pure_event(0.25, 1),)
PRICE = PrivacyBudget(0.25, 1e-9)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def place(ledgers: Ledgers) -> str:
    """A place where nothing is: a file's, and a database's."""
    return ledgers.place()


@pytest.fixture(params=["file", "memory", "postgres"])
def ledger(request: pytest.FixtureRequest, path: Path) -> Iterator[Ledger]:
    if request.param == "memory":
        yield Ledger.in_memory(dataset="registry", budget=BUDGET)
        return
    if request.param == "file":
        yield Ledger(path, dataset="registry", budget=BUDGET)
        return
    places = DatabaseLedgers(request.getfixturevalue("database").url)
    yield Ledger(places.place(), dataset="registry", budget=BUDGET)
    places.drop_all()


def buy(ledger: Ledger, request: str, purpose: str = "test") -> int:
    return ledger.reserve(EVENTS, PRICE, request=request, purpose=purpose)


def test_reserve_refuses_when_over_budget_and_spends_nothing(ledger: Ledger) -> None:
    for request in "abcd":
        buy(ledger, request)
    with pytest.raises(
        BudgetError, match=r"of its budget \(1, 1e-05\), \(1, 4e-09\) is spent, .* \(1.25, 5e-09\);"
    ):
        buy(ledger, "e")
    assert ledger.spent().epsilon == 1.0
    assert len(ledger.history()) == 4


def test_reserve_prices_what_is_stored_not_what_the_caller_s_class_says(ledger: Ledger) -> None:
    class Flattering(Pure):
        def pure(self) -> Fraction:
            return Fraction(0)

    with pytest.raises(BudgetError):
        ledger.reserve([Flattering(epsilon=5.0, count=1)], PRICE, request="a", purpose="")


def test_reserve_fails_closed_when_the_price_is_nan(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "secretballot.core.ledger.account.delta_upper", lambda events, epsilon: float("nan")
    )
    with pytest.raises(BudgetError):
        buy(ledger, "a")


def test_history_tells_everything_public(ledger: Ledger) -> None:
    events = (pure_event(0.1, 1), pure_event(0.05, 3))
    ledger.reserve(events, PRICE, request="a", purpose="first\nline two ü")
    ledger.forfeit(1, "the disk broke")
    (entry,) = ledger.history()
    assert (entry.id, entry.request, entry.purpose) == (1, "a", "first\nline two ü")
    assert (entry.events, entry.epsilon, entry.delta) == (events, 0.25, 1e-9)
    assert (entry.state, entry.reason) == ("forfeited", "the disk broke")
    assert datetime.fromisoformat(entry.reserved_at).utcoffset().total_seconds() == 0


@pytest.mark.parametrize(
    "arguments",
    [
        *({"events": ()}, {"events": ("pure",)}, {"request": ""}, {"request": "  "}),
        *({"request": "a\0b"}, {"request": "\ud800"}, {"request": 7}, {"purpose": None}),
    ],
    ids=repr,
)
def test_reserve_refuses_bad_arguments(ledger: Ledger, arguments: dict[str, object]) -> None:
    good = {"events": EVENTS, "price": PRICE, "request": "a", "purpose": ""}
    given = {**good, **arguments}
    with pytest.raises(ParameterError):
        ledger.reserve(given.pop("events"), given.pop("price"), **given)
    assert ledger.history() == []


@pytest.mark.parametrize(
    "arguments",
    [
        *({"dataset": ""}, {"dataset": 3}, {"budget": (1, 1e-5)}, {"composition": "advanced"}),
        *({"composition": 1}, {"unit": "patient"}, {"unit": 1}, {"relation": "add"}),
        {"relation": 1},
    ],
    ids=repr,
)
def test_opening_refuses_bad_terms_and_makes_no_file(
    path: Path, ledgers: Ledgers, arguments: dict[str, object]
) -> None:
    with pytest.raises(ParameterError):
        Ledger(ledgers.place(), **{"dataset": "registry", "budget": BUDGET, **arguments})
    with pytest.raises(ParameterError):
        Ledger.in_memory(**{"dataset": "registry", "budget": BUDGET, **arguments})
    assert os.listdir(path.parent) == []
    assert not Ledger.exists(ledgers.place())


def test_file_is_private_to_its_owner(path: Path) -> None:
    buy(Ledger(path, dataset="registry", budget=BUDGET), "a")
    assert {stat.S_IMODE(item.stat().st_mode) for item in path.parent.iterdir()} == {0o600}


def test_terms_are_fixed_at_creation(place: str) -> None:
    Ledger(place, dataset="registry", budget=BUDGET)
    Ledger(place, dataset="registry", budget=BUDGET, composition="basic")
    for other in (
        {"dataset": "other"},
        {"budget": PrivacyBudget(2.0, 1e-5)},
        {"composition": "renyi"},
        {"unit": "user"},
        {"relation": "replace-one"},
    ):
        (name,) = other
        with pytest.raises(LedgerError, match=f"has {name} .* was given; it is fixed at creation"):
            Ledger(place, **{"dataset": "registry", **other})


def test_a_total_is_a_promise_about_one_unit_and_one_relation() -> None:
    ledger = Ledger.in_memory(dataset="registry", budget=BUDGET)
    ledger.check_promise("record", "add-remove")
    ledger.check_promise("user", "add-remove")
    for unit, relation, by_teachers in (
        ("record", "replace-one", True),
        ("user", "add-remove", False),
    ):
        with pytest.raises(LedgerError, match="would promise neither") as error:
            ledger.check_promise(unit, relation, by_teachers=by_teachers)
        said = str(error.value)
        assert all(repr(word) in said for word in (unit, relation, "record", "add-remove"))


def test_labels_are_replaced_and_never_removed(place: str) -> None:
    for relation in ({}, {"relation": "add-remove"}):
        with pytest.raises(
            ParameterError, match="labels change but do not come and go; use relation='replace-one'"
        ):
            Ledger(place, dataset="registry", budget=BUDGET, unit="label", **relation)
    assert not Ledger.exists(place)
    Ledger(place, dataset="registry", budget=BUDGET, unit="label", relation="replace-one")
    again = Ledger(place, dataset="registry", unit="label")
    assert (again.unit, again.relation) == ("label", "replace-one")
    with pytest.raises(ParameterError, match="do not come and go"):
        again.check_promise("label", "add-remove")
    with pytest.raises(LedgerError, match="it is fixed at creation"):
        Ledger(place, dataset="registry", unit="label", relation="add-remove")


def test_a_renyi_account_tells_its_sums_as_parts_of_the_budget() -> None:
    ledger = Ledger.in_memory(
        dataset="registry", budget=PrivacyBudget(2.0, 1e-5), composition="renyi"
    )
    assert ledger.remaining() == Amount(2.0, 1e-5)
    event, cost = [counts_event(40.0, 80)], PrivacyBudget(1.999, 9e-6)
    ledger.reserve(event, cost, request="a", purpose="")
    spent = ledger.spent()
    assert spent.epsilon < 1
    while ledger.remaining().epsilon > spent.epsilon:
        ledger.reserve(event, cost, request=f"{len(ledger.history())}", purpose="")
    with pytest.raises(
        BudgetError, match=r"it would be in Renyi divergences of one order, which is how"
    ) as caught:
        ledger.reserve(event, cost, request="too much", purpose="")
    after = float(re.findall(r"\(([\d.]+), 9e-06\)", str(caught.value))[-1])
    assert after > 2.0
    assert after == pytest.approx(ledger.spent().epsilon + spent.epsilon, rel=1e-5)


def test_relative_path_survives_a_change_of_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("ledger.sqlite", dataset="registry", budget=BUDGET)
    monkeypatch.chdir(tmp_path / "elsewhere")
    buy(ledger, "a")
    assert ledger.path == tmp_path / "ledger.sqlite"


def test_pickled_handle_carries_path_and_name_and_opens_when_used(path: Path) -> None:
    ledger = Ledger(path, dataset="registry", budget=BUDGET)
    data = pickle.dumps(ledger)
    buy(ledger, "a")
    path.rename(path.with_suffix(".away"))
    handle = pickle.loads(data)  # a student may be loaded where the vault is not
    assert (handle.path, handle.dataset, handle.durable) == (path, "registry", True)
    assert "registry" in repr(handle)
    with pytest.raises(LedgerError, match="no ledger at"):
        handle.spent()
    path.with_suffix(".away").rename(path)
    assert handle.spent().epsilon == 0.25


def test_pickled_handle_refuses_another_ledger_at_its_path(path: Path) -> None:
    data = pickle.dumps(Ledger(path, dataset="registry", budget=BUDGET))
    path.unlink()
    path.with_name("ledger.sqlite-journal").unlink(missing_ok=True)
    Ledger(path, dataset="registry", budget=BUDGET)
    with pytest.raises(LedgerError, match="not the one this handle was made for"):
        pickle.loads(data).spent()


def test_a_ledger_is_at_its_place_alone(ledgers: Ledgers) -> None:
    place = ledgers.place()
    assert not Ledger.exists(place)
    with pytest.raises(LedgerError, match="There is no ledger at"):
        Ledger(place, dataset="registry")
    with pytest.raises(LedgerError, match=r"There is no ledger at|does not exist"):
        Ledger.open_existing(place)
    assert not Ledger.exists(place)
    Ledger(place, dataset="registry", budget=BUDGET)
    assert Ledger.exists(place)
    assert not Ledger.exists(ledgers.place("other"))


def test_a_forked_process_has_connections_of_its_own(place: str) -> None:
    ledger = Ledger(place, dataset="registry", budget=BUDGET)
    buy(ledger, "before")
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=buy, args=(ledger, f"child {n}")) for n in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    buy(ledger, "after")
    assert len(ledger.history()) == 4


def test_memory_is_neither_pickled_nor_durable() -> None:
    ledger = Ledger.in_memory(dataset="registry", budget=BUDGET)
    assert (ledger.durable, ledger.path, ledger.place) == (False, None, None)
    with pytest.raises(LedgerError, match="second budget"):
        pickle.dumps(ledger)


def test_memory_is_refused_in_a_forked_process(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, forked = (Ledger.in_memory(dataset="registry", budget=BUDGET) for _ in range(2))
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(LedgerError, match="belongs to the process that made it"):
            forked.spent()
    child = os.fork()
    if not child:
        try:
            with pytest.raises(LedgerError, match="belongs to the process that made it"):
                buy(ledger, "a")
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_threads_cannot_overspend(ledger: Ledger) -> None:
    def bought(name: int) -> int:
        done = 0
        for number in range(3):
            with contextlib.suppress(BudgetError):
                done += bool(buy(ledger, f"{name}-{number}"))
        return done

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(bought, range(4))) == 4
    assert ledger.spent().epsilon == 1.0
