"""What every method of a run does: check settings and tables, ask, quote and fit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Ledger
from secretballot.exceptions import Argument, DataError, Parameter, ParameterError
from secretballot.learners.training.learner import Learner
from secretballot.released import ReleasedLabels, ReleasedSums
from secretballot.runs.account import Account
from secretballot.runs.folder import RunFolder
from secretballot.runs.questions import (
    Caution,
    Watch,
    cautions_of_ids,
    cautions_of_price,
    cautions_of_records,
    note_careless_delta,
    settle_questions,
    warnings_dropped,
)
from secretballot.runs.spec import MOMENTS, PATE, RunSpec
from secretballot.runs.student_file import check_converts
from secretballot.runs.tables import (
    RunInputs,
    cautions_of_targets,
    check_files,
    refuse_swapped,
    table_digests,
)
from secretballot.teachers.executors import LOCAL, check_engine
from secretballot.teachers.votes import checked_labels, checked_range

#: Share by which a number of rows may differ before a forecast is off by more than its range.
_FAR = 0.1
KINDS = {"class": "one of classes", "number": "a number", "labels": "several labels"}
#: Mechanisms of teachers that take a delta of 0, by the target.
_PURE = {"class": "laplace", "number": "quantile"}


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
        deviation, and of the Laplace noise of a sparse vector its own scale; of a table of
        abstentions the votes over which their chance falls by a factor of e, and of a table of
        chances the Gaussian noise that reveals as much of an even vote.
    n_public : int
        Public points.
    queries : int or None
        Of them asked; None where no single points are.
    teachers : int or None
    chances : tuple of (int, float)
        At margins of votes, how often a label comes out right, or a query is answered.
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
    terms: dict[str, Any]
    sigma: float
    n_public: int
    queries: int | None = None
    teachers: int | None = None
    chances: tuple[tuple[int, float], ...] = ()
    cautions: tuple[Caution, ...] = ()
    account: Account | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the quote for machines; questions that depend on private data are left out."""
        found = dict(vars(self))
        asks = [one for one in found.pop("cautions") if not one.private]
        account = None if self.account is None else self.account.to_json()
        return {
            **found,
            "asks": [{"name": one.name, "text": one.text} for one in asks],
            "account": account,
        }


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a method released, and what the files of the release are made of.

    Attributes
    ----------
    released : ReleasedLabels or ReleasedSums
    student : str, ChosenHypothesis, OnnxStudent or None
        As `ReleaseJob` takes it.
    """

    released: ReleasedLabels | ReleasedSums
    student: Any


class Method:
    """A method of learning from tables, by the settings of a run."""

    step: ClassVar[str]
    #: What learns each kind of target that there is a learner for.
    learners: ClassVar[Mapping[str, type[Learner]]] = {}

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec

    @property
    def settings(self) -> Any:
        """The settings of this method."""
        return self.spec.method

    @property
    def price(self) -> PrivacyBudget:
        """The price of the release."""
        return self.spec.price

    @property
    def kind(self) -> str:
        """What the target is."""
        return self.spec.data.kind

    def description(self) -> dict[str, Any]:
        """Return what shapes the result beside the settings: the digests of the files."""
        return table_digests(self.spec)

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        data, output, execution = self.spec.data, self.spec.output, self.spec.execution
        workers = worker_processes(execution.n_jobs, execution.executor)
        check_engine(execution.executor, workers)
        if self.kind not in self.learners:
            raise ParameterError(
                Parameter("method"),
                f" is {self.settings.name}, which learns classes, and the target is"
                f" {KINDS[self.kind]}; use {MOMENTS} or {PATE}.",
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

    def questions(self, inputs: Any, watch: Watch) -> Iterator[Caution]:
        """Yield what is to be asked once the tables are known."""
        yield from cautions_of_records(
            self.price, self.spec.data.n_records, inputs.n_units, self.n_teachers(inputs)
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

    def quoted_inputs(
        self, account: Account, request: str, watch: Watch, vault: Path | None
    ) -> tuple[Any, Quote]:
        """Return the tables, read and checked, and the quote with all that is to be asked before
        anything is spent from this account, under a key of its own."""
        spec = self.spec
        account.refuse_beyond(request)
        watch.step("Reading tables")
        inputs = self.read(watch, vault)
        self.check_inputs(inputs, watch)
        quoted = self.quote(self.sizes(inputs))
        asked = [
            *cautions_of_price(spec.price, spec.data.n_records),
            *account.questions(spec.total),
            *self.questions(inputs, watch),
            *quoted.cautions,
        ]
        return inputs, replace(quoted, cautions=tuple(dict.fromkeys(asked)), account=account)

    def settle(self, quoted: Quote, watch: Watch) -> RunSpec:
        """Go on once all questions are answered; the settings then have the total of a new
        account."""
        total = settle_questions(quoted.cautions, self.spec.execution.confirm, watch)
        if total is not None:
            self.spec = self.spec.with_total(total)
        return self.spec

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise; refuse settings
        of which nothing comes."""
        raise NotImplementedError

    def fit(self, inputs: Any, folder: RunFolder, ledger: Ledger, watch: Watch) -> Fitted:
        """Release, and return what came of it; the student is fitted where no private data ever
        was."""
        model = self.learner(inputs, ledger)
        # the folder's key goes with it, so that a run that is taken up again is not paid twice
        named = {"request": folder.request, "purpose": self.spec.about.purpose or "learn"}
        with warnings_dropped():
            model.fit_labels(**inputs.for_fit, **named, **self.of_work(folder, watch))
        coverage = getattr(model, "coverage_", None)
        if coverage is not None and coverage.is_poor:
            watch.note(coverage.warning, private=False)
        return Fitted(model.released_, self.source(model))

    def of_work(self, folder: RunFolder, watch: Watch) -> dict[str, Any]:
        """Return how a fit does its work."""
        return {}

    def learner(self, inputs: Any, ledger: Ledger) -> Learner:
        """Return the learner of these settings."""
        return self.learner_with(ledger=ledger)

    def learner_with(self, **own: Any) -> Learner:
        """Return a learner whose parameters are the settings of their names, but for its own."""
        kind: Any = self.learners[self.kind]
        given = {
            **dict(self.settings),
            "epsilon": self.price.epsilon,
            "delta": self.price.delta,
            "relation": self.spec.budget.relation,
            **own,
        }
        model: Learner = kind(
            **{one.name: given[one.name] for one in fields(kind) if one.name in given}
        )
        return model

    def source(self, model: Learner) -> Any:
        """Return what the student is made by, of a learner that released."""
        return str(self.settings.student)

    def quoted(self, sigma: float, sizes: Sizes, terms: Mapping[str, Any], **more: Any) -> Quote:
        """Return a quote of this method and price."""
        spec = self.spec
        return Quote(
            self.settings.name,
            self.price.epsilon,
            self.price.delta,
            spec.data.unit_kind,
            spec.budget.relation,
            dict(terms),
            sigma,
            sizes.n_public,
            **more,
        )

    def needs_delta(self) -> None:
        """Refuse a delta of 0."""
        if not self.price.delta > 0:
            pure: list[str | Argument] = []
            if self.kind in _PURE:
                pure = ["; for a delta of 0: ", Argument("method", PATE), " "]
                pure.append(Argument("mechanism", _PURE[self.kind]))
            raise ParameterError(
                Parameter("delta"),
                f" is {self.price.delta:g}, and method {self.settings.name} needs more, such as"
                " 1e-6",
                *pure,
                ".",
            )


def _note_forecast(spec: RunSpec, inputs: Any, watch: Watch) -> None:
    """Refuse other classes than those of the plan; tell the curator where the private table has
    another size than it was made for."""
    if spec.forecast is None:
        return
    n_classes, expected = len(inputs.classes), spec.forecast.n_classes
    if n_classes and expected not in (None, n_classes):
        raise DataError(
            f"The plan is about {expected} classes and the run has {n_classes}; plan again, or"
            " declare the right ones."
        )
    stated = spec.data.n_records
    if stated is not None and not abs(inputs.n_private - stated) <= _FAR * stated:
        watch.note(
            f"The private file has {'fewer' if inputs.n_private < stated else 'more'} rows, by over"
            f" a tenth, than the {stated} that the plan was made for, so its forecast is off; plan"
            " again by a number that you may state in public.",
            private=True,
        )


def worker_processes(n_jobs: int, executor: str) -> int | None:
    """Return the worker processes of a run: none are asked for where a cluster does the work."""
    return None if n_jobs == 1 and executor != LOCAL else n_jobs
