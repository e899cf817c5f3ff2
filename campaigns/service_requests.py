"""Hostile requests to the service, made from its OpenAPI document by schemathesis.

Every answer must be one that the document announces, none an error of ours, and neither answers nor
logs may hold what is in private records alone.
"""

import asyncio
import io
import logging
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import secretballot as sb
from campaigns.cases import Case, Found
from campaigns.sessions import begun
from secretballot.core.mechanisms import NoisyVotes, SparseVector
from secretballot.service.access import Access
from secretballot.service.app import application
from secretballot.service.points import ARROW, JSON, PARQUET
from secretballot.service.settings import read_settings

#: In private records and nowhere else.
MARKED_NUMBER, MARKED_WORD = 7318.25171, "marker-of-a-private-cell"
MARKERS = (str(MARKED_NUMBER), MARKED_WORD)
_CLASSES = ["no", "yes"]
_BEGINNINGS = (b"", b"PAR1", b"\xff\xff\xff\xff", b'{"points": [[', b"[" * 2000)
_ONE = ["session"]
#: How requests are made: 100 of one operation, then of the next.
_SETTLED = settings(
    max_examples=100,
    phases=[Phase.generate],
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
_SETTINGS = """
signing_key = "own.pem"
[datasets.registry]
vault = "vault"
sessions = ["session", "sparse"]
[datasets.clinic]
vault = "clinic-vault"
sessions = ["session"]
[limits]
points = 50
body_bytes = 100000
"""


def prepared(folder: Path) -> tuple[Path, list[str]]:
    """Return the settings of a service and a key of each role, a revoked one, and one of others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.array(_CLASSES)[(X[:, 0] > 0).astype(int)]
    sites = pd.Series(rng.choice(["north", "south"], len(X)), dtype=object)
    frame = pd.DataFrame({"age": X[:, 0], "site": sites})
    frame.loc[3, "site"] = MARKED_WORD
    X[5, 1] = frame.loc[5, "age"] = MARKED_NUMBER
    counts = NoisyVotes(scale=30.0, release="counts")
    sparse = SparseVector(threshold_scale=0.5, query_scale=0.5, threshold=12, max_abstentions=5)
    teachers, ledger = _dataset(folder, "registry", "vault", "tree", X, y)
    session = begun(teachers, counts, ledger, 200)
    begun(teachers, sparse, ledger, 100, delta=1e-3, request="sparse")
    # points that are objects with words in them
    words = OneHotEncoder(handle_unknown="ignore"), ["site"]
    encoder = make_column_transformer(words, remainder="passthrough")
    learner = make_pipeline(encoder, DecisionTreeClassifier(max_depth=3))
    public = pd.DataFrame({"age": [0.0, 1.0], "site": ["north", "south"]})
    clinic = _dataset(folder, "clinic", "clinic-vault", learner, frame, y, X_public=public)
    begun(clinic[0], counts, clinic[1], 200)
    session.ask_many(rng.normal(size=(20, 2)))
    sb.new_signing_key(folder / "own.pem")
    config = folder / "service.toml"
    config.write_text(_SETTINGS)
    with Access(read_settings(config).state) as access:
        tokens = [access.add(role, ["*"])[1] for role in ("curator", "analyst", "auditor")]
        tokens.append(access.add("analyst", ["registry"], quota=3)[1])
        tokens.append(access.add("analyst", ["another"])[1])
        revoked, token = access.add("curator", ["*"])
        access.revoke(revoked.id)
    return config, [*tokens, token, "sb_wrong", ""]


def _dataset(folder: Path, name: str, vault: str, learner: Any, X: Any, y: Any, **more: Any) -> Any:
    """Return teachers and a ledger with room for everything."""
    teachers = sb.train_teachers(
        learner, X, y, classes=_CLASSES, n_teachers=40, vault=folder / vault, **more
    )
    budget = sb.PrivacyBudget(1000.0, 0.1)
    return teachers, sb.Ledger(folder / f"{name}.ledger", dataset=name, budget=budget)


class Campaign:
    """Requests, and what came of them.

    Parameters
    ----------
    app : ASGI application
    tokens : list of str
    seed : int
    """

    def __init__(self, app: Any, tokens: list[str], seed: int) -> None:
        self._app, self._tokens, self._dice = app, tokens, random.Random(seed)
        self.statuses: Counter[int] = Counter()
        self.found: list[str] = []

    async def run(self, requests: int) -> None:
        """Send so many requests."""
        import schemathesis  # brings a plugin of pytest along
        from schemathesis import GenerationMode

        transport = httpx.ASGITransport(self._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            document = (await client.get("/openapi.json")).json()
            schema = schemathesis.openapi.from_dict(document)
            operations = [one.ok() for one in schema.get_all_operations()]
            while self.statuses.total() < requests:
                for operation in operations:
                    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                        for case in self._cases(operation, mode):
                            await self._send(client, case)

    def _cases(self, operation: Any, mode: Any) -> list[Any]:
        """Return requests of one operation: as the document asks for them, or not."""
        cases: list[Any] = []

        def collect(case: Any) -> None:
            cases.append(case)

        strategy = operation.as_strategy(generation_mode=mode)
        # an operation without anything to get wrong has no wrong requests
        with suppress(Unsatisfiable):
            seed(self._dice.randrange(2**32))(_SETTLED(given(strategy)(collect)))()
        return cases

    async def _send(self, client: httpx.AsyncClient, case: Any) -> None:
        dice = self._dice
        # names that are there, most of the time: else nothing behind them would be reached
        dataset = dice.choice(["registry", "registry", "clinic"])
        for name, good in (
            ("dataset", dataset),
            ("session", dice.choice(["session", "sparse"] if dataset == "registry" else _ONE)),
        ):
            if name in (case.path_parameters or {}) and dice.random() < 0.85:
                case.path_parameters[name] = good
        given = case.as_transport_kwargs(base_url="http://service")
        given.pop("cookies", None)
        headers = {str(name): str(value) for name, value in dict(given.pop("headers")).items()}
        headers.pop("Authorization", None)
        token = self._tokens[0] if dice.random() < 0.7 else dice.choice(self._tokens)
        headers["Authorization"] = f"Bearer {token}"
        if dice.random() < 0.3 and case.method == "POST":
            given.pop("data", None)
            made = self._row if dataset == "registry" else self._object
            given["json"] = {"points": [made() for _ in range(dice.randrange(1, 4))]}
            headers["Content-Type"] = "application/json"
        elif dice.random() < 0.3 and case.method == "POST":
            given = {name: given[name] for name in ("method", "url")}
            size = dice.choice([0, 1, 30, 300, 3000, 150_000])
            given["content"] = dice.choice(_BEGINNINGS) + dice.randbytes(size)
            headers["Content-Type"] = dice.choice([JSON, ARROW, PARQUET, "text/csv", ""])
        if "data" in given:
            given["content"] = given.pop("data")
        try:
            request = client.build_request(**given, headers=headers)
        except (ValueError, TypeError, UnicodeError):
            return  # no request that a client can send
        response = await client.send(request)
        self._judge(case, response)

    def _row(self) -> list[float]:
        """Return a point of numbers, often one that was asked before."""
        dice = self._dice
        return [dice.choice([0.0, 1.5, -3.0, dice.gauss(0, 1)]) for _ in range(2)]

    def _object(self) -> dict[str, Any]:
        """Return a point by column, now and then with cells that no column has."""
        dice = self._dice
        ages = [0.0, 1.5, dice.gauss(0, 1), "0.5", True, None, "\ud83d", 10**400]
        sites = ["north", "south", "elsewhere", "", None, 1, "x" * 5000]
        right = dice.random() < 0.7
        return {
            "age": dice.choice(ages[:3] if right else ages),
            "site": dice.choice(sites[:2] if right else sites),
        }

    def _judge(self, case: Any, response: httpx.Response) -> None:
        status = response.status_code
        self.statuses[status] += 1
        where = f"{case.method} {case.path}: {status} {response.text[:300]}"
        if status >= 500:
            self.found.append(f"an error of ours: {where}")
        if any(marker in response.text or marker in str(response.headers) for marker in MARKERS):
            self.found.append(f"a private value: {where}")
        announced = case.operation.definition.raw["responses"]
        if not {str(status), f"{status // 100}XX"} & set(announced):
            self.found.append(f"a status that is not announced: {where}")
        kind = response.headers.get("content-type", "")
        if status >= 400 and case.path != "/health/ready" and kind != "application/problem+json":
            self.found.append(f"no problem document: {where}")
        if status == 200 and case.path.endswith("/questions"):
            for answer in response.json()["answers"]:
                if set(answer) != {"label", "given", "abstained", "noisy_count"}:
                    self.found.append(f"another shape: {where}")


def requests_sent(amount: int, number: int, folder: Path) -> Found:
    """Send hostile requests to a service, and look at answers, logs and books."""
    lines = io.StringIO()
    logger = logging.getLogger("uvicorn")
    logger.addHandler(logging.StreamHandler(lines))
    logger.setLevel(logging.INFO)
    logger.propagate = False
    config, tokens = prepared(folder)
    campaign = Campaign(application(read_settings(config)), tokens, number)
    asyncio.run(campaign.run(amount))
    state = b"".join(one.read_bytes() for one in (folder / "service-state").iterdir())
    for name in ("registry", "clinic"):
        sb.Ledger.open_existing(folder / f"{name}.ledger").check()
    if any(one in lines.getvalue() or one.encode() in state for one in MARKERS):
        campaign.found.append("a private value in the log or in the state folder")
    return {str(status): n for status, n in sorted(campaign.statuses.items())}, campaign.found


CASES = {"hostile requests": Case(requests_sent, 100_000, 20_000)}
