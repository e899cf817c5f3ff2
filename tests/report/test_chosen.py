"""The certificate of a choice: it verifies, and every way to promise less, or to pass votes for
a choice, does not."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from made_events import pure_event
from secretballot.exceptions import ParameterError
from secretballot.privacy.accounting import PrivacyBudget, calibrate_pure, price
from secretballot.released import ReleasedLabels
from secretballot.report.certificate.build import (
    build_certificate,
    certificate_digest,
    describe_released,
)
from secretballot.report.certificate.chosen import is_chosen
from secretballot.report.certificate.verify import verify_certificate

BUDGET = PrivacyBudget(0.5, 0.0)
EVENT = pure_event(calibrate_pure(BUDGET, 1), 1)
LABELS = np.array([0, 1, 1])


def certificate(neighbours: str = "add-remove", **changes: Any) -> dict[str, Any]:
    monotone = neighbours == "add-remove"
    mechanism = {
        "name": "exponential-choice",
        "epsilon": 0.5,
        "monotone": monotone,
        "n_candidates": 7,
        "outcome": 3,
    }
    given = {
        "budget": BUDGET,
        "events": [EVENT],
        "price": price((EVENT,), epsilon=0.5),
        "mechanism": {
            **mechanism,
            "scale": (2.0 if monotone else 4.0) * (1 + 1e-9),
            "hypotheses": "intervals",
        },
        "composition": {
            "kind": "basic",
            "dataset": "registry-2026",
            "unit": "record",
            "neighbours": neighbours,
            "budget": {"epsilon": 1.0, "delta": 0.0},
            "spent_after": {"epsilon": 0.5, "delta": 0.0},
            "durable": True,
            "reservation": 1,
        },
        "noise": {"exact": True, "description": "integers"},
        "released": describe_released(np.arange(3), LABELS, [0, 1], 0),
        "declaration": {"unit": "record", "neighbours": neighbours},
    }
    return build_certificate(**(given | changes))


def forged(
    change: Callable[[dict[str, Any]], object], neighbours: str = "add-remove"
) -> dict[str, Any]:
    document = copy.deepcopy(certificate(neighbours))
    change(document)
    return document | {"digest": certificate_digest(document)}


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_an_honest_one_verifies(neighbours):
    document = certificate(neighbours)
    assert verify_certificate(document).ok
    assert is_chosen(document)
    assert (document["price"]["delta_recomputed"], document["delta"]) == (0.0, 0.0)


FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "half the scale": lambda d: d["mechanism"].update(scale=1.0),
    "no scale": lambda d: d["mechanism"].pop("scale"),
    "a scale that is true": lambda d: d["mechanism"].update(scale=True),
    "monotone by a word": lambda d: d["mechanism"].update(monotone="yes"),
    "not monotone at the small scale": lambda d: d["mechanism"].update(monotone=False),
    "another epsilon": lambda d: d["mechanism"].update(epsilon=0.4),
    "two draws": lambda d: d["events"][0].update(count=2),
    "two events": lambda d: d["events"].append(copy.deepcopy(d["events"][0])),
    "another event": lambda d: d.update(events=[{"kind": "counts", "sigma": 90.0, "shifts": 1}]),
    "teachers": lambda d: d["released"].update(n_teachers=250),
    "another mechanism": lambda d: d["mechanism"].update(name="gaussian"),
    "no candidates": lambda d: d["mechanism"].update(n_candidates=0),
    "an outcome that is none": lambda d: d["mechanism"].update(outcome=7),
    "names of others": lambda d: d["mechanism"].update(candidates=["a", "b"]),
    "counts": lambda d: d["released"].update(count_columns=1),
    "abstentions": lambda d: d["released"].update(answered=2),
    "a smaller promise": lambda d: (d.update(epsilon=0.4), d["price"].update(epsilon=0.4)),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_one_does_not(forgery):
    assert not verify_certificate(forged(FORGERIES[forgery])).ok


@pytest.mark.parametrize(("scale", "holds"), [(1.0, True), (True, False)])
def test_true_is_no_scale_even_where_1_would_do(scale, holds):
    def change(document: dict[str, Any]) -> None:
        for part in (document, document["price"], document["mechanism"]):
            part["epsilon"] = 1.0 + 1e-11  # room for the error of floats
        document["events"][0]["epsilon"] = 1.0
        document["composition"]["spent_after"]["epsilon"] = 1.0
        document["mechanism"]["scale"] = scale

    assert verify_certificate(forged(change)).ok == holds


def test_one_way_scores_where_records_are_replaced_do_not_verify():
    change = {"monotone": True, "scale": 2.0 * (1 + 1e-9)}
    assert not verify_certificate(forged(lambda d: d["mechanism"].update(change), "replace-one")).ok


def test_without_teachers_there_are_no_counts():
    with pytest.raises(ParameterError, match="without teachers"):
        ReleasedLabels(np.arange(3), LABELS, (0, 1), 0, 2.0, np.arange(3))
