"""The service as a process of its own, started by the command line and stopped by signals."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

STARTED_S = 300.0  # seconds after which a test gives up; nothing is measured


@dataclass
class Running:
    """A service that runs."""

    process: "subprocess.Popen[bytes]"
    url: str
    log: Path

    def workers(self) -> set[int]:
        """Return the processes that have written to the log that they began to answer."""
        lines = map(json.loads, self.log.read_text().splitlines())
        return {line["process"] for line in lines if line["event"] == "started"}

    def wait_for_workers(self, count: int) -> None:
        """Wait until so many processes have begun to answer."""
        end = time.monotonic() + STARTED_S
        while len(self.workers()) < count:
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill it and its workers with signal 9."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Stop it as a system does, and return its exit code."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=STARTED_S)


def started(config: Path, *words: str) -> Running:
    """Start a service on a port of the system's choice and wait until it is ready."""
    log = config.with_name("service.log")
    command = [sys.executable, "-m", "secretballot", "serve", "start"]
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [*command, "--config", str(config), "--port", "0", *words],
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    assert process.stdout is not None
    said = re.search(rb"http://\S+", process.stdout.readline())
    running = Running(process, said[0].decode() if said else "", log)
    end = time.monotonic() + STARTED_S
    with httpx.Client(timeout=STARTED_S) as client:
        while time.monotonic() < end and process.poll() is None:
            with suppress(httpx.TransportError):
                if client.get(f"{running.url}/health/ready").status_code == 200:
                    return running
            time.sleep(0.05)
    running.kill()
    raise AssertionError(log.read_text())


@contextmanager
def serving(config: Path, *words: str) -> Iterator[Running]:
    """Start a service, and kill what is left of it in the end."""
    running = started(config, *words)
    try:
        yield running
    finally:
        running.kill()
        if running.process.stdout is not None:
            running.process.stdout.close()
