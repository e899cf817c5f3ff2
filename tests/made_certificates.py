"""Certificates of releases that no ledger has seen, for tests that change them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from secretballot.accounting import Price, PrivacyBudget
from secretballot.core import releasing
from secretballot.core.mechanisms import Mechanism, Shape
from secretballot.core.noise import ExactNoise
from secretballot.core.releasing import AccountFacts, Released
from secretballot.core.types import Guarantee
from secretballot.report.certificate.build import certificate_of


def build_certificate(
    *,
    mechanism: Mechanism,
    shape: Shape,
    public: Mapping[str, Any],
    budget: PrivacyBudget,
    price: Price,
    composition: Mapping[str, Any],
    noise: Mapping[str, Any],
    released: Mapping[str, Any],
    purpose: str = "",
    **more: Any,
) -> dict[str, Any]:
    """Return the certificate of a release by an account as a certificate states it."""
    account = AccountFacts(
        dataset=composition["dataset"],
        composition=composition["kind"],
        guarantee=Guarantee(unit=composition["unit"], relation=composition["relation"]),
        budget=PrivacyBudget(**composition["budget"]),
        spent_after=tuple(composition["spent_after"].values()),
        durable=composition["durable"],
        reservation=composition["reservation"],
    )
    done = Released(
        request="request",
        purpose=purpose,
        mechanism=mechanism,
        shape=shape,
        event=mechanism.event(shape),
        budget=budget,
        price=price,
        public=dict(public),
        values=np.zeros((0, 1), dtype=np.int64),
        questions=(),
        noise={**releasing._facts(ExactNoise()), **noise},
        issued=datetime.now(UTC).isoformat(timespec="seconds"),
        account=account,
    )
    return certificate_of(done, released, **more)
