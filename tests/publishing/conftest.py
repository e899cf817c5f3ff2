"""Small releases made by releases."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import secretballot as sb
import secretballot_verify as second
from made_certificates import files_in, reseal
from noisy_plans import noisy, released
from secretballot.publishing.release import write_release

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


@pytest.fixture
def refused_by_both(tmp_path):
    """Return what demands that both verifiers take a release, and neither takes it once a forger
    has changed its files or its certificate; whatever lies in the folder is listed, so that the
    digests alone refuse nothing."""

    def refuse(released, forgeries):
        genuine = write_release(tmp_path / "release", released, without=["report"]).path
        assert second.exit_code(second.check_release(str(genuine))) == 0
        for name, forge in forgeries.items():
            folder = Path(shutil.copytree(genuine, tmp_path / name))

            def change(document, forge=forge, folder=folder):
                forge(folder, document)
                document["files"] = files_in(folder)

            reseal(folder, change)
            assert not sb.verify_certificate(folder).ok, name
            assert second.exit_code(second.check_release(str(folder))) == 4, name

    return refuse
