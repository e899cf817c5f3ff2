"""A service to look at: a clinic that never was, its teachers, a session, keys, and the server.

Run it as ``python -m secretballot.service.demonstration FOLDER [PORT [LEDGER]]``, or by
``make demo-service``. In a folder that was made before it goes on with the same session.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

from secretballot.runs.demo_session import begin_demonstration_session
from secretballot.service.api_keys import KeyRing
from secretballot.service.run import listening_socket, serve
from secretballot.service.settings import read_settings

__all__ = ["main", "prepare"]

_SETTINGS = """\
# The service of a demonstration; every setting is described in docs/guides/service.md.
state = "service-state"

[datasets.clinic]
title = "Who came back: a clinic that never was"
vault = "vault"
sessions = ["session"]
"""


def prepare(folder: Path, ledger_at: str | None = None) -> dict[str, str]:
    """Train teachers, begin a session and make keys; return the token of each key by its role."""
    config = folder / "service.toml"
    if not config.exists():
        begin_demonstration_session(folder, ledger_at)
        config.write_text(_SETTINGS)  # last: without it nothing was prepared
    ring = KeyRing(read_settings(config).state)
    return {
        role: ring.add(role, ["*"], owner="demonstration")[1] for role in ("analyst", "curator")
    }


def main(words: list[str]) -> None:
    """Prepare a demonstration in a folder and serve it."""
    folder = Path(words[0] if words else "demo-service").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    keys = prepare(folder, words[2] if len(words) > 2 else None)
    settings = read_settings(folder / "service.toml")
    port = int(words[1]) if len(words) > 1 else settings.listening.port
    settings = replace(settings, listening=replace(settings.listening, port=port))
    with listening_socket(settings.listening.host, port) as listening:
        address = f"http://{settings.listening.host}:{listening.getsockname()[1]}"
        print(f"serving      {address}")
        for role, token in keys.items():
            print(f"{role:<12} {token}")
        points = os.path.relpath(folder / "points.csv")
        print(
            f"ask          SECRETBALLOT_KEY={keys['analyst']} secretballot ask {address} {points}"
        )
        sys.stdout.flush()
        serve(settings, listening)


if __name__ == "__main__":
    main(sys.argv[1:])
