"""A release folder holds exactly the files that its certificate lists, all of them regular files
of their kind."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_releases import binary

from made_certificates import failed, renewed, reseal
from secretballot.released import ReleasedLabels
from secretballot.report.certificate.verify import read_certificate, verify_certificate

Seal = Callable[[Path, dict[str, Any]], None]


@pytest.fixture
def folder(make_folder: Callable[[ReleasedLabels], Path]) -> Path:
    return make_folder(binary())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "README.txt").unlink(),
        lambda folder: (folder / "README.txt").write_text("A private relEase."),
        lambda folder: (folder / "README.txt").write_text("A private release.."),
        lambda folder: (folder / "votes.csv").write_text("201,49\n"),
        lambda folder: (folder / ".votes").write_text("201,49\n"),
        lambda folder: (folder / "vault").mkdir(),
        lambda folder: os.mkfifo(folder / "pipe"),
        lambda folder: (folder / "nowhere").symlink_to("/nowhere"),
    ],
    ids=["gone", "changed", "longer", "more", "hidden", "folder", "pipe", "link"],
)
def test_what_is_not_listed_or_not_there_is_refused(
    folder: Path, spoil: Callable[[Path], object]
) -> None:
    spoil(folder)
    assert failed(folder) == {"files"}


def bound_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(path.parent)  # the name of a socket is short
        server.bind(path.name)


def sparse_monster(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to("labels.csv"),
        lambda path: path.mkdir(),
        bound_socket,
        sparse_monster,
    ],
    ids=["pipe", "endless", "link", "folder", "socket", "sparse"],
)
def test_only_regular_files_of_bounded_size_are_read(
    folder: Path, make: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for name in ("labels.csv", "certificate.json"):
        (folder / name).rename(folder / "kept")
        make(folder / name)
        details = [check.detail for check in verify_certificate(folder).failures]
        assert any("no regular file" in one or "MB are read" in one for one in details)
        (folder / name).rename(folder.parent / name)
        (folder / "kept").rename(folder / name)
    document = read_certificate(folder / "certificate.json")
    (folder / "README.txt").unlink()
    make(folder / "README.txt")
    document["files"]["README.txt"]["bytes"] = (folder / "README.txt").lstat().st_size
    (folder / "certificate.json").write_text(json.dumps(renewed(document)))
    assert failed(folder) == {"files"}


def test_a_list_of_another_file_or_without_labels_is_refused(folder: Path, seal: Seal) -> None:
    reseal(folder, lambda document: document["files"].pop("labels.csv"))
    assert failed(folder) == {"files"}
    (folder / "votes.csv").write_text("201,49\n")
    seal(folder, binary().certificate)
    assert failed(folder) == {"files"}
