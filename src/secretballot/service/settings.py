"""The settings of a service: one TOML file, checked before anything is opened."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from secretballot._validation import check_count, check_name, check_path, check_positive, shown
from secretballot.exceptions import DataError, Parameter, ParameterError

_LARGEST = 1 << 20  # bytes of a settings file
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


@dataclass(frozen=True)
class Listening:
    """Where the service listens, and with how many processes.

    Attributes
    ----------
    host : str
    port : int
        0 lets the system choose.
    workers : int
        Processes that share the ledgers.
    connections : int
        Connections that a worker holds at once.
    stop_seconds : float
        How long a stop waits for what is being answered; a second later the process has ended.
    """

    host: str = "127.0.0.1"
    port: int = 8711
    workers: int = 1
    connections: int = 1000
    stop_seconds: float = 8.0


@dataclass(frozen=True)
class Limits:
    """What one request, one key and all together may take.

    Attributes
    ----------
    body_bytes, points : int
        Of one request.
    body_seconds : float
        How long a body may take to come.
    waiting : int
        Points that wait for an answer in a worker at once, of one session.
    group_points : int
        Points that are answered in one transaction.
    answer_seconds : float
        How long a question waits for its answer; a ledger that is locked longer is refused.
    """

    body_bytes: int = 8_000_000
    points: int = 5000
    body_seconds: float = 15.0
    waiting: int = 20_000
    group_points: int = 1000
    answer_seconds: float = 20.0


@dataclass(frozen=True)
class AnswerShape:
    """Whether answers leave at fixed times and in fixed sizes.

    Attributes
    ----------
    grid_seconds : float
        Answers leave a whole number of these after the request came; 0 as soon as they are there.
    size_bytes : int
        Answers are filled up to a whole number of these; 0 as they are.
    """

    grid_seconds: float = 0.0
    size_bytes: int = 0


@dataclass(frozen=True)
class DatasetSettings:
    """One dataset: the vault of its teachers, its sessions, and what may be downloaded.

    Attributes
    ----------
    name : str
        In addresses.
    title : str
        For people.
    vault : Path
        Secret folder that holds the teachers and the sessions.
    schema : Path or None
        Public schema by which points are encoded, where teachers learned from encoded rows.
    sessions : tuple of str
        Requests under which sessions were begun; the first is the one that is asked by default.
    plan : Path or None
        A plan that was made beforehand.
    releases : tuple of Path
        Release folders to download, by their names.
    """

    name: str
    title: str
    vault: Path
    schema: Path | None = None
    sessions: tuple[str, ...] = ("session",)
    plan: Path | None = None
    releases: tuple[Path, ...] = ()


@dataclass(frozen=True)
class ServiceSettings:
    """All that a service is told.

    Attributes
    ----------
    state : Path
        Secret folder of the service: keys and the audit log.
    datasets : dict of str to DatasetSettings
    listening : Listening
    limits : Limits
    shape : AnswerShape
    signing_key : Path or None
        Private key by which the service signs its certificates.
    public_keys : tuple of Path
        Public keys that it publishes besides its own.
    """

    state: Path
    datasets: dict[str, DatasetSettings]
    listening: Listening = field(default_factory=Listening)
    limits: Limits = field(default_factory=Limits)
    shape: AnswerShape = field(default_factory=AnswerShape)
    signing_key: Path | None = None
    public_keys: tuple[Path, ...] = ()


def read_settings(path: Path) -> ServiceSettings:
    """Return the settings in a TOML file; relative paths start at its folder.

    Raises
    ------
    DataError
        If the file cannot be read.
    ParameterError
        Naming the setting that cannot be.
    """
    check_path("config", path)
    document = _toml_document(path)
    known = {"state", "listen", "limits", "answers", "datasets", "signing_key", "public_keys"}
    # a misspelt name would leave its setting at the default
    _refuse_unknown("The settings", document, known)
    folder = path.absolute().parent
    given = document.get("datasets")
    if not isinstance(given, dict) or not given:
        raise ParameterError("datasets is missing; name at least one as [datasets.NAME].")
    return ServiceSettings(
        state=folder / _checked_text("state", document.get("state", "service-state")),
        datasets={name: _dataset_settings(name, about, folder) for name, about in given.items()},
        listening=_checked_listening(_section_settings(Listening, "listen", document)),
        limits=_section_settings(Limits, "limits", document),
        shape=_section_settings(AnswerShape, "answers", document),
        signing_key=folder / _checked_text("signing_key", document["signing_key"])
        if "signing_key" in document
        else None,
        public_keys=tuple(
            folder / one for one in _checked_texts("public_keys", document.get("public_keys", []))
        ),
    )


def _toml_document(path: Path) -> dict[str, Any]:
    problem = ""
    try:
        if path.stat().st_size > _LARGEST:
            problem = f"it has more than {_LARGEST:,} bytes"
        else:
            return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        problem = error.strerror or type(error).__name__
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problem = f"it is no TOML: {error}"
    raise DataError(f"The settings {str(path)!r} cannot be read ({problem}); correct the file.")


Section = TypeVar("Section", Listening, Limits, AnswerShape)


def _section_settings(kind: type[Section], name: str, document: Mapping[str, Any]) -> Section:
    """Return a table of the file as the settings that it is of."""
    given = document.get(name, {})
    if not isinstance(given, dict):
        raise ParameterError(Parameter(name), f" is {shown(given)}; write it as a table [{name}].")
    known = {one.name: one for one in fields(kind)}
    _refuse_unknown(f"[{name}]", given, set(known))
    values: dict[str, Any] = {}
    for key, value in given.items():
        default = known[key].default
        if isinstance(default, str):
            values[key] = _checked_text(key, value)
        elif isinstance(default, int):
            values[key] = check_count(key, value, minimum=1 if default and key != "port" else 0)
        # a grid of 0 seconds is none
        elif default or value:
            values[key] = check_positive(key, value)
    return kind(**values)


def _checked_listening(listening: Listening) -> Listening:
    if listening.port > 65535:
        raise ParameterError(
            Parameter("port"), f" is {listening.port}; it must be at most 65535, or 0."
        )
    return listening


def _dataset_settings(name: str, about: Any, folder: Path) -> DatasetSettings:
    _check_address(f"The dataset {shown(name)}", name)
    where = f"[datasets.{name}]"
    if not isinstance(about, dict):
        raise ParameterError(f"{where} is {shown(about)}; write it as a table.")
    known = {"title", "vault", "schema", "sessions", "plan", "releases"}
    _refuse_unknown(where, about, known)
    if "vault" not in about:
        raise ParameterError(f"{where} lacks vault; give the folder of its teachers.")
    sessions = _checked_texts("sessions", about.get("sessions", ["session"]))
    for session in sessions:
        _check_address(f"The session {shown(session)} of {name}", session)
    releases = tuple(folder / one for one in _checked_texts("releases", about.get("releases", [])))
    # addresses are made of these; a release goes by the name of its folder
    for kind, names in (("session", sessions), ("release", [one.name for one in releases])):
        if len(set(names)) < len(names):
            raise ParameterError(f"{where} names a {kind} twice; name each once.")
    for release in releases:
        _check_address(f"The release {shown(release.name)} of {name}", release.name)
    if not sessions:
        raise ParameterError(f"{where} has no sessions; name the request of at least one.")
    return DatasetSettings(
        name=name,
        title=_checked_text("title", about.get("title", name)),
        vault=folder / _checked_text("vault", about["vault"]),
        schema=folder / _checked_text("schema", about["schema"]) if "schema" in about else None,
        sessions=tuple(sessions),
        plan=folder / _checked_text("plan", about["plan"]) if "plan" in about else None,
        releases=releases,
    )


def _check_address(what: str, name: str) -> None:
    """Refuse a name that cannot stand in an address as it is."""
    if not _NAME.fullmatch(name):
        raise ParameterError(
            f"{what} cannot stand in an address; use at most 80 letters, digits, dots, hyphens and"
            " underscores, a letter or digit first."
        )


def _refuse_unknown(where: str, given: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(given) - known)
    if unknown:
        raise ParameterError(
            f"{where} has {shown(unknown[0])}, which is no setting; it may have"
            f" {', '.join(sorted(known))}."
        )


def _checked_text(name: str, value: object) -> str:
    check_name(name, value, longest=4000)
    return str(value)


def _checked_texts(name: str, value: object) -> list[str]:
    if not isinstance(value, list):
        raise ParameterError(Parameter(name), f" is {shown(value)}; give a list of strings.")
    return [_checked_text(name, one) for one in value]
