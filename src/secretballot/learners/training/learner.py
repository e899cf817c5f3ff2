"""What learners by single releases have in common: parameters and account."""

from dataclasses import dataclass

from sklearn.base import BaseEstimator

from secretballot._validation import RELATIONS, check_choice
from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Ledger
from secretballot.core.types import Guarantee
from secretballot.exceptions import Argument, Parameter, ParameterError
from secretballot.learners.training.account import account_of_fit, check_keeping, required_budget
from secretballot.learners.training.learner_state import LearnerState
from secretballot.learners.training.surroundings import warn_inside_sklearn


# scikit-learn ships no types
@dataclass(eq=False, repr=False, kw_only=True)
class Learner(LearnerState, BaseEstimator):  # type: ignore[misc]
    """A learner that releases once and lets a student learn; the fields of a class are the
    parameters of its constructor.

    Parameters
    ----------
    budget : PrivacyBudget
        (epsilon, delta) of this fit, with delta above 0.
    relation : {"add-remove", "replace-one"}, default "add-remove"
        Relation of the guarantee.
    ledger : Ledger, optional
        Account of the private dataset. Without one the fit keeps an account of its own, in memory.
    request : str, optional
        Key of this fit in the ledger: the same key gets the stored answer, or goes on after an
        interruption, for nothing.
    purpose : str
        Why, in a few words; on the certificate, so public.
    random_state : int, optional
        Public seed. Never of the noise.

    Attributes
    ----------
    student_ : fitted student
    certificate_ : dict
        What may be shown to a stranger.
    n_features_in_ : int
    """

    budget: PrivacyBudget | None = None
    relation: str = "add-remove"
    ledger: Ledger | None = None
    request: str | None = None
    purpose: str = ""
    random_state: int | None = None

    def _checked_budget(self, *, by_unit: bool) -> PrivacyBudget:
        """Return the budget, after refusing settings that cannot be."""
        warn_inside_sklearn(alone=self.ledger is None)
        budget = required_budget(self.budget)
        replaced = check_choice("relation", self.relation, RELATIONS) == "replace-one"
        if replaced and by_unit:
            raise ParameterError(
                Parameter("units"),
                " are given with ",
                Argument("relation", "replace-one"),
                ", which is about single records.",
            )
        check_keeping(self.ledger, None, self.request)
        return budget

    def _account(self, budget: PrivacyBudget, guarantee: Guarantee) -> Ledger:
        """Return the account that pays."""
        unit, relation = guarantee.unit, guarantee.relation
        return account_of_fit(self.ledger, budget, unit=unit, relation=relation)
