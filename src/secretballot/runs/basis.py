"""Which basis a run of record moments takes, by what the columns hold."""

from secretballot.bases import Basis, KernelBasis
from secretballot.data.columns import IgnoredColumn, VectorColumn
from secretballot.data.schema import Schema


def basis_of_schema(schema: Schema) -> Basis | None:
    """Return the basis for a table of vectors alone, such as pixels: likeness to public points, on
    one scale for all of their numbers. None of any other table, which has levels and bins, as the
    learner takes them by default."""
    columns = [column for column in schema.columns if not isinstance(column, IgnoredColumn)]
    of_vectors = all(isinstance(column, VectorColumn) for column in columns)
    return KernelBasis(scaled=False) if of_vectors else None
