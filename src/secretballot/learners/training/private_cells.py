"""Whether private columns say what public ones do, before anything is paid.

It is computed from private cells and is for the curator alone: it decides whether a fit is refused,
and changes no release.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from secretballot._validation import shown
from secretballot.exceptions import DataError
from secretballot.foreign_code import result_of

#: A fit is refused where more than this share of what a column says is nowhere in the public one:
#: the column then tells the model of fewer records than it leaves out.
STOPS = 0.5
#: So often may the share of public cells be exceeded that no other public row has: where many
#: values are rare, some private ones are new.
OF_PUBLIC = 2
FEWEST = 20  # public cells; fewer are examples of what a column holds


def refuse_unlike_cells(X: Any, typed: Any, X_public: Any) -> None:
    """Refuse private columns that mostly say what no public point does.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_records, n_features)
        Private, as it was given. Of numbers types alone are compared, elsewhere.
    typed : like X
        The same with the types of the public points; what these have no place for is missing.
    X_public : like X, of shape (n_public, n_features)

    Raises
    ------
    DataError
        Naming the column, and no cell.
    """
    named = getattr(X_public, "columns", None)
    if named is None and isinstance(X, np.ndarray) and X.dtype == object:
        named = range(X.shape[1])
    for place, name in enumerate(() if named is None else named):
        if result_of(partial(_is_unlike, place, X, typed, X_public)):
            raise DataError(
                f"Column {shown(name)} of X does not fit: most of its cells are none of the values"
                " of X_public; write cells alike in both, add public points that have them, or drop"
                " the column. Nothing was spent."
            )


def _is_unlike(place: int, *tables: Any) -> bool:
    given, typed, public = (
        pd.Series(one[:, place]) if isinstance(one, np.ndarray) else one.iloc[:, place]
        for one in tables
    )
    if public.count() < FEWEST:
        return False
    strange, usual = typed.isna(), 0.0
    if pd.api.types.is_object_dtype(typed) or pd.api.types.is_string_dtype(typed):
        strange |= ~typed.isin(public.unique())
        usual = float((public.value_counts() == 1).sum() / public.count())
    said = given.notna().to_numpy()
    return bool(strange.to_numpy()[said].sum() > max(STOPS, OF_PUBLIC * usual) * said.sum())
