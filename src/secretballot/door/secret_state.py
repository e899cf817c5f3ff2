"""The secret state of a stream, such as a noisy threshold: kept in the vault, in step with the answers in the ledger.

A draw that moves the state writes it first, beside the one before, and then the answer; the number of answers on the
ledger says which of the two holds. So a crash at any moment leaves one state that fits.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from secretballot.exceptions import LedgerError
from secretballot.vault import read_secret, write_secret

__all__ = ["StateStore"]


class StateStore:
    """Keep the states that may still be needed: the last one, and the one before it.

    Parameters
    ----------
    path : Path or None
        File in the vault; None keeps the states in this process.
    binding : str
        Names the account and the reservation; a file about another one is refused.
    """

    def __init__(self, path: Path | None, binding: str) -> None:
        self._path, self._binding = path, binding
        self._held: list[dict[str, Any]] = []

    def load(self, n_answers: int, n_abstained: int) -> dict[str, int] | None:
        """Return the state after `n_answers` answers, None where nothing was answered yet.

        Raises
        ------
        LedgerError
            If the vault has lost it, or holds one of another time or stream.
        """
        states = self._read()
        fitting = [version["state"] for version in states if version["since"] <= n_answers]
        if not fitting and n_answers == 0:
            return None
        if not fitting or fitting[-1].get("n_below") != n_abstained:
            raise LedgerError(
                f"The secret state of this stream after its {n_answers} answers is not in the vault; put the vault "
                "back as it was, or begin another stream, which is a new charge."
            )
        return dict(fitting[-1])

    def save(self, since: int, state: Mapping[str, int]) -> None:
        """Keep a state that holds once `since` answers are on the ledger; the one that holds until then stays."""
        earlier = [version for version in self._read() if version["since"] < since]
        if earlier and earlier[-1]["state"] == state:
            return
        self._held = [*earlier[-1:], {"since": since, "state": dict(state)}]
        if self._path is not None:
            write_secret(self._path, json.dumps({"stream": self._binding, "states": self._held}).encode())

    def _read(self) -> list[dict[str, Any]]:
        if self._path is None:
            return self._held
        content = read_secret(self._path)
        if content is None:
            return []
        try:
            kept = json.loads(content)
            stream, states = kept["stream"], list(kept["states"])
        except (ValueError, KeyError, TypeError):
            raise LedgerError(f"{self._path} is damaged; put the vault back as it was.") from None
        if stream != self._binding:
            raise LedgerError(f"{self._path} belongs to another ledger; put back the vault that goes with this one.")
        return states
