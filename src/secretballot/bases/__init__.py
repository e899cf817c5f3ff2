"""Feature maps made of public points alone, which map every record by itself, in integers."""

from secretballot.bases.graph import GraphBasis
from secretballot.bases.images import ImageBasis
from secretballot.bases.kernel import KernelBasis
from secretballot.bases.table import TableBasis

__all__ = ["Basis", "GraphBasis", "ImageBasis", "KernelBasis", "TableBasis"]

#: Every kind of basis of this library.
Basis = TableBasis | KernelBasis | GraphBasis
