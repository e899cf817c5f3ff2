"""What a run would cost and ask, and what is to be expected of it, before anything is paid."""

from dataclasses import dataclass, field
from typing import Any

from secretballot.runs.account import AccountState
from secretballot.runs.progress import Caution

#: Margins at which it is said how often a label comes out right, in shares of the teachers.
MARGINS = (0.2, 0.6, 1.0)


@dataclass(frozen=True)
class Quote:
    """What a run would cost and ask, and what is to be expected of it.

    Attributes
    ----------
    method : str
        "moments", "votes" or "record-votes".
    epsilon, delta : float
        Price.
    relation : str
    released : str
        What would leave, in words.
    sigma : float
        Scale of its noise: of votes in votes, of sums in multiples of what one record can move. The
        standard deviation, and of the Laplace noise of a sparse vector its own scale; of a table of
        abstentions the votes over which their chance falls by a factor of e, and of a table of
        chances the Gaussian noise that tells as much of an even vote.
    n_public : int
        Public points.
    queries : int or None
        Of them asked; None where no single points are.
    teachers : int or None
    off_in_the_mean : float or None
        Of noisy counts: scale of the noise on the mean of all of them, in votes.
    right : dict of float to float
        Of labels that all queries get: probability that one comes out right, by the margin of the
        votes as a share of the teachers.
    answered : dict of float to float
        Of votes under the sparse vector or a table: probability that the first query is answered,
        by the same.
    cautions : tuple of Caution
        What the run would ask.
    account : AccountState or None
        What would pay; None where no files are known.
    noise_unit : str
        What `sigma` is counted in; empty where a quantile is drawn, which has no such scale.
    unanimous : float or None
        Of quantiles: least probability with which one that all teachers agree on is drawn.
    can_be_planned : bool
        Whether a plan forecasts such runs.
    """

    method: str
    epsilon: float
    delta: float
    relation: str
    released: str
    sigma: float
    n_public: int
    queries: int | None = None
    teachers: int | None = None
    off_in_the_mean: float | None = None
    right: dict[float, float] = field(default_factory=dict)
    answered: dict[float, float] = field(default_factory=dict)
    cautions: tuple[Caution, ...] = ()
    account: AccountState | None = None
    noise_unit: str = "votes"
    unanimous: float | None = None
    can_be_planned: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the quote for machines; questions that depend on private data are left out."""
        account = self.account
        return {
            "method": self.method,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "relation": self.relation,
            "released": self.released,
            "sigma": self.sigma,
            "public": self.n_public,
            "queries": self.queries,
            "teachers": self.teachers,
            "off_in_the_mean": self.off_in_the_mean,
            **({} if self.unanimous is None else {"unanimous": self.unanimous}),
            "right_by_margin": {f"{share:g}": value for share, value in self.right.items()},
            "answered_by_margin": {f"{share:g}": value for share, value in self.answered.items()},
            "asks": [
                {"name": caution.name, "text": caution.text}
                for caution in self.cautions
                if not caution.private
            ],
            "account": None if account is None else account.to_json(),
        }
