"""Many processes at one ledger and at one folder."""

import os
from collections import Counter
from pathlib import Path

import secretballot as sb
from campaigns.torture.commands import PRICE, clear, command, leftovers, open_books, run_forked
from secretballot.accounting import Pure


def _wait_all(children: list[int]) -> Counter[int]:
    """Return how often each exit code came."""
    return Counter(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


def ledger_races(purchases: int, folder: Path, crowd: int = 16) -> tuple[Counter[str], list[str]]:
    """Let processes buy from one ledger at once until the budget is gone.

    Half of the purchases must be refused.

    Parameters
    ----------
    purchases : int
        In all.
    folder : Path
        Emptied.
    crowd : int
        Processes.

    Returns
    -------
    counts : Counter
    faults : list of str
    """
    clear(folder)
    # half of the purchases fit, so that processes race for the last ones too
    each, room = purchases // crowd, purchases // 2
    price = sb.PrivacyBudget(0.001, 1e-9)
    place = folder / "crowded.sqlite"
    ledger = sb.Ledger(
        place, dataset="crowded", budget=sb.PrivacyBudget(price.epsilon * (room + 0.5), 0.1)
    )
    children = []
    for number in range(crowd):
        child = os.fork()
        if child == 0:
            _buy_and_answer(place, number, each, price)
        children.append(child)
    codes = _wait_all(children)
    history = ledger.history()
    counts = Counter({"purchases": each * crowd, "bought": len(history)})
    faults = []
    if ledger.spent().epsilon > ledger.budget.epsilon * (1 + 1e-12):
        faults.append(f"overspent: {ledger.spent().epsilon} of {ledger.budget.epsilon}")
    if len(history) != room:
        faults.append(f"{len(history)} purchases where {room} fit")
    if len({entry.request for entry in history}) != len(history):
        faults.append("one request was bought twice")
    if set(codes) != {0}:
        faults.append(f"exit codes {dict(codes)}")
    return counts, faults


def _buy_and_answer(place: Path, number: int, each: int, price: sb.PrivacyBudget) -> None:
    """Buy and answer in a child, which ends with code 0; any surprise ends it with code 1."""
    try:
        ledger = sb.Ledger.open_existing(place)
        for turn in range(each):
            try:
                bought = ledger.reserve(
                    [Pure(epsilon=0.001, count=1)],
                    price,
                    request=f"{number}-{turn}",
                    purpose="race",
                )
            except sb.BudgetError:
                continue
            with ledger.answering(bought, closes=True) as page:
                page.add([(b"0", b"answer")])
                page.commit({})
        os._exit(0)
    except BaseException:
        os._exit(1)


def folder_races(
    verb: str, rounds: int, folder: Path, crowd: int = 4
) -> tuple[Counter[str], list[str]]:
    """Start the same command several times at once in one folder.

    One works, the others are refused or find it done.
    """
    counts, faults = Counter[str](), list[str]()
    for _ in range(rounds):
        clear(folder)
        codes = _wait_all([run_forked(command(verb), folder) for _ in range(crowd)])
        counts["commands"] += crowd
        counts["finished"] += codes[0]
        if not codes[0] or set(codes) - {0, 2}:
            faults.append(f"{verb}: exit codes {dict(codes)}")
        books = open_books(folder)
        # however many commands ran, one of them paid, and the others are given its answer
        if books.committed != 1:
            faults.append(
                f"{verb}: {books.committed} answers were paid, one was needed (epsilon {PRICE[0]}"
                " each)"
            )
        faults += [f"{verb}: {fault}" for fault in books.faults]
        faults += [f"{verb}: left behind: {name}" for name in leftovers(folder)]
    return counts, faults
