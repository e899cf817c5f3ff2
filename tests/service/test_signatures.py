"""Certificates that the service signs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from served_places import Place, TestClient
from test_answering import points, problem
from typer.testing import CliRunner

import secretballot as sb
from secretballot.cli import app
from secretballot.exceptions import DataError
from secretballot.service.app import application

BASE = "/v1/datasets/registry"
CERTIFICATE = f"{BASE}/sessions/session/certificate"


@pytest.fixture
def signing(place: Place) -> tuple[Place, str]:
    """A place whose service signs, and the fingerprint of its key."""
    mark = sb.new_signing_key(place.folder / "service.pem")
    place.config.write_text('signing_key = "service.pem"\n' + place.config.read_text())
    return place, mark


def verified(certificate: Path, key: Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["verify", str(certificate), "--key", str(key), "--json"])
    return done.exit_code, done.stdout + done.stderr


def test_what_the_service_served_is_accepted_by_its_public_key(
    signing: tuple[Place, str], tmp_path: Path, line_to: Any
) -> None:
    place, mark = signing
    out = tmp_path / "downloaded"
    transport = line_to(place)
    with sb.connect("http://service", place.token()) as session:
        session.ask_many(np.array(points(3)))
        assert session.save_certificate(out) == mark
        with TestClient(transport.app) as client:
            pem = client.get("/signing-key")
            assert pem.headers["content-type"] == "application/x-pem-file"
            (tmp_path / "service.pub").write_bytes(pem.content)
            shown = client.get(f"{BASE}/sessions/session/verification", headers=place.key())
            assert shown.json()["signed_by"] == mark
    assert pem.content == (place.folder / "service.pem.pub").read_bytes()
    code, said = verified(out / "certificate.json", tmp_path / "service.pub")
    assert (code, f"Signed with the key {mark}." in said) == (0, True)
    # of another key, with another byte, and of nobody
    sb.new_signing_key(tmp_path / "other.pem")
    assert verified(out / "certificate.json", tmp_path / "other.pem.pub")[0] == 4
    text = (out / "certificate.json").read_bytes()
    (out / "certificate.json").write_bytes(text.replace(b": ", b":", 1))
    assert verified(out / "certificate.json", tmp_path / "service.pub")[0] == 4
    (out / "certificate.json").write_bytes(text)
    assert sb.verify_certificate(out / "certificate.json").signature == "not checked"
    (out / "certificate.sig").unlink()
    assert verified(out / "certificate.json", tmp_path / "service.pub")[0] == 4


def test_a_service_without_a_key_signs_nothing_and_says_so(
    place: Place, tmp_path: Path, line_to: Any
) -> None:
    with TestClient(application(place.settings)) as client:
        problem(client.get("/signing-key"), "not-found")
        found = client.get(CERTIFICATE, headers=place.key())
        assert "certificate-signature" not in found.headers
    line_to(place)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "certificate.sig").write_bytes(bytes(64))  # of an earlier one
    with sb.connect("http://service", place.token()) as session:
        assert session.save_certificate(tmp_path / "out") is None
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["certificate.json"]


def test_the_private_key_is_nowhere_told(
    signing: tuple[Place, str], caplog: pytest.LogCaptureFixture
) -> None:
    place, _ = signing
    pem = (place.folder / "service.pem").read_text().splitlines()[1]
    caplog.set_level(0)
    app_ = application(place.settings)
    addresses = ("/signing-key", "/openapi.json", "/v1/datasets", CERTIFICATE, "/", "/console.js")
    with TestClient(app_) as client:
        said = [client.get(address, headers=place.key("curator")).text for address in addresses]
    lines = caplog.messages
    for text in (*said, *lines, repr(app_.state.service.signing_key), repr(place.settings)):
        assert pem not in text


def test_a_key_that_cannot_be_one_stops_the_start(signing: tuple[Place, str]) -> None:
    place, _ = signing
    key = place.folder / "service.pem"
    key.chmod(0o644)
    with pytest.raises(DataError, match="may be read by others"):
        application(place.settings)
