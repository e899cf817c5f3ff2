"""The first part of a universal labeler: an agnostic one, whose certificate names the second."""

from collections.abc import Mapping
from typing import Any, Self

from secretballot.core.ledger import Ledger
from secretballot.learners.labelers.agnostic import AgnosticLabeler
from secretballot.learners.universal.budget_split import BudgetSplit

_SHARED = (
    "hypotheses",
    "teacher",
    "alpha",
    "beta",
    "max_abstentions",
    "n_teachers",
    "calibration",
    "relation",
    "relabel_epsilon",
    "vault",
    "purpose",
    "n_jobs",
    "engine",
    "random_state",
    "progress",
)


class FirstPart(AgnosticLabeler):
    """The agnostic labeler, with a sentence on its certificate on what was reserved with it."""

    split: BudgetSplit

    @classmethod
    def of(
        cls, split: BudgetSplit, settings: Mapping[str, Any], *, request: str, ledger: Ledger
    ) -> Self:
        """Return the labeler of the first questions.

        Parameters
        ----------
        split : BudgetSplit
            With a first part.
        settings : mapping
            Parameters of the universal labeler, of which it takes those that it knows.
        request : str
            Key in the ledger.
        ledger : Ledger
        """
        own = {key: settings[key] for key in _SHARED}
        first = cls(
            budget=split.first, n_queries=split.n_first, request=request, ledger=ledger, **own
        )
        first.split = split
        return first

    def _public_declaration(self, event: Any) -> dict[str, object]:
        declared = super()._public_declaration(event)
        more = (
            "This is the first part of a universal labeler, reserved together with a second one:"
            f" {self.split}."
        )
        sentences = declared["assumptions"]
        assert isinstance(sentences, list)
        return {**declared, "assumptions": [*sentences, more]}
