"""The semi-private learner: one of a class that public points make finite, by all records."""

import math
import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import sklearn
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from secretballot._typing import IntArray
from secretballot._validation import check_probability
from secretballot.core.exponential import least_quotient
from secretballot.core.ledger import Ledger
from secretballot.core.private import Scores
from secretballot.data.stored import StoredTable
from secretballot.exceptions import Parameter, ParameterError
from secretballot.foreign_code import is_exact, isolated
from secretballot.hypotheses import (
    Dichotomies,
    FiniteClass,
    HypothesisClass,
    hypotheses_by_name,
)
from secretballot.hypotheses.intervals import IntervalDichotomies
from secretballot.learners.selection.candidates import (
    SAMPLE_ROWS,
    ChosenCandidate,
    certified,
    chosen_release,
    draw_candidate,
    names_and_models,
    refuse_other_accounts,
)
from secretballot.learners.training.inputs import (
    class_indices,
    example_rows,
    n_columns,
    random_rows,
    refuse_more_classes,
)
from secretballot.learners.training.learner import ClassLearner, Given, Task
from secretballot.learners.training.point_digests import doubles_digest
from secretballot.learners.training.targets import Target
from secretballot.released import ReleasedLabels
from secretballot.releasing import check_ledger, choose_by_scores
from secretballot.students import HypothesisStudent
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.votes import guarantee_of


# scikit-learn ships no types
@dataclass(eq=False, repr=False)
class SemiPrivateClassifier(ClassLearner):
    """Choose a classifier by its mistakes on all private records, from a class made finite.

    The labellings that the class gives to the public points are its candidates, each by one
    representative that follows from these points alone; a private choice draws one by the
    mistakes on the private records. No record is held back and none is cut off into a shard, so for
    small classes this is the most accurate learner there is here.

    Parameters
    ----------
    hypotheses : str, HypothesisClass, or list of classifiers or of (name, classifier)
        A class distinguishes two classes: "stumps" (on all columns, the default), "thresholds",
        "intervals", or one of `secretballot.hypotheses`. A list has two or more fitted classifiers:
        made from public data, or learnt from releases that are in the same ledger. Any number of
        classes.
    epsilon : float
        Price of a fit; its delta is 0.
    n_cover : int, optional
        How many public points make the class finite, chosen at random with `random_state`; by
        default all. Points cost accuracy where they are few and time where they are many, never
        privacy (`public_points_needed`).
    relation : {"add-remove", "replace-one"}, default "add-remove"
        Relation that the promise is about.
    ledger : Ledger, optional
        Account of the private dataset. Without one the fit keeps an account of its own, in memory:
        then adding up several fits on the same data is up to you.
    random_state : int, optional
        Public seed of the choice of public points; None is 0. Never of the noise.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    student_ : the chosen classifier, to be published
    hypothesis_ : Hypothesis
        What was chosen of a class of hypotheses; says 1 for ``classes_[1]``.
    choice_ : Released
        The draw.
    released_ : ReleasedLabels
        What was released, as the labels that the chosen one gives to the public points.
    certificate_ : dict
        What may be shown to a stranger.
    n_candidates_ : int
        How many there were to choose from; public.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record, or all records of one id where `units` is given.
    Relation : add or remove one unit: all numbers of mistakes rise, scale 1 / epsilon. Or replace
        one record in place: some rise and some fall, scale 2 / epsilon.
    Sensitivity : 1 mistake for each candidate. Of the records of an id, a class of hypotheses
        counts one (`one_record_each`); for a list the id counts once, by the majority of its
        records.
    Price : (`epsilon`, 0), composed in `ledger` with everything else released from the same data.
    Source : Nandi and Bassily 2020, Algorithm 7 (Alon, Bassily, Moran 2019); differences 8:
    mistakes are counted, never
        divided by a private number of records, and representatives never looked up with private
        data.
    Rounding : upward; the draw is exact, in integers.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(2000, 1))
    >>> model = sb.SemiPrivateClassifier("thresholds", epsilon=1.0)
    >>> model = model.fit(
    ...     X, (X[:, 0] > 0.5).astype(int), X_public=np.linspace(0, 1, 21)[:, None], classes=[0, 1])
    >>> model.predict([[0.0], [1.0]]).tolist(), model.n_candidates_, model.certificate_["epsilon"]
    ([0, 1], 42, 1.0)
    """

    #: A choice needs none.
    delta: ClassVar[float] = 0.0  # type: ignore[misc]
    _counted = ("n_cover",)

    hypotheses: str | HypothesisClass | Sequence[Any] = "stumps"
    _: KW_ONLY
    n_cover: int | None = None

    @property
    def _listed(self) -> bool:
        return isinstance(self.hypotheses, list | tuple)

    def _declared(self, given: Given) -> Target:
        target = super()._declared(given)
        if not self._listed:
            self._refuse_unfit_class(given, target)
        return target

    def _public_points(self, given: Given) -> Any:
        if self._listed and given.X_public is None:
            return example_rows(given.X, None, SAMPLE_ROWS)
        return given.X_public

    def _refuse_unfit_class(self, given: Given, target: Target) -> None:
        """Refuse what a class of hypotheses does not take."""
        if isinstance(given.X, StoredTable):
            raise ParameterError(
                Parameter("X"),
                " is a stored table, on which fitted classifiers alone are compared; give a list of"
                " them as hypotheses, or a table in memory.",
            )
        if isinstance(hypotheses_by_name(self.hypotheses, 1), FiniteClass):
            raise ParameterError(
                Parameter("hypotheses"), " is a FiniteClass; give the list of its estimators."
            )
        refuse_more_classes(target.classes)

    def _release(self, task: Task) -> ReleasedLabels:
        if task.given.X_public is not None:
            task.refuse_points()
        return self._chosen_candidate(task) if self._listed else self._chosen_hypothesis(task)

    def _taught(self, points: Any) -> Any:
        student = self.student_
        if isinstance(student, HypothesisStudent) and hasattr(self, "feature_names_in_"):
            student.feature_names_in_ = self.feature_names_in_
        return student

    def _chosen_hypothesis(self, task: Task) -> ReleasedLabels:
        """Draw one labelling of the public points, and take its representative."""
        # Candidates follow from public points alone; private records only count mistakes. So the
        # number that is drawn names the same function to everybody who has these points.
        names, table, width = task.target.learnt, task.table, n_columns(task.points)
        hypotheses = hypotheses_by_name(self.hypotheses, width)
        rows = random_rows(n_rows(task.points), self.n_cover, self.random_state)
        dichotomies = hypotheses.dichotomies(take_rows(task.points, rows))
        points = np.asarray(take_rows(task.points, rows))

        def scores() -> Scores:
            [block] = table.one_of_each_unit(sys.maxsize)
            records = np.asarray(block.rows)
            return private_scores(dichotomies, records, block.targets, table.unit, self.relation)

        why = f"which of {len(dichotomies)} {hypotheses.name} makes the fewest mistakes"
        choice = choose_by_scores(
            scores,
            len(dichotomies),
            task.account,
            epsilon=task.budget.epsilon,
            classes=names,
            about={
                "hypotheses": hypotheses.name,
                "n_public": len(rows),
                "points_sha256": doubles_digest(points),
            },
            **task.named | {"purpose": task.given.purpose or why},
        )
        self.hypothesis_ = dichotomies.hypothesis(choice.values.item())
        self.student_ = HypothesisStudent.of(self.hypothesis_, hypotheses, names, width)
        self.choice_, self.n_candidates_ = choice, len(dichotomies)
        return chosen_release(
            choice,
            self.hypothesis_.predict(points),
            rows,
            names,
            about={"hypothesis": self.hypothesis_.describe()},
            unit_column=table.unit_name,
        )

    def _chosen_candidate(self, task: Task) -> ReleasedLabels:
        """Draw one fitted classifier."""
        assert isinstance(self.hypotheses, list | tuple)
        names, models = names_and_models(self.hypotheses)
        refuse_other_accounts(models, task)
        choice, classes = draw_candidate(names, models, task), task.target.learnt
        index = choice.values.item()
        chosen = models[index]
        rows = labels = np.empty(0, dtype=np.int64)
        if task.given.X_public is not None:
            rows = random_rows(n_rows(task.points), self.n_cover, self.random_state)
            labels = class_indices(chosen.predict(take_rows(task.points, rows)), classes, len(rows))
        about = {"chosen": names[index], "model": type(chosen).__name__}
        own = chosen_release(
            choice, labels, rows, classes, about=about, unit_column=task.table.unit_name
        )
        self.student_ = getattr(chosen, "student_", chosen)
        self.choice_, self.n_candidates_ = choice, len(models)
        return certified(own, choice, models, index)

    def score_loss(self, beta: float) -> float:
        """Return how many more mistakes than the best candidate the chosen one makes, at most, but
        for `beta`.

        Parameters
        ----------
        beta : float
            Failure probability of the statement, over the draw.

        Returns
        -------
        float
            scale * log(n_candidates_ / beta), in private units; public, as it follows from public
            numbers.
        """
        check_is_fitted(self, "choice_")
        moved = 1 if self.relation == "add-remove" else 2
        # each candidate that falls short by more is drawn less often than beta / n_candidates
        chances = self.n_candidates_ / check_probability("beta", beta)
        return least_quotient(moved, self._budget.epsilon) * math.log(chances)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._listed
        return tags


def choose_candidate(
    candidates: Sequence[Any],
    X: Any,
    y: Any,
    *,
    classes: Sequence[Any] | None,
    epsilon: float,
    ledger: Ledger,
    X_public: Any = None,
    units: Any = None,
    unit_name: str | None = None,
    relation: str = "add-remove",
    request: str | None = None,
    purpose: str = "",
) -> ChosenCandidate:
    """Choose the candidate that is right most often on private records, or nearly so.

    It is drawn by permute-and-flip in an account of basic composition, else by the exponential
    mechanism.

    Parameters
    ----------
    candidates : sequence of classifiers, or of (name, classifier)
        Two or more, fitted. They may not depend on these records except through releases from the
        same ledger: see `hold_out`. What one was learnt from it says as ``released_``; set it where
        several students learnt from one release.
    X : array, sparse matrix or frame of shape (n_records, n_features)
        Private, held out.
    y : array of shape (n_records,)
        Private labels, each one of `classes`.
    classes : sequence of two or more values
        Public; never inferred from the private labels.
    epsilon : float
        Price; pure, delta is 0.
    ledger : Ledger
        Account of the private dataset, the one that the candidates were paid from.
    X_public : like X, of shape (n, n_features), optional
        Public points, which the chosen one labels. On a few of them the candidates are tried before
        they meet private records; they fix the types of the columns. Needed for frames; numeric
        arrays are tried on dummy rows without.
    units : array of shape (n_records,), optional
        Ids: a unit counts once for a candidate that is right on more than half of its records.
    unit_name : str, optional
        What the ids are, for the certificate.
    relation : {"add-remove", "replace-one"}
        Relation that the promise is about.
    request : str, optional
        Key in the ledger: the same choice under the same key is the stored one and costs nothing.
    purpose : str
        Why, in a few words; public.

    Returns
    -------
    ChosenCandidate

    Raises
    ------
    ParameterError, DataError
        If something does not fit, or a candidate cannot predict public points; nothing was spent.
    BudgetError, LedgerError
        As for `secretballot.release`.

    Privacy
    -------
    Unit : one record, or all records of one id where `units` is given.
    Relation : as declared.
    Sensitivity : 1 for every candidate. The records of every unit are predicted in a call of their
        own, so that nothing a candidate does with one unit, an exception included, changes its
        answers to another. A unit that a candidate fails on, or answers with anything but classes,
        counts as wrong for it.
    Price : (epsilon, 0), composed in `ledger` with everything else. That teachers and choice see
        different records is not made use of: the ledger adds up.
    Source : McSherry and Talwar 2007, Theorem 6; McKenna and Sheldon 2020, arXiv:2010.12603;
        differences 8 and 10.
    Rounding : upward.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = np.zeros((100, 1)), np.array([0, 1] * 50)
    >>> always = [DummyClassifier(strategy="constant", constant=label) for label in (0, 1)]
    >>> models = [model.fit(X, y) for model in always]
    >>> ledger = sb.Ledger.in_memory(dataset="example", budget=sb.PrivacyBudget(1.0, 1e-6))
    >>> chosen = sb.choose_candidate(models, X, y, classes=[0, 1], epsilon=0.5, ledger=ledger)
    >>> chosen.index in (0, 1), ledger.spent().epsilon
    (True, 0.5)
    """
    given = list(candidates)
    names, models = names_and_models(given)
    check_ledger(ledger)
    chooser = SemiPrivateClassifier(given, epsilon=epsilon, relation=relation, ledger=ledger)
    more = {"units": units, "unit_name": unit_name, "request": request, "purpose": purpose}
    chooser.fit_labels(X, y, X_public=X_public, classes=classes, **more)
    index = chooser.choice_.values.item()
    return ChosenCandidate(models[index], index, names[index], chooser.choice_, chooser.released_)


def private_scores(
    dichotomies: Dichotomies, X: Any, y: IntArray, unit: str, relation: str
) -> Scores:
    """Return the mistakes of every representative on private records, counted below 0; of intervals
    by their ends.

    Parameters
    ----------
    dichotomies : Dichotomies
        Of public points.
    X : array of shape (n, n_features)
        Private records, one for each unit.
    y : ndarray of 0 and 1, shape (n,)
    unit : {"record", "user"}
    relation : {"add-remove", "replace-one"}

    Raises
    ------
    ParameterError, DataError
        If there are too many labellings, or records do not fit; no value is named.

    Privacy
    -------
    Unit, sensitivity : one record makes at most one mistake under each representative, none of
        which depends on it.
    What the hypotheses do to the global states of the process while they see records is undone.
    """
    if isinstance(dichotomies, IntervalDichotomies):
        _, starts, ends = dichotomies.prefix_mistakes_on(X, y)
        return Scores.of_ranges(starts, ends, guarantee_of(unit, relation))
    with isolated(0, sklearn.get_config()):
        mistakes = (
            dichotomies.errors_on(X, y)
            if is_exact(dichotomies)
            else Dichotomies.errors_on(dichotomies, X, y)  # which asks record by record
        )
    return Scores.of_candidates(-mistakes, guarantee_of(unit, relation))
