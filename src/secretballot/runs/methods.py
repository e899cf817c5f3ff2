"""How a run learns: what each method of `learn` and `label` checks, asks, quotes and fits."""

import math
import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from secretballot._typing import Json, JsonView
from secretballot._validation import HYPOTHESES, refusal
from secretballot.accounting import (
    PrivacyBudget,
    WeakSignalWarning,
    check_useful,
    noisy_votes,
    teacher_shape,
)
from secretballot.accounting.calibration import gaussian_mu
from secretballot.accounting.recipes import Terms, answer_chance, largest_distance
from secretballot.bases.images import are_images
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import (
    AbstentionTable,
    NoisyMeans,
    SparseVector,
    VoteQuantiles,
    teachers_of,
)
from secretballot.core.private import Votes
from secretballot.data.columns import IgnoredColumn, VectorColumn
from secretballot.data.reading import read_votes, source_of
from secretballot.data.schema import Schema
from secretballot.exceptions import Argument, DataError, ParameterError
from secretballot.learners.inputs import Target, distinct_points, random_rows
from secretballot.learners.learner import Given, Learner
from secretballot.learners.moments import RecordMomentsClassifier, RecordMomentsRegressor
from secretballot.learners.pate import PATEClassifier, PATERegressor, estimate_in
from secretballot.learners.pate_mechanisms import choose_teachers, choose_terms
from secretballot.learners.record_votes import RecordVotesClassifier, default_votes
from secretballot.learners.selection import SemiPrivateClassifier
from secretballot.learners.session import check_trainable
from secretballot.learners.table import Block, check_positions
from secretballot.named_learners import teacher_by_name
from secretballot.planning.best_setting import stated_noise
from secretballot.planning.plan_model import hidden_class
from secretballot.publishing.release import ChosenHypothesis
from secretballot.queries import rounds_of
from secretballot.released import ReleasedLabels, ReleasedSums
from secretballot.releasing import release
from secretballot.report.certificate_models import COUNTS_SHARE
from secretballot.report.raw_columns import refuse_long_vocabularies
from secretballot.report.student_export import CONVERTS, check_answers, converted_student
from secretballot.report.student_load import load_student
from secretballot.report.wording import count_text
from secretballot.runs.folder import Account, RunFolder, check_outside_of_runs
from secretballot.runs.questions import Caution, Watch, cautions_of_ids
from secretballot.runs.spec import (
    CHOICE,
    MOMENTS,
    OWN,
    PATE,
    RECORD_VOTES,
    STREAM,
    VOTES,
    RunSpec,
    address,
)
from secretballot.runs.tables import RunInputs, cautions_of_targets, check_files, table_digests
from secretballot.students.fitting import Teaching, learns_from_counts, student_by_name, try_student
from secretballot.students.table_students import NumberStudent, fitted_to_public
from secretballot.teachers.executors import check_engine
from secretballot.teachers.votes import guarantee_of, record_votes_shape

Fitted = tuple[ReleasedLabels | ReleasedSums, Any]
KINDS = {"class": "one of classes", "number": "a number", "labels": "several labels"}
#: What learns each kind of target by a method, where something does.
_LEARNERS: dict[tuple[str, str], type[Learner]] = {
    (MOMENTS, "class"): RecordMomentsClassifier,
    (MOMENTS, "number"): RecordMomentsRegressor,
    (MOMENTS, "labels"): RecordMomentsClassifier,
    (PATE, "class"): PATEClassifier,
    (PATE, "number"): PATERegressor,
    (PATE, "labels"): PATEClassifier,
    (RECORD_VOTES, "class"): RecordVotesClassifier,
    (CHOICE, "class"): SemiPrivateClassifier,
    (STREAM, "class"): PATEClassifier,
}
_STREAM_NAMES = {"sparse-vector": "a sparse vector", "abstention-table": "a table of abstentions"}
#: Odds of one guess against another change by exp(epsilon), here by more than 20,000.
_LARGE_EPSILON = 10.0
#: Records that a program may publish whole, of a thousand.
_LARGE_DELTA = 1e-3
_TRIED = 1000  # public rows that a student is tried on


@dataclass(frozen=True)
class Sizes:
    """Public numbers that noise and queries follow from.

    Attributes
    ----------
    n_public, n_classes, n_columns : int
        Public points; classes; columns of the tables once encoded.
    rarest : float or None
        Share of the rarest class, or label, of the evaluation table, where there is one.
    """

    n_public: int
    n_classes: int = 2
    n_columns: int = 1
    rarest: float | None = None


@dataclass(frozen=True)
class Quote:
    """What a run would cost and ask, and what is to be expected of it, in public numbers.

    Attributes
    ----------
    method : str
    epsilon, delta : float
        Price.
    unit, relation : str
    terms : dict
        What would be released, under the names of a certificate, as JSON values.
    sigma : float
        Scale of the noise: of votes in votes, of means in the unit of the target, of sums in
        multiples of what one record can move; 0 of a quantile, which is drawn. The standard
        deviation; of a stream the margin that it answers nine times in ten; of a table of chances
        that of the Gaussian noise that reveals as much of an even vote.
    n_public : int
        Public points.
    queries : int or None
        Of them asked; None where no single points are.
    teachers : int or None
    rare_class : str or None
        Whether noise will hide a rare class, in a sentence; None where no public labels tell.
    cautions : tuple of Caution
        What the run would ask.
    account : Account or None
        What would pay; None where no files are known.
    """

    method: str
    epsilon: float
    delta: float
    unit: str
    relation: str
    terms: Json
    sigma: float
    n_public: int
    queries: int | None = None
    teachers: int | None = None
    rare_class: str | None = ""
    cautions: tuple[Caution, ...] = ()
    account: Account | None = None

    def to_json(self) -> Json:
        """Return the quote for machines; questions that depend on private data are left out."""
        found = dict(vars(self))
        asks = [one for one in found.pop("cautions") if not one.private]
        account = None if self.account is None else self.account.to_json()
        return {
            **found,
            "asks": [{"name": one.name, "text": one.text} for one in asks],
            "account": account,
        }


class Method:
    """A method of learning from tables, by the settings of a run."""

    step: ClassVar[str]

    def __init__(self, spec: RunSpec) -> None:
        self.spec, self.price, self.kind = spec, spec.price, spec.data.kind
        self.settings: Any = spec.method
        self._learner: Any = _LEARNERS.get((spec.method.name, self.kind))

    def description(self) -> Json:
        """Return what shapes the result beside the settings: the digests of the files."""
        return table_digests(self.spec)

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        execution = self.spec.execution
        check_engine(execution.executor, execution.n_jobs)
        if self._learner is None:
            raise refusal(
                "method",
                f" is {self.settings.name}, which learns classes, and the target is"
                f" {KINDS[self.kind]}; name one column of classes, or use {MOMENTS} or {PATE}.",
            )
        of_numbers = self.kind == "number"
        # what learns numbers has fewer settings
        known = {one.name for one in fields(self._learner)}
        for name, field in type(self.settings).model_fields.items() if of_numbers else ():
            if name not in known and getattr(self.settings, name) != field.default:
                raise refusal(
                    name,
                    f" of method {self.settings.name} goes with one target of classes, and the"
                    f" target is {KINDS[self.kind]}; leave it out.",
                )
        student_by_name(getattr(self.settings, "student", "auto"), of_numbers=of_numbers)
        check_files(self.spec)

    def read(self, watch: Watch, vault: Path | None) -> Any:
        """Return the tables, read and checked."""
        return RunInputs(self.spec, watch, vault)

    def questions(self, inputs: Any, quoted: Quote, watch: Watch) -> Iterator[Caution]:
        """Refuse settings that do not go with the tables, and yield what is to be asked."""
        spec, stated = self.spec, self.spec.data.n_records
        self.learner(inputs, None).check_given(Given(**inputs.for_fit))
        if "student" not in spec.output.exclude:
            self.check_converts(inputs)
        units = "records" if spec.data.unit is None else "persons"
        yield from _cautions_of_records(self.price, stated, inputs.n_units, units)
        yield from _cautions_of_teachers(quoted.teachers, inputs.n_units)
        yield from cautions_of_ids(inputs.repeating_ids)
        yield from cautions_of_targets(spec.data, inputs, watch)

    def check_converts(self, inputs: Any) -> None:
        """Refuse a student that could not be written to a release, before anything is paid: one
        that is named without settings can be, and any other is fitted to public points with dummy
        labels."""
        name, document = getattr(self.settings, "student", "auto"), inputs.schema.to_json()
        refuse_long_vocabularies(document)
        if ":" not in name:
            return
        student, some = (
            student_by_name(name, of_numbers=self.kind == "number"),
            inputs.X_public[:_TRIED],
        )
        if learns_from_counts(student):
            return
        # before an account is opened: what cannot learn is refused
        if self.kind == "number":
            check_trainable("student", student, some, 0)
            fitted = fitted_to_public(student, some, np.linspace(0.0, 1.0, len(some)), 0)
            fitted = NumberStudent(fitted, (0.0, 1.0))
        else:
            teaching = Teaching(inputs.classes or (0, 1), len(inputs.X_public))
            fitted = try_student(student, inputs.X_public, teaching)
        try:
            check_answers(fitted, converted_student(fitted, document), some, some)
        except DataError as error:
            raise refusal(
                "student",
                f" cannot be published: {error} Nothing was spent; what can be is {CONVERTS}. Or"
                " leave the student out with ",
                Argument("exclude", "student"),
                ", and learn one of your own from the released labels.",
            ) from None

    def sizes(self, inputs: Any) -> Sizes:
        """Return the public sizes of tables."""
        n_classes = len(inputs.classes) or 2
        return Sizes(len(inputs.X_public), n_classes, inputs.n_columns, inputs.rarest_share)

    def quoted_inputs(
        self, account: Account, request: str, watch: Watch, vault: Path | None
    ) -> tuple[Any, Quote]:
        """Return the tables, read and checked, and the quote with all that is to be asked before
        anything is spent from this account, under a key of its own."""
        spec = self.spec
        account.refuse_beyond(request)
        watch.step("Reading tables")
        inputs = self.read(watch, vault)
        quoted = self.quote(self.sizes(inputs))
        if getattr(self.settings, "n_queries", 0) is None and quoted.queries != quoted.n_public:
            watch.note(
                f"{quoted.queries} of {quoted.n_public} public points are asked, as many as this"
                " price answers well; n_queries says another number.",
                private=False,
            )
        asked = [*cautions_of_price(spec.price), *account.questions(spec.total)]
        asked += [*self.questions(inputs, quoted, watch), *quoted.cautions]
        return inputs, replace(quoted, cautions=tuple(dict.fromkeys(asked)), account=account)

    def settle(self, quoted: Quote, watch: Watch) -> RunSpec:
        """Go on once all questions are answered; the settings then have the total of a new
        account."""
        if quoted.rare_class:
            watch.note(quoted.rare_class, private=False)
        total = _settle_questions(quoted.cautions, self.spec.execution.confirm, watch)
        if total is not None:
            self.spec = self.spec.with_total(total)
        return self.spec

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise; refuse settings
        of which nothing comes."""
        raise NotImplementedError

    def fit(self, inputs: Any, folder: RunFolder, ledger: Ledger, watch: Watch) -> Fitted:
        """Return what was released, and what the student is made by, as `ReleaseJob` takes it: it
        is fitted where no private data ever was."""
        model = self.learner(inputs, ledger)
        # the folder's key goes with it, so that a run that is taken up again is not paid twice
        named = {"request": folder.request, "purpose": self.spec.about.purpose or "learn"}
        with _warnings_dropped():
            model.fit_labels(**inputs.for_fit, **named, **self.of_work(folder, watch))
        coverage = getattr(model, "coverage_", None)
        if coverage is not None and coverage.is_poor:
            watch.note(coverage.warning, private=False)
        return model.released_, self.source(model)

    def of_work(self, folder: RunFolder, watch: Watch) -> Json:
        """Return how a fit does its work, as far as the learner leaves that open."""
        execution = self.spec.execution
        work = {"executor": execution.executor, "send_shards": execution.send_shards}
        work |= {"vault": folder.vault, "progress": watch.progress}
        return {name: one for name, one in work.items() if name in self._learner.takes}

    def learner(self, inputs: Any, ledger: Ledger | None) -> Learner:
        """Return the learner of these settings, whose parameters have their names; of the tables
        `own_settings` says what it asks."""
        given = {**dict(self.settings), **dict(self.spec.budget), **self.own_settings(inputs)}
        given |= {"n_jobs": self.spec.execution.n_jobs, "ledger": ledger}
        names = [one.name for one in fields(self._learner) if one.name in given]
        model: Learner = self._learner(**{name: given[name] for name in names})
        return model

    def own_settings(self, inputs: Any) -> Json:
        """Return settings that follow from the tables, or are called otherwise than in a file."""
        return {}

    def source(self, model: Learner) -> Any:
        """Return what the student is made by, of a learner that released."""
        return str(self.settings.student)

    def quoted(self, sigma: float, sizes: Sizes, terms: JsonView, **more: Any) -> Quote:
        """Return a quote of this method and price."""
        about = self.settings.name, self.price.epsilon, self.price.delta
        promise = self.spec.data.unit_kind, self.spec.relation
        return Quote(*about, *promise, dict(terms), sigma, sizes.n_public, **more)

    def quoted_votes(self, terms: Terms, sizes: Sizes, usual: int = 0) -> Quote:
        """Return what is released of votes, and what noise leaves of it; of fewer points than usual
        the quote has a question."""
        mechanism, shape = terms.mechanism, terms.shape
        facts = {**mechanism.model_dump(mode="json"), **shape.model_dump(mode="json")}
        return self.quoted(
            _noise(terms),
            sizes,
            {**facts, **terms.public},
            queries=terms.n_points,
            teachers=shape.n_teachers or 0,
            cautions=tuple(_cautions_of_noise(terms, usual)),
        )

    def needs_delta(self) -> None:
        """Refuse a delta of 0."""
        if not self.price.delta > 0:
            raise refusal(
                "delta",
                f" is {self.price.delta:g}, and method {self.settings.name} needs more, such as"
                " 1e-6; of classes, for a delta of 0: ",
                Argument("method", PATE),
                " ",
                Argument("mechanism", "laplace"),
                ".",
            )


class _Moments(Method):
    """Noisy sums over all records."""

    step = "Adding up records"

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        self.needs_delta()
        price, n_stages, moved = self.price, self._learner.n_stages, 1
        counts_first = self.kind != "number"
        if self.spec.data.public_features:
            # a replaced label moves all sums alike, so there is one, without counts
            n_stages, counts_first = 1, False
        elif self.spec.relation == "replace-one":
            # a record that is replaced moves a sum twice as far as one that comes or goes
            moved = 2
        left = 1 - COUNTS_SHARE if counts_first else 1
        sigma = moved * math.sqrt(n_stages / left) / gaussian_mu(price.epsilon, price.delta)
        terms: Json = {"n_stages": n_stages, "counts_first": counts_first}
        if self.kind == "labels":
            terms["labels"] = self.spec.data.target
        rare_class: str | None = ""
        if self.kind != "number":
            rarest = sizes.rarest
            n_records = self.spec.data.n_records
            rare_class = hidden_class(rarest, n_records, price.epsilon) if rarest else None
        return self.quoted(sigma, sizes, terms, rare_class=rare_class)

    def own_settings(self, inputs: RunInputs) -> Json:
        """Return settings that follow from the tables, or are called otherwise than in a file."""
        weights = self.settings.weights
        if self.kind == "labels" and weights == "auto":  # which is about classes
            weights = None
        basis = basis_of_columns(self.settings.basis, inputs.schema, inputs.X_public)
        return {"basis": basis, "class_weight": by_class(weights, inputs.classes)}


class _RecordVotes(Method):
    """Every record votes at its nearest public points."""

    step = "Letting records vote"

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        self.needs_delta()
        n_points = min(self.settings.n_queries or sizes.n_public, sizes.n_public)
        own = self.settings.votes_per_record
        guarantee = guarantee_of("record", self.spec.budget.relation)
        votes = default_votes(n_points) if own is None else own
        shape = record_votes_shape(n_points, sizes.n_classes, votes, guarantee)
        sigma = noisy_votes(self.price, shape, release="counts").scale
        return self.quoted(sigma, sizes, {"votes_per_record": votes}, queries=n_points)


def _noise(terms: Terms) -> float:
    """Return the scale of the noise on votes, or on a mean of them in the unit of the target."""
    if isinstance(terms.mechanism, NoisyMeans):
        low, high = terms.public["bounds"]
        steps = (terms.shape.n_teachers or 0) * (terms.shape.n_classes - 1)
        return float(terms.mechanism.sigma * (high - low) / steps)
    return 0.0 if isinstance(terms.mechanism, VoteQuantiles) else stated_noise(terms)


class _Pate(Method):
    """Teachers on disjoint shards vote on classes, a number or several labels."""

    step = "Training teachers"

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        teacher_by_name(self.teacher, 0 if self.kind == "number" else 2)
        super().check()
        if self.spec.relation == "replace-one":
            check_positions(single=source_of(self.spec.private).single)

    @property
    def teacher(self) -> str:
        """The name of the teacher."""
        return str(self.settings.teacher or self._learner.teacher)

    def own_settings(self, inputs: Any) -> Json:
        """Return settings that follow from the tables, or from their sizes."""
        stated, n_teachers = self.spec.data.n_records, self.settings.n_teachers
        if n_teachers is None and stated is not None:
            n_teachers = choose_teachers(self.price, stated, inputs.n_columns)
        return {"teacher": self.teacher, "n_teachers": n_teachers or self._learner.n_teachers}

    def sizes(self, inputs: Any) -> Sizes:
        """Return the public sizes of tables; in rounds each distinct point is asked once."""
        found = super().sizes(inputs)
        if rounds_of(self.settings.strategy) is None:
            return found
        return replace(found, n_public=len(distinct_points(inputs.X_public)))

    def terms(self, sizes: Sizes) -> Terms:
        """Return mechanism and queries, from public numbers alone; nothing is paid.

        Where an estimate is to set them, they are those of one that shows nothing.
        """
        data = self.spec.data
        if self.kind == "number":
            target = Target.of_number(data.bounds)
        elif self.kind == "labels":
            target = Target.of_labels(data.target)
        else:
            target = Target.of_classes(range(sizes.n_classes))
        # it is asked about
        with warnings.catch_warnings(action="ignore", category=WeakSignalWarning):
            guarantee = guarantee_of(data.unit_kind, self.spec.relation)
            voter: Any = self.learner(sizes, None)
            terms: Terms = voter.planned_terms(target, sizes.n_public, guarantee)
        return terms

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        # what was asked for is enough
        # Points fewer than which teach hardly anything.
        usual = 0 if self.settings.n_queries is not None else min(10, sizes.n_public)
        quoted = self.quoted_votes(self.terms(sizes), sizes, usual)
        estimate = estimate_in(self.settings.n_queries)
        if estimate is None:
            return quoted
        # which would say itself how many queries make sense
        return replace(quoted, terms={**quoted.terms, "estimate": estimate}, cautions=())

    def of_work(self, folder: RunFolder, watch: Watch) -> Json:
        """Return how a fit does its work, as far as the learner leaves that open."""
        work = super().of_work(folder, watch)
        if self.kind == "labels":  # which are asked once, here
            work = {"progress": watch.progress}
        if self.spec.data.public_features:
            work["dropped"] = 0.0  # which the guarantee does not need, and accuracy is better
        return work


class _CastVotes(Method):
    """Votes that were cast elsewhere; there are no tables, and no student."""

    step = "Drawing noise"

    def description(self) -> Json:
        """Return what shapes the result beside the settings: the digest of the file."""
        return {"vote file": source_of(self.spec.private).digest()}

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        for name in self.spec.data.model_fields_set - {"private", "classes"}:
            raise refusal(name, " is about tables, and votes have none; leave it out.")
        if self.spec.budget.relation != "add-remove":
            raise refusal(
                "relation", " of votes from a file is add-remove; declare another one in Python."
            )

    def read(self, watch: Watch, vault: Path | None) -> Votes:
        """Return the votes, and settle by their shape alone what they will be asked."""
        given = self.settings
        place, classes = Path(self.spec.private), self.spec.data.classes
        votes = read_votes(place, given.kind, classes, given.n_teachers, given.header)
        asked, shape = given.mechanism, votes.shape
        self.terms = choose_terms(asked, self.price, shape, n_queries=given.n_queries)
        return votes

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on such votes would release, at which noise."""
        return self.quoted_votes(self.terms, sizes)

    def questions(self, inputs: Votes, quoted: Quote, watch: Watch) -> Iterator[Caution]:
        """Yield what is to be asked once the votes are known: only what the quote says."""
        return iter(())

    def sizes(self, inputs: Votes) -> Sizes:
        """Return the public sizes of the votes."""
        return Sizes(inputs.shape.n_queries, inputs.shape.n_classes)

    def fit(self, inputs: Votes, folder: RunFolder, ledger: Ledger, watch: Watch) -> Fitted:
        """Release labels of the votes; there is no student."""
        # Rows are chosen by the public seed alone: how clear the votes are is private.
        n_rows, n_asked = inputs.shape.n_queries, self.terms.shape.n_queries
        rows = random_rows(n_rows, n_asked, self.settings.random_state)
        with _warnings_dropped():
            released = release(
                inputs,
                self.terms.mechanism,
                ledger,
                self.terms.budget,
                queries=rows,
                request=folder.request,
                purpose=self.spec.about.purpose or "label",
            )
        return released, None


class _Choice(Method):
    """The best of a class of hypotheses, or of saved students."""

    step = "Choosing"

    def __init__(self, spec: RunSpec) -> None:
        names = spec.method.hypotheses  # type: ignore[union-attr]
        self.hypotheses = names[0] if len(names) == 1 and names[0] in HYPOTHESES else None
        self.candidates = () if self.hypotheses else tuple(map(Path, names))
        if self.candidates and spec.data.schema_file is None:
            data = spec.data.model_copy(update={"schema_file": _schema_beside(self.candidates)})
            spec = spec.model_copy(update={"data": data})
        super().__init__(spec)

    def description(self) -> Json:
        """Return what shapes the result beside the settings: the digests of the files."""
        chosen_from = self.hypotheses or [source_of(path).digest() for path in self.candidates]
        return {**super().description(), "hypotheses": chosen_from}

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        super().check()
        self._students = _saved_students(self.candidates)

    def questions(self, inputs: RunInputs, quoted: Quote, watch: Watch) -> Iterator[Caution]:
        """Refuse settings that do not go with the tables, and yield what is to be asked."""
        if self.hypotheses not in (None, "stumps") and inputs.n_columns != 1:
            raise DataError(
                f"The public file makes {inputs.n_columns} feature columns, and {self.hypotheses}"
                " need exactly one; drop the others with --drop, or use --set hypotheses=stumps."
            )
        yield from super().questions(inputs, quoted, watch)

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        # a record that comes or goes moves all numbers of mistakes one way, a replaced one both
        sigma = (2 if self.spec.budget.relation == "replace-one" else 1) / self.price.epsilon
        among = self.hypotheses or f"{len(self.candidates)} candidates"
        return self.quoted(sigma, sizes, {"among": among})

    def own_settings(self, inputs: RunInputs) -> Json:
        """Return settings that are called otherwise than in a file."""
        return {"hypotheses": self._students or self.hypotheses}

    def source(self, model: Any) -> Any:
        """Return what the student is made by, of a learner that released."""
        if self.hypotheses is not None:
            return ChosenHypothesis(self.hypotheses)
        return self._students[model.choice_.values.item()][1]


class Stream(Method):
    """Teachers that answer over HTTP, paid for beforehand."""

    step = "Training teachers"

    @property
    def name(self) -> str:
        """The name of the dataset in the addresses of the service, and of its files."""
        return self.spec.dataset_name

    @property
    def vault(self) -> Path:
        """The vault of the dataset."""
        return self.spec.output.out / f"{self.name}-vault"

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        address(self.name)
        given = self.spec.budget.ledger == OWN, self.spec.data.public_features
        for name, odd in zip(("ledger", "public_features"), given, strict=True):
            if odd:
                raise refusal(name, " is for releases alone; leave it out.")
        teacher_by_name(self.settings.teacher)
        check_outside_of_runs(self.spec.output.out)
        super().check()

    def questions(self, inputs: RunInputs, quoted: Quote, watch: Watch) -> Iterator[Caution]:
        """Refuse tables from which no session can be made, and yield what is to be asked."""
        if not isinstance(inputs.private, Block):
            raise DataError(
                "The private table is too large to train the teachers of a session from memory;"
                " give fewer columns or rows, or a machine with more memory. Nothing was spent."
            )
        if any(isinstance(column, VectorColumn) for column in inputs.schema.columns):
            raise DataError(
                "The tables have a column of vectors, which cannot be asked by column over HTTP"
                " yet; leave it out with --drop, or prepare the session in Python. Nothing was"
                " spent."
            )
        yield from super().questions(inputs, quoted, watch)

    def quote(self, sizes: Sizes) -> Quote:
        """Return what may be asked, at which noise."""
        return self.quoted_votes(self.terms(sizes.n_classes), sizes)

    def terms(self, n_classes: int) -> Terms:
        """Return mechanism and noise of the answers."""
        given = self.settings
        pool = teacher_shape(given.n_queries, n_classes, given.n_teachers)
        return choose_terms(given.mechanism, self.price, pool, n_queries=given.n_queries)


def _saved_students(paths: Sequence[Path]) -> list[tuple[str, Any]]:
    """Return the saved students, each named by its file or folder and the beginning of its
    digest."""
    # The digest ties the name on the certificate to this very file.
    digests = [source_of(path, role="hypothesis or student").digest() for path in paths]
    # twelve digits of the digest are enough to tell files apart
    return [
        (f"{_name_of(path)} {digest[:12]}", load_student(path))
        for path, digest in zip(paths, digests, strict=True)
    ]


def _name_of(path: Path) -> str:
    """Return how people call a file: by its own name, or by the folder of its run."""
    run = Path(os.path.abspath(path)).parent.parent
    return run.name if path.parent.name == "release" else path.stem


def _schema_beside(candidates: Sequence[Path]) -> Path | None:
    """Return the schema that the saved students were released with, by which they read columns.

    Raises
    ------
    DataError
        If they were released with different ones.
    """
    beside = [path.parent / "schema.json" for path in candidates]
    digests = {source_of(path).digest() if path.is_file() else None for path in beside}
    if len(digests) > 1:
        raise DataError(
            "The candidates were released with different columns, or some without a schema.json"
            " beside them; choose among students of one schema, or name it with --schema."
        )
    return None if digests <= {None} else beside[0]


def chosen_words(public: JsonView, schema: Schema, classes: Sequence[Any]) -> str:
    """Return the name of the chosen candidate; of a hypothesis, the cut or the interval, with six
    digits of the encoded column."""
    if "chosen" in public:
        return str(public["chosen"])
    hypothesis = public["hypothesis"]
    column = schema.feature_names[hypothesis.get("feature", 0)]
    ends = (
        f"{name} {end:.6g}" if isinstance(end, int | float) else f"{name} {end}"
        for name, end in hypothesis.items()
        if name != "feature"
    )
    return f"{classes[1]} where {column} (encoded) has {', '.join(ends)}, else {classes[0]}"


def method_of(spec: RunSpec) -> Method:
    """Return the method of a run."""
    kinds: dict[str, type[Method]] = {
        MOMENTS: _Moments,
        PATE: _Pate,
        RECORD_VOTES: _RecordVotes,
        CHOICE: _Choice,
        VOTES: _CastVotes,
        STREAM: Stream,
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


# --- what is asked before anything is spent ---


def _warnings_dropped() -> Any:
    """Drop all warnings of what is done inside: a foreign learner's may quote private cells.

    A learner that sets filters of its own, as some libraries do, is not heard either.
    """
    return warnings.catch_warnings(record=True, action="ignore")


def cautions_of_price(budget: PrivacyBudget) -> Iterator[Caution]:
    """Yield what is to be asked about a price, whatever it buys."""
    epsilon, delta = budget.epsilon, budget.delta
    if epsilon > _LARGE_EPSILON:
        exponent = math.floor(epsilon / math.log(10))
        yield Caution(
            "epsilon",
            f"epsilon {epsilon:g} protects hardly anything: whether a record was there may change"
            f" the odds of any outcome by a factor of 10 to the power of {exponent}; 1 is usual,"
            f" above {_LARGE_EPSILON:g} is a formality.",
        )
    if delta > _LARGE_DELTA:
        yield _careless_delta(delta, f"{_LARGE_DELTA:g}", private=False)


def _cautions_of_records(
    budget: PrivacyBudget, stated: int | None, n_units: int, units: str
) -> Iterator[Caution]:
    """Yield what is to be asked about the number of records, or of persons where these are the
    units; about the private one, for the curator alone, where none was stated in public."""
    private = stated is None
    records = n_units if stated is None else stated
    who = f"the private {units}" if stated is None else f"the {stated:,} stated records"
    if budget.delta * records >= 1:
        yield _careless_delta(budget.delta, f"one over the number of {who}", private=private)
    mu = gaussian_mu(budget.epsilon, budget.delta) if budget.delta > 0 else budget.epsilon
    # Fewer records than this many times the noise taught no method more than the larger class
    # (Adult, epsilon 0.1 and 1, 20 to 3,000 records).
    fewest = math.ceil(25 / mu) if mu > 0 else math.inf
    if records < fewest:
        yield Caution(
            "records",
            f"{who} are fewer than about {fewest:,}, and with so few a release of epsilon"
            f" {budget.epsilon:g} and delta {budget.delta:g} is hardly better than always naming"
            f" the largest class; use more {units}, or a larger epsilon.",
            private,
        )


def _cautions_of_teachers(n_teachers: int | None, n_units: int) -> Iterator[Caution]:
    """Yield what is to be asked, of the curator alone, where records do not go round."""
    if n_teachers is not None and n_units < n_teachers:
        yield Caution(
            "teachers",
            "there are fewer records, or persons, to deal out than teachers"
            f" ({n_teachers}), so that most would learn nothing; use fewer (n_teachers).",
            private=True,
        )


def _cautions_of_noise(terms: Terms, usual: int) -> Iterator[Caution]:
    """Yield what is to be asked where noise drowns the votes, or only fewer than `usual` points can
    be paid for."""
    mechanism = terms.mechanism
    with warnings.catch_warnings(
        record=True, action="always", category=WeakSignalWarning
    ) as caught:
        check_useful(mechanism, terms.shape)
    for warning in caught:
        yield Caution("noise", str(warning.message))
    if not caught and terms.n_points < usual:
        yield Caution(
            "noise",
            f"the price pays for {terms.n_points} of the public points alone, from which hardly"
            " anything is learnt; use more teachers (n_teachers), a larger epsilon, or say how"
            " many (n_queries).",
        )
    if isinstance(mechanism, SparseVector | AbstentionTable):
        n_teachers = teachers_of(terms.shape)
        share = answer_chance(mechanism, largest_distance(n_teachers))
        # A sparse vector that answers a unanimous vote less often than this hardly answers any.
        if share < 0.5:
            yield Caution(
                "noise",
                f"{_STREAM_NAMES[mechanism.kind]} with {count_text(n_teachers, 'teacher')} and"
                f" {count_text(mechanism.max_abstentions, 'abstention')} answers even a unanimous"
                f" vote with probability {share:.2f} only; use more teachers, fewer abstentions"
                " (max_abstentions), or a larger epsilon.",
            )


def _settle_questions(
    questions: Iterable[Caution], confirm: Collection[str], watch: Watch
) -> str | None:
    """Go on if every question was answered beforehand or is answered now.

    Parameters
    ----------
    questions : iterable of Caution
    confirm : collection of str
        Names of the questions that were answered beforehand.
    watch : Watch
        Called with the other questions, and with what was confirmed.

    Returns
    -------
    str or None
        The total of a new account, where it was asked for.

    Raises
    ------
    ParameterError
        If one was not; nothing was spent. The message lists all of them and is for the curator.
    """
    asked = list(dict.fromkeys(questions))
    unconfirmed = [one for one in asked if one.name not in confirm]
    answers = watch.ask(unconfirmed) if unconfirmed else {}
    open_ones = [one for one in unconfirmed if one not in answers]
    for question in asked:
        if question.name != "total" and question not in open_ones:
            watch.note(question.text, private=question.private)
    if not open_ones:
        return next((text for one, text in answers.items() if one.name == "total"), None)
    parts: list[str | Argument] = []
    for number, question in enumerate(open_ones, start=1):
        mark = f"({number}) " if len(open_ones) > 1 else ""
        text = f"{'; ' if parts else ': '}{mark}{question.text.rstrip('.')} ["
        of_total = question.name == "total"
        answer = Argument("total", "E,D") if of_total else Argument("confirm", question.name)
        parts += [text, answer, "]"]
    count = count_text(len(open_ones), "question")
    raise ParameterError(f"{count} before anything is spent", *parts, ". Nothing was spent.")


def _careless_delta(delta: float, bound: str, *, private: bool) -> Caution:
    """Return the question about a delta that one record's publication would satisfy."""
    return Caution(
        "delta",
        f"delta {delta:g} is not below {bound}: a program that publishes one whole record at random"
        " would keep such a promise; use a much smaller delta.",
        private,
    )
