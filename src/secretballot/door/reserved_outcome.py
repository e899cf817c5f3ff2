"""A choice that is paid for now and drawn later, at most once: what a run needs that must never
run out of money."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import ExponentialChoice
from secretballot.core.private import Scores
from secretballot.core.types import ScoreShape
from secretballot.door import purchase
from secretballot.door.outcomes import (
    PaidOutcome,
    check_scores_account,
    drawn_by,
    dummy_certificate,
)
from secretballot.ensemble.votes import guarantee_of
from secretballot.exceptions import ParameterError
from secretballot.privacy.accounting import PrivacyBudget, calibrate_pure
from secretballot.report.certificate.build import time_and_software
from secretballot.report.certificate.chosen import EXPONENTIAL

_DRAWN = ("n_candidates", "outcome", "composition", "drawn")


class ReservedOutcome:
    """Reserve one draw of the exponential mechanism, or take one up, and draw when its scores are
    known.

    Parameters
    ----------
    ledger : Ledger
        Account of the private dataset; the price is reserved here at once.
    epsilon : float
        Price, in nats; pure.
    request : str
        Key in the ledger. The same key finds the same choice again, drawn or not yet.
    unit, neighbours : str
        What the scores will be counted by.
    purpose : str
        Why, in a few words; public.
    classes : sequence, optional
        What the chosen candidate will label public points with, for the certificate.

    Raises
    ------
    ParameterError
        If the key was reserved for something else.
    BudgetError
        If the ledger does not admit the price; nothing was spent.
    LedgerError
        If the ledger cannot be used, or is about another unit or relation.

    Privacy
    -------
    Unit : as the scores count.
    Relation : add-remove: scale 1 / epsilon, since all scores move one way. Replace-one: 2 /
        epsilon.
    Sensitivity : 1 for every score.
    Price : (epsilon, 0), spent from the start, drawn or not.
    Order : draw, commit, return. A draw that a crash interrupts before the commit was seen by
        nobody, and the next one takes its place; of two processes that draw, one commits, and both
        return what was committed. So one outcome leaves the house, for one price.
    Source : McSherry and Talwar 2007, Theorem 6; Nandi and Bassily 2020, Algorithms 4 and 7.
    Rounding : upward.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        epsilon: float,
        request: str,
        unit: str,
        neighbours: str,
        purpose: str,
        classes: Sequence[object] = (0, 1),
    ) -> None:
        check_scores_account(ledger, guarantee_of(unit, neighbours))
        self.ledger, self.request, self.purpose = ledger, request, purpose
        self.epsilon, self.unit, self.neighbours = float(epsilon), unit, neighbours
        drawn_at = calibrate_pure(PrivacyBudget(epsilon, 0.0), 1)
        self._mechanism = ExponentialChoice(epsilon=drawn_at)
        self._shape = ScoreShape(guarantee=guarantee_of(unit, neighbours))
        self.reservation = self._reservation(classes)

    def drawn(self) -> tuple[PaidOutcome, dict[str, Any]] | None:
        """Return the choice with what was stored about it, or None if it was not drawn yet.

        Raises
        ------
        LedgerError
            If the stored bytes cannot be trusted.
        """
        content = self.ledger.released(self.request)
        if content is None:
            return None
        stored = json.loads(content)
        return self._choice_of(**{name: stored[name] for name in _DRAWN}), stored["about"]

    def _choice_of(
        self,
        n_candidates: int,
        outcome: int,
        composition: dict[str, Any],
        drawn: dict[str, Any],
    ) -> PaidOutcome:
        return PaidOutcome(
            self.purpose,
            self._mechanism,
            self._shape,
            {"method": EXPONENTIAL, "n_candidates": n_candidates},
            outcome,
            self.epsilon,
            0.0,
            composition,
            drawn,
        )

    def draw(self, scores: Scores, about: Mapping[str, Any]) -> tuple[PaidOutcome, dict[str, Any]]:
        """Return the choice, drawn now unless it was before, with what was stored about it.

        Parameters
        ----------
        scores : Scores
            Right answers of each candidate, or mistakes counted below 0; secret.
        about : mapping
            Public, as JSON values: what tells later which candidates there were. Stored with the
            outcome.

        Raises
        ------
        ParameterError
            If the scores are not counted for the unit and relation that were paid for; nothing was
            drawn.
        LedgerError
            If the ledger cannot be written; nothing left the house, and the next call draws.
        """
        made = scores.shape.guarantee
        if (made.unit, made.relation) != (self.unit, self.neighbours):
            raise ParameterError(
                f"The scores are counted by {made.unit} under {made.relation!r}, and"
                f" {self.unit} under {self.neighbours!r} was paid for; count what was paid for."
                " Nothing was drawn."
            )
        # what was drawn before counts: a second draw would be a second release
        found = self.drawn()
        if found is None:
            content = {
                "n_candidates": scores.n_candidates,
                "composition": purchase.composition_of(self.ledger, self.reservation),
                "about": dict(about),
                "drawn": time_and_software(),
            }
            room = purchase.room_for(content | {"outcome": scores.n_candidates})
            noise = purchase.exact_noise()
            drawn = purchase.encoded(
                content | {"outcome": drawn_by(self._mechanism, scores, noise)}, room
            )
            purchase.stored_first(self.ledger, self.reservation, self.request, drawn)
            found = self.drawn()
            assert found is not None  # stored answers are never removed
        return found

    def _reservation(self, classes: Sequence[object]) -> int:
        """Return the number of the reservation, made now if there is none."""
        budget = PrivacyBudget(self.epsilon, 0.0)
        events = (self._mechanism.event(self._shape),)
        entry = self.ledger.entry(self.request)
        if entry is not None:
            return purchase.checked_entry(entry, events, budget).id
        # before the purchase: an installation that cannot draw must cost nothing
        noise = purchase.exact_noise()
        account = purchase.composition_of(self.ledger, 0)
        choice = self._choice_of(1, 0, account, time_and_software())
        declaration = {"unit": self.unit, "neighbours": self.neighbours}
        number, _ = purchase.reserved(
            self.ledger,
            events,
            budget,
            dummy_certificate(choice, noise, declaration, classes),
            request=self.request,
            purpose=self.purpose,
        )
        return number
