"""The shape of a certificate: how it is read from a file, and what must stand in every field."""

import json
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from secretballot._validation import COMPOSITIONS, LARGEST_INTEGER, NEIGHBOURS, UNITS, shown
from secretballot.exceptions import CertificateError, DataError
from secretballot.report.certificate.labels_file import class_text
from secretballot.report.certificate.regular_files import read_regular

FORMAT = "secretballot/certificate"
VERSION = 3
CERTIFICATE_FILE = "certificate.json"
#: Parts of `about`, each of which may be left out.
ABOUT = ("title", "controller", "contact")
LEFT = ("kept", "returned", "forfeited", "none")

_MAX_BYTES = 10 * 1000 * 1000
_MAX_DEPTH = 32
_MAX_TEXT = 10_000  # characters of one string
_MAX_TABLE = 2**20  # of the weights of a table of abstentions
_MAX_CHOICES = 100
_MAX_FILES = 1000
_MAX_NAME = 255  # characters of a file name
_MAX_KEY_SHOWN = 40  # characters of a field name in a message

Rule = tuple[Callable[[Any], bool], str]


def read_certificate(path: str | Path) -> dict[str, Any]:
    """Return the JSON object in a certificate file.

    Raises
    ------
    CertificateError
        If the file cannot be read, is no regular file, is larger than 10 MB, or is no JSON object.
    """
    return certificate_in(certificate_bytes(path))


def certificate_bytes(path: str | Path) -> bytes:
    """Return the content of a certificate file.

    Raises
    ------
    CertificateError
        If it cannot be read, is no regular file, or is larger than 10 MB.
    """
    try:
        return read_regular(Path(path), _MAX_BYTES)
    except DataError as error:
        raise CertificateError(str(error)) from None


def certificate_in(content: bytes) -> dict[str, Any]:
    """Return the JSON object in the content of a certificate file.

    Raises
    ------
    CertificateError
        If it is larger than 10 MB, or is no JSON object.
    """
    if len(content) > _MAX_BYTES:
        raise CertificateError(f"The certificate has more than {_MAX_BYTES // 10**6} MB.")
    try:
        document = json.loads(content.decode("utf-8"), object_pairs_hook=_without_repeated_names)
    except (ValueError, RecursionError):
        raise CertificateError(
            "The file is not JSON; give the certificate.json of a release."
        ) from None
    if not isinstance(document, dict):
        raise CertificateError(
            "The file holds no JSON object; give the certificate.json of a release."
        )
    return document


def _without_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that names a field twice: two readers could see two certificates."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError
    return fields


def check_format(document: Mapping[str, Any]) -> str:
    """Return a sentence on format and version.

    Raises
    ------
    CertificateError
        If it is another format, another version, or not made of JSON values.
    """
    if document.get("format") != FORMAT:
        raise CertificateError(
            f"The format is not {FORMAT}; give the certificate.json of a release."
        )
    version = document.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version != VERSION:
        raise CertificateError(
            f"The certificate has version {shown(version)} and this program reads version"
            f" {VERSION}; use the version of secretballot that wrote it."
        )
    _refuse_other_than_json(document, "certificate", 0)
    return f"{FORMAT}, version {version}."


def _refuse_other_than_json(value: object, place: str, depth: int) -> None:
    # first, so that no document exhausts the stack
    if depth > _MAX_DEPTH:
        raise CertificateError(f"The certificate is nested more than {_MAX_DEPTH} deep.")
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise CertificateError(f"A field name in {place} is not a string.")
            _refuse_other_than_json(
                item, f"{place}.{key[:_MAX_KEY_SHOWN]}" if depth < 3 else place, depth + 1
            )
    elif isinstance(value, list):
        for item in value:
            _refuse_other_than_json(item, place, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise CertificateError(f"{place} is {value}; numbers must be finite.")
    elif isinstance(value, int) and not abs(value) <= LARGEST_INTEGER:
        raise CertificateError(f"{place} is an integer beyond 2^53.")
    elif isinstance(value, str) and len(value) > (
        _MAX_TABLE if place.endswith(".weights") else _MAX_TEXT
    ):
        raise CertificateError(
            f"{place} has a string of {len(value)} characters; at most {_MAX_TEXT} are read."
        )
    elif not (value is None or isinstance(value, str | bool | int | float)):
        raise CertificateError(f"{place} is a {type(value).__name__}, which JSON does not have.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def is_sentence(value: object) -> bool:
    """Return whether a value is a string of one line that is not blank."""
    return isinstance(value, str) and value.strip() != "" and value.isprintable()


def _are_sentences(value: object) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(map(is_sentence, value))


def _is_moment(value: object) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _are_classes(value: object) -> bool:
    """Return whether a value is a list of two or more classes that differ in ``labels.csv``."""
    # 1 and "1" differ in JSON, but not in a CSV file, where no reader could distinguish them
    if not (
        isinstance(value, list)
        and len(value) >= 2
        and all(isinstance(item, str | int | float) for item in value)
    ):
        return False
    return len({class_text(item) for item in value}) == len(value)


def is_digest(value: object) -> bool:
    """Return whether a value is a SHA-256 in hexadecimal."""
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


def _count_rule(minimum: int) -> Rule:
    return (
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= minimum,
        f"an integer of at least {minimum}",
    )


def _choice_rule(allowed: tuple[str, ...]) -> Rule:
    return lambda value: isinstance(value, str) and value in allowed, f"one of {', '.join(allowed)}"


_STRING: Rule = _is_string, "a string"
_WORDS: Rule = is_sentence, "a string of one line that is not blank"
_NAME: Rule = lambda value: _is_string(value) and value.strip() != "", "a string that is not empty"
_SENTENCES: Rule = _are_sentences, "a list of one sentence or more, each on one line and not blank"
_FLAG: Rule = lambda value: isinstance(value, bool), "true or false"
_OBJECT: Rule = lambda value: isinstance(value, Mapping), "a JSON object"
_EPSILON: Rule = lambda value: _is_number(value) and value > 0, "a positive number"
_DELTA: Rule = lambda value: _is_number(value) and 0 <= value < 1, "at least 0 and less than 1"
_AMOUNT: Rule = lambda value: _is_number(value) and value >= 0, "a number of at least 0"
_HEX: Rule = is_digest, "64 hexadecimal digits"
_EVENTS: Rule = (
    lambda value: isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping),
    "a list of one JSON object: whatever is paid for together is one event",
)

# Objects stand before their fields, so that a missing one is named first.
_RULES: dict[str, Rule] = {
    "issued": (_is_moment, "a moment as ISO 8601 writes it, with its time zone"),
    "purpose": _STRING,
    "unit": _choice_rule(UNITS),
    "unit_column": (
        lambda value: value is None or (_is_string(value) and value.strip() != ""),
        "a string or null",
    ),
    "neighbours": _choice_rule(NEIGHBOURS),
    "epsilon": _EPSILON,
    "delta": _DELTA,
    "mechanism": _OBJECT,
    "mechanism.kind": _WORDS,
    "shape": _OBJECT,
    "public": _OBJECT,
    "public.method": _WORDS,
    "events": _EVENTS,
    "price": _OBJECT,
    "price.epsilon": _EPSILON,
    "price.delta": _DELTA,
    "price.delta_recomputed": _DELTA,
    "price.method": _WORDS,
    "price.source": _WORDS,
    "price.library": _WORDS,
    "price.library_version": _WORDS,
    "composition": _OBJECT,
    "composition.kind": _choice_rule(COMPOSITIONS),
    "composition.dataset": _NAME,
    "composition.unit": _choice_rule(UNITS),
    "composition.neighbours": _choice_rule(NEIGHBOURS),
    "composition.budget": _OBJECT,
    "composition.budget.epsilon": _EPSILON,
    "composition.budget.delta": _DELTA,
    "composition.spent_after": _OBJECT,
    "composition.spent_after.epsilon": _AMOUNT,
    "composition.spent_after.delta": _AMOUNT,
    "composition.durable": _FLAG,
    "composition.reservation": _count_rule(1),
    "assumptions": _SENTENCES,
    "not_protected": _SENTENCES,
    "noise": _OBJECT,
    "noise.exact": _FLAG,
    "noise.description": _WORDS,
    "software": (
        lambda value: isinstance(value, Mapping) and all(map(is_sentence, value.values())),
        "names and versions",
    ),
    "software.opendp": _WORDS,
    "released": _OBJECT,
    "released.queries": _count_rule(0),
    "released.answered": _count_rule(0),
    "released.classes": (
        lambda value: value == [] or _are_classes(value),
        "a list of two or more different class values, or of none",
    ),
    "released.n_teachers": _count_rule(0),
    "released.count_columns": _count_rule(0),
    "released.labels_sha256": _HEX,
    "digest": _HEX,
}

_PLAN: dict[str, Rule] = {
    "planned": _count_rule(1),
    "used": _count_rule(0),
    "rounds": (
        lambda value: isinstance(value, list) and all(_count_rule(1)[0](item) for item in value),
        "a list of integers of at least 1",
    ),
    "strategy": (
        lambda value: isinstance(value, Mapping) and is_sentence(value.get("name")),
        "a JSON object with a name",
    ),
    "left": _choice_rule(LEFT),
}
_CHOICE: dict[str, Rule] = {
    "purpose": _NAME,
    "mechanism": _OBJECT,
    "shape": _OBJECT,
    "public": (
        lambda value: isinstance(value, Mapping) and is_sentence(value.get("method")),
        "a JSON object with a method",
    ),
    "events": _EVENTS,
    "epsilon": _EPSILON,
    "delta": _DELTA,
    "reservation": _count_rule(1),
}
#: What came out: one number, or labels.
_OUTCOMES: dict[str, Rule] = {
    "value": (lambda value: type(value) is int, "an integer"),
    "labels_sha256": _HEX,
}
_FILE: dict[str, Rule] = {"sha256": _HEX, "bytes": _count_rule(0)}


# Objects that hold nothing but the fields that the rules name; what stands elsewhere is checked
# where it is read.
_CLOSED_OBJECTS = (
    "",
    "price",
    "composition",
    "composition.budget",
    "composition.spent_after",
    "noise",
    "released",
)
_OPTIONAL_FIELDS = {
    "": ("plan", "choices", "files", "about", "format", "version"),
    "released": ("points_sha256", "rows", "values"),
}


def check_fields(document: Mapping[str, Any]) -> str:
    """Return a sentence once every field is there and in its range, and no other.

    Raises
    ------
    CertificateError
        Naming the first field that is missing, unknown or out of range.
    """
    # presence and range first, then that nothing else is there, then what fields say together: each
    # step may read what the steps before it have checked
    for place, (holds, words) in _RULES.items():
        value: Any = document
        for key in place.split("."):
            if key not in value:
                raise CertificateError(f"The field {place} is missing; it must be {words}.")
            value = value[key]
        if not holds(value):
            raise CertificateError(f"The field {place} is {shown(value)}; it must be {words}.")
    for place in _CLOSED_OBJECTS:
        _refuse_unknown_fields(document, place)
    if not is_digest(document["released"].get("points_sha256", "0" * 64)):
        raise CertificateError("The field released.points_sha256 must be 64 hexadecimal digits.")
    _check_unit(document)
    optional = check_optional_fields(document)
    also = (
        f"; so {'is' if len(optional) == 1 else 'are'} {' and '.join(optional)}" if optional else ""
    )
    return f"All {len(_RULES)} required fields are there and in range{also}."


def _refuse_unknown_fields(document: Mapping[str, Any], place: str) -> None:
    """Refuse a field that no rule names: a reader could take it for something that was checked."""
    inside = f"{place}." if place else ""
    named = {
        rule.removeprefix(inside).partition(".")[0] for rule in _RULES if rule.startswith(inside)
    }
    value: Any = document
    for key in place.split(".") if place else ():
        value = value[key]
    unknown = sorted(set(value) - named - set(_OPTIONAL_FIELDS.get(place, ())))
    if unknown:
        raise CertificateError(
            f"The field {shown(inside + unknown[0])} is unknown; a certificate has no such field."
        )


def _check_unit(document: Mapping[str, Any]) -> None:
    """Refuse users without the column that distinguishes them, and such a column without users."""
    unit, column = document["unit"], document["unit_column"]
    if (unit == "user") != (column is not None):
        raise CertificateError(
            f"The unit is {unit!r} and unit_column is {shown(column)}; a promise to users names the"
            " column that distinguishes them, and no other promise has one."
        )


def check_optional_fields(document: Mapping[str, Any]) -> list[str]:
    """Return which of ``plan``, ``choices``, ``files`` and ``about`` are there, once their parts
    are in range.

    Raises
    ------
    CertificateError
        Naming the first part that is missing, unknown or out of range.
    """
    if "plan" in document:
        _check_parts("plan", document["plan"], _PLAN)
    if "choices" in document:
        choices = document["choices"]
        if not isinstance(choices, list) or len(choices) > _MAX_CHOICES:
            raise CertificateError(
                f"The field choices must be a list of at most {_MAX_CHOICES} JSON objects."
            )
        for index, choice in enumerate(choices):
            of_labels = isinstance(choice, Mapping) and "labels_sha256" in choice
            outcome = "labels_sha256" if of_labels else "value"
            rules = _CHOICE | {outcome: _OUTCOMES[outcome]}
            _check_parts(f"choices[{index}]", choice, rules)
    if "files" in document:
        _check_files(document["files"])
    if "about" in document:
        _check_about(document["about"])
    return [name for name in ("plan", "choices", "files", "about") if name in document]


def _check_about(about: object) -> None:
    """Refuse words on the release that no page could show."""
    if not isinstance(about, Mapping) or not about or not set(about) <= set(ABOUT):
        raise CertificateError(
            f"The field about must hold one or more of {', '.join(ABOUT)}, and nothing else."
        )
    for key, value in about.items():
        if not is_sentence(value):
            raise CertificateError(
                f"The field about.{key} is {shown(value)}; it must be {_WORDS[1]}."
            )


def _check_files(files: object) -> None:
    if not isinstance(files, Mapping) or not 1 <= len(files) <= _MAX_FILES:
        raise CertificateError(f"The field files must be a JSON object of 1 to {_MAX_FILES} files.")
    for name, about in files.items():
        if not _is_file_name(name):
            raise CertificateError(
                f"The field files holds {shown(name)}, which is no name of a file beside it."
            )
        _check_parts(f"files[{shown(name)}]", about, _FILE)


def _is_file_name(name: str) -> bool:
    """Return whether a name is that of one file in the same folder, other than the certificate."""
    plain = name.isprintable() and not set(name) & set("/\\:") and not name.startswith(".")
    return 0 < len(name) <= _MAX_NAME and plain and name != CERTIFICATE_FILE


def _check_parts(place: str, value: object, rules: Mapping[str, Rule]) -> None:
    if not isinstance(value, Mapping):
        raise CertificateError(f"The field {place} is {shown(value)}; it must be a JSON object.")
    if set(value) != set(rules):
        raise CertificateError(f"The field {place} must hold {', '.join(rules)}, and nothing else.")
    for key, (holds, words) in rules.items():
        if not holds(value[key]):
            raise CertificateError(
                f"The field {place}.{key} is {shown(value[key])}; it must be {words}."
            )
