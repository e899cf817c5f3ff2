"""What the guarantee rests on; but for the ledger it imports nothing else of the project."""
