"""The certificate of a choice: it verifies, and every way to promise less, or to pass votes for
a choice, does not."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from made_certificates import build_certificate
from secretballot.accounting import PrivacyBudget, calibrate_pure, price
from secretballot.core.mechanisms import ExponentialChoice
from secretballot.core.types import Guarantee, ScoreShape
from secretballot.report.certificate.build import (
    certificate_digest,
    describe_released,
)
from secretballot.report.certificate.methods import EXPONENTIAL, is_chosen
from secretballot.report.certificate.verify import verify_certificate

BUDGET = PrivacyBudget(0.5, 0.0)
MECHANISM = ExponentialChoice(epsilon=calibrate_pure(BUDGET, 1))
LABELS = np.array([0, 1, 1])


def certificate(relation: str = "add-remove", **changes: Any) -> dict[str, Any]:
    shape = ScoreShape(guarantee=Guarantee.model_validate({"unit": "record", "relation": relation}))
    given = {
        "mechanism": MECHANISM,
        "shape": shape,
        "public": {"method": EXPONENTIAL, "n_candidates": 7, "hypotheses": "intervals"},
        "budget": BUDGET,
        "price": price((MECHANISM.event(shape),), epsilon=0.5),
        "composition": {
            "kind": "basic",
            "dataset": "registry-2026",
            "unit": "record",
            "relation": relation,
            "budget": {"epsilon": 1.0, "delta": 0.0},
            "spent_after": {"epsilon": 0.5, "delta": 0.0},
            "durable": True,
            "reservation": 1,
        },
        "noise": {"exact": True, "description": "integers"},
        "released": describe_released(np.arange(3), LABELS, [0, 1], 0) | {"values": [[3]]},
        "declaration": {"unit": "record", "relation": relation},
    }
    return build_certificate(**(given | changes))


def forged(
    change: Callable[[dict[str, Any]], object], relation: str = "add-remove"
) -> dict[str, Any]:
    document = copy.deepcopy(certificate(relation))
    change(document)
    return document | {"digest": certificate_digest(document)}


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_an_honest_one_verifies(relation):
    document = certificate(relation)
    assert verify_certificate(document).ok
    assert is_chosen(document)
    assert (document["price"]["delta_recomputed"], document["delta"]) == (0.0, 0.0)


FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "by user": lambda d: (
        d.update(unit="user", unit_column="id"),
        d["shape"]["guarantee"].update(unit="user"),
    ),
    "two events": lambda d: d["events"].append(copy.deepcopy(d["events"][0])),
    "another event": lambda d: d.update(events=[{"kind": "counts", "sigma": 90.0, "shifts": 1}]),
    "an outcome that is none": lambda d: d["released"].update(values=[[7]]),
    "names of others": lambda d: d["public"].update(candidates=["a", "b"]),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_one_does_not(forgery):
    assert not verify_certificate(forged(FORGERIES[forgery])).ok
