"""Start the server: one process or several on one socket, until a signal ends it."""

import gc
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from secretballot.drafts import draft_folder, hold_draft, sweep_drafts
from secretballot.exceptions import DataError
from secretballot.report.extras import require_extra
from secretballot.service.json_logs import event
from secretballot.service.settings import ServiceSettings


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address.

    Raises
    ------
    DataError
        If it cannot be had.
    """
    problem = ""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(found[0], socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(found[4])
            listening.set_inheritable(True)
        except OSError:
            listening.close()
            raise
        return listening
    except OSError as error:
        problem = error.strerror or type(error).__name__
    raise DataError(
        f"Nothing can listen at {host}, port {port} ({problem}); give another host or port."
    )


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
    temporary = Path(tempfile.gettempdir())
    # a first process that was killed could not remove its own
    sweep_drafts(temporary, _NUMBERS)
    if settings.listening.workers == 1:
        _serve_until_stopped(settings, listening)
        return
    with draft_folder(temporary, _NUMBERS, shared=True) as numbers:
        # read by the library when it is imported, here and in every worker
        os.environ[_NUMBERS_AT] = str(numbers)
        _serve_until_stopped(settings, listening)


#: Folder of temporary files where the numbers of all workers meet, and what names it to them.
_NUMBERS, _NUMBERS_AT = "secretballot-numbers", "PROMETHEUS_MULTIPROC_DIR"


def _serve_until_stopped(settings: ServiceSettings, listening: socket.socket) -> None:
    from secretballot.service.app import application
    from secretballot.service.json_logs import log_in_json

    log_in_json()
    # opened here in any case: what cannot be is said before anything listens
    app = application(settings, opened=True)
    if settings.listening.workers == 1:
        _settle_memory()
        # the server has stopped in order when it raises the signal again: an end, not a death
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        _run_server(app, settings, listening)
        return
    del app
    Workers(settings, listening).run()


def _settle_memory() -> None:
    """Take all that is there now for lasting: looking through it for garbage, again and again,
    takes a third of the time of small requests."""
    gc.collect()
    gc.freeze()


def _run_server(app: Any, settings: ServiceSettings, listening: socket.socket) -> None:
    """Serve until a signal, and end soon after it whatever hangs."""
    import uvicorn

    own = settings.listening

    class Server(uvicorn.Server):
        def handle_exit(self, *signal_and_frame: Any) -> None:
            # a thread that waits for a ledger would hold the process; it may be ended anywhere
            late = threading.Timer(own.stop_seconds + _LATE_S, os._exit, [0])
            late.daemon = True
            late.start()
            super().handle_exit(*signal_and_frame)

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        limit_concurrency=own.connections,
        timeout_graceful_shutdown=max(1, round(own.stop_seconds)),
    )
    Server(config).run(sockets=[listening])


_LATE_S = 1.0  # seconds for what comes after the last answer of a stop


class Workers:
    """Processes that answer on one socket; one that dies is followed by another.

    Parameters
    ----------
    settings : ServiceSettings
    listening : socket
    """

    def __init__(self, settings: ServiceSettings, listening: socket.socket) -> None:
        self._settings, self._listening = settings, listening
        self._context = multiprocessing.get_context("spawn")
        self._stop = threading.Event()

    def run(self) -> None:
        """Keep the workers alive until a signal comes, then let them finish.

        Raises
        ------
        DataError
            If workers die again and again as soon as they begin.
        """
        earlier = {
            number: signal.signal(number, lambda *_: self._stop.set())
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        running = [self._started_worker() for _ in range(self._settings.listening.workers)]
        early = 0
        try:
            while not self._stop.wait(_LOOK_S) and early < _MOST_EARLY_DEATHS:
                for place, (process, began) in enumerate(running):
                    if process.is_alive():
                        continue
                    event("worker-ended", code=process.exitcode)
                    # only early deaths in a row end the service: a worker that lasted is replaced
                    early = early + 1 if time.monotonic() - began < _EARLY_S else 0
                    running[place] = self._started_worker()
        finally:
            self._end_workers([process for process, _ in running])
            for number, handler in earlier.items():
                signal.signal(number, handler)
        if early >= _MOST_EARLY_DEATHS:
            raise DataError("The workers die as soon as they begin; their log lines say why.")

    def _started_worker(self) -> tuple[Any, float]:
        process = self._context.Process(
            target=work_until_stopped, args=(self._settings, self._listening)
        )
        process.start()
        return process, time.monotonic()

    def _end_workers(self, processes: list[Any]) -> None:
        for process in processes:
            if process.is_alive():
                process.terminate()
        # a little longer than a worker waits for its own requests
        last = time.monotonic() + self._settings.listening.stop_seconds + _LOOK_S + 5
        for process in processes:
            process.join(max(0.0, last - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()


_LOOK_S = 0.2  # seconds between looks at the workers
_EARLY_S, _MOST_EARLY_DEATHS = 10.0, 8


def work_until_stopped(settings: ServiceSettings, listening: socket.socket) -> None:
    """Be a worker: answer on the socket until a signal comes, or the first process is gone."""
    hold_draft(Path(os.environ[_NUMBERS_AT]))  # until it has ended, its first process or not

    from secretballot.service.app import application
    from secretballot.service.json_logs import log_in_json

    log_in_json()
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    app = application(settings, opened=True)
    _settle_memory()
    _run_server(app, settings, listening)


def _stop_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
