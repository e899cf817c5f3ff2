"""A PostgreSQL database as people name it: a URL, which is shown and kept without its passwords."""

import re
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, unquote

from secretballot.core.errors import Parameter, ParameterError

DEFAULT_SCHEMA = "secretballot"
_SCHEME = re.compile(r"postgres(ql)?://", re.IGNORECASE)
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\[\]:@,]*)(?::([0-9]{1,5})?)?")
_SECRET = frozenset({"password", "sslpassword"})
# what libpq takes and holds no secret; anything else in a URL may be a piece of a password
_KNOWN = frozenset(
    {
        *("host", "hostaddr", "port", "user", "dbname", "passfile", "service", "options"),
        *("application_name", "connect_timeout", "require_auth", "channel_binding"),
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
        *("tcp_user_timeout", "target_session_attrs", "load_balance_hosts"),
        *("sslmode", "sslnegotiation", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslcrldir"),
        *("sslsni", "ssl_min_protocol_version", "ssl_max_protocol_version"),
        *("gssencmode", "krbsrvname", "gsslib", "gssdelegation"),
    }
)


def is_database(place: object) -> bool:
    """Return whether a place is named as a PostgreSQL database."""
    return isinstance(place, DatabasePlace) or (
        isinstance(place, str) and _SCHEME.match(place) is not None
    )


def file_or_database(text: str) -> "Path | DatabasePlace":
    """Return the database that a URL names, or a path.

    Raises
    ------
    ParameterError
        If it is the URL of a database and cannot be read.
    """
    return DatabasePlace(text) if is_database(text) else Path(text)


class DatabasePlace:
    """Where a schema of a PostgreSQL database is, and how to get in.

    As text, in a repr, in a pickle and in a file it has everything but its passwords, so that
    whoever opens it again needs ``PGPASSWORD`` or a password file, as with any PostgreSQL program.

    Parameters
    ----------
    url : str
        ``postgresql://USER@HOST:PORT/DATABASE?schema=NAME``, with the parameters of libpq.

    Attributes
    ----------
    schema : str
        Where the tables are.
    words : dict of str to str
        What libpq is given, passwords among it.
    secrets : tuple of str
        The passwords in it, which no message may have.
    name : str
        What messages call it: user, host, port, database and schema.

    Raises
    ------
    ParameterError
        If it cannot be read; the message quotes nothing of it.
    """

    def __init__(self, url: str) -> None:
        scheme = _SCHEME.match(url)
        if scheme is None:
            raise _url_refusal("it does not begin with postgresql://")
        if not url.isprintable() or " " in url or "#" in url:
            raise _url_refusal("it has a space, a # or a control character in it")
        rest, _, query = url[scheme.end() :].partition("?")
        authority, _, database = rest.partition("/")
        # where a stroke of a password is not written by its number, pieces of it come to be
        # where the host, the port or the database should, and would be shown
        if "@" in database or "/" in database or authority.count("@") > 1:
            raise _url_refusal("it has too many @ or /")
        login, at, address = authority.rpartition("@")
        server = _HOST.fullmatch(address)
        if server is None:
            raise _url_refusal("its host or its port cannot be read")
        words = _words_of_query(query)
        user, colon, password = login.partition(":")
        given = {
            "user": unquote(user),
            "host": unquote(server[1].strip("[]")),
            "port": server[2],
            "dbname": unquote(database),
        }
        if at and colon:
            given["password"] = unquote(password)
        self.schema = words.pop("schema", DEFAULT_SCHEMA)
        if _SCHEMA.fullmatch(self.schema) is None or self.schema.startswith("pg_"):
            raise _url_refusal("its schema must be of a-z, 0-9 and _, and begin with no number")
        self.words = {name: value for name, value in given.items() if value} | words
        self.secrets = tuple(self.words[name] for name in sorted(_SECRET & self.words.keys()))
        self.name = self._url_with(())

    def __str__(self) -> str:
        return self._url_with(_KNOWN - {"user", "host", "port", "dbname"})

    def _url_with(self, parameters: Any) -> str:
        words = self.words
        shown = {name: quote(words.get(name, ""), safe="") for name in ("user", "host", "dbname")}
        if ":" in words.get("host", ""):
            shown["host"] = f"[{words['host']}]"
        login = f"{shown['user']}@" if shown["user"] else ""
        port = f":{words['port']}" if "port" in words else ""
        query = {"schema": self.schema, **{n: words[n] for n in sorted(words) if n in parameters}}
        settings = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
        return f"postgresql://{login}{shown['host']}{port}/{shown['dbname']}?{settings}"

    def __repr__(self) -> str:
        return f"DatabasePlace({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatabasePlace) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self),)


def _words_of_query(query: str) -> dict[str, str]:
    words = {}
    for item in query.split("&") if query else []:
        name, equals, value = item.partition("=")
        if not equals or "@" in name or name not in _KNOWN | _SECRET | {"schema"}:
            raise _url_refusal("it has a parameter that is not known")
        if name in words:
            raise _url_refusal("it has one parameter twice")
        words[name] = unquote(value)
    return words


def _url_refusal(why: str) -> ParameterError:
    """Return the refusal of a URL; it quotes nothing, as any piece may be one of a password."""
    return ParameterError(
        Parameter("ledger"),
        f" is the URL of a PostgreSQL database that cannot be read: {why}; write"
        " postgresql://USER@HOST:PORT/DATABASE?schema=NAME, and in a password %40 %3A %2F %3F %23"
        " for @ : / ? #.",
    )
