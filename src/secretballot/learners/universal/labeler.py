"""The universal labeler: a few questions by voting, then all others by one hypothesis (Nandi and
Bassily 2020)."""

import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from secretballot._json_files import LARGEST_JSON, json_fields
from secretballot._typing import FloatArray
from secretballot._validation import NEIGHBOURS, check_choice, check_count, check_name
from secretballot.aggregation import RelabelledAggregator
from secretballot.door.purchase import check_keeping
from secretballot.exceptions import BudgetError, DataError, ParameterError
from secretballot.hypotheses import HypothesisClass
from secretballot.hypotheses.finite import check_answers
from secretballot.hypotheses.points import check_points
from secretballot.learners.labelers.agnostic_sizes import agnostic_plan
from secretballot.learners.labelers.session import LabelingSession
from secretballot.learners.selection.sample_sizes import public_points_needed
from secretballot.learners.training.inputs import class_indices, declared_classes
from secretballot.learners.universal.budget_split import BudgetSplit, split_budget
from secretballot.learners.universal.hypothesis_phase import check_class_size, cover_rows
from secretballot.learners.universal.kept_records import PrivateRecords
from secretballot.learners.universal.service import (
    UniversalAnswer,
    UniversalAnswers,
    UniversalRelease,
    UniversalRun,
    UniversalTerms,
    endless_request,
    first_request,
)
from secretballot.learners.universal.voting_phase import FirstPart
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.privacy.ledger import Ledger
from secretballot.students import HypothesisStudent
from secretballot.vault import keep_secret, make_vault, read_secret

__all__ = ["UniversalLabeler"]


_ABOUT = "universal.json"


class UniversalLabeler(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Answer questions without end: the first ones by voting, all others by one hypothesis that
    they made finite.

    The points of the first questions, which are public, make the class of hypotheses finite; then
    one of its labellings is chosen by all private records, and everything that is asked afterwards
    is answered by it, for nothing.

    Parameters
    ----------
    hypotheses : HypothesisClass
        Public; labels 0 and 1 stand for ``classes[0]`` and ``classes[1]``.
    teacher : classifier, optional
        As for `AgnosticLabeler`.
    budget : PrivacyBudget
        For both parts together, with delta above 0.
    alpha : float, default 0.1
        Error wanted beyond that of the best hypothesis.
    beta : float, default 0.05
        Probability of failure that the numbers allow for.
    n_first : int, optional
        Number of questions, each counted once, after which the second part answers; by default 32
        (d log(1 / alpha) + log(1 / beta)) / alpha (`public_points_needed`). It comes sooner if the
        first part stops at its last abstention.
    n_public : int, optional
        How many of their points make the class finite, at random; by default all. Fewer for classes
        that label many points in too many ways.
    n_queries : int, optional
        All questions that are expected; None for many more than `n_first`. It sets the split of the
        budget alone.
    share : float, optional
        Part of epsilon for the second part; by default the one at which the average error of
        `n_queries` questions is least, at least a tenth, and a half where `n_queries` is None.
    max_unstable, n_teachers, calibration, neighbours, relabel_epsilon
        As for `AgnosticLabeler`.
    ledger : Ledger, optional
        Account of the private records, of the basic composition; without one the plan keeps an
        account of its own, in memory.
    vault : path, optional
        Secret folder. With one, and a ledger that is a file, the plan outlives the process. Until
        the switch it holds a copy of the private records, since the second part counts mistakes on
        them; then the copy is removed. Without one they are held in memory.
    name : str, default "universal"
        Names the plan in ledger and vault; another name is another charge.
    purpose : str
        Why, in a few words; public.
    n_jobs, random_state, progress
        As for `AgnosticLabeler`; `random_state` also draws the `n_public` points.

    Attributes
    ----------
    split_ : BudgetSplit
        What each part costs; printed.
    run_ : UniversalRun
        The plan; there after `fit` or `reopen`.
    classes_ : list
        The two class values.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record.
    Relation : `neighbours`.
    Sensitivity : one vote of each question in the first part, one mistake of each hypothesis in the second.
    Price : that of both parts, added up: the budget. `fit` reserves both, so that the second can always be paid. As
        printed, Algorithm 4 gives all of epsilon to each part, which costs 2 epsilon.
    Source : Nandi and Bassily 2020, Algorithm 4; differences 7.
    Rounding : upward.

    Examples
    --------
    ``labeler = UniversalLabeler(Thresholds(), budget=PrivacyBudget(1.0, 1e-6)).fit(X, y, classes=["no", "yes"])``, then
    ``labeler.ask([0.3]).label``, without end.
    """

    def __init__(
        self,
        hypotheses: HypothesisClass | None = None,
        teacher: Any = None,
        *,
        budget: PrivacyBudget | None = None,
        alpha: float = 0.1,
        beta: float = 0.05,
        n_first: int | None = None,
        n_public: int | None = None,
        n_queries: int | None = None,
        share: float | None = None,
        max_unstable: int | None = None,
        n_teachers: int | None = None,
        calibration: str = "tight",
        neighbours: str = "replace-one",
        relabel_epsilon: float = 1.0,
        ledger: Ledger | None = None,
        vault: str | Path | None = None,
        name: str = "universal",
        purpose: str = "",
        n_jobs: int | None = None,
        random_state: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.hypotheses = hypotheses
        self.teacher = teacher
        self.budget = budget
        self.alpha = alpha
        self.beta = beta
        self.n_first = n_first
        self.n_public = n_public
        self.n_queries = n_queries
        self.share = share
        self.max_unstable = max_unstable
        self.n_teachers = n_teachers
        self.calibration = calibration
        self.neighbours = neighbours
        self.relabel_epsilon = relabel_epsilon
        self.ledger = ledger
        self.vault = vault
        self.name = name
        self.purpose = purpose
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def fit(
        self, X: Any, y: ArrayLike, *, classes: Sequence[Any], public_points_known: Any = None
    ) -> Self:
        """Buy both parts, and begin the first.

        Parameters
        ----------
        X : array of shape (n_records, n_features)
            Private; numbers.
        y : array of shape (n_records,)
            Private labels, each one of `classes`.
        classes : sequence of two values
            Public; never inferred from the private labels.
        public_points_known : array of shape (n_points, n_features), optional
            Where all points that will be asked, or many like them, are known beforehand: then there
            is no first part, the second one has all of epsilon, is drawn at once, and delta is not
            spent. The most accurate by far.

        Raises
        ------
        ParameterError, DataError
            If something does not fit; nothing was spent.
        BudgetError
            If the ledger does not admit the price; nothing was spent.
        """
        names = declared_classes(classes)
        if len(names) > 2:
            raise ParameterError(
                f"classes has {len(names)} values; hypotheses tell two classes apart, so name two."
            )
        hypotheses = self._checked_hypotheses()
        points = check_points(X, None)
        index = class_indices(y, names, len(points))
        known = (
            None
            if public_points_known is None
            else check_points(public_points_known, points.shape[1])
        )
        split = (
            self._split(hypotheses, len(points))
            if known is None
            else BudgetSplit.all_to_endless(self._budget())
        )
        n_public = split.n_first if known is None else len(known)
        check_class_size(
            hypotheses, min(n_public, self.n_public or n_public), points.shape[1], self.neighbours
        )
        check_answers(hypotheses, points)
        account = self._account()
        folder = self._folder() if self.vault is not None and account.durable else None
        about = self._about(hypotheses, names, points.shape[1], split, account)
        self._check_room(account, split)
        _check_same(folder, about)
        session = (
            None
            if split.first is None
            else self._first(split, account).fit(points, y, classes=names).session_
        )
        records: PrivateRecords | None = PrivateRecords(points, index)
        if folder is not None and records is not None:
            if account.released(endless_request(self.name)) is None:
                records.keep(make_vault(folder))
            keep_secret(folder / _ABOUT, json.dumps(about).encode())
            records = None
        self._begin(hypotheses, about, session, account, records, folder)
        if known is not None:
            self._draw_at_once(known)
        return self

    def reopen(self) -> Self:
        """Go on after a restart with the plan that a `fit` with this vault and this name began,
        without the data.

        Raises
        ------
        ParameterError
            If the labeler has no vault, or other settings than the plan.
        DataError
            If the vault holds no such plan.
        LedgerError
            If the ledger is not where it was, or does not fit the vault.
        """
        if self.vault is None:
            raise ParameterError("vault is None; give the vault that the plan was begun with.")
        hypotheses, folder = self._checked_hypotheses(), self._folder()
        content = read_secret(folder / _ABOUT, largest=LARGEST_JSON)
        if content is None:
            raise DataError(
                f"The vault {self.vault} holds no universal plan {self.name!r}; call fit."
            )
        about = _about_of(content)
        if about is None:
            raise DataError(f"{folder / _ABOUT} is damaged; put the vault back as it was.")
        split, ledger, settings = (
            BudgetSplit.from_description(about["split"]),
            about["ledger"],
            about["settings"],
        )
        if settings != self._settings(hypotheses):
            given = ", ".join(f"{key}={value}" for key, value in settings.items())
            raise ParameterError(
                f"The plan {self.name!r} was begun with other settings; give the same: {given}."
            )
        account = Ledger.open_existing(ledger)
        session = None if split.first is None else self._first(split, account).reopen().session_
        self._begin(hypotheses, about, session, account, None, folder)
        return self

    @property
    def left(self) -> float:
        """Questions that may still be asked: infinity, before the switch too, since both parts
        are paid for."""
        self._running()
        return math.inf

    @property
    def used(self) -> int:
        """Questions that the first part has answered, abstentions included; repeated ones count
        once."""
        return self._running().used

    @property
    def until_switch(self) -> int:
        """Questions that the first part may still answer; 0 when the hypothesis has taken over,
        or will now."""
        return self._running().until_switch

    @property
    def student_(self) -> HypothesisStudent:
        """The hypothesis that answers from now on, as a fitted classifier, to be published.

        Raises
        ------
        AttributeError
            If it was not drawn yet.
        """
        run = self._running()
        if run.endless is None:
            raise AttributeError("There is no student yet: the first part still answers.")
        return HypothesisStudent.of(
            run.endless.hypothesis, run.terms.hypotheses, self.classes_, self.n_features_in_
        )

    def ask(self, x: Any) -> UniversalAnswer:
        """Return the answer to one public point, of shape (n_features,).

        Raises
        ------
        DataError
            If the point does not fit.
        """
        point = x if hasattr(x, "shape") and len(x.shape) == 2 else np.asarray(x).reshape(1, -1)
        if point.shape[0] != 1:
            raise DataError(f"x has {point.shape[0]} rows; ask one point, or use ask_many.")
        answers = self.ask_many(point)
        return UniversalAnswer(answers.labels[0], bool(answers.endless[0]))

    def ask_many(self, X: Any) -> UniversalAnswers:
        """Return the answers to public points, of shape (n, n_features), every one of them.

        A label that the first part gave stays. What it abstained on is answered when asked after
        the switch.

        Raises
        ------
        DataError
            If the points do not fit; nothing was answered then.
        """
        return self._running().ask_many(check_points(X, self.n_features_in_))

    def released(self, X: Any) -> UniversalRelease:
        """Return what left the house so far: all answers of the first part, and the hypothesis's
        labels of `X`.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Public points, with all that the first part was asked among them.

        Raises
        ------
        DataError
            If a point that was asked is not in `X`.
        """
        return self._running().released(check_points(X, self.n_features_in_))

    def describe(self) -> dict[str, Any]:
        """Return split and progress as JSON values; public."""
        run = self._running()
        hypothesis = None if run.endless is None else run.endless.hypothesis.describe()
        state = {"used": run.used, "until_switch": run.until_switch, "hypothesis": hypothesis}
        return {"split": self.split_.describe(), **state}

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        shown = str(super().__repr__(N_CHAR_MAX))
        return f"{shown}: {self.split_}" if hasattr(self, "split_") else shown

    def _running(self) -> UniversalRun:
        check_is_fitted(self, "run_")
        run: UniversalRun = self.run_
        return run

    def _begin(
        self,
        hypotheses: HypothesisClass,
        about: dict[str, Any],
        session: LabelingSession | None,
        account: Ledger,
        records: PrivateRecords | None,
        folder: Path | None,
    ) -> None:
        """Reserve the second part, or find it."""
        names, width, split = (
            list(about["classes"]),
            int(about["n_features"]),
            BudgetSplit.from_description(about["split"]),
        )
        terms = UniversalTerms(
            hypotheses,
            names,
            width,
            split,
            self.n_public,
            self.random_state,
            self.neighbours,
            self.name,
            self.purpose,
        )
        self.run_ = UniversalRun(terms, session, account, records, folder)
        self.split_, self.classes_, self.n_features_in_ = split, names, width

    def _draw_at_once(self, known: FloatArray) -> None:
        """Draw by points that are known beforehand, of which the ledger keeps those that make
        the class finite."""
        cover = known[cover_rows(len(known), self.n_public, self.random_state)]
        if self.run_.endless is None:
            self.run_.switch(cover)
        elif not np.array_equal(self.run_.endless.points, cover):
            raise ParameterError(
                f"The plan {self.name!r} was drawn by other public points; give the same, or"
                " another name, which is a new charge. Nothing was spent."
            )

    def _checked_hypotheses(self) -> HypothesisClass:
        if not isinstance(self.hypotheses, HypothesisClass):
            raise ParameterError(
                f"hypotheses is a {type(self.hypotheses).__name__}; give a HypothesisClass, such as"
                " Thresholds()."
            )
        check_choice("neighbours", self.neighbours, NEIGHBOURS)
        for name in ("n_first", "n_public", "n_queries"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        return self.hypotheses

    def _split(self, hypotheses: HypothesisClass, n_records: int) -> BudgetSplit:
        """Return what each part may cost, from public numbers alone."""
        d = max(1, hypotheses.vc_dimension)
        n_first = (
            public_points_needed(d, self.alpha, self.beta) if self.n_first is None else self.n_first
        )

        def planned(budget: PrivacyBudget) -> tuple[RelabelledAggregator, int]:
            return agnostic_plan(
                budget,
                n_first,
                alpha=self.alpha,
                beta=self.beta,
                n_records=n_records if self.neighbours == "replace-one" else None,
                neighbours=self.neighbours,
                relabel_epsilon=self.relabel_epsilon,
                max_unstable=self.max_unstable,
                n_teachers=self.n_teachers,
                calibration=self.calibration,
            )

        return split_budget(
            self._budget(), planned, d, n_first, n_queries=self.n_queries, share=self.share
        )

    def _first(self, split: BudgetSplit, account: Ledger) -> FirstPart:
        return FirstPart.of(
            split, self.get_params(deep=False), name=first_request(self.name), ledger=account
        )

    def _budget(self) -> PrivacyBudget:
        if not isinstance(self.budget, PrivacyBudget):
            raise ParameterError(
                "budget is missing; give one, such as PrivacyBudget(epsilon=1.0, delta=1e-6)."
            )
        return self.budget

    def _account(self) -> Ledger:
        """Return the ledger if it takes such a plan, or one for this plan alone."""
        check_keeping(self.ledger, self.vault, None)
        check_name("name", self.name, longest=_LONGEST_NAME)
        if self.ledger is None:
            about = {"unit": "record", "neighbours": self.neighbours}
            return Ledger.in_memory(dataset="this plan alone", budget=self._budget(), **about)
        self.ledger.check_promise("record", self.neighbours)
        if self.ledger.composition != "basic":
            raise ParameterError(
                f"The ledger composes by {self.ledger.composition!r}, which does not add two prices"
                " up; give one with the composition 'basic'. Nothing was spent."
            )
        return self.ledger

    def _check_room(self, account: Ledger, split: BudgetSplit) -> None:
        """Refuse a plan of which the ledger would take only the first part."""
        if any(
            account.entry(request) is not None
            for request in (first_request(self.name), endless_request(self.name))
        ):
            return
        remaining, delta = account.remaining(), 0.0 if split.first is None else split.total.delta
        if not (remaining.epsilon >= split.total.epsilon and remaining.delta >= delta):
            raise BudgetError(
                f"Both parts cost epsilon {split.total.epsilon:g}, delta {delta:g}, and the ledger"
                f" of {account.dataset!r} has ({remaining.epsilon:g}, {remaining.delta:g}) left;"
                " ask for less. Nothing was spent."
            )

    def _settings(self, hypotheses: HypothesisClass) -> dict[str, Any]:
        """Return what must be the same whenever the plan is taken up."""
        return {
            "hypotheses": f"{hypotheses.name} {joblib.hash(hypotheses)}",
            "neighbours": self.neighbours,
            "n_public": self.n_public,
            "random_state": self.random_state,
        }

    def _about(
        self,
        hypotheses: HypothesisClass,
        names: list[Any],
        n_features: int,
        split: BudgetSplit,
        account: Ledger,
    ) -> dict[str, Any]:
        return {
            "settings": self._settings(hypotheses),
            "classes": names,
            "n_features": n_features,
            "split": split.describe(),
            "ledger": str(account.path),
        }

    def _folder(self) -> Path:
        """Return where the plan with this name is kept in the vault."""
        assert self.vault is not None
        return Path(self.vault) / "plans" / hashlib.sha256(self.name.encode()).hexdigest()[:32]


_KEPT = {"settings": dict, "classes": list, "n_features": int, "split": dict, "ledger": str}
_SPLIT = ("epsilon", "delta", "first_epsilon", "endless_epsilon", "first_questions")


def _about_of(content: bytes) -> dict[str, Any] | None:
    """Return what a plan was begun with, None where that is damaged."""
    about = json_fields(content, _KEPT)
    if about is None or len(about["classes"]) != 2 or not about["n_features"] >= 1:
        return None
    if not all(type(about["split"].get(name)) in (int, float) for name in _SPLIT):
        return None
    with contextlib.suppress(ParameterError, LookupError):
        BudgetSplit.from_description(about["split"])
        return about
    return None


_LONGEST_NAME = 180  # letters; both parts have longer names made of it


def _check_same(folder: Path | None, about: dict[str, Any]) -> None:
    """Refuse to go on with a plan that was begun with other settings."""
    content = None if folder is None else read_secret(folder / _ABOUT, largest=LARGEST_JSON)
    if folder is None or content is None:
        return
    kept = _about_of(content)
    if kept is None:
        raise DataError(
            f"{folder / _ABOUT} is damaged; put the vault back as it was. Nothing was spent."
        )
    if kept != json.loads(json.dumps(about)):
        raise ParameterError(
            f"The vault {folder} holds a plan of this name with other settings; give the same, or"
            " another name, which is a new charge. Nothing was spent."
        )
