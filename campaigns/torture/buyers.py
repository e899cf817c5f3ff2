"""A crowd at one ledger, whose programs and whose server are killed, again and again, until the
budget is gone."""

import contextlib
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import secretballot as sb
from campaigns.cases import Found
from campaigns.postgres_server import PostgresServer
from secretballot.accounting import Pure
from secretballot.core.errors import BrokenOffError
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.rows import repeated

PRICE, EVENTS = sb.PrivacyBudget(0.001, 1e-9), [Pure(epsilon=0.001, count=1)]
#: Purchases that one ledger admits, and questions to its one plan, which is the first of them.
ROOM, QUESTIONS = 120, 400
_EVERY = 3  # one in so many kills falls on the server


def buyers_killed(
    amount: int, seed: int, folder: Path, server: PostgresServer | None = None, crowd: int = 4
) -> Found:
    """Kill buyers and the server with signal 9 while ledgers are used up, and check every book."""
    rng, counts, faults = random.Random(seed), Counter[str](), list[str]()
    while counts["kills of buyers"] + counts["kills of the server"] < amount:
        notes = folder / f"notes{counts['ledgers']}"
        notes.mkdir(parents=True)
        schema = f"block{seed}_{counts['ledgers']}"
        place = server.url(schema=schema) if server else str(folder / f"{schema}.ledger")
        _use_up(place, notes, rng, counts, amount, server, crowd)
        faults += _faults_in(place, notes, counts)
        counts["ledgers"] += 1
    return counts, faults


def _use_up(
    place: str,
    notes: Path,
    rng: random.Random,
    counts: Counter[str],
    kills: int,
    server: PostgresServer | None,
    size: int,
) -> None:
    """Let buyers use a ledger up, and kill them and the server meanwhile."""
    budget = sb.PrivacyBudget(PRICE.epsilon * (ROOM + 0.5), 0.1)
    ledger = Ledger(place, dataset="crowded", budget=budget)
    ledger.reserve(EVENTS, PRICE, request="plan", purpose="torture")
    del ledger
    started, crowd = 0, list[int]()
    while True:
        while len(crowd) < size:
            crowd.append(_fork(lambda number=started: _buy_and_ask(place, number, notes)))
            started += 1
        time.sleep(rng.uniform(0.01, 0.12))
        left = [child for child in crowd if not os.waitpid(child, os.WNOHANG)[0]]
        if len(left) < len(crowd):  # the budget is gone: those who are left find it so, too
            for child in left:
                os.waitpid(child, 0)
            return
        killed = counts["kills of buyers"] + counts["kills of the server"]
        if killed >= kills:
            continue
        if server and killed % _EVERY == _EVERY - 1:
            server.kill()
            server.start()
            counts["kills of the server"] += 1
        else:
            child = crowd.pop(rng.randrange(size))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            counts["kills of buyers"] += 1


def _fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException as error:
        os.write(2, f"a buyer ended with {error!r}\n".encode())
        os._exit(1)


def _buy_and_ask(place: str, number: int, notes: Path) -> None:
    """Buy and answer, and ask the questions of the plan, until the budget is gone; what was drawn,
    and what was given away, is noted at once."""
    note = os.open(notes / f"{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    rng = random.Random(number)
    ledger = None
    for turn in range(100_000):
        try:
            ledger = ledger or Ledger.open_existing(place)
            if turn % 3:
                _ask(ledger, f"q{rng.randrange(QUESTIONS)}".encode(), note)
            else:
                _buy(ledger, f"{number}-{turn}", note)
        except sb.BudgetError:
            return
        except sb.LedgerError as error:
            if not _server_was_away(error):
                os.write(note, f"refused {number} {str(error).replace(' ', '_')}\n".encode())
                return
            time.sleep(0.005)  # the server is being killed, or recovers


def _server_was_away(error: sb.LedgerError) -> bool:
    """Return whether a connection was lost or not made; whatever else a driver says, such as the
    refusal of a trigger, is a fault."""
    # in the driver's words and the server's, all that a ledger's error says of them
    words = ("broke off", "connection", "the database system is", "terminating")
    return isinstance(error, BrokenOffError) or any(one in str(error) for one in words)


def _buy(ledger: Ledger, request: str, note: int) -> None:
    bought = ledger.reserve(EVENTS, PRICE, request=request, purpose="torture")
    answer = os.urandom(8).hex()
    os.write(note, f"drawn {request} {answer}\n".encode())
    _store(ledger, bought, answer.encode())
    os.write(note, f"answered {request} {answer}\n".encode())


@repeated
def _store(ledger: Ledger, bought: int, answer: bytes) -> None:
    with ledger.answering(bought) as page:
        page.add([(b"0", answer)])
        page.commit({})


def _answer_of(ledger: Ledger, bought: int) -> str:
    with ledger.reading(bought) as page:
        return (page.last() or b"").decode()


def _ask(ledger: Ledger, question: bytes, note: int) -> None:
    with ledger.answering(1) as page:
        found = page.find([question])
        if question not in found:
            found[question] = os.urandom(8).hex().encode()
            page.add([(question, found[question])])
    os.write(note, f"given {question.decode()} {found[question].decode()}\n".encode())


def _faults_in(place: str, notes: Path, counts: Counter[str]) -> list[str]:
    """Compare the books with what was noted."""
    noted: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for file in notes.iterdir():
        for line in file.read_text().splitlines():
            with contextlib.suppress(ValueError):  # a line that a kill has cut
                verb, name, answer = line.split()
                noted[verb][name].add(answer)
    ledger = Ledger.open_existing(place)
    ledger.check()
    entries = ledger.history()
    history = {entry.request: entry for entry in entries}
    with ledger.reading(1) as page:
        stored = {question.decode(): answer.decode() for question, answer in page.parts()}
    counts["purchases"] += len(entries)
    counts["answers to questions"] += len(stored)
    faults = []
    if ledger.spent().epsilon > ledger.budget.epsilon or len(entries) != ROOM:
        faults.append(f"overspent or not used up: {len(entries)} purchases where {ROOM} fit")
    if len(history) < len(entries):
        faults.append("one request was bought twice")
    faults += [f"refused: {said}" for answers in noted["refused"].values() for said in answers]
    faults += [f"unpaid: {name}" for name in noted["drawn"] if name not in history]
    faults += [
        f"lost: {name}"
        for name, answers in noted["answered"].items()
        if name not in history or {_answer_of(ledger, history[name].id)} != answers
    ]
    faults += [
        f"lost or different: {question}"
        for question, answers in noted["given"].items()
        if answers != {stored.get(question)}
    ]
    return faults
