"""The sentences of every certificate of a method: what was assumed, and what was not
protected."""

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from secretballot.report.certificate.methods import EXPONENTIAL, RECORD_VOTES, SUMS

_TEXT: dict[str, Any] = tomllib.loads(
    files("secretballot.report.certificate").joinpath("standing.toml").read_text("utf-8")
)
_WITHOUT_TEACHERS = {
    EXPONENTIAL: "choice",
    RECORD_VOTES: "record_votes",
    **dict.fromkeys(SUMS, "sums"),
}
_BLINDLY = " and every parameter of the mechanism were fixed without looking at private data."
_OR_PAID = _TEXT["or_paid"]
(FIXED_BLINDLY,) = (line for line in _TEXT["teachers"] if line.endswith(_BLINDLY))
FIXED_OR_PAID = FIXED_BLINDLY.removesuffix(".") + _OR_PAID
UNSEEN_TEACHERS: str = _TEXT["unseen"]


def standing_assumptions(method: str, unit: str = "record") -> list[str]:
    """Return what is assumed of every release of a method, for a unit."""
    lines: list[str] = _TEXT[_WITHOUT_TEACHERS.get(method, "teachers")]
    if method in SUMS and unit == "label":
        return [_TEXT["sums_of_labels"], *lines[1:]]
    return lines


def standing_limits(method: str, unit: str) -> list[str]:
    """Return what no release of a method protects, for a unit."""
    vault = "vault_without_teachers" if method in _WITHOUT_TEACHERS else "vault"
    first, *rest = _TEXT["not_protected"]
    more = [_TEXT["public_features"]] if unit == "label" else []
    return [first, _TEXT[vault], *rest, *more]


def with_choices_named(assumptions: Sequence[str]) -> list[str]:
    """Return the assumptions of a release whose parameters were partly chosen, at a price."""
    return [
        line.removesuffix(".") + _OR_PAID if line.endswith(_BLINDLY) else line
        for line in assumptions
    ]


def contradict_choices(assumptions: Sequence[str], *, chosen: bool) -> bool:
    """Return whether assumptions say that something was chosen where nothing is listed, or the
    other way round."""
    paid = any(line.endswith(_OR_PAID) for line in assumptions)
    return paid != chosen or (chosen and any(line.endswith(_BLINDLY) for line in assumptions))
