"""What the guarantee rests on; it imports nothing else of the project."""
