"""The durable account of one private dataset: reserve, draw elsewhere, commit or forfeit.

What is reserved is spent, whatever happens afterwards: a crash between reserve and commit costs and
is never refunded.

`rows` says what a ledger holds and checks it, `account` is what its users hold; `sqlite` and
`postgres` keep the rows in a file or a database, and `urls` reads how a database is named.
"""

from secretballot.core.ledger.account import Amount, Ledger, LedgerEntry, State

__all__ = ["Amount", "Ledger", "LedgerEntry", "State"]
