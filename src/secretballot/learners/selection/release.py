"""What leaves when a model was chosen by private records: its labels of public points."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from secretballot._typing import IntArray
from secretballot.core.ledger import Ledger
from secretballot.core.releasing import Released
from secretballot.exceptions import ParameterError
from secretballot.learners.selection.candidates import certified
from secretballot.released import ReleasedLabels
from secretballot.releasing import account_terms
from secretballot.report.certificate.build import (
    account_fields,
    certificate_of,
    describe_released,
)


def chosen_release(
    choice: Released,
    labels: IntArray,
    rows: IntArray,
    classes: Sequence[Any],
    *,
    about: Mapping[str, Any],
    unit_column: str | None,
    purpose: str,
) -> ReleasedLabels:
    """Return the choice as a release; the chosen model's labels of public points cost nothing more.

    Parameters
    ----------
    choice : Released
        An exponential choice, drawn and paid for.
    labels : ndarray of int64, shape (l,)
        Class of each public point, by the chosen model, as an index into `classes`.
    rows : ndarray of int64, shape (l,)
        Rows of the public points.
    classes : sequence
    about : mapping
        What the candidates are, as JSON values; for the certificate.
    unit_column : str or None
    purpose : str

    Privacy
    -------
    Unit, relation, price : those of the choice. Labels of public points by a model that depends on
        nothing else private are post-processing.
    """
    document = certificate_of(
        replace(choice, purpose=purpose or choice.purpose),
        describe_released(rows, labels, classes, 0) | {"values": choice.values.tolist()},
        follows=about,
        declaration={
            "unit": choice.shape.guarantee.unit,
            "unit_column": unit_column,
            "relation": choice.shape.guarantee.relation,
        },
    )
    return ReleasedLabels(rows, labels, tuple(classes), 0, certificate=document)


def refuse_other_accounts(candidates: Sequence[Any], ledger: Ledger) -> None:
    """Refuse candidates that say they were learnt from releases of another account.

    Raises
    ------
    ParameterError
        Naming the account; nothing was spent.
    """
    # Their price would stand in no account that the certificate of the choice speaks of.
    own = account_terms(ledger)
    for model in candidates:
        released = getattr(model, "released_", None)
        paid = released.certificate["composition"] if isinstance(released, ReleasedLabels) else own
        if not _same_account(paid, own):
            raise ParameterError(
                f"A candidate was learnt from a release of the account {paid['dataset']!r}, and the"
                f" choice would be paid by {ledger.dataset!r}, so its own price would be lost;"
                " learn it with the same ledger, or give its student_ alone if it is about other"
                " people. Nothing was spent."
            )


def with_candidates(
    released: ReleasedLabels, choice: Released, candidates: Sequence[Any], index: int
) -> ReleasedLabels:
    """Return the release with all that the candidates cost the same account on its certificate.

    Candidates that were learnt from releases of the same private dataset (``released_``) add
    their prices. If the chosen one is such, its own labels are released, and the choice stands
    among the choices of its certificate.
    """
    found = {place: getattr(model, "released_", None) for place, model in enumerate(candidates)}
    own = {
        place: one
        for place, one in found.items()
        if isinstance(one, ReleasedLabels)
        and _same_account(one.certificate["composition"], account_fields(choice.account))
    }
    if not own:
        return released
    if index not in own:
        return certified(released, (), rejected=tuple(own.values()))
    chosen = own.pop(index)
    return certified(chosen, (choice,), rejected=tuple(own.values()))


def _same_account(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one[key] == other[key] for key in ("kind", "dataset", "unit", "relation", "budget"))
