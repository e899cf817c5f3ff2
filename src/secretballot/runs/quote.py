"""What a run would cost and ask, and what is to be expected of it, before anything is paid."""

from dataclasses import dataclass
from typing import Any

from secretballot.runs.account import AccountState
from secretballot.runs.progress import Caution


@dataclass(frozen=True)
class Quote:
    """What a run would cost and ask, and what is to be expected of it.

    Attributes
    ----------
    method : str
    epsilon, delta : float
        Price.
    relation : str
    released, noise : str
        What would leave, and at which noise, in words; no noise of a quantile, which is drawn.
    sigma : float
        Scale of the noise: of votes in votes, of sums in multiples of what one record can move. The
        standard deviation, and of the Laplace noise of a sparse vector its own scale; of a table of
        abstentions the votes over which their chance falls by a factor of e, and of a table of
        chances the Gaussian noise that tells as much of an even vote.
    n_public : int
        Public points.
    queries : int or None
        Of them asked; None where no single points are.
    teachers : int or None
    expect : tuple of str
        How often answers come out right, or are given, and how far counts are off.
    can_be_planned : bool
        Whether a plan forecasts such runs.
    cautions : tuple of Caution
        What the run would ask.
    account : AccountState or None
        What would pay; None where no files are known.
    """

    method: str
    epsilon: float
    delta: float
    relation: str
    released: str
    noise: str
    sigma: float
    n_public: int
    queries: int | None = None
    teachers: int | None = None
    expect: tuple[str, ...] = ()
    can_be_planned: bool = True
    cautions: tuple[Caution, ...] = ()
    account: AccountState | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the quote for machines; questions that depend on private data are left out."""
        asks = [
            {"name": caution.name, "text": caution.text}
            for caution in self.cautions
            if not caution.private
        ]
        account = None if self.account is None else self.account.to_json()
        found = {**vars(self), "public": self.n_public, "asks": asks, "account": account}
        left_out = ("n_public", "can_be_planned", "cautions")
        return {name: value for name, value in found.items() if name not in left_out}
