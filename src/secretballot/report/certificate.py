"""The certificate of one release: what was promised, what was done, and what it cost.

A certificate is plain JSON. Its digest shows that nothing was changed by accident or by a careless
hand; it is no signature, and whoever can write the file can write a new digest. What a forger
cannot do is promise less than the events cost: `secretballot.report.verification` prices them
again.
"""

import hashlib
import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files as resources
from typing import TYPE_CHECKING, Any

import numpy as np

import secretballot
from secretballot._typing import IntArray, Json, JsonView
from secretballot._validation import Relation, Unit, check_count, check_relation
from secretballot.accounting import delta_upper
from secretballot.exceptions import CertificateError
from secretballot.report.certificate_models import (
    EXPONENTIAL,
    FORMAT,
    RECORD_VOTES,
    SUMS,
    VERSION,
    Part,
    Sentence,
    certificate_of_json,
    check_choices,
    check_plan,
    class_text,
    class_value,
    require,
)

if TYPE_CHECKING:  # it draws, and certificates are public
    from secretballot.core.releasing import Released


# --- labels.csv ---

_BLOCK_ROWS = 1 << 12


def quoted_if_needed(text: str) -> str:
    """Quote a CSV field by RFC 4180 where it must be quoted; never change its value."""
    if any(mark in text for mark in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def labels_blocks(
    queries: IntArray,
    labels: IntArray,
    classes: Sequence[object],
    noisy_counts: IntArray | None = None,
) -> Iterator[bytes]:
    """Yield the bytes of ``labels.csv``, block by block (UTF-8, lines end in a line feed).

    Values are quoted where CSV asks for it and never altered: a class that starts with ``=`` is
    written as it is, since a changed label would be a wrong label.

    Parameters
    ----------
    queries : int array of shape (l,)
        Rows of the public pool.
    labels : int array of shape (l,)
        Class indices, -1 where abstained.
    classes : sequence
        Class values, by index.
    noisy_counts : int array of shape (l,) or (l, C), optional
        Released noisy counts, in votes.
    """
    queries, labels = np.asarray(queries), np.asarray(labels)
    noisy_counts = None if noisy_counts is None else np.asarray(noisy_counts)
    header = ["query", "label", "abstained"]
    if noisy_counts is not None:
        # counts of two classes may have one column, of the second
        counted = classes[1:] if noisy_counts.ndim == 1 else classes
        header += [f"noisy_count[{class_text(value)}]" for value in counted]
    yield f"{','.join(map(quoted_if_needed, header))}\n".encode("utf-8", "surrogatepass")
    # Index -1 picks the last entry: the abstention.
    endings = [f",{quoted_if_needed(class_text(value))},false" for value in classes] + [",,true"]
    ending = np.array(endings, dtype=object)
    columns = [] if noisy_counts is None else list(np.atleast_2d(noisy_counts.T))
    line = "%d%s" + ",%d" * len(columns) + "\n"
    # in blocks: a release may have millions of rows, and their strings take much more memory; a
    # block is written at once, since a session of 10^5 answers is digested with every new one
    for start in range(0, len(queries), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        numbers = [column[rows].astype(object) for column in (queries, *columns)]
        cells = np.column_stack([numbers[0], ending[labels[rows]], *numbers[1:]])
        text = line * len(cells) % tuple(cells.ravel().tolist())
        yield text.encode("utf-8", "surrogatepass")


def labels_digest(
    queries: IntArray,
    labels: IntArray,
    classes: Sequence[object],
    noisy_counts: IntArray | None = None,
) -> str:
    """Return the SHA-256 of the bytes of ``labels.csv``, as ``sha256sum`` prints it.

    Parameters
    ----------
    queries, labels, classes, noisy_counts
        As in `labels_blocks`.
    """
    digest = hashlib.sha256()
    for block in labels_blocks(queries, labels, classes, noisy_counts):
        digest.update(block)
    return digest.hexdigest()


# --- the certificate ---

# The sentences of every certificate of a method: what was assumed, and what was not protected.
_TEXT: Json = tomllib.loads(
    resources("secretballot.report").joinpath("standing.toml").read_text("utf-8")
)
_WITHOUT_TEACHERS = {
    EXPONENTIAL: "choice",
    RECORD_VOTES: "record_votes",
    **dict.fromkeys(SUMS, "sums"),
}
_BLINDLY = " and every parameter of the mechanism were fixed without looking at private data."
_OR_PAID = _TEXT["or_paid"]
UNSEEN_TEACHERS: str = _TEXT["unseen"]


def _json_text(value: object, **settings: Any) -> str:
    try:
        # numbers of numpy's are written as Python's
        return json.dumps(value, allow_nan=False, default=lambda one: one.item(), **settings)
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise CertificateError(
            f"The certificate cannot be written as JSON ({error}); give it strings, numbers and"
            " lists only."
        ) from None


def certificate_digest(certificate: JsonView) -> str:
    """Return the SHA-256, as hexadecimal digits, of a certificate's canonical JSON.

    That has sorted keys, no spaces, ASCII characters and the shortest floats. The field ``digest``
    itself is left out.

    The digest shows damage, not forgery: it is not a signature.
    """
    body = {key: value for key, value in certificate.items() if key != "digest"}
    text = _json_text(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def check_digest(certificate: JsonView) -> str:
    """Return a sentence once the digest is that of the certificate.

    Raises
    ------
    CertificateError
        If it is another one.
    """
    same = certificate_digest(certificate) == certificate.get("digest")
    require(same, "The digest does not fit: the certificate was changed after it was written.")
    return "The digest fits the text (it shows damage; it is not a signature)."


def describe_released(
    queries: IntArray,
    labels: IntArray,
    classes: Sequence[object],
    n_teachers: int,
    noisy_counts: IntArray | None = None,
    points_sha256: str | None = None,
) -> Json:
    """Return the part of a certificate that binds it to the released values.

    Parameters
    ----------
    queries, labels, classes, noisy_counts
        As in `labels_blocks`.
    n_teachers : int
        Number of teachers that voted; 0 where one chosen model gave the labels.
    """
    described: Json = {
        "queries": len(queries),
        "answered": int(np.count_nonzero(np.asarray(labels) >= 0)),
        "classes": [class_value(value) for value in classes],
        "n_teachers": check_count("n_teachers", n_teachers, minimum=0),
        # of two classes the second one's counts alone may be released
        "count_columns": 0 if noisy_counts is None else math.prod(np.shape(noisy_counts)[1:]),
        "labels_sha256": labels_digest(queries, labels, classes, noisy_counts),
    }
    return described if points_sha256 is None else described | {"points_sha256": points_sha256}


def certificate_of(
    done: "Released",
    described: JsonView,
    *,
    follows: JsonView | None = None,
    declaration: JsonView | None = None,
    plan: JsonView | None = None,
    choices: Sequence[JsonView] | None = None,
) -> Json:
    """Return the certificate of what `core.releasing` has released.

    Parameters
    ----------
    done : Released
        Its public settings hold ``method``, and what docs/reference/certificate.md lists for it.
    described : mapping
        What `describe_released` returned; with ``values``, lists of the released integers that are
        no labels, and of a table the ``rows`` that they answer.
    follows : mapping, optional
        What follows from released integers and belongs to the public settings.
    declaration : mapping, optional
        ``unit``, ``unit_column``, ``relation``; further ``assumptions`` and ``not_protected``, as
        lists of sentences. Without it the unit is a record, added or removed, and the certificate
        says that nobody checked how the teachers came about.
    plan : mapping, optional
        Of a release in rounds: ``planned`` queries, ``used`` ones, ``rounds`` (queries of each),
        ``strategy`` (name and settings) and ``left``, what became of unused queries: ``"kept"``
        open under the same reservation, ``"returned"`` to a Renyi ledger, ``"forfeited"``, or
        ``"none"``. The price is that of the whole reservation: a smaller epsilon for stopping early
        would be false.
    choices : sequence of mapping, optional
        Everything chosen with private data for this release, each as `choice_fields` returns it, or
        with ``labels_sha256`` in the place of ``value``. ``spent_after`` must count them.

    Raises
    ------
    CertificateError
        If the events cost more than the promise, plan or choices do not add up, or something cannot
        be written as JSON.
    ParameterError
        If the declaration has an unknown word in it.
    """
    # the events were priced before; here they are priced once more, so that a certificate with a
    # smaller promise than its events cost is never written, whoever asks for it
    budget, noise, method = done.budget, done.noise, str(done.public["method"])
    delta = delta_upper((done.event,), budget.epsilon)
    require(
        delta <= budget.delta,
        f"The events cost delta {delta:.6g} at epsilon {budget.epsilon:.6g}, more than the promised"
        f" {budget.delta:.6g}; no certificate can be written for them.",
    )
    certificate = {
        "format": FORMAT,
        "version": VERSION,
        "issued": done.issued,
        "purpose": done.purpose,
        **check_declaration(declaration, mechanism=method),
        **_drawn_fields(done, **(follows or {})),
        "price": {
            **budget.to_json(),
            "delta_recomputed": float(delta),
            "method": done.price.method,
            "source": done.price.source,
            "library": "secretballot",
            "library_version": secretballot.__version__,
        },
        "composition": done.account,
        "noise": {name: noise[name] for name in ("exact", "description")},
        "software": noise["software"],
        "released": dict(described),
        **({} if plan is None else {"plan": plan}),
        **({"choices": list(choices)} if choices else {}),
    }
    if choices:  # parameters were partly chosen, at a price
        certificate["assumptions"] = [
            line.removesuffix(".") + _OR_PAID if line.endswith(_BLINDLY) else line
            for line in certificate["assumptions"]
        ]
    sealed = _sealed(certificate)
    # the whole is verified before it is paid for; here what was not checked before it came
    if plan is not None:
        check_plan(certificate_of_json(sealed))
    if choices:
        check_choices(certificate_of_json(sealed))
    return sealed


def _drawn_fields(done: "Released", **follows: object) -> Json:
    return {
        **done.budget.to_json(),
        "mechanism": done.mechanism.model_dump(mode="json"),
        "shape": done.shape.model_dump(mode="json"),
        "public": {**done.public, **follows},
        "events": [done.event.model_dump(mode="json")],
    }


def _sealed(fields: JsonView) -> Json:
    """Return fields as JSON values with their digest, which comes last, since it covers all.

    Raises
    ------
    CertificateError
        If something in them cannot be written as JSON.
    """
    plain: Json = json.loads(_json_text({**fields, "digest": ""}))
    return plain | {"digest": certificate_digest(plain)}


def choice_fields(done: "Released") -> Json:
    """Return one released number as the ``choices`` of a certificate list it."""
    return {
        "purpose": done.purpose,
        **_drawn_fields(done),
        "value": done.values.item(),
        "reservation": done.account["reservation"],
    }


def with_about(certificate: JsonView, about: Mapping[str, str]) -> Json:
    """Return the certificate with the curator's words on the release; the same where there are
    none.

    They are no part of what the release did, so they may change whenever the
    files of a release are written.

    Parameters
    ----------
    certificate : mapping
        Of the release.
    about : mapping
        ``title``: what people call the data. ``controller``: who answers for them. ``contact``:
        how to reach somebody. Each on one line.

    Raises
    ------
    CertificateError
        If a name is none of these, or its value is no such line.
    """
    return _rewritten(certificate, about=dict(about)) if about else dict(certificate)


def with_files(certificate: JsonView, files: Mapping[str, JsonView]) -> Json:
    """Return the certificate of a release folder: the release's, bound to every other file there.

    A release writes its certificate before there is a folder, so the certificates that a ledger
    keeps have no ``files``.

    Parameters
    ----------
    certificate : mapping
        Of the release.
    files : mapping
        Name of each file beside ``certificate.json``, with ``sha256`` (hexadecimal) and ``bytes``
        (its size).

    Raises
    ------
    CertificateError
        If a name or a digest is none.
    """
    return _rewritten(certificate, files={name: dict(files[name]) for name in sorted(files)})


def _rewritten(certificate: JsonView, **fields: Any) -> Json:
    sealed = _sealed({**certificate, **fields})
    certificate_of_json(sealed)
    return sealed


class _Declaration(Part):
    """What is declared of a release; a sample is stated by the shape, so it need not be here."""

    unit: Unit = "record"
    unit_column: str | None = None
    relation: Relation = "add-remove"
    assumptions: list[Sentence] | tuple[Sentence, ...] = ()
    not_protected: list[Sentence] | tuple[Sentence, ...] = ()
    sample: Any = None


def check_declaration(declaration: JsonView | None, *, mechanism: str = "") -> dict[str, object]:
    """Return the declared unit and relation, and the standing and the declared assumptions.

    Those are about teachers, or, where the named mechanism has none, about candidates or records.

    Raises
    ------
    ParameterError
        If the declaration has an unknown key or word in it, or its unit cannot have its relation.
    """
    given: JsonView = {"assumptions": [UNSEEN_TEACHERS]}
    stated = _Declaration(**(given if declaration is None else declaration))
    unit, column = stated.unit, stated.unit_column
    check_relation(unit, stated.relation)
    assumed: list[str] = _TEXT[_WITHOUT_TEACHERS.get(mechanism, "teachers")]
    first, *limits = _TEXT["not_protected"]
    if unit == "label":
        limits.append(_TEXT["public_features"])
        if mechanism in SUMS:
            assumed = [_TEXT["sums_of_labels"], *assumed[1:]]
    vault = _TEXT["vault_without_teachers" if mechanism in _WITHOUT_TEACHERS else "vault"]
    return {
        "unit": unit,
        # a promise to users names what distinguishes them; ids without a name are called what the
        # parameter is called
        "unit_column": "units" if unit == "user" and column is None else column,
        "relation": stated.relation,
        "assumptions": [*assumed, *stated.assumptions],
        "not_protected": [first, vault, *limits, *stated.not_protected],
    }


def contradict_choices(assumptions: Sequence[str], *, chosen: bool) -> bool:
    """Return whether assumptions say that something was chosen where nothing is listed, or the
    other way round."""
    paid = any(line.endswith(_OR_PAID) for line in assumptions)
    return paid != chosen or (chosen and any(line.endswith(_BLINDLY) for line in assumptions))
