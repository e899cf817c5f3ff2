"""For the tests of the ledger: both back ends, under one name."""

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(params=["file", "postgres"])
def ledgers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[object]:
    """Places for ledgers, in files and in a database."""
    pytest.importorskip("psycopg")
    from ledger_backends import DatabaseLedgers, FileLedgers

    if request.param == "file":
        yield FileLedgers(tmp_path)
        return
    places = DatabaseLedgers(request.getfixturevalue("database").url)
    yield places
    places.drop_all()
