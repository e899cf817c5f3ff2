"""A disk that fills up, in steps: a small file system whose free space shrinks until the command
cannot even begin."""

import contextlib
import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from campaigns.torture.commands import command, leftovers, make_files, open_books, run

_ALLOWED = (0, 2)


@contextlib.contextmanager
def small_disk(place: Path, kibibytes: int) -> Iterator[Path]:
    """Mount a file system of a size in memory; this needs root.

    Raises
    ------
    PermissionError
        If the system does not allow it.
    """
    place.mkdir(parents=True, exist_ok=True)
    size = f"size={kibibytes}k"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(place)], capture_output=True, check=False
    )
    if done.returncode:
        raise PermissionError(
            "a small file system cannot be mounted here; run the full-disk campaign as root."
        )
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def _fill_disk(folder: Path, free: int) -> Path:
    """Fill a disk until `free` bytes are left and return the file that does it."""
    ballast = folder / "ballast"
    left = os.statvfs(folder)
    ballast.write_bytes(b"\0" * max(left.f_bavail * left.f_frsize - free, 0))
    return ballast


def full_disk(verb: str, steps: int, place: Path, *more: str) -> tuple[Counter[str], list[str]]:
    """Run a command with less and less room, then free space and repeat it.

    Parameters
    ----------
    verb : str
        One of `commands.VERBS`.
    steps : int
        How many amounts of free space are tried, from 4 KiB to what a whole run needs.
    place : Path
        Where to mount the disk.
    *more : str
        More words of the command.

    Returns
    -------
    counts : Counter
        Runs, refusals, repeats that finished, purchases without an answer.
    faults : list of str
    """
    counts, faults = Counter[str](), list[str]()
    most = _room_needed(verb, place, *more)
    for step in range(steps):
        # from almost nothing to more than the command needs, so that every write has failed once
        free = int(4096 + (most * 1.15 - 4096) * step / max(steps - 1, 1))
        with small_disk(place, 65_536) as disk:
            folder = disk / "work"
            make_files(folder)
            ballast = _fill_disk(disk, free)
            done = run(command(verb, *more), folder)
            counts["runs"] += 1
            faults += _faults_of(verb, free, done)
            before = open_books(folder)
            counts["refused"] += done.returncode != 0
            # with room again, the same command must finish without paying a second time
            ballast.unlink()
            again = run(command(verb, *more), folder)
            faults += _faults_of(verb, free, again)
            if again.returncode != 0:
                faults.append(f"{verb}, {free} bytes free: the repeat fails: {again.stderr[-300:]}")
                continue
            counts["finished"] += 1
            books = open_books(folder)
            counts["purchases without an answer"] += books.unanswered
            if before.committed and books.committed > before.committed:
                faults.append(f"{verb}, {free} bytes free: a paid answer was bought again")
            faults += [f"{verb}, {free} bytes free: {fault}" for fault in books.faults]
            faults += [
                f"{verb}, {free} bytes free: left behind: {name}" for name in leftovers(folder)
            ]
    return counts, faults


def _room_needed(verb: str, place: Path, *more: str) -> int:
    """Return how many bytes a whole run takes."""
    with small_disk(place, 65_536) as disk:
        folder = disk / "work"
        make_files(folder)
        before = shutil.disk_usage(disk).free
        run(command(verb, *more), folder)
        return before - shutil.disk_usage(disk).free


def _faults_of(verb: str, free: int, done: "subprocess.CompletedProcess[str]") -> list[str]:
    """Return what is wrong with how a command ended, whatever the disk did."""
    found = []
    if done.returncode not in _ALLOWED:
        found.append(f"exit code {done.returncode}: {done.stderr[-300:]}")
    if "Traceback" in done.stderr:
        found.append("a traceback")
    if done.returncode:
        with contextlib.suppress(ValueError):
            said = json.loads(done.stdout)["error"]
            if len(said) > 600:
                found.append("a sentence of more than 600 characters")
    return [f"{verb}, {free} bytes free: {fault}" for fault in found]
