"""Verify a certificate from its own words: is it whole, does it add up, is the price right?

The verifier believes nothing that it can compute. It prices the events again and refuses a promise
that is smaller than they cost. What it cannot know is whether the events are what really happened:
the digest is not a signature, so take certificates from those you trust, over a channel you trust.
"""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from secretballot._validation import FARTHEST, plain_line, shown
from secretballot.accounting import Event, delta_upper
from secretballot.core.mechanisms import (
    ConfidentLabels,
    ExponentialChoice,
    Mechanism,
    NoisySums,
    NoisyVotes,
    Shape,
    TableLabels,
)
from secretballot.core.sampler import draws_wrong_noise
from secretballot.core.types import Guarantee, VoteShape
from secretballot.exceptions import CertificateError, SecretBallotError
from secretballot.report.certificate.answers_file import ANSWERS_FILE, check_answers
from secretballot.report.certificate.build import check_digest
from secretballot.report.certificate.by_record import (
    EXPECTED_UNCOVERED,
    LARGEST_COUNT,
    is_by_record,
)
from secretballot.report.certificate.events import (
    SLACK,
    read_events,
)
from secretballot.report.certificate.fields import (
    CERTIFICATE_FILE,
    check_fields,
    check_format,
    read_certificate,
)
from secretballot.report.certificate.moments import check_moments
from secretballot.report.certificate.plan_checks import (
    check_choices,
    check_plan,
    stands_alone,
    total_price,
)
from secretballot.report.certificate.release_files import (
    LABELS_FILE,
    check_files,
    values_file,
)
from secretballot.report.certificate.released_rows import check_rows
from secretballot.report.certificate.signature import (
    SIGNATURE_BYTES,
    SIGNATURE_FILE,
    check_signature,
    read_public_key,
)
from secretballot.report.certificate.standing import contradict_choices
from secretballot.report.certificate.terms import (
    check_integers,
    check_terms,
    count_columns_of,
    noise_of_counts,
    terms_in,
)
from secretballot.report.certificate.vote_tables import has_table, table_columns
from secretballot.report.wording import count_text

_LONGEST_DETAIL = 300  # characters


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

    Examples
    --------
    >>> sb.report.Check("noise", True, "The noise was exact.").ok
    True
    """

    name: str
    ok: bool
    detail: str

    def __post_init__(self) -> None:
        # A stranger's text may stand in it: one line, of bounded length, whatever a message quotes.
        object.__setattr__(self, "detail", plain_line(self.detail, longest=_LONGEST_DETAIL))


@dataclass(frozen=True)
class Verification:
    """The outcome of `verify_certificate`.

    Attributes
    ----------
    checks : tuple of Check
        In the order in which they were made. Where a certificate cannot be read, or lacks fields,
        the checks that need them are left out.
    unchecked : tuple of str
        One sentence on each thing that was not looked at, since it was not given.

    Examples
    --------
    >>> outcome = sb.verify_certificate({"format": "something else"})
    >>> outcome.ok
    False
    >>> [check.name for check in outcome.failures]
    ['format']
    """

    checks: tuple[Check, ...]
    unchecked: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every check was in order."""
        return all(check.ok for check in self.checks)

    @property
    def signature(self) -> str:
        """What is known of a signature: "checked" with a key, "not checked" where a file may be
        one, or "none"."""
        if any(check.name == "signature" and check.ok for check in self.checks):
            return "checked"
        return "not checked" if _NO_KEY in self.unchecked else "none"

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that were not in order."""
        return tuple(check for check in self.checks if not check.ok)

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        return {
            "ok": self.ok,
            "signature": self.signature,
            "checks": [vars(check) for check in self.checks],
            "unchecked": list(self.unchecked),
        }


def verify_certificate(
    certificate: Mapping[str, Any] | str | Path,
    folder: str | Path | None = None,
    *,
    key: str | os.PathLike[str] | None = None,
) -> Verification:
    """Check a certificate and price its events again; the answer is always a `Verification`.

    Parameters
    ----------
    certificate : mapping or path
        The certificate, its file, or a release folder. A file that stands beside a ``labels.csv``
        or ``answers.csv`` is taken for that of a release folder, and the folder is checked too.
    folder : path, optional
        Release folder, whose files must be those that the certificate lists, and whose
        ``labels.csv`` or ``answers.csv`` must hold what was paid for. By default the folder that
        `certificate` names or stands in.
    key : path, optional
        File with the public key of whoever is to have signed the release folder, Ed25519 in PEM; a
        release that is not signed with it fails the check.

    Returns
    -------
    Verification
        One `Check` for each thing looked at.

    Raises
    ------
    DataError, ParameterError
        If a key is given that cannot be read, or is none.
    MissingExtraError
        If a key is given, and cryptography is not installed.
    """
    # a key that cannot be read is no fault of the release
    public = None if key is None else read_public_key(Path(key))
    place = None if folder is None else Path(folder)
    beside = place  # where a signature lies: with a certificate that was downloaded alone, too
    if isinstance(certificate, Mapping):
        document = certificate
    else:
        path = Path(certificate)
        if path.is_dir():
            path, place = path / CERTIFICATE_FILE, place or path
        elif path.name == CERTIFICATE_FILE and any(
            os.path.lexists(path.with_name(name)) for name in (LABELS_FILE, ANSWERS_FILE)
        ):
            place = place or path.parent
        if path.name == CERTIFICATE_FILE:
            beside = place or path.parent
        try:
            document = read_certificate(path)
        except CertificateError as error:
            return Verification((Check("file", False, str(error)),))
    # each stage may read what the stages before it have checked, so a failure ends it: later
    # checks would read fields that are not there
    checks: list[Check] = []
    for name, look in _GATES:
        checks.append(_check_made(name, look, document))
        if not checks[-1].ok:
            return Verification(tuple(checks))
    checks += [_check_made(name, look, document) for name, look in _TERMS]
    # events that are not those of one mechanism could be many, and take long to price
    if checks[-1].ok:
        checks += [_check_made(name, look, document) for name, look in _CONTENTS]
        checks += [
            _check_made(name, look, document) for name, look in _OPTIONAL if name in document
        ]
    if key is not None:
        checks.append(
            _check_made(
                "signature", lambda found: _checked_signature(found, beside, public), document
            )
        )
    signed = beside is not None and os.path.lexists(beside / SIGNATURE_FILE)
    unasked = (_NO_KEY,) if signed and key is None else ()
    if place is None:
        return Verification(tuple(checks), (_NO_FOLDER, *unasked))
    checks.append(_check_made("files", lambda found: check_files(found, place), document))
    values = values_file(document)
    holds = check_answers if values == ANSWERS_FILE else check_rows
    name = values.removesuffix(".csv")
    checks.append(_check_made(name, lambda found: holds(found, place / values), document))
    return Verification(tuple(checks), unasked)


def _checked_signature(document: Mapping[str, Any], folder: Path | None, public: Any) -> str:
    if folder is None:
        raise CertificateError(
            f"The signature lies beside {CERTIFICATE_FILE}; give that file, or its folder."
        )
    return check_signature(document, folder, public)


_NO_KEY = (
    f"There is a {SIGNATURE_FILE}, and whether it is a signature was not checked: any"
    f" {SIGNATURE_BYTES} bytes look like one; give the public key of whoever must have signed."
)
_NO_FOLDER = (
    "The released labels and the other files were not looked at; give the release folder to check"
    " them too."
)


def _check_made(
    name: str, look: Callable[[Mapping[str, Any]], str], document: Mapping[str, Any]
) -> Check:
    try:
        return Check(name, True, look(document))
    except SecretBallotError as error:
        return Check(name, False, str(error))
    except (
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
        MemoryError,
        RecursionError,
    ) as error:
        # Numbers that pass their range can still be too extreme to compute with; that is no
        # certificate.
        return Check(name, False, f"This could not be evaluated ({type(error).__name__}).")


def _events_of(document: Mapping[str, Any]) -> list[Event]:
    return read_events(document["events"])


def _check_events(document: Mapping[str, Any]) -> str:
    return f"{count_text(len(_events_of(document)), 'event')}, of known kinds."


def _check_price(document: Mapping[str, Any]) -> str:
    # both the promise and the stated price are compared with the price of the events, so that
    # neither can be the smaller number that a reader happens to look at
    price, epsilon, delta = document["price"], document["epsilon"], document["delta"]
    if (price["epsilon"], price["delta"]) != (epsilon, delta):
        raise CertificateError("The price is stated at another epsilon or delta than the promise.")
    recomputed = delta_upper(_events_of(document), epsilon)
    if not recomputed <= delta * SLACK:
        raise CertificateError(
            f"At epsilon {epsilon:.6g} the events cost delta {recomputed:.6g}; promised was"
            f" {delta:.6g}."
        )
    if not price["delta_recomputed"] <= delta * SLACK:
        raise CertificateError("The price states a larger delta than the promise.")
    if not recomputed <= price["delta_recomputed"] * SLACK:
        raise CertificateError(
            f"For its events the certificate states delta {price['delta_recomputed']:.6g}; they"
            f" cost {recomputed:.6g}."
        )
    return (
        f"At epsilon {epsilon:.6g} the events cost delta {recomputed:.6g}, within the promised"
        f" {delta:.6g}."
    )


def _check_mechanism(document: Mapping[str, Any]) -> str:
    mechanism, shape = check_terms(document)
    if isinstance(mechanism, NoisySums):
        check_moments(document, mechanism, shape)  # type: ignore[arg-type]
    elif is_by_record(document):
        _check_by_record(document, shape)
    _check_assumed(document)
    return "The events are exactly those of the mechanism."


def _check_by_record(document: Mapping[str, Any], shape: Any) -> None:
    """Refuse votes of records that do not fit in a table of these points."""
    each = 2 if shape.guarantee.relation == "replace-one" else 1
    votes = shape.moved // each
    # one cell for each vote of an uncovered record
    spare = -(-votes // shape.n_classes) if EXPECTED_UNCOVERED in document["public"] else 0
    if shape.moved % each or not 1 <= votes <= shape.n_queries or shape.spare_rows != spare:
        raise CertificateError("A record votes at more public points than there are, or at none.")
    if "plan" in document:
        raise CertificateError("Votes of records are released as one table, without rounds.")


def _check_assumed(document: Mapping[str, Any]) -> None:
    """Refuse assumptions about the parameters that the list of choices denies."""
    chosen = bool(document.get("choices"))
    if contradict_choices(document["assumptions"], chosen=chosen):
        raise CertificateError(
            f"The certificate lists {'' if chosen else 'no '}choices made with private data, and"
            " its assumptions say otherwise."
        )


def _check_released(document: Mapping[str, Any]) -> str:
    released, (mechanism, shape) = document["released"], terms_in(document)
    queries, answered = released["queries"], released["answered"]
    _check_values(document, mechanism, shape)
    if has_table(document):
        return f"{count_text(len(released['rows']), 'answer')}, paid for by the events."
    # noisy counts cost more than labels alone: what was released must be what the mechanism's
    # events pay for
    columns = count_columns_of(mechanism, shape)
    if released["count_columns"] != columns:
        raise CertificateError(
            f"{released['count_columns']} noisy counts for each query were released; the mechanism"
            f" and its events pay for {columns}."
        )
    kinds = NoisyVotes | TableLabels | NoisySums | ExponentialChoice
    if isinstance(mechanism, kinds) and answered != queries:
        raise CertificateError("The mechanism answers every query; the certificate says otherwise.")
    if isinstance(shape, VoteShape) and not queries <= shape.n_queries:
        raise CertificateError(
            f"The events pay for {shape.n_queries} queries; {queries} were released."
        )
    most = mechanism.max_answers if isinstance(mechanism, ConfidentLabels) else queries
    if not answered <= min(queries, most):
        raise CertificateError(f"The events pay for {most} answers; {answered} were released.")
    return f"{answered} of {queries} queries answered, all of them paid for by the events."


def _check_values(document: Mapping[str, Any], mechanism: Mechanism, shape: Shape) -> None:
    """Refuse released integers, other than labels and their counts, that no draw can give, or
    that are more than the events pay for."""
    released, public = document["released"], document["public"]
    values, rows = released.get("values"), released.get("rows")
    if has_table(document):
        assert isinstance(shape, VoteShape)
        points, width, low, high = table_columns(document, mechanism, shape)
        if not isinstance(rows, list) or not all(type(row) is int and row >= 0 for row in rows):
            raise CertificateError("rows is no list of rows of the public pool.")
        if not rows or len(set(rows)) < len(rows) or not len(rows) <= points:
            raise CertificateError("rows names none, one twice, or more than were paid for.")
        check_integers(values, len(rows), width, low, high)
        return
    if rows is not None:
        raise CertificateError("Only tables name rows of the public pool.")
    if isinstance(mechanism, NoisySums):
        check_integers(values, *mechanism.answer_shape(shape), -math.inf, math.inf)
    elif isinstance(mechanism, ExponentialChoice):
        check_integers(values, 1, 1, 0, public["n_candidates"] - 1)
        names = public.get("candidates")
        if names is not None and not (
            isinstance(names, list) and len(names) == public["n_candidates"]
        ):
            raise CertificateError("The names of the candidates are not one for each of them.")
    elif EXPECTED_UNCOVERED in public:
        assert isinstance(shape, VoteShape)
        votes = shape.moved // (2 if shape.guarantee.relation == "replace-one" else 1)
        far = FARTHEST * (noise_of_counts(mechanism) + 1)
        check_integers(values, 1, 1, -votes * far, votes * (LARGEST_COUNT + far))
    elif values is not None:
        raise CertificateError("Labels and their counts are all that was released.")


def _check_budget(document: Mapping[str, Any]) -> str:
    composition = document["composition"]
    shape = terms_in(document)[1]
    account = Guarantee(unit=composition["unit"], relation=composition["neighbours"])
    by_teachers = isinstance(shape, VoteShape) and shape.n_teachers is not None
    if not shape.guarantee.adds_to(account, by_teachers=by_teachers):
        raise CertificateError(
            f"The release is by {document['unit']} under {document['neighbours']!r}, and the"
            f" dataset's budget by {account.unit} under {account.relation!r}; the one does not add"
            " to the other."
        )
    budget, spent = composition["budget"], composition["spent_after"]
    # the account is stated by the ledger, not computed here: it must at least be possible
    whole = dict(zip(("epsilon", "delta"), total_price(document), strict=True))
    for key in ("epsilon", "delta"):
        if not spent[key] <= budget[key] * SLACK:
            raise CertificateError(
                f"The {key} spent on the dataset, {spent[key]:.6g}, exceeds {budget[key]:.6g}."
            )
        # Only plain sums must show this release in full; a Renyi filter may find the whole cheaper.
        floor = whole[key] if composition["kind"] == "basic" else 0
        if not floor <= spent[key] * SLACK:
            choices = ", with its choices," if document.get("choices") else ""
            raise CertificateError(
                f"The {key} spent on the dataset is less than this release{choices} cost."
            )
    kept = (
        "a durable ledger"
        if composition["durable"]
        else "memory only, so earlier runs are not counted"
    )
    amount = f"epsilon {spent['epsilon']:.6g} of {budget['epsilon']:.6g} for each {account.unit}"
    if composition["durable"] and stands_alone(document):
        return (
            f"Spent by this release: {amount}, by an account of its own; other releases from the"
            " same data are not counted."
        )
    return f"Spent on the dataset so far: {amount}, by {kept}."


def _check_noise(document: Mapping[str, Any]) -> str:
    if not document["noise"]["exact"]:
        raise CertificateError("The noise was not exact; the price holds for exact noise only.")
    return "The noise was exact."


def _check_software(document: Mapping[str, Any]) -> str:
    version = document["software"]["opendp"]
    if draws_wrong_noise(version):
        raise CertificateError(
            f"The noise was drawn by OpenDP {shown(version)}, which is known to draw another"
            " distribution than it states; what was promised does not hold. Release again with a"
            " later version."
        )
    return f"The noise was drawn by OpenDP {shown(version)}, not known to be wrong."


_GATES = (("format", check_format), ("fields", check_fields))
_TERMS = (("digest", check_digest), ("events", _check_events), ("mechanism", _check_mechanism))
_CONTENTS = (
    ("price", _check_price),
    ("released", _check_released),
    ("budget", _check_budget),
    ("noise", _check_noise),
    ("software", _check_software),
)
_OPTIONAL = (("plan", check_plan), ("choices", check_choices))
