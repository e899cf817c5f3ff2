"""Drafts: held while their writer lives, gone when it ends, swept when it was killed; nothing
else is ever swept."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from secretballot.drafts import draft_file, draft_folder, sweep_drafts
from secretballot.exceptions import DataError
from secretballot.vault import read_secret, write_secret

KILLED = """
import os, signal, sys
from pathlib import Path
from secretballot.drafts import draft_file, draft_folder

with draft_file(Path(sys.argv[1]) / "x.json"), draft_folder(Path(sys.argv[1]), "plan") as folder:
    (folder / "half").write_text("")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_drafts_of_a_killed_writer_are_swept_and_those_of_a_living_one_are_not(
    tmp_path: Path,
) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert len(names(tmp_path)) == 2
    with draft_file(tmp_path / "x.json") as (_, draft), draft_folder(tmp_path, "plan") as folder:
        sweep_drafts(tmp_path, "x.json", "plan")
        assert names(tmp_path) == sorted([draft.name, folder.name])
    assert names(tmp_path) == []


def test_only_drafts_of_the_named_files_are_swept_and_no_link_is_followed(tmp_path: Path) -> None:
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


def write_files(folder: Path) -> None:
    for number in range(100):
        write_secret(folder / "x", b"%d" % number)
    assert read_secret(folder / "x") == b"99"
    (folder / "x").unlink()


def make_folders(folder: Path) -> None:
    for _ in range(400):
        with draft_folder(folder, "x") as made:
            (made / "one").write_text("1")
            assert (made / "one").read_text() == "1"


@pytest.mark.parametrize("work", [write_files, make_folders])
def test_no_writer_loses_its_draft_to_a_sweeper(
    tmp_path: Path, work: Callable[[Path], None]
) -> None:
    ended = threading.Event()

    def sweep() -> None:
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


HOLDER = """
import sys
from pathlib import Path
from secretballot.drafts import hold_draft

hold_draft(Path(sys.argv[1]) / "gone")
hold_draft(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_folder_stays_while_one_of_its_processes_lives(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        sweep_drafts(tmp_path, "plan")
        assert (folder / "half").exists()
        holder.communicate()
    sweep_drafts(tmp_path, "plan")
    assert not folder.exists()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_refused_and_keeps_nobody_waiting(tmp_path: Path, make: object) -> None:
    make(tmp_path / "x.json")  # type: ignore[operator]
    with pytest.raises(DataError, match="no ordinary file"):
        read_secret(tmp_path / "x.json")


def test_a_file_larger_than_it_can_be_is_refused_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"12345")
    assert read_secret(tmp_path / "x.json", largest=5) == b"12345"
    with pytest.raises(DataError, match="5 bytes, and none of ours has more than 4"):
        read_secret(tmp_path / "x.json", largest=4)
    assert read_secret(tmp_path / "none") is None
