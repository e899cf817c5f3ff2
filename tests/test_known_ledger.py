"""What a vault remembers of its ledgers, URLs of databases, and how drafts are held and swept."""

import copy
import os
import pickle
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import secretballot as sb
from secretballot.accounting.recipes import Terms
from secretballot.core.ledger.urls import DatabasePlace, file_or_database, is_database
from secretballot.core.mechanisms import NoisyVotes
from secretballot.drafts import draft_folder, sweep_drafts, try_lock
from secretballot.exceptions import DataError, ParameterError
from secretballot.vault import _remember_head, _seen_head, keep_in_step, read_secret, write_secret
from sessions import stream_of

BUDGET = sb.PrivacyBudget(1.0, 1e-6)
COUNTS = sb.votes_of_counts([[250, 0], [0, 250]], classes=["no", "yes"])
SHAPE = COUNTS.shape.changed(n_queries=60, moved=60)


def opened(folder):
    ledger = sb.Ledger(folder / "ledger.sqlite", dataset="registry", budget=BUDGET)
    terms = Terms(NoisyVotes(scale=40.0), SHAPE, BUDGET)
    return stream_of(terms, ledger, ["no", "yes"], vault=folder / "vault")._stream


def copied(folder):
    for name in ("ledger.sqlite", "ledger.sqlite-journal"):
        shutil.copy(folder / name, folder / f"old-{name}")


def put_back(folder):
    for name in ("ledger.sqlite", "ledger.sqlite-journal"):
        shutil.copy(folder / f"old-{name}", folder / name)


def test_every_answer_is_remembered_and_not_only_the_purchase(tmp_path):
    stream = opened(tmp_path)
    stream.answer(COUNTS, [b"a", b"b"])
    copied(tmp_path)
    stream.answer(COUNTS, [b"c", b"d"])
    put_back(tmp_path)
    with pytest.raises(sb.LedgerError, match=r"is an older copy.*Nothing was spent"):
        opened(tmp_path)


def test_the_newest_copy_is_taken_and_goes_on(tmp_path):
    stream = opened(tmp_path)
    stream.answer(COUNTS, [b"a", b"b"])
    copied(tmp_path)
    put_back(tmp_path)
    again = opened(tmp_path)
    assert again.used == 2
    # what others add to the ledger is no loss
    other = sb.Ledger.open_existing(tmp_path / "ledger.sqlite")
    with other.answering(again.reservation) as page:
        first = page.parts()[0][1]
        page.add([(b"z", first)])
    assert opened(tmp_path).used == 3


def test_another_ledger_of_the_same_terms_is_refused(tmp_path):
    ledger = sb.Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=BUDGET)
    shutil.copy(tmp_path / "ledger.sqlite", tmp_path / "twin.sqlite")
    keep_in_step(tmp_path / "vault", ledger)
    sb.estimate_stability(COUNTS, ledger, fraction=0.5, epsilon=0.5)
    twin = sb.Ledger.open_existing(tmp_path / "twin.sqlite")
    sb.estimate_stability(COUNTS, twin, fraction=0.5, epsilon=0.5)
    with pytest.raises(sb.LedgerError, match="or another one"):
        keep_in_step(tmp_path / "vault", twin)


def test_the_furthest_row_stays_and_damage_is_no_row(tmp_path):
    place = tmp_path / "x.head"
    for position in (3, 9, 4):
        _remember_head(place, position, f"{position:064x}")
    assert _seen_head(place) == (9, f"{9:064x}")
    assert place.stat().st_mode & 0o777 == 0o600
    place.write_bytes(place.read_bytes()[:-1])
    assert _seen_head(place) is None


def test_a_memory_that_cannot_be_written_loses_no_answer(tmp_path, monkeypatch):
    stream = opened(tmp_path)
    shutil.rmtree(tmp_path / "vault" / "ledgers")
    (tmp_path / "vault" / "ledgers").touch()
    assert stream.answer(COUNTS, [b"a", b"b"]).given.all()


def test_of_several_writers_the_furthest_row_stays(tmp_path):
    place, lost = tmp_path / "x.head", []

    def write(first):
        for position in range(first, 400, 4):
            _remember_head(place, position, f"{position:064x}")
            found = _seen_head(place)
            if found is None or found[0] < position:
                lost.append(position)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(1, 5)))
    assert lost == []
    assert _seen_head(place) == (399, f"{399:064x}")


def test_a_memory_that_another_one_holds_lags_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("secretballot.vault._PATIENCE_S", 0.05)
    place = tmp_path / "x.head"
    _remember_head(place, 3, f"{3:064x}")
    folder = os.open(tmp_path, os.O_RDONLY)
    assert try_lock(folder)
    _remember_head(place, 5, f"{5:064x}")
    assert _seen_head(place) == (3, f"{3:064x}")
    os.close(folder)
    _remember_head(place, 5, f"{5:064x}")
    assert _seen_head(place) == (5, f"{5:064x}")


KILLED = """
import os, signal, sys
from pathlib import Path
from secretballot.drafts import draft_file, draft_folder

with draft_file(Path(sys.argv[1]) / "x.json"), draft_folder(Path(sys.argv[1]), "plan") as folder:
    (folder / "half").write_text("")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_only_drafts_of_the_named_files_are_swept_and_no_link_is_followed(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "thesis.tex").write_text("years of work")
    (tmp_path / ".x.json-linked_1").symlink_to(tmp_path / "kept" / "thesis.tex")
    (tmp_path / ".x.json-linked_2").symlink_to(tmp_path / "kept")
    odd = ".x.json-draft", ".y.json-abcdefgh", "x.json-abcdefgh", ".x.json-ABCDEFGH"
    for name in ("x.json", ".x.json", *odd):
        (tmp_path / name).write_text("")
    os.mkfifo(tmp_path / ".x.json-pipepipe")
    before = names(tmp_path)
    sweep_drafts(tmp_path, "x.json")
    sweep_drafts(tmp_path / "nowhere", "x.json")
    assert names(tmp_path) == before
    assert names(tmp_path / "kept") == ["thesis.tex"]


def write_files(folder):
    for number in range(100):
        write_secret(folder / "x", b"%d" % number)
    assert read_secret(folder / "x") == b"99"
    (folder / "x").unlink()


def make_folders(folder):
    for _ in range(400):
        with draft_folder(folder, "x") as made:
            (made / "one").write_text("1")
            assert (made / "one").read_text() == "1"


@pytest.mark.parametrize("work", [write_files, make_folders])
def test_no_writer_loses_its_draft_to_a_sweeper(tmp_path, work):
    ended = threading.Event()

    def sweep():
        while not ended.is_set():
            sweep_drafts(tmp_path, "x")

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        work(tmp_path)
    finally:
        ended.set()
        sweeper.join()
    assert names(tmp_path) == []


def test_drafts_of_a_killed_writer_are_swept_and_those_of_a_living_one_are_not(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert len(names(tmp_path)) == 2
    with draft_folder(tmp_path, "plan") as mine:
        sweep_drafts(tmp_path, "plan", "x.json")
        assert names(tmp_path) == [mine.name]
    assert names(tmp_path) == []


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_refused_and_keeps_nobody_waiting(tmp_path, make):
    make(tmp_path / "x.json")
    with pytest.raises(DataError, match="no ordinary file"):
        read_secret(tmp_path / "x.json")


def test_a_file_larger_than_it_can_be_is_refused_before_it_is_read(tmp_path):
    (tmp_path / "x.json").write_bytes(b"12345")
    assert read_secret(tmp_path / "x.json", largest=5) == b"12345"
    with pytest.raises(DataError, match="5 bytes, and none of ours has more than 4"):
        read_secret(tmp_path / "x.json", largest=4)
    assert read_secret(tmp_path / "none") is None


SECRET = "hunter2"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://", {}),
        ("postgresql://h:5433/d?schema=s&sslmode=verify-full", {"host": "h", "port": "5433"}),
        ("postgresql://h/d?schema=s&sslmode=require", {"dbname": "d", "sslmode": "require"}),
        ("postgres://db/ledgers", {"host": "db", "dbname": "ledgers"}),
        ("postgresql://a:@/x?host=/run/pg", {"user": "a", "dbname": "x", "host": "/run/pg"}),
        ("postgresql://%2Frun%2Fpg/x", {"host": "/run/pg", "dbname": "x"}),
        ("postgresql://[::1]:5/x", {"host": "::1", "port": "5", "dbname": "x"}),
        ("postgresql://u:p%40%3A%2F%3F%23@h/x", {"user": "u", "password": "p@:/?#"}),
    ],
)
def test_urls_of_many_forms_are_read(url, words):
    place = DatabasePlace(url)
    assert words.items() <= place.words.items()
    assert place.schema == ("s" if "schema=s" in url else "secretballot")


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://asker:{SECRET}@db.example/ledgers?schema=s&sslmode=require",
        f"postgresql://asker@db.example/ledgers?password={SECRET}&sslpassword={SECRET}",
        f"postgresql://:{SECRET}@db.example:1/ledgers",
    ],
)
def test_no_text_of_a_place_has_its_password(url):
    place = DatabasePlace(url)
    assert SECRET in place.words.values()
    for text in (str(place), repr(place), repr(vars(place.__class__))):
        assert SECRET not in text
    assert SECRET.encode() not in pickle.dumps(place)
    again = pickle.loads(pickle.dumps(place))
    assert again == place
    assert hash(again) == hash(place)
    assert SECRET not in again.words.values()
    assert copy.deepcopy(place).words == place.words
    # what is told to reopen it keeps everything else, how safe the way there is among it
    assert {**place.words, "password": "", "sslpassword": ""} == {
        **again.words,
        "password": "",
        "sslpassword": "",
    }


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u:{SECRET}@x@h/d",
        f"postgresql://u:a/{SECRET}@h/d",
        f"postgresql://u:1/{SECRET}@h/d",
        f"postgresql://u:1?{SECRET}@h/d",
        f"postgresql://u:1?{SECRET}=1",
        f"postgresql://u:{SECRET}#x@h/d",
        f"postgresql://u:{SECRET}/d",
        f"postgresql://u:{SECRET} x@h/d",
        f"postgresql://u:{SECRET}\n@h/d",
        f"postgresql://h/d?password={SECRET}&password={SECRET}",
        f"postgresql://h/d?schema={SECRET}-x",
        f"postgresql://h/d?schema=pg_{SECRET}",
        f"postgresql://[{SECRET}]/d",
        "postgresql://one,two:7/d",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_a_piece_of_it(url):
    with pytest.raises(ParameterError, match="cannot be read") as error:
        DatabasePlace(url)
    assert SECRET not in str(error.value)


def test_only_urls_of_postgresql_are_databases(tmp_path):
    assert is_database("postgresql://h/d")
    assert is_database(DatabasePlace("postgresql://h/d"))
    for other in ("ledger.sqlite", "mysql://h/d", "postgresql:/h", tmp_path, None):
        assert not is_database(other)
    assert str(file_or_database("a/ledger.sqlite")) == "a/ledger.sqlite"
