"""The page for people: four files, served as they are, with no content from elsewhere."""

import base64
import hashlib
import re
from importlib.resources import files

from starlette.responses import Response
from starlette.routing import Route

_KINDS = {
    "index.html": "text/html",
    "console.css": "text/css",
    "console.js": "text/javascript",
    "report.html": "text/html",
}
#: Only what this address serves is run, shown or asked, and no other page may frame it.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'"
    " data:; frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
#: A report brings its style with it, which must not become a right of the console: it is shown in
#: a frame that counts as another address, runs its own script alone, and can load or ask nothing.
_FRAME_POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'unsafe-inline'; form-action"
    " 'none'; base-uri 'none'; frame-ancestors 'self'; sandbox allow-scripts"
)
_HEADERS = {"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin"}


def console_routes() -> list[Route]:
    """Return the routes of the page, the first at ``/``; it needs no key to be read, and shows
    nothing without one."""
    routes = []
    for name, kind in _KINDS.items():
        content = (files("secretballot.service") / "page" / name).read_bytes()
        headers = _HEADERS | {"Content-Security-Policy": _POLICY}
        if name == "report.html":
            (script,) = re.findall(rb"<script>(.*?)</script>", content, flags=re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
            headers["Content-Security-Policy"] = _FRAME_POLICY.format(script=digest)
        else:
            headers["Cross-Origin-Opener-Policy"] = "same-origin"
        # an answer that stays the same is an application by itself
        page = Response(content, media_type=kind, headers=headers)
        routes.append(Route("/" if name == "index.html" else f"/{name}", page, methods=["GET"]))
    return routes
