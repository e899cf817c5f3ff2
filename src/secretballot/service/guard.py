"""Around every request: an id, a line in the log, numbers, and no word of an unforeseen error."""

import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from secretballot.service.json_logs import defect_of, event
from secretballot.service.meters import Meters
from secretballot.service.problems import MEDIA_TYPE, problem_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


def request_id_of(scope: Scope) -> str:
    """Return the id that a request got here."""
    return str(scope["state"]["request_id"])


class Guard:
    """An application around another one.

    Parameters
    ----------
    inside : ASGI application
    service : Service
        What the application shares; its numbers are used here.
    """

    def __init__(self, inside: Application, service: Any) -> None:
        self._inside, self.service = inside, service
        self._meters: Meters = service.meters
        self._counted: dict[tuple[str, str, int], tuple[Any, Any]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand on what is none."""
        if scope["type"] != "http":
            await self._inside(scope, receive, send)
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
            await self._inside(scope, receive, send_on)
        except Exception as error:
            # raised again by the framework once it has sent what we say: its message would
            # end in the server's log
            event("defect", level=logging.ERROR, request_id=request_id, **defect_of(error))
            if not status:
                await _send_defect(error, request_id, send_on)
        finally:
            self._record_request(scope, status, time.monotonic() - began, request_id)

    def _record_request(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        # an address that nobody serves, and a method that nobody knows, may be anything
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        kind = (method, route, status)
        if kind not in self._counted:  # to look them up by their labels takes longer than to count
            requests = self._meters.requests.labels(method, route, str(status))
            self._counted[kind] = requests, self._meters.seconds.labels(route)
        requests, times = self._counted[kind]
        requests.inc()
        times.observe(seconds)
        event(
            "request",
            request_id=request_id,
            method=method,
            route=route,
            status=status,
            ms=round(1000 * seconds, 1),
            **scope["state"].get("noted", {}),
        )


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


async def _send_defect(error: Exception, request_id: str, send: Send) -> None:
    problem = problem_of(error)
    body = json.dumps(problem.document(request_id)).encode()
    await send(
        {
            "type": "http.response.start",
            "status": problem.status,
            "headers": [
                (b"content-type", MEDIA_TYPE.encode()),
                (b"content-length", str(len(body)).encode()),
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})
