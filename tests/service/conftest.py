"""Places are made once for tests that leave them as they are, anew for others."""

from pathlib import Path

import pytest
from served_places import Place, made_place

pytest.importorskip("fastapi")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return made_place(tmp_path)


@pytest.fixture(scope="module")
def shared_place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return made_place(tmp_path_factory.mktemp("shared"), queries=400)
