"""The release folder: its files, its page, its README."""
