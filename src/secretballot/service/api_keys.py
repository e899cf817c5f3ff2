"""API keys: drawn at random, shown once, kept as hashes, scoped to datasets and a role."""

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from secretballot._json_files import LARGEST_JSON
from secretballot._validation import check_name, shown
from secretballot.core.noise import entropy_bytes
from secretballot.core.types import Model
from secretballot.drafts import wait_for_lock
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.vault import make_vault, read_secret, write_secret

Role = Literal["analyst", "curator", "auditor"]
ALL_DATASETS = "*"

_FILE, _LOCK = "keys.json", "keys.lock"
_TOKEN = re.compile(r"sb_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_PATIENCE_S = 10.0  # for another program that changes the keys
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _checked_moment(text: str) -> str:
    # a day that cannot be read must not make a key that holds for ever
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError
    return text


class ApiKey(Model):
    """What is known of a key; the key itself is not.

    Attributes
    ----------
    id : str
        Public; in logs and in the audit log.
    sha256 : str
        Of the secret part, in hexadecimal.
    role : {"analyst", "curator", "auditor"}
    datasets : tuple of str
        That it may be used for; ``*`` for all.
    owner : str
        For people.
    quota : int or None
        New questions that it may ask of each dataset; None as many as the session has.
    made_at : str
        UTC, ISO 8601.
    revoked_at : str or None
    expires_at : str or None
        From then on it is refused; UTC, ISO 8601. None: it holds until it is revoked.
    """

    id: str
    sha256: str
    role: Role
    datasets: tuple[str, ...]
    owner: str
    quota: Annotated[int, Field(ge=0, strict=True)] | None
    made_at: str
    revoked_at: str | None
    expires_at: Annotated[str, AfterValidator(_checked_moment)] | None

    def has_expired(self, now: datetime) -> bool:
        """Return whether its time is over at a moment."""
        return self.expires_at is not None and not now < datetime.fromisoformat(self.expires_at)

    def covers(self, dataset: str) -> bool:
        """Return whether it may be used for a dataset."""
        return ALL_DATASETS in self.datasets or dataset in self.datasets

    def public_fields(self) -> dict[str, Any]:
        """Return what may be shown of it: all but the hash of its secret."""
        return self.model_dump(exclude={"sha256"})


class ForwardClock:
    """The machine's date, but never earlier than when this began and the time that has passed.

    Parameters
    ----------
    least : datetime, optional
        A moment that has been for sure, such as that of the newest row of the audit log: a service
        that is started again after the date was put back begins there.
    """

    def __init__(self, least: datetime | None = None) -> None:
        now = datetime.now(UTC)
        self._began = now if least is None else max(now, least)
        self._ticks = monotonic()

    def now(self) -> datetime:
        """Return the date, UTC."""
        passed = timedelta(seconds=monotonic() - self._ticks)
        # a date that was ahead for a moment is forgotten; one that is behind is not believed
        return max(datetime.now(UTC), self._began + passed)


class _KeyFile(BaseModel):
    keys: list[ApiKey]


class KeyRing:
    """The keys of a service, in one file of its state folder.

    Parameters
    ----------
    state : Path
        Secret folder of the service; made if it is not there.

    Notes
    -----
    The secret part has 256 random bits, so that its plain SHA-256 cannot be guessed. The file is
    replaced as a whole and looked at before every use: a key is revoked as soon as the command
    returns.
    """

    def __init__(self, state: Path) -> None:
        self._folder = make_vault(state)
        self._path = self._folder / _FILE
        # the keys and what was seen of their file, in one place: threads share them, and keys of
        # an older file beside the marks of a newer one would be kept, revoked ones too
        self._known: tuple[tuple[int, int, int] | None, dict[str, ApiKey]] = (None, {})

    def add(
        self,
        role: str,
        datasets: list[str],
        *,
        owner: str = "",
        quota: int | None = None,
        expires: str | None = None,
    ) -> tuple[ApiKey, str]:
        """Make a key and return it with its token, which is shown this once.

        Parameters
        ----------
        role : {"analyst", "curator", "auditor"}
        datasets : list of str
        owner : str
        quota : int, optional
        expires : str, optional
            The last day on which it holds, as 2026-12-31; the day is that of UTC.

        Raises
        ------
        ParameterError
            If the role is unknown, no dataset is named, the quota is no number, or the day is none
            or over.
        DataError
            If the file cannot be read or written.
        """
        if not datasets:
            raise ParameterError(
                Parameter("dataset"), f" is missing; name one or more, or {ALL_DATASETS!r} for all."
            )
        if owner:
            check_name("owner", owner)
        expires_at = None if expires is None else _end_of_day(expires)
        secret = base64.urlsafe_b64encode(entropy_bytes(32)).rstrip(b"=").decode()
        key = ApiKey(
            id=entropy_bytes(6).hex(),
            sha256=_sha256_hex(secret),
            role=role,  # type: ignore[arg-type]  # it is checked
            datasets=tuple(datasets),
            owner=owner,
            quota=quota,
            made_at=_time_now(),
            revoked_at=None,
            expires_at=expires_at,
        )
        # added to the keys as the file has them under the lock: those of other programs stay
        self._change_keys(lambda keys: {**keys, key.id: key})
        return key, f"sb_{key.id}_{secret}"

    def revoke(self, key_id: str) -> ApiKey:
        """Revoke a key for ever; one that was revoked stays as it is.

        Raises
        ------
        ParameterError
            If there is none of that id.
        """

        def revoked(keys: dict[str, ApiKey]) -> dict[str, ApiKey]:
            if key_id not in keys:
                raise ParameterError(
                    f"There is no key {shown(key_id)}; secretballot serve key list shows the ids."
                )
            if keys[key_id].revoked_at is not None:
                return keys
            return {**keys, key_id: keys[key_id].changed(revoked_at=_time_now())}

        return self._change_keys(revoked)[key_id]

    def keys(self) -> list[ApiKey]:
        """Return all keys, revoked ones too, oldest first."""
        return list(self._current_keys().values())

    def find(self, token: str) -> ApiKey | None:
        """Return the key of a token, revoked ones too; None where it is none of these.

        Raises
        ------
        DataError
            If the file cannot be read.
        """
        found = _TOKEN.fullmatch(token)
        keys = self._current_keys()
        key = None if found is None else keys.get(found[1])
        # compared where the id is unknown, too: both ways take the same time
        digest = _sha256_hex("" if found is None else found[2])
        matches = hmac.compare_digest(digest, _NOBODY if key is None else key.sha256)
        return key if matches else None

    def _current_keys(self) -> dict[str, ApiKey]:
        """Return the keys in the file, read again where it was replaced."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise DataError(
                f"{self._path} cannot be read ({error.strerror}); put the state folder back."
            ) from None
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        known, keys = self._known
        if seen != known:
            # looked at before it is read: a file that changes in between is read again
            keys = self._keys_in_file()
            self._known = (seen, keys)
        return keys

    def _keys_in_file(self) -> dict[str, ApiKey]:
        content = read_secret(self._path, largest=LARGEST_JSON)
        if content is None:
            return {}
        with suppress(ValidationError):
            return {key.id: key for key in _KeyFile.model_validate_json(content).keys}
        raise DataError(f"{self._path} is damaged; put the state folder back as it was.")

    def _change_keys(
        self, work: Callable[[dict[str, ApiKey]], dict[str, ApiKey]]
    ) -> dict[str, ApiKey]:
        with self._lock_held():
            changed = work(self._keys_in_file())
            document = _KeyFile(keys=list(changed.values()))
            write_secret(self._path, document.model_dump_json(indent=1).encode())
        return changed

    @contextmanager
    def _lock_held(self) -> Iterator[None]:
        """Hold a lock against other programs that change the keys."""
        problem = ""
        try:
            handle = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem:
            raise DataError(f"{self._folder} cannot be written ({problem}); free the folder.")
        try:
            if not wait_for_lock(handle, _PATIENCE_S):
                raise DataError(
                    f"The keys in {self._folder} are being changed by another program; try again."
                )
            yield
        finally:
            # gives the lock back too
            os.close(handle)


def _end_of_day(day: str) -> str:
    """Return the moment at which a day of UTC is over.

    Raises
    ------
    ParameterError
        If it is no day, or is over.
    """
    end = None
    # `fromisoformat` reads other spellings of a day too
    if isinstance(day, str) and _DAY.fullmatch(day):
        with suppress(ValueError, OverflowError):
            # the day itself still counts
            end = datetime.combine(date.fromisoformat(day), time_of_day(), UTC) + timedelta(days=1)
    if end is None:
        raise ParameterError(
            Parameter("expires"), f" is {shown(day)}; give a day as YYYY-MM-DD, such as 2030-12-31."
        )
    if not datetime.now(UTC) < end:
        raise ParameterError(
            Parameter("expires"), f" is {day}, which is over; give today or a later day."
        )
    return end.isoformat(timespec="seconds")


def _sha256_hex(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _time_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


_NOBODY = hashlib.sha256(b"nobody").hexdigest()
