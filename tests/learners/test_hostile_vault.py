"""Damaged or forged files in a vault: one bounded reader for all, which takes what is whole or
tells in a sentence."""

import copy
import json
import os
import signal

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import secretballot as sb
from secretballot._files import json_text
from secretballot.cli.outcome import failure_of
from secretballot.core.releasing import _SecretStates
from secretballot.exceptions import SecretBallotError
from secretballot.vault import VaultFiles
from sessions import session, sparse

MARK = "PRIVATE-7261"
DEEP = []
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
POINTS = np.random.default_rng(1).normal(size=(400, 2))


@pytest.fixture(scope="module")
def vault(tmp_path_factory):
    """Fill a vault with teachers, and with a session that has a secret state."""
    folder = tmp_path_factory.mktemp("run") / "vault"
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X.sum(axis=1) > 0).astype(int)
    teachers = sb.train_teachers(GaussianNB(), X, y, classes=[0, 1], n_teachers=20, vault=folder)
    budget = sb.PrivacyBudget(1000.0, 0.5)
    ledger = sb.Ledger(folder / "ledger.sqlite", dataset="d", budget=budget)
    session(teachers, sparse(0.3, 8, 2), ledger, 8).ask(X[0])
    return folder


@pytest.fixture
def in_time():
    """Fail where work takes longer than a minute."""

    def late(*_):
        raise AssertionError("longer than a minute")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def mutants(document):
    """Yield the document with each of its values replaced by each hostile one, and with each field
    left out."""
    inside = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in list(inside):
        below = mutants(value) if isinstance(value, dict | list) else ()
        for other in (*VALUES, *below):
            made = copy.copy(document)
            made[key] = other
            yield made
        made = copy.copy(document)
        del made[key]
        yield made


def check(read):
    """Read: it works, or is refused in one short plain sentence that carries nothing of the
    file."""
    try:
        read()
    except SecretBallotError as error:
        sentence = failure_of(error).error
        assert len(sentence) <= 500
        assert sentence.isprintable()
        assert MARK * 5 not in sentence or sentence.startswith("Ledger ")  # whose path it names
        cause = error
        while cause is not None:
            assert not isinstance(cause, json.JSONDecodeError)
            cause = cause.__cause__ or cause.__context__


def attack(path, read):
    """Put every mutant, and what is no file, in the place of a file, read, and put it back."""
    content = path.read_bytes()
    made = (json.dumps(one).encode() for one in mutants(json.loads(content)))
    for mutant in (*made, *RAW, content[:-3]):
        path.write_bytes(mutant)
        check(read)
    for strange in (lambda: None, lambda: os.mkfifo(path), lambda: path.symlink_to("/dev/zero")):
        path.unlink(missing_ok=True)
        strange()
        check(read)
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    read()


@pytest.mark.usefixtures("in_time")
def test_a_session_is_reopened_as_it_was_or_not_at_all(vault):
    [path] = (vault / "sessions").iterdir()
    attack(path, lambda: sb.LabelingSession.reopen(vault))


@pytest.mark.usefixtures("in_time")
def test_a_secret_state_is_gone_on_from_or_refused(vault):
    [path] = (vault / "streams").glob("*.state")
    kept = path.read_bytes()
    [name] = json.loads(kept)
    account = sb.Ledger.open_existing(vault / "ledger.sqlite").account
    states = _SecretStates(VaultFiles(vault), account, "session")
    attack(path, lambda: states.load(bytes.fromhex(name)))
    path.write_bytes(json.dumps({name[::-1]: 1}).encode())
    with pytest.raises(SecretBallotError, match="not in the vault"):
        sb.LabelingSession.reopen(vault).ask(POINTS[0])
    path.write_bytes(kept)
    sb.LabelingSession.reopen(vault).ask(POINTS[0])


@pytest.mark.usefixtures("in_time")
def test_teachers_are_loaded_whole_or_not_at_all(vault):
    path = vault / "teachers.pickle"
    kept = path.read_bytes()
    head, payload = kept.split(b"\n", 1)
    mutants = [made + b"\n" + payload for made in (head[:-1], head[1:], head + b" ", *RAW)]
    for mutant in (*mutants, *RAW, kept[:-3]):
        path.write_bytes(mutant)
        with pytest.raises(SecretBallotError, match="damaged or were kept under other versions"):
            sb.TrainedTeachers.load(vault)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(SecretBallotError):
        sb.TrainedTeachers.load(vault)
    path.unlink()
    path.write_bytes(kept)
    path.chmod(0o622)
    with pytest.raises(SecretBallotError, match="cannot be read"):
        sb.TrainedTeachers.load(vault)
    path.chmod(0o600)
    sb.TrainedTeachers.load(vault)


def test_the_reader_takes_what_was_written_and_nothing_like_it():
    assert json_text(b'{"a": "one", "b": null}', "a") == "one"
    for content in (b'{"a": true}', b'{"b": ""}', b'["a"]', b'{"a": ""', b'{"a": "", "b": NaN}'):
        assert json_text(content, "a") is None
    assert json_text(json.dumps({"a": "", "c": DEEP}).encode(), "a") is None
