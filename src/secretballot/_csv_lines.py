"""The lines of a CSV file, where one record stands on one line."""

from collections.abc import Iterable, Iterator

from secretballot.exceptions import DataError


def lines_of(file: Iterable[str], where: str) -> Iterator[str]:
    """Yield the lines of a text file that was opened with ``newline=""``.

    Parameters
    ----------
    file : iterable of str
        Lines with their ends.
    where : str
        What a message calls the file.

    Raises
    ------
    DataError
        If a carriage return ends a line in a file whose first line ends otherwise, or the other way
        round: a stray one inside a record would make two records of it, which may reach two
        teachers.
    """
    alone: bool | None = None
    for number, line in enumerate(file, start=1):
        ended = line.endswith(("\r", "\n"))
        if alone is None:
            alone = line.endswith("\r")
        if ended and line.endswith("\r") != alone:
            raise DataError(
                f"{where} has a line that does not end as its first line does (line {number}); take"
                " carriage returns out of the cells."
            )
        yield line
