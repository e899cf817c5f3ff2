"""A place with a trained dataset, its ledger and the settings of a service, for the tests here."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import secretballot as sb
from noisy_plans import noisy, priced
from secretballot.service.access import Access
from secretballot.service.problems import KINDS, MEDIA_TYPE
from secretballot.service.settings import read_settings
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
    def settings(self):
        return read_settings(self.config)

    @property
    def ledger(self):
        return sb.Ledger.open_existing(self.folder / "registry.ledger")

    def key(self, role="analyst", dataset="registry", **given):
        """Return the headers of a new key."""
        return {"Authorization": f"Bearer {self.token(role, dataset, **given)}"}

    def token(self, role="analyst", dataset="registry", **given):
        with Access(self.settings.state) as access:
            return access.add(role, [dataset], **given)[1]


class InProcess(httpx.BaseTransport):
    """Hands the requests of a client without await to an application of this process."""

    def __init__(self, app):
        self.app, self._runner = app, asyncio.Runner()

    def handle_request(self, request):
        async def handled():
            own = httpx.Request(
                request.method, request.url, headers=request.headers, content=request.read()
            )
            response = await httpx.ASGITransport(self.app).handle_async_request(own)
            content = await response.aread()
            return httpx.Response(response.status_code, headers=response.headers, content=content)

        return self._runner.run(handled())

    def end(self):
        self._runner.run(self.app.state.service.close())
        self._runner.close()


class TestClient(httpx.Client):
    """Requests to an application of this process, one after the other."""

    __test__ = False

    def __init__(self, app):
        self._app, self._inside = app, InProcess(app)
        super().__init__(transport=self._inside, base_url="http://service")

    def __exit__(self, *given):
        super().__exit__(*given)
        self._inside.end()


def counts_terms(queries=QUERIES):
    return noisy(9.0, queries, release="counts", delta=1e-6, n_teachers=40)


def sparse_terms(queries=QUERIES):
    return priced(sparse(0.5, 12, 3), queries, 40, delta=1e-4 * 3)


def made_place(folder, *, more="", queries=QUERIES, frames=False, ledger_at=None):
    """Train teachers on marked records, begin two sessions, and write settings."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.array(CLASSES)[(X[:, 0] > 0).astype(int)]
    given = {}
    private = X
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


def sent(app, key, *requests):
    """Return the responses to questions that come all at once."""

    async def send():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            posts = [client.post(QUESTIONS, headers=key, **request) for request in requests]
            return await asyncio.gather(*posts)

    return asyncio.run(send())


def points(n, start=0):
    return [[1.0 + row, float(row)] for row in range(start, start + n)]


def problem(response, kind):
    """Return the problem document of a response, having looked at all that every one must have."""
    assert response.headers["content-type"] == MEDIA_TYPE, response.text
    document = response.json()
    assert document["type"] == f"/problems/{kind}", document
    assert response.status_code == document["status"] == KINDS[kind]
    assert document["instance"] == f"urn:uuid:{response.headers['x-request-id']}"
    return document
