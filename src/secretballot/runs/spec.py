"""All settings of a run, each declared once: `RunSpec`.

TOML files, the command line and Python keywords are three readers of it. Every field has a mark:
*identity* (it shapes the release, and a run is resumed by the same identity), *execution* (how the
work is done, and what was confirmed) or *place* (where files and accounts lie).
"""

import codecs
import csv
import difflib
import inspect
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo

from secretballot._files import is_url, place_of, shown_place, table_name
from secretballot._validation import (
    BasisName,
    HeaderLine,
    Json,
    JsonView,
    Names,
    Relation,
    VotesKind,
    integers_or_words,
    named,
    refusal,
    shown,
)
from secretballot.exceptions import BudgetError, DataError, ParameterError, SecretBallotError
from secretballot.named_learners import imports_a_class

if TYPE_CHECKING:
    from secretballot.core.price import PrivacyBudget

_Mark = Literal["identity", "execution", "place"]
MOMENTS, PATE, RECORD_VOTES, CHOICE = "record-moments", "pate", "record-votes", "semi-private"
VOTES, STREAM = "votes", "stream"
#: Methods of `learn`, the default first.
METHODS = (MOMENTS, PATE, RECORD_VOTES, CHOICE)
#: The account of a run alone, in its vault.
OWN = "own"
#: What a run may ask about, by the name under which it is answered beforehand.
_Question = Literal["epsilon", "delta", "records", "teachers", "noise", "target", "unit"]
DEFAULT_OUT = Path("secretballot-out")
_LONGEST = 500  # characters of a text about a release
_LEARNERS = (
    "logistic, tree, forest, boosting, naive-bayes, knn, each with settings where wanted"
    " (tree:max_depth=3), or module:Class"
)


def words_of(value: Any) -> Any:
    """Return the words of a list by commas; a word with a comma in it is quoted as in CSV."""
    if not isinstance(value, str):
        return value
    problem = ""
    try:
        value.encode()
        return tuple(
            word.strip() for row in csv.reader([value], skipinitialspace=True) for word in row
        )
    except UnicodeEncodeError:
        problem = "is not UTF-8"
    except csv.Error:
        problem = "has a line break, or a quotation mark that is not closed"
    raise ValueError(f" {problem}; give words by commas, on one line.")


def _classes(value: Any) -> Any:
    """Return classes as they are listed, as integers where all of them are."""
    words = words_of(value)
    return integers_or_words(words) if isinstance(value, str) else words


def _two_numbers(value: Any) -> Any:
    pair = words_of(value)
    pair = (pair.epsilon, pair.delta) if hasattr(pair, "epsilon") else pair
    if not isinstance(pair, Sequence) or len(pair) != 2:
        raise ValueError(
            f" is {shown(value)}; give two numbers by a comma, such as 4,1e-5 or 0,100."
        )
    return [_not_a_truth(number) for number in pair]


def _total(pair: tuple[float, float]) -> tuple[float, float]:
    from secretballot.core.price import PrivacyBudget

    try:
        PrivacyBudget(*pair)
    except ParameterError as error:
        raise ValueError(f" is {pair[0]:g},{pair[1]:g}; {error}") from None
    return pair


def _by_name(value: Any) -> Any:
    """Return values by names, as ``no:1,yes:20`` or a mapping gives them."""
    if not isinstance(value, str):
        return value
    pairs = [word.rpartition(":") for word in words_of(value)]
    found = {name: one for name, _, one in pairs if name}
    if len(found) < len(pairs):
        raise ValueError(f" is {shown(value)}; write NAME:VALUE,..., each name once.")
    return found


def _weights(value: Any) -> Any:
    """Return what decisions count each class for: a name, or weights by class."""
    return value if value in ("auto", "none", "balanced") else _by_name(value)


def _place(value: Any) -> Any:
    if not isinstance(value, str | os.PathLike):
        raise ValueError(f" is {shown(value)}; it must be a path, or a URL.")
    return place_of(os.fspath(value))


def _local_path(value: Any) -> Any:
    if is_url(value):
        raise ValueError(" is a URL; it must be a path.")
    return value


def _account(value: Any) -> Any:
    from secretballot.core.ledger.urls import DatabasePlace, file_or_database, is_database

    if value == OWN or isinstance(value, DatabasePlace):
        return value
    if not isinstance(value, str | os.PathLike):
        raise ValueError(f" is {shown(value)}; it must be a path, a database's URL, or own.")
    if is_url(value) and not is_database(value):
        raise ValueError(
            " is a URL of no PostgreSQL database; it must be a path, a database's URL, or own."
        )
    return file_or_database(os.fspath(value))


def _not_a_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(f" is {value}; it must be a number.")
    return value


#: Encodings without shifts or escapes, in which no line changes how another one is read.
_LINES_APART = re.compile(
    r"utf-8|ascii|iso8859-\d+|cp\d+|koi8-\w|mac-\w+|big5|gbk|gb2312|gb18030|shift_jis|euc_(jp|kr)"
)


def _encoding(value: Any) -> Any:
    """Return the one name of a text encoding, however it is spelled."""
    name = ""
    with suppress(LookupError, TypeError, ValueError):
        "".encode(value)
        name = codecs.lookup(value).name
    if not _LINES_APART.fullmatch(name):
        raise ValueError(
            f" is {shown(value)}, which names no encoding in which every line is read by itself;"
            " give one such as cp1252, or convert the files to UTF-8."
        )
    return name


_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def address(name: str) -> str:
    """Return a name that can be part of an address as it is."""
    if not _ADDRESS.fullmatch(name):
        raise ParameterError(
            f"{shown(name)} cannot be part of an address; use at most 80 letters, digits, dots,"
            " hyphens and underscores, a letter or digit first."
        )
    return name


def _line(value: Any) -> Any:
    if not (isinstance(value, str) and value.strip() and value.isprintable()):
        raise ValueError(f" is {shown(value)}; give text on one line, or leave it out.")
    if len(value) > _LONGEST:
        raise ValueError(f" has {len(value):,} characters; give at most {_LONGEST}.")
    return value


_Words = Annotated[Names, BeforeValidator(words_of)]
_Classes = Annotated[tuple[str | int, ...], BeforeValidator(_classes)]
_Pair = Annotated[tuple[float, float], BeforeValidator(_two_numbers)]
_Total = Annotated[_Pair, AfterValidator(_total)]
_Place = Annotated[Path | str, BeforeValidator(_place)]
_LocalPath = Annotated[Path, BeforeValidator(_local_path)]
# of a Path, a DatabasePlace or "own"; loaded when a ledger is named, since help needs none
_Account = Annotated[Any, BeforeValidator(_account)]
_Count = Annotated[int, BeforeValidator(_not_a_truth), Field(ge=1)]
_Seed = Annotated[int, BeforeValidator(_not_a_truth), Field(ge=0)]
_Number = Annotated[float, BeforeValidator(_not_a_truth)]
_Line = Annotated[str, BeforeValidator(_line)]
_Weights = Annotated[
    dict[str, float] | Literal["auto", "none", "balanced"], BeforeValidator(_weights)
]
# a number, or the name of what finds one, such as estimate:epsilon=0.1
_Queries = Annotated[_Count | str, Field(union_mode="left_to_right")]


def setting(
    default: Any,
    metavar: str = "NAME",
    panel: str | None = None,
    *,
    mark: _Mark = "identity",
    text: str | None = None,
    **more: Any,
) -> Any:
    """Return a field: its default, how its value is called in a help text, the panel of the help
    that shows it, None for files and ``--set`` alone, and its mark. What it means is in the
    docstring of its group, or in `text`."""
    extra: Json = {"mark": mark, "metavar": metavar, "panel": panel}
    return Field(default, description=text, json_schema_extra=extra, **more)


def described(docstring: str | None) -> dict[str, str]:
    """Return what a docstring says of each attribute or parameter in its last section, on one
    line."""
    _, _, section = inspect.cleandoc(docstring or "").partition("\n----------\n")
    entries = (one.partition("\n") for one in re.split(r"\n(?=\S)", section))
    return {name: " ".join(text.split()) for name, _, text in entries}


ARGUMENTS, DATA, _PRIVACY, METHOD, RUN = "Arguments", "Data", "Privacy", "Method", "Run"


class Part(BaseModel):
    """A group of settings."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        arbitrary_types_allowed=True,
        populate_by_name=True,
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        texts = described(cls.__doc__)
        for name, (_, field) in cls.settings().items():
            field.description = texts.get(name, field.description)

    @classmethod
    def settings(cls) -> dict[str, tuple[str, FieldInfo]]:
        """Return attribute and field of every setting of this group by its name."""
        return {one.alias or key: (key, one) for key, one in cls.model_fields.items()}

    @classmethod
    def of_tree(cls, tree: JsonView) -> Self:
        """Return the settings of nested tables."""
        try:
            return cls.model_validate(tree)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
        raise _refusal(problem)


class DataSpec(Part):
    """Which tables a run reads, and which of their columns have a duty.

    Attributes
    ----------
    private
        Private labelled table.
    public
        Public table without labels.
    target
        Column to learn; several are yes-or-no labels.
    classes
        All classes, from public knowledge; the last of two is the positive one.
    bounds
        The target is a number within these public bounds.
    unit
        Protect all rows of one id together, such as a patient's.
    drop
        Columns to ignore.
    schema
        Column types, as `plan` writes them; by default those of PUBLIC.
    columns
        Kinds of columns that PUBLIC does not show, such as note:text, admitted:day-first.
    accept_unseen
        Columns to go on with though most of their cells do not fit the public ones.
    n_records
        Public statement of the number of private records.
    encoding
        Text encoding of the CSV files that the run reads, as Python names it, such as cp1252.
    public_features
        Labels alone are private, under replace-one: all else in PRIVATE is public, and PUBLIC is
        left out.
    """

    private: _Place | None = setting(None, "PRIVATE", ARGUMENTS, mark="place", repr=False)
    public: _Place | None = setting(None, "PUBLIC", ARGUMENTS, mark="place")
    target: _Words = setting((), "COL[,COL...]", DATA)
    classes: _Classes | None = setting(None, "A,B", DATA)
    bounds: _Pair | None = setting(None, "LOW,HIGH", DATA)
    unit: str | None = setting(None, "COL", DATA)
    drop: _Words = setting((), "A,B", DATA)
    schema_file: _LocalPath | None = setting(None, "FILE", DATA, mark="place", alias="schema")
    columns: Annotated[Json, BeforeValidator(_by_name)] | None = setting(None, "COL:KIND")
    accept_unseen: _Words = setting((), "A,B", mark="execution")
    n_records: _Count | None = setting(None, "N")
    encoding: Annotated[str, BeforeValidator(_encoding)] = setting("utf-8")
    public_features: bool = setting(False, "true")

    @model_validator(mode="after")
    def _target_is_of_one_kind(self) -> Self:
        if self.unit in self.target:
            raise refusal(
                "unit",
                f" is {shown(self.unit)}, which is a target; name the column of ids of persons.",
            )
        if self.bounds is not None and (self.classes is not None or len(self.target) > 1):
            raise refusal(
                "bounds",
                " is given, so the target is a number: one column, without classes; leave one of"
                " the two out.",
            )
        if self.public_features and (self.public or self.unit or self.kind != "class"):
            raise refusal(
                "public_features",
                " goes with one target of classes, without a public file and without a unit; leave"
                " one of the two out.",
            )
        return self

    @property
    def points(self) -> Path | str | None:
        """The table of public points; where labels alone are private, that of the records."""
        return self.private if self.public_features else self.public

    @property
    def kind(self) -> Literal["class", "number", "labels"]:
        """What the target is: one of classes, a number, or several labels."""
        if self.bounds is not None:
            return "number"
        return "labels" if len(self.target) > 1 else "class"

    @property
    def unit_kind(self) -> Literal["record", "user", "label"]:
        """What is protected: one record, all records of one id, or one label."""
        if self.public_features:
            return "label"
        return "record" if self.unit is None else "user"

    @property
    def aside(self) -> list[str]:
        """Columns that are never features, whichever file has them."""
        return [name for name in (*self.target, self.unit, *self.drop) if name is not None]


class BudgetSpec(Part):
    """What a release costs, and the account that pays.

    Attributes
    ----------
    epsilon
        Price of this release; 1 is usual, above 4 is weak.
    delta
        Far below one over the number of units, such as 1e-6.
    relation
        The change that is protected: a unit more or less, or a record replaced.
    total
        Limit of all releases; needed once, when the account is opened.
    ledger
        Account: a file, a database's URL, or own; by default $SECRETBALLOT_LEDGER, else
        PRIVATE.ledger.
    dataset
        Public name of the private data; by default that of its file.
    """

    epsilon: _Number | None = setting(None, "E", _PRIVACY)
    delta: _Number | None = setting(None, "D", _PRIVACY)
    relation: Relation = setting("add-remove")
    total: _Total | None = setting(None, "E,D", _PRIVACY, mark="execution")
    ledger: _Account | None = setting(None, "PLACE", _PRIVACY, mark="place")
    dataset: str | None = setting(None, panel=_PRIVACY)


class _MethodSpec(Part):
    """What all methods have.

    Attributes
    ----------
    random_state
        Seed of fits and of the choice of public points; never of the noise.
    """

    random_state: _Seed = setting(0, "N")


class _StudentSpec(_MethodSpec):
    """What the methods with a student have."""

    student: str = setting(
        "auto", text=f"Model to publish: auto, boosted, {_LEARNERS}.", panel=METHOD
    )


class _MomentsSpec(_StudentSpec):
    """Noisy sums over all records.

    Attributes
    ----------
    basis
        How public points make numbers of rows: auto (images, vectors or table, as these
        look), table, kernel (of ranks, for tables of numbers), vectors, images.
    class_weight
        none, balanced or A:W,B:W: what decisions count each class for; auto balances where
        one is found more than nine times as often as another.
    """

    name: Literal["record-moments"] = "record-moments"
    basis: BasisName = setting("auto", "NAME", METHOD)
    class_weight: _Weights = setting("auto", "HOW", METHOD)

    @property
    def weights(self) -> str | dict[str, float] | None:
        """What decisions count each class for; None where all count alike."""
        return None if self.class_weight == "none" else self.class_weight


class _PateSpec(_StudentSpec):
    """Teachers on disjoint shards vote on public points.

    Attributes
    ----------
    n_teachers
        PATE: number of teachers; by default 250, or by the stated number of records.
    mechanism
        How votes become answers: auto, labels, counts, vote-table, laplace, sparse-vector,
        abstention-table, confident, interactive; of numbers mean or quantile; of several
        labels also sets.
    n_queries
        Public points to label, or estimate:epsilon=E.
    strategy
        Which public points: passive, or in rounds disagreement, margin, entropy, committee,
        cluster.
    """

    name: Literal["pate"] = "pate"
    teacher: str | None = setting(None, text=f"PATE: {_LEARNERS}; of numbers ridge.", panel=METHOD)
    n_teachers: _Count | None = setting(None, "K", METHOD)
    mechanism: str = setting("auto")
    n_queries: _Queries | None = setting(None, "L")
    strategy: str = setting("passive")


class _RecordVotesSpec(_StudentSpec):
    """Every record votes at its nearest public points.

    Attributes
    ----------
    votes_per_record
        Public points that a record votes for; by default one in a hundred.
    n_queries
        Public points that take votes.
    """

    name: Literal["record-votes"] = "record-votes"
    votes_per_record: _Count | None = setting(None, "K")
    n_queries: _Count | None = setting(None, "L")


class _ChoiceSpec(_MethodSpec):
    """The best of a class of hypotheses, or of saved students.

    Attributes
    ----------
    hypotheses
        stumps, thresholds or intervals; or student.onnx files to choose from.
    n_cover
        Public points that make a class finite; by default all.
    """

    name: Literal["semi-private"] = "semi-private"
    hypotheses: _Words = setting(..., "A,B")
    n_cover: _Count | None = setting(None, "N")


class _VotesSpec(_MethodSpec):
    """Votes that were cast elsewhere.

    Attributes
    ----------
    kind
        Columns are teachers (votes) or classes (counts).
    header
        Whether the first line of a CSV file names its columns: yes or no.
    n_teachers
        Number of teachers, where the file does not say it.
    mechanism
        How votes become answers: labels, counts, vote-table, laplace, sparse-vector,
        abstention- table or confident.
    n_queries
        Rows to label; by default as many as the price allows.
    """

    name: Literal["votes"] = "votes"
    kind: VotesKind | None = setting(None, panel=DATA)
    header: HeaderLine | None = setting(None, panel=DATA)
    n_teachers: _Count | None = setting(None, "K", METHOD)
    mechanism: str = setting("labels", panel=METHOD)
    n_queries: _Count | None = setting(None, "L", METHOD)


class _StreamSpec(_MethodSpec):
    """Teachers that answer over HTTP, paid for beforehand.

    Attributes
    ----------
    stream
        Name of the stream, in addresses.
    n_queries
        Queries that may be asked.
    n_teachers
        Number of teachers.
    mechanism
        What an answer holds: labels or counts.
    """

    name: Literal["stream"] = "stream"
    stream: Annotated[str, AfterValidator(address)] = setting("session", panel=METHOD)
    n_queries: _Count = setting(..., "L", METHOD)
    teacher: str = setting("logistic", text=f"Teacher: {_LEARNERS}.", panel=METHOD)
    n_teachers: _Count = setting(250, "K", METHOD)
    mechanism: Literal["labels", "counts"] = setting("labels", panel=METHOD)


_AnyMethod = Annotated[
    _MomentsSpec | _PateSpec | _RecordVotesSpec | _ChoiceSpec | _VotesSpec | _StreamSpec,
    Field(discriminator="name"),
]
METHOD_SPECS: dict[str, type[_MethodSpec]] = {
    spec.model_fields["name"].default: spec for spec in get_args(get_args(_AnyMethod)[0])
}


class _OutputSpec(Part):
    """What is written, and where.

    Attributes
    ----------
    out
        Folder of the run.
    evaluate
        Public labelled table to measure the model on.
    publish_metrics
        Write these figures into the release.
    exclude
        Parts of the release to leave out: report, student.
    format
        File of the released labels: csv; or parquet, which is written beside it.
    """

    out: _LocalPath = setting(DEFAULT_OUT, "DIR", RUN, mark="place")
    evaluate: _Place | None = setting(None, "FILE", DATA, mark="place")
    publish_metrics: bool = setting(False, "true", mark="execution")
    exclude: _Words = setting((), "PARTS", mark="execution")
    file_format: Literal["csv", "parquet"] = setting(
        "csv", panel=RUN, mark="execution", alias="format"
    )


class _ExecutionSpec(Part):
    """How the work is done.

    Attributes
    ----------
    n_jobs
        Worker processes of the teachers, where not one does all.
    executor
        Where teachers and sums are made: local, dask://HOST:PORT, ray.
    send_shards
        Send rows that lie on disk to the workers.
    confirm
        Answer questions beforehand, such as epsilon,records.
    """

    n_jobs: _Count | None = setting(None, "N", mark="execution")
    executor: str = setting("local", "WHERE", mark="execution")
    send_shards: bool = setting(False, "true", mark="execution")
    confirm: Annotated[tuple[_Question, ...], BeforeValidator(words_of)] = setting(
        (), "NAMES", RUN, mark="execution"
    )


class _AboutSpec(Part):
    """What a reader of the release learns from the curator; all of it public.

    Attributes
    ----------
    title
        What people call the data.
    purpose
        Why the release is made.
    controller
        Person or body that answers for the data.
    contact
        How to reach somebody.
    """

    title: _Line | None = setting(None, "TEXT")
    purpose: _Line | None = setting(None, "TEXT")
    controller: _Line | None = setting(None, "TEXT")
    contact: _Line | None = setting(None, "TEXT")


class RunSpec(Part):
    """All settings of a run.

    Examples
    --------
    >>> spec = sb.RunSpec.read(
    ...     private="patients.csv", public="public.csv", target="ill", classes="no,yes",
    ...     epsilon=1, delta=1e-6)
    >>> spec.method.name, spec.data.classes
    ('record-moments', ('no', 'yes'))
    >>> print(spec.to_toml().splitlines()[0])
    [data]
    """

    data: DataSpec = DataSpec()
    budget: BudgetSpec = BudgetSpec()
    method: _AnyMethod = _MomentsSpec()
    output: _OutputSpec = _OutputSpec()
    execution: _ExecutionSpec = _ExecutionSpec()
    about: _AboutSpec = _AboutSpec()
    #: What a plan expects of the run, each range as value, low and high; no setting.
    forecast: dict[str, int | tuple[float, float, float]] | None = None

    @model_validator(mode="after")
    def _price_is_complete(self) -> Self:
        budget = self.budget
        for name in ("epsilon", "delta"):
            pure = name == "delta" and self.method.name == CHOICE
            if getattr(budget, name) is None and not pure:
                raise refusal(
                    name,
                    " is missing; give the price of the release, such as epsilon 1 and delta 1e-6.",
                )
        if self.method.name == CHOICE and budget.delta:
            raise refusal(
                "delta", f" is {budget.delta:g}, and method {CHOICE} needs none; leave it out."
            )
        price, total = self.price, self.total
        if total is not None and (total.epsilon < price.epsilon or total.delta < price.delta):
            raise BudgetError(
                f"The total of {total.epsilon:g}, {total.delta:g} is less than the price of this"
                f" run, {price.epsilon:g}, {price.delta:g}; give a larger total. No account was"
                " made."
            )
        return self

    @classmethod
    def read(cls, *files: str | os.PathLike[str], **fields: Any) -> Self:
        """Return the settings of TOML files, in their order, and of keywords.

        Parameters
        ----------
        *files : path
            A plan among them binds: no other source may change what it sets.
        **fields
            By the names of the fields, which differ in all groups; `method` names the method.

        Raises
        ------
        ParameterError, DataError
            If a file cannot be read, or a setting is unknown or cannot be.
        """
        return cls.of_tree(Sources(files, fields).tree())

    @property
    def price(self) -> "PrivacyBudget":
        """The price of the release."""
        from secretballot.core.price import PrivacyBudget

        return PrivacyBudget(self.budget.epsilon or 0.0, self.budget.delta or 0.0)

    def with_total(self, total: object) -> Self:
        """Return these settings with the limit of all releases of the account."""
        budget = self.budget.model_dump() | {"total": total}
        return type(self).of_tree({**dict(self), "budget": budget})

    @property
    def relation(self) -> Relation:
        """The change that is protected; a label is always replaced."""
        return "replace-one" if self.data.public_features else self.budget.relation

    @property
    def total(self) -> "PrivacyBudget | None":
        """What all releases of the account may cost."""
        from secretballot.core.price import PrivacyBudget

        return None if self.budget.total is None else PrivacyBudget(*self.budget.total)

    @property
    def private(self) -> Path | str:
        """The private file."""
        if self.data.private is None:
            raise refusal("private", " is missing; name the private table.")
        return self.data.private

    @property
    def dataset_name(self) -> str:
        """The public name of the private data."""
        return self.budget.dataset or table_name(self.private)

    def identity(self) -> Json:
        """Return the settings that shape the release, as JSON values."""
        return _plain(
            {
                "method" if name == "name" else name: value
                for _, name, value, field in self._leaves()
                if _mark_of(field) == "identity"
            }
        )

    def to_toml(self, *, absolute: bool = False) -> str:
        """Return all settings that are not their defaults, as a file that `read` takes; with
        absolute paths from any folder."""
        tables: dict[str, Json] = {}
        for group, name, value, field in self._leaves():
            if name == "name" or value != field.default:
                place = _mark_of(field) == "place"
                written = _written_place(value, absolute=absolute) if place else value
                tables.setdefault(group, {})[name] = written
        return toml_text({group: _plain(given) for group, given in tables.items()})

    def _leaves(self) -> Iterator[tuple[str, str, Any, FieldInfo]]:
        """Yield group, name, value and field of every setting."""
        for group, part in self:
            for name, (key, field) in part.settings().items() if group != "forecast" else ():
                yield group, name, getattr(part, key), field


def _mark_of(field: FieldInfo) -> _Mark:
    extra: Any = field.json_schema_extra or {"mark": "identity"}
    found: _Mark = extra["mark"]
    return found


def declared(*places: str) -> dict[str, FieldInfo]:
    """Return the fields of settings by their names.

    Parameters
    ----------
    *places : str
        Groups, of which "method" is that of all methods of `learn`; methods; and single settings as
        ``GROUP.NAME``.
    """
    found: dict[str, FieldInfo] = {}
    for place in places:
        group, _, only = place.partition(".")
        models: Any = [METHOD_SPECS[one] for one in METHODS]
        if group != "method":
            models = [METHOD_SPECS.get(group) or RunSpec.model_fields[group].annotation]
        for model in models:
            for name, (_, field) in model.settings().items():
                if name != "name" and only in ("", name):
                    found.setdefault(name, field)
    return found


@cache
def groups() -> dict[str, str]:
    """Return the group of every setting, by its name."""
    found = dict.fromkeys(["method", *declared(*METHOD_SPECS)], "method")
    for group in RunSpec.model_fields.keys() - {"method", "forecast"}:
        found |= dict.fromkeys(declared(group), group)
    return found


@cache
def _methods_of(name: str) -> Names:
    """Return the methods of `learn` that have a setting."""
    return tuple(one for one in METHODS if name in METHOD_SPECS[one].model_fields)


class Sources:
    """Where the settings of a run come from: files first, then fields.

    Attributes
    ----------
    given : dict
        Every setting that was given, by its name.
    forecast : mapping or None
        What a plan among the files expects.
    """

    def __init__(
        self, files: Any = (), fields: JsonView | None = None, *, method: str | None = None
    ) -> None:
        self.given: Json = {}
        self.forecast: Json | None = None
        self._planned: Json = {}
        self._named = frozenset(fields or ())
        self._fixed = method
        for file in files:
            self._add_file(Path(file))
        self.add(fields or {})

    def add(self, fields: JsonView) -> None:
        """Add settings, which may not contradict a plan; ``NAME:key=value`` names a method and sets
        more."""
        if ":" in str(fields.get("method", "")):
            fields = _of_method(fields)
        for name, value in fields.items():
            if name not in groups():
                raise _unknown(name)
            given, planned = _text(value), _text(self._planned.get(name, value))
            if given != planned and _as_number(given) != _as_number(planned):
                raise refusal(
                    name,
                    f" is {shown(shown_place(given))} and the plan has"
                    f" {shown(shown_place(planned))}; leave one of the two out.",
                )
            self.given[name] = value

    def _add_file(self, file: Path) -> None:
        document = read_toml(file)
        is_plan = isinstance(document.get("forecast"), dict)
        forecast = document.pop("forecast") if is_plan else None
        fields: Json = {}
        for group, values in document.items():
            if group not in RunSpec.model_fields or not isinstance(values, dict):
                raise DataError(
                    f"{str(file)!r} has {shown(group)}, and its tables are"
                    f" {', '.join(RunSpec.model_fields)}."
                )
            for key, value in values.items():
                name = "method" if (group, key) == ("method", "name") else key
                if groups().get(name) != group:
                    raise _unknown(f"{group}.{key}", f" in {str(file)!r}")
                fields[name] = value
        self.add(fields)
        if is_plan:
            self.forecast, self._planned = forecast, self._planned | fields

    def tree(self, begun: str | None = None) -> Json:
        """Return all settings in their groups, with the method settled.

        Parameters
        ----------
        begun : str or None
            Method of the run that was begun in the folder.

        Raises
        ------
        ParameterError
            If a setting of another method was given.
        """
        method = self._settled(begun)
        self._refuse_code_of_a_plan()
        tree: Json = {} if self.forecast is None else {"forecast": self.forecast}
        for name, value in self.given.items():
            group = groups()[name]
            if group != "method":
                tree.setdefault(group, {})[name] = value
            elif name != "method":
                if name not in METHOD_SPECS[method].model_fields:
                    owners = _methods_of(name)
                    whose = f" belongs to {' and '.join(owners)}" if owners else " is of no method"
                    raise refusal(name, f"{whose}, and the method is {method}; drop one.")
                tree.setdefault(group, {})[name] = value
        tree.setdefault("method", {})["name"] = method
        return tree

    def _refuse_code_of_a_plan(self) -> None:
        """Refuse a plan that alone would have a class imported: plans pass from hand to hand."""
        for name in ("teacher", "student"):
            planned = self._planned.get(name)
            if planned is not None and imports_a_class(str(planned)) and name not in self._named:
                raise refusal(
                    name,
                    f" is {shown(planned)} by the plan, and a plan alone must not have code"
                    f" imported; give the same {name} beside the plan if you trust it.",
                )

    def _settled(self, begun: str | None) -> str:
        """Return the method: as asked, begun, planned, or implied by a setting that it alone
        has."""
        if self._fixed is not None:
            return self._fixed
        asked, planned = self.given.get("method"), self._planned.get("method")
        if asked is not None and asked not in METHODS:
            raise refusal("method", f" is {shown(asked)}; it must be one of {', '.join(METHODS)}.")
        named_here = planned is None or "method" in self._named
        for settled in (asked if named_here else None, begun, planned):
            if settled in METHODS:
                return str(settled)
        own = [methods for name in self.given if (methods := _methods_of(name))]
        fitting = [one for one in METHODS if all(one in methods for methods in own)]
        # a setting that this method has not is refused with the others of that kind
        return fitting[0] if fitting else min(own, key=len)[0]


def _of_method(fields: JsonView) -> Json:
    """Return fields with the settings that the name of the method means."""
    known = {one: [*METHOD_SPECS[one].model_fields] for one in METHODS}
    name, more = named("method", fields["method"], known)
    return {**more, **fields, "method": name}


def _unknown(name: str, where: str = "") -> ParameterError:
    """Return the refusal of a name that is no setting, with the one that was meant."""
    meant = difflib.get_close_matches(name.rpartition(".")[2], groups(), 1)
    advice = "secretballot learn --help-all lists them."
    if meant:
        advice = f"did you mean {groups()[meant[0]]}.{meant[0]}?"
    return ParameterError(f"There is no setting {shown(name)}{where}; {advice}")


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def _as_number(text: str) -> float | str:
    """Return what compares equal for two texts of one number."""
    with suppress(ValueError):
        return float(text)
    return text


def read_toml(file: Path) -> Json:
    """Return the settings in a file.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:  # also of text that is not UTF-8
        reason = error.strerror if isinstance(error, OSError) else str(error)
    raise DataError(
        f"The settings {str(file)!r} cannot be read as TOML ({reason}); give a file of settings, or"
        " a plan."
    )


def _refusal(problem: Any) -> SecretBallotError:
    """Return our sentence for what a model refused."""
    inner = problem.get("ctx", {}).get("error")
    if isinstance(inner, SecretBallotError):
        return inner
    place = [part for part in problem["loc"] if isinstance(part, str) and part not in METHOD_SPECS]
    name = next((part for part in reversed(place) if part in groups()), place[-1])
    given, kind = problem.get("input"), problem["type"]
    if kind == "value_error" and str(inner).startswith(" "):
        return refusal(name, str(inner))
    if kind == "missing":
        more = ": stumps, thresholds, intervals, or student.onnx files to choose from"
        more = more if name == "hypotheses" else ""
        return refusal(name, f" is missing; give it{more}.")
    given = _text(given) if isinstance(given, tuple) else given
    # the rest says what the parser could not do
    rule = problem["msg"].replace("Input should be", "it must be").partition(", unable")[0]
    return refusal(name, f" is {shown(given)}; {rule}.")


def _plain(values: JsonView) -> Json:
    """Return settings as JSON values."""
    document: Json = json.loads(json.dumps(values, default=str))
    return {name: value for name, value in document.items() if value is not None}


def _written_place(place: Any, *, absolute: bool) -> str:
    """Return a place as a file has it: without passwords."""
    if is_url(place):
        return shown_place(place)
    return str(place.absolute() if absolute and isinstance(place, Path) else place)


def toml_text(tables: Mapping[str, JsonView]) -> str:
    """Return tables of JSON values as a file of TOML."""
    lines = []
    for name, values in tables.items():
        lines += [f"[{name}]", *(f"{key} = {_toml_value(one)}" for key, one in values.items()), ""]
    return "\n".join(lines)


def _toml_value(value: Any) -> str:
    """Return a JSON value as one of TOML."""
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {_toml_value(one)}" for key, one in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    return json.dumps(value, ensure_ascii=False)
