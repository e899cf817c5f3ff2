"""The agnostic labeler: noisy labels, answered as if they had none (Nandi and Bassily 2020,
Algorithm 3)."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import RELATIONS, check_choice
from secretballot.accounting import PrivacyBudget, Sampled, Totals, filter_for
from secretballot.accounting.stream_recipes import check_answerable, stream_mechanism
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import RelabelledSample
from secretballot.exceptions import BudgetError, DataError
from secretballot.hypotheses import HypothesisClass
from secretballot.hypotheses.finite import check_answers
from secretballot.hypotheses.points import check_points
from secretballot.learners.labelers.agnostic_sizes import agnostic_terms
from secretballot.learners.labelers.base import Labeler
from secretballot.learners.labelers.relabel import check_class, relabel
from secretballot.learners.labelers.session import LabelingSession
from secretballot.learners.labelers.subsample import sample_in_random_order, sample_independently
from secretballot.learners.training.account import required_budget
from secretballot.learners.training.inputs import (
    class_indices,
    declared_classes,
    dummy_rows,
    refuse_more_classes,
)
from secretballot.learners.training.shards import assign_shards
from secretballot.learners.training.surroundings import warn_inside_sklearn
from secretballot.learners.training.trained import TrainedTeachers, keep_teachers, template_of
from secretballot.learners.training.trial_fit import check_teacher
from secretballot.students import HypothesisStudent
from secretballot.teachers.ensemble import TeacherEnsemble
from secretballot.teachers.executors import LOCAL, check_engine

_DUMMY_ROWS = 60


class AgnosticLabeler(Labeler):
    """Answer questions about two classes nearly as well as the best hypothesis of a class.

    A secret random part of the records is relabelled by a hypothesis that fits it well, dealt out
    to teachers, and the teachers, which now agree on nearly every point, answer by the sparse
    vector: the vote where it is stable, no answer elsewhere, until the T-th time.

    Parameters
    ----------
    hypotheses : HypothesisClass
        Public; labels 0 and 1 stand for ``classes[0]`` and ``classes[1]``.
    teacher : classifier, optional
        Cloned for every shard; by default the search of the class for the hypothesis with the
        fewest mistakes, which finds one without any on a relabelled shard.
    budget : PrivacyBudget
        For all questions together, with delta above 0.
    n_queries : int
        Number m of questions.
    alpha : float, default 0.1
        Error wanted beyond that of the best hypothesis; it sets the number of abstentions, and no
        other number.
    beta : float, default 0.05
        Probability of failure that the number of abstentions allows for.
    max_abstentions : int, optional
        Number T of abstentions at which the stream stops; by default from `alpha`.
    n_teachers : int, optional
        Number K of shards; by default so many that a lead of K / 3 is answered.
    calibration : {"tight", "paper"}, default "tight"
        "tight": the largest sample that the budget allows, and the least noise. "paper": the
        printed constants, for comparison; certified up to epsilon 56, where they sample everybody,
        and refused where their price is not.
    relation : {"add-remove", "replace-one"}, default "add-remove"
        Relation that the promise is about. "replace-one" is the paper's, and makes the number of
        records public; under "add-remove", a weaker promise, a sample more than three times as
        large costs the same.
    relabel_epsilon : float, default 1.0
        Parameter of the relabelling, in nats; its price is part of the whole.
    ledger : Ledger, optional
        Account of the private records; without one the fit keeps an account of its own, in memory.
    vault : path, optional
        Secret folder. With one, and a ledger that is a file, the reservation outlives the process:
        the same `fit`, or `reopen`, goes on with it.
    request : str, default "agnostic"
        Key of the reservation in ledger and vault; another key is another sample and another
        charge.
    purpose : str
        Why, in a few words; public.
    n_jobs, engine, random_state, progress
        As for `PATEClassifier`; `random_state` is for the teachers, never for sample, labels or
        noise.

    Attributes
    ----------
    n_teachers_, max_abstentions_ : int
        Numbers that were settled.
    sampling_rate_ : float
        Share of the records that the sample takes, in expectation.
    session_ : LabelingSession

    Privacy
    -------
    Unit : one record.
    Relation : `relation`.
    Sensitivity : one record of the sample reaches one teacher, hence one vote; the relabelling
        changes with all records and is paid for by what follows it.
    Price : that of all questions, reserved by `fit`: the sparse vector's, relabelled, amplified by
        sampling. It needs the sample to stay secret and to serve this one reservation.
    Source : Nandi and Bassily 2020, Algorithms 1 to 3 and Lemma 3.4; without the resampling of line
        4, which would only put a record before several teachers. Proofs in
        docs/explanation/prices.md.
    Rounding : upward.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(20_000, 1))
    >>> labeler = sb.AgnosticLabeler(
    ...     sb.hypotheses.Thresholds(), budget=sb.PrivacyBudget(2.0, 1e-5), n_queries=20,
    ...     max_abstentions=1, n_teachers=200, relation="replace-one")
    >>> labeler = labeler.fit(X, np.where(X[:, 0] > 0.5, "yes", "no"), classes=["no", "yes"])
    >>> labeler.ask([0.9]).label in ("no", "yes", None), labeler.planned
    (True, 20)
    """

    def __init__(
        self,
        hypotheses: HypothesisClass | None = None,
        teacher: Any = None,
        *,
        budget: PrivacyBudget | None = None,
        n_queries: int = 1000,
        alpha: float = 0.1,
        beta: float = 0.05,
        max_abstentions: int | None = None,
        n_teachers: int | None = None,
        calibration: str = "tight",
        relation: str = "add-remove",
        relabel_epsilon: float = 1.0,
        ledger: Ledger | None = None,
        vault: str | Path | None = None,
        request: str = "agnostic",
        purpose: str = "",
        n_jobs: int | None = None,
        engine: Any = LOCAL,
        random_state: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.hypotheses = hypotheses
        self.teacher = teacher
        self.budget = budget
        self.n_queries = n_queries
        self.alpha = alpha
        self.beta = beta
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

    def fit(self, X: Any, y: ArrayLike, *, classes: Sequence[Any]) -> Self:
        """Sample, relabel, train the teachers, and reserve the questions.

        Parameters
        ----------
        X : array of shape (n_records, n_features)
            Private; numbers.
        y : array of shape (n_records,)
            Private labels, each one of `classes`.
        classes : sequence of two values
            Public; never inferred from the private labels.

        Raises
        ------
        ParameterError, DataError
            If something does not fit; nothing was spent.
        BudgetError
            If the ledger does not admit the price; nothing was spent.
        """
        # Everything that follows from public numbers comes first, and is refused first: an error
        # after the sample was drawn could tell of the sample.
        warn_inside_sklearn(alone=self.ledger is None)
        budget, names = required_budget(self.budget), declared_classes(classes)
        refuse_more_classes(names)
        check_choice("relation", self.relation, RELATIONS)
        check_engine(self.engine, self.n_jobs)
        points = check_points(X, None)
        index = class_indices(y, names, len(points))
        event, n_teachers = agnostic_terms(
            budget,
            self.n_queries,
            alpha=self.alpha,
            beta=self.beta,
            n_records=len(points) if self.relation == "replace-one" else None,
            relation=self.relation,
            relabel_epsilon=self.relabel_epsilon,
            max_abstentions=self.max_abstentions,
            n_teachers=self.n_teachers,
            calibration=self.calibration,
        )
        mechanism = RelabelledSample(stream=stream_mechanism(event.stream, n_teachers))
        check_answerable(mechanism, n_teachers)
        teacher = self._checked_teacher(points)
        ledger = self._open_account("record", self.relation)
        self._refuse_divergence(ledger, event, budget)
        teachers = self._sampled_teachers(teacher, points, index, names, event, n_teachers, ledger)
        # The session pays, so that nothing is spent where training failed.
        self.session_ = LabelingSession(
            teachers,
            mechanism,
            ledger,
            budget,
            n_queries=self.n_queries,
            request=self.request,
            purpose=self.purpose,
        )
        self.n_teachers_, self.max_abstentions_ = n_teachers, mechanism.stops_at
        self.sampling_rate_ = event.rate
        return self

    def _checked_teacher(self, points: FloatArray) -> Any:
        """Return the learner to clone, after class and learner were tried on dummy points."""
        check_class(self.hypotheses)
        assert self.hypotheses is not None
        dummies = dummy_rows(points, _DUMMY_ROWS)
        check_answers(self.hypotheses, dummies)
        self.hypotheses.erm(dummies, np.arange(_DUMMY_ROWS) % 2)
        learner = HypothesisStudent(self.hypotheses) if self.teacher is None else self.teacher
        return check_teacher(learner, points, dummies, 2)

    def _refuse_divergence(self, ledger: Ledger, event: Sampled, budget: PrivacyBudget) -> None:
        """Refuse, with the reason, an account by divergences that has no room even when empty."""
        if ledger.composition != "renyi" or ledger.entry(self.request) is not None:
            return
        whole = filter_for("renyi", ledger.budget)
        if not whole.admits(Totals(), (event,), budget):
            raise BudgetError(
                "The ledger adds up Renyi divergences, by which a sample costs as much as all"
                f" records would, more than epsilon {ledger.budget.epsilon:g} here; use a ledger"
                " with the basic composition. Nothing was spent."
            )

    def _sampled_teachers(
        self,
        teacher: Any,
        points: FloatArray,
        index: IntArray,
        names: list[Any],
        event: Sampled,
        n_teachers: int,
        ledger: Ledger,
    ) -> TrainedTeachers:
        """Return teachers of a relabelled sample, drawn now or kept from the same reservation."""
        # without a ledger that lasts a later reservation could not know of this one, and must not
        # meet the same sample
        place = self._own_vault() if ledger.durable else None
        identity: tuple[str, ...] = ()
        if place is not None:
            settings = event.model_dump(mode="json"), self.n_queries
            terms = [*settings, n_teachers, self.random_state or 0, self.request]
            parts = _part_digests(teacher, self.hypotheses, points, index, names)
            identity = (*parts, json.dumps(terms))
        return keep_teachers(
            place,
            lambda: self._train_on_sample(teacher, points, index, event, n_teachers),
            identity,
            tuple(names),
            self._public_declaration(event),
            template_of(points),
            self.random_state or 0,
        )

    def _train_on_sample(
        self,
        teacher: Any,
        points: FloatArray,
        index: IntArray,
        event: Sampled,
        n_teachers: int,
    ) -> TeacherEnsemble:
        """Sample, relabel, deal out, train; what was sampled is forgotten on return."""
        # Under replace-one the place in the random order of the sample decides on the shard; under
        # add-remove a random number of the record itself does, drawn whether or not it is sampled,
        # so that no other record has a say in either.
        if self.relation == "replace-one":
            rows = sample_in_random_order(event.out_of, event.sampled)
            shards = assign_shards(len(rows), n_teachers, self.relation, None, None)
        else:
            rows = sample_independently(len(points), event.sampled, event.out_of)
            shards = assign_shards(len(points), n_teachers, self.relation, None, None)[rows]
        sample, labels = points[rows], index[rows]
        if len(rows):  # under add-remove a sample may be empty, and an error would tell
            assert self.hypotheses is not None
            labels = relabel(sample, labels, self.hypotheses, relabel_epsilon=self.relabel_epsilon)
        return TeacherEnsemble.fit(
            teacher,
            sample,
            labels,
            shards,
            n_teachers=n_teachers,
            n_classes=2,
            n_jobs=self.n_jobs,
            engine=self.engine,
            random_state=self.random_state or 0,
            progress=self.progress,
        )

    def _public_declaration(self, event: Sampled) -> dict[str, object]:
        # All of this stands on the certificate. Under add-remove neither the number of records nor
        # that of the sample may be told: both are private.
        if self.relation == "replace-one":
            drawn = (
                f"{event.sampled} of the {event.out_of} records, drawn without replacement in"
                " random order"
            )
            told = ["The number of records, and how many of them were sampled; not which."]
        else:
            drawn = f"each record by itself with probability {event.sampled} / {event.out_of}"
            told = [
                "The rate of sampling; neither how many records there are nor how many were"
                " sampled."
            ]
        return {
            "unit": "record",
            "unit_column": None,
            "relation": self.relation,
            "sample": {
                **event.model_dump(include={"sampled", "out_of", "relabel_epsilon"}),
                "request": self.request,
            },
            "assumptions": [
                (
                    f"The teachers learned from a random sample, {drawn}, for this reservation"
                    " alone; the sample is secret and was not kept."
                ),
                (
                    "The sample was relabelled by one labelling of a public class of hypotheses,"
                    " drawn by the exponential mechanism with the parameter"
                    f" {event.relabel_epsilon:g}, before it was dealt out to the teachers."
                ),
            ],
            "not_protected": told,
        }


def _part_digests(*parts: Any) -> list[str]:
    """Return a digest of each part; apart, since joblib's of several depends on which of them share
    objects.

    Raises
    ------
    DataError
        If one cannot be pickled, so that a vault would not know it again.
    """
    try:
        return [str(joblib.hash(part)) for part in parts]
    except Exception:  # pickling runs code of the learner, which may raise anything
        raise DataError(
            "The teacher or the hypotheses cannot be pickled, so they cannot be kept in a vault;"
            " leave the vault out, or use others. Nothing was spent."
        ) from None
