"""Verify a certificate from its own words: is it whole, does it add up, is the price right?

The verifier believes nothing that it can compute. It prices the events again and refuses a promise
that is smaller than they cost. What it cannot know is whether the events are what really happened:
the digest is not a signature, so take certificates from those you trust, over a channel you trust.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from secretballot._validation import plain_line, shown
from secretballot.accounting import delta_upper
from secretballot.core.mechanisms import (
    ConfidentLabels,
    ExponentialChoice,
    NoisySums,
    NoisyVotes,
    TableLabels,
)
from secretballot.core.sampler import draws_wrong_noise
from secretballot.core.types import Guarantee, VoteShape
from secretballot.exceptions import CertificateError, SecretBallotError
from secretballot.report.certificate.build import check_digest, contradict_choices
from secretballot.report.certificate.files import (
    ANSWERS_FILE,
    LABELS_FILE,
    README_FILE,
    SIGNATURE_BYTES,
    SIGNATURE_FILE,
    check_answers,
    check_files,
    check_format,
    check_rows,
    check_signature,
    read_certificate,
    read_public_key,
    values_file,
)
from secretballot.report.certificate.models import (
    CERTIFICATE_FILE,
    SLACK,
    TABLES,
    Certificate,
    certificate_of_json,
    check_choices,
    check_integers,
    check_plan,
    require,
    stands_alone,
    total_price,
)
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
        # A stranger's text may be in it: one line, of bounded length, whatever a message quotes.
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
        The certificate, its file, or a release folder. A file beside a ``labels.csv``,
        ``answers.csv`` or ``README.txt`` is taken for that of a release folder, and the folder is
        checked too.
    folder : path, optional
        Release folder, whose files must be those that the certificate lists, and whose
        ``labels.csv`` or ``answers.csv``, where it has one, must hold what was paid for. By default
        the folder that `certificate` names or is in.
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
            os.path.lexists(path.with_name(name))
            for name in (LABELS_FILE, ANSWERS_FILE, README_FILE)
        ):
            place = place or path.parent
        if path.name == CERTIFICATE_FILE:
            beside = place or path.parent
        try:
            document = read_certificate(path)
        except CertificateError as error:
            return Verification((Check("file", False, str(error)),))
    # what a check reads, those before it have found in order: a failure among the first ones, and
    # events that are not those of one mechanism, which may take long to price, end it
    checks, read = [_made("format", lambda: check_format(document))], list[Certificate]()
    if checks[0].ok:
        checks.append(_made("fields", lambda: _check_fields(document, read)))
    if not checks[-1].ok:
        return Verification(tuple(checks))
    (whole,) = read
    checks += [
        _made("digest", lambda: check_digest(document)),
        _made("events", lambda: f"One event, of the kind {whole.event.kind!r}."),
        _made("mechanism", lambda: _check_mechanism(whole)),
    ]
    if agree := checks[-1].ok:
        checks += [_made(name, partial(look, whole)) for name, look in _CONTENTS.items()]
        more = {"plan": check_plan, "choices": check_choices}
        checks += [
            _made(name, partial(look, whole)) for name, look in more.items() if name in document
        ]
    if key is not None:
        checks.append(_made("signature", lambda: check_signature(document, beside, public)))
    signed = beside is not None and os.path.lexists(beside / SIGNATURE_FILE)
    unasked = (_NO_KEY,) if signed and key is None else ()
    if place is None:
        return Verification(tuple(checks), (_NO_FOLDER, *unasked))
    values = values_file(whole.public.method)
    checks.append(_made("files", lambda: check_files(whole, place)))
    if agree and values is not None:
        holds = check_answers if values == ANSWERS_FILE else check_rows
        name = values.removesuffix(".csv")
        checks.append(_made(name, lambda: holds(whole, place / values)))
    return Verification(tuple(checks), unasked)


_NO_KEY = (
    f"There is a {SIGNATURE_FILE}, and whether it is a signature was not checked: any"
    f" {SIGNATURE_BYTES} bytes look like one; give the public key of whoever must have signed."
)
_NO_FOLDER = (
    "The released labels and the other files were not looked at; give the release folder to check"
    " them too."
)


def _made(name: str, look: Callable[[], str]) -> Check:
    """Return what a check finds; whatever a stranger's numbers make it raise is a failure."""
    try:
        return Check(name, True, look())
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


def _check_fields(document: Mapping[str, Any], read: list[Certificate]) -> str:
    certificate = certificate_of_json(document)
    reserved = certificate.composition.reservation
    require(reserved, "The field composition.reservation is 0: nothing was reserved.")
    read.append(certificate)
    optional = ("plan", "choices", "files", "about")
    found = [name for name in optional if name in certificate.model_fields_set]
    more = f" and the optional {' and '.join(found)}" if found else ""
    return f"All required fields{more} are present and in range."


def _check_price(certificate: Certificate) -> str:
    # both the promise and the stated price are compared with the price of the events, so that
    # neither can be the smaller number that a reader happens to look at
    price, epsilon, delta = certificate.price, certificate.epsilon, certificate.delta
    same = (price.epsilon, price.delta) == (epsilon, delta)
    require(same, "The price is stated at another epsilon or delta than the promise.")
    recomputed = delta_upper([certificate.event], epsilon)
    require(
        recomputed <= delta * SLACK,
        f"At epsilon {epsilon:.6g} the events cost delta {recomputed:.6g}; promised was"
        f" {delta:.6g}.",
    )
    held = price.delta_recomputed <= delta * SLACK
    require(held, "The price states a larger delta than the promise.")
    require(
        recomputed <= price.delta_recomputed * SLACK,
        f"For its events the certificate states delta {price.delta_recomputed:.6g}; they cost"
        f" {recomputed:.6g}.",
    )
    return (
        f"At epsilon {epsilon:.6g} the events cost delta {recomputed:.6g}, within the promised"
        f" {delta:.6g}."
    )


def _check_mechanism(certificate: Certificate) -> str:
    certificate.check_terms()
    # assumptions about the parameters that the list of choices denies
    chosen = bool(certificate.choices)
    require(
        not contradict_choices(certificate.assumptions, chosen=chosen),
        f"The certificate lists {'' if chosen else 'no '}choices made with private data, and its"
        " assumptions say otherwise.",
    )
    return "The events are exactly those of the mechanism."


def _check_released(certificate: Certificate) -> str:
    released, mechanism, shape = certificate.released, certificate.mechanism, certificate.shape
    queries, answered = released.queries, released.answered
    drawable, rows = certificate.public.drawable(certificate), released.rows
    of_table = certificate.public.method in TABLES
    named = of_table == (rows is not None)
    require(named, "Tables, and nothing else, name rows of the public pool.")
    if drawable is None:
        require(released.values is None, "Labels and their counts are all that was released.")
    elif of_table:
        once = rows and len(set(rows)) == len(rows) and len(rows) <= drawable.rows
        require(once, "rows names none, one twice, or more than were paid for.")
        check_integers(released.values, len(rows), drawable)
        return f"{count_text(len(rows), 'answer')}, paid for by the events."
    else:
        check_integers(released.values, drawable.rows, drawable)
    # noisy counts cost more than labels alone: what was released must be what the mechanism's
    # events pay for
    columns = certificate.count_columns
    require(
        released.count_columns == columns,
        f"{released.count_columns} noisy counts for each query were released; the mechanism and its"
        f" events pay for {columns}.",
    )
    answers_all = isinstance(mechanism, NoisyVotes | TableLabels | NoisySums | ExponentialChoice)
    every = not answers_all or answered == queries
    require(every, "The mechanism answers every query; the certificate says otherwise.")
    paid = shape.n_queries if isinstance(shape, VoteShape) else queries
    require(queries <= paid, f"The events pay for {paid} queries; {queries} were released.")
    most = mechanism.max_answers if isinstance(mechanism, ConfidentLabels) else queries
    within = answered <= min(queries, most)
    require(within, f"The events pay for {most} answers; {answered} were released.")
    if not released.classes:
        return "Noisy sums alone, all of them paid for by the events."
    return f"{answered} of {queries} queries answered, all of them paid for by the events."


def _check_budget(certificate: Certificate) -> str:
    account, document = certificate.composition, certificate.document
    about = Guarantee(unit=account.unit, relation=account.relation)
    require(
        certificate.shape.guarantee.adds_to(about, by_teachers=certificate.by_teachers),
        f"The release is by {certificate.unit} under {certificate.relation!r}, and the dataset's"
        f" budget by {about.unit} under {about.relation!r}; the one does not add to the other.",
    )
    budget, spent = account.budget, account.spent_after
    # the account is stated by the ledger, not computed here: it must at least be possible
    for key, whole in zip(("epsilon", "delta"), total_price(document), strict=True):
        of_budget, of_spent = getattr(budget, key), getattr(spent, key)
        within = of_spent <= of_budget * SLACK
        require(within, f"The {key} spent on the dataset, {of_spent:.6g}, exceeds {of_budget:.6g}.")
        # Only plain sums must show this release in full; a Renyi filter may find the whole cheaper.
        choices = ", with its choices," if certificate.choices else ""
        require(
            account.kind != "basic" or whole <= of_spent * SLACK,
            f"The {key} spent on the dataset is less than this release{choices} cost.",
        )
    kept = "a durable ledger" if account.durable else "memory only, so earlier runs are not counted"
    amount = f"epsilon {spent.epsilon:.6g} of {budget.epsilon:.6g} for each {account.unit}"
    if account.durable and stands_alone(document):
        return (
            f"Spent by this release: {amount}, by an account of its own; other releases from the"
            " same data are not counted."
        )
    return f"Spent on the dataset so far: {amount}, by {kept}."


def _check_noise(certificate: Certificate) -> str:
    exact = certificate.noise.exact
    require(exact, "The noise was not exact; the price holds for exact noise only.")
    return "The noise was exact."


def _check_software(certificate: Certificate) -> str:
    version = certificate.software["opendp"]
    require(
        not draws_wrong_noise(version),
        f"The noise was drawn by OpenDP {shown(version)}, which is known to draw another"
        " distribution than it states; what was promised does not hold. Release again with a later"
        " version.",
    )
    return f"The noise was drawn by OpenDP {shown(version)}, not known to be wrong."


_CONTENTS = {
    "price": _check_price,
    "released": _check_released,
    "budget": _check_budget,
    "noise": _check_noise,
    "software": _check_software,
}
