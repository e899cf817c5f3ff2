"""What labelers have in common: they are fitted to private records, then asked for labels one
point at a time."""

import hashlib
from pathlib import Path
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from secretballot._validation import check_name
from secretballot.door.purchase import check_keeping
from secretballot.exceptions import ParameterError
from secretballot.learners.labelers.session import LabelingSession, SessionAnswer, SessionAnswers
from secretballot.learners.training.account import refuse_beyond
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.privacy.ledger import Ledger
from secretballot.released import ReleasedLabels
from secretballot.vault import make_vault

__all__ = ["Labeler"]


class Labeler(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Base of the labelers: private classification-query release, asked as Nandi and Bassily 2020
    define it.

    Subclasses have a `fit`, which trains teachers and buys the whole plan. Every answer is on the
    disk before it is returned, where a vault and a durable ledger are given.

    Attributes
    ----------
    session_ : LabelingSession
        The plan; there after `fit` or `reopen`.
    planned, used, left : int
        Questions paid for, answered so far (abstentions included), and still to be had.
    """

    budget: PrivacyBudget | None
    ledger: Ledger | None
    vault: str | Path | None
    name: str

    def reopen(self) -> Self:
        """Go on after a restart with the plan that a `fit` with this vault and this name began,
        without the data.

        Raises
        ------
        ParameterError
            If the labeler has no vault.
        DataError
            If the vault holds no such plan.
        LedgerError
            If the ledger is not where it was, or does not fit the vault.
        """
        if self.vault is None:
            raise ParameterError("vault is None; give the vault that the plan was begun with.")
        self.session_ = LabelingSession.reopen(self._place(), name=self.name)
        return self

    @property
    def planned(self) -> int:
        """Questions paid for."""
        return self._plan().planned

    @property
    def used(self) -> int:
        """Questions answered so far, abstentions included; repeated ones count once."""
        return self._plan().used

    @property
    def left(self) -> int:
        """Questions still to be had; 0 once the last abstention has happened."""
        return self._plan().left

    def ask(self, x: Any) -> SessionAnswer:
        """Return the answer to one public point, of shape (n_features,); a repeated point gets its
        stored answer.

        Raises
        ------
        DataError
            If the point does not fit the teachers.
        BudgetError
            If the point was never asked and the plan is spent.
        """
        return self._plan().ask(x)

    def ask_many(self, X: Any) -> SessionAnswers:
        """Return the answers to public points, of shape (n, n_features), as far as the plan lasts.

        Raises
        ------
        DataError
            If the points do not fit the teachers; nothing was answered then.
        BudgetError
            If none of them was asked before and the plan is spent.
        """
        return self._plan().ask_many(X)

    def released(self, X: Any) -> ReleasedLabels:
        """Return all answers so far, with the certificate of the whole plan, as rows of `X`.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Public points, with all that were asked among them.

        Raises
        ------
        DataError
            If a point that was asked is not in `X`.
        """
        return self._plan().released(X)

    def close(self, X: Any) -> ReleasedLabels:
        """Settle the plan and return `released(X)`, for ever.

        Raises
        ------
        DataError
            If a point that was asked is not in `X`.
        LedgerError
            If the plan is closed already, or the ledger cannot be written.
        """
        return self._plan().close(X)

    def _plan(self) -> LabelingSession:
        check_is_fitted(self, "session_")
        session: LabelingSession = self.session_
        return session

    def _place(self) -> Path:
        """Return where teachers of the plan with this name are kept: another plan never meets
        them."""
        assert self.vault is not None
        return Path(self.vault) / "plans" / hashlib.sha256(self.name.encode()).hexdigest()[:32]

    def _own_vault(self) -> Path | None:
        """Return the folder of this plan alone, made and closed to others; None without a vault."""
        if self.vault is None:
            return None
        place = self._place()
        for folder in (Path(self.vault), place.parent):
            make_vault(folder)
        return make_vault(place)

    def _budget(self) -> PrivacyBudget:
        if not isinstance(self.budget, PrivacyBudget):
            raise ParameterError(
                "budget is missing; give one, such as PrivacyBudget(epsilon=1.0, delta=1e-6)."
            )
        return self.budget

    def _account(self, unit: str, neighbours: str) -> Ledger:
        """Return the ledger if it takes such a plan, asked before teachers are trained; or one
        for this plan alone."""
        check_keeping(self.ledger, self.vault, None)
        check_name("name", self.name)
        if self.ledger is not None:
            self.ledger.check_promise(unit, neighbours)
            refuse_beyond(self.ledger, self._budget(), self.name, goes_on=True)
            return self.ledger
        return Ledger.in_memory(
            dataset="this plan alone", budget=self._budget(), unit=unit, neighbours=neighbours
        )
