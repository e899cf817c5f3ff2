"""For all tests: fixtures, and both verifiers on what tests of releases make."""

import functools
import gc
import hashlib
import json
import os
import signal
import sys
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer.testing
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from sklearn.base import BaseEstimator

import secretballot_verify as second
from made_events import json_of
from secretballot.core import releasing
from secretballot.core.events import ClassLabels
from secretballot.learners import table
from secretballot.publishing import release as publishing
from secretballot.report import certificate as certificates
from secretballot.report.verification import verify_certificate
from secretballot_verify import games
from seeded_noise import SEED, USUAL_SEED, pytest_fixture_setup, pytest_pyfunc_call  # noqa: F401 - two of them are hooks, which pytest finds by name

# What a script starts in the background is deaf to Ctrl-C, and so is all that it starts; the tests
# that send one hear it whoever runs the suite.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

HERE = Path(__file__).parent
# where every certificate that is built and every folder that is made is shown to both verifiers
OF_RELEASES = ("golden", "publishing", "report")

# How long an example takes says how busy the machine is. Examples are the same in every run, as
# noise is, unless another stream is asked for.
hypothesis_settings.register_profile(
    "untimed",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=SEED == USUAL_SEED,
)
hypothesis_settings.load_profile("untimed")

# the command line is made of its functions once, and not for each of some thousand commands
typer.testing._get_command = functools.cache(typer.testing._get_command)
# and the signature of a class of teachers is read once, and not for each of some hundred teachers
BaseEstimator._get_param_names = classmethod(
    functools.cache(BaseEstimator._get_param_names.__func__)
)


def _no_array(asked):
    """Return a question about tables that is answered at once for arrays, which are none."""
    return lambda table: type(table) is not np.ndarray and asked(table)


# newer versions of scikit-learn ask it twice of every array, which takes longer than small fits
if of_tables := sys.modules.get("narwhals.stable.v2.dependencies"):
    of_tables.is_into_dataframe = _no_array(of_tables.is_into_dataframe)
    of_tables.is_into_series = _no_array(of_tables.is_into_series)

MOST_LABELS = 60  # whose game the second verifier plays here: longer ones take it seconds
SECONDS = 1.0  # that one of its games may take
# below which the two may take different bounds, all of them beyond any promise
LEAST_DELTA = 1e-32

first_price = certificates.delta_upper
move = publishing._move_into_place


@pytest.fixture
def records_may_be_public(monkeypatch):
    """Let public points be the private records, as in a world so small that there are no others."""
    monkeypatch.setattr(table.PrivateRows, "hold", lambda *_: False)


@pytest.fixture(scope="session")
def postgres_server():
    """A server of this process's own, which it may kill."""
    from campaigns.postgres_server import PostgresServer, reason_for_none

    if reason := reason_for_none():
        pytest.skip(reason)
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def database(request):
    """A server in which schemas are made: that of SECRETBALLOT_TEST_POSTGRES, or one of our own."""
    given = os.environ.get("SECRETBALLOT_TEST_POSTGRES")
    if not given:
        return request.getfixturevalue("postgres_server")

    def url(*, schema="secretballot", more=""):
        return f"{given}{'&' if '?' in given else '?'}schema={schema}{more}"

    return SimpleNamespace(url=url)


@pytest.fixture(scope="session")
def dask_client():
    """A client of two worker processes of one thread each. They start once, for imports take
    long; a test that kills one waits until another is there."""
    distributed = pytest.importorskip("distributed", reason="the extra secretballot[dask]")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=False
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


class _NoNoise:
    exact, description = True, "none, for a test"

    def discrete_gaussian(self, sigma, size):
        return np.zeros(size, dtype=np.int64)


@pytest.fixture
def unnoised(monkeypatch):
    """Let true counts leave, so that a test can see what a fit asked for."""
    monkeypatch.setattr(releasing, "noise_source", _NoNoise)


@pytest.fixture
def nothing_drawn(unnoised, monkeypatch):
    """Let true counts leave, and the partition be one and the same: noise and keys are never
    seeded, so that two fits would differ, or by chance would not."""
    monkeypatch.setattr(table, "entropy_bytes", lambda size: bytes(i % 251 for i in range(size)))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect tests without looking for garbage: there is none among modules and tests, and looking
    takes a third of the time, in every process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@functools.cache  # on the text of the events: learners of one test buy the same ones often
def second_price(event, epsilon, enough):
    """Return the second verifier's bounds, the upper one at most `enough` where it can."""
    return second.price_of(json.loads(event), epsilon, enough)


def _of_classes(event):
    """Return whether an event is labels of more than two classes, whose game takes the second
    verifier a quarter of a minute."""
    return isinstance(event, ClassLabels) or getattr(event, "n_classes", 2) > 2


def both_prices(events, epsilon):
    """Price events for a certificate, and let the second verifier agree."""
    delta = first_price(events, epsilon)
    enough = max(delta, LEAST_DELTA)
    if len(events) != 1:  # more than a release states
        return delta
    price = second_price(json.dumps(json_of(events[0])), epsilon, enough)
    assert price.lower <= delta * (1 + second.ERROR), events
    long = any(getattr(event, "queries", 0) > MOST_LABELS or _of_classes(event) for event in events)
    assert long or price.upper in (1.0, min(price.upper, enough * (1 + second.ERROR))), events
    return delta


agreed: set[bytes] = set()  # digests of folders on which the two were of one mind


def folder_digest(folder):
    """Return a digest of all names and contents in a folder."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        for part in (str(path.relative_to(folder)).encode(), content):
            whole.update(hashlib.sha256(part).digest())
    return whole.digest()


def shown_to_both(draft, target):
    """Move a release into its place, once both verifiers have seen it: what one verifies the
    other does not refuse."""
    digest = folder_digest(draft)
    if digest not in agreed:
        first, opinion = verify_certificate(draft), second.check_release(str(draft), SECONDS / 60)
        refused = [finding for finding in opinion if finding.verdict == second.REFUSED]
        assert first.ok == (not refused), (first.failures, refused)
        agreed.add(digest)
    move(draft, target)


@pytest.fixture(autouse=True)
def _both_verifiers(request, monkeypatch):
    monkeypatch.setattr(games, "minutes_allowed", ContextVar("minutes", default=SECONDS / 60))
    if request.path.relative_to(HERE).parts[0] in OF_RELEASES:
        monkeypatch.setattr(certificates, "delta_upper", both_prices)
        monkeypatch.setattr(publishing, "_move_into_place", shown_to_both)


@pytest.fixture
def games_of_classes(_both_verifiers, monkeypatch):
    """Let the second verifier price labels of more than two classes as sharply as it can."""
    monkeypatch.setattr(games, "minutes_allowed", ContextVar("minutes", default=games.MINUTES))
