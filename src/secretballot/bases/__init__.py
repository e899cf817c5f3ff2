"""Feature maps made of public points alone, which map every record by itself, in integers."""

from secretballot.bases.kernel import KernelBasis
from secretballot.bases.table import TableBasis

__all__ = ["KernelBasis", "TableBasis"]
