"""Estimators with the face of scikit-learn, by family. They compose the modules below and draw no
noise."""
