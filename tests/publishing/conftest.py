"""Small releases made by releases."""

import numpy as np
import pytest

import secretballot as sb
from noisy_plans import noisy, released

N_POINTS = 60


@pytest.fixture(scope="session", name="points")
def public_points():
    return np.random.default_rng(3).normal(size=(N_POINTS, 3))


@pytest.fixture(scope="session")
def make_released(points):
    """Return labels, or noisy counts, of points by the sign of their first feature."""

    def make(release="counts", classes=("no", "yes")):
        yes = np.where(points[:, 0] > 0, 180, 20)
        counts = sb.votes_of_counts(np.column_stack([200 - yes, yes]), list(classes))
        terms = noisy(12.0, len(points), release=release, delta=1e-6, n_teachers=200)
        account = sb.Ledger.in_memory(dataset="registry", budget=sb.PrivacyBudget(90.0, 1e-5))
        return released(counts, terms, account)

    return make
