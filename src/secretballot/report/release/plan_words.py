"""Plan and choices of a certificate in words, for the page and for README.txt."""

from collections.abc import Mapping
from typing import Any

from secretballot.report.certificate.plan_checks import total_price
from secretballot.report.wording import count_text, number_text, shown, value_text

PRICE_OF_THE_PLAN = (
    "The price stated is that of the whole reservation; stopping early does not make epsilon"
    " smaller, because the moment to stop depends on what was released before."
)
_LEFT = {
    "kept": (
        "What is left, {left}, stays open under the same reservation and may be asked later: it is"
        " paid for."
    ),
    "forfeited": "What is left, {left}, can never be asked: it stays spent.",
    "returned": (
        "What is left, {left}, went back to the dataset's account, a Renyi filter, and may be spent"
        " on other releases; this release is no cheaper for it."
    ),
    "none": "Nothing was left.",
}
_LONGEST_OUTCOME = 200


def plan_words(certificate: Mapping[str, Any]) -> str:
    """Return what was reserved and what was used, in sentences; empty where there is no plan."""
    if "plan" not in certificate:
        return ""
    plan = certificate["plan"]
    planned, used, rounds = plan["planned"], plan["used"], len(plan["rounds"])
    left = count_text(planned - used, "unused query")
    return (
        f"Of {count_text(planned, 'reserved query')}, {used:,} {'was' if used == 1 else 'were'}"
        f" used, in {count_text(rounds, 'round')}, by the strategy"
        f" {shown(plan['strategy']['name'])}. {_LEFT[plan['left']].format(left=left)}"
        f" {PRICE_OF_THE_PLAN}"
    )


def choices_words(certificate: Mapping[str, Any]) -> str:
    """Return what the private choices cost, in sentences; empty where there are none."""
    choices = certificate.get("choices")
    if not choices:
        return ""
    epsilon, delta = total_price(certificate)
    one = len(choices) == 1
    return (
        f"{'One thing was' if one else f'{len(choices)} things were'} chosen with private data, and"
        f" paid for under {'a reservation of its own' if one else 'reservations of their own'}. By"
        f" plain addition, the release ({number_text(certificate['epsilon'])},"
        f" {number_text(certificate['delta'])}) and {'this choice' if one else 'these choices'}"
        f" cost ({number_text(epsilon)}, {number_text(delta)}) together."
    )


def choice_rows(certificate: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return purpose, outcome and price of every choice, as words."""
    return [
        {
            "purpose": shown(choice["purpose"]),
            "outcome": _outcome_text(choice.get("value", choice.get("labels_sha256"))),
            "events": ", ".join(shown(event["kind"]) for event in choice["events"]),
            "epsilon": number_text(choice["epsilon"]),
            "delta": number_text(choice["delta"]),
        }
        for choice in certificate.get("choices", ())
    ]


def _outcome_text(value: object) -> str:
    text = value_text(value)
    return text if len(text) <= _LONGEST_OUTCOME else text[: _LONGEST_OUTCOME - 1] + "…"
