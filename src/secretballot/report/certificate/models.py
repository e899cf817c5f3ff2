"""The content of a certificate, part by part: models whose dump is the document.

They check what a part is by itself. What parts must say of each other is checked in `verify`, and
mechanism, shape, event and public settings, which are models of their own, are read there.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from secretballot._validation import plain_line, shown
from secretballot.core.errors import Relation, Unit
from secretballot.core.types import Guarantee, Model
from secretballot.exceptions import CertificateError
from secretballot.report.certificate.labels_file import class_text

FORMAT = "secretballot/certificate"
VERSION = 3
CERTIFICATE_FILE = "certificate.json"
_MAX_NAME = 255  # characters of a file name
_LONGEST_PLACE = 120  # characters of the place of a field in a message


def rule(holds: Callable[[Any], object], words: str) -> AfterValidator:
    """Return a check of a value: `words` follow "it must be"."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise PydanticCustomError("rule", "it must be {words}", {"words": words})
        return value

    return AfterValidator(check)


def missing() -> Any:
    """Return the default of a field that may be missing, but is never null."""
    return Field(default=None)


def is_sentence(value: object) -> bool:
    """Return whether a value is a string of one line that is not blank."""
    return isinstance(value, str) and value.strip() != "" and value.isprintable()


def _is_moment(value: str) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _are_classes(value: list[Any]) -> bool:
    # 1 and "1" differ in JSON, but not in a CSV file, where no reader could distinguish them
    scalars = all(isinstance(item, str | int | float) for item in value)
    return len(value) != 1 and scalars and len({class_text(item) for item in value}) == len(value)


def _is_file_name(name: str) -> bool:
    plain = name.isprintable() and not set(name) & set("/\\:") and not name.startswith(".")
    return 0 < len(name) <= _MAX_NAME and plain and name != CERTIFICATE_FILE


Sentence = Annotated[str, rule(is_sentence, "a string of one line, not blank")]
Sentences = Annotated[list[Sentence], Field(min_length=1)]
Names = Annotated[Sentences, rule(lambda names: len(set(names)) == len(names), "different names")]
Filled = Annotated[str, rule(str.strip, "a string that is not empty")]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Natural = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Epsilon = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Delta = Annotated[float, Field(ge=0, lt=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Integers = list[list[int]]
Object = dict[str, Any]
Settings = Annotated[
    Object, rule(lambda one: is_sentence(one.get("method")), "an object with a method")
]


class Part(Model):
    """A part of a certificate: JSON values of the stated types, and no other fields."""

    model_config = ConfigDict(strict=True)


class Budget(Part):
    """A promise."""

    epsilon: Epsilon
    delta: Delta


class Spent(Part):
    """What was spent of a budget."""

    epsilon: Amount
    delta: Amount


class StatedPrice(Budget):
    """What the events cost at an epsilon, and how that was computed."""

    delta_recomputed: Delta
    method: Sentence
    source: Sentence
    library: Sentence
    library_version: Sentence


class Account(Part):
    """The account that paid, as it was just after."""

    kind: Literal["basic", "renyi"]
    dataset: Filled
    unit: Unit
    relation: Relation
    budget: Budget
    spent_after: Spent
    durable: bool
    reservation: Natural  # 0 before there is one, which no verifier accepts


class StatedNoise(Part):
    """Where the noise came from."""

    exact: bool
    description: Sentence


class StatedRelease(Part):
    """What was released."""

    queries: Natural
    answered: Natural
    classes: Annotated[list[Any], rule(_are_classes, "two or more different classes, or none")]
    n_teachers: Natural
    count_columns: Natural
    labels_sha256: Digest
    points_sha256: Digest = missing()
    rows: list[Natural] = missing()
    values: Integers = missing()


class Named(Part):
    """Something with a name, that describes itself."""

    model_config = ConfigDict(extra="allow")
    name: Sentence


class Plan(Part):
    """How a release in rounds used its reservation."""

    planned: Positive
    used: Natural
    rounds: list[Positive]
    strategy: Named
    left: Literal["kept", "returned", "forfeited", "none"]


class Drawn(Part):
    """What was drawn, from what, and at which price."""

    mechanism: Object
    shape: Object
    public: Settings
    events: Annotated[list[Object], Field(min_length=1, max_length=1)]
    epsilon: Epsilon
    delta: Delta


class Choice(Drawn):
    """What private data decided beside the release, under a reservation of its own: one number, or
    labels, of which the digest is stated."""

    purpose: Filled
    value: int = missing()
    labels_sha256: Digest = missing()
    reservation: Positive

    @model_validator(mode="after")
    def _check_outcome(self) -> "Choice":
        if len(self.model_fields_set & {"value", "labels_sha256"}) != 1:
            raise PydanticCustomError("rule", "it must hold one outcome, and nothing else")
        return self


class ListedFile(Part):
    """A file beside the certificate."""

    sha256: Digest
    bytes: Natural


Files = Annotated[
    dict[Annotated[str, rule(_is_file_name, "the name of a file beside it")], ListedFile],
    Field(min_length=1, max_length=1000),
]
LISTED_FILES: TypeAdapter[Files] = TypeAdapter(Files)


class About(Part):
    """What the curator calls the data, who answers for them, and how to reach somebody."""

    title: Sentence = missing()
    controller: Sentence = missing()
    contact: Sentence = missing()


class Certificate(Drawn):
    """The whole document."""

    format: Literal["secretballot/certificate"]
    version: Literal[3]
    issued: Annotated[str, rule(_is_moment, "a moment as ISO 8601 writes it, with its time zone")]
    purpose: str
    unit: Unit
    unit_column: Filled | None
    relation: Relation
    price: StatedPrice
    composition: Account
    assumptions: Sentences
    not_protected: Sentences
    noise: StatedNoise
    software: Annotated[
        dict[str, Sentence], rule(lambda found: "opendp" in found, "versions, of opendp also")
    ]
    released: StatedRelease
    plan: Plan = missing()
    choices: Annotated[list[Choice], Field(max_length=100)] = missing()
    files: Files = missing()
    about: Annotated[
        About, rule(lambda about: about.model_fields_set, "a title, controller or contact")
    ] = missing()
    digest: Digest

    @property
    def guarantee(self) -> Guarantee:
        """Whose data the promise is about.

        Raises
        ------
        ParameterError
            If there is no such promise.
        """
        return Guarantee(unit=self.unit, relation=self.relation)

    @model_validator(mode="after")
    def _check_unit(self) -> "Certificate":
        if (self.unit == "user") != (self.unit_column is not None):
            raise PydanticCustomError(
                "rule", "a promise to users, and no other one, names the column of users"
            )
        return self


def certificate_of_json(document: Mapping[str, Any]) -> Certificate:
    """Return the certificate that a JSON object is.

    Raises
    ------
    CertificateError
        Naming the first field that is missing, unknown or out of range.
    """
    try:
        return Certificate.model_validate(dict(document))
    except ValidationError as error:
        raise refused(error) from None


def refused(error: ValidationError, place: str = "") -> CertificateError:
    """Return what a part was refused for, with the place of the first field."""
    first = error.errors(include_url=False)[0]
    # a stranger chose the names of fields that there are not
    path = ".".join(map(str, (place, *first["loc"])))
    field = plain_line(f"The field {path.lstrip('.')}", longest=_LONGEST_PLACE)
    if first["type"] == "missing":
        return CertificateError(f"{field} is missing.")
    if first["type"] == "extra_forbidden":
        return CertificateError(f"{field} is unknown; that part has no such field.")
    return CertificateError(f"{field} is {shown(first['input'])}: {first['msg']}.")
