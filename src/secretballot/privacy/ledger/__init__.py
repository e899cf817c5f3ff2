"""The durable account of one private dataset: reserve, draw elsewhere, commit or forfeit.

What is reserved is spent, whatever happens afterwards: a crash between reserve and commit costs and
is never refunded.

What gives rows their meaning (`chain`, `following`, `terms`, `answering`, `entries`, `book`) stands
above two back ends (`store`): a file (`sqlite_store`, with `file`, `room`, `schema`) and a database
(`postgres_store`, with `postgres_schema`). `places` chooses between them.
"""

from secretballot.privacy.ledger.handle import Ledger
from secretballot.privacy.ledger.terms import Amount, LedgerEntry, State

__all__ = ["Amount", "Ledger", "LedgerEntry", "State"]
