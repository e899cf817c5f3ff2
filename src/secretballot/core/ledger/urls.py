"""A PostgreSQL database as people name it: a URL, which is shown and kept without its passwords."""

import re
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, unquote

from secretballot.core.errors import Parameter, ParameterError

_DEFAULT_SCHEMA = "secretballot"
_SCHEME = re.compile(r"postgres(ql)?://", re.IGNORECASE)
_SCHEMA = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
# where a stroke of a password is not written by its number, pieces of it come to be where the host,
# the port or the database should, and would be shown: none of these may have a stroke
_URL = re.compile(
    rf"{_SCHEME.pattern}((?P<user>[^:@/?]*)(:(?P<password>[^@/?]*))?@)?"
    r"(?P<host>\[[0-9a-f:.%]+\]|[^][:@/?,]*)(:(?P<port>[0-9]{0,5}))?"
    r"(/(?P<dbname>[^@/?]*))?(\?(?P<query>.*))?",
    re.IGNORECASE,
)
_SECRET = frozenset({"password", "sslpassword"})
_NAMED = ("user", "host", "port", "dbname")
# what holds no secret; anything else in a URL may be a piece of a password
_SETTINGS = (
    *("hostaddr", "passfile", "service", "connect_timeout"),
    *("sslmode", "sslrootcert", "sslcert", "sslkey"),
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
        ``postgresql://USER@HOST:PORT/DATABASE?schema=NAME``, with some parameters of libpq. Others
        can be in a service file, or in variables such as ``PGOPTIONS``.

    Attributes
    ----------
    schema : str
        Where the tables are.
    words : dict of str to str
        What libpq is given, passwords among it.

    Raises
    ------
    ParameterError
        If it cannot be read; the message quotes nothing of it, as any piece may be one of a
        password.
    """

    def __init__(self, url: str) -> None:
        found = _URL.fullmatch(url)
        if found is None or not url.isprintable() or " " in url or "#" in url:
            raise _url_refusal("it has a space or too many strokes, or no readable host or port")
        query = found["query"]
        given = {name: unquote(found[name] or "") for name in (*_NAMED, "password")}
        words = {name: value for name, value in given.items() if value}
        if "host" in words:
            words["host"] = words["host"].strip("[]")
        for item in query.split("&") if query else []:
            name, equals, value = item.partition("=")
            if not equals or name not in {"schema", *_NAMED, *_SETTINGS, *_SECRET}:
                raise _url_refusal("it has a parameter that is not known")
            if name in words:
                raise _url_refusal("it has one parameter twice")
            words[name] = unquote(value)
        self.schema, self.words = words.pop("schema", _DEFAULT_SCHEMA), words
        if _SCHEMA.fullmatch(self.schema) is None:
            raise _url_refusal("its schema must be of a-z, 0-9 and _, and begin with no number")
        shown = {name: quote(value, safe="") for name, value in words.items()}
        user, host, port, database = (shown.get(name, "") for name in _NAMED)
        login, at = (f"{user}@" if user else ""), (f":{port}" if port else "")
        if ":" in words.get("host", ""):
            host = f"[{words['host']}]"
        more = "".join(f"&{name}={shown[name]}" for name in _SETTINGS if name in shown)
        self._url = f"postgresql://{login}{host}{at}/{database}?schema={self.schema}{more}"

    def __str__(self) -> str:
        return self._url

    def __repr__(self) -> str:
        return f"DatabasePlace({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatabasePlace) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self),)


def _url_refusal(why: str) -> ParameterError:
    return ParameterError(
        Parameter("ledger"),
        f" is the URL of a PostgreSQL database that cannot be read: {why}; write"
        " postgresql://USER@HOST:PORT/DATABASE?schema=NAME, and in a password %40 %3A %2F %3F %23"
        " for @ : / ? #.",
    )
