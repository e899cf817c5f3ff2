"""A promise about labels: certificate, page and README say what is protected; the verifier
refuses a wrong mixture."""

from typing import Any

import numpy as np
import pytest

from made_certificates import build_certificate
from secretballot.accounting import PrivacyBudget, price
from secretballot.core.mechanisms import NoisyVotes
from secretballot.core.types import Guarantee, VoteShape
from secretballot.exceptions import ParameterError
from secretballot.released import ReleasedLabels
from secretballot.report.certificate.build import (
    certificate_digest,
    check_declaration,
    describe_released,
)
from secretballot.report.certificate.verify import verify_certificate

LABELS = ("label", "replace-one")


def _release(
    released: tuple[str, str] = LABELS, promised: tuple[str, str] = LABELS
) -> ReleasedLabels:
    """Return counts released under one promise and paid from a ledger about another."""
    budget, counts = PrivacyBudget(1.0, 1e-5), np.arange(0, 100, 5)
    queries, labels = np.arange(20), (2 * counts >= 100).astype(int)
    mechanism = NoisyVotes(scale=40.0, release="counts")
    shape = VoteShape(
        guarantee=Guarantee.model_validate({"unit": released[0], "relation": released[1]}),
        n_queries=20,
        n_classes=2,
        n_teachers=100,
        moved=20,
    )
    certificate = build_certificate(
        mechanism=mechanism,
        shape=shape,
        public={"method": "votes"},
        budget=budget,
        price=price([mechanism.event(shape)], epsilon=1.0),
        composition={
            "kind": "basic",
            "dataset": "registry",
            "unit": promised[0],
            "relation": promised[1],
            "budget": {"epsilon": 2.0, "delta": 1e-5},
            "spent_after": {"epsilon": 1.0, "delta": 1e-5},
            "durable": True,
            "reservation": 1,
        },
        noise={"exact": True, "description": "discrete Gaussian"},
        released=describe_released(queries, labels, ("no", "yes"), 100, counts),
        declaration={"unit": released[0], "relation": released[1]},
    )
    return ReleasedLabels(queries, labels, ("no", "yes"), 100, 40.0, counts, certificate)


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
    found = verify_certificate(_release(released, promised).certificate)
    assert [check.name for check in found.failures] == ([] if fine else ["budget"])


def test_a_forged_relation_of_labels_does_not_verify() -> None:
    certificate = _release().certificate
    forged = {**certificate, "relation": "add-remove"}
    forged["composition"] = {**certificate["composition"], "relation": "add-remove"}
    forged["digest"] = certificate_digest(forged)
    names = {failure.name for failure in verify_certificate(forged).failures}
    assert names == {"mechanism", "budget"} or names == {"mechanism"}
