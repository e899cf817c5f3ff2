"""Bodies, read as they come: too many bytes or too slow, and the rest is not read."""

import asyncio

from starlette.requests import ClientDisconnect, Request

from secretballot.service.problems import ProblemError


async def body_of(request: Request, *, most: int, seconds: float) -> bytes:
    """Return the body of a request.

    Parameters
    ----------
    request : Request
    most : int
        Bytes.
    seconds : float
        From now until its end.

    Raises
    ------
    ProblemError
        If it is too large or too slow, or its sender went away.
    """
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and len(declared) < 20 and int(declared) > most:
        raise _too_large(most)
    # what a request declares may be wrong, so what comes is counted
    parts, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise _too_large(most)
                parts.append(part)
    except TimeoutError:
        raise ProblemError(
            "too-slow", f"The body did not come within {seconds:g} seconds; send it faster."
        ) from None
    except ClientDisconnect:
        raise ProblemError("unreadable", "The body broke off; send it again.") from None
    return b"".join(parts)


def _too_large(most: int) -> ProblemError:
    return ProblemError("too-large", f"The body has more than {most} bytes; ask in parts.")
