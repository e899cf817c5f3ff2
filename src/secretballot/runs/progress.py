"""How a long run tells the curator what it does; nothing of it is published."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from secretballot._validation import plain_line
from secretballot.accounting import WeakSignalWarning
from secretballot.released import ReleasedLabels

FEW = 0.1  # of the queries asked


@dataclass(frozen=True)
class Note:
    """One sentence for the curator.

    Attributes
    ----------
    text : str
        The sentence; it may name columns, counts and row numbers, never a private value.
    private : bool
        Whether it depends on private data, so that it must not be published.
    """

    text: str
    private: bool


@dataclass(frozen=True)
class Caution:
    """One sentence about a setting that can be, and hardly ever should be.

    Attributes
    ----------
    name : str
        Under which it is answered beforehand.
    text : str
        The sentence; it names no private value.
    private : bool
        Whether that it is asked depends on private data, so that it must not be published.
    """

    name: str
    text: str
    private: bool = False


def _say_nothing(*_: object) -> None:
    """Say nothing."""


def _answer_no(caution: Caution) -> bool:
    """Answer a question that nobody is there to hear."""
    return False


def _know_no_total(caution: Caution) -> None:
    """Know no total of a new account."""


@dataclass
class Watch:
    """Who is told what a run does; by default nobody.

    Attributes
    ----------
    step : callable of str
        Told what comes next.
    progress : callable of (int, int)
        Told how many parts of it are done, and of how many.
    tell : callable of Note
        Told each note at once.
    ask : callable of Caution
        Asked whether to go on; by default the answer is no.
    ask_total : callable of Caution
        Asked for the total of a new account, as ``E,D``; None where nobody knows.
    notes : list of Note
        All notes so far.
    """

    step: Callable[[str], None] = _say_nothing
    progress: Callable[[int, int], None] = _say_nothing
    tell: Callable[[Note], None] = _say_nothing
    ask: Callable[[Caution], bool] = _answer_no
    ask_total: Callable[[Caution], str | None] = _know_no_total
    notes: list[Note] = field(default_factory=list)

    def note(self, text: str, *, private: bool) -> None:
        """Keep a note, on one line, and pass it on; the same one is said once."""
        # names in it may come from anybody's file, so control characters are written out
        note = Note(plain_line(text), private)
        if note not in self.notes:
            self.notes.append(note)
            self.tell(note)


@contextmanager
def public_warnings_noted(watch: Watch) -> Iterator[None]:
    """Pass on, as notes, those warnings of what is done inside that follow from public numbers.

    All others are dropped: a foreign learner's warning may quote private cells.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", WeakSignalWarning)
        yield
    # a learner that sets filters of its own, as some libraries do, has its warnings caught as well
    public = [one for one in caught if issubclass(one.category, WeakSignalWarning)]
    for text in dict.fromkeys(str(warning.message) for warning in public):
        watch.note(text, private=False)


def note_few_answers(released: ReleasedLabels, watch: Watch) -> None:
    """Say so where hardly any query was answered: it was paid for all the same."""
    kind = released.certificate.get("mechanism", {}).get("kind")
    corrects = "confidence" in released.certificate.get("public", {})
    answered, asked = int(released.answered.sum()), len(released.queries)
    # few corrections of a student are no bad sign
    if answered < FEW * asked and not corrects:
        advice = (
            "the sparse vector needs votes that nearly all agree. Use more teachers, fewer"
            " abstentions (max_abstentions) or Gaussian noise."
        )
        if kind == "confident-labels":
            advice = "few votes reached the threshold. Use a lower one (threshold)."
        watch.note(
            f"Only {answered} of {asked} queries were answered, and the price is spent; {advice}",
            private=False,
        )
