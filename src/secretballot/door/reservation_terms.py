"""What ties a reservation in the ledger to the vault: it goes on only with the terms, and the
teachers, it began with."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from secretballot._json_files import LARGEST_JSON, json_fields
from secretballot.core.ledger import LedgerEntry
from secretballot.core.noise import entropy_bytes
from secretballot.exceptions import LedgerError, ParameterError
from secretballot.privacy.accounting import Event
from secretballot.vault import keep_secret, make_vault, read_secret

ORIGIN_BYTES = 16


class ReservationFiles:
    """The files of one reservation in the vault.

    Parameters
    ----------
    vault : Path or None
        None where the reservation ends with the process.
    request : str
        Key of the reservation in the ledger.
    """

    def __init__(self, vault: Path | None, request: str) -> None:
        self._request = request
        self._folder = None if vault is None else make_vault(vault / "streams")
        self._name = hashlib.sha256(request.encode()).hexdigest()[:32]

    @property
    def state(self) -> Path | None:
        """Where the secret state is kept."""
        return None if self._folder is None else self._folder / f"{self._name}.state"

    def kept(self) -> dict[str, Any] | None:
        """Return the terms that the vault holds.

        Read them before the ledger, as terms are kept after the purchase.

        Raises
        ------
        LedgerError
            If they are damaged.
        """
        if self._folder is None:
            return None
        content = read_secret(self._folder / f"{self._name}.terms", largest=LARGEST_JSON)
        return None if content is None else self._parsed_terms(content)

    def check(self, kept: Mapping[str, Any], terms: Mapping[str, Any], *, reserved: bool) -> None:
        """Refuse, before anything is reserved, terms other than those that the vault holds.

        Raises
        ------
        ParameterError
            If a term is another one.
        LedgerError
            If the ledger does not know of the purchase.
        """
        for name, value in terms.items():
            if kept["terms"].get(name) != value:
                raise ParameterError(
                    f"Request {self._request!r} was begun with other terms ({name}); go on with the"
                    " same, or ask under another key, which is a new charge. Nothing was spent."
                )
        if not reserved:
            raise LedgerError(
                f"Request {self._request!r} was reserved before, and the ledger has lost it;"
                " restore the newest copy of the ledger. Nothing was spent."
            )

    def tie(
        self,
        terms: Mapping[str, Any],
        entry: LedgerEntry,
        events: tuple[Event, ...],
        *,
        reserved_now: bool,
    ) -> str:
        """Keep the terms of a new reservation, or refuse to go on with one that began with others.

        Returns
        -------
        str
            The reservation's origin, drawn at random when it began: every answer carries it or
            what follows from it, so that two vaults never answer under one purchase.

        Raises
        ------
        ParameterError
            If a term is another one.
        LedgerError
            If the reservation began elsewhere, or without a vault.
        """
        origin = entropy_bytes(ORIGIN_BYTES).hex()
        if self._folder is None:
            if not reserved_now:
                raise LedgerError(self._refusal_to_continue("no vault is given to take it up"))
            return origin
        kept = self.kept()
        if kept is None:
            # A crash between the purchase and this line leaves a reservation that has answered
            # nothing: it may begin again.
            if entry.parts or entry.state != "reserved" or entry.events != events:
                raise LedgerError(
                    self._refusal_to_continue(
                        f"the vault {self._folder.parent} holds nothing of it"
                    )
                )
            content = json.dumps({"terms": terms, "origin": origin}).encode()
            kept = self._parsed_terms(keep_secret(self._folder / f"{self._name}.terms", content))
        self.check(kept, terms, reserved=True)
        return str(kept["origin"])

    def _parsed_terms(self, content: bytes) -> dict[str, Any]:
        kept = json_fields(content, {"terms": dict, "origin": str})
        if kept is None:
            assert self._folder is not None  # there is content only where there is a folder
            path = self._folder / f"{self._name}.terms"
            raise LedgerError(
                f"{path} is damaged; put the vault back as it was. Nothing was spent."
            )
        return kept

    def _refusal_to_continue(self, why: str) -> str:
        return (
            f"Request {self._request!r} was reserved before, and {why}; give the vault it was begun"
            " with, or ask under another key, which is a new charge."
        )
