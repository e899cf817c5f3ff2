"""Certificates of releases that no ledger has seen, and what a forger does to them."""

import hashlib
import json
from datetime import UTC, datetime

import numpy as np

from secretballot.accounting import price
from secretballot.core import releasing
from secretballot.core.noise import ExactNoise
from secretballot.core.releasing import Released
from secretballot.report.certificate import certificate_digest, certificate_of
from secretballot.report.verification import verify_certificate

#: An account, but for what its budget is about.
ACCOUNT = {
    "kind": "basic",
    "dataset": "registry-2026",
    "durable": True,
    "budget": {"epsilon": 4.0, "delta": 4e-5},
    "spent_after": {"epsilon": 1.5, "delta": 2e-5},
    "reservation": 7,
}


def build_certificate(
    *, mechanism, shape, public, budget, released, composition=None, noise=None, purpose="", **more
):
    """Return the certificate of a release by an account as a certificate states it, whose
    declaration is, if not given, that of its shape."""
    about = {"unit": shape.guarantee.unit, "relation": shape.guarantee.relation}
    composition = composition or ACCOUNT | about
    column = "patient_id" if about["unit"] == "user" else None
    more = {"declaration": about | {"unit_column": column}, **more}
    done = Released(
        request="request",
        purpose=purpose,
        mechanism=mechanism,
        shape=shape,
        event=mechanism.event(shape),
        budget=budget,
        price=price([mechanism.event(shape)], epsilon=budget.epsilon),
        public=dict(public),
        values=np.zeros((0, 1), dtype=np.int64),
        questions=(),
        noise={**releasing._facts(ExactNoise()), **(noise or {})},
        issued=datetime.now(UTC).isoformat(timespec="seconds"),
        account=dict(composition),
    )
    return certificate_of(done, released, **more)


def renewed(document, **changes):
    """Return a certificate with fields changed and a digest that fits them."""
    document = {**document, **changes}
    return document | {"digest": certificate_digest(document)}


def changed(document, place, value):
    """Return a certificate with the value at one place changed, and its old digest."""
    document = json.loads(json.dumps(document))  # quicker than a deep copy
    holder = document
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    return document


def failed(release, folder=None):
    """Return the names of the checks that fail."""
    return {check.name for check in verify_certificate(release, folder).failures}


def files_in(folder):
    """Return what a certificate lists of the files of a folder."""
    return {
        path.name: {
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "bytes": path.stat().st_size,
        }
        for path in sorted(folder.iterdir())
        if path.name not in ("certificate.json", "certificate.sig")
    }


def reseal(folder, change=lambda _: None):
    """List the files of a folder anew, change its certificate, and renew the digest."""
    document = json.loads((folder / "certificate.json").read_text())
    document["files"] = files_in(folder)
    if "labels.csv" in document["files"]:
        document["released"]["labels_sha256"] = document["files"]["labels.csv"]["sha256"]
    change(document)
    (folder / "certificate.json").write_text(json.dumps(renewed(document)))
