"""The parts of a certificate: models whose dump is the document.

They check what a part is by itself. The whole is in `terms`.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from secretballot.core.errors import Relation, Unit
from secretballot.core.types import Model
from secretballot.report.certificate.labels_file import class_text

FORMAT = "secretballot/certificate"
VERSION = 3
CERTIFICATE_FILE = "certificate.json"
_MAX_NAME = 255  # characters of a file name


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
Moment = Annotated[str, rule(_is_moment, "a moment as ISO 8601 writes it, with its time zone")]
Natural = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Epsilon = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Delta = Annotated[float, Field(ge=0, lt=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Integers = list[list[int]]


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


class ListedFile(Part):
    """A file beside the certificate."""

    sha256: Digest
    bytes: Natural


Files = Annotated[
    dict[Annotated[str, rule(_is_file_name, "the name of a file beside it")], ListedFile],
    Field(min_length=1, max_length=1000),
]


class About(Part):
    """What the curator calls the data, who answers for them, and how to reach somebody."""

    title: Sentence = missing()
    controller: Sentence = missing()
    contact: Sentence = missing()
