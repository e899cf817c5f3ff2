"""What a worker of a cluster does for the driver: train one shard, vote, add up counts.

A task never raises: an engine would write the exception, and with it what a learner quotes of its
records, into logs and into the driver's traceback, and might try the task again until a machine's
failure looked like something else. It returns a `Trouble` in place of its result. Everything
private that goes into a task or stays behind one is a `Packed`, whose repr, which engines do print,
shows nothing.
"""

import pickle
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import sklearn

from secretballot._seeded import ALONE
from secretballot._typing import CountArray
from secretballot.exceptions import DataError, ResourceError
from secretballot.foreign_code import as_sentence, one_thread, resource_failure
from secretballot.teachers.counting import counted_votes
from secretballot.teachers.training import Recipe, ShardSource, train_shard

T = TypeVar("T")

#: Names and versions that must be the same on every worker.
Versions = tuple[tuple[str, str], ...]


class Packed:
    """A pickled value that shows nothing of itself.

    Engines pass their own pickles of arrays on as read-only memory, in which some learners cannot
    work; what this holds comes out as it went in.
    """

    __slots__ = ("_content",)

    def __init__(self, content: bytes) -> None:
        self._content = content

    @classmethod
    def of(cls, value: Any) -> "Packed":
        """Return the value packed; classes of a script are packed with it.

        Raises
        ------
        Exception
            Whatever a value that cannot be pickled raises.
        """
        return cls(_pickled_value(value))

    def value(self) -> Any:
        """Return a new copy of what was packed."""
        return pickle.loads(self._content)

    def __reduce__(self) -> tuple[Any, ...]:
        return Packed, (self._content,)

    def __sizeof__(self) -> int:
        return len(self._content)  # engines place tasks by it

    def __repr__(self) -> str:
        return "Packed(<private>)"


@dataclass(frozen=True)
class Trouble:
    """Why the run ends, in a sentence without anything private.

    Attributes
    ----------
    of_data : bool
        Whether something does not fit; else the machine failed.
    sentence : str
    """

    of_data: bool
    sentence: str

    def error(self) -> DataError | ResourceError:
        """Return the error that ends the run."""
        return (DataError if self.of_data else ResourceError)(self.sentence)


def versions_here() -> Versions:
    """Return the versions in this process that decide what a teacher becomes."""
    import secretballot

    return (
        ("Python", platform.python_version()),
        ("secretballot", secretballot.__version__),
        ("numpy", np.__version__),
        ("scikit-learn", sklearn.__version__),
    )


def train_teacher(
    versions: Versions, work: Packed, number: int
) -> tuple[Packed | None, Trouble | None]:
    """Train one teacher; return it packed, with the trouble that ends the run or None.

    Parameters
    ----------
    versions : tuple
        The driver's, compared once more: a worker may have joined since.
    work : Packed
        Recipe and source of the shard.
    number : int
        Of the teacher.
    """

    def train() -> Packed:
        recipe: Recipe
        source: ShardSource
        recipe, source = work.value()
        _refuse_out_of_reach(source)
        X, y = source.part(number)
        # alone: threads of one worker would put back each other's number of threads
        with ALONE, one_thread():
            model = train_shard(recipe, X, y, number)
        return _packed_model(model)

    done = _without_raising(train, versions)
    return (None, done) if isinstance(done, Trouble) else (done, None)


def _refuse_out_of_reach(source: ShardSource) -> None:
    if source.out_of_reach:
        raise DataError(
            f"A worker does not see {source.out_of_reach}; put the vault on storage that all"
            " workers share, or let the shards be sent to them (send_shards, --send-shards)."
            " Nothing was spent."
        )


def about_teacher(trained: tuple[Packed | None, Trouble | None]) -> Trouble | None:
    """Return only what the driver must know of a trained teacher, which stays where it is."""
    return trained[1]


def keep_teacher(teacher: Packed) -> tuple[Packed | None, Trouble | None]:
    """Return a teacher that was trained before, in the form of one that was trained here."""
    return teacher, None


def keep_value(value: Packed) -> Packed:
    """Return what is to stay in the cluster."""
    return value


def vote(
    versions: Versions,
    about: Packed,
    points: Packed,
    numbers: Sequence[int],
    *teachers: Packed | tuple[Packed | None, Trouble | None],
) -> CountArray | Trouble:
    """Return the counted votes of some teachers on all points.

    Parameters
    ----------
    versions : tuple
    about : Packed
        (n_classes, block_rows, random_state, settings), all public.
    points : Packed
        Public table of shape (n_queries, n_features).
    numbers : list of int
        Of the teachers, in their order.
    *teachers : Packed, or what `train_teacher` returned

    Returns
    -------
    ndarray of int32, shape (n_queries, n_classes), or Trouble
    """

    def count() -> CountArray:
        n_classes, block_rows, random_state, settings = about.value()
        models: Mapping[int, Any] = {
            number: _model_of(teacher) for number, teacher in zip(numbers, teachers, strict=True)
        }
        with ALONE, one_thread():
            return counted_votes(
                models, points.value(), n_classes, block_rows, random_state, settings
            )

    return _without_raising(count, versions)


def add_counts(*counts: CountArray | Trouble) -> CountArray | Trouble:
    """Return the sum of counts, or the first trouble among them."""
    total: CountArray | None = None
    for one in counts:
        if isinstance(one, Trouble):
            return one
        total = one.copy() if total is None else total + one
    assert total is not None
    return total


def _pickled_value(value: Any) -> bytes:
    """Return a pickle that brings classes of a script along, as both engines can make one."""
    try:
        import cloudpickle
    except ImportError:  # Ray has one of its own
        from ray import cloudpickle
    content: bytes = cloudpickle.dumps(value)
    return content


def _model_of(teacher: Packed | tuple[Packed | None, Trouble | None]) -> Any:
    packed = teacher[0] if isinstance(teacher, tuple) else teacher
    assert packed is not None
    return packed.value()


def _packed_model(model: Any) -> Packed:
    try:
        return Packed.of(model)
    except MemoryError:
        raise
    except Exception:
        unpicklable = True
    # outside of the handler, whose exception may quote what the model holds
    assert unpicklable
    raise DataError(
        "The teachers cannot be pickled, so they cannot stay with the workers of a cluster; use"
        " another learner, or engine='local'."
    )


def _without_raising(work: Callable[[], T], versions: Versions) -> T | Trouble:
    other = differing_versions(versions, versions_here())
    if other:
        return Trouble(True, f"A worker has {other}; install the same versions on every worker.")
    try:
        return work()
    except ResourceError as error:
        return Trouble(False, str(error))
    except DataError as error:
        return Trouble(True, str(error))
    except (Exception, SystemExit) as error:
        # a name of a class, nothing that the error says
        cause = resource_failure(error) or f"a task failed with {type(error).__name__}"
    return Trouble(False, as_sentence(cause))


def differing_versions(here: Versions, there: Versions) -> str:
    """Return in words what `there` has other than `here`, an empty text where they agree."""
    found = dict(there)
    return " and ".join(
        f"{name} {found.get(name, 'missing')} where this program has {version}"
        for name, version in here
        if found.get(name) != version
    )
