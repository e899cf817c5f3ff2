"""The secret state of a stream, such as a noisy threshold: kept in the vault, in step with the
answers in the ledger.

Every draw writes the state it left under a new random name, beside the one it began with, and then
the answers, which carry the name. So a crash at any moment leaves the state that the last stored
answer names, and no other one fits.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from secretballot._json_files import LARGEST_JSON, json_fields
from secretballot.core.noise import entropy_bytes
from secretballot.exceptions import LedgerError
from secretballot.vault import read_secret, write_secret

NAME_BYTES = 16
FILE_BYTES = 1024  # whatever the state: whether it can be written must not depend on what was drawn


class StateStore:
    """Keep the states that may still be needed.

    That of the last stored answer, and the one being drawn.

    It refuses pickling, as a copy would be a second stream over one state.

    Parameters
    ----------
    path : Path or None
        File in the vault; None keeps the states in this process.
    binding : str
        Names the account and the reservation; a file about another one is refused.
    """

    def __init__(self, path: Path | None, binding: str) -> None:
        self._path, self._binding = path, binding
        self._held: dict[str, dict[str, int]] = {}

    def load(self, name: str | None) -> dict[str, int] | None:
        """Return the state of this name, None for no name: nothing was answered yet.

        Raises
        ------
        LedgerError
            If the vault has lost it, or holds those of another time or stream.
        """
        if name is None:
            return None
        states = self._read_states()
        if name not in states:
            raise LedgerError(
                "The secret state that goes with the last answer of this stream is not in the"
                " vault; put the vault back as it was, or begin another stream, which is a new"
                " charge."
            )
        return states[name]

    def save(self, name: str | None, state: Mapping[str, int]) -> str:
        """Keep the state that a draw left, beside the one of this name that it began with.

        Return its new name.
        """
        new = entropy_bytes(NAME_BYTES).hex()
        states = {} if name is None else {name: self._read_states()[name]}
        states[new] = dict(state)
        if self._path is None:
            self._held = states
        else:
            content = json.dumps({"stream": self._binding, "states": states})
            write_secret(self._path, content.ljust(FILE_BYTES).encode())
        return new

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A stream holds a secret state; it is neither pickled nor copied: open it again by its"
            " name."
        )

    def _read_states(self) -> dict[str, dict[str, int]]:
        if self._path is None:
            return self._held
        content = read_secret(self._path, largest=LARGEST_JSON)
        if content is None:
            return {}
        kept = _parsed_states(content)
        if kept is None:
            raise LedgerError(f"{self._path} is damaged; put the vault back as it was.")
        if kept[0] != self._binding:
            raise LedgerError(
                f"{self._path} belongs to another ledger; put back the vault that goes with this"
                " one."
            )
        return kept[1]


def _parsed_states(content: bytes) -> tuple[str, dict[str, dict[str, int]]] | None:
    """Return binding and states, None for damage.

    An error raised in here would carry the states along.
    """
    kept = json_fields(content, {"stream": str, "states": dict})
    if kept is None or not all(_is_state(state) for state in kept["states"].values()):
        return None
    return kept["stream"], kept["states"]


def _is_state(value: object) -> bool:
    return isinstance(value, dict) and all(type(number) is int for number in value.values())
