"""The columns and types that teachers take, without any row: JSON, so that reading runs no code."""

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from secretballot.learners.training.inputs import n_columns


def template_of(X_public: Any) -> Any:
    """Return the columns and types of public points as a table of shape (0, n_features)."""
    if hasattr(X_public, "iloc"):
        return X_public.iloc[:0]
    if sparse.issparse(X_public):
        table: Any = X_public
        return table[:0]
    return np.empty((0, n_columns(X_public)), dtype=X_public.dtype)


def template_to_json(template: Any) -> dict[str, Any]:
    """Return the template as JSON values."""
    if hasattr(template, "iloc"):
        return {
            "kind": "frame",
            "columns": [_column_to_json(name, template[name].dtype) for name in template.columns],
        }
    kind = "sparse" if sparse.issparse(template) else "array"
    return {"kind": kind, "dtype": template.dtype.str, "columns": n_columns(template)}


def _column_to_json(name: Any, kind: Any) -> list[Any]:
    # The name of a categorical type does not say its categories.
    if isinstance(kind, pd.CategoricalDtype):
        return [name, "category", [kind.categories.tolist(), bool(kind.ordered)]]
    return [name, str(kind), None]


def template_from_json(document: dict[str, Any]) -> Any:
    """Return the template that `template_to_json` described."""
    if document["kind"] == "frame":
        return pd.DataFrame(
            {
                name: pd.Series(dtype=_dtype_from_json(kind, more))
                for name, kind, more in document["columns"]
            }
        )
    shape = (0, document["columns"])
    if document["kind"] == "sparse":
        return sparse.csr_matrix(np.empty(shape, dtype=np.dtype(document["dtype"])))
    return np.empty(shape, dtype=np.dtype(document["dtype"]))


def same_template(one: Any, other: Any) -> bool:
    """Return whether two templates have the same columns and types."""
    if hasattr(one, "iloc") and hasattr(other, "iloc"):
        return list(one.columns) == list(other.columns) and list(one.dtypes) == list(other.dtypes)
    kinds = [(hasattr(table, "iloc"), sparse.issparse(table)) for table in (one, other)]
    return (
        kinds[0] == kinds[1]
        and bool(one.dtype == other.dtype)
        and n_columns(one) == n_columns(other)
    )


def _dtype_from_json(kind: str, categories: Any) -> Any:
    if categories is None:
        return pd.api.types.pandas_dtype(kind)
    return pd.CategoricalDtype(categories[0], ordered=categories[1])
