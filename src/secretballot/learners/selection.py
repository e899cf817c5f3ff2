"""The semi-private learner, and the private choice among candidates: one of a class that public
points make finite, or of a list, by all records, with its certificate."""

import sys
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import sklearn

from secretballot._seeded import own_global_states
from secretballot._typing import AnyArray, IntArray, Json, JsonView
from secretballot._validation import refusal
from secretballot.core.ledger import Ledger
from secretballot.core.private import Scores
from secretballot.core.releasing import Released
from secretballot.core.types import Guarantee
from secretballot.data.stored import StoredTable
from secretballot.exceptions import ParameterError
from secretballot.foreign_code import each_alone, isolated, one_thread
from secretballot.hypotheses import (
    Dichotomies,
    FiniteClass,
    HypothesisClass,
    IntervalDichotomies,
    hypotheses_by_name,
)
from secretballot.learners.inputs import (
    Target,
    class_indices,
    doubles_digest,
    example_rows,
    n_columns,
    object_array,
    random_rows,
    refuse_more_classes,
)
from secretballot.learners.learner import ClassLearner, Given, Task
from secretballot.released import ReleasedLabels
from secretballot.releasing import check_ledger, check_one_account, choose_by_scores
from secretballot.report.certificate import certificate_of, describe_released
from secretballot.students import HypothesisStudent
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.votes import guarantee_of

_SAMPLE_ROWS = 40
_INDEPENDENT = (
    "The candidates depend on the held-out records by nothing that was not paid for, and each"
    " predicts a row from that row alone."
)


def chosen_release(
    choice: Released,
    labels: IntArray,
    rows: IntArray,
    classes: Sequence[Any],
    *,
    about: JsonView,
    declaration: JsonView,
    choices: Sequence[JsonView] = (),
) -> ReleasedLabels:
    """Return the choice as a release; the chosen model's labels of public points cost nothing more.

    Parameters
    ----------
    choice : Released
        A choice by scores, drawn and paid for.
    labels : ndarray of int64, shape (l,)
        Class of each public point, by the chosen model, as an index into `classes`.
    rows : ndarray of int64, shape (l,)
        Rows of the public points.
    classes : sequence
    about : mapping
        What the candidates are, as JSON values; for the certificate.
    declaration, choices
        For the certificate, as for `certificate_of`.

    Privacy
    -------
    Unit, relation, price : those of the choice. Labels of public points by a model that depends on
        nothing else private are post-processing.
    """
    document = certificate_of(
        choice,
        describe_released(rows, labels, classes, 0) | {"values": choice.values.tolist()},
        follows=about,
        declaration=declaration,
        choices=choices,
    )
    return ReleasedLabels(rows, labels, tuple(classes), 0, certificate=document)


def _releases_behind(models: Sequence[Any], task: Task) -> list[Json]:
    """Return the releases that candidates say they were learnt from, as a certificate lists them,
    each reservation once: which one is published depends on all of them.

    Raises
    ------
    ParameterError
        If one is of another account, or of another unit or relation; nothing was spent.
    """
    entries: dict[int, Json] = {}
    terms = task.account.account_terms()
    for released in (getattr(model, "released_", None) for model in models):
        if not isinstance(released, ReleasedLabels):
            continue
        document = released.certificate
        made = guarantee_of(document["unit"], document["relation"])
        parts = [
            ("The choice", terms, task.guarantee),
            ("A candidate's release", document["composition"], made),
        ]
        for each in (task.guarantee, made):  # they are about the same unit
            check_one_account(parts, terms, each)
        own = {
            "purpose": "a release that a candidate was learnt from",
            **{name: document[name] for name in ("mechanism", "shape", "events")},
            "public": {"method": document["public"]["method"]},
            "epsilon": document["epsilon"],
            "delta": document["delta"],
            "labels_sha256": document["released"]["labels_sha256"],
            "reservation": document["composition"]["reservation"],
        }
        for entry in (own, *document.get("choices", ())):
            entries.setdefault(entry["reservation"], entry)
    return list(entries.values())


def _names_and_models(candidates: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return classifiers behind their names, which `choose_by_scores` wants distinct."""
    found = []
    for place, one in enumerate(candidates):
        name, model = one if isinstance(one, tuple) and len(one) == 2 else ("", one)
        found.append((name or f"{type(model).__name__} {place}", model))
    odd = [name for name, model in found if not hasattr(model, "predict")]
    if len(found) < 2 or odd:
        raise refusal(
            "candidates",
            f" has {len(found)} members, of which {odd} do not predict; give two or more fitted"
            " classifiers.",
        )
    return found


def _refuse_unfit_candidate(name: str, model: Any, points: Any, values: Sequence[Any]) -> None:
    """Refuse a candidate that cannot predict public points, or predicts one otherwise in other
    company.

    Raises
    ------
    ParameterError
        The points are public, so it may say what went wrong.
    """
    # Once on all points together and once on each alone: a candidate whose answer depends on the
    # company would let one record change the answers to all.
    every = np.arange(n_rows(points))
    try:
        with own_global_states(0):
            warnings.simplefilter("ignore")
            together, *each = (
                np.asarray(model.predict(take_rows(points, rows))).ravel().tolist()
                for rows in (every, *every[:, None])
            )
    except Exception as error:
        raise ParameterError(
            f"The candidate {name!r} cannot predict the public points ({type(error).__name__}:"
            f" {error}); fix it, or give X_public like its training data."
        ) from None
    fits = len(together) == len(every) and all(one in values for one in together)
    if not fits or together != [one for alone in each for one in alone]:
        raise ParameterError(
            f"The candidate {name!r} does not predict one of the classes for every public point, or"
            " predicts one otherwise alone than among others, so that one private record could"
            " change its answers to all; give a classifier that predicts row by row."
        )


def _right_units(model: Any, X: Any, truth: AnyArray, units: Any) -> int:
    """Return on how many units, whose rows are one after the other, a candidate is right: private.

    Privacy
    -------
    Sensitivity : 1, whatever the number of a unit's records: a unit counts once, if the candidate
        is right on more than half of them.
    """
    places, settings = np.arange(len(truth)), sklearn.get_config()
    groups = np.split(places, np.flatnonzero(np.diff(places if units is None else units)) + 1)

    def is_right(rows: IntArray) -> bool:
        with isolated(0, settings):
            said = np.asarray(model.predict(take_rows(X, rows)))
        if said.shape not in ((len(rows),), (len(rows), 1)):
            return False
        pairs = zip(said.ravel().tolist(), truth[rows].tolist(), strict=True)
        return 2 * sum(bool(one == true) for one, true in pairs) > len(rows)

    # Each unit in a call of its own: what a candidate remembers of one, or fails on, must not
    # change its answers to another.
    with one_thread():
        return sum(found is True for found in each_alone(is_right, groups))


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
        if self._listed:
            return target
        if isinstance(given.X, StoredTable):
            raise refusal(
                "X",
                " is read from disk block by block, where fitted classifiers alone are compared;"
                " give saved students, or a list of classifiers, as hypotheses, or one table that"
                " fits into memory. Nothing was spent.",
            )
        if isinstance(hypotheses_by_name(self.hypotheses, 1), FiniteClass):
            raise refusal("hypotheses", " is a FiniteClass; give the list of its estimators.")
        refuse_more_classes(target.classes)
        return target

    def _public_points(self, given: Given) -> Any:
        if self._listed and given.X_public is None:
            return example_rows(given.X, None, _SAMPLE_ROWS)
        return given.X_public

    def _release(self, task: Task) -> ReleasedLabels:
        rows = np.empty(0, dtype=np.int64)
        if task.given.X_public is not None:
            task.refuse_points()
            rows = random_rows(n_rows(task.points), self.n_cover, self.random_state)
        chosen = self._chosen_candidate if self._listed else self._chosen_hypothesis
        return chosen(task, rows)

    def _drawn(self, task: Task, scores: Any, n_candidates: int, why: str, **about: Any) -> int:
        """Draw one of the candidates, pay for it, and return its number."""
        self.n_candidates_ = n_candidates
        self.choice_ = choose_by_scores(
            scores,
            n_candidates,
            task.account,
            epsilon=task.budget.epsilon,
            classes=task.target.learnt,
            **task.named | {"purpose": task.given.purpose or why} | about,
        )
        return int(self.choice_.values.item())

    def _taught(self, points: Any) -> Any:
        student = self.student_
        if isinstance(student, HypothesisStudent) and hasattr(self, "feature_names_in_"):
            student.feature_names_in_ = self.feature_names_in_
        return student

    def _chosen_hypothesis(self, task: Task, rows: IntArray) -> ReleasedLabels:
        """Draw one labelling of the public points, and take its representative."""
        # Candidates follow from public points alone; private records only count mistakes. So the
        # number that is drawn names the same function to everybody who has these points.
        names, width = task.target.learnt, n_columns(task.points)
        hypotheses = hypotheses_by_name(self.hypotheses, width)
        points = take_rows(task.points, rows)
        dichotomies, points = hypotheses.dichotomies(points), np.asarray(points)

        def scores() -> Scores:
            [block] = task.table.one_of_each_unit(sys.maxsize)
            records = np.asarray(block.rows)
            return private_scores(dichotomies, records, block.targets, task.guarantee)

        why = f"which of {len(dichotomies)} {hypotheses.name} makes the fewest mistakes"
        about = {"hypotheses": hypotheses.name, "n_public": len(rows)}
        about["points_sha256"] = doubles_digest(points)
        index = self._drawn(task, scores, len(dichotomies), why, about=about)
        self.hypothesis_ = dichotomies.hypothesis(index)
        self.student_ = HypothesisStudent.of(self.hypothesis_, hypotheses, names, width)
        return chosen_release(
            self.choice_,
            self.hypothesis_.predict(points),
            rows,
            names,
            about={"hypothesis": self.hypothesis_.describe()},
            declaration=task.declaration,
        )

    def _chosen_candidate(self, task: Task, rows: IntArray) -> ReleasedLabels:
        """Draw one fitted classifier."""
        assert isinstance(self.hypotheses, list | tuple)
        candidates = _names_and_models(self.hypotheses)
        names, models = [name for name, _ in candidates], [model for _, model in candidates]
        classes, beside = task.target.learnt, _releases_behind(models, task)
        example = take_rows(task.points, np.arange(min(_SAMPLE_ROWS, n_rows(task.points))))
        for name, model in candidates:
            _refuse_unfit_candidate(name, model, example, classes)

        def scores() -> Scores:
            right = np.zeros(len(models), dtype=np.int64)
            with task.table.parts() as parts:
                for block in (load() for load in parts()):  # all records of a unit are in one
                    truth = object_array(classes)[block.targets]
                    right += [
                        _right_units(model, block.rows, truth, block.units) for model in models
                    ]
            return Scores.of_candidates(right, task.guarantee)

        why = f"which of {len(models)} candidates is right most often"
        declared = {**task.declaration, "assumptions": [_INDEPENDENT]}
        about = {"names": names, "beside": beside, "declaration": declared}
        index = self._drawn(task, scores, len(models), why, **about)
        chosen, labels = models[index], rows
        if len(rows):
            labels = class_indices(chosen.predict(take_rows(task.points, rows)), classes, len(rows))
        self.student_ = getattr(chosen, "student_", chosen)
        return chosen_release(
            self.choice_,
            labels,
            rows,
            classes,
            about={"chosen": names[index], "model": type(chosen).__name__},
            declaration=declared,
            choices=beside,
        )


def choose_candidate(
    candidates: Sequence[Any],
    X: Any,
    y: Any,
    *,
    epsilon: float,
    ledger: Ledger,
    relation: str = "add-remove",
    **given: Any,
) -> SemiPrivateClassifier:
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
    epsilon : float
        Price; pure, delta is 0.
    ledger : Ledger
        Account of the private dataset, the one that the candidates were paid from.
    relation : {"add-remove", "replace-one"}
        Relation that the promise is about.
    **given
        As for `SemiPrivateClassifier.fit`: `classes`, which are needed; `X_public`, which the
        chosen one labels, and on a few of which the candidates are tried before they meet private
        records (numeric arrays are tried on dummy rows without); `units`, of which one counts once
        for a candidate that is right on more than half of its records; `unit_name`, `request`, by
        which the same choice is the stored one and costs nothing, and `purpose`.

    Returns
    -------
    SemiPrivateClassifier
        Fitted: `student_` is what was chosen, and the certificate names it. Of the public points
        it says `released_`, whose certificate lists the releases that the candidates were learnt
        from, as far as they say so.

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
    >>> chosen.choice_.values.item() in (0, 1), ledger.spent().epsilon
    (True, 0.5)
    """
    check_ledger(ledger)
    chooser = SemiPrivateClassifier(
        list(candidates), epsilon=epsilon, relation=relation, ledger=ledger
    )
    return chooser.fit_labels(X, y, **given)


def private_scores(dichotomies: Dichotomies, X: Any, y: IntArray, guarantee: Guarantee) -> Scores:
    """Return the mistakes of every representative on private records, counted below 0; of intervals
    by their ends.

    Parameters
    ----------
    dichotomies : Dichotomies
        Of public points.
    X : array of shape (n, n_features)
        Private records, one for each unit.
    y : ndarray of 0 and 1, shape (n,)
    guarantee : Guarantee

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
        ends = dichotomies.prefix_mistakes_on(X, y)
        return Scores.of_ranges(*ends, guarantee)
    with isolated(0, sklearn.get_config()):
        mistakes = dichotomies.errors_on(X, y)
    return Scores.of_candidates(-mistakes, guarantee)
