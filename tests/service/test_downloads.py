"""What may be downloaded, signed or not, and what the operator sees."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from served_places import CLASSES, MARKED_NUMBER, QUERIES, QUESTIONS, TestClient, made_place, points
from typer.testing import CliRunner

import secretballot as sb
from secretballot.cli import app
from secretballot.exceptions import DataError
from secretballot.service.app import application
from secretballot.service.settings import read_settings

BASE = "/v1/datasets/registry"
QUESTIONS_ROUTE = "/v1/datasets/{dataset}/sessions/{session}/questions"


def test_numbers_tell_requests_and_no_value(place, client):
    key = place.key("curator", "*")
    client.post(QUESTIONS, json={"points": points(3)}, headers=key)
    client.post(QUESTIONS, content=b"{", headers=key)
    client.get("/v1/anything/else", headers=key)
    text = client.get("/metrics", headers=key).text
    place_of = 'dataset="registry",session="session"'
    assert f"secretballot_questions_total{{{place_of}}} 3.0" in text
    assert f"secretballot_questions_left{{{place_of}}} {QUERIES - 3}.0" in text
    assert f'route="{QUESTIONS_ROUTE}",status="400"}} 1.0' in text
    assert 'route="none",status="404"' in text
    assert "anything" not in text
    for word in (*CLASSES, str(MARKED_NUMBER)):
        assert f'"{word}"' not in text


def test_answers_leave_on_a_grid_and_in_one_size_where_that_is_asked_for(tmp_path):
    place = made_place(tmp_path)
    place.config.write_text(
        place.config.read_text() + "\n[answers]\ngrid_seconds = 0.3\nsize_bytes = 1024\n"
    )
    key = place.key()
    with TestClient(application(place.settings)) as client:
        sizes = set()
        for body in (
            json.dumps({"points": points(1)}),  # new
            json.dumps({"points": points(1)}),  # stored
            json.dumps({"points": [[-5.0, 1.0]]}),  # of the other class
            "{",  # refused
        ):
            began = time.monotonic()
            found = client.post(QUESTIONS, content=body.encode(), headers=key)
            # how much later than that a busy machine sends it is not asked here
            assert time.monotonic() - began > 0.29
            assert found.json()
            sizes.add(len(found.content))
            assert found.headers["content-length"] == str(len(found.content))
        assert sizes == {1024}


def test_the_settings_of_the_guide_are_read_and_are_the_defaults(tmp_path):
    guide = Path(__file__).parents[2] / "docs" / "guides" / "service.md"
    text = guide.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    (tmp_path / "guide.toml").write_text(text)
    (tmp_path / "least.toml").write_text('[datasets.registry]\nvault = "registry-vault"\n')
    shown, least = (read_settings(tmp_path / f"{name}.toml") for name in ("guide", "least"))
    assert (shown.limits, shown.listen, shown.answers) == (
        least.limits,
        least.listen,
        least.answers,
    )
    assert shown.state == least.state


def test_what_is_extended_answer_by_answer_is_what_a_fresh_look_finds(place, client):
    key, address = place.key(), "/v1/datasets/registry/sessions/session"
    for asked in ([0, 1], [1, 2], [2, 3, 4]):
        client.post(QUESTIONS, json={"points": [points(1, n)[0] for n in asked]}, headers=key)
        found = client.get(f"{address}/released", headers=key).json()
        fresh = sb.LabelingSession.reopen(place.folder / "vault").transcript().to_json()
        assert found == fresh


def test_the_certificate_says_that_a_session_was_closed_meanwhile(place, client):
    key, address = place.key(), "/v1/datasets/registry/sessions/session"
    points = [[1.0, 2.0], [3.0, 4.0]]
    assert client.post(f"{address}/questions", json={"points": points}, headers=key).is_success
    before = client.get(f"{address}/certificate", headers=key).json()
    sb.LabelingSession.reopen(place.folder / "vault").close(points)
    after = client.get(f"{address}/certificate", headers=key).json()
    assert (before["plan"]["left"], after["plan"]["left"]) == ("kept", "forfeited")


CERTIFICATE = f"{BASE}/sessions/session/certificate"


@pytest.fixture
def signing(place):
    """A place whose service signs, and the fingerprint of its key."""
    mark = sb.new_signing_key(place.folder / "service.pem")
    place.config.write_text('signing_key = "service.pem"\n' + place.config.read_text())
    return place, mark


def verified(certificate, key):
    done = CliRunner().invoke(app, ["verify", str(certificate), "--key", str(key), "--json"])
    return done.exit_code, done.stdout + done.stderr


def test_what_the_service_served_is_accepted_by_its_public_key(signing, tmp_path, line_to):
    place, mark = signing
    out = tmp_path / "downloaded"
    transport = line_to(place)
    with sb.connect("http://service", place.token()) as session:
        session.ask_many(np.array(points(3)))
        assert session.save_certificate(out) == mark
        with TestClient(transport.app) as client:
            shown = client.get(f"{BASE}/sessions/session/verification", headers=place.key())
            assert shown.json()["signed_by"] == mark
    public = place.folder / "service.pem.pub"
    code, said = verified(out / "certificate.json", public)
    assert (code, f"Signed with the key {mark}." in said) == (0, True)
    # of another key, with another byte, and of nobody
    sb.new_signing_key(tmp_path / "other.pem")
    assert verified(out / "certificate.json", tmp_path / "other.pem.pub")[0] == 4
    text = (out / "certificate.json").read_bytes()
    (out / "certificate.json").write_bytes(text.replace(b": ", b":", 1))
    assert verified(out / "certificate.json", public)[0] == 4
    (out / "certificate.json").write_bytes(text)
    assert sb.verify_certificate(out / "certificate.json").signature == "not checked"
    (out / "certificate.sig").unlink()
    assert verified(out / "certificate.json", public)[0] == 4


def test_a_service_without_a_key_signs_nothing_and_says_so(place, tmp_path, line_to, client):
    found = client.get(CERTIFICATE, headers=place.key())
    assert "certificate-signature" not in found.headers
    line_to(place)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "certificate.sig").write_bytes(bytes(64))  # of an earlier one
    with sb.connect("http://service", place.token()) as session:
        assert session.save_certificate(tmp_path / "out") is None
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["certificate.json"]


def test_the_private_key_is_nowhere_told(signing, caplog):
    place, _ = signing
    pem = (place.folder / "service.pem").read_text().splitlines()[1]
    caplog.set_level(0)
    app_ = application(place.settings)
    addresses = ("/openapi.json", "/v1/datasets", CERTIFICATE, "/", "/console.js")
    with TestClient(app_) as client:
        said = [client.get(address, headers=place.key("curator")).text for address in addresses]
    lines = caplog.messages
    for text in (*said, *lines, repr(app_.state.service.signing_key), repr(place.settings)):
        assert pem not in text


def test_a_key_that_cannot_be_one_stops_the_start(signing):
    place, _ = signing
    key = place.folder / "service.pem"
    key.chmod(0o644)
    with pytest.raises(DataError, match="may be read by others"):
        application(place.settings)
