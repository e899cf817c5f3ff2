"""For the tests of releases: a ledger in a file, which holds one release at (1, 1e-6)."""

from pathlib import Path

import pytest

import secretballot as sb


@pytest.fixture
def ledger(tmp_path: Path) -> sb.Ledger:
    budget = sb.PrivacyBudget(1.0, 1e-6)
    return sb.Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=budget)
