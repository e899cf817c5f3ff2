"""The settings of a service: one TOML file, checked before anything is opened."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo

from secretballot.core.types import Model, fault_of
from secretballot.runs.spec import address, read_toml

_Whole = Annotated[int, Field(ge=1, strict=True)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
_Text = Annotated[str, Field(min_length=1, max_length=4000)]


def _beside_the_file(path: Path, about: ValidationInfo) -> Path:
    """Return a path of the file, which starts at the file's folder."""
    return Path((about.context or {}).get("folder", "")) / path


_Address = Annotated[str, AfterValidator(address)]
_File = Annotated[Path, AfterValidator(_beside_the_file)]


class Listening(Model):
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

    host: _Text = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, strict=True)] = 8711
    workers: _Whole = 1
    connections: _Whole = 1000
    stop_seconds: _Positive = 8.0


class Limits(Model):
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

    body_bytes: _Whole = 8_000_000
    points: _Whole = 5000
    body_seconds: _Positive = 15.0
    waiting: _Whole = 20_000
    group_points: _Whole = 1000
    answer_seconds: _Positive = 20.0


class AnswerShape(Model):
    """Whether answers leave at fixed times and in fixed sizes.

    Attributes
    ----------
    grid_seconds : float
        Answers leave a whole number of these after the request came; 0 as soon as they are there.
    size_bytes : int
        Answers are filled up to a whole number of these; 0 as they are.
    """

    grid_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)] = 0.0
    size_bytes: Annotated[int, Field(ge=0, strict=True)] = 0


class DatasetSettings(Model):
    """One dataset: the vault of its teachers, and its sessions.

    Attributes
    ----------
    vault : Path
        Secret folder that holds the teachers and the sessions.
    title : str or None
        For people; the name by default.
    encoding : Path or None
        Public schema by which points are encoded, where teachers learned from encoded rows.
    sessions : tuple of str
        Requests under which sessions were begun; the first is the one that is asked by default.
    """

    vault: _File
    title: _Text | None = None
    encoding: Annotated[_File | None, Field(alias="schema")] = None
    sessions: Annotated[tuple[_Address, ...], Field(min_length=1)] = ("session",)


class ServiceSettings(Model):
    """All settings of a service.

    Attributes
    ----------
    state : Path
        Secret folder of the service: keys and the audit log.
    datasets : dict of str to DatasetSettings
        By their names in addresses.
    listen : Listening
    limits : Limits
    answers : AnswerShape
    signing_key : Path or None
        Private key by which the service signs its certificates.
    """

    datasets: Annotated[dict[_Address, DatasetSettings], Field(min_length=1)]
    state: Annotated[_File, Field(validate_default=True)] = Path("service-state")
    listen: Listening = Listening()
    limits: Limits = Limits()
    answers: AnswerShape = AnswerShape()
    signing_key: _File | None = None


def read_settings(path: Path) -> ServiceSettings:
    """Return the settings in a TOML file; relative paths start at its folder.

    Raises
    ------
    DataError
        If the file cannot be read.
    ParameterError
        Naming the setting that cannot be.
    """
    try:
        return ServiceSettings.model_validate(
            read_toml(path), context={"folder": path.absolute().parent}
        )
    except ValidationError as error:
        raise fault_of(error) from None
