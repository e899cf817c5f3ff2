"""Start the server: one process or several on one socket, until a signal ends it."""

import copy
import functools
import gc
import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
from typing import Any

from secretballot._validation import require_extra
from secretballot.exceptions import DataError
from secretballot.service.settings import ServiceSettings

#: Names the temporary folder where the numbers of all workers meet; their library reads it when it
#: is imported.
NUMBERS_AT = "PROMETHEUS_MULTIPROC_DIR"
_LATE_S = 1.0  # seconds for what comes after the last answer of a stop
_LINE = "%(asctime)s %(levelname)s [%(process)d] %(message)s"
_HANGS_S = 60  # after which a worker that does not even say that it lives is replaced


class _NoTracebacks(logging.Formatter):
    """A line for each record, of an exception its type alone: its message may quote anything."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name is logging's
        """Return the type of an exception."""
        return str(ei[0].__name__)


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address.

    Raises
    ------
    DataError
        If it cannot be had.
    """
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # it listens once it can answer: before that, a client is refused at once
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        problem = error.strerror or type(error).__name__
        raise DataError(
            f"Nothing can listen at {host}, port {port} ({problem}); give another host or port."
        ) from None
    return listening


def serve(settings: ServiceSettings, listening: socket.socket) -> None:
    """Serve until a signal stops it: what is being answered is answered first.

    Parameters
    ----------
    settings : ServiceSettings
    listening : socket
        From `listening_socket`.

    Raises
    ------
    MissingExtraError
        If the server is not installed.
    DataError, LedgerError
        If a dataset cannot be opened.
    """
    for module in ("fastapi", "uvicorn", "prometheus_client"):
        require_extra(module, "service")
    if settings.listen.workers == 1:
        _serve_alone(settings, listening)
        return
    with tempfile.TemporaryDirectory(prefix="secretballot-numbers-") as numbers:
        os.environ[NUMBERS_AT] = numbers
        _serve_together(settings, listening)


def _serve_alone(settings: ServiceSettings, listening: socket.socket) -> None:
    import uvicorn

    from secretballot.service.app import application

    # opened here: what cannot be is reported before anything listens
    app = application(settings, on_stop=_end_soon)
    _settle_memory()
    # the server has stopped in order when it raises the signal again: an end, not a death
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    uvicorn.Server(_config_of(settings, app)).run(sockets=[listening])


def _serve_together(settings: ServiceSettings, listening: socket.socket) -> None:
    from uvicorn.config import STARTUP_FAILURE
    from uvicorn.supervisors import Multiprocess

    from secretballot.service.app import application

    application(settings)  # what cannot be opened is said before anything listens
    made = functools.partial(_worker_application, settings)
    workers = Multiprocess(_config_of(settings, made, factory=True), [listening])
    workers.run()
    if any(worker.exitcode == STARTUP_FAILURE for worker in workers.processes):
        raise DataError("A worker could not begin; its lines in the log say why.")


def _worker_application(settings: ServiceSettings) -> Any:
    from uvicorn.config import STARTUP_FAILURE

    from secretballot.service.app import application
    from secretballot.service.problems import log_trouble

    threading.Thread(target=_stop_with_parent, daemon=True).start()
    try:
        app = application(settings, on_stop=_end_soon)
    except Exception as error:
        log_trouble(error, "a worker could not begin")
        sys.exit(STARTUP_FAILURE)  # the first process is to end, not to start another
    _settle_memory()
    return app


def _config_of(settings: ServiceSettings, app: Any, *, factory: bool = False) -> Any:
    import uvicorn

    own, log = settings.listen, copy.deepcopy(uvicorn.config.LOGGING_CONFIG)
    log["formatters"]["default"] = {"()": _NoTracebacks, "fmt": _LINE}
    return uvicorn.Config(
        app,
        factory=factory,
        workers=own.workers,
        log_config=log,
        access_log=False,  # requests are the proxy's to log
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        limit_concurrency=own.connections,
        timeout_graceful_shutdown=max(1, round(own.stop_seconds)),
        timeout_worker_healthcheck=_HANGS_S,
    )


def _settle_memory() -> None:
    """Take all that is there now for lasting: looking through it for garbage, again and again,
    takes a third of the time of small requests."""
    gc.collect()
    gc.freeze()


def _end_soon() -> None:
    """End the process a little later, whatever hangs in it: a thread that waits for a ledger would
    hold it, and may be ended anywhere."""
    late = threading.Timer(_LATE_S, os._exit, [0])
    late.daemon = True
    late.start()


def _stop_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
