"""How a run learns: what each method checks, asks, costs and fits, from its settings."""

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from secretballot._validation import (
    HYPOTHESES,
    STRATEGIES,
    check_choice,
    check_count,
    check_positive,
    check_positive_rate,
    name_part,
    shown,
)
from secretballot.accounting import WeakSignalWarning, noisy_votes, teacher_shape
from secretballot.accounting.gaussian import gaussian_mu
from secretballot.accounting.recipes import (
    Terms,
    deviation,
    right_chance,
    table_deviation,
    unanimous_chance,
)
from secretballot.accounting.stream_recipes import answer_chance, scale_of_stream
from secretballot.bases import Basis, KernelBasis
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import (
    AbstentionTable,
    ConfidentLabels,
    NoisyMeans,
    NoisyVotes,
    SparseVector,
    TableLabels,
    VoteQuantiles,
)
from secretballot.core.private import Votes
from secretballot.data.columns import IgnoredColumn, VectorColumn
from secretballot.data.reading import is_local_file
from secretballot.data.schema import Schema
from secretballot.data.sources import source_of
from secretballot.data.stored import StoredTable
from secretballot.data.vote_files import read_votes
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.moments.class_weights import checked_weights
from secretballot.learners.moments.estimators import RecordMomentsClassifier, RecordMomentsRegressor
from secretballot.learners.pate.classifier import PATEClassifier
from secretballot.learners.pate.defaults import choose_teachers, choose_terms
from secretballot.learners.pate.estimated_size import EstimatedSize
from secretballot.learners.pate.rounds import AskableRows
from secretballot.learners.pate.tables import PATEMultiLabelClassifier, PATERegressor
from secretballot.learners.record_votes import RecordVotesClassifier, default_votes
from secretballot.learners.selection.semi_private import SemiPrivateClassifier
from secretballot.learners.training.inputs import random_rows
from secretballot.learners.training.learner import Learner
from secretballot.learners.training.shards import check_positions
from secretballot.named_learners import regressor_by_name, teacher_by_name
from secretballot.publishing.job import (
    AskedInRounds,
    ChosenHypothesis,
    NamedStudent,
    ReleasedWeights,
    StudentSource,
)
from secretballot.queries import InRounds, strategy_by_name
from secretballot.released import ReleasedLabels, ReleasedSums
from secretballot.releasing import release
from secretballot.runs.caution import (
    cautions_of_ids,
    cautions_of_noise,
    cautions_of_records,
    note_careless_delta,
)
from secretballot.runs.choice import (
    chosen_file,
    class_by_name,
    note_other_accounts,
    saved_students,
    schema_beside,
)
from secretballot.runs.folder import RunFolder, file_digest
from secretballot.runs.progress import Caution, Watch, note_few_answers, public_warnings_noted
from secretballot.runs.quote import Quote
from secretballot.runs.spec import (
    CHOICE,
    MOMENTS,
    PATE,
    RECORD_VOTES,
    VOTES,
    DataSpec,
    MomentsSpec,
    RunSpec,
    named,
)
from secretballot.runs.student_file import check_converts
from secretballot.runs.tables import (
    RunInputs,
    cautions_of_targets,
    check_files,
    refuse_swapped,
    table_digests,
)
from secretballot.students.names import student_by_name, student_of_numbers
from secretballot.teachers.executors import LOCAL, check_engine
from secretballot.teachers.records import record_votes_shape
from secretballot.teachers.votes import checked_labels, checked_range, guarantee_of

DEFAULT_TEACHERS = 250
#: Share by which a number of rows may differ before a forecast is off by more than its range.
_FAR = 0.1
#: Margins at which it is said how often a label comes out right, in shares of the teachers.
_MARGINS = (0.2, 0.6, 1.0)
PASSIVE = "passive"
#: What the name of a mechanism sets of a learner, by the target.
_NAMED: dict[str, dict[str, dict[str, str]]] = {
    "class": {
        "auto": {},
        "labels": {"release": "labels"},
        "counts": {"release": "counts"},
        "vote-table": {"mechanism": "vote-table"},
        "laplace": {"mechanism": "laplace"},
        "sparse-vector": {"mechanism": "sparse-vector"},
        "abstention-table": {"mechanism": "abstention-table"},
        "confident": {"mechanism": "confident"},
        "interactive": {"mechanism": "interactive"},
    },
    "number": {"auto": {}, "mean": {"statistic": "mean"}, "quantile": {"statistic": "quantile"}},
    "labels": {
        "auto": {},
        "labels": {"release": "labels"},
        "counts": {"release": "counts"},
        "sets": {"ballot": "sets"},
    },
}
#: What may be set beside the name; whether the two fit the learner knows.
_BESIDE = {
    "class": ("release", "max_abstentions", "threshold", "max_answers"),
    "number": ("rank",),
    "labels": ("most_named", "release"),
}
_KINDS = {"class": "one of classes", "number": "a number", "labels": "several labels"}
#: What takes a delta of 0, by the target.
_PURE = {
    kind: f"; for a delta of 0 use method {PATE} with mechanism {name}"
    for kind, name in (("class", "laplace"), ("number", "quantile"))
}


@dataclass(frozen=True)
class Sizes:
    """Public numbers that noise and queries follow from.

    Attributes
    ----------
    n_public, n_classes, n_columns : int
        Public points; classes; columns of the tables once encoded.
    """

    n_public: int
    n_classes: int = 2
    n_columns: int = 1


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a method released, and what the files of the release are made of.

    Attributes
    ----------
    released : ReleasedLabels or ReleasedSums
    student : StudentSource or None
    asked : AskedInRounds or None
    """

    released: ReleasedLabels | ReleasedSums
    student: StudentSource | None
    asked: AskedInRounds | None = None


class Method:
    """A method of learning from tables, by the settings of a run."""

    step: ClassVar[str]
    targets: ClassVar[tuple[str, ...]] = ("class",)

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec

    @property
    def settings(self) -> Any:
        """The settings of this method."""
        return self.spec.method

    @property
    def kind(self) -> str:
        """What the target is."""
        return self.spec.data.kind

    @property
    def abstentions(self) -> str:
        """What a student makes of queries without an answer."""
        return "drop"

    @property
    def priced(self) -> bool:
        """Whether no estimate comes first, which is paid for by a part of the price."""
        return True

    def description(self) -> dict[str, Any]:
        """Return what shapes the result beside the settings: the digests of the files."""
        return table_digests(self.spec)

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        data, output = self.spec.data, self.spec.output
        if self.kind not in self.targets:
            raise ParameterError(
                Parameter("method"),
                f" is {self.settings.name}, which learns classes, and the target is"
                f" {_KINDS[self.kind]}; use {MOMENTS} or {PATE}.",
            )
        if self.kind == "number":
            checked_range(data.bounds)
        elif self.kind == "labels":
            checked_labels(data.target)
        if self.spec.budget.relation == "replace-one" and data.unit is not None:
            raise ParameterError(
                Parameter("unit"),
                " goes with relation add-remove only; leave one of the two out.",
            )
        if output.publish_metrics and output.evaluate is None:
            raise ParameterError(
                "There are no metrics to publish; name public labelled records with ",
                Parameter("evaluate"),
                ".",
            )
        check_files(self.spec)
        refuse_swapped(self.spec)

    def read(self, watch: Watch, vault: Path | None) -> Any:
        """Return the tables, read and checked."""
        return RunInputs(self.spec, watch, vault)

    def check_inputs(self, inputs: Any, watch: Watch) -> None:
        """Refuse settings that do not go with the tables."""
        spec, stated = self.spec, self.spec.data.n_records
        asked, n_public = getattr(self.settings, "n_queries", None), len(inputs.X_public)
        if isinstance(asked, int) and asked > n_public:
            raise ParameterError(
                Parameter("n_queries"),
                f" is {asked}, more than the {n_public} rows of the public file; ask for fewer.",
            )
        # public and exact under replace-one alone; elsewhere it refuses nothing
        if spec.budget.relation == "replace-one" and stated not in (None, inputs.n_private):
            raise DataError(
                "The private file has another number of rows than was stated, and under"
                " replace-one that number is public and exact; state the right one."
            )
        _note_forecast(spec, inputs, watch)
        if stated is None:
            note_careless_delta(spec.price, inputs.n_units, watch)
        check_converts(
            getattr(self.settings, "student", "auto"),
            inputs.X_public,
            inputs.schema,
            classes={"class": inputs.classes, "labels": (0, 1)}.get(self.kind, ()),
            without=spec.output.exclude,
        )

    def questions(self, inputs: Any, watch: Watch | None = None) -> Iterator[Caution]:
        """Yield what is to be asked once the tables are known."""
        yield from cautions_of_records(
            self.spec.price, self.spec.data.n_records, inputs.n_units, self.n_teachers(inputs)
        )
        yield from cautions_of_ids(inputs.repeating_ids)
        yield from cautions_of_targets(self.spec.data, inputs, watch)

    def n_teachers(self, inputs: Any) -> int | None:
        """Return the number of teachers, None of a method without any."""
        return None

    def sizes(self, inputs: Any) -> Sizes:
        """Return the public sizes of tables."""
        n_public, n_columns = inputs.X_public.shape
        return Sizes(n_public, len(inputs.classes) or 2, n_columns)

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        raise NotImplementedError

    def fit(self, inputs: Any, folder: RunFolder, ledger: Ledger, watch: Watch) -> Fitted:
        """Release, and return what came of it; the student is fitted elsewhere."""
        raise NotImplementedError

    def _quoted(self, released: str, noise: str, sigma: float, sizes: Sizes, **more: Any) -> Quote:
        return Quote(
            self.settings.name,
            self.spec.price.epsilon,
            self.spec.price.delta,
            self.spec.budget.relation,
            released,
            noise,
            sigma,
            sizes.n_public,
            **more,
        )

    def _of_fit(self, folder: RunFolder, ledger: Ledger) -> dict[str, Any]:
        """Return what every learner takes: the folder's key goes with it, so that a run that is
        taken up again is not paid twice."""
        return {
            "budget": self.spec.price,
            "relation": self.spec.budget.relation,
            "ledger": ledger,
            "request": folder.request,
            "purpose": self.spec.about.purpose or "learn",
            "random_state": self.settings.random_state,
        }

    def _needs_delta(self) -> None:
        if not self.spec.price.delta > 0:
            raise ParameterError(
                Parameter("delta"),
                f" is {self.spec.price.delta:g}, and method {self.settings.name} needs more, such"
                f" as 1e-6{_PURE.get(self.kind, '')}.",
            )


class Moments(Method):
    """Noisy sums over all records."""

    step = "Adding up records"
    targets = ("class", "number", "labels")

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        self._needs_delta()
        for name in ("student", "class_weight", "positive_rate"):
            given = getattr(self.settings, name)
            if self.kind != "class" and given not in ("auto", None):
                raise ParameterError(
                    name_part(name),
                    f" is {shown(given)}, and record moments of {_KINDS[self.kind]} publish the"
                    f" model itself; leave it out, or use method {PATE}.",
                )
        student_by_name(self.settings.student)
        super().check()

    def check_inputs(self, inputs: Any, watch: Watch) -> None:
        """Refuse settings that do not go with the tables."""
        super().check_inputs(inputs, watch)
        if self.settings.positive_rate is not None:
            check_positive_rate(self.settings.positive_rate, len(inputs.classes))
        checked_weights(weights_of_classes(self.settings, inputs.classes), inputs.classes)

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        self._needs_delta()
        price, n_stages = self.spec.price, RecordMomentsClassifier().n_stages
        # a record that is replaced moves a sum twice as far as one that comes or goes
        moved = 2 if self.spec.budget.relation == "replace-one" else 1
        sigma = moved * math.sqrt(n_stages) / gaussian_mu(price.epsilon, price.delta)
        return self._quoted(
            f"{n_stages} noisy sums over all records",
            f"of each sum {sigma:.3g} times what one record can move",
            sigma,
            sizes,
            can_be_planned=self.kind == "class",
        )

    def fit(self, inputs: Any, folder: RunFolder, ledger: Ledger, watch: Watch) -> Fitted:
        """Release, and return what came of it; the student is fitted elsewhere."""
        basis, common = basis_of_schema(inputs.schema), self._of_fit(folder, ledger)
        rate, student = self.settings.positive_rate, self.settings.student
        if self.kind == "number":
            model: Learner = RecordMomentsRegressor(basis, **common)
        else:
            model = RecordMomentsClassifier(
                basis,
                student_by_name(student),
                class_weight=weights_of_classes(self.settings, inputs.classes),
                class_shares=None if rate is None else {inputs.classes[1]: rate},
                **common,
            )
        _learn(model, inputs, watch)
        source = ReleasedWeights() if student == "auto" else NamedStudent(student)
        return Fitted(model.released_, source)


class RecordVotes(Method):
    """Every record votes at its nearest public points."""

    step = "Letting records vote"

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        self._needs_delta()
        student_by_name(self.settings.student)
        super().check()

    def check_inputs(self, inputs: Any, watch: Watch) -> None:
        """Refuse settings that do not go with the tables."""
        super().check_inputs(inputs, watch)
        votes, n_points = self.settings.votes_per_record, self._n_points(len(inputs.X_public))
        if votes is not None and votes > n_points:
            raise ParameterError(
                Parameter("votes_per_record"),
                f" is {votes}, more than the {n_points} public points that take votes; give fewer.",
            )

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        self._needs_delta()
        n_points, own = self._n_points(sizes.n_public), self.settings.votes_per_record
        guarantee = guarantee_of("record", self.spec.budget.relation)
        votes = default_votes(n_points) if own is None else own
        shape = record_votes_shape(n_points, sizes.n_classes, votes, guarantee)
        sigma = noisy_votes(self.spec.price, shape, release="counts").scale
        released = f"noisy counts of {sizes.n_classes} classes at {n_points:,} public points"
        return self._quoted(released, f"scale {sigma:.4g} votes", sigma, sizes, queries=n_points)

    def fit(self, inputs: Any, folder: RunFolder, ledger: Ledger, watch: Watch) -> Fitted:
        """Release, and return what came of it; the student is fitted elsewhere."""
        model = RecordVotesClassifier(
            votes_per_record=self.settings.votes_per_record,
            n_queries=self.settings.n_queries,
            student=student_by_name(self.settings.student),
            **self._of_fit(folder, ledger),
        )
        _learn(model, inputs, watch)
        return Fitted(model.released_, NamedStudent(self.settings.student))

    def _n_points(self, n_public: int) -> int:
        return self.settings.n_queries or n_public


class Pate(Method):
    """Teachers on disjoint shards vote on classes, a number or several labels."""

    step = "Training teachers"
    targets = ("class", "number", "labels")

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        given, execution = self.settings, self.spec.execution
        _ = self.mechanism, self._strategy
        for name, other in (("n_queries", not self.priced), ("strategy", self._in_rounds)):
            if self.kind != "class" and other:
                raise ParameterError(
                    Parameter(name),
                    f" goes with one target of classes, and the target is {_KINDS[self.kind]};"
                    " leave it out.",
                )
        self._learners(2)
        workers = worker_processes(execution.n_jobs, execution.executor)
        check_engine(execution.executor, workers, send_shards=execution.send_shards)
        stated = self.spec.data.n_records
        if given.n_teachers is not None and stated is not None and given.n_teachers > stated:
            raise ParameterError(
                Parameter("n_teachers"),
                f" is {given.n_teachers}, more than the {stated} records stated; use fewer.",
            )
        super().check()
        if self.spec.budget.relation == "replace-one":
            check_positions(single=source_of(self.spec.private).single)

    @property
    def abstentions(self) -> str:
        """What a student makes of queries without an answer."""
        return str(self.settings.abstentions)

    @cached_property
    def mechanism(self) -> dict[str, Any]:
        """What the mechanism sets of a learner."""
        return mechanism_settings(self.settings.mechanism, self.kind)

    @property
    def priced(self) -> bool:
        """Whether no estimate comes first, which is paid for by a part of the price."""
        return self._estimate is None

    @cached_property
    def _estimate(self) -> float | None:
        """The part of epsilon that pays for a private estimate of the number of queries."""
        asked = self.settings.n_queries
        if not isinstance(asked, str):
            return None
        found = _named("n_queries", asked)
        if found[0] != "estimate" or set(found[1]) != {"epsilon"}:
            raise ParameterError(
                Parameter("n_queries"),
                f" is {shown(asked)}; give a number, or estimate:epsilon=0.1.",
            )
        return check_positive("n_queries", found[1]["epsilon"])

    @cached_property
    def _strategy(self) -> tuple[str, int | None]:
        """The strategy's name, and the queries of a round."""
        name, more = _named("strategy", self.settings.strategy)
        check_choice("strategy", name, STRATEGIES)
        if set(more) - ({"round_size"} if name != PASSIVE else set()):
            raise ParameterError(
                Parameter("strategy"),
                f" is {shown(self.settings.strategy)}; a strategy that asks in rounds takes"
                " round_size alone, as in margin:round_size=20.",
            )
        return name, check_count("round_size", more["round_size"]) if more else None

    @property
    def _in_rounds(self) -> bool:
        return self._strategy[0] != PASSIVE

    def n_teachers(self, inputs: Any) -> int:
        """Return the number of teachers: as given, else by the stated records, else the default."""
        return self._n_teachers(inputs.X_public.shape[1])

    def _n_teachers(self, n_columns: int) -> int:
        if self.settings.n_teachers is not None:
            return int(self.settings.n_teachers)
        stated = self.spec.data.n_records
        if stated is None:
            return DEFAULT_TEACHERS
        return choose_teachers(self.spec.price, stated, n_columns)

    def questions(self, inputs: Any, watch: Watch | None = None) -> Iterator[Caution]:
        """Yield what is to be asked once the tables are known."""
        yield from super().questions(inputs, watch)
        if self.priced:  # an estimate would say itself how many queries make sense
            yield from cautions_of_noise(self.terms(self.sizes(inputs)))

    def sizes(self, inputs: Any) -> Sizes:
        """Return the public sizes of tables; in rounds each distinct point is asked once."""
        found = super().sizes(inputs)
        if not self._in_rounds:
            return found
        return replace(found, n_public=len(AskableRows.of(inputs.X_public).rows))

    def terms(self, sizes: Sizes) -> Terms:
        """Return mechanism and queries, from public numbers alone; nothing is paid.

        Where an estimate is to set them, they are those of one that shows nothing.
        """
        n_teachers, data = self._n_teachers(sizes.n_columns), self.spec.data
        learner = self._learner(sizes.n_classes, n_teachers, budget=self.spec.price)
        if isinstance(learner, PATERegressor):
            return learner.planned_terms(sizes.n_public, data.bounds or (0.0, 0.0))
        if isinstance(learner, PATEMultiLabelClassifier):
            return learner.planned_terms(sizes.n_public, data.target)
        pool = teacher_shape(sizes.n_public, sizes.n_classes, n_teachers)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WeakSignalWarning)  # it is asked about
            if not self.priced:
                return EstimatedSize.of_settings(learner, pool).without_number()
            return learner.planned_terms(pool)

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        terms = self.terms(sizes)
        mechanism, shape = terms.mechanism, terms.shape
        n_queries, n_teachers, expect = terms.n_points, shape.n_teachers or 0, list[str]()
        points, sigma, unit = f"at {n_queries:,} public points", 0.0, "votes"
        if isinstance(mechanism, NoisyMeans):
            low, high = terms.public["bounds"]
            released, unit = f"noisy means of the votes {points}", "of the target, on each mean"
            # noise is drawn on a sum of positions; here is its size on a mean, in the target's unit
            sigma = mechanism.sigma * (high - low) / (n_teachers * (shape.n_classes - 1))
        elif isinstance(mechanism, VoteQuantiles):
            released = f"quantiles of the votes, of rank {mechanism.rank}, {points}"
            chance = unanimous_chance(mechanism, shape)
            expect.append(
                "a number that all teachers agree on is drawn with probability"
                f" {chance:.3f} or more"
            )
        elif self.kind == "labels":
            assert isinstance(mechanism, NoisyVotes)
            what = "labels" if mechanism.release == "labels" else "noisy counts of votes for labels"
            sigma, labels = mechanism.scale, self.spec.data.target
            released = f"{what}, {len(labels)} of them, {points}"
        elif isinstance(mechanism, SparseVector | AbstentionTable):
            sigma = scale_of_stream(mechanism)
            released = f"labels, until {mechanism.max_abstentions} queries were not answered"
            for share in _MARGINS:
                distance = max(0, math.ceil(share * n_teachers / 2) - 1)
                chance = answer_chance(mechanism, distance)
                expect.append(_expected("a query is answered", chance, share, n_teachers))
        elif isinstance(mechanism, NoisyVotes) and mechanism.release == "counts":
            sigma, released = deviation(mechanism), f"{n_queries:,} noisy counts of votes"
            # independent noise averages out over the queries
            expect.append(
                f"the mean of all {n_queries:,} counts is off by"
                f" {sigma / math.sqrt(n_queries):.3g} of {n_teachers:,} votes"
            )
        else:
            released = f"{n_queries:,} labels"
            if isinstance(mechanism, ConfidentLabels):
                sigma = mechanism.sigma
                released = (
                    f"at most {mechanism.max_answers:,} labels of {n_queries:,} queries, where"
                    f" {mechanism.threshold} votes are reached"
                )
            elif isinstance(mechanism, TableLabels):
                sigma = table_deviation(mechanism, n_teachers)
            else:
                assert isinstance(mechanism, NoisyVotes)
                sigma = deviation(mechanism)
            for share in _MARGINS:
                chance = right_chance(mechanism, share * n_teachers, shape)
                expect.append(_expected("a label is right", chance, share, n_teachers))
        if not self.priced:
            released += (
                f", unless an estimate at epsilon {self._estimate:g} of these says another number"
            )
        return self._quoted(
            released,
            f"scale {sigma:.4g} {unit}" if sigma else "",
            sigma,
            sizes,
            queries=n_queries,
            teachers=n_teachers,
            expect=tuple(expect),
            can_be_planned=self.kind == "class",
        )

    def fit(self, inputs: Any, folder: RunFolder, ledger: Ledger, watch: Watch) -> Fitted:
        """Release, and return what came of it; the student is fitted elsewhere."""
        n_teachers, execution = self.n_teachers(inputs), self.spec.execution
        if self.settings.n_teachers is None and self.spec.data.n_records is not None:
            watch.note(
                f"{n_teachers} teachers, by the stated {self.spec.data.n_records} records.",
                private=False,
            )
        more = {"progress": watch.progress, **self._of_fit(folder, ledger)}
        if self.kind == "class":
            more |= {
                "abstentions": self.abstentions,
                "vault": folder.vault,
                "n_jobs": worker_processes(execution.n_jobs, execution.executor),
                "engine": execution.executor,
                "send_shards": execution.send_shards,
            }
        model = self._learner(len(inputs.classes), n_teachers, **more)
        _learn(model, inputs, watch)
        asked = None
        if self.kind == "class":
            note_few_answers(model.released_, watch)
            name, round_size = self._strategy
            if self._in_rounds:
                asked = AskedInRounds(name, AskableRows.of(inputs.X_public).rows, round_size)
        return Fitted(model.released_, NamedStudent(self.settings.student), asked)

    def _learners(self, n_classes: int) -> tuple[Any, Any]:
        """Return teacher and student by their names."""
        teacher, student = self.settings.teacher, self.settings.student
        if self.kind == "number":
            return regressor_by_name(teacher or "ridge"), student_of_numbers(student)
        named = teacher_by_name(teacher or "logistic", n_classes)
        return named, student_by_name(student)

    def _learner(
        self, n_classes: int, n_teachers: int, **more: Any
    ) -> PATEClassifier | PATERegressor | PATEMultiLabelClassifier:
        """Return the learner of these settings, and of what belongs to one run alone."""
        asked, (strategy, round_size) = self.settings.n_queries, self._strategy
        settings: dict[str, Any] = {
            "n_teachers": n_teachers,
            "n_queries": asked if self.priced else None,
            "relation": self.spec.budget.relation,
            **self.mechanism,
            **more,
        }
        learners = self._learners(n_classes or 2)
        if self.kind == "number":
            return PATERegressor(*learners, **settings)
        if self.kind == "labels":
            return PATEMultiLabelClassifier(*learners, **settings)
        if self._in_rounds:
            settings["strategy"] = InRounds(strategy_by_name(strategy), round_size)
        return PATEClassifier(*learners, estimate_epsilon=self._estimate, **settings)


def _expected(what: str, chance: float, share: float, n_teachers: int) -> str:
    votes = f"{share * n_teachers:,.0f} of {n_teachers:,} votes"
    return f"{what} with probability {chance:.3f} at a margin of {votes}"


class Choice(Method):
    """The best of a class of hypotheses, or of saved students."""

    step = "Choosing"

    def __init__(self, spec: RunSpec) -> None:
        names = spec.method.hypotheses  # type: ignore[union-attr]
        self.hypotheses = names[0] if len(names) == 1 and names[0] in HYPOTHESES else None
        self.candidates = () if self.hypotheses else tuple(map(Path, names))
        if self.candidates and spec.data.schema_file is None:
            beside = schema_beside(self.candidates)
            spec = spec.model_copy(
                update={"data": spec.data.model_copy(update={"schema_file": beside})}
            )
        super().__init__(spec)

    def description(self) -> dict[str, Any]:
        """Return what shapes the result beside the settings: the digests of the files."""
        return {
            **super().description(),
            "hypotheses": self.hypotheses or [file_digest(path) for path in self.candidates],
        }

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        if not (self.hypotheses or self.candidates):
            raise ParameterError(
                Parameter("hypotheses"),
                f" is missing; name {', '.join(HYPOTHESES)}, or student.onnx files to choose from.",
            )
        super().check()
        if self.hypotheses is not None and not is_local_file(self.spec.private):
            raise _hypotheses_from_disk()
        self._students = saved_students(self.candidates)

    def questions(self, inputs: Any, watch: Watch | None = None) -> Iterator[Caution]:
        """Yield what is to be asked once the tables are known."""
        yield from cautions_of_ids(inputs.repeating_ids)

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        what = self.hypotheses or f"{len(self.candidates)} candidates"
        sigma = 2 / self.spec.price.epsilon
        return self._quoted(
            f"the choice of one of {what}",
            f"scale {sigma:.4g} right answers",
            sigma,
            sizes,
            can_be_planned=False,
        )

    def fit(self, inputs: Any, folder: RunFolder, ledger: Ledger, watch: Watch) -> Fitted:
        """Release, and return what came of it; the student is fitted elsewhere."""
        hypotheses = None
        if self.hypotheses is not None:
            if isinstance(inputs.private, StoredTable):
                raise _hypotheses_from_disk()
            hypotheses = class_by_name(self.hypotheses, inputs.X_public.shape[1])
        note_other_accounts(self.candidates, ledger, watch)
        model = SemiPrivateClassifier(
            self._students or hypotheses,
            n_cover=self.settings.n_cover,
            **self._of_fit(folder, ledger),
        )
        model.fit(**inputs.for_fit)
        source: StudentSource = (
            chosen_file(self.candidates, model)
            if self.hypotheses is None
            else ChosenHypothesis(self.hypotheses)
        )
        return Fitted(model.released_, source)


@dataclass(frozen=True, eq=False)
class VoteInputs:
    """Votes from a file, and what they will be asked."""

    votes: Votes
    terms: Terms
    unit: str = "record"


class CastVotes(Method):
    """Votes that were cast elsewhere; there are no tables, and no student."""

    step = "Drawing noise"

    def description(self) -> dict[str, Any]:
        """Return what shapes the result beside the settings: the digest of the file."""
        return {"vote file": file_digest(self.spec.private)}

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        own = DataSpec(private=self.spec.data.private, classes=self.spec.data.classes)
        for name, value in self.spec.data:
            if value != getattr(own, name):
                raise ParameterError(
                    name_part(name), " is about tables, and votes have none; leave it out."
                )
        if self.spec.budget.relation != "add-remove":
            raise ParameterError(
                Parameter("relation"),
                " of votes from a file is add-remove; declare another one in Python.",
            )
        if self._mechanism.get("mechanism") == "interactive":
            raise ParameterError(
                Parameter("mechanism"),
                " is interactive, which contradicts a student, and votes from a file have none;"
                " use confident.",
            )

    @cached_property
    def _mechanism(self) -> dict[str, Any]:
        return mechanism_settings(self.settings.mechanism, "class")

    def read(self, watch: Watch, vault: Path | None) -> VoteInputs:
        """Return the votes, and what they will be asked, by their shape alone."""
        given, declared = self.settings, self.spec.data.classes
        votes = read_votes(
            Path(self.spec.private),
            kind=given.kind,
            classes=None if declared is None else list(declared),
            n_teachers=given.n_teachers,
            header=given.header,
        )
        settings = dict(self._mechanism)
        terms = choose_terms(
            settings.pop("mechanism", "gaussian"),
            self.spec.price,
            votes.shape,
            n_queries=given.n_queries,
            **settings,
        )
        return VoteInputs(votes, terms)

    def check_inputs(self, inputs: VoteInputs, watch: Watch) -> None:
        """Refuse settings that do not go with the votes: their reader did."""

    def questions(self, inputs: VoteInputs, watch: Watch | None = None) -> Iterator[Caution]:
        """Yield what is to be asked once the votes are known."""
        yield from cautions_of_noise(inputs.terms)

    def fit(self, inputs: VoteInputs, folder: RunFolder, ledger: Ledger, watch: Watch) -> Fitted:
        """Release labels of the votes."""
        shape = inputs.votes.shape
        # Rows are chosen by the public seed alone: how clear the votes are is private.
        rows = random_rows(
            shape.n_queries, inputs.terms.shape.n_queries, self.settings.random_state
        )
        with public_warnings_noted(watch):
            released = release(
                inputs.votes,
                inputs.terms.mechanism,
                ledger,
                inputs.terms.budget,
                queries=rows,
                request=folder.request,
                purpose=self.spec.about.purpose or "label",
            )
        note_few_answers(released, watch)
        return Fitted(released, None)


def method_of(spec: RunSpec) -> Method:
    """Return the method of a run."""
    kinds: dict[str, type[Method]] = {
        MOMENTS: Moments,
        PATE: Pate,
        RECORD_VOTES: RecordVotes,
        CHOICE: Choice,
        VOTES: CastVotes,
    }
    return kinds[spec.method.name](spec)


def mechanism_settings(text: str, kind: str) -> dict[str, Any]:
    """Return what a mechanism, by its name and its settings, sets of a learner of a target."""
    name, more = _named("mechanism", text)
    fixed = _NAMED[kind][check_choice("mechanism", name, tuple(_NAMED[kind]))]
    allowed = [one for one in _BESIDE[kind] if one not in fixed]
    for setting in more:
        if setting not in allowed:
            raise ParameterError(
                Parameter("mechanism"),
                f" is {shown(text)}, and {name} has no setting {shown(setting)}; of a target that"
                f" is {_KINDS[kind]} there are {', '.join(allowed)}.",
            )
    return {**fixed, **more}


def _named(setting: str, text: str) -> tuple[str, dict[str, int | float | str]]:
    problem = ""
    try:
        return named(text)
    except ValueError as error:
        problem = str(error)
    raise ParameterError(name_part(setting), problem)


def _learn(model: Learner, inputs: RunInputs, watch: Watch) -> None:
    """Fit all but the student, which is fitted where no private data ever was."""
    with public_warnings_noted(watch):
        model.fit_labels(**inputs.for_fit)
    coverage = getattr(model, "coverage_", None)
    if coverage is not None and coverage.is_poor:
        watch.note(coverage.warning, private=False)


def _note_forecast(spec: RunSpec, inputs: Any, watch: Watch) -> None:
    """Say so where the tables are not of the sizes that the plan was made for; of the private one
    to the curator alone."""
    if spec.forecast is None:
        return
    n_public, planned = len(inputs.X_public), spec.forecast.n_public
    n_classes, expected = len(inputs.classes), spec.forecast.n_classes
    if n_classes and expected not in (None, n_classes):
        raise DataError(
            f"The plan is about {expected} classes and the run has {n_classes}; plan again, or"
            " declare the right ones."
        )
    if n_public != planned:
        watch.note(
            f"The plan was made for {planned} public points and the public file has {n_public}, so"
            " its forecast may be off.",
            private=False,
        )
    stated = spec.data.n_records
    if stated is not None and not abs(inputs.n_private - stated) <= _FAR * stated:
        watch.note(
            f"The private file has {'fewer' if inputs.n_private < stated else 'more'} rows, by over"
            f" a tenth, than the {stated} that the plan was made for, so its forecast is off; plan"
            " again by a number that you may state in public.",
            private=True,
        )


def _hypotheses_from_disk() -> DataError:
    return DataError(
        "The private file is read from disk, block by block, since it is a folder, at a URL or too"
        " large for memory, and a class of hypotheses is chosen from in memory; give one smaller"
        " file, or saved students. Nothing was spent."
    )


def weights_of_classes(
    settings: MomentsSpec, classes: Sequence[Any]
) -> str | dict[Any, float] | None:
    """Return what decisions count each class for, by the classes themselves."""
    weight = settings.class_weight
    if weight == "auto":
        weight = "none" if settings.positive_rate is None else "balanced"
    if isinstance(weight, str):
        return None if weight == "none" else weight
    names = {str(name): name for name in classes}
    return {names.get(name, name): value for name, value in weight.items()}


def basis_of_schema(schema: Schema) -> Basis | None:
    """Return the basis for a table of vectors alone, such as pixels: likeness to public points, on
    one scale for all of their numbers. None of any other table, which has levels and bins, as the
    learner takes them by default."""
    columns = [column for column in schema.columns if not isinstance(column, IgnoredColumn)]
    of_vectors = all(isinstance(column, VectorColumn) for column in columns)
    return KernelBasis(scaled=False) if of_vectors else None


def worker_processes(n_jobs: int, executor: str) -> int | None:
    """Return the worker processes of a run: none are asked for where a cluster does the work."""
    return None if n_jobs == 1 and executor != LOCAL else n_jobs
