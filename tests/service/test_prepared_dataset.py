"""`secretballot serve prepare`: one command from tables to a dataset that a service offers."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from served_places import Place, TestClient
from test_answering import problem
from typer.testing import CliRunner, Result

import secretballot as sb
from secretballot.cli import app
from secretballot.service.app import application

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from patients import rows, write_files

BASE = "/v1/datasets/registry/sessions/first-year"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SECRETBALLOT_LEDGER", raising=False)
    return write_files(tmp_path, 2000)


def prepare(*more: str) -> Result:
    words = ["serve", "prepare", "private.csv", "public.csv", "--target", "ill"]
    words += ["--classes", "no,yes", "--dataset", "registry", "--stream", "first-year"]
    words += ["--epsilon", "3", "--delta", "1e-5", "--total", "3,1e-5"]
    words += ["--n-queries", "40", "--n-teachers", "60", "--drop", "patient", "--out", "service"]
    return CliRunner().invoke(app, [*words, *more])


def client_of(folder: Path) -> tuple[TestClient, dict[str, str]]:
    place = Place(folder, folder / "service" / "service.toml")
    return TestClient(application(place.settings)), place.key()


def test_one_command_makes_a_dataset_that_is_asked_by_column(folder: Path) -> None:
    done = prepare("--ledger", "registry.ledger", "--set", 'title=A "registry"', "--json")
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["queries"], document["left"], document["settings_written"]) == (40, 40, True)
    ledger = sb.Ledger.open_existing(folder / "registry.ledger")
    assert ledger.budget == sb.PrivacyBudget(3.0, 1e-5)  # this session, and nothing more
    assert ledger.spent().epsilon == pytest.approx(3.0)
    context, key = client_of(folder)
    frame = rows(30, 9)
    asked = frame[["age", "ward", "dose"]]
    with context as client:
        about = client.get("/v1/datasets", headers=key).json()["datasets"][0]
        assert (about["title"], about["sessions"]) == ('A "registry"', ["first-year"])
        columns = client.get(BASE, headers=key).json()["columns"]
        assert columns["kind"] == "frame"
        assert [one[0] for one in columns["columns"]] == ["age", "ward", "dose"]
        assert columns["columns"][1][1:] == ["category", [["north", "south"], False]]
        body = {"points": json.loads(asked.to_json(orient="records"))}
        found = client.post(f"{BASE}/questions", json=body, headers=key)
        assert found.status_code == 200, found.text
        labels = [answer["label"] for answer in found.json()["answers"]]
        assert np.mean(np.array(labels) == frame["ill"]) > 0.8
        # the same points in another form are the same questions
        again = client.post(
            f"{BASE}/questions",
            content=_arrow(asked),
            headers=key | {"Content-Type": "application/vnd.apache.arrow.stream"},
        )
        assert [one["label"] for one in again.json()["answers"]] == labels
        assert again.json()["left"] == found.json()["left"]
        certificate = client.get(f"{BASE}/certificate", headers=key).json()
        assert sb.verify_certificate(certificate).ok
        for wrong, said in (
            ({"age": "old", "ward": "north", "dose": 1}, "'age' of point 1 cannot be read"),
            ({"age": 50, "ward": "north"}, "give all of these: 'age', 'ward', 'dose'"),
        ):
            refused = client.post(f"{BASE}/questions", json={"points": [wrong]}, headers=key)
            assert said in problem(refused, "wrong-points")["detail"]
        # what the public tables do not know is told as missing or "other", not refused
        strange = {"age": None, "ward": "nowhere", "dose": 1}
        assert client.post(f"{BASE}/questions", json={"points": [strange]}, headers=key).is_success


def _arrow(frame: pd.DataFrame) -> bytes:
    pa = pytest.importorskip("pyarrow")
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def test_the_command_is_repeated_and_pays_once(folder: Path) -> None:
    assert prepare().exit_code == 0
    account = sb.Ledger.open_existing(folder / "private.csv.ledger")  # beside the private file
    spent, settings = account.spent(), (folder / "service" / "service.toml").read_bytes()
    again = prepare("--json")
    assert again.exit_code == 0, again.stderr
    assert not json.loads(again.stdout)["settings_written"]
    assert (account.spent(), account.releases()) == (spent, 1)
    # other terms under the same name, other data, more than the account admits
    for more, said in (
        (["--n-queries", "41"], "was begun with other terms"),
        (["--stream", "second"], "this run would cost epsilon 3"),
        (["--total", "9,1e-4"], "was opened with 3,1e-05"),
        (["--dataset", "../x"], "cannot be part of an address"),
        (["--ledger", "own"], "--ledger is 'own', which is the account of one run"),
        (["--n-teachers", "61"], "belongs to other data, or to other settings"),
    ):
        refused = prepare(*more)
        assert refused.exit_code in (2, 3), refused.output
        assert said in refused.stderr
    assert (account.spent(), account.releases()) == (spent, 1)
    assert (folder / "service" / "service.toml").read_bytes() == settings


def test_a_second_stream_is_added_to_the_dataset_by_hand(folder: Path) -> None:
    assert prepare("--total", "9,1e-4").exit_code == 0
    settings = folder / "service" / "service.toml"
    done = prepare("--total", "9,1e-4", "--stream", "second")
    assert done.exit_code == 0, done.stderr
    assert '[datasets."registry"]' in done.stdout
    account = CliRunner().invoke(app, ["ledger", "show", "private.csv.ledger"])
    assert account.stdout.count("  0 of 40 answers  reserved") == 2
    settings.write_text(settings.read_text().replace('"first-year"]', '"first-year", "second"]'))
    _, key = client_of(folder)
    assert key


@pytest.mark.parametrize("target", [["dose", "--bounds", "0,1"], ["ill,ward"]])
def test_a_service_answers_classes(folder: Path, target: list[str]) -> None:
    words = ["serve", "prepare", "private.csv", "public.csv", "--target", *target]
    refused = CliRunner().invoke(
        app, [*words, "--epsilon", "1", "--delta", "1e-6", "--n-queries", "40"]
    )
    assert refused.exit_code == 2
    assert "method is stream, which learns classes" in refused.stderr
    assert "name one column of classes" in refused.stderr
