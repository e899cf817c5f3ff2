"""What a run says of its private records: relation, unit, their stated number, and delta."""

from typing import Protocol

from secretballot._validation import check_count
from secretballot.exceptions import DataError, ParameterError
from secretballot.runs.caution import careless_delta_words
from secretballot.runs.progress import Watch
from secretballot.runs.tables import RunTables


class CountedInputs(Protocol):
    """Private records that are counted; how many there are is private but under replace-one."""

    @property
    def n_private(self) -> int: ...

    @property
    def n_units(self) -> int: ...


def check_unit_column(relation: str, tables: RunTables) -> None:
    """Refuse persons whose records are replaced.

    Raises
    ------
    ParameterError
        If a unit column is named with replace-one.
    """
    if relation == "replace-one" and tables.unit is not None:
        raise ParameterError(
            "A unit column goes with relation add-remove only; leave --unit or --relation out."
        )


def check_stated_records(records: int | None) -> None:
    """Refuse a stated number of records that is none.

    Raises
    ------
    ParameterError
        If it is no positive integer.
    """
    if records is not None:
        check_count("records", records)


def check_records_against(
    records: int | None, relation: str, delta: float, inputs: CountedInputs, watch: Watch
) -> None:
    """Compare what was stated with the private table.

    The number of private rows is public under replace-one alone; elsewhere what is said of it is
    for the curator's eyes, and refuses nothing.

    Raises
    ------
    DataError
        If the stated number is wrong where it is exact and public.
    """
    n_private = inputs.n_private
    if relation == "replace-one" and records not in (None, n_private):
        raise DataError(
            "The private file has another number of rows than was stated with --records or a plan,"
            " and under replace-one that number is public and exact; state the right one."
        )
    if records is None and delta * inputs.n_units >= 1:
        bound = "one over the number of units in the private file"
        watch.note(careless_delta_words(delta, bound), private=True)
