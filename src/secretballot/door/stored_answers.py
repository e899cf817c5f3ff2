"""How one answer of a stream is written into the ledger: a label, its counts, and what ties it
to its stream."""

import json
from dataclasses import dataclass

from secretballot.exceptions import LedgerError

LABEL_BYTES, COUNT_BYTES = 128, 24  # enough for every 64-bit number


@dataclass(frozen=True)
class StoredAnswer:
    """One answer as it is stored; public.

    Attributes
    ----------
    label : int
        Class index, -1 for an abstention.
    noisy : int, list of int or None
        Noisy counts, in votes.
    abstained : int
        How many answers up to this one were abstentions.
    mark : str
        Random: what the next draw must go on from, in the vault where the reservation began.
    """

    label: int
    noisy: int | list[int] | None
    abstained: int
    mark: str

    def encode(self) -> bytes:
        """Return bytes whose number depends on public parameters alone.

        A draw whose answer cannot be stored is drawn again, so whether the disk has room must not
        depend on the answer.
        """
        numbers = 1 if isinstance(self.noisy, int) else len(self.noisy or ())
        text = json.dumps([self.label, self.noisy, self.abstained, self.mark])
        return text.ljust(LABEL_BYTES + COUNT_BYTES * numbers).encode()

    @classmethod
    def decode(cls, content: bytes) -> "StoredAnswer":
        """Return the answer behind stored bytes.

        Raises
        ------
        LedgerError
            If they were written by another version of this program.
        """
        try:
            label, noisy, abstained, mark = json.loads(content)
        except (ValueError, TypeError):
            raise LedgerError(
                "The ledger holds answers that this version of the program did not write; go on"
                " with the version that did."
            ) from None
        return cls(label, noisy, abstained, mark)
