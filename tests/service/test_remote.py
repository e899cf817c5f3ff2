"""Sessions behind a service: asked like those of this process, and by `secretballot serve ask`."""

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
from served_places import QUERIES, Place, made_place
from sklearn.linear_model import LogisticRegression
from test_answering import points
from typer.testing import CliRunner

import secretballot as sb
from secretballot.cli import app
from secretballot.exceptions import BudgetError, DataError, ParameterError, ServiceError
from secretballot.service import remote

URL = "http://service"


def test_a_remote_session_answers_as_the_one_there(place: Place, line_to: Any) -> None:
    line_to(place)
    session = sb.connect(URL, place.token(), dataset="registry", session="session")
    assert (session.classes, session.n_teachers, session.planned) == (("no", "yes"), 40, QUERIES)
    assert session.price.epsilon > 0
    X = np.array(points(4))
    many = session.ask_many(X)
    one = session.ask(X[0])
    assert (one.label, one.noisy_count) == (many.labels[0], many.noisy_counts[0])
    assert (session.used, session.left, one.left) == (4, QUERIES - 4, QUERIES - 4)
    there = sb.LabelingSession.reopen(place.folder / "vault")
    found = there.ask_many(X)
    assert found.labels.tolist() == many.labels.tolist()
    assert found.noisy_counts.tolist() == many.noisy_counts.tolist()
    released, here = session.released(X), there.released(X)
    assert released.queries.tolist() == here.queries.tolist() == [0, 1, 2, 3]
    assert released.labels.tolist() == here.labels.tolist()
    assert sb.verify_certificate(released.certificate).ok
    assert sb.verify_certificate(session.transcript().certificate).ok
    with pytest.raises(DataError, match="other points"):
        session.released(X[:2])


def test_large_tables_are_asked_in_parts_until_the_budget_ends(place: Place, line_to: Any) -> None:
    place.config.write_text(place.config.read_text() + "\n[limits]\npoints = 5\n")
    line_to(place)
    session = sb.connect(URL, place.token())
    answers = session.ask_many(np.array(points(QUERIES + 6)))
    assert answers.given.tolist() == [True] * QUERIES + [False] * 6
    assert answers.left == 0
    with pytest.raises(BudgetError):
        session.ask(points(1, 99)[0])


def test_errors_are_those_of_a_session(place: Place, line_to: Any) -> None:
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


def test_an_active_student_learns_from_a_service(place: Place, line_to: Any) -> None:
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


def without_moment(released: sb.ReleasedLabels) -> dict[str, Any]:
    """Return released labels without when their certificate was issued."""
    document = released.to_json()
    own = {"issued", "digest"}
    kept = {name: value for name, value in document["certificate"].items() if name not in own}
    return document | {"certificate": kept}


def test_of_a_session_that_others_ask_the_answers_come_without_its_certificate(
    place: Place,
) -> None:
    there = sb.LabelingSession.reopen(place.folder / "vault")
    there.ask([50.0, 50.0])
    X_public = np.random.default_rng(1).normal(size=(60, 2))
    run = sb.ask_actively(there, X_public, "margin:round_size=4", n_queries=8)
    assert (len(run.queries), run.certificate) == (8, {})
    with pytest.raises(ParameterError, match="n_queries is 61"):
        sb.ask_actively(there, X_public, n_queries=61)
    assert there.used == 9
    # what is left is less than what is wanted: the run ends where the budget does
    rest = sb.ask_actively(there, X_public + 1.0, "margin:round_size=2", n_queries=10)
    assert (len(rest.queries), there.left) == (3, 0)
    with pytest.raises(BudgetError):
        sb.ask_actively(there, X_public + 2.0, n_queries=2)


def test_frames_go_by_column(tmp_path: Path, line_to: Any) -> None:
    place = made_place(tmp_path, frames=True)
    line_to(place)
    session = sb.connect(URL, place.token())
    frame = pd.DataFrame({"age": [1.0, -2.5], "site": ["north", "south"]})
    first = session.ask_many(frame)
    found = sb.LabelingSession.reopen(place.folder / "vault").ask_many(frame)
    assert found.labels.tolist() == first.labels.tolist()
    assert session.used == 2
    session.close()


def test_what_was_put_off_is_sent_again_and_what_was_refused_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = [503, 429, 200, 401]
    asked: list[int] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(said[len(asked)])
        return httpx.Response(asked[-1], json={"detail": "no"}, headers={"Retry-After": "0"})

    client = httpx.Client(base_url=URL, transport=httpx.MockTransport(handle))
    slept: list[float] = []
    monkeypatch.setattr(remote.time, "sleep", slept.append)
    assert remote._fetched(client, "/v1/datasets") == {"detail": "no"}
    assert (asked, slept) == ([503, 429, 200], [0.1, 0.2])
    with pytest.raises(ServiceError):
        remote._fetched(client, "/v1/datasets")
    assert (asked[3:], len(slept)) == ([401], 2)


def test_rows_of_a_file_are_asked_and_the_answers_written(
    place: Place, tmp_path: Path, line_to: Any
) -> None:
    table, key = tmp_path / "points.csv", tmp_path / "key"
    rows = "".join(f"{1 + n},{n}\n" for n in range(QUERIES + 2))
    table.write_text(f"a,b\n{rows}")
    key.write_text(place.token() + "\n")
    line_to(place)
    words = ["serve", "ask", "http://service", str(table), "--key-file", str(key)]
    refused = CliRunner().invoke(app, [*words, "--max-new", str(QUERIES)])
    assert (refused.exit_code, f"has {QUERIES + 2} new queries" in refused.stderr) == (2, True)
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "answers.csv")])
    assert done.exit_code == 3, done.stderr  # answered in part
    assert f"{QUERIES} of {QUERIES + 2} points" in done.stderr
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
