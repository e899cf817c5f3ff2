"""Arrays, bounds and models that all modules of the core share."""

from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from secretballot.core.errors import ParameterError

AnyArray = NDArray[Any]
BoolArray = NDArray[np.bool_]
CountArray = NDArray[np.int32]  # vote counts, which never exceed the number of teachers
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ObjectArray = NDArray[np.object_]
UnsignedArray = NDArray[np.uint64]

# bounds of what events hold: less noise promises nothing and more cannot be drawn; counts keep sums
# exact in float arithmetic; thresholds are a thousand of the largest scales
Scale = Annotated[float, Field(ge=1e-6, le=1e12, allow_inf_nan=False)]
Loss = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=2**53, strict=True)]
Threshold = Annotated[int, Field(ge=0, le=10**15, strict=True)]


class Model(BaseModel):
    """Base of all that is stated in public numbers: fixed, and nothing but its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


#: Largest integer, in size, that is stated or released: beyond it programs read JSON differently.
LARGEST = 2**53 - 1
Size = Annotated[int, Field(ge=1, le=10**12, strict=True)]  # of a container
Squared = Annotated[int, Field(ge=1, le=LARGEST, strict=True)]
Name = Annotated[str, Field(min_length=1, max_length=200, strict=True)]


class Guarantee(Model):
    """Whose data a promise is about, and how two datasets differ that it makes alike."""

    unit: Literal["record", "user", "label"]
    relation: Literal["add-remove", "replace-one"]

    @model_validator(mode="after")
    def _check_relation(self) -> Self:
        if self.unit == "label" and self.relation != "replace-one":
            raise ParameterError("Labels are replaced; they do not come and go.")
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

    sampled: Size
    out_of: Size
    relabel_epsilon: Annotated[float, Field(ge=2.0**-20, le=100)]
    request: Name  # it was drawn for this one alone
    serial: Name  # random


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
    n_queries: Size
    n_classes: Annotated[int, Field(ge=2, le=2**16, strict=True)]
    n_teachers: Size | None
    moved: Size
    spare_rows: Annotated[int, Field(ge=0, le=10**12, strict=True)] = 0
    sample: Sample | None = None

    @property
    def shifts(self) -> int:
        """Noised integers that one unit moves, by one each; of two classes one count is noised."""
        return self.moved if self.n_teachers is None or self.n_classes == 2 else 2 * self.moved

    def first(self, n: int) -> "VoteShape":
        """Return the shape of `n` of the queries; all rows that move may be among them."""
        moved = self.moved if self.n_teachers is None else min(self.moved, n)
        return VoteShape(**{**dict(self), "n_queries": n, "moved": moved})


class SumShape(Model):
    """The public facts of sums over records: integers, and how far one unit moves them all."""

    guarantee: Guarantee
    coordinates: Size
    squared_sensitivity: Squared


class ScoreShape(Model):
    """The public facts of scores: a unit moves each by at most one, under add-remove all one
    way."""

    guarantee: Guarantee
