"""The shape of a certificate: how it is read from a file, and what must stand in every field."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from secretballot.exceptions import CertificateError

__all__ = [
    "FORMAT",
    "LEFT",
    "NEIGHBOURS",
    "UNITS",
    "VERSION",
    "check_fields",
    "check_format",
    "check_optional_fields",
    "read_certificate",
]

FORMAT = "secretballot/certificate"
VERSION = 1
UNITS = ("record", "user", "label")
LEFT = ("kept", "returned", "forfeited", "none")
NEIGHBOURS = ("add-remove", "replace-one")

_MAX_BYTES = 50 * 1000 * 1000
_MAX_DEPTH = 32
_MAX_CHOICES = 100
_MAX_INTEGER = 2**53  # beyond it other programs read another number than was written

Rule = tuple[Callable[[Any], bool], str]


def read_certificate(path: str | Path) -> dict[str, Any]:
    """Return the JSON object in a certificate file.

    Raises
    ------
    CertificateError
        If the file cannot be read, is larger than 50 MB, or is no JSON object.
    """
    path = Path(path)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise CertificateError(f"{path} is larger than 50 MB; a certificate is a small JSON file.")
        document = json.loads(path.read_bytes().decode("utf-8"), object_pairs_hook=_unique)
    except OSError as error:
        raise CertificateError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError):
        raise CertificateError(f"{path} is not JSON; give the certificate.json of a release.") from None
    if not isinstance(document, dict):
        raise CertificateError(f"{path} holds no JSON object; give the certificate.json of a release.")
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
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
        If it is another format, a newer version, or not made of JSON values.
    """
    if document.get("format") != FORMAT:
        raise CertificateError(f"The format is not {FORMAT}; give the certificate.json of a release.")
    version = document.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or not version >= 1:
        raise CertificateError("The version of the certificate is not a whole number of at least 1.")
    if version > VERSION:
        raise CertificateError(
            f"The certificate has version {version}; this program reads up to {VERSION}. Update secretballot."
        )
    _check_json(document, "certificate", 0)
    return f"{FORMAT}, version {version}."


def _check_json(value: object, place: str, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise CertificateError(f"The certificate is nested more than {_MAX_DEPTH} deep.")
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise CertificateError(f"A field name in {place} is not text.")
            _check_json(item, f"{place}.{key}", depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check_json(item, place, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise CertificateError(f"{place} is {value}; numbers must be finite.")
    elif isinstance(value, int) and not abs(value) <= _MAX_INTEGER:
        raise CertificateError(f"{place} is a whole number beyond 2^53.")
    elif not (value is None or isinstance(value, str | bool | int | float)):
        raise CertificateError(f"{place} is a {type(value).__name__}, which JSON does not have.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)


def _count(minimum: int) -> Rule:
    return (
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= minimum,
        f"a whole number of at least {minimum}",
    )


def _choice(allowed: tuple[str, ...]) -> Rule:
    return lambda value: isinstance(value, str) and value in allowed, f"one of {', '.join(allowed)}"


_TEXT: Rule = _is_text, "text"
_TEXTS: Rule = _texts, "a list of sentences"
_FLAG: Rule = lambda value: isinstance(value, bool), "true or false"
_OBJECT: Rule = lambda value: isinstance(value, Mapping), "a JSON object"
_EPSILON: Rule = lambda value: _is_number(value) and value > 0, "a positive number"
_DELTA: Rule = lambda value: _is_number(value) and 0 <= value < 1, "at least 0 and less than 1"
_AMOUNT: Rule = lambda value: _is_number(value) and value >= 0, "a number of at least 0"
_HEX: Rule = (
    lambda value: isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef"),
    "64 hexadecimal digits",
)
_EVENTS: Rule = (
    lambda value: isinstance(value, list) and value != [] and all(isinstance(event, Mapping) for event in value),
    "a list of one or more JSON objects",
)

# Objects stand before their fields, so that a missing one is named first.
_RULES: dict[str, Rule] = {
    "issued": _TEXT,
    "purpose": _TEXT,
    "unit": _choice(UNITS),
    "unit_column": (lambda value: value is None or isinstance(value, str), "text or null"),
    "neighbours": _choice(NEIGHBOURS),
    "epsilon": _EPSILON,
    "delta": _DELTA,
    "mechanism": _OBJECT,
    "mechanism.name": _TEXT,
    "events": _EVENTS,
    "price": _OBJECT,
    "price.epsilon": _EPSILON,
    "price.delta": _DELTA,
    "price.delta_recomputed": _DELTA,
    "price.method": _TEXT,
    "price.source": _TEXT,
    "price.library": _TEXT,
    "price.library_version": _TEXT,
    "composition": _OBJECT,
    "composition.kind": _choice(("basic", "renyi")),
    "composition.dataset": _TEXT,
    "composition.unit": _choice(UNITS),
    "composition.neighbours": _choice(NEIGHBOURS),
    "composition.budget": _OBJECT,
    "composition.budget.epsilon": _EPSILON,
    "composition.budget.delta": _DELTA,
    "composition.spent_after": _OBJECT,
    "composition.spent_after.epsilon": _AMOUNT,
    "composition.spent_after.delta": _AMOUNT,
    "composition.durable": _FLAG,
    "composition.reservation": _count(0),
    "assumptions": _TEXTS,
    "not_protected": _TEXTS,
    "noise": _OBJECT,
    "noise.exact": _FLAG,
    "noise.description": _TEXT,
    "software": (
        lambda value: isinstance(value, Mapping) and _texts(list(value.values())),
        "names and versions",
    ),
    "released": _OBJECT,
    "released.queries": _count(0),
    "released.answered": _count(0),
    "released.classes": (
        lambda value: (
            isinstance(value, list) and len(value) >= 2 and all(isinstance(item, str | int | float) for item in value)
        ),
        "a list of two or more class values",
    ),
    "released.n_teachers": _count(0),
    "released.count_columns": _count(0),
    "released.labels_sha256": _HEX,
    "digest": _HEX,
}

_PLAN: dict[str, Rule] = {
    "planned": _count(1),
    "used": _count(0),
    "rounds": (
        lambda value: isinstance(value, list) and all(_count(1)[0](item) for item in value),
        "a list of whole numbers of at least 1",
    ),
    "strategy": (lambda value: isinstance(value, Mapping) and _is_text(value.get("name")), "a JSON object with a name"),
    "left": _choice(LEFT),
}
_CHOICE: dict[str, Rule] = {
    "purpose": (lambda value: _is_text(value) and value.strip() != "", "a text that is not empty"),
    "events": _EVENTS,
    "epsilon": _EPSILON,
    "delta": _DELTA,
    "outcome": (lambda value: True, "a JSON value"),
    "reservation": _count(0),
}


def check_fields(document: Mapping[str, Any]) -> str:
    """Return a sentence once every field is there and in its range.

    Raises
    ------
    CertificateError
        Naming the first field that is missing or out of range.
    """
    for place, (holds, words) in _RULES.items():
        value: Any = document
        for key in place.split("."):
            if key not in value:
                raise CertificateError(f"The field {place} is missing; it must be {words}.")
            value = value[key]
        if not holds(value):
            raise CertificateError(f"The field {place} is {_short(value)}; it must be {words}.")
    optional = check_optional_fields(document)
    also = f"; so {'is' if len(optional) == 1 else 'are'} {' and '.join(optional)}" if optional else ""
    return f"All {len(_RULES)} required fields are there and in range{also}."


def check_optional_fields(document: Mapping[str, Any]) -> list[str]:
    """Return which of ``plan`` and ``choices`` are there, once their parts are in range.

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
            raise CertificateError(f"The field choices must be a list of at most {_MAX_CHOICES} JSON objects.")
        for index, choice in enumerate(choices):
            _check_parts(f"choices[{index}]", choice, _CHOICE)
    return [name for name in ("plan", "choices") if name in document]


def _check_parts(place: str, value: object, rules: Mapping[str, Rule]) -> None:
    if not isinstance(value, Mapping):
        raise CertificateError(f"The field {place} is {_short(value)}; it must be a JSON object.")
    if set(value) != set(rules):
        raise CertificateError(f"The field {place} must hold {', '.join(rules)}, and nothing else.")
    for key, (holds, words) in rules.items():
        if not holds(value[key]):
            raise CertificateError(f"The field {place}.{key} is {_short(value[key])}; it must be {words}.")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
