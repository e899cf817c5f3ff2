"""What the curator says of a release, and how strong its promise is, in words for every page."""

from collections.abc import Mapping
from typing import Any

from secretballot.report.certificate.plan_checks import total_price
from secretballot.report.wording import (
    number_text,
    percent_text,
    posterior_percent,
    shown,
    unit_noun,
)

#: What stands in the place of a purpose where nobody stated one: the verb of the command line.
_VERBS = ("", "learn", "label", "choose")
_MARKS = (5.0, 10.0)
_STRENGTHS = {1: ("above 5", "a weak promise"), 2: ("above 10", "next to no promise")}
_NOT_STATED = "not stated"


def name_of_data(certificate: Mapping[str, Any]) -> str:
    """Return what people call the data; by default the dataset's name in its ledger."""
    title = certificate.get("about", {}).get("title")
    return shown(certificate["composition"]["dataset"] if title is None else title)


def stated_purpose(certificate: Mapping[str, Any]) -> str | None:
    """Return why the release was made, None where nobody said so."""
    purpose = str(certificate["purpose"]).strip()
    return None if purpose in _VERBS else shown(purpose)


def about_rows(certificate: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """Return what was said of the release: what, the words, and whether somebody said them."""
    about = certificate.get("about", {})
    said = [
        ("Purpose", stated_purpose(certificate)),
        *(
            (name.capitalize(), None if about.get(name) is None else shown(about[name]))
            for name in ("controller", "contact")
        ),
    ]
    dataset = ("Account", shown(certificate["composition"]["dataset"]), True)
    rows = [(name, words or _NOT_STATED, words is not None) for name, words in said]
    return [*rows, dataset] if "title" in about else rows


def caution(certificate: Mapping[str, Any]) -> str:
    """Return sentences of caution on a large epsilon, of this release or of all together; empty
    where both are at most 5."""
    own, _ = total_price(certificate)
    spent = float(certificate["composition"]["spent_after"]["epsilon"])
    level = max(_marks_below(own), _marks_below(spent))
    if not level:
        return ""
    above, promise = _STRENGTHS[level]
    # where both are as large, the caution is about this release
    epsilon = own if _marks_below(own) == level else spent
    if epsilon == own:
        begins = f"Caution: an epsilon {above} is {promise}."
    else:
        begins = (
            "Caution: all releases from this account together have an epsilon of"
            f" {number_text(spent)}, {above}: {promise}."
        )
    sure = percent_text(posterior_percent(epsilon))
    noun = unit_noun(certificate["unit"])
    guess = "which of two values one label has" if noun == "label" else f"that one {noun} took part"
    ends = " Judge the release as if there were no guarantee." if level == len(_STRENGTHS) else ""
    return (
        f"{begins} By the guarantee alone, somebody who knows everything else may go from even odds"
        f" to being {sure} sure {guess}.{ends}"
    )


def _marks_below(epsilon: float) -> int:
    """Return how many of the marks an epsilon lies above."""
    return sum(epsilon > mark for mark in _MARKS)


def total_words(certificate: Mapping[str, Any]) -> str:
    """Return what all releases of the account cost together; empty where this is all of it."""
    account = certificate["composition"]
    spent, budget = account["spent_after"], account["budget"]
    epsilon, delta = total_price(certificate)
    # sums of prices are rounded, so the last digits say nothing
    if spent["epsilon"] <= epsilon * (1 + 1e-9) and spent["delta"] <= delta * (1 + 1e-9):
        return ""
    noun = unit_noun(account["unit"])
    return (
        "All releases from this account so far, this one included, cost ε ="
        f" {number_text(spent['epsilon'])} and δ = {number_text(spent['delta'])} of"
        f" ε = {number_text(budget['epsilon'])} and δ = {number_text(budget['delta'])}: that"
        f" is what they promise to one {noun} together."
    )
