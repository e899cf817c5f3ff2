"""Around every request: an id, numbers for Prometheus, and no word of an unforeseen error.

The numbers hold no private value; but times of answers depend on private data, so that they are for
curators and auditors alone.
"""

import functools
import os
import time
import uuid
from typing import Any

from fastapi import FastAPI
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
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from secretballot.service.run import NUMBERS_AT

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0)
_SESSION = ("dataset", "session")
_HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


class Meters:
    """The numbers of one worker; with several, each reports those of all. Each is called with its
    labels, and found by them from the second time on."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        self.seconds = functools.cache(
            Histogram(
                "secretballot_request_seconds",
                "Time from request to answer.",
                ("method", "route", "status"),
                buckets=_SECONDS,
                registry=own,
            ).labels
        )
        self.questions = functools.cache(
            Counter("secretballot_questions", "Points asked.", _SESSION, registry=own).labels
        )
        self.left = functools.cache(
            Gauge(
                "secretballot_questions_left",
                "Questions that are still paid for.",
                _SESSION,
                # workers share a session: what the last one saw is right, and a sum is not
                multiprocess_mode="mostrecent",
                registry=own,
            ).labels
        )

    def response(self) -> Response:
        """Return the numbers of all workers."""
        registry = self._registry
        if os.environ.get(NUMBERS_AT):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class Guard:
    """What is around every request: around an application, inside of all that the framework puts
    around it, so that no error gets there.

    Parameters
    ----------
    app : ASGI application
    service : Service
        Its numbers are used here.
    """

    def __init__(self, app: ASGIApp, service: Any) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand on what is none."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = str(uuid.uuid4())
        scope.setdefault("state", {})["request_id"] = request_id
        status, began = 0, time.monotonic()

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = ((b"x-request-id", request_id.encode()), *_HEADERS)
                message["headers"] = [*message.get("headers", []), *own]
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        # whoever is outside would print the message, which may quote anything
        except Exception as error:
            response = self._service.response_to(error, Request(scope, receive))
            if not status:
                await response(scope, receive, send_on)
        finally:
            # an address that nobody serves may be anything; of methods the server knows few
            route = getattr(scope.get("route"), "path", "none")
            seconds = self._service.meters.seconds(scope["method"], route, str(status))
            seconds.observe(time.monotonic() - began)


class GuardedAPI(FastAPI):
    """An application inside of a guard, and one route that is past all of the framework.

    Parameters
    ----------
    service : Service
    quick : Route
        To an ASGI application. All that the framework does around others takes as long as half of
        a small request.
    **more
        Of the framework.
    """

    def __init__(self, service: Any, quick: Route, **more: Any) -> None:
        super().__init__(**more)
        self.state.service = service
        self.add_middleware(Guard, service=service)
        self._quick, self._guarded = quick, Guard(quick.app, service)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand on what is none."""
        found = scope.get("method") == "POST" and self._quick.path_regex.match(scope["path"])
        if found:
            scope.update(route=self._quick, path_params=found.groupdict())
            await self._guarded(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)
