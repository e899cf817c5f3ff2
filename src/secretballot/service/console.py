"""The page for people: three files, served as they are, with no content from elsewhere."""

from importlib.resources import files

from fastapi import FastAPI, Response

__all__ = ["add_console"]

_KINDS = {
    "index.html": "text/html; charset=utf-8",
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
}
#: Only what this address serves is run, shown or asked, and no other page may frame it.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'"
    " data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def add_console(app: FastAPI) -> None:
    """Serve the page at ``/``; it needs no key to be read, and shows nothing without one."""
    page = files("secretballot.service") / "page"

    def served(name: str) -> None:
        content = (page / name).read_bytes()

        async def read() -> Response:
            return Response(content, media_type=_KINDS[name], headers=_HEADERS)

        address = "/" if name == "index.html" else f"/{name}"
        app.add_api_route(address, read, methods=["GET", "HEAD"], include_in_schema=False)

    for name in _KINDS:
        served(name)
