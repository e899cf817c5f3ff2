"""Private records as the vectors that they add to a sum: left of the door.

Every record has a bounded integer vector that follows from that record and from public values
alone, to the last bit. Only the door may have the sum.
"""

from secretballot.records.vector_sums import (
    Records,
    Residuals,
    label_records,
    private_records,
)

__all__ = ["Records", "Residuals", "label_records", "private_records"]
