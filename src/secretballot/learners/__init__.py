"""The scikit-learn face, and whole runs from files to folders: they compose the rooms below and draw no noise."""
