"""Arrays, bounds and models that all modules of the core share."""

from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from secretballot.core.errors import (
    LONGEST_SHOWN,
    LONGEST_WORDS,
    Parameter,
    ParameterError,
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
    names = [str(part) for part in first["loc"] if isinstance(part, str)]
    said = f" is {shown(first['input'])}: {first['msg']}."
    if first["type"] == "missing":
        said = " is missing."
    name = names[-1] if names else ""
    # a stranger may have chosen the name
    plain = name.isidentifier() and len(name) <= LONGEST_SHOWN
    place = Parameter(name) if plain else shown(name) if name else "A value"
    return ParameterError(place, plain_line(said, longest=LONGEST_WORDS))


#: Largest integer, in size, that is stated or released: beyond it programs read JSON differently.
LARGEST = 2**53 - 1
Squared = Annotated[int, Field(ge=1, le=LARGEST, strict=True)]
