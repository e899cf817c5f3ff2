"""Numbers for Prometheus: requests, their times and questions; no private value.

Times of answers depend on private data, so the numbers are for curators and auditors alone.
"""

import os

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

#: Where the numbers of several workers meet; the library reads it when it is imported.
MULTIPROCESS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0)
_SESSION = ("dataset", "session")


class Meters:
    """The numbers of one worker.

    With several workers they meet in a folder, and each worker reports those of all.
    """

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        self.requests = Counter(
            "secretballot_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=own,
        )
        self.seconds = Histogram(
            "secretballot_request_seconds",
            "Time from request to answer.",
            ("route",),
            buckets=_SECONDS,
            registry=own,
        )
        self.questions = Counter("secretballot_questions", "Points asked.", _SESSION, registry=own)
        self.left = Gauge(
            "secretballot_questions_left",
            "Questions that are still paid for.",
            _SESSION,
            # workers share a session: what the last one saw is right, and a sum is not
            multiprocess_mode="mostrecent",
            registry=own,
        )

    def text(self) -> tuple[bytes, str]:
        """Return the numbers of all workers, and the media type."""
        registry = self._registry
        if os.environ.get(MULTIPROCESS_FOLDER):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST
