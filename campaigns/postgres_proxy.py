"""A proxy before a PostgreSQL server that breaks connections where a test says so."""

import contextlib
import socket
import threading
from typing import Any, Literal

from campaigns.postgres_server import PostgresServer

When = Literal["statement", "commit", "acknowledgement"]


class PostgresProxy:
    """Forward connections to the socket of a server.

    Attributes
    ----------
    broken : threading.Event
        Set once a connection is broken that `lose` named.
    """

    def __init__(self, server: PostgresServer) -> None:
        self._server, self._place = server, f"{server.folder}/.s.PGSQL.{server.port}"
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._lines: list[_Line] = []
        self.faults: list[tuple[bytes, When, bool]] = []
        self.silent, self.broken = False, threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, schema: str) -> str:
        """Return the URL of a schema by way of this proxy."""
        host, port = self._listening.getsockname()
        return f"postgresql://postgres@{host}:{port}/postgres?schema={schema}"

    def lose(self, statement: bytes, when: When, *, hang: bool = False) -> None:
        """Break, once, the connection on which a statement comes: at the statement, at the COMMIT
        after it, or when that is done and not yet acknowledged.

        Where it is to hang, nothing is closed: nothing comes through any more, in either direction.
        """
        self.broken.clear()
        self.faults.append((statement, when, hang))

    def hang(self) -> None:
        """Let no byte through any more; connections stay open, and new ones are taken."""
        self.silent = True
        for line in self._lines:
            line.silent = True

    def heal(self) -> None:
        """Let new connections through; those that hang go on hanging."""
        self.silent = False

    def close(self) -> None:
        """Close everything."""
        self._listening.close()
        for line in self._lines:
            line.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._place)
                line = _Line(self, client, server)
                self._lines.append(line)
                for work in (line.pass_to_server, line.pass_to_client):
                    threading.Thread(target=work, daemon=True).start()


class _Line:
    """A connection through the proxy."""

    def __init__(self, proxy: PostgresProxy, client: Any, server: Any) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self.silent = proxy.silent
        self._awaited: list[tuple[When, bool]] = []
        self._swallowing: bool | None = None  # whether it hangs afterwards

    def pass_to_server(self) -> None:
        with contextlib.suppress(OSError):
            while said := self._client.recv(1 << 16):
                self._look_at(said)
                if not self.silent:
                    self._server.sendall(said)
            if not self.silent:  # a network that hangs does not tell that one side is gone
                self.cut()

    def pass_to_client(self) -> None:
        with contextlib.suppress(OSError):
            while said := self._server.recv(1 << 16):
                if self._swallowing is not None:
                    self._break(self._swallowing)
                if not self.silent:
                    self._client.sendall(said)
            if not self.silent:
                self.cut()

    def _look_at(self, said: bytes) -> None:
        for fault in [one for one in self._proxy.faults if one[0] in said]:
            self._proxy.faults.remove(fault)
            if fault[1] == "statement":
                self._break(fault[2])
            else:
                self._awaited.append(fault[1:])
        if b"COMMIT" in said and self._awaited:
            when, hang = self._awaited.pop()
            if when == "commit":
                self._break(hang)
            else:
                self._swallowing = hang

    def _break(self, hang: bool) -> None:
        self.silent = True
        self._proxy.broken.set()
        if not hang:
            self.cut()

    def cut(self) -> None:
        for end in (self._client, self._server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
