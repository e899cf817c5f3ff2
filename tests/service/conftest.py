"""Places are made once for tests that leave them as they are, anew for others."""

import httpx
import pytest
from served_places import InProcess, TestClient, made_place

from secretballot.service import remote
from secretballot.service.access import Access
from secretballot.service.app import application


@pytest.fixture(autouse=True)
def _closed(monkeypatch):
    """Close what applications have open that no server stops."""
    opened = []
    own = Access.__init__

    def noted(self, state):
        opened.append(self)
        own(self, state)

    monkeypatch.setattr(Access, "__init__", noted)
    yield
    for one in opened:
        one.close()


@pytest.fixture
def place(tmp_path):
    return made_place(tmp_path)


@pytest.fixture(scope="module")
def shared_place(tmp_path_factory):
    return made_place(tmp_path_factory.mktemp("shared"), queries=400)


@pytest.fixture
def line_to(monkeypatch):
    """Let clients reach an application of this process."""
    transports = []

    def serve(place):
        transport = InProcess(application(place.settings))
        transports.append(transport)

        def client(url, key, timeout):
            headers = {"Authorization": f"Bearer {key}"}
            return httpx.Client(base_url=url, headers=headers, transport=transport)

        monkeypatch.setattr(remote, "_client_of", client)
        return transport

    yield serve
    for transport in transports:
        transport.end()


@pytest.fixture
def client(place):
    """Requests to a service of a place."""
    with TestClient(application(place.settings)) as found:
        yield found


@pytest.fixture
def shared_client(shared_place):
    with TestClient(application(shared_place.settings)) as found:
        yield found
