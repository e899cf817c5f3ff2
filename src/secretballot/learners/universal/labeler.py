"""The universal labeler of Nandi and Bassily 2020: votes first, then one hypothesis for ever."""

import contextlib
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
from secretballot._validation import RELATIONS, check_choice, check_count, check_name
from secretballot.accounting import PrivacyBudget, Sampled
from secretballot.core.ledger import Ledger
from secretballot.exceptions import BudgetError, DataError, Parameter, ParameterError
from secretballot.hypotheses import FiniteClass, HypothesisClass
from secretballot.hypotheses.points import check_points
from secretballot.learners.labelers.agnostic_sizes import agnostic_terms
from secretballot.learners.labelers.session import LabelingSession
from secretballot.learners.selection.sample_sizes import public_points_needed
from secretballot.learners.training.account import account_of_fit, check_keeping, required_budget
from secretballot.learners.training.inputs import (
    class_indices,
    declared_classes,
    random_rows,
    refuse_more_classes,
    single_point,
)
from secretballot.learners.training.private_rows import refuse_private_points
from secretballot.learners.training.surroundings import warn_inside_sklearn
from secretballot.learners.training.trained import reservation_folder
from secretballot.learners.universal.budget_split import BudgetSplit, split_budget
from secretballot.learners.universal.hypothesis_phase import check_class_size
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
from secretballot.students import HypothesisStudent
from secretballot.teachers.executors import LOCAL
from secretballot.vault import keep_secret, make_vault, read_secret

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
    n_cover : int, optional
        How many of their points make the class finite, at random; by default all. Fewer for classes
        that label many points in too many ways.
    n_queries : int, optional
        All questions that are expected; None for many more than `n_first`. It sets the split of the
        budget alone.
    epsilon_share : float, optional
        Share of epsilon for the second part; by default the one at which the average error of
        `n_queries` questions is least, at least a tenth, and a half where `n_queries` is None.
    max_abstentions, n_teachers, calibration, relation, relabel_epsilon
        As for `AgnosticLabeler`.
    ledger : Ledger, optional
        Account of the private records, of the basic composition; without one the fit keeps an
        account of its own, in memory.
    vault : path, optional
        Secret folder. With one, and a ledger that is a file, both parts outlive the process. Until
        the switch it holds a copy of the private records, since the second part counts mistakes on
        them; then the copy is removed. Without one they are held in memory.
    request : str, default "universal"
        Key of both parts in ledger and vault; another key is another charge.
    purpose : str
        Why, in a few words; public.
    n_jobs, engine, random_state, progress
        As for `AgnosticLabeler`; `random_state` also draws the `n_cover` points.

    Attributes
    ----------
    split_ : BudgetSplit
        What each part costs; printed.
    run_ : UniversalRun
        Both parts; there after `fit` or `reopen`.
    classes_ : list
        The two class values.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record.
    Relation : `relation`.
    Sensitivity : one vote of each question in the first part, one mistake of each hypothesis in the
        second.
    Price : that of both parts, added up: the budget. `fit` reserves both, so that the second can
        always be paid. As printed, Algorithm 4 gives all of epsilon to each part, which costs 2
        epsilon.
    Source : Nandi and Bassily 2020, Algorithm 4; differences 7.
    Rounding : upward.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(2000, 1))
    >>> labeler = sb.UniversalLabeler(
    ...     sb.hypotheses.Thresholds(), budget=sb.PrivacyBudget(1.0, 1e-6))
    >>> labeler = labeler.fit(  # the points to come are known, so all of epsilon goes into one draw
    ...     X, np.where(X[:, 0] > 0.5, "yes", "no"), classes=["no", "yes"],
    ...     public_points_known=np.linspace(0, 1, 101)[:, None])
    >>> labeler.ask([0.99]).label, labeler.left
    ('yes', inf)
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
        n_cover: int | None = None,
        n_queries: int | None = None,
        epsilon_share: float | None = None,
        max_abstentions: int | None = None,
        n_teachers: int | None = None,
        calibration: str = "tight",
        relation: str = "add-remove",
        relabel_epsilon: float = 1.0,
        ledger: Ledger | None = None,
        vault: str | Path | None = None,
        request: str = "universal",
        purpose: str = "",
        n_jobs: int | None = None,
        engine: Any = LOCAL,
        random_state: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.hypotheses = hypotheses
        self.teacher = teacher
        self.budget = budget
        self.alpha = alpha
        self.beta = beta
        self.n_first = n_first
        self.n_cover = n_cover
        self.n_queries = n_queries
        self.epsilon_share = epsilon_share
        self.max_abstentions = max_abstentions
        self.n_teachers = n_teachers
        self.calibration = calibration
        self.relation = relation
        self.relabel_epsilon = relabel_epsilon
        self.ledger = ledger
        self.vault = vault
        self.request = request
        self.purpose = purpose
        self.n_jobs = n_jobs
        self.engine = engine
        self.random_state = random_state
        self.progress = progress

    def fit(
        self, X: Any, y: ArrayLike, *, classes: Sequence[Any], public_points_known: Any = None
    ) -> Self:
        """Reserve both parts, and begin the first.

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
        # Checks by public numbers come first, then the account is asked, then what an earlier fit
        # kept is compared; only then the first part trains and reserves.
        warn_inside_sklearn(alone=self.ledger is None)
        same = public_points_known is X
        names = declared_classes(classes)
        refuse_more_classes(names)
        hypotheses = self._checked_hypotheses()
        points = check_points(X, None)
        index = class_indices(y, names, len(points))
        if public_points_known is None:
            known = None
            split = self._budget_split(hypotheses, len(points))
            n_cover = split.n_first
        else:
            known = check_points(public_points_known, points.shape[1])
            split = BudgetSplit.all_to_endless(required_budget(self.budget))
            n_cover = len(known)
        if self.n_cover is not None:
            n_cover = min(n_cover, self.n_cover)
        check_class_size(hypotheses, n_cover, points.shape[1], self.relation)
        if isinstance(hypotheses, FiniteClass):
            # foreign members meet all records once: a machine that fails at one does so unpaid
            hypotheses.dichotomies(points)
        account = self._open_account()
        refuse_private_points(points, known, same=same)
        lasting = self.vault is not None and account.durable
        folder = self._reservation_folder() if lasting else None
        about = self._plan_description(hypotheses, names, points.shape[1], split, account)
        self._check_room(account, split)
        _check_same(folder, about)
        session = None
        if split.first is not None:
            session = self._first_part(split, account).fit(points, y, classes=names).session_
        records: PrivateRecords | None = PrivateRecords(points, index)
        if folder is not None and records is not None:
            # The records before the file that names the reservation: who finds it can go on.
            drawn = account.entry(endless_request(self.request))
            if drawn is None or not drawn.parts:
                records.keep(make_vault(folder))
            keep_secret(folder / _ABOUT, json.dumps(about).encode())
            records = None
        self._begin_run(hypotheses, about, session, account, records, folder)
        if known is not None:
            self._draw_at_once(known)
        return self

    def reopen(self) -> Self:
        """Go on after a restart with what a `fit` with this vault and this request reserved,
        without the data.

        Raises
        ------
        ParameterError
            If the labeler has no vault, or other settings than that fit.
        DataError
            If the vault holds no such reservation.
        LedgerError
            If the ledger is not where it was, or does not fit the vault.
        """
        if self.vault is None:
            raise ParameterError(
                Parameter("vault"), " is None; give the vault that the first fit was given."
            )
        hypotheses, folder = self._checked_hypotheses(), self._reservation_folder()
        content = read_secret(folder / _ABOUT, largest=LARGEST_JSON)
        if content is None:
            raise DataError(
                f"The vault {self.vault} holds no universal labeler {self.request!r}; call fit."
            )
        about = _about_of(content)
        if about is None:
            raise DataError(f"{folder / _ABOUT} is damaged; put the vault back as it was.")
        # Other hypotheses or another seed would find another function under the number that was
        # drawn, so settings are compared before the ledger is opened.
        split, settings = BudgetSplit.from_description(about["split"]), about["settings"]
        if settings != self._fixed_settings(hypotheses):
            given = ", ".join(f"{key}={value}" for key, value in settings.items())
            raise ParameterError(
                f"{self.request!r} was begun with other settings; give the same: {given}."
            )
        account = Ledger.open_existing(about["ledger"])
        session = None
        if split.first is not None:
            session = self._first_part(split, account).reopen().session_
        self._begin_run(hypotheses, about, session, account, None, folder)
        return self

    @property
    def left(self) -> float:
        """Questions that may still be asked: infinity, before the switch too, since both parts
        are paid for."""
        self._begun_run()
        return math.inf

    @property
    def used(self) -> int:
        """Questions that the first part has answered, abstentions included; repeated ones count
        once."""
        return self._begun_run().used

    @property
    def until_switch(self) -> int:
        """Questions that the first part may still answer; 0 when the hypothesis has taken over,
        or will now."""
        return self._begun_run().until_switch

    @property
    def student_(self) -> HypothesisStudent:
        """The hypothesis that answers from now on, as a fitted classifier, to be published.

        Raises
        ------
        AttributeError
            If it was not drawn yet.
        """
        run = self._begun_run()
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
        answers = self.ask_many(single_point(x))
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
        return self._begun_run().ask_many(check_points(X, self.n_features_in_))

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
        return self._begun_run().released(check_points(X, self.n_features_in_))

    def describe(self) -> dict[str, Any]:
        """Return split and progress as JSON values; public."""
        run = self._begun_run()
        hypothesis = None if run.endless is None else run.endless.hypothesis.describe()
        state = {"used": run.used, "until_switch": run.until_switch, "hypothesis": hypothesis}
        return {"split": self.split_.describe(), **state}

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        shown = str(super().__repr__(N_CHAR_MAX))
        return f"{shown}: {self.split_}" if hasattr(self, "split_") else shown

    def _begun_run(self) -> UniversalRun:
        check_is_fitted(self, "run_")
        run: UniversalRun = self.run_
        return run

    def _begin_run(
        self,
        hypotheses: HypothesisClass,
        about: dict[str, Any],
        session: LabelingSession | None,
        account: Ledger,
        records: PrivateRecords | None,
        folder: Path | None,
    ) -> None:
        """Reserve the second part, or find it."""
        # From what is kept rather than from the parameters, so that a fit and a reopening agree.
        names, width = list(about["classes"]), int(about["n_features"])
        split = BudgetSplit.from_description(about["split"])
        terms = UniversalTerms(
            hypotheses,
            names,
            width,
            split,
            n_cover=self.n_cover,
            random_state=self.random_state or 0,
            relation=self.relation,
            request=self.request,
            purpose=self.purpose,
        )
        self.run_ = UniversalRun(terms, session, account, records, folder)
        self.split_, self.classes_, self.n_features_in_ = split, names, width

    def _draw_at_once(self, known: FloatArray) -> None:
        """Draw by points that are known beforehand, of which the ledger keeps those that make
        the class finite."""
        cover = known[random_rows(len(known), self.n_cover, self.random_state)]
        if self.run_.endless is None:
            self.run_.switch(cover)
        elif not np.array_equal(self.run_.endless.points, cover):
            raise ParameterError(
                f"{self.request!r} was drawn by other public points; give the same, or another"
                " request, which is a new charge. Nothing was spent."
            )

    def _checked_hypotheses(self) -> HypothesisClass:
        if not isinstance(self.hypotheses, HypothesisClass):
            raise ParameterError(
                Parameter("hypotheses"),
                f" is a {type(self.hypotheses).__name__}; give a HypothesisClass, such as"
                " Thresholds().",
            )
        check_choice("relation", self.relation, RELATIONS)
        for name in ("n_first", "n_cover", "n_queries"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        return self.hypotheses

    def _budget_split(self, hypotheses: HypothesisClass, n_records: int) -> BudgetSplit:
        """Return what each part may cost, from public numbers alone."""
        d = max(1, hypotheses.vc_dimension)
        n_first = (
            public_points_needed(d, self.alpha, self.beta) if self.n_first is None else self.n_first
        )

        def planned(budget: PrivacyBudget) -> tuple[Sampled, int]:
            return agnostic_terms(
                budget,
                n_first,
                alpha=self.alpha,
                beta=self.beta,
                # public under replace-one alone
                n_records=n_records if self.relation == "replace-one" else None,
                relation=self.relation,
                relabel_epsilon=self.relabel_epsilon,
                max_abstentions=self.max_abstentions,
                n_teachers=self.n_teachers,
                calibration=self.calibration,
            )

        return split_budget(
            required_budget(self.budget),
            planned,
            d,
            n_first,
            n_queries=self.n_queries,
            epsilon_share=self.epsilon_share,
        )

    def _first_part(self, split: BudgetSplit, account: Ledger) -> FirstPart:
        return FirstPart.of(
            split, self.get_params(deep=False), request=first_request(self.request), ledger=account
        )

    def _open_account(self) -> Ledger:
        """Return the account that pays for both parts."""
        check_keeping(self.ledger, self.vault, None)
        check_name("request", self.request, longest=_LONGEST_REQUEST)
        account = account_of_fit(
            self.ledger, required_budget(self.budget), unit="record", relation=self.relation
        )
        if account.composition != "basic":
            raise ParameterError(
                f"The ledger composes by {account.composition!r}, which does not add two prices"
                " up; give one with the composition 'basic'. Nothing was spent."
            )
        return account

    def _check_room(self, account: Ledger, split: BudgetSplit) -> None:
        """Refuse two parts of which the ledger would take only the first."""
        # What was reserved before needs no room any more.
        requests = first_request(self.request), endless_request(self.request)
        if any(account.entry(request) is not None for request in requests):
            return
        remaining, delta = account.remaining(), 0.0 if split.first is None else split.total.delta
        if not (remaining.epsilon >= split.total.epsilon and remaining.delta >= delta):
            raise BudgetError(
                f"Both parts cost epsilon {split.total.epsilon:g}, delta {delta:g}, and the ledger"
                f" of {account.dataset!r} has ({remaining.epsilon:g}, {remaining.delta:g}) left;"
                " ask for less. Nothing was spent."
            )

    def _fixed_settings(self, hypotheses: HypothesisClass) -> dict[str, Any]:
        """Return what must be the same whenever the reservation is taken up."""
        return {
            "hypotheses": f"{hypotheses.name} {joblib.hash(hypotheses)}",
            "relation": self.relation,
            "n_public": self.n_cover,
            "random_state": self.random_state or 0,
        }

    def _plan_description(
        self,
        hypotheses: HypothesisClass,
        names: list[Any],
        n_features: int,
        split: BudgetSplit,
        account: Ledger,
    ) -> dict[str, Any]:
        return {
            "settings": self._fixed_settings(hypotheses),
            "classes": names,
            "n_features": n_features,
            "split": split.describe(),
            "ledger": str(account.place),
        }

    def _reservation_folder(self) -> Path:
        """Return where this reservation is kept in the vault."""
        assert self.vault is not None
        return reservation_folder(self.vault, self.request)


_KEPT = {"settings": dict, "classes": list, "n_features": int, "split": dict, "ledger": str}
_SPLIT = ("epsilon", "delta", "first_epsilon", "endless_epsilon", "first_questions")


def _about_of(content: bytes) -> dict[str, Any] | None:
    """Return what a reservation was begun with, None where that is damaged."""
    about = json_fields(content, _KEPT)
    if about is None or len(about["classes"]) != 2 or not about["n_features"] >= 1:
        return None
    if not all(type(about["split"].get(name)) in (int, float) for name in _SPLIT):
        return None
    with contextlib.suppress(ParameterError, LookupError):
        BudgetSplit.from_description(about["split"])
        return about
    return None


_LONGEST_REQUEST = 180  # characters; both parts have longer keys made of it


def _check_same(folder: Path | None, about: dict[str, Any]) -> None:
    """Refuse to go on with a reservation that was begun with other settings."""
    content = None if folder is None else read_secret(folder / _ABOUT, largest=LARGEST_JSON)
    if folder is None or content is None:
        return
    kept = _about_of(content)
    if kept is None:
        raise DataError(
            f"{folder / _ABOUT} is damaged; put the vault back as it was. Nothing was spent."
        )
    # through JSON, as the kept settings went
    if kept != json.loads(json.dumps(about)):
        raise ParameterError(
            f"The vault {folder} holds a reservation of this request with other settings; give the"
            " same, or another request, which is a new charge. Nothing was spent."
        )
