"""Logs as JSON lines on standard error: what was done by whom, and no value of anything.

Neither points nor answers are in them, and of an error that nobody foresaw only its type and
place in the program: its message may quote a private cell.
"""

import json
import logging
import os
import traceback
from datetime import UTC, datetime
from typing import Any

from secretballot._validation import plain_line
from secretballot.exceptions import SecretBallotError

_LOGGER = "secretballot.service"


class JsonLines(logging.Formatter):
    """One JSON object a line; the traceback of an exception is left out."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        fields = getattr(record, "fields", None)
        about: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "process": os.getpid(),
        }
        if isinstance(fields, dict):
            about |= {"event": record.msg, **fields}
        elif record.exc_info:
            error = record.exc_info[1]
            about |= {"event": "defect", **({} if error is None else defect_of(error))}
        else:
            about |= {"event": "server", "message": record.getMessage()}
        return json.dumps(about)


#: The lines of the service and of its server go to standard error; for uvicorn to set up.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": JsonLines}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "loggers": {
        name: {"handlers": ["stderr"], "level": "INFO", "propagate": False}
        for name in (_LOGGER, "uvicorn.error")
    },
}


def event(name: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Log what happened.

    Parameters
    ----------
    name : str
        What, in one word.
    level : int
    **fields
        JSON values; none of them computed from private data.
    """
    logger = logging.getLogger(_LOGGER)
    if level >= logger.getEffectiveLevel():
        # handed on without asking whether logging is disabled: it is for all threads while a
        # teacher votes, and the lines of other requests would be lost
        extra = {"fields": fields}
        logger.handle(logger.makeRecord(_LOGGER, level, "", 0, name, (), None, extra=extra))


def defect_of(error: BaseException) -> dict[str, str]:
    """Return the type of an error and the innermost of our own lines in its traceback; the message
    where it is ours."""
    ours = {"message": plain_line(str(error))} if isinstance(error, SecretBallotError) else {}
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "secretballot" in f.filename]
    place = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    return {"error": type(error).__name__, "place": place, **ours}
