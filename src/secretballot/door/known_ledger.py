"""What a vault remembers of the ledgers it was used with: how far each had come.

A ledger that is put back alone from an older copy has lost answers that were given; a reservation
would answer the same queries anew, with fresh noise, for nothing. The vault beside it has seen
them, and refuses such a copy.
"""

from pathlib import Path

from secretballot.exceptions import LedgerError
from secretballot.privacy.ledger import Ledger
from secretballot.vault import SeenHead, make_vault

__all__ = ["keep_in_step"]


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
    place = make_vault(vault.resolve() / "ledgers") / f"{ledger.account[:32]}.head"
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
