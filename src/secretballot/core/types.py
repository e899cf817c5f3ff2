"""Arrays, bounds and models that all modules of the core share."""

import json
from typing import Annotated, Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from secretballot.core.errors import (
    LONGEST_SHOWN,
    LONGEST_WORDS,
    Parameter,
    ParameterError,
    Relation,
    Unit,
    check_relation,
    plain_line,
    shown,
)

AnyArray = NDArray[Any]
BoolArray = NDArray[np.bool_]
CountArray = NDArray[np.int32]  # vote counts, which never exceed the number of teachers
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ObjectArray = NDArray[np.object_]
UnsignedArray = NDArray[np.uint64]

# bounds of what events hold: less noise promises nothing and more cannot be drawn; counts keep sums
# exact in float arithmetic; thresholds are a thousand of the largest scales
MIN_SCALE, MAX_SCALE = 1e-6, 1e12
Scale = Annotated[float, Field(ge=MIN_SCALE, le=MAX_SCALE, allow_inf_nan=False, strict=True)]
Loss = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False, strict=True)]
Count = Annotated[int, Field(ge=1, le=10**12, strict=True)]
Threshold = Annotated[int, Field(ge=0, le=10**15, strict=True)]
# nats; outside, a relabelling is a random one or the best one itself
Relabel = Annotated[float, Field(ge=2.0**-20, le=100.0, strict=True)]


class Model(BaseModel):
    """Base of all that is stated in public numbers: fixed, and nothing but its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise fault_of(error) from None

    # pydantic may read JSON into the fields as before
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def changed(self, **fields: Any) -> Self:
        """Return the same with other values in some fields, which are checked."""
        return type(self)(**{**dict(self), **fields})


def fault_of(error: ValidationError) -> ParameterError:
    """Return what a model found wrong first, as an error that names the parameter."""
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, ParameterError):
        return cause
    rule = first["msg"].replace("Input", "It")
    said = f" is {shown(first['input'])}; {rule[:1].lower()}{rule[1:]}."
    if first["type"] == "missing":
        said = " is missing."
    if first["type"] == "extra_forbidden":  # its value may be a secret in a wrong place
        said = " is none of the names that are known here; check how it is written."
    name = next((part for part in reversed(first["loc"]) if isinstance(part, str)), "")
    # a stranger may have chosen the name
    plain = name.isidentifier() and len(name) <= LONGEST_SHOWN
    place = Parameter(name) if plain else shown(name) if name else "A value"
    return ParameterError(place, plain_line(said, longest=LONGEST_WORDS))


_Found = TypeVar("_Found", bound=BaseModel)


def model_in(kind: TypeAdapter[_Found], content: object, name: str) -> _Found:
    """Return the model whose `model_dump` gave a JSON object, field by field.

    Raises
    ------
    ParameterError
        If a field is missing, extra, of another type or out of range.
    """
    try:
        found = kind.validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        raise fault_of(error) from None
    except (TypeError, ValueError, RecursionError):
        raise ParameterError(f"{name} must be a JSON object.") from None
    # as text: 1.0 and true are equal to 1, and defaults stand for what is left out
    stated, read = (
        json.dumps(one, sort_keys=True) for one in (content, found.model_dump(mode="json"))
    )
    if stated != read:
        raise ParameterError(f"{name} must state all its fields, scales as numbers with a point.")
    return found


#: Largest integer, in size, that is stated or released: beyond it programs read JSON differently.
LARGEST = 2**53 - 1
Squared = Annotated[int, Field(ge=1, le=LARGEST, strict=True)]
_Name = Annotated[str, Field(min_length=1, max_length=200, strict=True)]


class Guarantee(Model):
    """Whose data a promise is about, and how two datasets differ that it makes alike."""

    unit: Unit
    relation: Relation

    @model_validator(mode="after")
    def _check_relation(self) -> Self:
        check_relation(self.unit, self.relation)
        return self

    def adds_to(self, account: "Guarantee", *, by_teachers: bool) -> bool:
        """Return whether a release of this guarantee adds to what an account promises.

        A record more or less is in the shard of its user, so it changes one teacher as the user
        does; `by_teachers` says that votes of teachers are released. What one record adds by itself
        may change by more. A label replaced is a record replaced, and not the other way round.
        """
        if self.relation == "add-remove":
            more = by_teachers and (self.unit, account.unit) == ("user", "record")
        else:
            more = (self.unit, account.unit) == ("record", "label")
        return self.relation == account.relation and (more or self.unit == account.unit)


class Sample(Model):
    """The secret random sample of the records that teachers learned from."""

    sampled: Count
    out_of: Count
    relabel_epsilon: Relabel
    request: _Name  # it was drawn for this one alone
    serial: _Name  # random


class VoteShape(Model):
    """The public facts of votes: counts of shape (n_queries + spare_rows, n_classes).

    Attributes
    ----------
    n_teachers : int or None
        What every row sums to; None where records vote for themselves: how many is private.
    moved : int
        Of teachers: rows in which one unit moves one vote. Of records: cells that one unit moves,
        by one each.
    spare_rows : int
        Rows below those of the queries, which hold the votes of records that no query is near to.
    """

    guarantee: Guarantee
    n_queries: Count
    n_classes: Annotated[int, Field(ge=2, le=2**16, strict=True)]
    n_teachers: Count | None
    moved: Count
    spare_rows: Annotated[int, Field(ge=0, le=10**12, strict=True)] = 0
    sample: Sample | None = None

    @model_validator(mode="after")
    def _check_rows(self) -> Self:
        by_records = self.n_teachers is None
        if not (by_records or (self.moved <= self.n_queries and self.spare_rows == 0)):
            raise ParameterError("Teachers vote once in each row, and only in those of queries.")
        return self

    @property
    def shifts(self) -> int:
        """Noised integers that one unit moves, by one each; of two classes one count is noised."""
        return self.moved if self.n_teachers is None or self.n_classes == 2 else 2 * self.moved

    def first(self, n: int) -> "VoteShape":
        """Return the shape of `n` of the queries; all rows that move may be among them."""
        moved = self.moved if self.n_teachers is None else min(self.moved, n)
        return self.changed(n_queries=n, moved=moved)


class SumShape(Model):
    """The public facts of sums over records: integers, and how far one unit moves them all."""

    guarantee: Guarantee
    coordinates: Count
    squared_sensitivity: Squared


class ScoreShape(Model):
    """The public facts of scores: a unit moves each by at most one, under add-remove all one
    way."""

    guarantee: Guarantee


class Noise(Protocol):
    """Draws of integer noise, independent of each other and of everything drawn before."""

    def discrete_laplace(self, scale: float, size: int) -> IntArray:
        """Draw `size` integers with P(x) proportional to exp(-|x| / scale)."""

    def discrete_gaussian(self, sigma: float, size: int) -> IntArray:
        """Draw `size` integers with P(x) proportional to exp(-x^2 / (2 sigma^2))."""

    def uniform_integers(self, bits: int, size: int) -> IntArray:
        """Draw `size` integers, uniform on 0, ..., 2^bits - 1."""

    def exponential_index(self, scores: IntArray, scale: float) -> int:
        """Draw an index i with probability proportional to exp(scores[i] / scale).

        `scores` have shape (n_candidates,).
        """

    def flipped_index(self, scores: IntArray, scale: float) -> int:
        """Draw, of all i whose coin of chance exp((scores[i] - max(scores)) / scale) shows heads,
        one uniformly."""

    def exponential_range(
        self, starts: IntArray, ends: IntArray, scale: float
    ) -> tuple[int, int] | None:
        """Draw i <= j with probability proportional to exp((starts[i] - ends[j]) / scale), or
        None with weight 1.

        `starts` and `ends` have shape (m,).
        """


class SecretFiles(Protocol):
    """The vault: secret files, each written whole or not at all."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None if there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file, on the disk before this returns."""
