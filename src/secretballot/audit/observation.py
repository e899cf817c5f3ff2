"""Run one command many times, and keep everything that could be seen of each run, as named fields
with plain values.

A field is a place (`certificate.json:$.public.weights`) with a number or a string.
What can be read is: leaves of a JSON document, cells of a table, lines and numbers of a string.
Everything else still shows by its size, its digest and the digests of its blocks.

Each run has a process and a folder of its own. Which of the two worlds a run is in is decided by a
fair coin each, tossed before the first run. All runs see the same names of files and folders, in a
private temporary folder; one that a killed audit left goes with the next audit."""

import csv
import hashlib
import io
import itertools
import json
import math
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from secretballot._typing import BoolArray
from secretballot.drafts import draft_folder, sweep_drafts
from secretballot.exceptions import DataError, ParameterError

Field = str | int | float
Fields = dict[str, Field]

_MOST_FIELDS = 4_000  # of one file; larger files show by blocks and digests as well
_LONGEST_TEXT = 80
_BLOCK = 64  # bytes
_LARGEST_OPENED = 20_000_000  # bytes
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d+(?:[eE][-+]?\d+)?|\d{3,18})")

_Found = Iterator[tuple[str, Field]]


def observed_files(folder: Path) -> Fields:
    """Return the fields of all files below a folder.

    Parameters
    ----------
    folder : Path
        May be missing: that is a field as well.

    Returns
    -------
    dict
        Field name to value; for every file also mode, number of links, size and place in the order
        of writing.
    """
    if not folder.is_dir():
        return {"(folder)": "missing"}
    paths = sorted(path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())
    written = sorted(paths, key=lambda path: (path.lstat().st_mtime_ns, path.name))
    names = {path: path.relative_to(folder).as_posix() for path in paths}
    fields: Fields = {
        "(folder):names": _short_text("\n".join(names.values())),
        "(folder):mode": oct(stat.S_IMODE(folder.stat().st_mode)),
        "(folder):order written": _short_text("\n".join(names[path] for path in written)),
    }
    for path, name in names.items():
        fields.update(_observed_file(path, name))
    return fields


def _observed_file(path: Path, name: str) -> Fields:
    status = path.lstat()
    fields: Fields = {
        f"{name}:mode": oct(status.st_mode),
        f"{name}:links": status.st_nlink,
        f"{name}:size": status.st_size,
    }
    if path.is_symlink():
        return fields | {f"{name}:target": _short_text(os.readlink(path))}
    if stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST_OPENED:
        fields.update(_content_fields(name, path.read_bytes()))
    return fields


def _content_fields(name: str, content: bytes) -> Fields:
    """Return the fields of a file's bytes: the digest first, then the structure that they have."""
    fields: Fields = {f"{name}:digest": _digest_of(content)}
    try:
        fields.update(itertools.islice(_structure_of(name, content), _MOST_FIELDS))
    except (ValueError, csv.Error, RecursionError):
        # not what it looked like: its blocks are shown instead
        fields.update(_block_fields(name, content))
    return fields


def _structure_of(name: str, content: bytes) -> _Found:
    text = content.decode("utf-8")
    if text.lstrip()[:1] in ("{", "["):
        return _json_fields(f"{name}:$", json.loads(text))
    return _table_fields(name, text) if name.endswith(".csv") else text_fields(name, text)


def _json_fields(place: str, document: Any) -> _Found:
    if isinstance(document, dict):
        yield f"{place}:keys", _short_text("\n".join(document))
        for key, value in document.items():
            yield from _json_fields(f"{place}.{key}", value)
    elif isinstance(document, list):
        yield f"{place}:length", len(document)
        for number, value in enumerate(document):
            yield from _json_fields(f"{place}[{number}]", value)
    else:
        yield place, _plain_field(document)
    if isinstance(document, str):  # names of members have been addresses
        yield from _numbers_in(place, document[:1000])


def _table_fields(name: str, text: str) -> _Found:
    """Yield totals of the columns first, as the strongest, then the cells."""
    rows = list(csv.reader(io.StringIO(text)))
    header, body = (rows[0], rows[1:]) if rows else ([], [])
    yield f"{name}:rows", len(body)
    yield f"{name}:header", _short_text(",".join(header))
    for number, column in enumerate(header):
        cells = [row[number] for row in body if number < len(row)]
        if numbers := [one for one in map(_plain_cell, cells) if not isinstance(one, str)]:
            yield f"{name}:{column}:sum", math.fsum(numbers)
        for value in sorted(set(cells))[:10]:
            yield f"{name}:{column}:count of {_short_text(value)}", cells.count(value)
    for number, row in enumerate(body):
        for column, cell in zip(header, row, strict=False):
            yield f"{name}:{column}[{number}]", _plain_cell(cell)


def text_fields(name: str, text: str) -> _Found:
    """Yield the lines and the numbers of a string, by position."""
    lines = text.splitlines()
    yield f"{name}:lines", len(lines)
    yield f"{name}:digest", _digest_of(text.encode("utf-8", "replace"))
    for number, line in enumerate(lines[: _MOST_FIELDS // 2], 1):
        yield f"{name}:line {number}", _short_text(line)
    yield from _numbers_in(name, text)


def _numbers_in(place: str, text: str) -> _Found:
    for number, match in enumerate(_NUMBER.finditer(text)):
        yield f"{place}:number {number}", _plain_cell(match[0])


def _block_fields(name: str, content: bytes) -> _Found:
    for start in range(0, len(content), _BLOCK):
        yield f"{name}:bytes from {start}", _digest_of(content[start : start + _BLOCK])


def _plain_cell(cell: str) -> Field:
    try:
        return int(cell) if cell.lstrip("+-").isdigit() else float(cell)
    except ValueError:
        return _short_text(cell)


def _plain_field(value: Any) -> Field:
    """Return a value as a plain number or text; not-a-number as text, since it equals nothing."""
    if isinstance(value, str):
        return _short_text(value)
    plain = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if plain else _short_text(repr(value))


def _short_text(text: str) -> str:
    """Return a string if it is short, else its length and digest."""
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{len(text)} characters, {_digest_of(text.encode('utf-8', 'replace'))}"


def _digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


#: What is observed apart: what everybody sees, what the curator sees, and how long it took.
CHANNELS = ("release", "console", "timing")
_LONGEST_S = 600.0  # of one run
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Trial:
    """What could be seen of one run.

    Attributes
    ----------
    exit_code : int
    channels : dict
        For each of `CHANNELS`, the fields.
    certificate : dict or None
        The certificate that was released, if there was one.
    """

    exit_code: int
    channels: dict[str, Fields]
    certificate: dict[str, Any] | None = None


def run_trials(
    words: Sequence[str],
    files_of: Callable[[list[bool]], Mapping[str, bytes]],
    released: str,
    shape: tuple[int, int],
    *,
    program: Sequence[str] | None,
    jobs: int,
    random_state: int | None,
    progress: Progress | None,
) -> tuple[BoolArray, list[Trial]]:
    """Run a command many times, each time with the files that fair coins choose, and return the
    coins and what was seen.

    Parameters
    ----------
    words : sequence of str
        The command, with names of files relative to the folder that it runs in.
    files_of : callable
        From the coins of a run to the files that are written into its folder.
    released : str
        Folder that is observed, relative to the one that the command runs in.
    shape : (int, int)
        Runs, and coins of each.
    program : sequence of str, optional
        Words that start the program; this one by default.
    jobs : int
        Runs at the same time, each in the folder of its thread.
    random_state : int, optional
        Seed of the coins; fresh ones by default.
    progress : callable, optional
        Called with the number of finished runs and the number of all.

    Raises
    ------
    DataError
        If the first runs all fail, or one takes too long.
    ParameterError
        If the program cannot be started.
    """
    n, tell = shape[0], progress or (lambda done, total: None)
    command = [*(program or (sys.executable, "-m", "secretballot")), *words]
    coins = np.random.default_rng(random_state).integers(2, size=shape).astype(bool)
    place = Path(tempfile.gettempdir()), "secretballot-audit"
    sweep_drafts(*place)  # the private files of an audit that was killed
    with draft_folder(*place) as folder:
        trials: dict[int, Trial] = {}
        tell(0, n)

        def run(number: int) -> Trial:
            slot = folder / threading.current_thread().name
            return _run_once(command, slot, files_of(coins[number].tolist()), slot / released)

        with ThreadPoolExecutor(jobs, "slot") as pool:
            waiting = {pool.submit(run, number): number for number in range(n)}
            try:
                for future in as_completed(waiting):
                    trials[waiting[future]] = future.result()
                    _refuse_failures(trials)
                    tell(len(trials), n)
            finally:  # after an interruption only the runs that are under way end
                pool.shutdown(wait=True, cancel_futures=True)
    return coins, [trials[number] for number in range(n)]


def _refuse_failures(trials: Mapping[int, Trial]) -> None:
    """Refuse a command that always fails.

    There is nothing to see. Its own sentence may be private and stays unsaid.
    """
    if len(trials) >= 4 and all(trial.exit_code != 0 for trial in trials.values()):
        code = next(iter(trials.values())).exit_code
        raise DataError(
            f"The command ended with exit code {code} in its first {len(trials)} runs; run it by"
            " itself until it works."
        )


def _run_once(
    command: Sequence[str], slot: Path, files: Mapping[str, bytes], released: Path
) -> Trial:
    """Run the command in a fresh folder with the files of one world, observe, and delete the
    folder."""
    # 1. a folder of the same name and the same files, whatever was there before
    shutil.rmtree(slot, ignore_errors=True)
    slot.mkdir(mode=0o700)
    for name, content in files.items():
        (slot / name).write_bytes(content)
    # 2. a process of its own
    environment = {**dict.fromkeys(_THREADS, "1"), **os.environ}
    start = time.perf_counter()
    try:
        ended = subprocess.run(
            command,
            cwd=slot,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DataError(
            f"A run took more than {_LONGEST_S:g} seconds; attack a smaller table."
        ) from None
    except OSError as error:
        raise ParameterError(
            f"The program {command[0]!r} cannot be started: {error.strerror}."
        ) from None
    seconds = time.perf_counter() - start
    # 3. what everybody sees, what the curator sees, and how long it took, apart from each other
    console: Fields = {}
    for name, output in (("output", ended.stdout), ("error", ended.stderr)):
        console |= text_fields(name, output.decode("utf-8", "replace"))
    trial = Trial(
        ended.returncode,
        {
            "release": {"exit code": ended.returncode, **observed_files(released)},
            "console": console,
            "timing": {"seconds": seconds},
        },
        _certificate_of(released),
    )
    shutil.rmtree(slot, ignore_errors=True)
    return trial


def _certificate_of(released: Path) -> dict[str, Any] | None:
    try:
        document = json.loads((released / "certificate.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None
