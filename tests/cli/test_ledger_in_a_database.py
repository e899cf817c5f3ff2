"""Runs and sessions that pay from a ledger in a database."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import psycopg
import pytest
from campaigns.postgres_proxy import PostgresProxy
from campaigns.postgres_server import PostgresServer
from typer.testing import CliRunner, Result

import secretballot as sb
from secretballot.cli import app
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.urls import DatabasePlace

SECRET = "hunter2"


@pytest.fixture
def place(database: Any) -> Iterator[str]:
    schema = f"t{uuid4().hex[:20]}"
    url = database.url(schema=schema)
    yield url
    with psycopg.connect(**DatabasePlace(url).words, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())


@pytest.fixture
def with_password(place: str) -> str:
    """The same place, with a password that a socket does not ask for."""
    return place.replace("@", f":{SECRET}@", 1)


def label(folder: Path, *more: str) -> Result:
    ones = np.random.default_rng(0).integers(0, 101, 40)
    np.save(folder / "counts.npy", np.column_stack([100 - ones, ones]))
    words = ["label", str(folder / "counts.npy"), "--kind", "counts"]
    words += ["--classes", "no,yes", "--epsilon", "1", "--delta", "1e-6", "--total", "20,1e-2"]
    return CliRunner().invoke(
        app, [*words, "--dataset", "registry", "--set", "exclude=report", "--json", *more]
    )


def files_with(folder: Path, text: str) -> list[str]:
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and text.encode() in path.read_bytes()
    ]


def test_runs_pay_from_a_database_and_keep_no_password(
    tmp_path: Path, place: str, with_password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = label(tmp_path, "--ledger", with_password, "--out", str(tmp_path / "one"))
    assert first.exit_code == 0, first.output
    monkeypatch.setenv("SECRETBALLOT_LEDGER", with_password)
    second = label(tmp_path, "--out", str(tmp_path / "two"))
    assert second.exit_code == 0, second.output
    ledger = Ledger.open_existing(place)
    assert [entry.state for entry in ledger.history()] == ["committed", "committed"]
    assert json.loads(first.stdout)["account"] == ledger.place
    for folder in ("one", "two"):
        assert sb.verify_certificate(tmp_path / folder / "release").ok
    assert files_with(tmp_path, SECRET) == []
    assert SECRET not in first.output + second.output
    # the vault has seen how far the account had come
    assert list((tmp_path / "two" / "vault" / "ledgers").glob(f"{ledger.account[:32]}*"))


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[PostgresProxy]:
    between = PostgresProxy(postgres_server)
    yield between
    between.close()


def test_a_run_goes_on_where_acknowledgements_are_lost(
    tmp_path: Path, proxy: PostgresProxy
) -> None:
    place = proxy.url(f"t{uuid4().hex[:20]}")
    # the kind of a row is sent with its length
    for statement in (b"INSERT INTO head", b"\0\0\0\x07reserve", b"\0\0\0\x05close"):
        proxy.lose(statement, "acknowledgement")
    done = label(tmp_path, "--ledger", place, "--out", str(tmp_path / "one"))
    assert done.exit_code == 0, done.output
    assert proxy.faults == []
    assert [entry.state for entry in Ledger.open_existing(place).history()] == ["committed"]
