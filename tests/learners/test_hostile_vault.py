"""Damaged or forged files in a vault: one bounded reader for all, which takes what is whole or
tells in a sentence."""

import copy
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from secretballot._files import json_fields
from secretballot.accounting import PrivacyBudget
from secretballot.cli.outcome import failure_of
from secretballot.core.ledger import Ledger
from secretballot.core.releasing import _SecretStates
from secretballot.exceptions import SecretBallotError
from secretballot.learners.training.session import LabelingSession
from secretballot.learners.training.trained import TrainedTeachers, train_teachers
from secretballot.runs.folder import RunFolder
from secretballot.vault import VaultFiles
from sessions import session, sparse

MARK = "PRIVATE-7261"
DEEP: list[Any] = []
for _ in range(200):
    DEEP = [DEEP]
VALUES = (
    *(None, True, -1, 0, 10**30, 1.5, "", MARK, MARK * 1000, [], {}, [MARK]),
    *({MARK: {MARK: MARK}}, DEEP),
)
RAW = (
    *(b"", b"{", b"null", b"7", b"[]", b"{}", b"\xff\xfe", b"[" * 200_000, b'{"a":' * 200_000),
    *(b"NaN", b"9" * 100_000, b'"' + MARK.encode() * 10 + b'"', b"\x00" * 100, b" " * 1000),
)
SETTINGS = {
    "verb": "learn",
    "epsilon": 1.0,
    "delta": 1e-6,
    "relation": "add-remove",
    "unit": None,
    "seed": 0,
    "classes": ["no", "yes"],
    "teachers": 3,
    "teacher": "logistic",
    "target": "y",
    "private file": "00ff",
}


PLAN = sparse(0.3, 8, 2)
K = 20
POINTS = np.random.default_rng(1).normal(size=(400, 2))


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fill a vault with teachers, and with a session that has a secret state."""
    folder = tmp_path_factory.mktemp("run") / "vault"
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X.sum(axis=1) > 0).astype(int)
    teachers = train_teachers(GaussianNB(), X, y, classes=[0, 1], n_teachers=K, vault=folder)
    ledger = Ledger(folder / "ledger.sqlite", dataset="d", budget=PrivacyBudget(1000.0, 0.5))
    session(teachers, PLAN, ledger, 8).ask(X[0])
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out")
    with pytest.raises(KeyboardInterrupt), RunFolder(folder, SETTINGS):
        raise KeyboardInterrupt
    return folder


@contextmanager
def in_time(seconds: int = 20) -> Iterator[None]:
    """Fail where work takes longer."""

    def late(*_: object) -> None:
        raise AssertionError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def mutants(document: Any, step: int = 1) -> Iterator[Any]:
    """Yield the document with each of its values replaced by each hostile one, and with each field
    left out.

    Of the values only every `step`-th is taken, from another beginning for every field.
    """
    for number, path in enumerate(paths(document)):
        for value in VALUES[number % step :: step]:
            yield changed(
                document, path, lambda holder, key, value=value: holder.__setitem__(key, value)
            )
        yield changed(document, path, lambda holder, key: holder.__delitem__(key))


def paths(document: Any) -> Iterator[tuple[Any, ...]]:
    inside = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in inside:
        yield (key,)
        if isinstance(value, dict | list):
            yield from ((key, *rest) for rest in paths(value))


def changed(document: Any, path: tuple[Any, ...], change: Callable[[Any, Any], object]) -> Any:
    made = copy.deepcopy(document)
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    change(holder, path[-1])
    return made


def check(read: Callable[[], object]) -> None:
    """Read: it works, or is refused in one short plain sentence that carries nothing of the
    file."""
    try:
        read()
    except SecretBallotError as error:
        sentence = failure_of(error).error
        assert len(sentence) <= 500
        assert sentence.isprintable()
        assert MARK * 5 not in sentence or sentence.startswith("Ledger ")  # whose path it names
        cause: BaseException | None = error
        while cause is not None:
            assert not isinstance(cause, json.JSONDecodeError)
            cause = cause.__cause__ or cause.__context__


def attack(path: Path, read: Callable[[], object], step: int = 1) -> None:
    """Put every mutant in the place of a file, read, and put the file back."""
    content = path.read_bytes()
    document = json.loads(content)
    try:
        with in_time(60):
            for mutant in (
                *(json.dumps(made).encode() for made in mutants(document, step)),
                *RAW,
                content[:-3],
            ):
                path.write_bytes(mutant)
                check(read)
            path.unlink()
            check(read)
            os.mkfifo(path)
            check(read)
            path.unlink()
            path.symlink_to("/dev/zero")
            check(read)
    finally:
        path.unlink(missing_ok=True)
        path.write_bytes(content)
    read()


def test_run_json_is_this_run_or_none(run: Path) -> None:
    attack(run / "vault" / "run.json", lambda: RunFolder(run, SETTINGS))


def test_a_session_is_reopened_as_it_was_or_not_at_all(vault: Path) -> None:
    [path] = (vault / "sessions").iterdir()
    attack(path, lambda: LabelingSession.reopen(vault))


def test_a_secret_state_is_gone_on_from_or_refused(vault: Path) -> None:
    [path] = (vault / "streams").glob("*.state")
    kept = path.read_bytes()
    [name] = json.loads(kept)
    account = Ledger.open_existing(vault / "ledger.sqlite").account
    states = _SecretStates(VaultFiles(vault), account, "session")
    states.load(bytes.fromhex(name))
    for mutant in (*(json.dumps(made).encode() for made in mutants(json.loads(kept))), *RAW):
        path.write_bytes(mutant)
        check(lambda: states.load(bytes.fromhex(name)))
    path.write_bytes(json.dumps({name[::-1]: 1}).encode())
    with pytest.raises(SecretBallotError, match="not in the vault"):
        LabelingSession.reopen(vault).ask(POINTS[0])
    path.write_bytes(kept)
    LabelingSession.reopen(vault).ask(POINTS[0])


def test_teachers_are_loaded_whole_or_not_at_all(vault: Path) -> None:
    path = vault / "teachers.pickle"
    kept = path.read_bytes()
    head, payload = kept.split(b"\n", 1)
    mutants = [made + b"\n" + payload for made in (head[:-1], head[1:], head + b" ", *RAW)]
    for mutant in (*mutants, *RAW, kept[:-3]):
        path.write_bytes(mutant)
        with pytest.raises(SecretBallotError, match="damaged or were kept under other versions"):
            TrainedTeachers.load(vault)
    path.unlink()
    os.mkfifo(path)
    with in_time(), pytest.raises(SecretBallotError):
        TrainedTeachers.load(vault)
    path.unlink()
    path.write_bytes(kept)
    path.chmod(0o622)
    with pytest.raises(SecretBallotError, match="cannot be read"):
        TrainedTeachers.load(vault)
    path.chmod(0o600)
    TrainedTeachers.load(vault)


def test_the_reader_takes_what_was_written_and_nothing_like_it() -> None:
    kinds = {"a": int, "b": (str, type(None))}
    assert json_fields(b'{"a": 1, "b": null, "c": 2}', kinds) == {"a": 1, "b": None}
    for content in (b'{"a": true, "b": ""}', b'{"a": 1}', b'{"a": 1.0, "b": ""}'):
        assert json_fields(content, kinds) is None
    assert json_fields(json.dumps({"a": 1, "b": "", "c": DEEP}).encode(), kinds) is None
