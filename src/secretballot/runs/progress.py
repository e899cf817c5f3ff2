"""How a long run tells a person what it does; everything said here is for the curator, nothing
is published."""

from collections.abc import Callable
from dataclasses import dataclass, field

from secretballot._validation import plain_line
from secretballot.released import ReleasedLabels

__all__ = ["Note", "Watch", "note_few_answers"]

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


def _silent(*_: object) -> None:
    """Say nothing."""


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
    notes : list of Note
        All notes so far.
    """

    step: Callable[[str], None] = _silent
    progress: Callable[[int, int], None] = _silent
    tell: Callable[[Note], None] = _silent
    notes: list[Note] = field(default_factory=list)

    def note(self, text: str, *, private: bool) -> None:
        """Keep a note, on one line, and pass it on."""
        self.notes.append(Note(plain_line(text), private))
        self.tell(self.notes[-1])


def note_few_answers(released: ReleasedLabels, watch: Watch) -> None:
    """Say so where hardly any query was answered: it was paid for all the same. What is answered
    is public."""
    answered, asked = int(released.answered.sum()), len(released.queries)
    if answered < FEW * asked:
        watch.note(
            f"Only {answered} of {asked} queries were answered, and the price is spent; the sparse"
            " vector needs votes that nearly all agree. Use more teachers, fewer abstentions"
            " (--max-unstable) or the Gaussian aggregator.",
            private=False,
        )
