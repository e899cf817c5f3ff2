"""`secretballot ledger`: to make an account, and to read one that is there."""

import json
from uuid import uuid4

import numpy as np
import psycopg
import pytest
from typer.testing import CliRunner

import secretballot as sb
from ledger_answers import answer
from made_events import counts_event
from secretballot.accounting import PrivacyBudget
from secretballot.cli import app
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.urls import DatabasePlace


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "registry.ledger"
    book = Ledger(path, dataset="registry", budget=PrivacyBudget(2.0, 1e-5))
    number = book.reserve(
        [counts_event(100.0, 1)], PrivacyBudget(0.5, 1e-6), request="one", purpose="learn"
    )
    answer(book, number, b"public answer")
    return path


def invoke(*words):
    return CliRunner().invoke(app, ["ledger", *words])


def test_create_fixes_what_the_total_guarantees(tmp_path):
    place = str(tmp_path / "l")
    words = ["create", place, "--dataset", "registry", "--total", "2,1e-5"]
    result = invoke(*words, "--unit", "user", "--relation", "replace-one")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("registry: each user, replace-one, basic composition\n")
    assert "left   epsilon 2          delta 1e-05" in result.stdout
    assert "Nothing was paid for yet." in result.stdout
    document = json.loads(invoke("show", place, "--json").stdout)
    assert (document["unit"], document["relation"]) == ("user", "replace-one")
    assert document["total"] == document["left"] == {"epsilon": 2.0, "delta": 1e-5}
    assert invoke(*words).exit_code == 2  # an account is made once


@pytest.mark.parametrize("total", ["2", "0,0", "2,1", "nan,1e-5", "two,1e-5"])
def test_a_total_that_cannot_be_leaves_no_file(tmp_path, total):
    result = invoke("create", str(tmp_path / "l"), "--dataset", "d", f"--total={total}")
    assert result.exit_code == 2
    assert result.stderr.startswith("secretballot: --total is ")
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_show_lists_releases_and_not_their_bytes(ledger):
    result = invoke("show", str(ledger))
    assert result.exit_code == 0
    assert "epsilon 0.5        delta 1e-06      learn  committed" in result.stdout
    shown = invoke("show", str(ledger), "--json").stdout
    (entry,) = json.loads(shown)["releases"]
    assert (entry["state"], entry["events"][0]["kind"]) == ("committed", "counts")
    assert "public answer" not in result.stdout + shown


SECRET = "hunter2"


@pytest.fixture
def place(database):
    schema = f"t{uuid4().hex[:20]}"
    url = database.url(schema=schema)
    yield url
    with psycopg.connect(**DatabasePlace(url).words, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())


def label(folder, *more):
    ones = np.random.default_rng(0).integers(0, 101, 40)
    np.save(folder / "counts.npy", np.column_stack([100 - ones, ones]))
    words = ["label", str(folder / "counts.npy"), "--kind", "counts"]
    words += ["--classes", "no,yes", "--epsilon", "1", "--delta", "1e-6", "--total", "20,1e-2"]
    return CliRunner().invoke(
        app, [*words, "--dataset", "registry", "--set", "exclude=report", "--json", *more]
    )


def test_runs_pay_from_a_database_and_keep_no_password(tmp_path, place, monkeypatch):
    with_password = place.replace("@", f":{SECRET}@", 1)  # which a socket does not ask for
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
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert SECRET.encode() not in path.read_bytes()
    assert SECRET not in first.output + second.output
    # the vault has seen how far the account had come
    assert list((tmp_path / "two" / "vault" / "ledgers").glob(f"{ledger.account[:32]}*"))
