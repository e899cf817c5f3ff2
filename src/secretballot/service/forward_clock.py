"""The date by which keys expire: it does not go back while the service runs."""

import time
from datetime import UTC, datetime, timedelta


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
        self._ticks = time.monotonic()

    def now(self) -> datetime:
        """Return the date, UTC."""
        passed = timedelta(seconds=time.monotonic() - self._ticks)
        # a date that was ahead for a moment is forgotten; one that is behind is not believed
        return max(datetime.now(UTC), self._began + passed)
