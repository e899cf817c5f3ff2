"""The durable account of one private dataset: reserve, draw elsewhere, commit or forfeit.

What is reserved is spent, whatever happens afterwards: a crash between reserve and commit costs and
is never refunded.

`rows` says what a ledger holds and checks it, `account` is what its users hold; `sqlite` and
`postgres` keep the rows in a file or a database, and `urls` reads how a database is named.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from secretballot.core.ledger.account import Amount, Ledger, LedgerEntry

__all__ = ["Amount", "Ledger", "LedgerEntry"]


def __getattr__(name: str) -> Any:
    # who only reads the name of a place waits for no arrays
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.account"), name)
