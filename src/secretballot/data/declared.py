"""What a column is, as the user declares it in a schema; public cells say what is left open."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from pydantic import ValidationError

from secretballot._validation import shown
from secretballot.data.columns import (
    BooleanColumn,
    CategoricalColumn,
    Column,
    DateColumn,
    DurationColumn,
    FeatureColumn,
    HashedTextColumn,
    IgnoredColumn,
    NumericColumn,
    TextColumn,
    VectorColumn,
    WordsColumn,
)
from secretballot.exceptions import DataError

_FEATURES = NumericColumn, CategoricalColumn, BooleanColumn, DateColumn, DurationColumn
_KINDS: dict[str, type[FeatureColumn]] = {
    kind.kind: kind for kind in (*_FEATURES, WordsColumn, VectorColumn)
}
_NAMES = (*_KINDS, IgnoredColumn.kind)
_ENCODINGS: dict[str, type[TextColumn]] = {
    kind.encoding: kind for kind in (WordsColumn, HashedTextColumn)
}


def declared_column(name: str, spec: object, public: pd.DataFrame | None) -> Column:
    """Build one column from its JSON, with public cells for what the JSON leaves open.

    Parameters
    ----------
    name : str
    spec : str, list or mapping
        As `Schema.from_json` takes it.
    public : DataFrame or None
        Public table for the parts left out.

    Raises
    ------
    DataError
        If `spec` is no column, or leaves open what no public table is there to say.
    """
    # short forms of the object that `to_json` writes
    if isinstance(spec, str):
        spec = {"kind": spec}
    elif isinstance(spec, list):
        spec = {"kind": CategoricalColumn.kind, "categories": spec}
    if not isinstance(spec, Mapping) or spec.get("kind") not in _NAMES:
        raise DataError(
            f"The schema says nothing usable about column {shown(name)}; "
            f"say one of {', '.join(_NAMES)}, or list its categories."
        )
    given = {key: value for key, value in spec.items() if key not in ("kind", "reason")}
    if spec["kind"] == IgnoredColumn.kind:
        _checked(IgnoredColumn, name, given)
        return IgnoredColumn(name=name, reason=spec.get("reason", "declared so"))
    if spec["kind"] == TextColumn.kind:
        return _declared_text(name, given, public)
    return _completed(_KINDS[spec["kind"]], name, given, public, {})


def _declared_text(name: str, given: dict[str, Any], public: pd.DataFrame | None) -> Column:
    encoding = given.pop("encoding", WordsColumn.encoding)
    if encoding not in tuple(_ENCODINGS):
        raise _refusal("encoding", name, encoding, f"one of {', '.join(_ENCODINGS)}")
    kind = _ENCODINGS[encoding]
    # listed words set the width; of others the schema says how many
    width = {}
    if "words" not in given and "width" in given and kind is not HashedTextColumn:
        width = {"width": given.pop("width")}
        _checked(HashedTextColumn, name, width)
    return _completed(kind, name, given, public, width)


def _completed(
    kind: type[FeatureColumn],
    name: str,
    given: dict[str, Any],
    public: pd.DataFrame | None,
    more: Mapping[str, Any],
) -> Column:
    """Return a column by its declared parts; public cells are read for those left open alone."""
    column = _checked(kind, name, given)
    if column is not None:
        return column
    found = kind.public_parts(_public_cells(name, public), {**given, **more})
    if found is None and issubclass(kind, TextColumn):
        raise DataError(
            f"No word occurs in two public cells of column {shown(name)} without occurring in"
            " nearly all of them; list its words in the schema, or declare it hashed or"
            " ignored."
        )
    if found is None:
        form = f" of format {given['format']}" if "format" in given else ""
        raise DataError(
            f"No public row has {kind.holds}{form} in column {shown(name)}; give all of its parts"
            " in the schema."
        )
    column = _checked(kind, name, {**found, **given})
    assert column is not None
    return column


def _checked(kind: type[Column], name: str, parts: Mapping[str, Any]) -> Column | None:
    """Return the column that has these parts, None where some are left out.

    Raises
    ------
    DataError
        If such a column has no such part, or a part cannot be.
    """
    problems: list[Any] = []
    try:
        return kind.model_validate({"name": name, **parts})
    except ValidationError as error:
        problems += [one for one in error.errors(include_url=False) if one["type"] != "missing"]
    if not problems:
        return None
    key = str(problems[0]["loc"][0])
    if problems[0]["type"] == "extra_forbidden":
        fields = {*kind.model_fields, "kind", "reason"} - {"name"}
        known = fields | ({"encoding"} if issubclass(kind, TextColumn) else set())
        raise DataError(
            f"The schema says {shown(key)} of column {shown(name)}, which such a {kind.kind} column"
            f" does not have; it may say {', '.join(sorted(known))}."
        )
    raise _refusal(key, name, parts[key], str(kind.model_fields[key].description))


def _refusal(key: str, name: str, value: object, rule: str) -> DataError:
    return DataError(
        f"The schema's {key} of column {shown(name)} is {shown(value)}; it must be {rule}."
    )


def _public_cells(name: str, public: pd.DataFrame | None) -> "pd.Series[Any]":
    if public is None:
        raise DataError(
            f"The schema leaves column {shown(name)} open and there is no public table to say the"
            " rest."
        )
    if name not in public.columns:
        raise DataError(
            f"The schema has a column {shown(name)} that the public file lacks; add it or declare"
            " it ignored."
        )
    return public[name]
