"""Verify a certificate from its own words: is it whole, does it add up, is the price right?

The verifier believes nothing that it can compute. It prices the events again and refuses a promise that
is smaller than they cost. What it cannot know is whether the events are what really happened: the digest
is not a signature, so take certificates from those you trust, over a channel you trust.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from secretballot._validation import check_relation
from secretballot.exceptions import CertificateError, SecretBallotError
from secretballot.privacy.accounting import Event, delta_upper
from secretballot.report.certificate import FIXED_BLINDLY, FIXED_OR_PAID, certificate_digest
from secretballot.report.certificate_events import SLACK, check_relation_of, paid_queries, read_events
from secretballot.report.certificate_fields import check_fields, check_format, read_certificate
from secretballot.report.chosen import CHOICE, check_chosen
from secretballot.report.labels_file import summarise_labels_file
from secretballot.report.plan_checks import check_choices, check_plan, total_price
from secretballot.report.wording import count_text

__all__ = ["Check", "Verification", "verify_certificate"]

# Parameters that a mechanism and its events both state, and must state alike.
_SHARED = (
    *("sigma", "threshold_scale", "query_scale", "threshold", "max_unstable", "refresh", "scale"),
    *("sampled", "out_of", "neighbours", "relabel_epsilon"),
)

# What each mechanism draws. A choice is drawn at its own scale, which `check_chosen` compares with its event.
_DRAWN = {
    "gaussian": ("gaussian", "label-gaussian"),
    "sparse-vector": ("sparse-vector",),
    "relabelled-sample": ("relabelled-sample",),
    CHOICE: ("pure",),
}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes
    ----------
    name : str
        What was looked at, in one word.
    ok : bool
        Whether it was in order.
    detail : str
        One sentence on what was found.
    """

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class Verification:
    """The outcome of `verify_certificate`.

    Attributes
    ----------
    checks : tuple of Check
        In the order in which they were made. Where a certificate cannot be read, or lacks fields, the
        checks that need them are left out.
    """

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every check was in order."""
        return all(check.ok for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that were not in order."""
        return tuple(check for check in self.checks if not check.ok)

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        return {"ok": self.ok, "checks": [vars(check) for check in self.checks]}


def verify_certificate(certificate: Mapping[str, Any] | str | Path, folder: str | Path | None = None) -> Verification:
    """Check a certificate and price its events again; whatever it holds, the answer is a `Verification`.

    Parameters
    ----------
    certificate : mapping or path
        The certificate, its file, or a release folder, which is then checked as `folder` too.
    folder : path, optional
        Release folder whose ``labels.csv`` must be the one that was released.

    Returns
    -------
    Verification
        One `Check` for each thing looked at.
    """
    checks: list[Check] = []
    if isinstance(certificate, Mapping):
        document = certificate
    else:
        path = Path(certificate)
        if path.is_dir():
            path, folder = path / "certificate.json", path if folder is None else folder
        try:
            document = read_certificate(path)
        except CertificateError as error:
            return Verification((Check("file", False, str(error)),))
    for name, look in _GATES:
        checks.append(_look(name, look, document))
        if not checks[-1].ok:
            return Verification(tuple(checks))
    checks += [_look(name, look, document) for name, look in _CONTENTS]
    checks += [_look(name, look, document) for name, look in _OPTIONAL if name in document]
    if folder is not None:
        labels = Path(folder) / "labels.csv"
        checks.append(_look("labels", lambda found: _check_labels(found, labels), document))
    return Verification(tuple(checks))


def _look(name: str, look: Callable[[Mapping[str, Any]], str], document: Mapping[str, Any]) -> Check:
    try:
        return Check(name, True, look(document))
    except SecretBallotError as error:
        return Check(name, False, str(error))
    except (ArithmeticError, LookupError, TypeError, ValueError, MemoryError, RecursionError) as error:
        # Numbers that pass their range can still be too extreme to compute with; that is no certificate.
        return Check(name, False, f"This could not be evaluated ({type(error).__name__}).")


def _events(document: Mapping[str, Any]) -> list[Event]:
    return read_events(document["events"])


def _check_digest(document: Mapping[str, Any]) -> str:
    if certificate_digest(document) != document["digest"]:
        raise CertificateError("The digest does not fit: the certificate was changed after it was written.")
    return "The digest fits the text (it shows damage; it is not a signature)."


def _check_events(document: Mapping[str, Any]) -> str:
    return f"{count_text(len(_events(document)), 'event')}, of known kinds."


def _check_price(document: Mapping[str, Any]) -> str:
    price, epsilon, delta = document["price"], document["epsilon"], document["delta"]
    if (price["epsilon"], price["delta"]) != (epsilon, delta):
        raise CertificateError("The price is stated at another epsilon or delta than the promise.")
    recomputed = delta_upper(_events(document), epsilon)
    if not recomputed <= delta * SLACK:
        raise CertificateError(
            f"At epsilon {epsilon:.6g} the events cost delta {recomputed:.6g}; promised was {delta:.6g}."
        )
    if not recomputed <= price["delta_recomputed"] * SLACK:
        raise CertificateError(
            f"For its events the certificate states delta {price['delta_recomputed']:.6g}; they cost {recomputed:.6g}."
        )
    return f"At epsilon {epsilon:.6g} the events cost delta {recomputed:.6g}, within the promised {delta:.6g}."


def _check_mechanism(document: Mapping[str, Any]) -> str:
    mechanism, released = document["mechanism"], document["released"]
    streams = [event["stream"] for event in document["events"] if "stream" in event]
    _check_kinds(mechanism, document["events"], streams)
    for event in (*document["events"], *streams):
        for key in _SHARED:
            if key in event and (key not in mechanism or mechanism[key] != event[key]):
                raise CertificateError(f"The mechanism and its event {event.get('event')!r} differ in {key}.")
        if event.get("n_teachers") not in (None, released["n_teachers"]):
            raise CertificateError("The event was priced for another number of teachers than voted.")
        check_relation_of(event, document)
    stated = {
        "n_classes": len(released["classes"]),
        "n_teachers": released["n_teachers"],
        "budget": {"epsilon": document["epsilon"], "delta": document["delta"]},
    }
    for key, value in stated.items():
        if mechanism.get(key) not in (None, value):
            raise CertificateError(f"The mechanism states another {key} than the certificate.")
    check_chosen(document)
    _check_assumed(document)
    return "The parameters of the mechanism are those of its events."


def _check_kinds(
    mechanism: Mapping[str, Any], events: Sequence[Mapping[str, Any]], streams: Sequence[Mapping[str, Any]]
) -> None:
    """Refuse events that the mechanism does not draw, and parameters of the mechanism that no event has a price for."""
    kinds = _DRAWN.get(mechanism["name"])
    if kinds is None:
        raise CertificateError(f"The mechanism {mechanism['name']!r} is unknown to this program; update secretballot.")
    for event in events:
        if event.get("event") not in kinds:
            raise CertificateError(f"The mechanism {mechanism['name']!r} draws no event {event.get('event')!r}.")
    stated = {key for key in _SHARED if key in mechanism} - ({"scale"} if mechanism["name"] == CHOICE else set())
    unpaid = stated.difference(*events, *streams)
    if unpaid:
        raise CertificateError(f"No event has a price for the mechanism's {', '.join(sorted(unpaid))}.")


def _check_assumed(document: Mapping[str, Any]) -> None:
    """Refuse assumptions about the parameters that the list of choices denies."""
    chosen = bool(document.get("choices"))
    if (FIXED_OR_PAID in document["assumptions"]) != chosen or (chosen and FIXED_BLINDLY in document["assumptions"]):
        raise CertificateError(
            f"The certificate lists {'' if chosen else 'no '}choices made with private data, and its assumptions say "
            "otherwise."
        )


def _check_released(document: Mapping[str, Any]) -> str:
    released, events = document["released"], _events(document)
    queries, answered, columns = released["queries"], released["answered"], released["count_columns"]
    n_classes = len(released["classes"])
    if not answered <= queries:
        raise CertificateError(f"{answered} answers to {queries} queries are too many.")
    if columns not in (0, n_classes) and not (columns == 1 and n_classes == 2):
        raise CertificateError(f"{columns} noisy counts for each query do not fit {n_classes} classes.")
    paid = paid_queries(events, n_classes, columns)
    if paid is not None and not queries <= paid:
        raise CertificateError(f"The events pay for {paid} queries; {queries} were released.")
    return f"{answered} of {queries} queries answered, all of them paid for by the events."


def _check_budget(document: Mapping[str, Any]) -> str:
    composition = document["composition"]
    released, promised = ((part["unit"], part["neighbours"]) for part in (document, composition))
    for pair in (released, promised):
        check_relation(*pair)
    # A ledger about records takes releases by user too, but not the other way, and only under add-remove; one about
    # labels takes releases by record, since a changed label is a record replaced.
    covered = (released, promised) in (
        (("user", "add-remove"), ("record", "add-remove")),
        (("record", "replace-one"), ("label", "replace-one")),
    )
    if released != promised and not covered:
        raise CertificateError(
            f"The release is by {released[0]} under {released[1]}, and the dataset's budget by {promised[0]} under "
            f"{promised[1]}; the one does not add to the other."
        )
    budget, spent = composition["budget"], composition["spent_after"]
    whole = dict(zip(("epsilon", "delta"), total_price(document), strict=True))
    for key in ("epsilon", "delta"):
        if not spent[key] <= budget[key] * SLACK:
            raise CertificateError(f"The {key} spent on the dataset, {spent[key]:.6g}, exceeds {budget[key]:.6g}.")
        # Only plain sums must show this release in full; a Renyi filter may find the whole cheaper.
        floor = whole[key] if composition["kind"] == "basic" else 0
        if not floor <= spent[key] * SLACK:
            choices = ", with its choices," if document.get("choices") else ""
            raise CertificateError(f"The {key} spent on the dataset is less than this release{choices} cost.")
    kept = "a durable ledger" if composition["durable"] else "memory only, so earlier runs are not counted"
    amount = f"epsilon {spent['epsilon']:.6g} of {budget['epsilon']:.6g} for each {promised[0]}"
    return f"Spent on the dataset so far: {amount}, by {kept}."


def _check_noise(document: Mapping[str, Any]) -> str:
    if not document["noise"]["exact"]:
        raise CertificateError("The noise was not exact; the price holds for exact noise only.")
    return "The noise was exact."


def _check_labels(document: Mapping[str, Any], path: Path) -> str:
    released, found = document["released"], summarise_labels_file(path)
    if found.sha256 != released["labels_sha256"]:
        raise CertificateError(f"{path.name} is not the file that was released: its SHA-256 is another.")
    if (found.queries, found.answered) != (released["queries"], released["answered"]):
        raise CertificateError(
            f"{path.name} holds {found.queries} queries, {found.answered} answered; the certificate says "
            f"{released['queries']} and {released['answered']}."
        )
    return f"{path.name} is the file that was released."


_GATES = (("format", check_format), ("fields", check_fields))
_CONTENTS = (
    ("digest", _check_digest),
    ("events", _check_events),
    ("price", _check_price),
    ("mechanism", _check_mechanism),
    ("released", _check_released),
    ("budget", _check_budget),
    ("noise", _check_noise),
)
_OPTIONAL = (("plan", check_plan), ("choices", check_choices))
