"""How a run learns: what each method of `learn` and `label` checks, quotes and fits."""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from secretballot._naming import named
from secretballot._validation import (
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
from secretballot.bases.images import are_images
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
from secretballot.data.schema import Schema
from secretballot.data.sources import source_of
from secretballot.data.vote_files import read_votes
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.moments.class_weights import checked_weights
from secretballot.learners.moments.estimators import RecordMomentsClassifier, RecordMomentsRegressor
from secretballot.learners.pate.estimators import (
    PATEClassifier,
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
from secretballot.learners.training.inputs import random_rows
from secretballot.learners.training.learner import Learner
from secretballot.learners.training.shards import check_positions
from secretballot.learners.training.targets import Target
from secretballot.named_learners import teacher_by_name
from secretballot.queries import InRounds, rounds_of
from secretballot.releasing import release
from secretballot.report.certificate.coverage import COUNTS_SHARE
from secretballot.runs.choice import Choice
from secretballot.runs.folder import RunFolder, file_digest
from secretballot.runs.method import KINDS, Fitted, Method, Quote, Sizes, worker_processes
from secretballot.runs.questions import Caution, Watch, cautions_of_noise, warnings_dropped
from secretballot.runs.spec import (
    CHOICE,
    MOMENTS,
    PATE,
    RECORD_VOTES,
    VOTES,
    DataSpec,
    RunSpec,
)
from secretballot.runs.tables import RunInputs
from secretballot.students.names import student_by_name
from secretballot.teachers.records import record_votes_shape
from secretballot.teachers.votes import guarantee_of

DEFAULT_TEACHERS = 250
#: Margins at which it is stated how often a label comes out right, in shares of the teachers.
_MARGINS = (0.2, 0.6, 1.0)
#: Mechanisms of votes, by the target.
_MECHANISMS = {"class": OF_CLASSES, "number": OF_NUMBERS, "labels": OF_LABELS}


class Moments(Method):
    """Noisy sums over all records."""

    step = "Adding up records"
    learners: ClassVar[Mapping[str, type[Learner]]] = {
        "class": RecordMomentsClassifier,
        "number": RecordMomentsRegressor,
        "labels": RecordMomentsClassifier,
    }

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        for name in ("student", "class_weight"):
            given = getattr(self.settings, name)
            if self.kind != "class" and given not in ("auto", None):
                raise ParameterError(
                    name_part(name),
                    f" is {shown(given)}, and record moments of {KINDS[self.kind]} publish the"
                    f" model itself; leave it out, or use method {PATE}.",
                )
        student_by_name(self.settings.student)
        super().check()

    def check_inputs(self, inputs: Any, watch: Watch) -> None:
        """Refuse settings that do not go with the tables."""
        super().check_inputs(inputs, watch)
        checked_weights(by_class(self.settings.weights, inputs.classes), inputs.classes)

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        self.needs_delta()
        price, n_stages = self.price, RecordMomentsClassifier().n_stages
        counts_first = self.kind != "number"
        # a record that is replaced moves a sum twice as far as one that comes or goes
        moved = 2 if self.spec.budget.relation == "replace-one" else 1
        left = 1 - COUNTS_SHARE if counts_first else 1
        sigma = moved * math.sqrt(n_stages / left) / gaussian_mu(price.epsilon, price.delta)
        terms: dict[str, Any] = {"n_stages": n_stages, "counts_first": counts_first}
        if self.kind == "labels":
            terms["labels"] = self.spec.data.target
        return self.quoted(sigma, sizes, terms)

    def learner(self, inputs: RunInputs, ledger: Ledger) -> Learner:
        """Return the learner of these settings."""
        weights = self.settings.weights if self.kind == "class" else None
        return self.learner_with(
            basis=basis_of_columns(self.settings.basis, inputs.schema, inputs.X_public),
            class_weight=by_class(weights, inputs.classes),
            ledger=ledger,
        )

    def of_work(self, folder: RunFolder, watch: Watch) -> dict[str, Any]:
        """Return how a fit does its work."""
        execution = self.spec.execution
        return {"executor": execution.executor, "send_shards": execution.send_shards}


class RecordVotes(Method):
    """Every record votes at its nearest public points."""

    step = "Letting records vote"
    learners: ClassVar[Mapping[str, type[Learner]]] = {"class": RecordVotesClassifier}

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        student_by_name(self.settings.student)
        super().check()

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        self.needs_delta()
        n_points, own = self.settings.n_queries or sizes.n_public, self.settings.votes_per_record
        guarantee = guarantee_of("record", self.spec.budget.relation)
        votes = default_votes(n_points) if own is None else own
        shape = record_votes_shape(n_points, sizes.n_classes, votes, guarantee)
        sigma = noisy_votes(self.price, shape, release="counts").scale
        return self.quoted(sigma, sizes, {"votes_per_record": votes}, queries=n_points)


class VoteMethod(Method):
    """A method by votes of teachers."""

    def quoted_votes(self, terms: Terms, sizes: Sizes) -> Quote:
        """Return what is released of votes, and what noise leaves of it."""
        mechanism, shape = terms.mechanism, terms.shape
        facts = {**mechanism.model_dump(mode="json"), **shape.model_dump(mode="json")}
        return self.quoted(
            _noise(terms),
            sizes,
            {**facts, **terms.public},
            queries=terms.n_points,
            teachers=shape.n_teachers or 0,
            chances=tuple(_chances(terms)),
            cautions=tuple(cautions_of_noise(terms)),
        )


def _noise(terms: Terms) -> float:
    """Return the scale of the noise on votes, or on a mean of them in the unit of the target."""
    mechanism, n_teachers = terms.mechanism, terms.shape.n_teachers or 0
    if isinstance(mechanism, NoisyMeans):
        low, high = terms.public["bounds"]
        return float(mechanism.sigma * (high - low) / (n_teachers * (terms.shape.n_classes - 1)))
    if isinstance(mechanism, SparseVector | AbstentionTable):
        return scale_of_stream(mechanism)
    if isinstance(mechanism, ConfidentLabels):
        return mechanism.sigma
    if isinstance(mechanism, TableLabels):
        return table_deviation(mechanism, n_teachers)
    return deviation(mechanism) if isinstance(mechanism, NoisyVotes) else 0.0


def _chances(terms: Terms) -> Iterator[tuple[int, float]]:
    """Yield margins of votes, and how often a label comes out right there, or a query is answered;
    of a quantile, the least chance of a number that all teachers agree on."""
    mechanism, shape, n_teachers = terms.mechanism, terms.shape, terms.shape.n_teachers or 0
    if isinstance(mechanism, VoteQuantiles):
        yield n_teachers, unanimous_chance(mechanism, shape)
    counts = isinstance(mechanism, NoisyVotes) and mechanism.release == "counts"
    one_label = not counts and "labels" not in terms.public
    for share in _MARGINS:
        margin = share * n_teachers
        if isinstance(mechanism, SparseVector | AbstentionTable):
            distance = max(0, math.ceil(margin / 2) - 1)
            yield round(margin), answer_chance(mechanism, distance)
        elif one_label and isinstance(mechanism, NoisyVotes | TableLabels | ConfidentLabels):
            yield round(margin), right_chance(mechanism, margin, shape)


class Pate(VoteMethod):
    """Teachers on disjoint shards vote on classes, a number or several labels."""

    step = "Training teachers"
    learners: ClassVar[Mapping[str, type[Learner]]] = {
        "class": PATEClassifier,
        "number": PATERegressor,
        "labels": PATEClassifier,
    }

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        given = self.settings
        named("mechanism", given.mechanism, _MECHANISMS[self.kind])
        for name, one in (("n_queries", self._estimate), ("strategy", self._rounds)):
            if self.kind != "class" and one is not None:
                raise ParameterError(
                    Parameter(name),
                    f" goes with one target of classes, and the target is {KINDS[self.kind]};"
                    " leave it out.",
                )
        of_numbers = self.kind == "number"
        teacher_by_name(self.teacher, 0 if of_numbers else 2)
        student_by_name(given.student, of_numbers=of_numbers)
        super().check()
        if self.spec.budget.relation == "replace-one":
            check_positions(single=source_of(self.spec.private).single)

    @property
    def teacher(self) -> str:
        """The name of the teacher."""
        return str(self.settings.teacher or ("ridge" if self.kind == "number" else "logistic"))

    @cached_property
    def _estimate(self) -> float | None:
        """The part of epsilon that pays for a private estimate of the number of queries."""
        return estimate_in(self.settings.n_queries)

    @cached_property
    def _rounds(self) -> InRounds | None:
        return rounds_of(self.settings.strategy)

    def n_teachers(self, inputs: Any) -> int:
        """Return the number of teachers: as given, else by the stated records, else the default."""
        return self._n_teachers(inputs.X_public.shape[1])

    def _n_teachers(self, n_columns: int) -> int:
        if self.settings.n_teachers is not None:
            return int(self.settings.n_teachers)
        stated = self.spec.data.n_records
        if stated is None:
            return DEFAULT_TEACHERS
        return choose_teachers(self.price, stated, n_columns)

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
        data = self.spec.data
        target = {
            "class": lambda: Target.of_classes(range(sizes.n_classes)),
            "number": lambda: Target.of_number(data.bounds),
            "labels": lambda: Target.of_labels(data.target),
        }[self.kind]()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WeakSignalWarning)  # it is asked about
            terms: Terms = self._voter(sizes.n_columns, None).planned_terms(target, sizes.n_public)
        return terms

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        quoted = self.quoted_votes(self.terms(sizes), sizes)
        if self._estimate is None:
            return quoted
        # which would say itself how many queries make sense
        terms = {**quoted.terms, "estimate": self._estimate}
        return replace(quoted, terms=terms, cautions=())

    def learner(self, inputs: RunInputs, ledger: Ledger) -> Learner:
        """Return the learner of these settings."""
        model: Learner = self._voter(inputs.X_public.shape[1], ledger)
        return model

    def _voter(self, n_columns: int, ledger: Ledger | None) -> Any:
        execution = self.spec.execution
        return self.learner_with(
            teacher=self.teacher,
            n_teachers=self._n_teachers(n_columns),
            n_jobs=worker_processes(execution.n_jobs, execution.executor),
            ledger=ledger,
        )

    def of_work(self, folder: RunFolder, watch: Watch) -> dict[str, Any]:
        """Return how a fit does its work; several labels, and numbers, are asked once, here."""
        work: dict[str, Any] = {"progress": watch.progress}
        if self.kind == "class":
            execution = self.spec.execution
            work |= {"executor": execution.executor, "send_shards": execution.send_shards}
            work |= {"vault": folder.vault}
        return work


@dataclass(frozen=True, eq=False)
class VoteInputs:
    """Votes from a file."""

    votes: Votes


class CastVotes(VoteMethod):
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
        """Return the votes, and settle by their shape alone what they will be asked."""
        given, declared = self.settings, self.spec.data.classes
        votes = read_votes(
            Path(self.spec.private),
            kind=given.kind,  # type: ignore[arg-type]  # refused where it is missing
            classes=None if declared is None else list(declared),
            n_teachers=given.n_teachers,
            header=given.header,
        )
        asked, shape = given.mechanism, votes.shape
        self.terms = choose_terms(asked, self.price, shape, n_queries=given.n_queries)
        return VoteInputs(votes)

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on such votes would release, at which noise."""
        return self.quoted_votes(self.terms, sizes)

    def check_inputs(self, inputs: VoteInputs, watch: Watch) -> None:
        """Refuse settings that do not go with the votes: their reader did."""

    def questions(self, inputs: VoteInputs, watch: Watch) -> Iterator[Caution]:
        """Yield what is to be asked once the votes are known: only what the quote says."""
        return iter(())

    def sizes(self, inputs: VoteInputs) -> Sizes:
        """Return the public sizes of the votes."""
        return Sizes(inputs.votes.shape.n_queries, inputs.votes.shape.n_classes)

    def fit(self, inputs: VoteInputs, folder: RunFolder, ledger: Ledger, watch: Watch) -> Fitted:
        """Release labels of the votes."""
        shape = inputs.votes.shape
        # Rows are chosen by the public seed alone: how clear the votes are is private.
        rows = random_rows(shape.n_queries, self.terms.shape.n_queries, self.settings.random_state)
        with warnings_dropped():
            released = release(
                inputs.votes,
                self.terms.mechanism,
                ledger,
                self.terms.budget,
                queries=rows,
                request=folder.request,
                purpose=self.spec.about.purpose or "label",
            )
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


def by_class(weight: Any, classes: Sequence[Any]) -> Any:
    """Return weights by the classes themselves, where they are given by their names."""
    if not isinstance(weight, Mapping):
        return weight
    names = {str(name): name for name in classes}
    return {names.get(str(name), name): value for name, value in weight.items()}


def basis_of_columns(name: str, schema: Schema, X_public: Any) -> str:
    """Return the name of a basis, which is settled here for a table of vectors alone: "auto" is
    then for what vectors have in common, one scale for all of their numbers."""
    columns = [column for column in schema.columns if not isinstance(column, IgnoredColumn)]
    of_vectors = all(isinstance(column, VectorColumn) for column in columns)
    return "vectors" if name == "auto" and of_vectors and not are_images(X_public) else name
