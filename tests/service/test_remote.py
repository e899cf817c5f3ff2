"""Sessions behind a service, asked like those of this process; and datasets made by one command."""

import json

import httpx
import numpy as np
import pandas as pd
import pytest
from served_places import QUERIES, Place, TestClient, made_place, points, problem
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import secretballot as sb
from patients import rows, write_files
from secretballot.cli import app
from secretballot.exceptions import BudgetError, DataError, ParameterError, ServiceError
from secretballot.service import remote
from secretballot.service.app import application

URL = "http://service"


def test_a_remote_session_answers_as_the_one_there(place, line_to):
    line_to(place)
    session = sb.connect(URL, place.token(), dataset="registry", session="session")
    assert (session.classes, session.n_teachers, session.planned) == (("no", "yes"), 40, QUERIES)
    assert session.price.epsilon > 0
    X = np.array(points(4))
    many = session.ask_many(X)
    one = session.ask(X[0])
    assert (one.label, *one.noisy_counts) == (many.labels[0], many.noisy_counts[0])
    assert (session.used, session.left, one.left) == (4, QUERIES - 4, QUERIES - 4)
    there = sb.LabelingSession.reopen(place.folder / "vault")
    found = there.ask_many(X)
    assert found.labels.tolist() == many.labels.tolist()
    assert found.noisy_counts.tolist() == many.noisy_counts.tolist()
    released, here = session.released(X), there.released(X)
    assert released.queries.tolist() == here.queries.tolist() == [0, 1, 2, 3]
    assert released.labels.tolist() == here.labels.tolist()
    assert sb.verify_certificate(released.certificate).ok
    with pytest.raises(DataError, match="other points"):
        session.released(X[:2])


def test_large_tables_are_asked_in_parts_until_the_budget_ends(place, line_to):
    place.config.write_text(place.config.read_text() + "\n[limits]\npoints = 5\n")
    line_to(place)
    session = sb.connect(URL, place.token())
    answers = session.ask_many(np.array(points(QUERIES + 6)))
    assert answers.given.tolist() == [True] * QUERIES + [False] * 6
    assert answers.left == 0
    with pytest.raises(BudgetError):
        session.ask(points(1, 99)[0])


def test_errors_are_those_of_a_session(place, line_to):
    line_to(place)
    session = sb.connect(URL, place.token())
    with pytest.raises(DataError):
        session.ask([1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="cannot be sent"):
        session.ask([1.0, np.inf])
    with pytest.raises(ServiceError) as refused:
        sb.connect(URL, "sb_wrong")
    assert refused.value.status == 401
    with pytest.raises(ParameterError, match="nothing"):
        sb.connect(URL, place.token(), dataset="nothing")
    with pytest.raises(ServiceError, match="no such session"):
        sb.connect(URL, place.token(), session="nothing")
    for url in ("service", "ftp://service", ""):
        with pytest.raises(ParameterError):
            sb.connect(url, "key")


def test_an_active_student_learns_from_a_service(place, line_to):
    line_to(place)
    session = sb.connect(URL, place.token())
    X_public = np.random.default_rng(1).normal(size=(60, 2))
    run = sb.ask_actively(session, X_public, "margin:round_size=4")
    assert len(run.queries) == 12
    assert sb.verify_certificate(run.certificate).ok
    student = sb.fit_student(LogisticRegression(), X_public, run)
    assert student.predict([[3.0, 0.0]]).tolist() == ["yes"]
    # again, by the session there: the same questions, free, and the same answers
    there = sb.LabelingSession.reopen(place.folder / "vault")
    again = sb.ask_actively(there, X_public, "margin:round_size=4", n_queries=QUERIES)
    assert without_moment(again) == without_moment(run)


def without_moment(released):
    """Return released labels without when their certificate was issued."""
    document = released.to_json()
    own = {"issued", "digest"}
    kept = {name: value for name, value in document["certificate"].items() if name not in own}
    return document | {"certificate": kept}


def test_of_a_session_that_others_ask_the_answers_come_without_its_certificate(place):
    there = sb.LabelingSession.reopen(place.folder / "vault")
    there.ask([50.0, 50.0])
    X_public = np.random.default_rng(1).normal(size=(60, 2))
    run = sb.ask_actively(there, X_public, "margin:round_size=4", n_queries=8)
    assert (len(run.queries), run.certificate) == (8, {})
    assert there.used == 9
    # what is left is less than what is wanted: the run ends where the budget does
    rest = sb.ask_actively(there, X_public + 1.0, "margin:round_size=2", n_queries=10)
    assert (len(rest.queries), there.left) == (3, 0)
    with pytest.raises(BudgetError):
        sb.ask_actively(there, X_public + 2.0, n_queries=2)


def test_frames_go_by_column(tmp_path, line_to):
    place = made_place(tmp_path, frames=True)
    line_to(place)
    session = sb.connect(URL, place.token())
    frame = pd.DataFrame({"age": [1.0, -2.5], "site": ["north", "south"]})
    first = session.ask_many(frame)
    found = sb.LabelingSession.reopen(place.folder / "vault").ask_many(frame)
    assert found.labels.tolist() == first.labels.tolist()
    assert session.used == 2
    session.close()


def test_what_was_put_off_is_sent_again_and_what_was_refused_is_not(monkeypatch):
    said = [503, 429, 200, 401]
    asked = []

    def handle(request):
        asked.append(said[len(asked)])
        return httpx.Response(asked[-1], json={"detail": "no"}, headers={"Retry-After": "0"})

    client = httpx.Client(base_url=URL, transport=httpx.MockTransport(handle))
    slept = []
    monkeypatch.setattr(remote.time, "sleep", slept.append)
    assert remote._fetched(client, "/v1/datasets") == {"detail": "no"}
    assert (asked, slept) == ([503, 429, 200], [0.1, 0.2])
    with pytest.raises(ServiceError):
        remote._fetched(client, "/v1/datasets")
    assert (asked[3:], len(slept)) == ([401], 2)


def test_rows_of_a_file_are_asked_and_the_answers_written(place, tmp_path, line_to):
    table, key = tmp_path / "points.csv", tmp_path / "key"
    rows = "".join(f"{1 + n},{n}\n" for n in range(QUERIES + 2))
    table.write_text(f"a,b\n{rows}")
    key.write_text(place.token() + "\n")
    line_to(place)
    words = ["serve", "ask", "http://service", str(table), "--key-file", str(key)]
    refused = CliRunner().invoke(app, [*words, "--max-new", str(QUERIES)])
    assert (refused.exit_code, f"has {QUERIES + 2} new queries" in refused.stderr) == (2, True)
    refused = CliRunner().invoke(app, words)
    assert (refused.exit_code, f"with {QUERIES} queries left" in refused.stderr) == (2, True)
    words += ["--max-new", str(QUERIES + 2)]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "answers.csv")])
    assert done.exit_code == 3, done.stderr  # answered in part
    assert f"{QUERIES} of {QUERIES + 2} points" in done.stderr
    before = (tmp_path / "answers.csv").read_bytes()
    refused = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "answers.csv")])
    assert (refused.exit_code, "add --overwrite" in refused.stderr) == (2, True)
    more = ["--overwrite", "--out", str(tmp_path / "answers.csv")]
    assert CliRunner().invoke(app, [*words, *more]).exit_code == 3
    assert (tmp_path / "answers.csv").read_bytes() == before
    again = CliRunner().invoke(app, [*words, "--max-new", "2", "--json"])
    none = CliRunner().invoke(app, words[:4], env={"SECRETBALLOT_KEY": ""})
    found = pd.read_csv(tmp_path / "answers.csv")
    assert list(found) == ["row", "label", "abstained", "given", "noisy_count_yes"]
    assert found["given"].sum() == QUERIES
    assert set(found["label"].dropna()) <= {"no", "yes"}
    said = json.loads(again.stdout)
    assert (said["given"], said["left"]) == (QUERIES, 0)
    assert said["answers"]["label"][:QUERIES] == found["label"][:QUERIES].tolist()
    assert none.exit_code == 2
    assert "There is no key" in none.stderr


BASE = "/v1/datasets/registry/sessions/first-year"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SECRETBALLOT_LEDGER", raising=False)
    return write_files(tmp_path, 2000)


def prepare(*more):
    words = ["serve", "prepare", "private.csv", "public.csv", "--target", "ill"]
    words += ["--classes", "no,yes", "--dataset", "registry", "--stream", "first-year"]
    words += ["--epsilon", "3", "--delta", "1e-5", "--total", "3,1e-5"]
    words += ["--n-queries", "40", "--n-teachers", "60", "--drop", "patient", "--out", "service"]
    return CliRunner().invoke(app, [*words, *more])


def client_of(folder):
    place = Place(folder, folder / "service" / "service.toml")
    return TestClient(application(place.settings)), place.key()


def test_one_command_makes_a_dataset_that_is_asked_by_column(folder):
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


def _arrow(frame):
    pa = pytest.importorskip("pyarrow")
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def test_the_command_is_repeated_and_pays_once(folder):
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
        (["--ledger", "own"], "--ledger is for releases alone"),
        (["--n-teachers", "61"], "belongs to other data, or to other settings"),
    ):
        refused = prepare(*more)
        assert refused.exit_code in (2, 3), refused.output
        assert said in refused.stderr
    assert (account.spent(), account.releases()) == (spent, 1)
    assert (folder / "service" / "service.toml").read_bytes() == settings


def test_a_second_stream_is_added_to_the_dataset_by_hand(folder):
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
def test_a_service_answers_classes(folder, target):
    words = ["serve", "prepare", "private.csv", "public.csv", "--target", *target]
    refused = CliRunner().invoke(
        app, [*words, "--epsilon", "1", "--delta", "1e-6", "--n-queries", "40"]
    )
    assert refused.exit_code == 2
    assert "method is stream, which learns classes" in refused.stderr
    assert "name one column of classes" in refused.stderr
