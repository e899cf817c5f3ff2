"""Requests a second and times of the service, beside the same handler without the library.

Run it as `python benchmarks/service_load.py [SECONDS [LEDGER]]`, with the URL of a PostgreSQL
schema for a ledger in a database; the client is a process of its own and
speaks HTTP over plain sockets, so that it takes little of the machine. The last column is the time
of processors that the server used for a request, which says more on a machine that others use too.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import asyncio
import json
import multiprocessing
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np

import secretballot as sb
from secretballot.core.mechanisms import NoisyVotes
from secretballot.service.access import Access

QUESTIONS = "/v1/datasets/registry/sessions/session/questions"
PLANNED = 2_000_000
K = 100
PLAIN = """
import asyncio, json, os, socket, sys
import uvicorn
from fastapi import FastAPI, Request, Response

app = FastAPI(docs_url=None, redoc_url=None)

@app.post("/v1/datasets/{dataset}/sessions/{session}/questions")
async def questions(request: Request, dataset: str, session: str) -> Response:
    given = json.loads(await request.body())["points"]
    answer = {"label": 1, "given": True, "abstained": False, "noisy_count": None}
    document = {"dataset": dataset, "session": session, "answers": [answer] * len(given), "left": 1}
    return Response(json.dumps(document), media_type="application/json")

@app.get("/health/ready")
async def ready() -> dict:
    return {"status": "ready"}

listening = socket.socket()
listening.bind(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run(sockets=[listening])
"""


def prepare(folder: Path, ledger_at: str | None = None) -> str:
    """Train teachers, begin a session of many questions, and return a key."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    teachers = sb.train_teachers(
        "logistic",
        X,
        (X[:, 0] > 0).astype(int),
        classes=[0, 1],
        n_teachers=K,
        vault=folder / "vault",
    )
    counts = NoisyVotes(scale=9.0 * PLANNED**0.5, release="counts")
    event = counts.event(teachers.shape(PLANNED))
    price = sb.PrivacyBudget(sb.accounting.epsilon_upper((event,), 1e-6), 1e-6)
    ledger = sb.Ledger(
        ledger_at or folder / "x.ledger", dataset="x", budget=sb.PrivacyBudget(1e4, 0.1)
    )
    sb.LabelingSession(teachers, counts, ledger, price, n_queries=PLANNED)
    (folder / "service.toml").write_text(
        '[datasets.registry]\nvault = "vault"\n[limits]\nanswer_seconds = 60.0\n'
    )
    with Access(folder / "service-state") as access:
        return access.add("analyst", ["registry"])[1]


def processor_seconds(group: int) -> float:
    """Return what the processes of a group have used of the processors; 0 where nobody tells."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(command: list[str]) -> Iterator[int]:
    """Start a server and give its port."""
    global _group
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    said = re.search(rb":(\d+)\s*$", process.stdout.readline())
    assert said is not None
    port = int(said[1])
    try:
        asyncio.run(_wait_until_ready(port))
        _group = process.pid
        yield port
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


async def _wait_until_ready(port: int) -> None:
    for _ in range(600):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n")
            found = await reader.readline()
            writer.close()
            if b" 200 " in found:
                return
        except OSError:
            pass
        await asyncio.sleep(0.1)
    raise SystemExit("the service does not start")


def request_of(points: list[list[float]], key: str) -> bytes:
    body = json.dumps({"points": points}).encode()
    head = (
        f"POST {QUESTIONS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _connection(
    port: int, make: Callable[[], bytes], end: float, pause: float, first: float,
    times: list[float],
) -> None:  # fmt: skip
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    # analysts do not come in step: those of one rate are spread over its period
    await asyncio.sleep(first)
    while time.perf_counter() < end:
        content, began = make(), time.perf_counter()
        writer.write(content)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        assert length is not None
        body = await reader.readexactly(int(length[1]))
        assert head.startswith(b"HTTP/1.1 200"), body
        times.append(time.perf_counter() - began)
        if pause:
            await asyncio.sleep(max(0.0, pause - times[-1]))
    writer.close()


def load(
    port: int, key: str, connections: int, size: int, repeated: bool, seconds: float,
    rate: float, first: int, found: "multiprocessing.Queue[list[float]]",
) -> None:  # fmt: skip
    """Ask as long as told; put the times of all requests into a queue."""
    number, times = count(first), list[float]()
    if repeated:
        fixed = [request_of([[float(n), 0.5, 0.25]] * size, key) for n in range(64)]
        kept = count()

    def make() -> bytes:
        if repeated:
            return fixed[next(kept) % len(fixed)]
        return request_of([[float(next(number)), 0.5, 0.25] for _ in range(size)], key)

    async def ask() -> None:
        end = time.perf_counter() + seconds
        pause = connections / rate if rate else 0.0
        await asyncio.gather(
            *(
                _connection(port, make, end, pause, pause * turn / connections, times)
                for turn in range(connections)
            )
        )

    asyncio.run(ask())
    found.put(times)


_first, _group = [1000], 0


def measure(
    name: str, port: int, key: str, *, connections: int, size: int = 1, repeated: bool = False,
    seconds: float = 5.0, rate: float = 0.0,
) -> float:  # fmt: skip
    """Print a line, and return answers a second."""
    context = multiprocessing.get_context("spawn")
    found = context.Queue()
    _first[0] += 10_000_000
    process = context.Process(
        target=load, args=(port, key, connections, size, repeated, seconds, rate, _first[0], found)
    )
    used = processor_seconds(_group)
    process.start()
    times = np.sort(found.get(timeout=seconds + 60))
    used = processor_seconds(_group) - used
    process.join()
    requests = len(times) / seconds
    p50, p99 = (1000 * np.quantile(times, share) for share in (0.5, 0.99))
    print(
        f"{name:<44} {connections:>4} {requests:>8.0f} {requests * size:>9.0f}"
        f" {p50:>8.1f} {p99:>8.1f} {1000 * used / len(times):>8.2f}",
        flush=True,
    )
    return requests * size


def main(seconds: float, ledger_at: str | None) -> None:
    """Measure everything."""
    print(f"{'case':<44} conn  req/s  answers/s  p50 ms   p99 ms  cpu ms")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        plain = folder / "plain.py"
        plain.write_text(PLAIN)
        with serving([sys.executable, str(plain)]) as port:
            given = {"seconds": seconds}
            measure("handler without the library, one point", port, "-", connections=64, **given)
            measure(
                "handler without the library, 100 points", port, "-", connections=16, size=100,
                **given,
            )  # fmt: skip
        key = prepare(folder, ledger_at)
        command = [sys.executable, "-m", "secretballot", "serve", "start"]
        command += ["--config", str(folder / "service.toml"), "--port", "0"]
        for workers in (1, 2):
            with serving([*command, "--workers", str(workers)]) as port:
                own = {"seconds": seconds}
                label = f"{workers} worker{'s' * (workers > 1)}"
                measure(f"{label}, new, one point, one client", port, key, connections=1, **own)
                best = measure(f"{label}, new, one point", port, key, connections=64, **own)
                measure(
                    f"{label}, new, one point, half load", port, key, connections=64,
                    rate=best / 2, **own,
                )  # fmt: skip
                measure(f"{label}, new, one point", port, key, connections=256, **own)
                measure(f"{label}, new, 100 points", port, key, connections=8, size=100, **own)
                measure(
                    f"{label}, asked before, one point", port, key, connections=64,
                    repeated=True, **own,
                )  # fmt: skip
                measure(
                    f"{label}, asked before, 100 points", port, key, connections=8, size=100,
                    repeated=True, **own,
                )  # fmt: skip


if __name__ == "__main__":
    main(
        float(sys.argv[1]) if len(sys.argv) > 1 else 5.0,
        sys.argv[2] if len(sys.argv) > 2 else None,
    )
