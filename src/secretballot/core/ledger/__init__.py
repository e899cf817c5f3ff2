"""The durable account of one private dataset: reserve, draw elsewhere, commit or forfeit.

What is reserved is spent, whatever happens afterwards: a crash between reserve and commit costs and
is never refunded.

`rows` says what a ledger holds and checks it, `account` is what its users hold; `sqlite` and
`postgres` keep the rows in a file or a database, and `urls` reads how a database is named.
"""

from typing import TYPE_CHECKING, Any

from secretballot._lazy import load_name

if TYPE_CHECKING:
    from secretballot.core.ledger.account import Amount, Ledger, LedgerEntry, State

_HOMES = dict.fromkeys(("Amount", "Ledger", "LedgerEntry", "State"), "account")

__all__ = ["Amount", "Ledger", "LedgerEntry", "State"]


def __getattr__(name: str) -> Any:
    return load_name(__name__, name, _HOMES, ())
