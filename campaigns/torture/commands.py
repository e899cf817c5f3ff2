"""Small command lines of every verb that pays, the blows that fall on them, and what must be true
of the folder and the ledger after them."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import secretballot as sb
from campaigns.cases import Found
from secretballot.cli import app
from secretballot.core.noise import ExactNoise

N_PRIVATE, N_PUBLIC, N_TEACHERS = 240, 60, 20
#: (epsilon, delta) of every command here, and room for many of them in the ledger.
PRICE = (1.0, 1e-5)
ROOM = 10_000
#: Seconds that processes get to see that the one that started them is gone: a crowded machine is
#: slow.
_CALM = 20.0
_LONGEST = 120.0  # seconds of a command
_STRUCK = 0.7  # share of the starts that are killed; the others may run to their end
_DISK = 65_536  # KiB
VERBS = ("learn", "moments", "rounds", "label", "choose")


def make_files(folder: Path) -> None:
    """Empty a folder and write tables, votes and a ledger with room for many runs."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    temporary_place(folder).mkdir()
    rng = np.random.default_rng(0)
    points = rng.normal(size=(N_PRIVATE + N_PUBLIC, 2)).round(3)
    private = "".join(f"{a},{b},{'yes' if a + b > 0 else 'no'}\n" for a, b in points[:N_PRIVATE])
    public = "".join(f"{a},{b}\n" for a, b in points[N_PRIVATE:])
    (folder / "private.csv").write_text(f"a,b,ill\n{private}")
    (folder / "public.csv").write_text(f"a,b\n{public}")
    ones = rng.integers(0, N_TEACHERS + 1, N_PUBLIC)
    np.save(folder / "counts.npy", np.column_stack([N_TEACHERS - ones, ones]))
    budget = sb.PrivacyBudget(ROOM * PRICE[0], 0.5)
    sb.Ledger(folder / "ledger.sqlite", dataset="registry", budget=budget)


def temporary_place(folder: Path) -> Path:
    """Return where commands in a folder put temporary files; the name marks their processes too."""
    return folder.resolve() / "temporary"


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


def said_in(folder: Path) -> str:
    """Return what the last command in a folder has said."""
    return folder.with_name(f"{folder.name}.said").read_text()


def started(words: Sequence[str], folder: Path) -> int:
    """Start a command line in a fork of this process, which has imported everything, and return the
    child's number."""
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()  # a signal to the group reaches its workers too
        os.environ["TMPDIR"] = str(temporary_place(folder))
        os.chdir(folder)
        # beside the folder, whose disk may be full
        with folder.with_name(f"{folder.name}.said").open("w") as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                app(list(words))
        os._exit(0)
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException:
        os._exit(1)


def ended(child: int, seconds: float = _LONGEST) -> int | None:
    """Return the exit code of a child; None of one that has not ended in time, and is killed."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        number, status = os.waitpid(child, os.WNOHANG)
        if number:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    # the program alone: its workers must see that it is gone
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def faults_in(folder: Path, counts: Counter[str], kills: int | None = None) -> list[str]:
    """Compare the ledger with the release of the finished run in ``out``, which paid once for what
    it shows, and find what it left behind; after so many kills, where they are counted."""
    left = processes_that_stay(folder)
    ledger = sb.Ledger.open_existing(folder / "ledger.sqlite")
    history, faults = ledger.history(), [f"still alive: {number}" for number in left]
    answers = sum(entry.state == "committed" for entry in history)
    counts["finished"] += 1
    counts["answers"] += answers
    counts["purchases without an answer"] += len(history) - answers
    if kills is not None and len(history) - answers > kills:
        faults.append(f"{len(history) - answers} purchases without an answer, {kills} kills")
    paid = sum(entry.epsilon for entry in history)
    if abs(ledger.spent().epsilon - paid) > 1e-9 * max(paid, 1.0):
        faults.append(f"spent {ledger.spent().epsilon}, bought {paid}")
    release = folder / "out" / "release"
    faults += [
        f"verify: {one.name}: {one.detail}" for one in sb.verify_certificate(release).failures
    ]
    certificate = json.loads((release / "certificate.json").read_text())
    number = certificate["composition"]["reservation"]
    if number not in [entry.id for entry in history]:
        faults.append("the release is not in the ledger")
    return faults + [f"left behind: {name}" for name in leftovers(folder)]


#: Temporary files of libraries: onnxruntime leaves a random number and a time wherever it is
#: imported.
_OF_OTHERS = (".ses",)


def leftovers(folder: Path) -> list[str]:
    """Return names of drafts in the folder of a finished run, and of all temporary files."""
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    return [
        name
        for name in names
        if Path(name).name.startswith(".")
        or name.endswith((".new", ".tmp"))
        or name.startswith("temporary/")
        if name.removeprefix("temporary/") not in _OF_OTHERS
    ]


def processes_of(folder: Path) -> list[int]:
    """Return the processes that commands in `folder` left: by where they run, or, for those that
    run elsewhere, by where their temporary files go."""
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


def kills(verb: str, amount: int, seed: int, folder: Path, *more: str) -> Found:
    """Kill a command line with signal 9 at random moments and repeat it, until it ends by itself;
    then begin anew."""
    rng, counts, faults = random.Random(seed), Counter[str](), list[str]()
    words, folder = command(verb, *more), folder / "work"
    ExactNoise().discrete_laplace(1.0, 1)  # loads the sampler, before anything forks
    make_files(folder)
    begun = time.monotonic()
    ended(started(words, folder))
    # kills fall anywhere in an undisturbed run, and a little after it
    whole, since = 1.1 * (time.monotonic() - begun), 0
    make_files(folder)
    while counts["kills"] < amount or since:
        child = started(words, folder)
        code = ended(child, rng.uniform(0, whole) if rng.random() < _STRUCK else _LONGEST)
        if code is None:
            counts["kills"] += 1
            since += 1
            continue
        if code:
            faults.append(f"exit code {code} after {since} kills: {said_in(folder)[-300:]}")
        else:
            faults += faults_in(folder, counts, since)
        since = 0
        make_files(folder)
    return counts, faults


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """Mount a small file system in memory; this needs root."""
    place.mkdir(parents=True, exist_ok=True)
    size = f"size={_DISK}k"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def full_disk(verb: str, amount: int, _: int, folder: Path) -> Found:
    """Run a command with less and less room, from more than it needs to almost none, so that every
    write fails once; then free space and repeat it."""
    counts, faults, place = Counter[str](), list[str](), folder / "disk"
    with small_disk(place) as disk:
        make_files(disk)
        before = shutil.disk_usage(disk).free
        ended(started(command(verb), disk))
        most = before - shutil.disk_usage(disk).free
    for step in range(amount):
        free = int(4096 + (most * 1.15 - 4096) * step / max(amount - 1, 1))
        with small_disk(place) as disk:
            found = _filled(verb, free, disk, counts)
        faults += [f"{free} bytes free: {fault}" for fault in found]
    return counts, faults


def _filled(verb: str, free: int, disk: Path, counts: Counter[str]) -> list[str]:
    make_files(disk)
    ballast = disk / "ballast"
    ballast.write_bytes(b"\0" * max(shutil.disk_usage(disk).free - free, 0))
    counts["runs"] += 1
    code = ended(started(command(verb), disk))
    counts["refused"] += bool(code)
    faults = [] if code in (0, 2) else [f"exit code {code}: {said_in(disk)[-300:]}"]
    if "Traceback" in said_in(disk):
        faults.append("a traceback")
    if code:
        with contextlib.suppress(ValueError):
            if len(json.loads(said_in(disk))["error"]) > 600:
                faults.append("a sentence of more than 600 characters")
    history = sb.Ledger.open_existing(disk / "ledger.sqlite").history()
    paid = sum(entry.state == "committed" for entry in history)
    # with room again, the same command must finish without paying a second time
    ballast.unlink()
    if (code := ended(started(command(verb), disk))) != 0:
        return [*faults, f"the repeat ends with {code}: {said_in(disk)[-300:]}"]
    before = counts["answers"]
    faults += faults_in(disk, counts)
    if paid and counts["answers"] - before > paid:
        faults.append("a paid answer was bought again")
    return faults


def folder_races(verb: str, amount: int, _: int, folder: Path, crowd: int = 4) -> Found:
    """Start the same command several times at once in one folder: one works, the others are refused
    or find it done."""
    counts, faults, folder = Counter[str](), list[str](), folder / "work"
    for _ in range(amount):
        make_files(folder)
        codes = Counter(
            ended(child) for child in [started(command(verb), folder) for _ in range(crowd)]
        )
        counts["commands"] += crowd
        if not codes[0] or set(codes) - {0, 2}:
            faults.append(f"exit codes {dict(codes)}: {said_in(folder)[-300:]}")
            continue
        before = counts["answers"]
        faults += faults_in(folder, counts)
        # however many commands ran, one of them paid, and the others are given its answer
        if (paid := counts["answers"] - before) != 1:
            faults.append(f"{paid} answers were paid, one was needed")
    return counts, faults
