"""The application: addresses, who may use them, and what stands behind each."""

import asyncio
import base64
import json
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

import secretballot
from secretballot.learners.training.session import SessionAnswers
from secretballot.service import documents
from secretballot.service.api_keys import ApiKey, KeyRing, Role
from secretballot.service.audit_log import AuditEntry, AuditLog
from secretballot.service.bodies import body_of
from secretballot.service.collector import Collector
from secretballot.service.console import add_console
from secretballot.service.forward_clock import ForwardClock
from secretballot.service.guard import Guard, request_id_of
from secretballot.service.json_logs import defect_of, event
from secretballot.service.meters import Meters
from secretballot.service.points import ARROW, JSON, PARQUET, is_json
from secretballot.service.problems import KINDS, MEDIA_TYPE, ProblemError, problem_of
from secretballot.service.served import AskedPoints, ServedDataset, ServedSession
from secretballot.service.settings import ServiceSettings
from secretballot.service.short_way import Answering, ShortWay
from secretballot.service.signatures import Signatures

ANYONE: tuple[Role, ...] = ("analyst", "curator", "auditor")
ASKERS: tuple[Role, ...] = ("analyst", "curator")
OVERSEERS: tuple[Role, ...] = ("curator", "auditor")
_READY_S = 1.0  # how long the ledgers count as readable before they are looked at again


class Service:
    """What the addresses share: keys, datasets, collectors, numbers.

    Parameters
    ----------
    settings : ServiceSettings
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.keys, self.audit = KeyRing(settings.state), AuditLog(settings.state)
        self.signatures = Signatures(settings.signing_key, settings.public_keys)
        # after a date that was put back no expired key holds again
        newest = self.audit.newest()
        self.clock = ForwardClock(None if newest is None else datetime.fromisoformat(newest))
        self.meters = Meters()
        self.datasets: dict[str, ServedDataset] = {}
        self.collectors: dict[tuple[str, str], Collector[AskedPoints, SessionAnswers]] = {}
        self._ready = (-math.inf, False)
        self.stopping = False

    def open(self) -> None:
        """Open every dataset; it takes as long as teachers take to load."""
        limits = self.settings.limits
        for name, about in self.settings.datasets.items():
            dataset = ServedDataset(about, self.audit, self.signatures)
            self.datasets[name] = dataset
            for session in dataset.sessions.values():
                self.collectors[name, session.name] = Collector(
                    self._measured_answer(session),
                    most_points=limits.group_points,
                    most_waiting=limits.waiting,
                    patience_s=limits.answer_seconds,
                )

    async def close(self) -> None:
        """Answer what waits, and let go of the files."""
        self.stopping = True
        for collector in self.collectors.values():
            await collector.close()
        self.audit.close()

    def _measured_answer(self, session: ServedSession) -> Callable[[Any], Any]:
        place = (session.dataset, session.name)
        points, left = self.meters.groups.labels(*place), self.meters.left.labels(*place)
        questions = self.meters.questions.labels(*place)

        def answer(group: Any) -> Any:
            size = sum(len(asked.questions) for asked in group)
            points.observe(size)
            questions.inc(size)
            replies = session.answer(group)
            # all answers of a group say the same number, so one is enough
            for reply in replies:
                if isinstance(reply, SessionAnswers):
                    left.set(reply.left)
                    break
            return replies

        return answer

    # --- who asks ---

    def key_of(self, request: Request) -> ApiKey:
        """Return the key of a request, if it is valid and not asking too fast.

        Raises
        ------
        ProblemError
            If it is missing, unknown, revoked or expired.
        """
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        key = self.keys.find(token.strip()) if scheme.lower() == "bearer" else None
        if key is None:
            raise ProblemError("no-key", "A valid key is missing: Authorization: Bearer sb_...")
        # before it can be refused: the log says whose request was
        _note_for_log(request, key=key.id)
        if key.revoked_at is not None:
            raise ProblemError(
                "no-key", f"The key {key.id} was revoked; ask the curator for another."
            )
        if key.has_expired(self.clock.now()):
            raise ProblemError(
                "no-key",
                f"The key {key.id} expired at {key.expires_at}; ask the curator for another.",
            )
        return key

    def dataset(self, request: Request, name: str, roles: tuple[Role, ...]) -> ServedDataset:
        """Return a dataset, if the key of the request may use it in one of these roles.

        Raises
        ------
        ProblemError
            If it may not, or there is none of that name.
        """
        key = self.key_of(request)
        # a key of other datasets is not told which there are
        if not key.covers(name):
            raise ProblemError("wrong-dataset", f"The key {key.id} is not for this dataset.")
        if key.role not in roles:
            raise ProblemError(
                "wrong-role",
                f"The key {key.id} is of the role {key.role}; this takes {' or '.join(roles)}.",
            )
        if name not in self.datasets:
            raise ProblemError("not-found", "There is no such dataset; /v1/datasets lists them.")
        _note_for_log(request, dataset=name)
        request.state.key = key
        return self.datasets[name]

    def session(
        self, request: Request, dataset: str, name: str | None, roles: tuple[Role, ...]
    ) -> ServedSession:
        """Return a session of a dataset, the first one by default.

        Raises
        ------
        ProblemError
            If the key may not use it, or there is none of that name.
        """
        sessions = self.dataset(request, dataset, roles).sessions
        if name is None:
            name = next(iter(sessions))
        if name not in sessions:
            raise ProblemError("not-found", "There is no such session; the dataset lists them.")
        _note_for_log(request, session=name)
        return sessions[name]

    def check_overseer(self, request: Request) -> None:
        """Refuse a key that may not oversee all datasets.

        Raises
        ------
        ProblemError
            If the key is not valid, or not a curator's or auditor's of all datasets.
        """
        key = self.key_of(request)
        if key.role not in OVERSEERS or not key.covers("*"):
            raise ProblemError(
                "wrong-role", "This takes a curator's or auditor's key of all datasets."
            )

    def download(self, request: Request, dataset: str, what: str) -> None:
        """Write into the audit log that something was downloaded."""
        self.audit.write(
            AuditEntry(
                request_id_of(request.scope), request.state.key.id, "download", dataset, what
            )
        )

    async def ready(self) -> bool:
        """Return whether questions can be answered now."""
        if self.stopping or any(collector.stuck for collector in self.collectors.values()):
            return False
        now = time.monotonic()
        if now - self._ready[0] > _READY_S:
            found = await asyncio.to_thread(
                lambda: all(dataset.ready() for dataset in self.datasets.values())
            )
            self._ready = (now, found)
        return self._ready[1]


def _note_for_log(request: Request, **fields: str) -> None:
    """Have words about a request in its line of the log."""
    request.scope["state"].setdefault("noted", {}).update(fields)


# --- answers ---


def _json_response(document: Any, status: int = 200) -> Response:
    return Response(json.dumps(document, allow_nan=False), status, media_type=JSON)


def _problem_response(problem: ProblemError, request: Request) -> Response:
    document = problem.document(request_id_of(request.scope))
    return Response(
        json.dumps(document),
        problem.status,
        media_type=MEDIA_TYPE,
        headers=problem.headers(),
    )


def _answers_document(session: ServedSession, answers: SessionAnswers) -> dict[str, Any]:
    counts = answers.noisy_counts
    return {
        "dataset": session.dataset,
        "session": session.name,
        "answers": [
            {
                "label": label,
                "given": given,
                "abstained": given and not answered,
                # a filler stands in the place of a count that was not given
                "noisy_count": None if counts is None or not given else counts[row].tolist(),
            }
            for row, (label, given, answered) in enumerate(
                zip(
                    answers.labels.tolist(),
                    answers.given.tolist(),
                    answers.answered.tolist(),
                    strict=True,
                )
            )
        ],
        "left": answers.left,
    }


async def _shaped_response(
    service: Service, request: Request, work: Callable[[], Awaitable[Response]]
) -> Response:
    """Return the response of `work`, a problem as well, at a fixed time and of a fixed size where
    the settings say so."""
    began, shape = time.monotonic(), service.settings.shape
    try:
        response = await work()
    except Exception as error:
        response = _response_to_error(service, error, request)
    if shape.size_bytes:
        # blanks behind a JSON document are a part of it
        missing = -len(bytes(response.body)) % shape.size_bytes
        response.body = bytes(response.body) + b" " * missing
        response.headers["content-length"] = str(len(response.body))
    if shape.grid_seconds:
        now = time.monotonic()
        await asyncio.sleep(_leaves_at(began, now, shape.grid_seconds) - now)
    return response


def _leaves_at(began: float, now: float, grid_seconds: float) -> float:
    """Return the first moment from now on that is whole steps of the grid after the beginning."""
    return began + math.ceil((now - began) / grid_seconds) * grid_seconds


def _response_to_error(service: Service, error: Exception, request: Request) -> Response:
    """Return the problem document of an error; one that nobody foresaw is logged by its type."""
    problem = problem_of(error)
    service.meters.problems.labels(problem.kind).inc()
    _note_for_log(request, problem=problem.kind)
    if problem.status >= 500:
        event(
            "trouble",
            level=logging.ERROR,
            request_id=request_id_of(request.scope),
            problem=problem.kind,
            **({} if isinstance(error, ProblemError) else defect_of(error)),
        )
    return _problem_response(problem, request)


_CELL = {"type": ["number", "string", "boolean", "null"]}
_POINT = {
    "anyOf": [
        {"type": "array", "items": _CELL},
        {"type": "object", "additionalProperties": _CELL},
    ]
}
_POINTS_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {
                "schema": {
                    "type": "object",
                    "required": ["points"],
                    "additionalProperties": False,
                    "properties": {
                        "points": {
                            "type": "array",
                            "minItems": 1,
                            "items": _POINT,
                            "description": "Lists of values for teachers of arrays, objects by"
                            " column for teachers of frames",
                        }
                    },
                },
                "example": {"points": [[1.5, 0.0, -2.0]]},
            },
            ARROW: {"schema": {"type": "string", "format": "binary"}},
            PARQUET: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


_NAMES = [
    {
        "name": name,
        "in": "path",
        "required": True,
        "schema": {"type": "string"},
        "description": f"Name of a {name}",
    }
    for name in ("dataset", "session")
]


def _documented_problems(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """Return the problems of an address for the OpenAPI document."""
    found: dict[int | str, dict[str, Any]] = {}
    for kind in kinds:
        about = KINDS[kind]
        earlier = found.get(about.status, {}).get("description")
        found[about.status] = {
            "description": about.title if earlier is None else f"{earlier}; {about.title}",
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
        }
    return found


_ACCESS = ("no-key", "wrong-dataset", "wrong-role", "not-found")
_TROUBLE = ("defect", "ledger-unavailable")
_POINTS = ("unreadable", "too-slow", "too-large", "wrong-media-type", "wrong-points", "busy")

DatasetName = Annotated[str, InPath(description="Name of a dataset", max_length=80)]
SessionName = Annotated[str, InPath(description="Name of a session", max_length=80)]


def application(settings: ServiceSettings, *, opened: bool = False) -> Guard:
    """Return the service as an ASGI application.

    Parameters
    ----------
    settings : ServiceSettings
    opened : bool
        Whether datasets are opened at once; by default when the server starts.

    Raises
    ------
    DataError, LedgerError
        If a dataset cannot be opened.
    """
    service = Service(settings)
    if opened:
        service.open()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if not opened:
            await asyncio.to_thread(service.open)
        event("started", datasets=sorted(service.datasets))
        yield
        await service.close()
        event("stopped")

    app = FastAPI(
        title="secretballot",
        version=secretballot.__version__,
        summary="Private labels under a budget, to be asked one by one or in batches",
        lifespan=lifespan,
        # these pages would load scripts from elsewhere
        docs_url=None,
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
    )
    # addresses are tried in this order: questions first
    answered = _add_sessions(app, service)
    _add_public(app, service)
    _add_datasets(app, service)
    _add_oversight(app, service)
    add_console(app)
    _add_problems(app, service)
    _add_openapi(app)
    return Guard(ShortWay(app, answered), service)


_PEM: dict[str, Any] = {
    "response_class": Response,
    "responses": {
        200: {"content": {"application/x-pem-file": {}}},
        **_documented_problems("not-found"),
    },
}


def _pem_response(service: Service, mark: str | None) -> Response:
    pem = None if mark is None else service.signatures.pems.get(mark)
    if pem is None:
        raise ProblemError("not-found", "The service publishes no such key.")
    return Response(pem, media_type="application/x-pem-file")


def _add_public(app: FastAPI, service: Service) -> None:
    # none of these takes a key: nothing here is about a dataset
    @app.get("/health/live", response_model=documents.Health, tags=["health"])
    async def live() -> Response:
        """Whether the process runs."""
        return _json_response({"status": "live"})

    @app.get(
        "/health/ready",
        response_model=documents.Health,
        responses={503: {"model": documents.Health}},
        tags=["health"],
    )
    async def ready() -> Response:
        """Whether questions can be answered now: the ledgers can be read and nothing is stuck."""
        found = await service.ready()
        return _json_response({"status": "ready" if found else "not ready"}, 200 if found else 503)

    @app.get("/signing-key", **_PEM, tags=["keys"])
    async def signing_key() -> Response:
        """The public key by which the service signs certificates, Ed25519 in PEM."""
        return _pem_response(service, service.signatures.own)

    @app.get("/signing-key/{mark}", **_PEM, tags=["keys"])
    async def earlier_key(
        mark: Annotated[str, InPath(max_length=80, description="SHA-256 of the key in DER")],
    ) -> Response:
        """A public key by its fingerprint: an earlier one of the service, or a curator's."""
        return _pem_response(service, mark)

    @app.get("/problems/{kind}", tags=["problems"], responses=_documented_problems("not-found"))
    async def problem(kind: Annotated[str, InPath(max_length=80)]) -> Response:
        """What a kind of problem means, and what to do."""
        if kind not in KINDS:
            raise ProblemError("not-found", "There is no problem of that kind.")
        about = KINDS[kind]
        return _json_response(
            {"title": about.title, "status": about.status, "meaning": about.meaning}
        )


def _add_datasets(app: FastAPI, service: Service) -> None:
    @app.get(
        "/v1/key",
        response_model=documents.KeyDocument,
        responses=_documented_problems("no-key", *_TROUBLE),
        tags=["keys"],
    )
    def own_key(request: Request) -> Response:
        """What the key may do, and how many new questions it has asked."""
        key = service.key_of(request)
        names = [name for name in service.datasets if key.covers(name)]
        return _json_response(
            {
                "id": key.id,
                "role": key.role,
                "owner": key.owner,
                "datasets": names,
                "quota": key.quota,
                "expires_at": key.expires_at,
                "asked": {name: service.audit.asked(key.id, name) for name in names},
            }
        )

    @app.get(
        "/v1/datasets",
        response_model=documents.Datasets,
        responses=_documented_problems("no-key", *_TROUBLE),
        tags=["datasets"],
    )
    async def list_datasets(request: Request) -> Response:
        """The datasets that the key may be used for."""
        key = service.key_of(request)
        return _json_response(
            {
                "datasets": [
                    {
                        "name": name,
                        "title": dataset.title,
                        "sessions": list(dataset.sessions),
                        "plan": dataset.plan is not None,
                        "releases": {
                            release: sorted(files) for release, files in dataset.releases.items()
                        },
                        "signatures": dataset.signatures,
                    }
                    for name, dataset in service.datasets.items()
                    # of other datasets not even the name is told
                    if key.covers(name)
                ]
            }
        )

    @app.get(
        "/v1/datasets/{dataset}/budget",
        response_model=documents.Budget,
        responses=_documented_problems(*_ACCESS, *_TROUBLE),
        tags=["datasets"],
    )
    def budget(request: Request, dataset: DatasetName) -> Response:
        """What may be spent on the dataset, what is spent, and what is left."""
        return _json_response(service.dataset(request, dataset, ANYONE).budget())

    @app.get(
        "/v1/datasets/{dataset}/plan",
        responses=_documented_problems(*_ACCESS, *_TROUBLE),
        tags=["datasets"],
    )
    async def plan(request: Request, dataset: DatasetName) -> Response:
        """The plan that was made beforehand, from public numbers alone."""
        found = service.dataset(request, dataset, ANYONE).plan
        if found is None:
            raise ProblemError("not-found", "The dataset has no plan.")
        return _json_response(found)

    @app.get(
        "/v1/datasets/{dataset}/releases/{release}/{name}",
        response_class=Response,
        responses={
            200: {"content": {"application/octet-stream": {}}},
            **_documented_problems(*_ACCESS, *_TROUBLE),
        },
        tags=["datasets"],
    )
    def release_file(
        request: Request,
        dataset: DatasetName,
        release: Annotated[str, InPath(max_length=80)],
        name: Annotated[str, InPath(max_length=80)],
    ) -> Response:
        """A file of a release, unchanged; its certificate lists it."""
        content = service.dataset(request, dataset, ANYONE).file(release, name)
        service.download(request, dataset, release)
        return Response(
            content,
            media_type="application/octet-stream",
            # a report is no page under our address: the console shows it in a sandbox
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )


def _add_sessions(app: FastAPI, service: Service) -> Answering:
    """Add what is about one session, and return what answers questions."""
    limits = service.settings.limits
    address = "/v1/datasets/{dataset}/sessions/{session}"

    async def ask(request: Request, served: ServedSession) -> Response:
        content = await body_of(request, most=limits.body_bytes, seconds=limits.body_seconds)
        key: ApiKey = request.state.key
        kind = request.headers.get("content-type", "")
        # of the other kinds a small body may be large points, and encoding takes its time
        asked = await _off_the_loop(
            len(content) if is_json(kind) and served.schema is None else math.inf,
            *(served.read, content, kind, limits.points, key, request_id_of(request.scope)),
        )
        _note_for_log(request, points=str(len(asked.questions)))
        collector = service.collectors[served.dataset, served.name]
        answers = await collector.ask(asked, len(asked.questions))
        return _json_response(_answers_document(served, answers))

    async def answered(request: Request) -> Response:
        names = request.path_params

        async def work() -> Response:
            served = service.session(request, names["dataset"], names["session"], ASKERS)
            return await ask(request, served)

        return await _shaped_response(service, request, work)

    @app.post(
        f"{address}/questions",
        response_model=documents.Answers,
        responses=_documented_problems(
            *_ACCESS, *_POINTS, *_TROUBLE, "quota-spent", "budget-spent"
        ),
        # the framework's own look at the two names takes a sixth of the time of a small request
        openapi_extra=_POINTS_BODY | {"parameters": _NAMES},
        tags=["sessions"],
    )
    async def questions(request: Request) -> Response:
        """Ask one point or many. A point that was asked before has its stored answer, for nothing;
        where the budget ends inside a request, `given` says which points have an answer."""

        return await answered(request)

    @app.get(
        address,
        response_model=documents.Session,
        responses=_documented_problems(*_ACCESS, *_TROUBLE),
        tags=["sessions"],
    )
    def describe(request: Request, dataset: DatasetName, session: SessionName) -> Response:
        """The terms of a session, its price, and how many questions are left."""
        found = service.session(request, dataset, session, ANYONE).describe()
        return _json_response({**found, "most_points": limits.points})

    @app.get(
        f"{address}/certificate",
        responses=_documented_problems(*_ACCESS, *_TROUBLE),
        tags=["sessions"],
    )
    def certificate(request: Request, dataset: DatasetName, session: SessionName) -> Response:
        """The certificate of all answers so far, in the order in which they were asked. Where the
        service has a key, `Certificate-Signature` is the Ed25519 signature of the body in base64,
        and `Certificate-Key` the fingerprint of the key, which `/signing-key` has."""
        served = service.session(request, dataset, session, ANYONE)
        response = _json_response(served.transcript()["certificate"])
        service.download(request, dataset, session)
        # of the very bytes that are sent: another worker would write another moment
        signature = service.signatures.signature(bytes(response.body))
        if signature is not None:
            response.headers["Certificate-Signature"] = base64.b64encode(signature).decode()
            response.headers["Certificate-Key"] = str(service.signatures.own)
        return response

    @app.get(
        f"{address}/verification",
        response_model=documents.Verification,
        responses=_documented_problems(*_ACCESS, *_TROUBLE),
        tags=["sessions"],
    )
    def verification(request: Request, dataset: DatasetName, session: SessionName) -> Response:
        """The checks of the certificate of all answers so far, made anew by the service."""
        served = service.session(request, dataset, session, ANYONE)
        return _json_response(served.verification() | {"signed_by": service.signatures.own})

    @app.get(
        f"{address}/released",
        responses=_documented_problems(*_ACCESS, *_TROUBLE),
        tags=["sessions"],
    )
    def transcript(request: Request, dataset: DatasetName, session: SessionName) -> Response:
        """All answers so far with their certificate: row i stands for the i-th question."""
        served = service.session(request, dataset, session, ANYONE)
        found = served.transcript()
        service.download(request, dataset, session)
        return _json_response(found)

    @app.post(
        f"{address}/released",
        responses=_documented_problems(*_ACCESS, *_POINTS, *_TROUBLE),
        openapi_extra=_POINTS_BODY,
        tags=["sessions"],
    )
    async def released(request: Request, dataset: DatasetName, session: SessionName) -> Response:
        """All answers so far as rows of these points, among which must be all that were asked."""
        served = service.session(request, dataset, session, ANYONE)
        content = await body_of(request, most=limits.body_bytes, seconds=limits.body_seconds)
        kind = request.headers.get("content-type", "")
        points = await asyncio.to_thread(served.table, content, kind, limits.points)
        found = await asyncio.to_thread(served.released, points)
        # it writes to the disk, for which nobody else should wait
        await asyncio.to_thread(service.download, request, dataset, session)
        return _json_response(found)

    return answered


async def _off_the_loop(size: float, work: Callable[..., AskedPoints], *given: Any) -> AskedPoints:
    """Do work in a thread where its input is large; for few points handing over takes longer."""
    return work(*given) if size <= _SMALL_BODY else await asyncio.to_thread(work, *given)


_SMALL_BODY = 4096  # bytes


def _add_oversight(app: FastAPI, service: Service) -> None:
    @app.get(
        "/v1/datasets/{dataset}/account",
        response_model=documents.Account,
        responses=_documented_problems(*_ACCESS, *_TROUBLE),
        tags=["oversight"],
    )
    def account(request: Request, dataset: DatasetName) -> Response:
        """Every reservation of the ledger, after all of its rows were checked."""
        found = service.dataset(request, dataset, OVERSEERS).account()
        service.download(request, dataset, "account")
        return _json_response(found)

    @app.get(
        "/v1/datasets/{dataset}/audit",
        response_model=documents.AuditRows,
        responses=_documented_problems(*_ACCESS, *_TROUBLE, "wrong-points"),
        tags=["oversight"],
    )
    def audit(
        request: Request,
        dataset: DatasetName,
        after: Annotated[int, Query(ge=0, le=2**62)] = 0,
        most: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """Who asked how many points of the dataset, and who downloaded what."""
        # refuses a key of another role or dataset, before a row is read
        service.dataset(request, dataset, OVERSEERS)
        rows = service.audit.rows([dataset], after=after, most=most)
        return _json_response(
            {
                "rows": [asdict(row) for row in rows],
                "next_after": rows[-1].position if len(rows) == most else None,
            }
        )

    @app.get(
        "/metrics",
        response_class=Response,
        responses={
            200: {"content": {"text/plain": {}}},
            **_documented_problems(*_ACCESS, *_TROUBLE),
        },
        tags=["oversight"],
    )
    async def metrics(request: Request) -> Response:
        """Numbers for Prometheus, for a curator or auditor of all datasets."""
        service.check_overseer(request)
        content, kind = service.meters.text()
        return Response(content, media_type=kind)


def _add_problems(app: FastAPI, service: Service) -> None:
    async def told(request: Request, error: Exception) -> Response:
        return _response_to_error(service, error, request)

    async def of_framework(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        kind = {404: "not-found", 405: "wrong-method"}.get(status, "unreadable")
        problem = ProblemError(kind, KINDS[kind].meaning)
        response = _response_to_error(service, problem, request)
        if isinstance(error, HTTPException) and error.headers and "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
        return response

    async def of_parameters(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        names = ", ".join(sorted({str(one["loc"][-1])[:40] for one in error.errors()}))
        return _response_to_error(
            service, ProblemError("wrong-points", f"{names} is out of its range."), request
        )

    app.add_exception_handler(ProblemError, told)
    app.add_exception_handler(secretballot.exceptions.SecretBallotError, told)
    app.add_exception_handler(HTTPException, of_framework)
    app.add_exception_handler(RequestValidationError, of_parameters)
    # the framework sends what this says and raises the error again, for the guard around it
    app.add_exception_handler(Exception, told)


def _add_openapi(app: FastAPI) -> None:
    """Have the document say how keys are sent, and what a problem looks like."""
    made = app.openapi

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = made()
            parts = found.setdefault("components", {})
            schema = documents.ProblemDocument.model_json_schema()
            parts.setdefault("schemas", {})["ProblemDocument"] = schema
            parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
            for path, methods in found["paths"].items():
                if path.startswith("/v1/") or path == "/metrics":
                    for about in methods.values():
                        about["security"] = [{"key": []}]
                for about in methods.values():
                    # what the framework would say of parameters is a problem document here
                    if "422" in about["responses"]:
                        about["responses"]["422"] = _documented_problems("wrong-points")[422]
            for name in ("HTTPValidationError", "ValidationError"):
                parts["schemas"].pop(name, None)
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]
