"""How a run learns: what each method checks, asks, costs and fits, from its settings."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from secretballot._naming import named
from secretballot._validation import (
    HYPOTHESES,
    check_positive_rate,
    name_part,
    shown,
)
from secretballot.accounting import WeakSignalWarning, noisy_votes
from secretballot.accounting.gaussian import gaussian_mu
from secretballot.accounting.recipes import (
    Terms,
    deviation,
    right_chance,
    table_deviation,
    unanimous_chance,
)
from secretballot.accounting.stream_recipes import answer_chance, scale_of_stream
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import (
    AbstentionTable,
    ConfidentLabels,
    NoisyMeans,
    NoisyVotes,
    SparseVector,
    TableLabels,
    VoteQuantiles,
    teachers_of,
)
from secretballot.core.private import Votes
from secretballot.data.reading import is_local_file
from secretballot.data.sources import source_of
from secretballot.data.stored import StoredTable
from secretballot.data.vote_files import read_votes
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.moments.estimators import RecordMomentsClassifier, RecordMomentsRegressor
from secretballot.learners.pate.estimators import (
    PATEClassifier,
    PATELearner,
    PATERegressor,
    estimate_in,
)
from secretballot.learners.pate.mechanisms import (
    OF_CLASSES,
    OF_LABELS,
    OF_NUMBERS,
    choose_teachers,
    choose_terms,
)
from secretballot.learners.pate.rounds import AskableRows
from secretballot.learners.record_votes import RecordVotesClassifier, default_votes
from secretballot.learners.selection.semi_private import SemiPrivateClassifier
from secretballot.learners.training.inputs import random_rows
from secretballot.learners.training.shards import check_positions
from secretballot.learners.training.targets import Target
from secretballot.named_learners import regressor_by_name, teacher_by_name
from secretballot.planning.plan.model import check_weighted_names
from secretballot.publishing.job import (
    AskedInRounds,
    ChosenHypothesis,
    NamedStudent,
    ReleasedWeights,
    StudentSource,
)
from secretballot.queries import PASSIVE, InRounds, rounds_of
from secretballot.released import ReleasedLabels, ReleasedSums
from secretballot.releasing import release
from secretballot.runs.basis import basis_of_schema
from secretballot.runs.caution import (
    cautions_of_ids,
    cautions_of_noise,
    cautions_of_records,
    note_careless_delta,
)
from secretballot.runs.choice import (
    chosen_file,
    chosen_words,
    class_by_name,
    note_other_accounts,
    saved_students,
    schema_beside,
)
from secretballot.runs.folder import RunFolder, file_digest
from secretballot.runs.moments_spread import MomentsSpread, moments_spread
from secretballot.runs.progress import Caution, Watch, note_few_answers, public_warnings_noted
from secretballot.runs.quote import MARGINS, Quote
from secretballot.runs.spec import (
    CHOICE,
    MOMENTS,
    PATE,
    RECORD_VOTES,
    VOTES,
    DataSpec,
    MomentsSpec,
    RunSpec,
)
from secretballot.runs.student_file import check_converts
from secretballot.runs.tables import (
    RunInputs,
    RunTables,
    cautions_of_targets,
    check_tables,
    read_inputs,
)
from secretballot.students.names import student_by_name, student_of_numbers
from secretballot.teachers.executors import LOCAL, check_engine
from secretballot.teachers.records import record_votes_shape
from secretballot.teachers.votes import check_ballot, checked_labels, checked_range, guarantee_of

DEFAULT_TEACHERS = 250
#: Share by which a number of rows may differ before a forecast is off by more than its range.
_FAR = 0.1
_KINDS = {"class": "one of classes", "number": "a number", "labels": "several labels"}
#: What takes a delta of 0, by the target.
_PURE = {
    kind: f"; for a delta of 0 use method {PATE} with mechanism {name}"
    for kind, name in (("class", "laplace"), ("number", "quantile"))
}
#: Mechanisms of votes, by the target.
_MECHANISMS = {"class": OF_CLASSES, "number": OF_NUMBERS, "labels": OF_LABELS}


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
    spread : MomentsSpread or None
        How far a run of few records might have come out otherwise.
    chosen : str or None
        What was chosen, in words.
    n_candidates : int or None
    """

    released: ReleasedLabels | ReleasedSums
    student: StudentSource | None
    asked: AskedInRounds | None = None
    spread: MomentsSpread | None = None
    chosen: str | None = None
    n_candidates: int | None = None


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

    @cached_property
    def tables(self) -> RunTables:
        """The tables of the run."""
        data, output = self.spec.data, self.spec.output
        if data.public is None or not data.target:
            name = "target" if data.public is not None else "public"
            raise ParameterError(Parameter(name), " is missing; give it.")
        return RunTables(
            self.spec.private,
            data.public,
            data.target[0],
            data.classes,
            data.unit,
            data.schema_file,
            data.drop,
            output.evaluate,
            output.publish_metrics,
            data.accept_unseen,
            data.bounds,
            data.target if len(data.target) > 1 else (),
        )

    @property
    def abstentions(self) -> str:
        """What a student makes of queries without an answer."""
        return "drop"

    def description(self) -> dict[str, Any]:
        """Return what shapes the result beside the settings: the digests of the files."""
        return self.tables.description()

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        execution = self.spec.execution
        workers = worker_processes(execution.n_jobs, execution.executor)
        check_engine(execution.executor, workers, send_shards=execution.send_shards)
        if self.spec.data.kind not in self.targets:
            raise ParameterError(
                Parameter("method"),
                f" is {self.settings.name}, which learns classes, and the target is"
                f" {_KINDS[self.spec.data.kind]}; use {MOMENTS} or {PATE}.",
            )
        if self.spec.data.kind == "number":
            checked_range(self.tables.bounds)
        elif self.spec.data.kind == "labels":
            checked_labels(self.tables.labels)
        if self.spec.budget.relation == "replace-one" and self.tables.unit is not None:
            raise ParameterError(
                Parameter("unit"),
                " goes with relation add-remove only; leave one of the two out.",
            )
        if self.spec.output.publish_metrics and self.tables.evaluate is None:
            raise ParameterError(
                "There are no metrics to publish; name public labelled records with ",
                Parameter("evaluate"),
                ".",
            )
        check_tables(self.tables)

    def read(self, watch: Watch, vault: Path | None) -> Any:
        """Return the tables, read and checked."""
        return read_inputs(self.tables, watch, vault)

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
            classes=self._classes_of_student(inputs),
            without=spec.output.exclude,
        )

    def questions(self, inputs: Any, watch: Watch | None = None) -> Iterator[Caution]:
        """Yield what is to be asked once the tables are known."""
        yield from cautions_of_records(
            self.spec.price, self.spec.data.n_records, inputs.n_units, self.n_teachers(inputs)
        )
        yield from cautions_of_ids(inputs.repeating_ids)
        yield from cautions_of_targets(self.tables, inputs, watch)

    def n_teachers(self, inputs: Any) -> int | None:
        """Return the number of teachers, None of a method without any."""
        return None

    def sizes(self, inputs: Any) -> Sizes:
        """Return the public sizes of tables."""
        n_public, n_columns = inputs.X_public.shape
        return Sizes(n_public, len(getattr(inputs, "classes", ())) or 2, n_columns)

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        raise NotImplementedError

    def fit(self, inputs: Any, folder: RunFolder, ledger: Ledger, watch: Watch) -> Fitted:
        """Release, and return what came of it; the student is fitted elsewhere."""
        raise NotImplementedError

    def _given(self, inputs: RunInputs, folder: RunFolder) -> dict[str, Any]:
        """Return what a learner's fit takes: records, points, and what the target is. The folder's
        key goes with it, so that a run that is taken up again is not paid twice."""
        of_target: dict[str, dict[str, Any]] = {
            "number": {"bounds": self.tables.bounds},
            "labels": {"labels": self.tables.labels},
        }
        named = {"request": folder.request, "purpose": self.spec.about.purpose or "learn"}
        return {**inputs.for_fit, **of_target.get(self.spec.data.kind, {}), **named}

    @property
    def _engine(self) -> dict[str, Any]:
        """What says of a learner's fit where it works."""
        given = self.spec.execution
        return {"executor": given.executor, "send_shards": given.send_shards}

    def _classes_of_student(self, inputs: Any) -> Sequence[Any]:
        if self.spec.data.kind == "class":
            return tuple(inputs.classes)
        return () if self.spec.data.kind == "number" else (0, 1)

    def _quoted(self, released: str, sigma: float, sizes: Sizes, **more: Any) -> Quote:
        price = self.spec.price
        return Quote(
            self.settings.name,
            price.epsilon,
            price.delta,
            self.spec.budget.relation,
            released,
            sigma,
            sizes.n_public,
            **more,
        )

    def _of_learner(self, ledger: Ledger) -> dict[str, Any]:
        """Return what every learner takes."""
        return {
            "epsilon": self.spec.price.epsilon,
            "delta": self.spec.price.delta,
            "relation": self.spec.budget.relation,
            "ledger": ledger,
            "random_state": self.settings.random_state,
        }

    def _needs_delta(self) -> None:
        if not self.spec.price.delta > 0:
            raise ParameterError(
                Parameter("delta"),
                f" is {self.spec.price.delta:g}, and method {self.settings.name} needs more, such"
                f" as 1e-6{_PURE.get(self.spec.data.kind, '')}.",
            )


class Moments(Method):
    """Noisy sums over all records."""

    step = "Adding up records"
    targets = ("class", "number", "labels")

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        self._needs_delta()
        if self.spec.data.kind != "class":
            self._refuse_settings_of_classes()
        student_by_name(self.settings.student)
        super().check()

    def _refuse_settings_of_classes(self) -> None:
        for name in ("student", "class_weight", "positive_rate"):
            given = getattr(self.settings, name)
            if given not in ("auto", None):
                raise ParameterError(
                    name_part(name),
                    f" is {shown(given)}, and record moments of"
                    f" {_KINDS[self.spec.data.kind]} publish the model itself; leave it out, or use"
                    f" method {PATE}.",
                )

    def check_inputs(self, inputs: Any, watch: Watch) -> None:
        """Refuse settings that do not go with the tables."""
        super().check_inputs(inputs, watch)
        if self.settings.positive_rate is not None:
            check_positive_rate(self.settings.positive_rate, len(inputs.classes))

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        self._needs_delta()
        price, n_stages = self.spec.price, RecordMomentsClassifier().n_stages
        # a record that is replaced moves a sum twice as far as one that comes or goes
        moved = 2 if self.spec.budget.relation == "replace-one" else 1
        sigma = moved * math.sqrt(n_stages) / gaussian_mu(price.epsilon, price.delta)
        return self._quoted(
            f"{n_stages} noisy sums over all records",
            sigma,
            sizes,
            can_be_planned=self.spec.data.kind == "class",
        )

    def fit(self, inputs: Any, folder: RunFolder, ledger: Ledger, watch: Watch) -> Fitted:
        """Release, and return what came of it; the student is fitted elsewhere."""
        basis, common = basis_of_schema(inputs.schema), self._of_learner(ledger)
        given = self._given(inputs, folder) | self._engine
        if self.spec.data.kind == "number":
            of_number = RecordMomentsRegressor(basis, **common)
            _learn(of_number.fit_labels, given, watch)
            return Fitted(of_number.released_, ReleasedWeights())
        if self.spec.data.kind == "labels":
            of_labels = RecordMomentsClassifier(basis, **common)
            _learn(of_labels.fit_labels, given, watch)
            return Fitted(of_labels.released_, ReleasedWeights())
        rate = self.settings.positive_rate
        model = RecordMomentsClassifier(
            basis,
            self.settings.student,
            class_weight=weights_of_classes(self.settings, inputs.classes),
            class_shares=None if rate is None else {inputs.classes[1]: rate},
            **common,
        )
        _learn(model.fit_labels, given, watch)
        auto = self.settings.student == "auto"
        return Fitted(
            model.released_,
            ReleasedWeights() if auto else NamedStudent(self.settings.student),
            spread=moments_spread(
                model.student_,
                model.released_,
                inputs.X_public,
                seed=self.settings.random_state,
            ),
        )


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
        return self._quoted(released, sigma, sizes, queries=n_points)

    def fit(self, inputs: Any, folder: RunFolder, ledger: Ledger, watch: Watch) -> Fitted:
        """Release, and return what came of it; the student is fitted elsewhere."""
        model = RecordVotesClassifier(
            votes_per_record=self.settings.votes_per_record,
            n_queries=self.settings.n_queries,
            student=self.settings.student,
            **self._of_learner(ledger),
        )
        _learn(model.fit_labels, self._given(inputs, folder), watch)
        return Fitted(model.released_, NamedStudent(self.settings.student))

    def _n_points(self, n_public: int) -> int:
        return self.settings.n_queries or n_public


class Pate(Method):
    """Teachers on disjoint shards vote on classes."""

    step = "Training teachers"

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        given, number = self.settings, self.spec.data.kind
        named("mechanism", given.mechanism, _MECHANISMS[number])
        _ = self._rounds, self._estimate
        (regressor_by_name if number == "number" else teacher_by_name)(self.teacher)
        (student_of_numbers if number == "number" else student_by_name)(given.student)
        stated = self.spec.data.n_records
        if given.n_teachers is not None and stated is not None and given.n_teachers > stated:
            raise ParameterError(
                Parameter("n_teachers"),
                f" is {given.n_teachers}, more than the {stated} records stated; use fewer.",
            )
        super().check()
        if self.spec.budget.relation == "replace-one":
            check_positions(single=source_of(self.tables.private).single)

    @property
    def teacher(self) -> str:
        """The name of the teacher."""
        kind = "ridge" if self.spec.data.kind == "number" else "logistic"
        return str(self.settings.teacher or kind)

    @property
    def abstentions(self) -> str:
        """What a student makes of queries without an answer."""
        return str(self.settings.abstentions)

    @cached_property
    def _rounds(self) -> InRounds | None:
        return rounds_of(self.settings.strategy)

    @cached_property
    def _estimate(self) -> float | None:
        """The part of epsilon that pays for a private estimate of the number of queries."""
        return estimate_in(self.settings.n_queries)

    def n_teachers(self, inputs: Any) -> int:
        """Return the number of teachers: as given, else by the stated records, else the default."""
        return self._n_teachers(inputs.X_public.shape[1])

    def _n_teachers(self, n_columns: int) -> int:
        if self.settings.n_teachers is not None:
            return int(self.settings.n_teachers)
        stated = self.spec.data.n_records
        return (
            DEFAULT_TEACHERS
            if stated is None
            else choose_teachers(self.spec.price, stated, n_columns)
        )

    def questions(self, inputs: Any, watch: Watch | None = None) -> Iterator[Caution]:
        """Yield what is to be asked once the tables are known."""
        yield from super().questions(inputs, watch)
        if self._estimate is None:  # which would say itself how many queries make sense
            yield from cautions_of_noise(self.terms(self.sizes(inputs)))

    def sizes(self, inputs: Any) -> Sizes:
        """Return the public sizes of tables; in rounds each distinct point is asked once."""
        found = super().sizes(inputs)
        if self._rounds is None:
            return found
        return replace(found, n_public=len(AskableRows.of(inputs.X_public).rows))

    def terms(self, sizes: Sizes) -> Terms:
        """Return mechanism and queries, from public numbers alone; nothing is paid.

        Where an estimate is to set them, they are those of one that shows nothing.
        """
        targets = {
            "class": lambda: Target.of_classes(range(sizes.n_classes)),
            "number": lambda: Target.of_number(self.tables.bounds),
            "labels": lambda: Target.of_labels(self.tables.labels),
        }
        learner = self._learner(self._n_teachers(sizes.n_columns))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WeakSignalWarning)  # it is asked about
            return learner.planned_terms(targets[self.spec.data.kind](), sizes.n_public)

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        terms = self.terms(sizes)
        mechanism, shape = terms.mechanism, terms.shape
        n_queries, n_teachers = shape.n_queries, teachers_of(shape)
        more: dict[str, Any] = {"queries": n_queries, "teachers": n_teachers}
        if isinstance(mechanism, SparseVector | AbstentionTable):
            sigma = scale_of_stream(mechanism)
            released = f"labels, until {mechanism.max_abstentions} queries were not answered"
            more["answered"] = {
                share: answer_chance(mechanism, max(0, math.ceil(share * n_teachers / 2) - 1))
                for share in MARGINS
            }
        elif isinstance(mechanism, NoisyVotes) and mechanism.release == "counts":
            sigma, released = deviation(mechanism), f"{n_queries:,} noisy counts of votes"
            # independent noise averages out over the queries
            more["off_in_the_mean"] = sigma / math.sqrt(n_queries)
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
            more["right"] = {
                share: right_chance(mechanism, share * n_teachers, shape) for share in MARGINS
            }
        if self._estimate is not None:
            released += (
                f", unless an estimate at epsilon {self._estimate:g} of these says another number"
            )
        return self._quoted(released, sigma, sizes, **more)

    def fit(self, inputs: Any, folder: RunFolder, ledger: Ledger, watch: Watch) -> Fitted:
        """Release, and return what came of it; the student is fitted elsewhere."""
        n_teachers = self.n_teachers(inputs)
        if self.settings.n_teachers is None and self.spec.data.n_records is not None:
            watch.note(
                f"{n_teachers} teachers, by the stated {self.spec.data.n_records} records.",
                private=False,
            )
        work: dict[str, Any] = {"progress": watch.progress}
        if self.spec.data.kind == "class":
            work |= {"vault": folder.vault, **self._engine}
        model = self._learner(n_teachers, **self._of_learner(ledger))
        _learn(model.fit_labels, {**self._given(inputs, folder), **work}, watch)
        asked = None
        if self.spec.data.kind == "class":
            note_few_answers(model.released_, watch)
        if self._rounds is not None:
            name, _, _ = self.settings.strategy.partition(":")
            rows = AskableRows.of(inputs.X_public).rows
            asked = AskedInRounds(name, rows, self._rounds.round_size)
        return Fitted(model.released_, NamedStudent(self.settings.student), asked)

    def _learner(self, n_teachers: int, **more: Any) -> PATELearner:
        """Return the learner of these settings, and of what belongs to one run alone."""
        given, execution = self.settings, self.spec.execution
        settings: dict[str, Any] = {
            "epsilon": self.spec.price.epsilon,
            "delta": self.spec.price.delta,
            "n_teachers": n_teachers,
            "mechanism": given.mechanism,
            "n_queries": given.n_queries,
            "relation": self.spec.budget.relation,
            **more,
        }
        if self.spec.data.kind == "number":
            return PATERegressor(self.teacher, given.student, **settings)
        n_jobs = worker_processes(execution.n_jobs, execution.executor)
        return PATEClassifier(
            self.teacher, given.student, strategy=given.strategy, n_jobs=n_jobs, **settings
        )


class PateOfTargets(Pate):
    """Teachers vote on a number, or on several labels."""

    targets = ("number", "labels")

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        if self._estimate is not None or self.settings.strategy != PASSIVE:
            raise ParameterError(
                Parameter("n_queries" if self._estimate is not None else "strategy"),
                f" goes with one target of classes, and the target is"
                f" {_KINDS[self.spec.data.kind]}; leave it out.",
            )
        super().check()
        if self.spec.data.kind == "labels":
            name, own = named("mechanism", self.settings.mechanism, OF_LABELS)
            ballot = "sets" if name == "sets" else "labels"
            check_ballot(ballot, own.get("most_named"), len(self.tables.labels))

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        voting = self.terms(sizes)
        mechanism, shape, public = voting.mechanism, voting.shape, voting.public
        teachers, points = shape.n_teachers or 0, f"at {voting.n_points:,} public points"
        unanimous, sigma, unit = None, 0.0, "votes"
        if isinstance(mechanism, NoisyMeans):
            low, high = public["bounds"]
            released, unit = f"noisy means of the votes {points}", "of the target, on each mean"
            # noise is drawn on a sum of positions; here is its size on a mean, in the target's unit
            sigma = mechanism.sigma * (high - low) / (teachers * (shape.n_classes - 1))
        elif isinstance(mechanism, VoteQuantiles):
            released = f"quantiles of the votes, of rank {mechanism.rank}, {points}"
            unanimous, unit = unanimous_chance(mechanism, shape), ""
        else:
            assert isinstance(mechanism, NoisyVotes)
            what = "labels" if mechanism.release == "labels" else "noisy counts of votes for labels"
            released, sigma = f"{what}, {len(public['labels'])} of them, {points}", mechanism.scale
        return self._quoted(
            released,
            sigma,
            sizes,
            queries=voting.n_points,
            teachers=teachers,
            noise_unit=unit,
            unanimous=unanimous,
            can_be_planned=False,
        )


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
        if self.hypotheses is not None and not is_local_file(self.tables.private):
            raise _hypotheses_from_disk()
        self._students = saved_students(self.candidates)

    def questions(self, inputs: Any, watch: Watch | None = None) -> Iterator[Caution]:
        """Yield what is to be asked once the tables are known."""
        yield from cautions_of_ids(inputs.repeating_ids)

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        what = self.hypotheses or f"{len(self.candidates)} candidates"
        return self._quoted(
            f"the choice of one of {what}",
            2 / self.spec.price.epsilon,
            sizes,
            noise_unit="right answers",
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
        own = self._of_learner(ledger)
        own.pop("delta")
        model = SemiPrivateClassifier(
            self._students or hypotheses, n_cover=self.settings.n_cover, **own
        )
        model.fit(**self._given(inputs, folder))
        source: StudentSource = (
            chosen_file(self.candidates, model)
            if self.hypotheses is None
            else ChosenHypothesis(self.hypotheses)
        )
        return Fitted(
            model.released_,
            source,
            chosen=chosen_words(model.certificate_["public"], inputs.schema, inputs.classes),
            n_candidates=model.n_candidates_,
        )


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
        if named("mechanism", self.settings.mechanism, OF_CLASSES)[0] == "interactive":
            raise ParameterError(
                Parameter("mechanism"),
                " is interactive, which contradicts a student, and votes from a file have none;"
                " use confident.",
            )

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
        terms = choose_terms(
            given.mechanism, self.spec.price, votes.shape, n_queries=given.n_queries
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
        PATE: Pate if spec.data.kind == "class" else PateOfTargets,
        RECORD_VOTES: RecordVotes,
        CHOICE: Choice,
        VOTES: CastVotes,
    }
    return kinds[spec.method.name](spec)


def _learn(fit: Callable[..., Any], given: Mapping[str, Any], watch: Watch) -> None:
    """Fit all but the student, which is fitted where no private data ever was."""
    with public_warnings_noted(watch):
        model = fit(**given)
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
    """Return what decisions count each class for, by the classes themselves.

    Raises
    ------
    ParameterError
        If a weight is of no class.
    """
    weight = settings.class_weight
    if weight == "auto":
        return None if settings.positive_rate is None else "balanced"
    if isinstance(weight, str):
        return None if weight == "none" else weight
    check_weighted_names(weight, classes)
    names = {str(name): name for name in classes}
    return {names[name]: value for name, value in weight.items()}


def worker_processes(n_jobs: int, executor: str) -> int | None:
    """Return the worker processes of a run: none are asked for where a cluster does the work."""
    return None if n_jobs == 1 and executor != LOCAL else n_jobs
