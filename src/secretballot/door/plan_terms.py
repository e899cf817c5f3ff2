"""What ties a plan in the ledger to the vault: a plan goes on only with the terms, and the teachers, it began with."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from secretballot.exceptions import LedgerError, ParameterError
from secretballot.privacy.accounting import Event
from secretballot.privacy.ledger import LedgerEntry
from secretballot.vault import keep_secret, make_vault, read_secret

__all__ = ["PlanFiles"]


class PlanFiles:
    """The files of one plan in the vault.

    Parameters
    ----------
    vault : Path or None
        None where the plan dies with the process.
    request : str
        Key of the plan in the ledger.
    """

    def __init__(self, vault: Path | None, request: str) -> None:
        self._request = request
        self._folder = None if vault is None else make_vault(vault / "streams")
        self._name = hashlib.sha256(request.encode()).hexdigest()[:32]

    @property
    def state(self) -> Path | None:
        """Where the secret state is kept."""
        return None if self._folder is None else self._folder / f"{self._name}.state"

    def tie(self, terms: Mapping[str, Any], entry: LedgerEntry, events: tuple[Event, ...], *, bought_now: bool) -> None:
        """Keep the terms of a plan that begins, or refuse to go on with one that began with others.

        Raises
        ------
        ParameterError
            If a term is another one.
        LedgerError
            If the plan began elsewhere, or without a vault.
        """
        if self._folder is None:
            if not bought_now:
                raise LedgerError(self._began("no vault is given to take it up"))
            return
        path = self._folder / f"{self._name}.terms"
        content = read_secret(path)
        if content is None:
            # A crash between the purchase and this line leaves a plan that has answered nothing: it may begin again.
            if entry.parts or entry.state != "reserved" or entry.events != events:
                raise LedgerError(self._began(f"the vault {self._folder.parent} holds nothing of it"))
            content = keep_secret(path, json.dumps(terms).encode())
        kept = json.loads(content)
        for name, value in terms.items():
            if kept.get(name) != value:
                raise ParameterError(
                    f"Request {self._request!r} was begun with another {name}; go on with the same, or ask under "
                    "another key, which is a new charge. Nothing was spent."
                )

    def _began(self, why: str) -> str:
        return (
            f"Request {self._request!r} was bought before, and {why}; give the vault it was begun with, or ask under "
            "another key, which is a new charge."
        )
