"""A ledger put into another place, row by row, with the same chain."""

from collections.abc import Iterator
from itertools import groupby

from secretballot.exceptions import LedgerError
from secretballot.privacy.ledger.chain import Progress, read_account
from secretballot.privacy.ledger.following import follow_from_first, rows_in_order
from secretballot.privacy.ledger.places import Place, create_at, is_taken, name_of, store_at
from secretballot.privacy.ledger.store import Transaction

__all__ = ["copy_account"]

_AT_ONCE = 500  # rows, of which each may hold an answer of some size


def copy_account(source: Place, target: Place) -> Progress:
    """Copy an account with every row of it, and return what the rows come to.

    In this order: every row of the source is followed along the chain; the target is made in one
    transaction with the same terms and the same rows, which are read back and followed, too; only
    where both end in the same row is it kept.

    Raises
    ------
    LedgerError
        If either cannot be read, written or trusted, or something is at the target already;
        nothing is left there then.
    """
    there = name_of(target)
    if is_taken(target):
        raise LedgerError(
            f"There is something at {there} already, and a ledger is copied to a free place alone;"
            " name another one. Nothing was copied."
        )
    store = store_at(source)
    # one transaction to the end, so that what is copied is what was followed
    with store.reading() as transaction:
        store.check_tables(transaction)
        store.check_pages(transaction)
        whole = follow_from_first(transaction, store.where)
        account = read_account(transaction, store.where)

        def fill(copy: Transaction) -> None:
            _add_rows(transaction, copy)
            copied = follow_from_first(copy, f"The copy at {there}")
            if (copied.position, copied.chain) != (whole.position, whole.chain):
                raise LedgerError(
                    f"The copy at {there} does not end where {store.where} ends; nothing was"
                    " copied."
                )

        made = create_at(target, account, fill)
    if not made:
        raise LedgerError(
            f"Another program made a ledger at {there} meanwhile; nothing was copied."
        )
    return whole


def _add_rows(source: Transaction, copy: Transaction) -> None:
    for table, rows in groupby(rows_in_order(source), key=lambda found: found[0]):
        for block in _blocks_of(row for _, row in rows):
            copy.append(table, block)


def _blocks_of(rows: Iterator[dict[str, object]]) -> Iterator[list[dict[str, object]]]:
    block: list[dict[str, object]] = []
    for row in rows:
        block.append(row)
        if len(block) == _AT_ONCE:
            yield block
            block = []
    if block:
        yield block
