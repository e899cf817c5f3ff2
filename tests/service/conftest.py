"""Places are made once for tests that leave them as they are, anew for others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from served_places import InProcess, Place, made_place

from secretballot.service import remote
from secretballot.service.access import Access
from secretballot.service.app import application


@pytest.fixture(autouse=True)
def _closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close what applications have open that no server stops."""
    opened: list[Access] = []
    own = Access.__init__

    def noted(self: Access, state: Path) -> None:
        opened.append(self)
        own(self, state)

    monkeypatch.setattr(Access, "__init__", noted)
    yield
    for one in opened:
        one.close()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return made_place(tmp_path)


@pytest.fixture(scope="module")
def shared_place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return made_place(tmp_path_factory.mktemp("shared"), queries=400)


@pytest.fixture
def line_to(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Let clients reach an application of this process."""
    transports: list[InProcess] = []

    def serve(place: Place) -> InProcess:
        transport = InProcess(application(place.settings))
        transports.append(transport)

        def client(url: str, key: str, timeout: float) -> httpx.Client:
            headers = {"Authorization": f"Bearer {key}"}
            return httpx.Client(base_url=url, headers=headers, transport=transport)

        monkeypatch.setattr(remote, "_client_of", client)
        return transport

    yield serve
    for transport in transports:
        transport.end()
