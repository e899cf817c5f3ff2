"""Around every request: an id, numbers for Prometheus, and no word of an unforeseen error.

The numbers hold no private value; but times of answers depend on private data, so that they are for
curators and auditors alone.
"""

import os
import time
import uuid
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from secretballot.service.run import NUMBERS_AT

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0)
_SESSION = ("dataset", "session")
_HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


class Meters:
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
        self.questions = Counter("secretballot_questions", "Points asked.", _SESSION, registry=own)
        self.left = Gauge(
            "secretballot_questions_left",
            "Questions that are still paid for.",
            _SESSION,
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


class Guard:
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
                own = ((b"x-request-id", request_id.encode()), *_HEADERS)
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
