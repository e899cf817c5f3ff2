"""What the guarantee rests on; it imports nothing else of the project. `README.md` says what must
hold, in which order to read, and where each proof is."""
