"""Budget groups in words: who is promised what, and who weighs how much."""

from collections.abc import Mapping
from typing import Any

from secretballot.report.certificate.moments import GROUPS
from secretballot.report.certificate.weighted import WEIGHTED
from secretballot.report.wording import count_text, number_text, shown, unit_noun

__all__ = ["group_rows", "group_weight", "groups_words"]


def groups_words(certificate: Mapping[str, Any]) -> str:
    """Return who is promised what, in sentences; nothing where all are promised the same.

    Parameters
    ----------
    certificate : mapping
        Of a release.
    """
    mechanism = certificate["mechanism"]
    if GROUPS not in mechanism:
        return ""
    unit = unit_noun(certificate["unit"])
    changed, others = "comes or goes", ""
    if certificate["neighbours"] == "replace-one":
        changed = "is replaced by another one of the same group"
        # a record is replaced within its group alone, so no price covers a change of group
        others = f" No promise is about a {unit} that is replaced by one of another group."
    listed = "; ".join(
        f"{shown(group['name'])}: epsilon {number_text(group['epsilon'])}, delta"
        f" {number_text(group['delta'])}, weight {_weight_text(group, mechanism)}"
        f"{_teachers_text(group, mechanism)}"
        for group in mechanism[GROUPS]
    )
    counted = (
        f"A {unit} of weight 0.1 counts in the sums for a tenth of a full one, so the model is more"
        " about those who weigh more."
    )
    if mechanism["name"] == WEIGHTED:
        counted = (
            "Each group has teachers of its own; the vote of a teacher of weight 0.1 counts for a"
            " tenth of a full one, so that where the groups differ the answers follow those who"
            " weigh more."
        )
    return (
        f"Every {unit} is in a budget group, and who is in which one is public. A group's promise"
        f" is about one {unit} of that group, which {changed}; the epsilon and the delta of the"
        f" release are the largest of them.{others} The groups: {listed}. {counted}"
    )


def group_rows(mechanism: Mapping[str, Any]) -> str:
    """Return the groups as one line of a table."""
    return "; ".join(
        f"{shown(group['name'])} (epsilon {number_text(group['epsilon'])}, delta"
        f" {number_text(group['delta'])}, {_size_text(group, mechanism)})"
        for group in mechanism[GROUPS]
    )


def _size_text(group: Mapping[str, Any], mechanism: Mapping[str, Any]) -> str:
    if mechanism["name"] == WEIGHTED:
        voters = count_text(group["teachers"], "teacher")
        return f"{voters} with {count_text(group['weight'], 'vote')} each"
    return f"bound {number_text(group['bound'])}"


def _teachers_text(group: Mapping[str, Any], mechanism: Mapping[str, Any]) -> str:
    if mechanism["name"] != WEIGHTED:
        return ""
    return f", {count_text(group['teachers'], 'teacher')}"


def _weight_text(group: Mapping[str, Any], mechanism: Mapping[str, Any]) -> str:
    return number_text(float(f"{group_weight(group, mechanism):.3g}"))


def group_weight(group: Mapping[str, Any], mechanism: Mapping[str, Any]) -> float:
    """Return how much a record, or a teacher's vote, of a group counts; 1 is all that one may."""
    if mechanism["name"] == WEIGHTED:
        return float(group["weight"] / max(one["weight"] for one in mechanism[GROUPS]))
    return float(group["bound"] / mechanism["bound"])
