"""Small command lines of every verb that pays, and what must be true of the folder and the
ledger after them."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import secretballot as sb

N_PRIVATE, N_PUBLIC, N_TEACHERS = 240, 60, 20
#: (epsilon, delta) of every command here, and room for many of them in the ledger.
PRICE = (1.0, 1e-5)
ROOM = 10_000
#: Seconds that processes get to see that the one that started them is gone: a crowded machine is
#: slow.
_CALM = 20.0
VERBS = ("learn", "moments", "rounds", "label", "choose")


def make_files(folder: Path) -> None:
    """Write the tables, the votes and a ledger with room for many runs."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary_place(folder).mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(N_PRIVATE + N_PUBLIC, 2)).round(3)
    private = "".join(f"{a},{b},{'yes' if a + b > 0 else 'no'}\n" for a, b in points[:N_PRIVATE])
    (folder / "private.csv").write_text(f"a,b,ill\n{private}")
    (folder / "public.csv").write_text(
        "a,b\n" + "".join(f"{a},{b}\n" for a, b in points[N_PRIVATE:])
    )
    ones = rng.integers(0, N_TEACHERS + 1, N_PUBLIC)
    np.save(folder / "counts.npy", np.column_stack([N_TEACHERS - ones, ones]))
    sb.Ledger(
        folder / "ledger.sqlite", dataset="registry", budget=sb.PrivacyBudget(ROOM * PRICE[0], 0.5)
    )


def temporary_place(folder: Path) -> Path:
    """Return where commands in a folder put temporary files; the name marks their processes too."""
    return folder.resolve().with_name(f"{folder.name}-temporary")


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a command in a folder."""
    return {**os.environ, "TMPDIR": str(temporary_place(folder))}


def command(verb: str, *more: str) -> list[str]:
    """Return the words of a command, to be run in the folder of `make_files`."""
    tables = ["private.csv", "public.csv", "--target", "ill", "--classes", "no,yes"]
    price = ["--epsilon", str(PRICE[0]), "--delta", str(PRICE[1])]
    account = ["--ledger", "ledger.sqlite", "--dataset", "registry", "--out", "out", "--json"]
    account += ["--confirm", "records,noise"]
    votes = ["learn", *tables, *price, "--n-teachers", str(N_TEACHERS), "--set", "n_queries=30"]
    words = {
        "learn": votes,
        "moments": ["learn", *tables, *price],
        "rounds": [*votes, "--set", "strategy=margin"],
        "label": ["label", "counts.npy", "--kind", "counts", "--classes", "no,yes", *price],
        "choose": ["learn", *tables, "--set", "hypotheses=stumps", *price[:2]],
    }
    return [*words[verb], *account, *more]


def run(
    words: Sequence[str], folder: Path, seconds: float = 120.0
) -> "subprocess.CompletedProcess[str]":
    """Run a command line in a process of its own and wait for it."""
    whole = [sys.executable, "-m", "secretballot", *words]
    return subprocess.run(
        whole,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def run_forked(words: Sequence[str], folder: Path) -> int:
    """Start a command line in a fork of this process, which has imported everything, and return the
    child's number."""
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()  # a signal to the group reaches its workers too
        os.environ.update(environment(folder))
        os.chdir(folder)
        with (folder / "said.txt").open("w") as said, _as_streams(said):
            from secretballot.cli import app

            app(list(words))
        os._exit(0)
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException:
        os._exit(1)


@contextlib.contextmanager
def _as_streams(file: io.TextIOWrapper) -> Iterator[None]:
    os.dup2(file.fileno(), 1)
    os.dup2(file.fileno(), 2)
    with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
        yield
    file.flush()


@dataclass
class Books:
    """What ledger and folder say after a run has ended.

    Attributes
    ----------
    committed, unanswered : int
        Purchases with an answer, and without.
    faults : list of str
        What is not as it must be.
    """

    committed: int = 0
    unanswered: int = 0
    faults: list[str] = field(default_factory=list)


def open_books(folder: Path) -> Books:
    """Compare the ledger with the release of the finished run in ``out``, which paid once for
    what it shows."""
    ledger = sb.Ledger.open_existing(folder / "ledger.sqlite")
    history = ledger.history()
    books = Books(sum(entry.state == "committed" for entry in history))
    books.unanswered = len(history) - books.committed
    paid = sum(entry.epsilon for entry in history)
    if abs(ledger.spent().epsilon - paid) > 1e-9 * max(paid, 1.0):
        books.faults.append(f"spent {ledger.spent().epsilon}, bought {paid}")
    release = folder / "out" / "release"
    if not (release / "certificate.json").exists():
        return books
    verified = sb.verify_certificate(release)
    books.faults += [f"verify: {check.name}: {check.detail}" for check in verified.failures]
    certificate = json.loads((release / "certificate.json").read_text())
    number = certificate["composition"]["reservation"]
    entry = next((entry for entry in history if entry.id == number), None)
    if entry is None or entry.state not in ("committed", "reserved"):
        books.faults.append("the release is not in the ledger")
    return books


#: Temporary files of libraries: onnxruntime leaves a random number and a time wherever it is
#: imported.
_OF_OTHERS = (".ses",)


def leftovers(folder: Path) -> list[str]:
    """Return names of drafts in the folder of a finished run, and of all temporary files."""
    found = [
        path
        for path in folder.rglob("*")
        if path.name.startswith(".") or path.name.endswith((".new", ".tmp"))
    ]
    return sorted(str(path.relative_to(folder)) for path in found) + sorted(
        f"temporary {path.name}"
        for path in temporary_place(folder).iterdir()
        if path.name not in _OF_OTHERS
    )


def processes_of(folder: Path) -> list[int]:
    """Return the processes that commands in `folder` left: by where they stand, or, for those that
    stand elsewhere, by where their temporary files go."""
    here, mark = str(folder.resolve()), b"TMPDIR=" + os.fsencode(temporary_place(folder))
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            own = os.readlink(place / "cwd") == here
            own = own or mark in (place / "environ").read_bytes().split(b"\0")
            if own and int(place.name) != os.getpid():
                found.append(int(place.name))
    return found


def processes_that_stay(folder: Path) -> list[int]:
    """Return the processes of a folder that have not ended after a while."""
    until = time.monotonic() + _CALM
    while (left := processes_of(folder)) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def clear(folder: Path) -> None:
    """Remove the output of a run, and begin a new ledger."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(temporary_place(folder), ignore_errors=True)
    make_files(folder)
