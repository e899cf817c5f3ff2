"""What is said where PyTorch is not installed, and that nobody imports it unasked."""

import subprocess
import sys


def test_torch_is_imported_by_those_who_use_it_alone() -> None:
    program = (
        "import sys, numpy as np, secretballot as sb\n"
        "X = np.random.default_rng(0).normal(size=(60, 2))\n"
        "y = (X[:, 0] > 0).astype(int)\n"
        "t = sb.train_teachers('tree', X, y, classes=[0, 1], n_teachers=3)\n"
        "t.vote(X)\n"
        "sb.TorchClassifier(dict)\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
