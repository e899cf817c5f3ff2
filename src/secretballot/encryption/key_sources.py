"""Where the key of a vault comes from: a file, the environment, a command or a function.

What is named here is never the key itself, so that it may stand in settings, in a list of processes
and in messages.
"""

import inspect
import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from secretballot._drafts import write_new
from secretballot.encryption.sealed_files import derived_key, random_bytes
from secretballot.exceptions import ParameterError, VaultError

__all__ = [
    "KEY_BYTES",
    "VARIABLE",
    "KeySource",
    "key_id_of",
    "key_source",
    "source_in_environment",
    "write_new_key",
]

KEY_BYTES = 32
#: Names the source of the key where nothing else does.
VARIABLE = "SECRETBALLOT_VAULT_KEY"
_LONGEST = 4096  # bytes of a key file, or of what a command prints
_PATIENCE_S = 30.0  # for a command
_HEX = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True, repr=False, eq=False)
class KeySource:
    """Where a key comes from; the key is asked for when it is needed and not kept here.

    Attributes
    ----------
    kind : {"file", "env", "command", "call"}
    where : str or callable
        Path, name of a variable, words of a command, or a function that returns the key.
    """

    kind: str
    where: str | Callable[[], bytes]

    def __str__(self) -> str:
        if self.kind == "file":
            return f"the key file {self.where}"
        if self.kind == "env":
            return f"the environment variable {self.where}"
        if self.kind == "command" and isinstance(self.where, str):
            # the other words may hold what nobody else should read
            return f"the command {shlex.split(self.where)[0]}"
        return "the given function"

    __repr__ = __str__

    @property
    def travels(self) -> bool:
        """Whether another process may be told of it: a function that holds a key in itself, or in
        what it was made with, would take the key along."""
        return not callable(self.where) or _is_importable(self.where)

    def key(self) -> bytes:
        """Return the key.

        Raises
        ------
        VaultError
            If it cannot be had, others may read its file, or it is no key. Nothing of what was
            found is quoted.
        """
        if callable(self.where):
            found = self._key_returned(self.where)
        elif self.kind == "file":
            found = self._in_file(Path(self.where))
        elif self.kind == "env":
            found = os.environ.get(self.where, "").encode()
        else:
            found = self._key_printed(self.where)
        if not found:
            raise VaultError(f"There is no key in {self}; put one there, or name another source.")
        key = _key_in(found)
        if key is None:
            raise VaultError(
                f"What {self} gives is no key; a key has {KEY_BYTES} bytes, bare or as"
                f" {2 * KEY_BYTES} hexadecimal digits: make one with secretballot vault new-key."
            )
        return key

    def lasting_key(self) -> bytes:
        """Return the key that a vault is wrapped by, once the source has given it twice.

        Raises
        ------
        VaultError
            As `key`; or if the source gives another key each time, and so a lost one.
        """
        key = self.key()
        if self.key() != key:
            raise VaultError(
                f"T{str(self)[1:]} gives another key each time, so nobody could open the vault"
                " again; name a source that gives one and the same key."
            )
        return key

    def _key_returned(self, function: Callable[[], object]) -> bytes:
        found: object = None
        problem = ""
        try:
            found = function()
        except Exception as error:
            problem = type(error).__name__  # its message may quote anything
        if problem or not isinstance(found, bytes):
            raise VaultError(
                f"The function that gives the key {f'raised {problem}' if problem else 'returns'}"
                f"{'' if problem else ' no bytes'}; have it return the key as bytes."
            )
        return found

    def _in_file(self, path: Path) -> bytes:
        problem, content = "", b""
        try:
            handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            try:
                found = os.fstat(handle)
                if not stat.S_ISREG(found.st_mode):
                    problem = "it is no ordinary file"
                elif hasattr(os, "geteuid") and found.st_mode & 0o077:
                    problem = "others may read it; make it its owner's alone: chmod 600"
                else:
                    content = os.read(handle, _LONGEST)
            finally:
                os.close(handle)
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem:
            raise VaultError(f"T{str(self)[1:]} cannot be used ({problem}).")
        return content

    def _key_printed(self, words: str) -> bytes:
        problem, printed = "", b""
        try:
            # what it says besides may hold anything, and is not shown
            done = subprocess.run(
                shlex.split(words),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_PATIENCE_S,
                check=False,
            )
            printed = done.stdout[:_LONGEST]
            if done.returncode:
                problem = f"it ended with code {done.returncode}"
        except subprocess.TimeoutExpired:
            problem = f"it takes more than {_PATIENCE_S:g} seconds"
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem:
            raise VaultError(f"T{str(self)[1:]} gives no key ({problem}); run it by hand.")
        return printed


def key_source(given: "str | os.PathLike[str] | Callable[[], bytes] | KeySource") -> KeySource:
    """Return where a key comes from, as somebody names it.

    Parameters
    ----------
    given : path, str, callable or KeySource
        A key file, ``env:NAME``, ``command:WORDS``, or a function that returns the key.

    Raises
    ------
    ParameterError
        If it names none, or looks like a key itself.
    """
    if isinstance(given, KeySource):
        return given
    if callable(given):
        return KeySource("call", given)
    if not isinstance(given, str | os.PathLike):
        raise ParameterError(
            f"The source of a vault's key is of type {type(given).__name__}; give a file,"
            " env:NAME, command:WORDS or a function."
        )
    text = os.fspath(given)
    kind, _, rest = text.partition(":")
    if kind in ("env", "command"):
        problem = not rest.strip()
        if kind == "command" and not problem:
            try:
                problem = not shlex.split(rest)
            except ValueError:
                problem = True
        elif kind == "env" and _key_in(rest.encode()) is not None:
            # others may have seen it already, so it is not used either
            raise _is_a_key()
        if problem:
            raise ParameterError(
                f"The source of a vault's key names no {'variable' if kind == 'env' else 'command'}"
                f" behind {kind}:; give one, as in {kind}:NAME."
            )
        return KeySource(kind, rest.strip())
    if not text:
        raise ParameterError("The source of a vault's key is empty; give the path of a key file.")
    if _key_in(text.encode()) is not None:
        raise _is_a_key()
    return KeySource("file", os.path.abspath(text))


def write_new_key(path: Path) -> str:
    """Write a key that is drawn now into a new file of mode 0600, and return what it is called.

    Raises
    ------
    VaultError
        If there is a file already, or it cannot be written.
    """
    key, problem = random_bytes(KEY_BYTES), ""
    try:
        write_new(path, key.hex().encode() + b"\n", 0o600)
    except FileExistsError:
        problem = "it is there already, and may be the only copy of a key; name a new file"
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise VaultError(f"The key file {path} cannot be written ({problem}).")
    return key_id_of(key)


def key_id_of(key: bytes) -> str:
    """Return what a key is called; it tells nothing else of the key."""
    return derived_key(key, b"", b"secretballot/vault/key-id")[:8].hex()


def source_in_environment() -> KeySource | None:
    """Return the source that the environment names, None where it names none."""
    named = os.environ.get(VARIABLE)
    return key_source(named) if named else None


def _is_importable(function: Any) -> bool:
    """Return whether a function is one of a module, which another process finds by its name."""
    name, module = getattr(function, "__qualname__", ""), getattr(function, "__module__", None)
    if not inspect.isfunction(function) or module in (None, "__main__") or "." in name:
        return False
    return getattr(sys.modules.get(module), name, None) is function


def _is_a_key() -> ParameterError:
    return ParameterError(
        "A key was given in the place of its source, where others may see it: take another key,"
        f" and give a file, env:NAME or command:WORDS, also in {VARIABLE}."
    )


def _key_in(content: bytes) -> bytes | None:
    """Return the key in some bytes, None where it is none."""
    key = content if len(content) == KEY_BYTES else None
    text = content.strip()
    if _HEX.fullmatch(text.decode("latin-1")):
        key = bytes.fromhex(text.decode())
    # an unset secret is often a row of equal bytes
    return key if key is not None and len(set(key)) > 4 else None
