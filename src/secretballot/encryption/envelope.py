"""What says that a vault is encrypted: its data key, wrapped by the key of whoever owns it.

The file `encryption.json` holds nothing secret without that key. To take another key it is written
anew, and no other file of the vault is touched.
"""

import json
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from secretballot._drafts import draft_file, put_in_place, sweep_drafts
from secretballot._json_files import json_fields
from secretballot.encryption.key_sources import KEY_BYTES, KeySource, key_id_of
from secretballot.encryption.sealed_files import (
    FileKey,
    random_bytes,
)
from secretballot.exceptions import VaultError

__all__ = [
    "ENVELOPE",
    "Envelope",
    "new_envelope",
    "read_envelope",
    "write_envelope",
]

ENVELOPE = "encryption.json"
_FORMAT, _VERSION, _CIPHER = "secretballot/vault-encryption", 1, "AES-256-GCM"
_LARGEST = 1 << 16
_FIELDS = {
    "format": str,
    "version": int,
    "cipher": str,
    "state": str,
    "serial": str,
    "key_id": str,
    "salt": str,
    "wrapped": str,
}
#: All files are encrypted; or some may be, since a conversion is at work or broke off.
WHOLE, CHANGING = "encrypted", "changing"


@dataclass(frozen=True)
class Envelope:
    """What stands in the file.

    Attributes
    ----------
    state : {"encrypted", "changing"}
    serial : bytes
        Names this vault; drawn at random.
    key_id : str
        Follows from the key that the data key is wrapped by, and tells nothing else of it.
    salt, wrapped : bytes
        The data key, encrypted as a file is.
    """

    state: str
    serial: bytes
    key_id: str
    salt: bytes
    wrapped: bytes

    def data_key(self, source: KeySource, vault: Path) -> bytes:
        """Return the data key of a vault.

        Raises
        ------
        VaultError
            If the source gives another key, or the envelope was changed.
        """
        return self.data_key_of(source.key(), str(source), vault)

    def data_key_of(self, key: bytes, source: str, vault: Path) -> bytes:
        """Return the data key of a vault by a key that a source gave.

        Raises
        ------
        VaultError
            If it is another key than the vault's, or the envelope was changed.
        """
        if key_id_of(key) != self.key_id:
            raise VaultError(
                f"The vault {vault} is encrypted with the key {self.key_id}, and {source} gives the"
                f" key {key_id_of(key)}; give the other one."
            )
        found = FileKey(key, self.serial, _role_of(self.state), self.salt).opened(
            0, self.wrapped, last=True
        )
        if found is None or len(found) != KEY_BYTES:
            raise VaultError(f"{vault / ENVELOPE} was changed; put it back as it was.")
        return found

    def wrapped_by(self, key: bytes, data_key: bytes, state: str) -> "Envelope":
        """Return the envelope of the same vault for a key and a state."""
        salt = random_bytes(32)
        wrapped = FileKey(key, self.serial, _role_of(state), salt).sealed(0, data_key, last=True)
        return replace(self, state=state, key_id=key_id_of(key), salt=salt, wrapped=wrapped)


def _role_of(state: str) -> str:
    return f"{ENVELOPE} {state}"


def new_envelope(key: bytes, state: str) -> tuple[Envelope, bytes]:
    """Return the envelope of a new vault, and its data key, drawn now."""
    data_key = random_bytes(KEY_BYTES)
    empty = Envelope(state, random_bytes(16), "", b"", b"")
    return empty.wrapped_by(key, data_key, state), data_key


def read_envelope(vault: Path) -> Envelope | None:
    """Return what says that a vault is encrypted, None where it is not.

    Raises
    ------
    VaultError
        If it cannot be read, or is damaged.
    """
    place, problem, content = vault / ENVELOPE, "", b""
    try:
        # follows no link, and waits for nobody at the other end of a pipe
        handle = os.open(
            place, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        )
        with os.fdopen(handle, "rb") as file:
            content = file.read(_LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = error.strerror or type(error).__name__
    found = json_fields(content, _FIELDS)
    if not problem and found is not None:
        with suppress(ValueError):
            serial, salt, wrapped = map(
                bytes.fromhex, (found["serial"], found["salt"], found["wrapped"])
            )
            known = (found["format"], found["version"], found["cipher"])
            if known == (_FORMAT, _VERSION, _CIPHER) and found["state"] in (WHOLE, CHANGING):
                return Envelope(found["state"], serial, found["key_id"][:64], salt, wrapped)
    raise VaultError(
        f"{place} cannot be read ({problem or 'it is damaged, or of another version'}); put the"
        " vault back as it was: without this file its key opens nothing."
    )


def write_envelope(vault: Path, envelope: Envelope, *, only_new: bool = False) -> None:
    """Write the envelope of a vault, whole or not at all.

    Parameters
    ----------
    vault : Path
    envelope : Envelope
    only_new : bool
        Leave one that is there, from another process at the same moment.

    Raises
    ------
    VaultError
        If it cannot be written.
    """
    document = {"format": _FORMAT, "version": _VERSION, "cipher": _CIPHER}
    text = json.dumps(
        document
        | {
            "state": envelope.state,
            "serial": envelope.serial.hex(),
            "key_id": envelope.key_id,
            "salt": envelope.salt.hex(),
            "wrapped": envelope.wrapped.hex(),
        },
        indent=1,
    )
    place, problem = vault / ENVELOPE, ""
    sweep_drafts(vault, ENVELOPE)
    try:
        with draft_file(place) as (file, draft):
            file.write(text.encode())
            put_in_place(file, draft, place, only_new=only_new)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise VaultError(f"{place} cannot be written ({problem}); free some space, and repeat.")
