"""One encrypted file: what is read is what was written, in its place, or nothing."""

import io
import os
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from secretballot.encryption import sealed_files
from secretballot.encryption.sealed_files import (
    CHUNK_BYTES,
    FileKey,
    FileSealer,
    opened,
    padded_size,
    stored_length,
)
from secretballot.exceptions import VaultError

KEY, SERIAL = bytes(range(32)), b"0123456789abcdef"


def keys(role: str = "a/b", serial: bytes = SERIAL, key: bytes = KEY) -> Any:
    return lambda salt: FileKey(key, serial, role, salt)


def sealed(path: Path, *pieces: bytes, role: str = "a/b") -> bytes:
    with path.open("wb") as file:
        sealer = FileSealer(file.write, keys(role))
        for piece in pieces:
            sealer.add(piece)
        sealer.finish()
    return path.read_bytes()


def content_of(path: Path, **about: Any) -> bytes:
    with path.open("rb") as file:
        content, length = opened(file, keys(**about), str(path))
        found = content.read()
    assert len(found) == length
    return found


@pytest.mark.parametrize(
    "size",
    [
        0,
        1,
        503,
        504,
        505,
        8184,
        8185,
        CHUNK_BYTES,
        CHUNK_BYTES + 1,
        2 * 8192 - 8,
        2 * 8192,
        300_001,
    ],
)
def test_what_is_read_is_what_was_written(size: int, tmp_path: Path) -> None:
    content, cuts = random.Random(size).randbytes(size), random.Random(size)
    pieces, at = [], 0
    while at < size:
        step = cuts.choice([1, 100, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 50_000])
        pieces.append(content[at : at + step])
        at += step
    for given in ([content], pieces):
        stored = sealed(tmp_path / "x", *given)
        assert content_of(tmp_path / "x") == content
        assert len(stored) == stored_length(size)
    with (tmp_path / "x").open("rb") as file:
        reader, _ = opened(file, keys(), "x")
        line = reader.readline()
        assert line + reader.read() == content


def test_a_file_that_was_changed_anywhere_is_refused(tmp_path: Path) -> None:
    content = bytes(3 * CHUNK_BYTES)
    stored = sealed(tmp_path / "x", content)
    chunk = CHUNK_BYTES + 16
    others = [stored[:at] + bytes([stored[at] ^ 1]) + stored[at + 1 :] for at in range(60)]
    places = random.Random(0).sample(range(60, len(stored)), 60)
    others += [stored[:at] + bytes([stored[at] ^ 128]) + stored[at + 1 :] for at in places]
    # cut off at a chunk or inside one, lengthened, two chunks in each other's place, one twice
    others += [stored[: 40 + k * chunk] for k in range(4)] + [stored[:-1], stored[:39], b""]
    others += [stored + b"\0", stored + stored[-chunk:]]
    first, second = stored[40 : 40 + chunk], stored[40 + chunk : 40 + 2 * chunk]
    others += [stored[:40] + second + first + stored[40 + 2 * chunk :]]
    others += [stored[:40] + first + first + stored[40 + 2 * chunk :]]
    # the end of another file of the same place
    others += [stored[: -len(stored) // 4] + sealed(tmp_path / "y", content)[-len(stored) // 4 :]]
    for other in others:
        assert other != stored
        (tmp_path / "x").write_bytes(other)
        with pytest.raises(VaultError, match=r"is not (the encrypted file|encrypted)"):
            content_of(tmp_path / "x")
    (tmp_path / "x").write_bytes(stored)
    assert content_of(tmp_path / "x") == content


def test_a_file_is_bound_to_its_place_its_vault_and_its_key(tmp_path: Path) -> None:
    sealed(tmp_path / "x", b"secret")
    for about in (
        {"role": "a/c"},
        {"serial": bytes(16)},
        {"key": bytes(range(1, 33))},
    ):
        with pytest.raises(VaultError, match="is not the encrypted file"):
            content_of(tmp_path / "x", **about)


def test_no_file_shares_its_key_and_no_chunk_its_nonce(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[tuple[bytes, bytes]] = []
    derived = sealed_files.derived_key
    current: list[bytes] = []

    def kept(key: bytes, salt: bytes, purpose: bytes) -> bytes:
        current[:] = [derived(key, salt, purpose)]
        return current[0]

    terms = FileKey._cipher_terms

    def seen(self: FileKey, number: int, last: bool, content: Any) -> Any:
        found = terms(self, number, last, content)
        used.append((current[0], found[0]))
        return found

    monkeypatch.setattr(sealed_files, "derived_key", kept)
    monkeypatch.setattr(FileKey, "_cipher_terms", seen)
    for _ in range(30):  # the same content in the same place, written again and again
        sealed(tmp_path / "x", bytes(5 * CHUNK_BYTES))
    assert len(used) == 30 * 6
    assert len(set(used)) == len(used)
    assert len({key for key, _ in used}) == 30


def test_after_a_write_that_failed_nothing_more_is_encrypted() -> None:
    class Full(io.BytesIO):
        def write(self, content: Any) -> int:
            if self.tell() > 1000:
                raise OSError("no space")
            return super().write(content)

    sealer = FileSealer(Full().write, keys())
    sealer.add(bytes(2 * CHUNK_BYTES))
    with pytest.raises(OSError, match="no space"):
        sealer.add(bytes(2 * CHUNK_BYTES))
    with pytest.raises(VaultError, match="begin it anew"):
        sealer.add(bytes(2 * CHUNK_BYTES))
    done = FileSealer(io.BytesIO().write, keys())
    done.finish()
    with pytest.raises(VaultError, match="begin it anew"):
        done.finish()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_copy_encrypts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sealer = FileSealer(io.BytesIO().write, keys())
    monkeypatch.setattr(sealed_files.os, "getpid", lambda: -1)
    with pytest.raises(VaultError, match="begin it anew"):
        sealer.finish()


def test_sizes_are_hidden_in_part() -> None:
    for size in (1, 8, 500, 512, 513, 10_000, 1_000_000, 123_456_789):
        padded = padded_size(size)
        assert size <= padded
        assert padded % 512 == 0
        assert padded <= max(size + 512, 1.13 * size)
    # a row more or less is seen at one size in thousands
    for start, row in ((10_000_000, 40), (1_000_000_000, 40)):
        sizes = [stored_length(start + k * row) for k in range(3000)]
        assert sum(a != b for a, b in pairwise(sizes)) <= 4


def test_nothing_shows_a_key() -> None:
    assert KEY.hex() not in repr(keys()(bytes(32)))
    assert repr(keys()(bytes(32))) == "FileKey(<secret>)"
