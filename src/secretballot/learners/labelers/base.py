"""What labelers have in common: they are fitted to private records, then asked for labels one
point at a time."""

from pathlib import Path
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from secretballot._validation import check_name
from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Ledger
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.labelers.session import LabelingSession, SessionAnswer, SessionAnswers
from secretballot.learners.training.account import (
    account_of_fit,
    check_keeping,
    refuse_beyond,
    required_budget,
)
from secretballot.learners.training.trained import reservation_folder
from secretballot.released import ReleasedLabels
from secretballot.vault import make_vault


class Labeler(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Base of the labelers: private classification-query release, asked as Nandi and Bassily 2020
    define it.

    Subclasses have a `fit`, which trains teachers and reserves all questions. Every answer is on
    the disk before it is returned, where a vault and a durable ledger are given.

    Attributes
    ----------
    session_ : LabelingSession
        The reservation; there after `fit` or `reopen`.
    planned, used, left : int
        Questions paid for, answered so far (abstentions included), and still to be had.
    """

    budget: PrivacyBudget | None
    ledger: Ledger | None
    vault: str | Path | None
    request: str

    def reopen(self) -> Self:
        """Go on after a restart with what a `fit` with this vault and this request reserved,
        without the data.

        Raises
        ------
        ParameterError
            If the labeler has no vault.
        DataError
            If the vault holds no such reservation.
        LedgerError
            If the ledger is not where it was, or does not fit the vault.
        """
        if self.vault is None:
            raise ParameterError(
                Parameter("vault"), " is None; give the vault that the first fit was given."
            )
        self.session_ = LabelingSession.reopen(self._reservation_folder(), request=self.request)
        return self

    @property
    def planned(self) -> int:
        """Questions paid for."""
        return self._begun_session().planned

    @property
    def used(self) -> int:
        """Questions answered so far, abstentions included; repeated ones count once."""
        return self._begun_session().used

    @property
    def left(self) -> int:
        """Questions still to be had; 0 once the last abstention has happened."""
        return self._begun_session().left

    def ask(self, x: Any) -> SessionAnswer:
        """Return the answer to one public point, of shape (n_features,); a repeated point gets its
        stored answer.

        Raises
        ------
        DataError
            If the point does not fit the teachers.
        BudgetError
            If the point was never asked and the reservation is spent.
        """
        return self._begun_session().ask(x)

    def ask_many(self, X: Any) -> SessionAnswers:
        """Return the answers to public points, of shape (n, n_features), while questions are left.

        Raises
        ------
        DataError
            If the points do not fit the teachers; nothing was answered then.
        BudgetError
            If none of them was asked before and the reservation is spent.
        """
        return self._begun_session().ask_many(X)

    def released(self, X: Any) -> ReleasedLabels:
        """Return all answers so far, with the certificate of the reservation, as rows of `X`.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Public points, with all that were asked among them.

        Raises
        ------
        DataError
            If a point that was asked is not in `X`.
        """
        return self._begun_session().released(X)

    def close(self, X: Any) -> ReleasedLabels:
        """Settle the reservation and return `released(X)`, for ever.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Public points, with all that were asked among them.

        Raises
        ------
        DataError
            If a point that was asked is not in `X`.
        LedgerError
            If it is closed already, or the ledger cannot be written.
        """
        return self._begun_session().close(X)

    def _begun_session(self) -> LabelingSession:
        check_is_fitted(self, "session_")
        session: LabelingSession = self.session_
        return session

    def _reservation_folder(self) -> Path:
        """Return where the teachers of this reservation are kept: another one never meets them."""
        assert self.vault is not None
        return reservation_folder(self.vault, self.request)

    def _own_vault(self) -> Path | None:
        """Return the folder of this reservation alone, made and closed to others, or None."""
        if self.vault is None:
            return None
        place = self._reservation_folder()
        # From the top down, so that no folder is ever open to others while its content is written.
        for folder in (Path(self.vault), place.parent):
            make_vault(folder)
        return make_vault(place)

    def _open_account(self, unit: str, relation: str) -> Ledger:
        """Return the account that pays, asked before teachers are trained."""
        check_keeping(self.ledger, self.vault, None)
        check_name("request", self.request)
        budget = required_budget(self.budget)
        account = account_of_fit(self.ledger, budget, unit=unit, relation=relation)
        refuse_beyond(account, budget, self.request)
        return account
