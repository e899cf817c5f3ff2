"""A choice among candidates in words, for the page and for README.txt."""

from collections.abc import Mapping
from typing import Any

from secretballot.report.wording import number_text, shown, unit_noun

EXPONENTIAL_SENTENCE = (
    "One candidate is drawn at random, the likelier the fewer mistakes it makes, by the exponential"
    " mechanism or by permute-and-flip."
)


def chosen_words(certificate: Mapping[str, Any]) -> str:
    """Return what was chosen from what, in sentences.

    Parameters
    ----------
    certificate : mapping
        Of a choice among candidates.
    """
    mechanism = certificate["public"]
    of = f" ({shown(mechanism['hypotheses'])})" if "hypotheses" in mechanism else ""
    return (
        f"The model is one of {number_text(mechanism['n_candidates'])} candidates{of}, drawn by its"
        f" mistakes on all private records, each {unit_noun(certificate['unit'])} counted once; it"
        " need not be the best of them. The labels are what it says of public points."
    )
