"""What goes wrong, as problem documents of RFC 9457: a kind, a status, one sentence.

The sentence is ours and names what was asked, the rule and the fix. Nothing that was computed from
private data is in it, and of an error that nobody foresaw only that there was one.
"""

import logging
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from secretballot._validation import plain_line
from secretballot.exceptions import (
    BudgetError,
    DataError,
    LedgerError,
    ParameterError,
    ResourceError,
    SamplerError,
    SecretBallotError,
)

MEDIA_TYPE = "application/problem+json"
#: What the answer says beside the document, by its status.
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "5"}}
_LOG = logging.getLogger("uvicorn.error")


class Kind(NamedTuple):
    """The status of answers of a kind, and what it means and what to do, for people."""

    status: int
    meaning: str


KINDS = {
    "no-key": Kind(401, "Send a key that is valid as Authorization: Bearer sb_..."),
    "wrong-dataset": Kind(403, "The key is not for this dataset; ask the curator for one."),
    "wrong-role": Kind(403, "The key's role may not do this; the guide lists the roles."),
    "quota-spent": Kind(
        403, "The key has asked as many new questions as it may. Stored answers stay free."
    ),
    "not-found": Kind(404, "There is nothing at this address."),
    "wrong-method": Kind(405, "This address takes another method."),
    "too-slow": Kind(408, "The body did not come in time; send it again, faster."),
    "budget-spent": Kind(
        409, "All questions of the session are answered or it is closed. Stored answers stay free."
    ),
    "too-large": Kind(413, "The body or its number of points is above the limit."),
    "wrong-media-type": Kind(415, "Send JSON, an Arrow stream or a Parquet file."),
    "unreadable": Kind(400, "The body is not what its media type says."),
    "wrong-points": Kind(422, "The points do not fit the teachers; nothing was asked."),
    "defect": Kind(500, "The service has a defect; details are withheld. Report the request id."),
    "ledger-unavailable": Kind(
        503,
        "The ledger cannot be used now and nothing was answered. Ask again later: a question that"
        " was answered all the same has its stored answer, for nothing.",
    ),
    "busy": Kind(503, "Too much waits, or the service is stopping; nothing was asked. Try later."),
}


def title_of(kind: str) -> str:
    """Return the title of a kind of problem."""
    return kind.replace("-", " ").capitalize()


class ProblemError(Exception):
    """Why a request is refused.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    detail : str, optional
        One sentence; by default what the kind means.
    """

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(detail)
        self.kind, self.detail = kind, plain_line(detail or KINDS[kind].meaning)
        self.status = KINDS[kind].status
        self.headers = _HEADERS.get(self.status, {})

    def document(self, request_id: str) -> dict[str, Any]:
        """Return the problem document."""
        return {
            "type": f"/problems/{self.kind}",
            "title": title_of(self.kind),
            "status": self.status,
            "detail": self.detail,
            "instance": f"urn:uuid:{request_id}",
        }


@contextmanager
def points_at_fault() -> Iterator[None]:
    """Turn what is wrong with points that were sent into the problem of it."""
    try:
        yield
        return
    except DataError as error:
        said = str(error)
    raise ProblemError("wrong-points", said)


def log_trouble(error: BaseException, about: str) -> None:
    """Log an error: its type, the innermost of our own lines in its traceback, and its message
    where that is ours; any other may quote a private cell."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "secretballot" in f.filename]
    place = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    ours = isinstance(error, SecretBallotError | ProblemError)
    said = f": {error}" if ours else ""
    text = plain_line(f"{about}: {type(error).__name__} at {place or 'no line of ours'}{said}")
    # handed on without asking whether logging is disabled: it is for all threads while a teacher
    # votes, and this line would be lost
    _LOG.handle(_LOG.makeRecord(_LOG.name, logging.ERROR, "", 0, text, (), None))


def problem_of(error: BaseException) -> ProblemError:
    """Return what a caller may know of an error.

    Of the ledger and the vault no path and no other word: these are the operator's. Of what nobody
    foresaw nothing: its message may quote anything.
    """
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, HTTPException):
        kind = {404: "not-found", 405: "wrong-method"}.get(error.status_code, "unreadable")
        return ProblemError(kind)
    if isinstance(error, RequestValidationError):
        names = ", ".join(sorted({str(one["loc"][-1])[:40] for one in error.errors()}))
        return ProblemError("wrong-points", f"{names} is out of its range.")
    if isinstance(error, BudgetError):
        return ProblemError("budget-spent", str(error))
    # points were checked before: what is left of these errors is about vault and terms
    if isinstance(error, LedgerError | DataError | ParameterError):
        return ProblemError(
            "ledger-unavailable", "The ledger of this dataset cannot be used now; ask again later."
        )
    if isinstance(error, ResourceError | SamplerError | MemoryError):
        return ProblemError("busy", "The service is short of resources; try again later.")
    return ProblemError("defect")
