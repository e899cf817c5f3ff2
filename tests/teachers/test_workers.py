"""Workers leave Ctrl-C to the process that they work for."""

import signal
import threading

import joblib
import pytest
from joblib.externals.loky import get_reusable_executor

from secretballot.teachers.training import results_of_pool
from secretballot.teachers.workers import interrupts_ignored


def ctrl_c_is_ignored() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_workers_are_deaf_to_ctrl_c_from_their_first_moment() -> None:
    get_reusable_executor().shutdown(wait=True)  # one that another test started listens
    pool = joblib.Parallel(n_jobs=2, return_as="generator_unordered", batch_size=1)
    deaf = list(results_of_pool(pool, (joblib.delayed(ctrl_c_is_ignored)() for _ in range(4))))
    get_reusable_executor().shutdown(wait=True)
    assert deaf == [True] * 4
    assert not ctrl_c_is_ignored()


def test_ctrl_c_ends_work_that_is_waited_for_as_a_list() -> None:
    pool = joblib.Parallel(n_jobs=1, return_as="list")
    assert list(results_of_pool(pool, [joblib.delayed(ctrl_c_is_ignored)()])) == [False]


def test_the_handler_comes_back_also_after_an_error() -> None:
    before = signal.getsignal(signal.SIGINT)

    def failing_work() -> None:
        with interrupts_ignored():
            assert ctrl_c_is_ignored()
            raise RuntimeError("a worker did not start")

    with pytest.raises(RuntimeError, match="did not start"):
        failing_work()
    assert signal.getsignal(signal.SIGINT) is before


def test_another_thread_changes_nothing() -> None:
    seen = []

    def work() -> None:
        with interrupts_ignored():
            seen.append(ctrl_c_is_ignored())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]
