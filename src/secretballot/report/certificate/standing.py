"""The sentences that stand on every certificate of a mechanism: what was assumed, and what was not
protected."""

from collections.abc import Sequence

from secretballot.report.certificate.by_record import RECORD_VOTES, RECORD_VOTES_ASSUMPTIONS
from secretballot.report.certificate.chosen import EXPONENTIAL, EXPONENTIAL_ASSUMPTIONS
from secretballot.report.certificate.moments import (
    LABEL_MOMENTS_ASSUMPTIONS,
    MOMENTS_ASSUMPTIONS,
    MOMENTS_FIELDS,
)

# certificates written before carry these sentences, and the verifiers look for them: they stay
_BLINDLY = " and every parameter of the mechanism were fixed without looking at private data."
_OR_PAID = ", or chosen by a step listed under choices, at its own price."
FIXED_BLINDLY = f"The number of teachers, the classes, the number of queries{_BLINDLY}"
FIXED_OR_PAID = FIXED_BLINDLY.removesuffix(".") + _OR_PAID
ASSUMPTIONS = (
    "One unit reaches the training data of one teacher only.",
    (
        "A teacher depends on its own shard, on public data and on its own randomness, and on"
        " nothing else."
    ),
    FIXED_BLINDLY,
    (
        "The queried points and every other file of the release come from public data and released"
        " labels only."
    ),
)
_OF_MOMENTS = (
    *MOMENTS_ASSUMPTIONS,
    f"The classes, the settings of the basis, the number of stages{_BLINDLY}",
    (
        "The labelled points and every other file of the release come from public data and"
        " released sums only."
    ),
)
_WITHOUT_TEACHERS = {
    EXPONENTIAL: (
        *EXPONENTIAL_ASSUMPTIONS,
        f"The classes, the points that are labelled{_BLINDLY}",
        (
            "The labelled points and every other file of the release come from public data and the"
            " chosen model only."
        ),
    ),
    **dict.fromkeys(MOMENTS_FIELDS, _OF_MOMENTS),
    RECORD_VOTES: (
        *RECORD_VOTES_ASSUMPTIONS,
        f"The classes, the distances, the points that take votes{_BLINDLY}",
        (
            "The points that take votes and every other file of the release come from public data"
            " and released counts only."
        ),
    ),
}
UNSEEN_TEACHERS = (
    "The votes came from outside; that one unit touches one teacher is the word of whoever made the"
    " release, and was not checked by the program."
)
_VAULT = "The vault: the folder with teachers, votes and ledger must stay secret."
_VAULT_WITHOUT_TEACHERS = "The vault: the folder with the ledger must stay secret."
NOT_PROTECTED = (
    "How long the computation took, and other side channels of the machine it ran on.",
    _VAULT,
    (
        "The public points, the classes, the parameters stated here, and the fact that the release"
        " was made."
    ),
    (
        "What is true of people in general: a conclusion that the data would support without any"
        " one unit."
    ),
)
PUBLIC_FEATURES = (
    "The features of the records, how many there are, and whatever the features tell of a label:"
    " only the labels are private."
)
_BLIND = {
    FIXED_BLINDLY,
    *(line for lines in _WITHOUT_TEACHERS.values() for line in lines if line.endswith(_BLINDLY)),
}


def standing_assumptions(mechanism: str, unit: str = "record") -> tuple[str, ...]:
    """Return what is assumed of every release of a mechanism, by name, for a unit."""
    if mechanism in MOMENTS_FIELDS and unit == "label":
        return (*LABEL_MOMENTS_ASSUMPTIONS, *_OF_MOMENTS[len(MOMENTS_ASSUMPTIONS) :])
    return _WITHOUT_TEACHERS.get(mechanism, ASSUMPTIONS)


def standing_limits(mechanism: str, unit: str) -> tuple[str, ...]:
    """Return what no release of a mechanism protects, by name, for a unit."""
    lines: tuple[str, ...] = NOT_PROTECTED
    if mechanism in _WITHOUT_TEACHERS:
        lines = tuple(_VAULT_WITHOUT_TEACHERS if line == _VAULT else line for line in lines)
    return (*lines, PUBLIC_FEATURES) if unit == "label" else lines


def with_choices_named(assumptions: Sequence[str]) -> list[str]:
    """Return the assumptions of a release whose parameters were partly chosen, at a price."""
    return [line.removesuffix(".") + _OR_PAID if line in _BLIND else line for line in assumptions]


def contradict_choices(assumptions: Sequence[str], *, chosen: bool) -> bool:
    """Return whether assumptions say that something was chosen where nothing is listed, or the
    other way round."""
    paid = any(line.endswith(_OR_PAID) for line in assumptions)
    return paid != chosen or (chosen and not _BLIND.isdisjoint(assumptions))
