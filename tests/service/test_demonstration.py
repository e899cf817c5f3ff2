"""The demonstration's service: made by the command line, and asked."""

import json
from pathlib import Path

import httpx
import pandas as pd
import pytest
from served_places import Place, TestClient

from campaigns import demo_service
from secretballot.service.app import application
from secretballot.service.settings import read_settings


@pytest.mark.slow
def test_the_demonstration_has_a_session_a_release_and_a_key(tmp_path: Path) -> None:
    demo_service.prepare(tmp_path, questions=30)
    points = json.loads(pd.read_csv(tmp_path / "points.csv").head(3).to_json(orient="records"))
    settings = read_settings(tmp_path / "service.toml")
    headers = Place(tmp_path, tmp_path / "service.toml").key("analyst", "*")
    with TestClient(application(settings)) as client:

        def get(address: str) -> httpx.Response:
            return client.get(address, headers=headers)

        address = "/v1/datasets/clinic/sessions/session/questions"
        found = client.post(address, json={"points": points}, headers=headers)
        assert found.status_code == 200, found.text
        assert found.json()["left"] == 30 - demo_service.EXAMPLES - 3
        (clinic,) = get("/v1/datasets").json()["datasets"]
        assert {"certificate.json", "report.html"} <= set(clinic["releases"]["first-answers"])
        assert get("/signing-key").status_code == 200
