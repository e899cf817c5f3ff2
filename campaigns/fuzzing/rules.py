"""What every answer of the program must obey, whatever it was given."""

import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

#: Stands in private cells; it must not come back in anything that is said.
MARKER = "MARKER-7719-private"
DONE, BAD_INPUT, BUDGET_REFUSED, NOT_VERIFIED, UNDECIDED = 0, 2, 3, 4, 5
LONGEST_SENTENCE = 600
LONGEST_SECONDS = 20.0


@dataclass(frozen=True)
class Answer:
    """How the program answered one input.

    Attributes
    ----------
    code : int
        The exit code that the command line would give.
    said : str
        All that was said: the sentence of a refusal, or every detail of a verification.
    seconds : float
    """

    code: int
    said: str = ""
    seconds: float = 0.0


def breach(answer: Answer, allowed: Collection[int], *, private: bool = True) -> str | None:
    """Return which rule the answer breaks, in words that are the same for the same defect.

    None if it breaks none. What the answer quotes does not count if nothing private was read.
    """
    if answer.code not in allowed:
        return f"exit code {answer.code}: {answer.said[:160]}"
    if answer.seconds > LONGEST_SECONDS:
        return f"took more than {LONGEST_SECONDS:.0f} s"
    if private and MARKER.lower() in answer.said.lower():
        return (
            "a private cell was quoted:"
            f" {answer.said.lower().replace(MARKER.lower(), '<cell>')[:120]}"
        )
    if any(len(line) > LONGEST_SENTENCE for line in answer.said.split("\n")):
        return f"a sentence of more than {LONGEST_SENTENCE} characters: {answer.said[:80]}"
    if any(unicodedata.category(mark) in ("Cc", "Cs") and mark != "\n" for mark in answer.said):
        return f"control characters in: {answer.said[:80]!a}"
    return None
