"""Feature maps that are made of public points alone, and map every record by itself, in integers."""

from secretballot.bases.table import TableBasis

__all__ = ["TableBasis"]
