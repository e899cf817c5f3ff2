"""A place with a trained dataset, its ledger and the settings of a service, for the tests here."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import secretballot as sb
from noisy_plans import noisy, priced
from secretballot.accounting.recipes import Terms
from secretballot.service.access import Access
from secretballot.service.settings import ServiceSettings, read_settings
from sessions import session_of, sparse

CLASSES = ["no", "yes"]
QUESTIONS = "/v1/datasets/registry/sessions/session/questions"
#: Stand in private records alone: no answer, no file of the service and no log may hold them.
MARKER, MARKED_NUMBER = "marker-of-a-private-cell", 7318.25
BUDGET = sb.PrivacyBudget(500.0, 1e-3)
QUERIES = 12


@dataclass
class Place:
    """What a test starts from."""

    folder: Path
    config: Path

    @property
    def settings(self) -> ServiceSettings:
        return read_settings(self.config)

    @property
    def ledger(self) -> sb.Ledger:
        return sb.Ledger.open_existing(self.folder / "registry.ledger")

    def key(self, role: str = "analyst", dataset: str = "registry", **given: Any) -> dict[str, str]:
        """Return the headers of a new key."""
        return {"Authorization": f"Bearer {self.token(role, dataset, **given)}"}

    def token(self, role: str = "analyst", dataset: str = "registry", **given: Any) -> str:
        with Access(self.settings.state) as access:
            return access.add(role, [dataset], **given)[1]


class InProcess(httpx.BaseTransport):
    """Hands the requests of a client without await to an application of this process."""

    def __init__(self, app: Any) -> None:
        self.app, self._runner = app, asyncio.Runner()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        async def handled() -> httpx.Response:
            own = httpx.Request(
                request.method, request.url, headers=request.headers, content=request.read()
            )
            response = await httpx.ASGITransport(self.app).handle_async_request(own)
            content = await response.aread()
            return httpx.Response(response.status_code, headers=response.headers, content=content)

        return self._runner.run(handled())

    def end(self) -> None:
        self._runner.run(self.app.state.service.close())
        self._runner.close()


class TestClient(httpx.Client):
    """Requests to an application of this process, one after the other."""

    __test__ = False

    def __init__(self, app: Any) -> None:
        self._app, self._inside = app, InProcess(app)
        super().__init__(transport=self._inside, base_url="http://service")

    def __exit__(self, *given: Any) -> None:
        super().__exit__(*given)
        self._inside.end()


def counts_terms(queries: int = QUERIES) -> Terms:
    return noisy(9.0, queries, release="counts", delta=1e-6, n_teachers=40)


def sparse_terms(queries: int = QUERIES) -> Terms:
    return priced(sparse(0.5, 12, 3), queries, 40, delta=1e-4 * 3)


def made_place(
    folder: Path,
    *,
    more: str = "",
    queries: int = QUERIES,
    frames: bool = False,
    ledger_at: str | None = None,
) -> Place:
    """Train teachers on marked records, begin two sessions, and write settings."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.array(CLASSES)[(X[:, 0] > 0).astype(int)]
    given: dict[str, Any] = {}
    private: Any = X
    if frames:
        sites = pd.Series(rng.choice(["north", "south"], len(X)), dtype=object)
        private = pd.DataFrame({"age": X[:, 0], "site": sites})
        private.loc[3, "site"] = MARKER
        given["X_public"] = pd.DataFrame({"age": [0.0, 1.0, 2.0], "site": ["north", "south", "x"]})
    else:
        X[5, 1] = MARKED_NUMBER
    by_age = make_column_transformer(("passthrough", ["age"]))
    teacher = make_pipeline(by_age, DecisionTreeClassifier()) if frames else "tree"
    teachers = sb.train_teachers(
        teacher, private, y, classes=CLASSES, n_teachers=40, vault=folder / "vault", **given
    )
    ledger = sb.Ledger(ledger_at or folder / "registry.ledger", dataset="registry", budget=BUDGET)
    session_of(teachers, counts_terms(queries), ledger)
    if not frames:
        session_of(teachers, sparse_terms(), ledger, request="sparse")
    sessions = '["session"]' if frames else '["session", "sparse"]'
    config = folder / "service.toml"
    config.write_text(
        f"""
state = "state"

[datasets.registry]
title = "Registry of a year"
vault = "vault"
sessions = {sessions}
{more}
"""
    )
    return Place(folder, config)


def sent(app: Any, key: dict[str, str], *requests: dict[str, Any]) -> list[httpx.Response]:
    """Return the responses to questions that come all at once."""

    async def send() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            posts = [client.post(QUESTIONS, headers=key, **request) for request in requests]
            return await asyncio.gather(*posts)

    return asyncio.run(send())
