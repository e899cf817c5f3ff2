"""A promise about labels: certificate, page and README say what is protected; the verifier
refuses a wrong mixture."""

from typing import Any

import pytest
from test_forgeries import counted

from made_certificates import failed, renewed
from secretballot.exceptions import ParameterError
from secretballot.report.certificate.build import check_declaration

LABELS = ("label", "replace-one")


def _certificate(
    released: tuple[str, str] = LABELS, promised: tuple[str, str] = LABELS
) -> dict[str, Any]:
    """Return that of counts released under one promise and paid from a ledger about another."""
    document = counted(unit=released[0], relation=released[1]).certificate
    account = {"unit": promised[0], "relation": promised[1]}
    return renewed(document, composition=document["composition"] | account)


@pytest.mark.parametrize(
    "declaration", [{"unit": "label"}, {"unit": "label", "relation": "add-remove"}]
)
def test_labels_that_come_and_go_are_refused(declaration: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="labels change but do not come and go"):
        check_declaration(declaration)


@pytest.mark.parametrize(
    ("released", "promised", "fine"),
    [
        (LABELS, LABELS, True),
        (("record", "replace-one"), LABELS, True),
        (LABELS, ("record", "replace-one"), False),
        (LABELS, ("record", "add-remove"), False),
        (("record", "add-remove"), LABELS, False),
        (("user", "replace-one"), LABELS, False),
        (("user", "add-remove"), LABELS, False),
    ],
)
def test_only_replaced_records_add_to_a_total_about_labels(
    released: tuple[str, str], promised: tuple[str, str], fine: bool
) -> None:
    assert failed(_certificate(released, promised)) == (set() if fine else {"budget"})
