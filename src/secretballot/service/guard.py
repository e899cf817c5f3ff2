"""Around every request: an id, numbers, and no word of an unforeseen error."""

import time
import uuid
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Guard:
    """The outermost middleware of the service.

    Parameters
    ----------
    app : ASGI application
    service : Service
        What the application shares; its numbers are used here.
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
            # an address that nobody serves, and a method that nobody knows, may be anything
            route = getattr(scope.get("route"), "path", "none")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            meters = self._service.meters
            meters.requests.labels(method, route, str(status)).inc()
            meters.seconds.labels(route).observe(time.monotonic() - began)
