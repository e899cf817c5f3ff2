"""`secretballot serve`: sessions answered over HTTP."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from secretballot.cli.outcome import say

Config = Annotated[
    Path, typer.Option("--config", metavar="FILE", help="Settings of the service, in TOML.")
]


def serve(
    config: Config = Path("service.toml"),
    host: Annotated[
        str | None, typer.Option("--host", help="Address to listen at; else as the settings say.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="Port; 0 lets the system choose."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes that share the ledgers.")
    ] = None,
) -> None:
    """Answer questions over HTTP, from sessions that were begun before.

    Stops at Ctrl-C or a TERM signal, once what is being asked is answered.

    \b
    Example: secretballot serve --config service.toml --workers 2
    """
    from secretballot.service.run import listening_socket
    from secretballot.service.run import serve as run_service
    from secretballot.service.settings import read_settings

    settings = read_settings(config)
    given: dict[str, Any] = {"host": host, "port": port, "workers": workers}
    own = replace(
        settings.listening, **{name: one for name, one in given.items() if one is not None}
    )
    with listening_socket(own.host, own.port) as listening:
        say(f"serving      http://{own.host}:{listening.getsockname()[1]}")
        sys.stdout.flush()  # whoever reads the address through a pipe waits for it
        run_service(replace(settings, listening=own), listening)
