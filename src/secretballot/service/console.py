"""The page for people: four files, served as they are, with no content from elsewhere."""

import base64
import hashlib
import re
from importlib.resources import files

from fastapi import FastAPI, Response

_KINDS = {
    "index.html": "text/html; charset=utf-8",
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "report.html": "text/html; charset=utf-8",
}
#: Only what this address serves is run, shown or asked, and no other page may frame it.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'"
    " data:; frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
#: A report brings its style with it, which must not become a right of the console: it is shown in
#: a frame that counts as another address, runs its own script alone, and can load or ask nothing.
_FRAME_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src 'unsafe-inline'; form-action 'none';"
    " base-uri 'none'; frame-ancestors 'self'; sandbox allow-scripts"
)
_HEADERS = {
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def add_console(app: FastAPI) -> None:
    """Serve the page at ``/``; it needs no key to be read, and shows nothing without one."""
    page = files("secretballot.service") / "page"

    def served(name: str) -> None:
        content = (page / name).read_bytes()
        headers = _HEADERS | _policy_headers(name, content)

        async def read() -> Response:
            return Response(content, media_type=_KINDS[name], headers=headers)

        address = "/" if name == "index.html" else f"/{name}"
        app.add_api_route(address, read, methods=["GET", "HEAD"], include_in_schema=False)

    for name in _KINDS:
        served(name)


def _policy_headers(name: str, content: bytes) -> dict[str, str]:
    """Return the headers that say what a file of the page may do."""
    if name != "report.html":
        return {"Content-Security-Policy": _POLICY, "Cross-Origin-Opener-Policy": "same-origin"}
    (script,) = re.findall(rb"<script>(.*?)</script>", content, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
    return {"Content-Security-Policy": _FRAME_POLICY.format(script=f"sha256-{digest}")}
