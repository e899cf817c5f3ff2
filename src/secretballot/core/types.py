"""Arrays, bounds and models that all modules of the core share."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

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
