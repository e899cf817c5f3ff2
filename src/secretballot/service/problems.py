"""What goes wrong, as problem documents of RFC 9457: a kind, a status, one sentence.

The sentence is ours and names what was asked, the rule and the fix. Nothing that was computed from
private data is in it, and of an error that nobody foresaw only that there was one.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from secretballot._typing import Json
from secretballot._validation import kind_and_line, plain_line
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


#: The status of each kind of problem.
KINDS = {
    "unreadable": 400,
    "no-key": 401,
    "wrong-dataset": 403,
    "wrong-role": 403,
    "quota-spent": 403,
    "not-found": 404,
    "wrong-method": 405,
    "too-slow": 408,
    "budget-spent": 409,
    "too-large": 413,
    "wrong-media-type": 415,
    "wrong-points": 422,
    "defect": 500,
    "ledger-unavailable": 503,
    "busy": 503,
}


class ProblemError(Exception):
    """Why a request is refused.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    detail : str
        One sentence.
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.status = kind, plain_line(detail), KINDS[kind]
        self.headers = _HEADERS.get(self.status, {})

    def document(self, request_id: str) -> Json:
        """Return the problem document."""
        return {
            "type": f"/problems/{self.kind}",
            "title": self.kind.replace("-", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
            "instance": f"urn:uuid:{request_id}",
        }


@contextmanager
def points_at_fault() -> Iterator[None]:
    """Turn what is wrong with points that were sent into the problem of it."""
    try:
        yield
    except DataError as error:
        raise ProblemError("wrong-points", str(error)) from None


def log_trouble(error: BaseException, about: str) -> None:
    """Log an error: its type, the innermost of our own lines in its traceback, and its message
    where that is ours; any other may quote a private cell."""
    ours = isinstance(error, SecretBallotError | ProblemError)
    text = plain_line(f"{about}: {kind_and_line(error)}{f': {error}' if ours else ''}")
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
        if error.status_code == 405:
            return ProblemError("wrong-method", "This address takes another method.")
        return ProblemError("not-found", "There is nothing at this address.")
    if isinstance(error, RequestValidationError):
        return ProblemError("wrong-points", "after is an integer from 0, most from 1 to 1,000.")
    if isinstance(error, BudgetError):
        return ProblemError("budget-spent", str(error))
    # points were checked before: what is left of these errors is about vault and terms
    if isinstance(error, LedgerError | DataError | ParameterError):
        return ProblemError(
            "ledger-unavailable", "The ledger of this dataset cannot be used now; ask again later."
        )
    if isinstance(error, ResourceError | SamplerError | MemoryError):
        return ProblemError("busy", "The service is short of resources; try again later.")
    return ProblemError(
        "defect", "The service has a defect; details are withheld. Report the request id."
    )
