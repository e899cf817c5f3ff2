"""The application: addresses, who may use them, what each does, and the page for people."""

import asyncio
import base64
import json
import math
import os
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import asdict
from importlib.resources import files
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import secretballot
from secretballot._typing import Json
from secretballot.core.releasing import noise_source
from secretballot.learners.inputs import question_digests
from secretballot.learners.session import SessionAnswers
from secretballot.publishing.signing import read_private_key
from secretballot.report.verification import fingerprint
from secretballot.service.access import Access, ApiKey, AuditEntry, Role
from secretballot.service.points import ARROW, JSON, PARQUET, body_of, is_json
from secretballot.service.problems import MEDIA_TYPE, ProblemError, log_trouble, problem_of
from secretballot.service.run import NUMBERS_AT
from secretballot.service.served import AskedPoints, ServedDataset, ServedSession
from secretballot.service.settings import ServiceSettings

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0)
_SESSION_LABELS = ("dataset", "session")
_ALWAYS_SENT = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


class _Meters:
    """The numbers of one worker; with several, each reports those of all."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        self.seconds = Histogram(
            "secretballot_request_seconds",
            "Time from request to answer.",
            ("method", "route", "status"),
            buckets=_SECONDS,
            registry=own,
        )
        self.questions = Counter(
            "secretballot_questions", "Points asked.", _SESSION_LABELS, registry=own
        )
        self.left = Gauge(
            "secretballot_questions_left",
            "Questions that are still paid for.",
            _SESSION_LABELS,
            # workers share a session: what the last one saw is right, and a sum is not
            multiprocess_mode="mostrecent",
            registry=own,
        )

    def response(self) -> Response:
        """Return the numbers of all workers."""
        registry = self._registry
        if os.environ.get(NUMBERS_AT):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class _Guard:
    """The outermost middleware of the service.

    Parameters
    ----------
    app : ASGI application
    service : Service
        What the application shares; its numbers are used here.
    first : Route
        Asked before the application.
    """

    def __init__(self, app: ASGIApp, service: Any, first: Route) -> None:
        self._app, self._service, self._first = app, service, first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand on what is none."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = str(uuid.uuid4())
        scope.setdefault("state", {})["request_id"] = request_id
        status, began, inside = 0, time.monotonic(), self._app
        match, found = self._first.matches(scope)
        if match is Match.FULL:
            scope.update(found, route=self._first)
            inside = self._first.app

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = ((b"x-request-id", request_id.encode()), *_ALWAYS_SENT)
                message["headers"] = [*message.get("headers", []), *own]
            await send(message)

        try:
            await inside(scope, receive, send_on)
        # whoever is outside would print the message, which may quote anything
        except Exception as error:
            response = self._service.response_to(error, Request(scope, receive))
            if not status:
                await response(scope, receive, send_on)
        finally:
            # an address that nobody serves may be anything; of methods the server knows few
            route = getattr(scope.get("route"), "path", "none")
            seconds = self._service.meters.seconds.labels(scope["method"], route, str(status))
            seconds.observe(time.monotonic() - began)


_KINDS = {"index.html": "text/html", "console.css": "text/css", "console.js": "text/javascript"}
_HEADERS = {
    # only what this address serves is run, shown or asked, and no other page may frame it
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}


def _console_routes() -> list[Route]:
    """Return the routes of the page, the first at ``/``; it needs no key to be read, and shows
    nothing without one."""
    routes = []
    for name, kind in _KINDS.items():
        content = (files("secretballot.service") / "page" / name).read_bytes()
        # an answer that stays the same is an application by itself
        page = Response(content, media_type=kind, headers=_HEADERS)
        routes.append(Route("/" if name == "index.html" else f"/{name}", page, methods=["GET"]))
    return routes


_ANYONE: tuple[Role, ...] = ("analyst", "curator", "auditor")
_OVERSEERS: tuple[Role, ...] = ("curator", "auditor")
_READY_S = 1.0  # how long the ledgers count as readable before they are looked at again
_SMALL_BODY = 4096  # bytes
#: Bodies of 100,000 bytes and more, or of a size not said, that a worker reads at once: with
#: their tables they fit the memory that deploy/ gives.
_LARGE_BODIES, _DIGITS_OF_LARGE = 32, 6

_Found = TypeVar("_Found")


class Service:
    """What the addresses share: keys, datasets, collectors, numbers. Every dataset is opened, which
    takes as long as teachers take to load.

    Parameters
    ----------
    settings : ServiceSettings
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        noise_source()  # loaded here: the first question would wait for it
        self.signing_key: Any = settings.signing_key and read_private_key(settings.signing_key)
        #: Fingerprint of the key by which certificates are signed.
        self.signs_as = self.signing_key and fingerprint(self.signing_key.public_key())
        self.access, self.meters = Access(settings.state), _Meters()
        self.datasets = {
            name: ServedDataset(name, about, self.access, settings.limits)
            for name, about in settings.datasets.items()
        }
        self._collectors = [
            session.collector
            for dataset in self.datasets.values()
            for session in dataset.sessions.values()
        ]
        self.large_bodies = asyncio.Semaphore(_LARGE_BODIES)
        self._ready = (-math.inf, False)
        self.stopping = False

    async def close(self) -> None:
        """Answer what waits, and let go of the files."""
        self.stopping = True
        for collector in self._collectors:
            await collector.close()
        self.access.close()

    def key_of(self, request: Request) -> ApiKey:
        """Return the key of a request, if it is valid.

        Raises
        ------
        ProblemError
            If it is missing, unknown or revoked.
        """
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        key = self.access.find(token.strip()) if scheme.lower() == "bearer" else None
        if key is None:
            raise ProblemError(
                "no-key",
                "The service does not know this key; check it, or ask the curator for one.",
            )
        if key.revoked_at is not None:
            said = f"The key {key.id} was revoked; ask the curator for another."
            raise ProblemError("no-key", said)
        return key

    def dataset(self, request: Request, name: str, roles: tuple[Role, ...]) -> ServedDataset:
        """Return a dataset, if the key of the request may use it in one of these roles.

        Raises
        ------
        ProblemError
            If it may not, or there is none of that name.
        """
        key = self.key_of(request)
        # a key of other datasets does not learn which there are
        if not key.covers(name):
            raise ProblemError("wrong-dataset", f"The key {key.id} is not for this dataset.")
        if key.role not in roles:
            raise ProblemError(
                "wrong-role",
                f"The key {key.id} is of the role {key.role}; this takes {' or '.join(roles)}.",
            )
        if name not in self.datasets:
            raise ProblemError("not-found", "There is no such dataset; /v1/datasets lists them.")
        request.state.key = key
        return self.datasets[name]

    def session(
        self, request: Request, dataset: str, name: str, roles: tuple[Role, ...]
    ) -> ServedSession:
        """Return a session of a dataset.

        Raises
        ------
        ProblemError
            If the key may not use it, or there is none of that name.
        """
        sessions = self.dataset(request, dataset, roles).sessions
        if name not in sessions:
            raise ProblemError("not-found", "There is no such session; the dataset lists them.")
        return sessions[name]

    def download(self, request: Request, dataset: str, what: str) -> None:
        """Write into the audit log that something was downloaded."""
        key: ApiKey = request.state.key
        entry = AuditEntry(request.state.request_id, key.id, "download", dataset, what)
        with self.access.admitting() as admit:
            admit(entry, (), None)

    async def ready(self) -> bool:
        """Return whether questions can be answered now."""
        if self.stopping or any(collector.stuck for collector in self._collectors):
            return False
        now = time.monotonic()
        if now - self._ready[0] > _READY_S:
            found = await asyncio.to_thread(
                lambda: all(dataset.ready() for dataset in self.datasets.values())
            )
            self._ready = (now, found)
        return self._ready[1]

    def response_to(self, error: Exception, request: Request) -> Response:
        """Return the problem document of an error; one that nobody foresaw is logged by its
        type."""
        problem, request_id = problem_of(error), request.state.request_id
        if problem.status >= 500:
            log_trouble(error, f"{problem.kind}, request {request_id}")
        return Response(
            json.dumps(problem.document(request_id)),
            problem.status,
            media_type=MEDIA_TYPE,
            headers=problem.headers,
        )


_json_text = json.JSONEncoder(allow_nan=False).encode


def _json_response(document: Any) -> Response:
    return Response(_json_text(document), media_type=JSON)


# --- what an endpoint is given ---


async def _service_of(request: Request) -> Any:
    return request.app.state.service


_TheService = Annotated[Service, Depends(_service_of)]


def _dataset_for(roles: tuple[Role, ...]) -> Any:
    async def found(request: Request, service: _TheService, dataset: str) -> ServedDataset:
        return service.dataset(request, dataset, roles)

    return Depends(found)


async def _session(
    request: Request, service: _TheService, dataset: str, session: str
) -> ServedSession:
    return service.session(request, dataset, session, _ANYONE)


_AnyDataset = Annotated[ServedDataset, _dataset_for(_ANYONE)]
_OverseenDataset = Annotated[ServedDataset, _dataset_for(_OVERSEERS)]
_AnySession = Annotated[ServedSession, Depends(_session)]

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_POINT = {"anyOf": [{"type": "array", "items": {}}, {"type": "object"}]}
_POINTS = {
    "type": "object",
    "properties": {"points": {"type": "array", "items": _POINT, "minItems": 1}},
    "required": ["points"],
    "additionalProperties": False,
    "example": {"points": [[1.5, 0.0, -2.0]]},
}
_POINTS_BODY = {
    "requestBody": {
        "required": True,
        "content": {JSON: {"schema": _POINTS}, ARROW: _BINARY, PARQUET: _BINARY},
    }
}
_PROBLEM = {"description": "A problem document"}

_public = APIRouter()  # none of these takes a key: nothing here is about a dataset
_KEY = [Depends(HTTPBearer(auto_error=False, scheme_name="key"))]
_keyed = APIRouter(dependencies=_KEY)
_SESSION = "/v1/datasets/{dataset}/sessions/{session}"


# --- sessions ---


async def _shaped_answer(request: Request) -> Response:
    """Return the answer to questions; answers, problems as well, leave at a fixed time and in a
    fixed size where the settings say so."""
    service: Service = request.app.state.service
    began, shape = time.monotonic(), service.settings.answers
    response: Response
    try:
        response = await questions(request, **request.path_params)
    except Exception as error:
        response = service.response_to(error, request)
    if shape.size_bytes:
        # blanks behind a JSON document are a part of it
        missing = -len(bytes(response.body)) % shape.size_bytes
        response.body = bytes(response.body) + b" " * missing
        response.headers["content-length"] = str(len(response.body))
    if step := shape.grid_seconds:
        # at the first moment that is whole steps of the grid after the beginning
        passed = time.monotonic() - began
        await asyncio.sleep(math.ceil(passed / step) * step - passed)
    return response


# for the description of the service alone: `application` has these requests answered before
@_keyed.post(f"{_SESSION}/questions", openapi_extra=_POINTS_BODY)
async def questions(request: Request, dataset: str, session: str) -> Response:
    """Ask one point or many. A point that was asked before has its stored answer, for nothing;
    where the budget ends inside a request, `given` says which points have an answer."""
    service: Service = request.app.state.service
    served = service.session(request, dataset, session, ("analyst", "curator"))

    def read(points: Any) -> AskedPoints:
        asked, key = question_digests(points), request.state.key
        entry = AuditEntry(request.state.request_id, key.id, "ask", dataset, session, len(asked))
        return AskedPoints(points, asked, entry, key.quota)

    asked = await _worked_on_points(request, service, served, read, quick=True)
    size = len(asked.questions)
    answers = await served.collector.ask(asked, size)
    service.meters.questions.labels(dataset, session).inc(size)
    service.meters.left.labels(dataset, session).set(answers.left)
    return _json_response(_answers_document(served, answers))


def _answers_document(session: ServedSession, answers: SessionAnswers) -> Json:
    counts = answers.noisy_counts
    rows = zip(
        answers.labels.tolist(),
        answers.given.tolist(),
        answers.answered.tolist(),
        [None] * len(answers) if counts is None else counts.tolist(),
        strict=True,
    )
    return {
        "dataset": session.dataset,
        "session": session.name,
        "answers": [
            {
                "label": label,
                "given": given,
                "abstained": given and not answered,
                # a filler takes the place of a count that was not given
                "noisy_count": count if given else None,
            }
            for label, given, answered, count in rows
        ],
        "left": answers.left,
    }


@_keyed.get(_SESSION)
def describe(served: _AnySession) -> Any:
    """The terms of a session, its price, and how many questions are left."""
    return served.describe()


@_keyed.get(f"{_SESSION}/certificate")
def certificate(request: Request, service: _TheService, served: _AnySession) -> Response:
    """The certificate of all answers so far, in the order in which they were asked. Where the
    service has a key, `Certificate-Signature` is the Ed25519 signature of the body in base64, and
    `Certificate-Key` the fingerprint of the key."""
    response = _json_response(served.transcript()["certificate"])
    service.download(request, served.dataset, served.name)
    # of the very bytes that are sent: another worker would write another moment
    if service.signing_key is not None:
        signature = service.signing_key.sign(bytes(response.body))
        response.headers["Certificate-Signature"] = base64.b64encode(signature).decode()
        response.headers["Certificate-Key"] = str(service.signs_as)
    return response


@_keyed.get(f"{_SESSION}/verification")
def verification(service: _TheService, served: _AnySession) -> Any:
    """The checks of the certificate of all answers so far, made anew by the service."""
    return served.verification() | {"signed_by": service.signs_as}


@_keyed.get(f"{_SESSION}/released")
def transcript(request: Request, service: _TheService, served: _AnySession) -> Response:
    """All answers so far with their certificate: row i stands for the i-th question."""
    found = served.transcript()
    service.download(request, served.dataset, served.name)
    return _json_response(found)


@_keyed.post(f"{_SESSION}/preview", openapi_extra=_POINTS_BODY)
async def preview(request: Request, service: _TheService, served: _AnySession) -> Any:
    """What asking these points would take; nothing is asked."""
    return await _worked_on_points(request, service, served, served.preview)


@_keyed.post(f"{_SESSION}/released", openapi_extra=_POINTS_BODY)
async def released(request: Request, service: _TheService, served: _AnySession) -> Response:
    """All answers so far as rows of these points, among which must be all that were asked."""

    def work(points: Any) -> Json:
        found = served.released(points)
        service.download(request, served.dataset, served.name)
        return found

    return _json_response(await _worked_on_points(request, service, served, work))


async def _worked_on_points(
    request: Request,
    service: Service,
    served: ServedSession,
    work: Callable[[Any], _Found],
    *,
    quick: bool = False,
) -> _Found:
    """Return what work on the points of a body finds; in a thread, so that nobody else waits,
    unless it is quick and the points are few: handing over takes longer."""
    limits, kind = service.settings.limits, request.headers.get("content-type", "")
    size = request.headers.get("content-length", "unknown")
    async with service.large_bodies if len(size) >= _DIGITS_OF_LARGE else nullcontext():
        content = await body_of(request, most=limits.body_bytes, seconds=limits.body_seconds)

        def found() -> _Found:
            return work(served.table(content, kind))

        # of the other kinds a small body may be large points, and encoding takes its time
        few = len(content) <= _SMALL_BODY and is_json(kind) and served.schema is None
        return found() if quick and few else await asyncio.to_thread(found)


# --- datasets ---


@_keyed.get("/v1/key")
def own_key(request: Request, service: _TheService) -> Any:
    """What the key may do, and how many new questions it has asked."""
    key = service.key_of(request)
    names = [name for name in service.datasets if key.covers(name)]
    asked = {name: service.access.asked(key.id, name) for name in names}
    return {**dict(key), "datasets": names, "asked": asked}


@_keyed.get("/v1/datasets")
async def list_datasets(request: Request, service: _TheService) -> Any:
    """The datasets that the key may be used for."""
    key = service.key_of(request)
    # of other datasets not even the name is shown
    return {
        "datasets": [one.describe() for name, one in service.datasets.items() if key.covers(name)]
    }


@_keyed.get("/v1/datasets/{dataset}/budget")
def budget(served: _AnyDataset) -> Any:
    """What may be spent on the dataset, what is spent, and what is left."""
    return served.budget()


# --- oversight ---


@_keyed.get("/v1/datasets/{dataset}/account")
def account(request: Request, service: _TheService, served: _OverseenDataset) -> Any:
    """Every reservation of the ledger, after all of its rows were checked."""
    found = served.account()
    service.download(request, served.name, "account")
    return found


@_keyed.get("/v1/datasets/{dataset}/audit")
def audit(
    service: _TheService,
    served: _OverseenDataset,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    most: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Any:
    """Who asked how many points of the dataset, and who downloaded what."""
    rows = service.access.rows(served.name, after=after, most=most)
    return {
        "rows": [asdict(row) for row in rows],
        "next_after": rows[-1].position if len(rows) == most else None,
    }


@_keyed.get("/metrics")
async def metrics(request: Request, service: _TheService) -> Response:
    """Numbers for Prometheus, for a curator or auditor of all datasets."""
    key = service.key_of(request)
    if key.role not in _OVERSEERS or not key.covers("*"):
        raise ProblemError("wrong-role", "This takes a curator's or auditor's key of all datasets.")
    return service.meters.response()


# --- for everybody ---


@_public.get("/health/live")
async def live() -> dict[str, str]:
    """Whether the process runs."""
    return {"status": "live"}


@_public.get("/health/ready")
async def ready(service: _TheService, response: Response) -> dict[str, str]:
    """Whether questions can be answered now: the ledgers can be read and nothing is stuck."""
    found = await service.ready()
    response.status_code = 200 if found else 503
    return {"status": "ready" if found else "not ready"}


def application(
    settings: ServiceSettings, *, on_stop: Callable[[], None] = lambda: None
) -> FastAPI:
    """Return the service as an ASGI application, every dataset opened.

    Parameters
    ----------
    settings : ServiceSettings
    on_stop : callable
        Called when the server stops, before the last answers.

    Raises
    ------
    DataError, LedgerError
        If a dataset cannot be opened.
    """
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        on_stop()
        await service.close()

    async def respond(request: Request, error: Exception) -> Response:
        return service.response_to(error, request)

    app = FastAPI(
        title="secretballot",
        version=secretballot.__version__,
        summary="Private labels under a budget, to be asked one by one or in batches",
        lifespan=lifespan,
        # these pages would load scripts from elsewhere
        docs_url=None,
        redoc_url=None,
        responses={"4XX": _PROBLEM, "5XX": _PROBLEM},
        # what the framework says of these by itself is no problem document
        exception_handlers={HTTPException: respond, RequestValidationError: respond},
    )
    app.state.service = service
    # asked first, and past all that the framework does around others: that takes as long as half of
    # a small request
    first = Route(f"{_SESSION}/questions", _shaped_answer, methods=["POST"])
    app.add_middleware(_Guard, service=service, first=first)
    app.include_router(_keyed)
    app.include_router(_public)
    app.router.routes += _console_routes()
    return app
