"""The plan itself: its model, its text, its pictures."""
