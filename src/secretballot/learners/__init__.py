"""Estimators with the face of scikit-learn, by family. They compose the rooms below and draw no
noise."""
