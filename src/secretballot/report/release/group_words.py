"""Budget groups of noisy sums in words: who is promised what, and who weighs how much."""

from collections.abc import Mapping
from typing import Any

from secretballot.report.certificate.moments import GROUPS
from secretballot.report.wording import number_text, shown, unit_noun

__all__ = ["group_rows", "groups_words"]


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
        others = f" No promise is about a {unit} that is replaced by one of another group."
    listed = "; ".join(
        f"{shown(group['name'])}: epsilon {number_text(group['epsilon'])}, delta"
        f" {number_text(group['delta'])}, weight {_weight_text(group, mechanism)}"
        for group in mechanism[GROUPS]
    )
    return (
        f"Every {unit} is in a budget group, and who is in which one is public. A group's promise"
        f" is about one {unit} of that group, which {changed}; the epsilon and the delta of the"
        f" release are the largest of them.{others} The groups: {listed}. A {unit} of weight 0.1"
        " counts in the sums for a tenth of a full one, so the model is more about those who weigh"
        " more."
    )


def group_rows(mechanism: Mapping[str, Any]) -> str:
    """Return the groups as one line of a table."""
    return "; ".join(
        f"{shown(group['name'])} (epsilon {number_text(group['epsilon'])}, delta"
        f" {number_text(group['delta'])}, bound {number_text(group['bound'])})"
        for group in mechanism[GROUPS]
    )


def _weight_text(group: Mapping[str, Any], mechanism: Mapping[str, Any]) -> str:
    return number_text(float(f"{group['bound'] / mechanism['bound']:.3g}"))
