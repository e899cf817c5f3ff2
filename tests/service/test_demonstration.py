"""The demonstration's service: prepared once, and gone on with."""

from pathlib import Path

import pandas as pd
import pytest
from served_places import TestClient

from secretballot.runs import demo_session
from secretballot.service import demonstration
from secretballot.service.app import application
from secretballot.service.settings import read_settings


def test_the_demonstration_is_asked_with_the_keys_that_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_session, "_TEACHERS", 40)
    monkeypatch.setattr(demo_session, "_QUESTIONS", 30)
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
        assert found.json()["left"] == 27
    again = demonstration.prepare(tmp_path)
    assert (tmp_path / "service.toml").read_bytes() == config
    assert again["analyst"] != keys["analyst"]
