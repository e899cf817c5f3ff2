"""The mark of a sampler that passed its check counts only where this user left it."""

import os
from pathlib import Path

import pytest

from secretballot.core import sampler as sampler_memory
from secretballot.core.sampler import has_passed, remember


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the mark of the sampler "this one" is, which has passed."""
    monkeypatch.setattr(sampler_memory, "_cache_folder", lambda: tmp_path / "cache")
    assert not has_passed("this one")
    remember("this one")
    assert has_passed("this one")
    (found,) = (tmp_path / "cache").iterdir()
    return found


def test_a_mark_of_another_user_is_none(mark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: mark.stat().st_uid + 1)
    assert not has_passed("this one")


def test_a_mark_behind_a_link_is_none(mark: Path) -> None:
    mark.rename(mark.with_name("elsewhere"))
    mark.symlink_to(mark.with_name("elsewhere"))
    assert not has_passed("this one")


def test_a_mark_of_another_sampler_is_none(mark: Path) -> None:
    """Whoever may write the folder can give it another name, or more of them."""
    other = sampler_memory._mark_file("another one")
    os.link(mark, other)
    assert not has_passed("another one")
    other.unlink()
    mark.rename(other)
    assert not has_passed("another one")


def test_what_is_no_file_is_no_mark_and_keeps_nobody_waiting(mark: Path) -> None:
    mark.unlink()
    mark.mkdir()
    assert not has_passed("this one")
    mark.rmdir()
    os.mkfifo(mark)
    assert not has_passed("this one")
