"""What a run says to the curator while it works, and what it asks before anything is spent.

Nothing of it is published. What is asked follows from public numbers, but for questions about how
many records there are, about targets that are no numbers and about ids that repeat, which are for
the curator alone. What is released does not depend on the answers: a run that goes on after a
question is the run that nobody was asked about.
"""

import math
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from secretballot._typing import Progress
from secretballot._validation import plain_line, shown
from secretballot.accounting import PrivacyBudget, WeakSignalWarning, check_useful
from secretballot.accounting.recipes import Terms, answer_chance, largest_distance
from secretballot.accounting.rounding import gaussian_mu
from secretballot.core.mechanisms import AbstentionTable, SparseVector, teachers_of
from secretballot.exceptions import Argument, ParameterError
from secretballot.report.wording import count_text

_STREAM_NAMES = {"sparse-vector": "a sparse vector", "abstention-table": "a table of abstentions"}
#: Odds of one guess against another change by exp(epsilon), here by more than 20,000.
_LARGE_EPSILON = 10.0
#: Records that a program may publish whole, of a thousand.
_LARGE_DELTA = 1e-3


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

    @property
    def answer(self) -> Argument:
        """What answers it beforehand."""
        return Argument("total", "E,D") if self.name == "total" else Argument("confirm", self.name)


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


@contextmanager
def warnings_dropped() -> Iterator[None]:
    """Drop all warnings of what is done inside: a foreign learner's may quote private cells.

    A learner that sets filters of its own, as some libraries do, is not heard either.
    """
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("ignore")
        yield


def cautions_of_price(budget: PrivacyBudget) -> Iterator[Caution]:
    """Yield what is to be asked about a price, whatever it buys."""
    epsilon, delta = budget.epsilon, budget.delta
    if epsilon > _LARGE_EPSILON:
        exponent = math.floor(epsilon / math.log(10))
        yield Caution(
            "epsilon",
            f"epsilon {epsilon:g} protects hardly anything: whether a record was there may change"
            f" the odds of any outcome by a factor of 10 to the power of {exponent}; 1 is usual,"
            f" above {_LARGE_EPSILON:g} is a formality.",
        )
    if delta > _LARGE_DELTA:
        yield _careless_delta(delta, f"{_LARGE_DELTA:g}", private=False)


def cautions_of_records(
    budget: PrivacyBudget, stated: int | None, n_units: int
) -> Iterator[Caution]:
    """Yield what is to be asked about the number of records; about the private one, for the
    curator alone, where none was stated in public."""
    private = stated is None
    records = n_units if stated is None else stated
    who = "the private records" if stated is None else f"the {stated:,} stated records"
    if budget.delta * records >= 1:
        yield _careless_delta(budget.delta, f"one over the number of {who}", private=private)
    mu = gaussian_mu(budget.epsilon, budget.delta) if budget.delta > 0 else budget.epsilon
    # Fewer records than this many times the noise taught no method more than the larger class
    # (Adult, epsilon 0.1 and 1, 20 to 3,000 records).
    fewest = math.ceil(25 / mu) if mu > 0 else math.inf
    if records < fewest:
        yield Caution(
            "records",
            f"{who} are fewer than about {fewest:,}, and with so few a release of epsilon"
            f" {budget.epsilon:g} and delta {budget.delta:g} is hardly better than always naming"
            " the largest class; use more records, or a larger epsilon.",
            private,
        )


def cautions_of_teachers(n_teachers: int | None, n_units: int) -> Iterator[Caution]:
    """Yield what is to be asked, of the curator alone, where records do not go round."""
    if n_teachers is not None and n_units < n_teachers:
        yield Caution(
            "teachers",
            "there are fewer records, or persons, to deal out than teachers"
            f" ({n_teachers}), so that most would learn nothing; use fewer (n_teachers).",
            private=True,
        )


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


def cautions_of_noise(terms: Terms, usual: int) -> Iterator[Caution]:
    """Yield what is to be asked where noise drowns the votes, or only fewer than `usual` points can
    be paid for."""
    mechanism = terms.mechanism
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WeakSignalWarning)
        check_useful(mechanism, terms.shape)
    for warning in caught:
        yield Caution("noise", str(warning.message))
    if not caught and terms.n_points < usual:
        yield Caution(
            "noise",
            f"the price pays for {terms.n_points} of the public points alone, from which hardly"
            " anything is learnt; use more teachers (n_teachers), a larger epsilon, or say how"
            " many (n_queries).",
        )
    if isinstance(mechanism, SparseVector | AbstentionTable):
        n_teachers = teachers_of(terms.shape)
        share = answer_chance(mechanism, largest_distance(n_teachers))
        # A sparse vector that answers a unanimous vote less often than this hardly answers any.
        if share < 0.5:
            yield Caution(
                "noise",
                f"{_STREAM_NAMES[mechanism.kind]} with {count_text(n_teachers, 'teacher')} and"
                f" {count_text(mechanism.max_abstentions, 'abstention')} answers even a unanimous"
                f" vote with probability {share:.2f} only; use more teachers, fewer abstentions"
                " (max_abstentions), or a larger epsilon.",
            )


def settle_questions(
    questions: Iterable[Caution], confirm: Collection[str], watch: Watch
) -> str | None:
    """Go on if every question was answered beforehand or is answered now.

    Parameters
    ----------
    questions : iterable of Caution
    confirm : collection of str
        Names of the questions that were answered beforehand.
    watch : Watch
        Called with the other questions, and with what was confirmed.

    Returns
    -------
    str or None
        The total of a new account, where it was asked for.

    Raises
    ------
    ParameterError
        If one was not; nothing was spent. The message lists all of them and is for the curator.
    """
    asked = list(dict.fromkeys(questions))
    unconfirmed = [one for one in asked if one.name not in confirm]
    answers = watch.ask(unconfirmed) if unconfirmed else {}
    open_ones = [one for one in unconfirmed if one not in answers]
    for question in asked:
        if question.name != "total" and question not in open_ones:
            watch.note(question.text, private=question.private)
    if not open_ones:
        return next((text for one, text in answers.items() if one.name == "total"), None)
    parts: list[str | Argument] = []
    for number, question in enumerate(open_ones, start=1):
        mark = f"({number}) " if len(open_ones) > 1 else ""
        text = f"{'; ' if parts else ': '}{mark}{question.text.rstrip('.')} ["
        parts += [text, question.answer, "]"]
    count = count_text(len(open_ones), "question")
    raise ParameterError(f"{count} before anything is spent", *parts, ". Nothing was spent.")


def _careless_delta(delta: float, bound: str, *, private: bool) -> Caution:
    """Return the question about a delta that one record's publication would satisfy."""
    return Caution(
        "delta",
        f"delta {delta:g} is not below {bound}: a program that publishes one whole record at random"
        " would keep such a promise; use a much smaller delta.",
        private,
    )
