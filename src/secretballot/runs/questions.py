"""What a run says to the curator while it works, and what it asks before anything is spent.

Nothing of it is published. What is asked follows from public numbers, but for questions about how
many records there are, about targets that are no numbers and about ids that repeat, which are for
the curator alone. What is released does not depend on the answers: a run that goes on after a
question is the run that nobody was asked about.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from secretballot._typing import Progress
from secretballot._validation import plain_line, shown


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


@dataclass
class Watch:
    """Who is informed of what a run does; by default nobody.

    Attributes
    ----------
    step : callable of str
        Called with the name of each step before it begins.
    progress : callable of (int, int)
        Called with how many parts of it are done, and of how many.
    tell : callable of Note
        Called with each note at once.
    ask : callable of a list of Caution
        Returns the answers to those questions that somebody answered: the total of a new account as
        ``E,D``, and anything to go on after another one.
    notes : list of Note
        All notes so far.
    """

    step: Callable[[str], None] = lambda text: None
    progress: Progress = lambda done, total: None
    tell: Callable[[Note], None] = lambda note: None
    ask: Callable[[list[Caution]], Mapping[Caution, str]] = lambda questions: {}
    notes: list[Note] = field(default_factory=list)

    def note(self, text: str, *, private: bool) -> None:
        """Keep a note, on one line, and pass it on; the same one is shown once."""
        # names in it may come from anybody's file, so control characters are written out
        note = Note(plain_line(text), private)
        if note not in self.notes:
            self.notes.append(note)
            self.tell(note)


def cautions_of_ids(repeating: Collection[str]) -> Iterator[Caution]:
    """Yield what is to be asked where ids repeat and every record would be a unit of its own."""
    for name in repeating:
        yield Caution(
            "unit",
            f"column {shown(name)} looks like an identifier and repeats, so that the guarantee is"
            f" for single rows, not for all rows of one id; protect persons with --unit {name}, or"
            f" leave it out with --drop {name}.",
            private=True,
        )
