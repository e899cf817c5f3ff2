"""The demonstration's service: prepared once, and gone on with."""

from pathlib import Path

import pandas as pd
import pytest
from served_places import TestClient

from secretballot.service import demonstration
from secretballot.service.app import application
from secretballot.service.settings import read_settings


def test_the_demonstration_is_asked_with_the_keys_that_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demonstration, "_QUESTIONS", 30)
    keys = demonstration.prepare(tmp_path)
    config = (tmp_path / "service.toml").read_bytes()
    rows = pd.read_csv(tmp_path / "points.csv").head(3)
    points = [
        {name: None if cell != cell else cell for name, cell in row.items()}
        for row in rows.to_dict(orient="records")
    ]
    app = application(read_settings(tmp_path / "service.toml"), opened=True)
    with TestClient(app) as client:
        found = client.post(
            "/v1/datasets/clinic/sessions/session/questions",
            json={"points": points},
            headers={"Authorization": f"Bearer {keys['analyst']}"},
        )
        assert found.status_code == 200, found.text
        assert found.json()["left"] == 30 - 20 - 3  # the first 20 were released beforehand
        of_clinic = {"headers": {"Authorization": f"Bearer {keys['analyst']}"}}
        (clinic,) = client.get("/v1/datasets", **of_clinic).json()["datasets"]
        assert clinic["plan"]
        assert {"certificate.json", "report.html"} <= set(clinic["releases"]["first-answers"])
        assert client.get("/v1/datasets/clinic/plan", **of_clinic).json()["recommended"]
        assert client.get("/signing-key").status_code == 200

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demonstration, "serve", interrupted)
    demonstration.main([str(tmp_path), "0"])  # Ctrl-C is how it ends: no traceback
    assert "serving      http://127.0.0.1:" in capsys.readouterr().out
    again = demonstration.prepare(tmp_path)
    assert (tmp_path / "service.toml").read_bytes() == config
    assert again["analyst"] != keys["analyst"]
