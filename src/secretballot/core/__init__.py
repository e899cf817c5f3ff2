"""What the guarantee rests on; it imports nothing else of the project."""

from secretballot.core import ledger as ledger
