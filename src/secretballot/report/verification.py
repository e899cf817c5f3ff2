"""Verify a release as a stranger gives it: is it whole, does it add up, is the price right?

The verifier believes nothing that it can compute. It prices the events again and refuses a promise
that is smaller than they cost. What it cannot know is whether the events are what really happened:
the digest is not a signature, so take certificates from those you trust, over a channel you trust.

Files are a stranger's: regular ones only, of bounded size, are read in bounded steps. A named pipe
would wait for ever, a device has no end, a link leads elsewhere: none is opened. A certificate is
JSON of one meaning, within bounds. Nothing that was not paid for is in a ``labels.csv`` or
``answers.csv`` that is found in order.

The certificate lists the digests of all other files, so an Ed25519 signature of its bytes is one of
the release. Its file is the bare signature of RFC 8032, 64 bytes, which other programs check too:
``openssl pkeyutl -verify -pubin -inkey KEY -rawin -in certificate.json -sigfile certificate.sig``.
"""

import csv
import hashlib
import io
import json
import math
import os
import stat
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from secretballot._typing import IntArray, Json, JsonView
from secretballot._validation import (
    FARTHEST,
    LARGEST_INTEGER,
    MOST_ROWS,
    plain_line,
    require_extra,
    shown,
)
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
from secretballot.exceptions import (
    CertificateError,
    DataError,
    Parameter,
    ParameterError,
    SecretBallotError,
)
from secretballot.report.certificate import (
    check_digest,
    contradict_choices,
    labels_digest,
    quoted_if_needed,
)
from secretballot.report.certificate_models import (
    CERTIFICATE_FILE,
    FORMAT,
    LABEL_VOTES,
    LARGEST_COUNT,
    RECORD_VOTES,
    SLACK,
    TABLES,
    VERSION,
    WITHOUT_CLASSES,
    Certificate,
    certificate_of_json,
    check_choices,
    check_integers,
    check_plan,
    class_text,
    noise_of_counts,
    require,
    stands_alone,
    stated,
    total_price,
)
from secretballot.report.wording import count_text

# --- labels.csv ---

_ABSTAINED = -1
_FIXED_COLUMNS = 3  # query, label, abstained


def _read_labels(
    content: bytes, classes: Sequence[object], count_columns: int
) -> tuple[IntArray, IntArray, IntArray | None]:
    """Read a ``labels.csv`` that is, byte by byte, what `labels_blocks` writes.

    It is read, written again by the writer's rules, and compared: no other way to spell a cell, a
    header or the end of a line comes through, and nothing is in the file beside queries, labels
    and counts.

    Parameters
    ----------
    content : bytes
        Of the file.
    classes : sequence
        Class values, by index; their texts differ.
    count_columns : int
        Columns of noisy counts: 0, 1 (two classes), or one for each class.

    Returns
    -------
    queries, labels : ndarray of int64, shape (l,)
        Rows of the public pool, and class indices, -1 where abstained.
    noisy_counts : ndarray of int64, shape (l,) or (l, C), or None
        In votes; None where the file has no columns of counts.

    Raises
    ------
    DataError
        If it is another file.
    """
    queries, labels, noisy_counts = _parsed_cells(content, classes, count_columns)
    written = labels_digest(queries, labels, classes, noisy_counts)
    if written != hashlib.sha256(content).hexdigest():
        raise DataError(f"labels.csv is not as a release writes it; {_ADVICE}.")
    return queries, labels, noisy_counts


_ADVICE = "give the labels.csv of the release"


def _parsed_cells(
    content: bytes, classes: Sequence[object], count_columns: int
) -> tuple[IntArray, IntArray, IntArray | None]:
    """Return queries, labels and counts, read generously: who asks compares the bytes."""
    known = {class_text(value): index for index, value in enumerate(classes)}
    queries, labels, counts = array("q"), array("q"), array("q")
    try:
        text = io.TextIOWrapper(
            io.BytesIO(content), encoding="utf-8", errors="surrogatepass", newline=""
        )
        rows = csv.reader(text)
        next(rows, None)
        # arrays of machine integers: lists of Python's would take several times the memory
        for row in rows:
            if len(row) != _FIXED_COLUMNS + count_columns:
                raise ValueError
            queries.append(int(row[0]))
            labels.append(_ABSTAINED if row[2] == "true" else known[row[1]])
            counts.extend(map(int, row[_FIXED_COLUMNS:]))
    except (csv.Error, ValueError, KeyError, OverflowError):
        raise DataError(
            f"labels.csv has a row {len(queries) + 1} that is no query, label of one of the"
            f" classes, abstention{f' and {count_columns} noisy counts' * (count_columns > 0)};"
            f" {_ADVICE}."
        ) from None
    table = np.frombuffer(counts, dtype=np.int64) if count_columns else None
    if table is not None and count_columns > 1:
        table = table.reshape(-1, count_columns)
    return np.frombuffer(queries, dtype=np.int64), np.frombuffer(labels, dtype=np.int64), table


# --- one file, and a certificate in it ---

_MAX_BYTES = 10 * 1000 * 1000
_MAX_DEPTH = 32
_MAX_TEXT = 10_000  # characters of one string
_MAX_TABLE = 2**20  # of the weights of a table of abstentions
_BLOCK = 1 << 20  # bytes
_LONGEST_NAME = 120  # characters of a path in a message

# never follow a link, never wait for the other end of a pipe
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def named(path: str | Path) -> str:
    """Return how a message names a path: its end where it is long, without control characters."""
    text = repr(str(path))[1:-1]
    return f"'{text if len(text) <= _LONGEST_NAME else '...' + text[-_LONGEST_NAME:]}'"


def _refuse_odd(path: Path, about: os.stat_result) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise DataError(
            f"{named(path)} is no regular file; links, pipes, devices and folders are not read."
        )


def _blocks_of(path: Path, limit: int) -> Iterator[bytes]:
    """Yield the content of a regular file of at most `limit` bytes, as long as it stated."""
    try:
        # Looked at before it is opened: to open a device can do something.
        _refuse_odd(path, os.lstat(path))
        with os.fdopen(os.open(path, _FLAGS), "rb") as file:
            # and once more when it is open: the name may stand for another file by now
            about = os.fstat(file.fileno())
            _refuse_odd(path, about)
            left = about.st_size
            if left > limit:
                raise DataError(
                    f"{named(path)} has {left:,} bytes; at most {limit:,} are read. Give another"
                    " file."
                )
            while block := file.read(min(_BLOCK, left + 1)):
                left -= len(block)
                if left < 0:
                    break
                yield block
    except DataError:
        raise
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise DataError(f"{named(path)} cannot be read: {reason}.") from None
    if left:
        raise DataError(
            f"{named(path)} changed while it was read; verify a folder that nobody writes to."
        )


def read_regular(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes.

    Raises
    ------
    DataError
        If it cannot be read, is no regular file, or is larger.
    """
    return b"".join(_blocks_of(path, limit))


def _regular_digest(path: Path, limit: int) -> tuple[str, int]:
    """Return the SHA-256 of a regular file of at most `limit` bytes, and its size.

    Raises
    ------
    DataError
        As `read_regular`.
    """
    digest, size = hashlib.sha256(), 0
    for block in _blocks_of(path, limit):
        digest.update(block)
        size += len(block)
    return digest.hexdigest(), size


def read_certificate(path: str | Path) -> Json:
    """Return the JSON object in a certificate file.

    Raises
    ------
    CertificateError
        If the file cannot be read, is no regular file, is larger than 10 MB, or is no JSON object.
    """
    return certificate_in(certificate_bytes(path))


def certificate_bytes(path: str | Path) -> bytes:
    """Return the content of a certificate file.

    Raises
    ------
    CertificateError
        If it is not there, cannot be read, is no regular file, or is larger than 10 MB.
    """
    if not os.path.lexists(path):
        raise CertificateError(
            f"There is no certificate at {named(path)}; give a release folder, or that of a run."
        )
    try:
        return read_regular(Path(path), _MAX_BYTES)
    except DataError as error:
        raise CertificateError(str(error)) from None


def certificate_in(content: bytes) -> Json:
    """Return the JSON object in the content of a certificate file.

    Raises
    ------
    CertificateError
        If it is larger than 10 MB, or is no JSON object.
    """
    require(len(content) <= _MAX_BYTES, "The certificate has more than 10 MB.")
    document = None
    with suppress(ValueError, RecursionError):
        document = json.loads(content.decode("utf-8"), object_pairs_hook=_without_repeated_names)
    if not isinstance(document, dict):
        raise CertificateError(
            "The file is not JSON, or no JSON object; give the certificate.json of a release."
        )
    return document


def _without_repeated_names(pairs: list[tuple[str, Any]]) -> Json:
    """Refuse an object that names a field twice: two readers could see two certificates."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError
    return fields


def _check_format(document: JsonView) -> str:
    """Return a sentence on format and version.

    Raises
    ------
    CertificateError
        If it is another format, another version, or not made of JSON values.
    """
    known = document.get("format") == FORMAT
    require(known, f"The format is not {FORMAT}; give the certificate.json of a release.")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise CertificateError(
            f"The certificate has version {shown(version)} and this program reads version"
            f" {VERSION}; use the version of secretballot that wrote it."
        )
    _refuse_other_than_json(dict(document), "certificate", 0)
    return f"{FORMAT}, version {version}."


def _is_read(value: object) -> bool:
    """Return whether what is no text, list or object is a value of JSON that is read."""
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or (isinstance(value, int) and abs(value) <= LARGEST_INTEGER)


def _refuse_other_than_json(value: object, name: str, depth: int) -> None:
    # first, so that no document exhausts the stack
    require(depth <= _MAX_DEPTH, f"The certificate is nested more than {_MAX_DEPTH} deep.")
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_other_than_json(item, key, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _refuse_other_than_json(item, name, depth + 1)
    elif isinstance(value, str):
        longest = _MAX_TABLE if name == "weights" else _MAX_TEXT
        if len(value) > longest:
            raise CertificateError(
                f"{shown(name)} is {shown(value)}, and at most {longest} characters are read."
            )
    elif not _is_read(value):
        raise CertificateError(
            f"{shown(name)} is {shown(value)}; numbers must be finite, integers at most 2^53, and"
            " nothing is read but what JSON has."
        )


# --- the folder ---

LABELS_FILE, ANSWERS_FILE = "labels.csv", "answers.csv"
README_FILE = "README.txt"  # of every release
_MAX_FILES = 1000
MAX_BYTES = 250 * 10**6  # of one that is read
_MAX_TOTAL = 2 * 10**9  # bytes of all files together: what is read and digested in a few seconds

#: The files that a release may consist of; those with values are a table, as CSV and as Parquet.
_TABLES = {LABELS_FILE, ANSWERS_FILE, "labels.parquet", "answers.parquet"}
_FILES = _TABLES | {README_FILE, "model-card.md", "schema.json", "student.onnx", "report.html"}


def _values_file(method: str) -> str | None:
    """Return the name of the file with the released values, answers of a table or labels; None of
    sums alone, which are on the certificate."""
    if method in TABLES:
        return ANSWERS_FILE
    return None if method in WITHOUT_CLASSES else LABELS_FILE


def _check_files(certificate: Certificate, folder: Path) -> str:
    """Return a sentence once the folder holds the listed files, unchanged, and nothing more.

    Raises
    ------
    CertificateError
        Naming the first file that is missing, not listed, or another one.
    DataError
        If a file cannot be read or is no regular file.
    """
    listed = certificate.files
    require(
        listed is not None,
        "The certificate does not list the files of its folder; write the release again (the stored"
        " answer costs nothing).",
    )
    # names and sizes before contents: a forger's folder may hold more than anybody can read
    values = _values_file(certificate.public.method)
    _check_names(set(listed), _names_in(folder), values)
    whole = sum(about.bytes for about in listed.values())
    require(whole <= _MAX_TOTAL, "The listed files have more than 2 GB; so much is not read.")
    for name, about in listed.items():
        same = _regular_digest(folder / name, _MAX_TOTAL) == (about.sha256, about.bytes)
        require(same, f"{name} is not the file that was released: its size or SHA-256 is another.")
    # which the certificate cannot list, being what is signed: no other content fits in
    if os.path.lexists(folder / SIGNATURE_FILE):
        _, size = _regular_digest(folder / SIGNATURE_FILE, _MAX_TOTAL)
        fits = size == _SIGNATURE_BYTES
        require(fits, f"{SIGNATURE_FILE} has {size} bytes; a signature has {_SIGNATURE_BYTES}.")
    # answers are on the certificate itself, and need no digest
    one = values != LABELS_FILE or listed[values].sha256 == certificate.released.labels_sha256
    require(one, f"The certificate states two digests of {LABELS_FILE}.")
    return f"{count_text(len(listed), 'file')} and no other, each the one that was released."


def _names_in(folder: Path) -> set[str]:
    """Return the names of everything in a folder, hidden things and folders included."""
    try:
        with os.scandir(folder) as entries:
            found = {entry.name for entry in islice(entries, _MAX_FILES + 1)}
    except OSError as error:
        raise CertificateError(
            f"{named(folder)} cannot be read: {error.strerror or error}."
        ) from None
    few = len(found) <= _MAX_FILES
    require(few, f"The folder holds more than {_MAX_FILES} files; a release has a few.")
    return found - {CERTIFICATE_FILE, SIGNATURE_FILE}


def _check_names(listed: set[str], found: set[str], values: str | None) -> None:
    own = {values, str(values).replace(".csv", ".parquet")}
    allowed = _FILES - (_TABLES - own)
    for names, problem in (
        (listed - allowed, "The certificate lists {}, which is no file of a release."),
        (set(filter(None, [values])) - listed, "The certificate lists no {}."),
        (found - listed, "The folder holds {}, which the certificate does not list; take it out."),
        (listed - found, "The folder lacks {}, which the certificate lists."),
    ):
        if names:
            raise CertificateError(problem.format(named(min(names))))


def _check_rows(certificate: Certificate, path: Path) -> str:
    """Return a sentence once every row of ``labels.csv`` is one that the certificate speaks of.

    Parameters
    ----------
    certificate : Certificate
    path : path
        Of the file.

    Raises
    ------
    CertificateError
        Naming the first contradiction.
    DataError
        If the file cannot be read or is not as a release writes it.
    """
    released = certificate.released
    content = read_regular(path, MAX_BYTES)
    queries, labels, counts = _read_labels(content, released.classes, released.count_columns)
    # an unfit number of rows is named before their values: it is the plainest contradiction
    answered = labels != _ABSTAINED
    found = len(queries), int(np.count_nonzero(answered))
    require(
        found == (released.queries, released.answered),
        f"labels.csv holds {found[0]} queries, {found[1]} answered; the certificate says"
        f" {released.queries} and {released.answered}.",
    )
    inside = not queries.size or (queries.min() >= 0 and queries.max() < MOST_ROWS)
    require(
        inside and len(np.unique(queries)) == len(queries),
        "labels.csv names a query twice, or a row of the public pool below 0 or beyond"
        f" {MOST_ROWS - 1}; each query was paid for once.",
    )
    # rows after the last abstention that was paid for have no answer
    most, abstained = certificate.most_abstentions, np.flatnonzero(~answered)
    over = most is not None and len(abstained) > 0 and len(abstained) >= most
    stopped = not over or (most and not answered[abstained[most - 1] :].any())
    require(stopped, f"labels.csv has abstentions, or answers, after abstention {most}, the last.")
    if counts is not None:
        # the largest count that was cast, and how far noise moves one
        by_record = certificate.public.method == RECORD_VOTES
        most = LARGEST_COUNT if by_record else released.n_teachers
        far = FARTHEST * (noise_of_counts(certificate.mechanism) + 1)
        _check_counts(labels, counts, most, far)
    return f"labels.csv holds {found[0]} queries, {found[1]} answered, as they were paid for."


def most_bytes(document: JsonView) -> int:
    """Return how many bytes ``labels.csv`` has at most, by a checked certificate; 0 where a release
    has another file."""
    released = certificate_of_json(document).released
    cells = [quoted_if_needed(class_text(value)) for value in released.classes]
    longest = max((len(cell.encode("utf-8", "surrogatepass")) for cell in cells), default=0)
    # a query, a label, whether it abstained, and counts of at most 17 digits and a sign
    line = len(f"{MOST_ROWS},,false\n") + longest + released.count_columns * len(f"-{10**16},")
    return line * released.queries


def _check_counts(labels: IntArray, counts: IntArray, most: int, far: float) -> None:
    """Refuse counts that noise cannot reach, and labels that do not follow from the counts."""
    reached = not counts.size or (counts.min() >= -far and counts.max() <= most + far)
    require(reached, "labels.csv holds a count that noise of the stated size does not reach.")
    # The rules of `majority` and `plurality`: at least half of two classes, the lowest of several
    # that tie.
    read_off = (2 * counts >= most).astype(np.int64) if counts.ndim == 1 else counts.argmax(axis=1)
    given = np.array_equal(read_off, labels)
    require(given, "labels.csv holds a label that is not the one its counts give.")


def answers_bytes(certificate: JsonView) -> bytes:
    """Return the bytes of ``answers.csv`` (UTF-8, lines end in a line feed).

    Of numbers: ``query``, the row of the public pool, and ``value``, the released number in its own
    unit. Of labels: ``query``, and for each label 1 or 0; where noisy counts were released, also
    these, as ``noisy_count[...]`` of a label, or of a set of labels joined by ``+``.

    Parameters
    ----------
    certificate : mapping
        Of a table, that verifies.
    """
    terms = stated(certificate)
    of_labels = terms["method"] == LABEL_VOTES
    lines = _lines_of_labels(terms) if of_labels else _lines_of_numbers(terms)
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def _check_answers(certificate: Certificate, path: Path) -> str:
    """Return a sentence once ``answers.csv`` holds the answers of the certificate, and nothing
    else.

    Raises
    ------
    CertificateError
        If it holds anything else.
    DataError
        If it cannot be read.
    """
    # before so many sets are listed as a stranger's labels have
    certificate.public.drawable(certificate)
    same = read_regular(path, MAX_BYTES) == answers_bytes(certificate.document)
    require(same, f"{ANSWERS_FILE} does not hold the answers of the certificate.")
    answers = count_text(len(certificate.released.rows), "answer")
    return f"{ANSWERS_FILE} holds the {answers} of the certificate, as paid for."


def _lines_of_numbers(terms: JsonView) -> Iterator[str]:
    low, high = terms["bounds"]
    step = (high - low) / (terms["n_classes"] - 1)
    # a sum of all votes is released for a mean, and a position of the grid of a quantile
    parts = terms["n_teachers"] if "rank" not in terms else 1
    yield "query,value"
    for row, (answer,) in zip(terms["rows"], terms["values"], strict=True):
        yield f"{row},{low + answer / parts * step!r}"


def _lines_of_labels(terms: JsonView) -> Iterator[str]:
    names, counted = list(terms["labels"]), terms["release"] == "counts"
    in_sets = counted and terms["ballot"] == "sets"
    places = range(len(names))
    sets = [[k for k in places if number >> k & 1] for number in range(2 ** len(names) * in_sets)]
    columns = ["+".join(names[k] for k in one) for one in sets] if in_sets else names
    header = ["query", *names, *(f"noisy_count[{name}]" for name in columns if counted)]
    yield ",".join(map(quoted_if_needed, header))
    for row, answer in zip(terms["rows"], terms["values"], strict=True):
        votes = answer
        if in_sets:
            votes = [
                sum(answer[number] for number, one in enumerate(sets) if k in one) for k in places
            ]
        # at least half of the teachers, as the students read them
        given = [int(2 * one >= terms["n_teachers"]) for one in votes] if counted else answer
        yield ",".join(map(str, [row, *given, *(answer if counted else ())]))


# --- who vouches for it ---

SIGNATURE_FILE, _SIGNATURE_BYTES = "certificate.sig", 64
_LONGEST_KEY = 10_000  # bytes of a key file


def _check_signature(document: JsonView, folder: Path | None, public: Any) -> str:
    """Return a sentence once the certificate in a folder is signed with a key.

    Parameters
    ----------
    document : mapping
        What was read of the certificate.
    folder : Path or None
        Where it lies, if that is known.
    public : Ed25519PublicKey
        As `_read_public_key` returns it.

    Raises
    ------
    CertificateError
        If it is not signed, or with another key.
    DataError
        If a file cannot be read.
    """
    if folder is None or not os.path.lexists(folder / SIGNATURE_FILE):
        raise CertificateError(
            f"There is no {SIGNATURE_FILE} beside {CERTIFICATE_FILE}: nobody has signed this"
            " release, or another file was given."
        )
    signature = read_regular(folder / SIGNATURE_FILE, _LONGEST_KEY)
    text = certificate_bytes(folder / CERTIFICATE_FILE)
    invalid = require_extra("cryptography.exceptions", "sign").InvalidSignature
    mark, held = fingerprint(public), True
    try:
        public.verify(signature, text)
    except invalid:
        held = False
    # what was signed must be what was checked, should the file have changed meanwhile
    if not held or _text_of(certificate_in(text)) != _text_of(document):
        raise CertificateError(f"The signature is none of this certificate by the key {mark}.")
    return f"Signed with the key {mark}."


def _text_of(document: JsonView) -> str:
    return json.dumps(dict(document), sort_keys=True)  # in which 1, 1.0 and true differ


def fingerprint(public: Any) -> str:
    """Return the SHA-256 of a public key in DER, in hexadecimal."""
    names = serialization()
    form = names.PublicFormat.SubjectPublicKeyInfo
    der: bytes = public.public_bytes(names.Encoding.DER, form)
    return hashlib.sha256(der).hexdigest()


def key_file(path: Path) -> bytes:
    """Return the content of a key file, to which a link may lead.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    return read_regular(path.resolve(), _LONGEST_KEY)


def _read_public_key(path: Path) -> Any:
    """Return the public Ed25519 key in a PEM file.

    Raises
    ------
    DataError
        If there is no such file.
    ParameterError
        If it holds something else.
    MissingExtraError
        If cryptography is not installed.
    """
    key = key_or_none(serialization().load_pem_public_key, key_file(path))
    if not isinstance(key, ed25519().Ed25519PublicKey):
        raise ParameterError(
            Parameter("key"),
            f" is the file {named(path)}, which holds no public Ed25519 key in PEM; give the .pub"
            " file of whoever signed.",
        )
    return key


def key_or_none(load: Callable[..., Any], *given: Any) -> Any:
    """Return the key that a file holds, None if it holds none: errors of the other package may
    quote the file."""
    unsupported = require_extra("cryptography.exceptions", "sign").UnsupportedAlgorithm
    try:
        return load(*given)
    except (TypeError, ValueError, unsupported):
        return None


def serialization() -> Any:
    """Return the module that reads and writes keys."""
    return require_extra("cryptography.hazmat.primitives.serialization", "sign")


def ed25519() -> Any:
    """Return the module of this kind of signature."""
    return require_extra("cryptography.hazmat.primitives.asymmetric.ed25519", "sign")


# --- all of it ---

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
    certificate : mapping or None
        What was read and checked; None where that is no certificate.

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
    certificate: JsonView | None = field(default=None, repr=False)

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

    def to_json(self) -> Json:
        """Return the outcome as JSON values."""
        return {
            "ok": self.ok,
            "signature": self.signature,
            "checks": [vars(check) for check in self.checks],
            "unchecked": list(self.unchecked),
        }


def verify_certificate(
    certificate: JsonView | str | Path,
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
    public = None if key is None else _read_public_key(Path(key))
    place = None if folder is None else Path(folder)
    beside = place  # where a signature lies: with a certificate that was downloaded alone, too
    if isinstance(certificate, Mapping):
        document = certificate
    else:
        path = Path(certificate)
        folders = path.is_dir()
        path = path / CERTIFICATE_FILE if folders else path
        if path.name == CERTIFICATE_FILE:
            beside = place or path.parent
            names = (LABELS_FILE, ANSWERS_FILE, README_FILE)
            if folders or any(os.path.lexists(path.with_name(name)) for name in names):
                place = beside
        try:
            document = read_certificate(path)
        except CertificateError as error:
            return Verification((Check("file", False, str(error)),))
    # what a check reads, those before it have found in order: a failure among the first ones, and
    # events that are not those of one mechanism, which may take long to price, end it
    checks, read = [_made("format", lambda: _check_format(document))], list[Certificate]()
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
        checks.append(_made("signature", lambda: _check_signature(document, beside, public)))
    signed = beside is not None and os.path.lexists(beside / SIGNATURE_FILE)
    unasked = (_NO_KEY,) if signed and key is None else ()
    if place is None:
        return Verification(tuple(checks), (_NO_FOLDER, *unasked), document)
    values = _values_file(whole.public.method)
    checks.append(_made("files", lambda: _check_files(whole, place)))
    if agree and values is not None:
        holds = _check_answers if values == ANSWERS_FILE else _check_rows
        name = values.removesuffix(".csv")
        checks.append(_made(name, lambda: holds(whole, place / values)))
    return Verification(tuple(checks), unasked, document)


_NO_KEY = (
    f"There is a {SIGNATURE_FILE}, and whether it is a signature was not checked: any"
    f" {_SIGNATURE_BYTES} bytes look like one; give the public key of whoever must have signed."
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


def _check_fields(document: JsonView, read: list[Certificate]) -> str:
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
    same = same and price.delta_recomputed <= delta * SLACK
    require(same, "The price is stated at another epsilon or delta than the promise.")
    recomputed = delta_upper([certificate.event], epsilon)
    require(
        recomputed <= min(delta, price.delta_recomputed) * SLACK,
        f"At epsilon {epsilon:.6g} the events cost delta {recomputed:.6g}; promised was"
        f" {delta:.6g}, and stated is {price.delta_recomputed:.6g}.",
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
    paid = shape.n_queries if isinstance(shape, VoteShape) else queries
    most = mechanism.max_answers if isinstance(mechanism, ConfidentLabels) else queries
    within = queries <= paid and answered <= min(queries, most)
    require(
        within and (answered == queries or not answers_all),
        f"{answered} of {queries} queries were answered; the events pay for {most} answers of"
        f" {paid} queries{', all of them answered' if answers_all else ''}.",
    )
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
