"""What a vault remembers of the ledgers it was used with: how far each had come.

A ledger that is put back alone from an older copy has lost answers that were given; a reservation
would answer the same queries anew, with fresh noise, for nothing. The vault beside it has seen
them, and refuses such a copy.
"""

from pathlib import Path

from secretballot.core.ledger import Ledger
from secretballot.exceptions import LedgerError
from secretballot.vault import SeenHead, make_vault

_FOLDER, _ENDING = "ledgers", ".head"


def is_other_ledger(vault: Path, ledger: Ledger) -> bool:
    """Return whether this vault was used with ledgers, and with this one never.

    Parameters
    ----------
    vault : Path
        The secret folder.
    ledger : Ledger
        The account in use.
    """
    seen = {path.name for path in (vault / _FOLDER).glob(f"*{_ENDING}")}
    return bool(seen) and _file_name(ledger) not in seen


def _file_name(ledger: Ledger) -> str:
    return f"{ledger.account[:32]}{_ENDING}"


def keep_in_step(vault: Path, ledger: Ledger) -> None:
    """Refuse a ledger that does not hold what this vault has seen of it, and remember how far it
    comes from now on.

    Nothing is kept of a ledger in memory. Where the memory cannot be written it lags behind, which
    refuses less, not more.

    Parameters
    ----------
    vault : Path
        The secret folder.
    ledger : Ledger
        The account in use.

    Raises
    ------
    LedgerError
        If the ledger is an older copy, or another one of the same terms; nothing was spent.
    DataError
        If the vault cannot be used.
    """
    if not ledger.durable:
        return
    place = make_vault(vault.resolve() / _FOLDER) / _file_name(ledger)
    seen = SeenHead(place)
    last = seen.read()
    if last is not None and not ledger.contains(*last):
        raise LedgerError(
            f"The ledger of {ledger.dataset!r} is an older copy, or another one: it does not hold"
            " what this vault has seen of it, so answers that were given could be drawn anew;"
            " restore the newest copy of the ledger. Nothing was spent."
        )
    seen.write(*ledger.head())
    ledger.call_after_commits(str(place), seen.write)
