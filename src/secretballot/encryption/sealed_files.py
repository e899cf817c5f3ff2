"""One encrypted file: AES-256-GCM in chunks, each bound to the file's place and to its own.

A file is a mark, a salt of 32 random bytes, and chunks. Its key follows from the data key and the
salt by HKDF; so no two files share a key, a file that is written again has another one, and the
number of a chunk can be its nonce. What was encrypted is the content, zeros, and the content's
length in the last eight bytes. A chunk is authentic together with the vault's serial, the file's
place in the vault, its number, and whether it is the last: a file that was cut off, mixed up,
renamed or changed is not read.

The zeros hide a part of the size: files have a multiple of 512 bytes, large ones a round number
whose last digits are missing (at most an eighth more; Nikitin et al. 2019, "PADME").
"""

import importlib
import io
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from secretballot.exceptions import VaultError

__all__ = [
    "CHUNK_BYTES",
    "MARK",
    "OVERHEAD_BYTES",
    "FileKey",
    "FileSealer",
    "derived_key",
    "has_mark",
    "is_sealed",
    "opened",
    "random_bytes",
    "stored_length",
]

MARK = b"SBVAULT\x01"
CHUNK_BYTES = 8192  # of content; a multiple of the padding's step
SALT_BYTES, TAG_BYTES, LENGTH_BYTES = 32, 16, 8
OVERHEAD_BYTES = len(MARK) + SALT_BYTES
_STEP = 512
_STORED = CHUNK_BYTES + TAG_BYTES
_GROUP = 128  # chunks that are written at once


class FileKey:
    """What one file is encrypted by.

    Parameters
    ----------
    data_key : bytes
        Of the vault.
    serial : bytes
        Of the vault.
    role : str
        Place of the file in the vault.
    salt : bytes
        Of the file.
    """

    __slots__ = ("_about", "_cipher")

    def __init__(self, data_key: bytes, serial: bytes, role: str, salt: bytes) -> None:
        key = derived_key(data_key, salt, b"secretballot/vault/file")
        self._cipher = _crypto_module("hazmat.primitives.ciphers.aead").AESGCM(key)
        name = role.encode("utf-8", "surrogateescape")
        self._about = serial + len(name).to_bytes(4, "big") + name

    def sealed(self, number: int, plain: bytes | memoryview, *, last: bool) -> bytes:
        """Return a chunk encrypted; each number must be used once."""
        found: bytes = self._cipher.encrypt(*self._cipher_terms(number, last, plain))
        return found

    def opened(self, number: int, stored: bytes, *, last: bool) -> bytes | None:
        """Return a chunk, None where it is not the one that was stored."""
        invalid = _crypto_module("exceptions").InvalidTag
        nonce, content, about = self._cipher_terms(number, last, stored)
        try:
            found: bytes = self._cipher.decrypt(nonce, content, about)
        except invalid:
            return None
        return found

    def _cipher_terms(self, number: int, last: bool, content: Any) -> tuple[bytes, Any, bytes]:
        place = number.to_bytes(8, "big") + bytes([last])
        return b"\0\0\0" + place, content, self._about + place

    def __repr__(self) -> str:
        return "FileKey(<secret>)"


class FileSealer:
    """Encrypt a file piece by piece; `finish` must come last.

    Parameters
    ----------
    write : callable
        Takes the bytes that go behind those that are there.
    key_of : callable
        Returns the file's key for a salt.

    Notes
    -----
    Once a write failed nothing more is taken: the same number must not be used for other content.
    """

    def __init__(
        self, write: Callable[[bytes], object], key_of: Callable[[bytes], FileKey]
    ) -> None:
        salt = random_bytes(SALT_BYTES)
        self._key, self._write = key_of(salt), write
        self._rest, self._number, self._length = bytearray(), 0, 0
        self._sound, self._process = True, os.getpid()
        self._write_stored(MARK + salt)

    def add(self, content: bytes | memoryview) -> None:
        """Encrypt bytes behind those that were given; up to a chunk waits for what follows."""
        content = memoryview(content).cast("B")
        self._length += len(content)
        self._add_content(content)

    def finish(self) -> None:
        """Write what waits, the padding and the length."""
        length = self._length
        left = padded_size(length + LENGTH_BYTES) - length - LENGTH_BYTES
        while left:
            zeros = min(left, CHUNK_BYTES)
            self._add_content(memoryview(bytes(zeros)))
            left -= zeros
        self._add_content(memoryview(length.to_bytes(LENGTH_BYTES, "big")))
        self._write_stored(self._key.sealed(self._number, bytes(self._rest), last=True))
        self._sound = False

    def _add_content(self, content: memoryview) -> None:
        # a full chunk waits as well: nobody knows yet whether it is the last of the file
        at, stored = 0, []
        while at < len(content):
            if len(self._rest) == CHUNK_BYTES:
                stored.append(self._sealed_chunk(bytes(self._rest)))
                self._rest.clear()
            if not self._rest and len(content) - at > CHUNK_BYTES:
                stored.append(self._sealed_chunk(content[at : at + CHUNK_BYTES]))
                at += CHUNK_BYTES
            else:
                size = min(CHUNK_BYTES - len(self._rest), len(content) - at)
                self._rest += content[at : at + size]
                at += size
            if len(stored) == _GROUP:
                self._write_stored(b"".join(stored))
                stored.clear()
        self._write_stored(b"".join(stored))

    def _sealed_chunk(self, content: bytes | memoryview) -> bytes:
        stored = self._key.sealed(self._number, content, last=False)
        self._number += 1
        return stored

    def _write_stored(self, stored: bytes) -> None:
        # a copy in a forked process would use the same numbers
        if not self._sound or self._process != os.getpid():
            raise VaultError("An encrypted file was written to after it had failed; begin it anew.")
        self._sound = False
        if stored:
            self._write(stored)
        self._sound = True


class _Opened(io.RawIOBase):
    """The content of an encrypted file, chunk by chunk; only what is authentic is given."""

    def __init__(
        self, file: IO[bytes], key: FileKey, length: int, n_chunks: int, where: str
    ) -> None:
        super().__init__()
        self._file, self._key, self._where = file, key, where
        self._left, self._number, self._n_chunks = length, 0, n_chunks
        self._chunk = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        """Fill a buffer as far as one chunk goes.

        Raises
        ------
        VaultError
            If the chunk is not the one that was stored in this place.
        """
        if not self._left:
            return 0
        if not self._chunk:
            last = self._number == self._n_chunks - 1
            stored = self._file.read(_STORED)
            plain = self._key.opened(self._number, stored, last=last)
            if plain is None:
                raise changed_file(self._where)
            self._number += 1
            self._chunk = memoryview(plain)[: self._left]
        size = min(len(target), len(self._chunk))
        target[:size] = self._chunk[:size]
        self._chunk, self._left = self._chunk[size:], self._left - size
        return size


def opened(
    file: IO[bytes], key_of: Callable[[bytes], FileKey], where: str
) -> tuple[io.BufferedReader, int]:
    """Return the content of an encrypted file, to be read from its beginning, and its length.

    Parameters
    ----------
    file : binary file
        At its beginning; it must be one that can be sought in.
    key_of : callable
        Returns the file's key for a salt.
    where : str
        For messages.

    Raises
    ------
    VaultError
        If it is not the file that was stored in this place.
    """
    size = os.fstat(file.fileno()).st_size
    head = file.read(OVERHEAD_BYTES)
    body = size - OVERHEAD_BYTES
    n_chunks = -(-body // _STORED)
    if not head.startswith(MARK):
        raise VaultError(
            f"{where} is not encrypted, although its vault is; put the vault back as it was, or, if"
            " you know where the file came from, repeat secretballot vault encrypt."
        )
    if len(head) < OVERHEAD_BYTES or n_chunks < 1:
        raise changed_file(where)
    key = key_of(head[len(MARK) :])
    # the last chunk first: it tells the length, and a file that was cut off has no such one
    file.seek(OVERHEAD_BYTES + (n_chunks - 1) * _STORED)
    end = key.opened(n_chunks - 1, file.read(_STORED), last=True)
    if end is None or len(end) < LENGTH_BYTES:
        raise changed_file(where)
    length = int.from_bytes(end[-LENGTH_BYTES:], "big")
    if padded_size(length + LENGTH_BYTES) != (n_chunks - 1) * CHUNK_BYTES + len(end):
        raise changed_file(where)
    file.seek(OVERHEAD_BYTES)
    raw = _Opened(file, key, length, n_chunks, where)
    return io.BufferedReader(raw, buffer_size=CHUNK_BYTES), length


def is_sealed(file: IO[bytes]) -> bool:
    """Return whether a file begins as an encrypted one does; it is at its beginning afterwards."""
    found = file.read(len(MARK)) == MARK
    file.seek(0)
    return found


def has_mark(path: Path) -> bool:
    """Return whether an ordinary file begins as an encrypted one; false where it cannot be read."""
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                return is_sealed(file)
    return False


def stored_length(length: int) -> int:
    """Return the size of the encrypted file of a content of so many bytes."""
    whole = padded_size(length + LENGTH_BYTES)
    return OVERHEAD_BYTES + whole + TAG_BYTES * -(-whole // CHUNK_BYTES)


def padded_size(size: int) -> int:
    """Return to how many bytes a positive number of them is filled up."""
    exponent = max(1, size.bit_length() - 1)
    step = max(_STEP, 1 << max(0, exponent - exponent.bit_length()))
    return -(-size // step) * step


def changed_file(where: str) -> VaultError:
    """Return the refusal of a file that is not the one that was stored."""
    return VaultError(
        f"{where} is not the encrypted file that was stored there: it was changed, cut off, or put"
        " in the place of another; put the vault back as it was."
    )


def derived_key(key: bytes, salt: bytes, purpose: bytes) -> bytes:
    """Return a key of 32 bytes that follows from another one (HKDF with SHA-256)."""
    hkdf = _crypto_module("hazmat.primitives.kdf.hkdf").HKDF
    sha256 = _crypto_module("hazmat.primitives.hashes").SHA256()
    found: bytes = hkdf(algorithm=sha256, length=32, salt=salt, info=purpose).derive(key)
    return found


def random_bytes(size: int) -> bytes:
    """Return up to 32 bytes of the operating system's, drawn by the library of the cipher."""
    found: bytes = _crypto_module("hazmat.primitives.ciphers.aead").AESGCM.generate_key(
        bit_length=256
    )
    return found[:size]


def _crypto_module(module: str) -> Any:
    with suppress(ImportError):
        return importlib.import_module(f"cryptography.{module}")
    raise VaultError(
        "cryptography is not installed, which encrypted vaults need; install it with:"
        " pip install 'secretballot[vault]'."
    )
