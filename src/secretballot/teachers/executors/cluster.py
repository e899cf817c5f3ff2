"""What a cluster must be able to do: run tasks whose results stay there, by handles."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from secretballot.exceptions import (
    DataError,
    Parameter,
    ParameterError,
    ResourceError,
    SecretBallotError,
)
from secretballot.foreign_code import as_sentence
from secretballot.teachers.executors.tasks import Packed, Trouble, Versions, differing_versions

T = TypeVar("T")

#: Handle of a result that stays in the cluster.
Ref = Any

#: How long a cluster may take to answer at first.
CONNECT_SECONDS = 15.0
#: How often a driver that waits looks whether there is anybody left to wait for.
LOOK_SECONDS = 5.0
#: How long it waits for a worker where there is none.
WORKERLESS_SECONDS = 60.0


class Cluster(Protocol):
    """An engine that recomputes what a lost worker held, from the same arguments."""

    @property
    def n_slots(self) -> int:
        """Tasks that can run at once."""
        ...

    def submit(self, work: Callable[..., Any], *args: Any) -> Ref:
        """Start a task; handles among its arguments stand for their results."""
        ...

    def submit_training(self, work: Callable[..., Any], *args: Any) -> tuple[Ref, Ref]:
        """Start a task that returns a pair; return handles of what stays and of the trouble."""
        ...

    def shared(self, value: Packed) -> Ref:
        """Put a public value into the cluster, once for all workers."""
        ...

    def some_done(self, refs: Sequence[Ref]) -> list[Ref]:
        """Wait until at least one is done and return those that are.

        Raises
        ------
        ResourceError
            If no worker is left for a minute.
        """
        ...

    def result(self, ref: Ref) -> Any:
        """Return a result.

        Raises
        ------
        ResourceError
            If the cluster lost it for good.
        """
        ...

    def places(self, refs: Sequence[Ref]) -> list[str]:
        """Return where each result lies; the same word where that is unknown or makes no
        difference."""
        ...

    def cancel(self, refs: Sequence[Ref]) -> None:
        """Stop what is not done yet, as far as the engine can."""
        ...


def check_versions(here: Versions, found: Sequence[tuple[str, Versions | None]]) -> None:
    """Refuse workers with other versions than the driver.

    Parameters
    ----------
    here : tuple
        The driver's.
    found : list of (str, tuple or None)
        Name of each worker and its versions, None where it could not load this package.

    Raises
    ------
    DataError
        If one differs; it and all that differs are named.
    """
    for worker, versions in found:
        if versions is None:
            wanted = " and ".join(f"{name} {version}" for name, version in here)
            raise DataError(
                f"The worker {worker} cannot load this version of secretballot; install {wanted}"
                " on every worker. Nothing was spent."
            )
        if other := differing_versions(here, versions):
            raise DataError(
                f"The worker {worker} has {other}; install the same versions on every worker."
                " Nothing was spent."
            )


def failed(cause: str) -> ResourceError:
    """Return the error of a run whose cluster failed."""
    return ResourceError(as_sentence(cause))


def done_by(work: Callable[[], T], cause_of: Callable[[Exception], str]) -> T:
    """Return what a call of the engine comes to; end the run with one sentence where it fails.

    Parameters
    ----------
    work : callable
    cause_of : callable
        From the engine's exception to fixed words.

    Raises
    ------
    ResourceError
        In the place of any exception that is none of this package's own.
    """
    try:
        return work()
    except SecretBallotError:
        raise
    except Exception as error:
        cause = cause_of(error)
    # outside of the handler: the error of a library may show what a task was given
    raise failed(cause)


def unreachable(engine: str, why: str) -> ParameterError:
    """Return the error of a cluster that does not answer."""
    return ParameterError(Parameter("engine"), f" is {engine!r}, {why} Nothing was spent.")


def raise_trouble(found: Any) -> None:
    """Raise what a task says ends the run.

    Raises
    ------
    DataError
        If the task found that something does not fit.
    ResourceError
        If its machine failed.
    """
    if isinstance(found, Trouble):
        raise found.error()
