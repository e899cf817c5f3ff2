"""The durable account of one private dataset: reserve, draw elsewhere, commit or forfeit.

What is reserved is spent, whatever happens afterwards: a crash between reserve and commit costs and
is never refunded.
"""

from secretballot.privacy.ledger.handle import Ledger
from secretballot.privacy.ledger.terms import Amount, LedgerEntry, State

__all__ = ["Amount", "Ledger", "LedgerEntry", "State"]
