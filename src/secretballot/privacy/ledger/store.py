"""What a ledger asks of the database under it.

A back end is two small things: a `Store`, which begins and ends the transactions of one kind of
database and tells its errors in words, and a `Transaction`, which runs statements inside of one.
Everything that gives rows their meaning stands above both and is written once.

Statements are plain SQL that both databases know, with a question mark for each value.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, Protocol, Self, TypeVar

from secretballot.exceptions import Argument, LedgerError, Parameter

Given = ParamSpec("Given")
Result = TypeVar("Result")


class BrokenOffError(LedgerError):
    """The connection was lost, or storing failed, and it is certain that nothing was stored."""


class UnknownEndError(LedgerError):
    """Storing broke off at its end, so that nobody knows whether it was done.

    Attributes
    ----------
    otherwise : str
        The sentence for the case that nothing was stored.
    """

    def __init__(self, *parts: str | Parameter | Argument, otherwise: str = "") -> None:
        super().__init__(*parts)
        self.otherwise = otherwise

    @classmethod
    def of(cls, what: str, otherwise: str) -> Self:
        """Return the error of what happened, given as the beginning of a sentence."""
        return cls(
            f"{what}; it is unknown whether that was stored, nothing was returned for it, and the"
            " same command or request is charged once when it is repeated.",
            otherwise=otherwise,
        )


def repeated(work: Callable[Given, Result]) -> Callable[Given, Result]:
    """Have work done once more, on a new connection, where it broke off and nothing was stored."""

    @functools.wraps(work)
    def done(*given: Given.args, **named: Given.kwargs) -> Result:
        try:
            return work(*given, **named)
        except BrokenOffError:
            pass
        return work(*given, **named)

    return done


class Found(Protocol):
    """The rows that a statement found."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Transaction(Protocol):
    """A transaction that has begun; its end is the store's."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Found:
        """Run one statement."""
        ...

    def append(self, table: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Add rows of one table, each one place after the one before it, and move the head to the
        last of them."""
        ...

    def claim_room(self, reservation: int, size: int) -> None:
        """Take space for an answer of `size` bytes to a reservation, where the database can."""
        ...

    def give_room_back(self, reservation: int) -> None:
        """Make the space of a reservation free for what is written next."""
        ...

    def confirm_earlier(self) -> None:
        """Let the end of this transaction be durable, and with it all that was committed before,
        though no row is added."""
        ...


class Store(Protocol):
    """Where one account is kept.

    Attributes
    ----------
    where : str
        What messages call it.
    """

    where: str

    def reading(self) -> AbstractContextManager[Transaction]:
        """Begin a transaction that sees one state of the whole account and only reads.

        Raises
        ------
        LedgerError
            If there is no account, it has another format, or it cannot be read.
        """
        ...

    def writing(self, *, answer_to: int | None = None) -> AbstractContextManager[Transaction]:
        """Begin a transaction beside which nobody else writes to the account.

        At the end it is durable, or nothing is changed.

        Parameters
        ----------
        answer_to : int, optional
            Number of the reservation whose answer will be written.

        Raises
        ------
        UnknownEndError
            If it is not known whether it was stored.
        LedgerError
            As `reading`, or if it cannot be written.
        """
        ...

    def keep_open(self) -> None:
        """Keep what a transaction needs at hand for the next ones, of a program that has many."""
        ...

    def check_tables(self, transaction: Transaction) -> None:
        """Refuse tables or triggers that are not as this program makes them.

        Raises
        ------
        LedgerError
            If one is missing or was changed.
        """
        ...

    def check_pages(self, transaction: Transaction) -> None:
        """Refuse a damaged page, where the database leaves looking for one to its users.

        Raises
        ------
        LedgerError
            If there is one.
        """
        ...
