"""The folder of a release as a stranger gives it: the files of its certificate, nothing else.

Nothing that was not paid for is in ``labels.csv`` or ``answers.csv``.
"""

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import FARTHEST, MOST_ROWS
from secretballot.exceptions import CertificateError
from secretballot.report.certificate.fields import named, read_regular, regular_digest
from secretballot.report.certificate.labels_file import (
    ABSTAINED,
    class_text,
    quoted_if_needed,
    read_labels,
)
from secretballot.report.certificate.models import (
    CERTIFICATE_FILE,
    LABEL_VOTES,
    LARGEST_COUNT,
    RECORD_VOTES,
    TABLES,
    WITHOUT_CLASSES,
    Certificate,
    certificate_of_json,
    noise_of_counts,
    require,
    stated,
)
from secretballot.report.certificate.signature import SIGNATURE_BYTES, SIGNATURE_FILE
from secretballot.report.wording import count_text

LABELS_FILE, ANSWERS_FILE = "labels.csv", "answers.csv"
README_FILE = "README.txt"  # of every release
_MAX_FILES = 1000
MAX_BYTES = 250 * 10**6  # of one that is read
MAX_TOTAL = 2 * 10**9  # bytes of all files together: what is read and digested in a few seconds

#: The files that a release may consist of; those with values are a table, as CSV and as Parquet.
_TABLES = {LABELS_FILE, ANSWERS_FILE, "labels.parquet", "answers.parquet"}
_FILES = _TABLES | {README_FILE, "model-card.md", "schema.json", "student.onnx", "report.html"}


def values_file(method: str) -> str | None:
    """Return the name of the file with the released values, answers of a table or labels; None of
    sums alone, which are on the certificate."""
    if method in TABLES:
        return ANSWERS_FILE
    return None if method in WITHOUT_CLASSES else LABELS_FILE


def check_files(certificate: Certificate, folder: Path) -> str:
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
    values = values_file(certificate.public.method)
    _check_names(set(listed), _names_in(folder), values)
    whole = sum(about.bytes for about in listed.values())
    require(whole <= MAX_TOTAL, "The listed files have more than 2 GB; so much is not read.")
    for name, about in listed.items():
        same = regular_digest(folder / name, MAX_TOTAL) == (about.sha256, about.bytes)
        require(same, f"{name} is not the file that was released: its size or SHA-256 is another.")
    # which the certificate cannot list, being what is signed: no other content fits in
    if os.path.lexists(folder / SIGNATURE_FILE):
        _, size = regular_digest(folder / SIGNATURE_FILE, MAX_TOTAL)
        fits = size == SIGNATURE_BYTES
        require(fits, f"{SIGNATURE_FILE} has {size} bytes; a signature has {SIGNATURE_BYTES}.")
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


def check_rows(certificate: Certificate, path: Path) -> str:
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
    queries, labels, counts = read_labels(content, released.classes, released.count_columns)
    # an unfit number of rows is named before their values: it is the plainest contradiction
    answered = labels != ABSTAINED
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
    _check_stop(answered, certificate.most_abstentions)
    if counts is not None:
        _check_counts(labels, counts, *_reach(certificate))
    return f"labels.csv holds {found[0]} queries, {found[1]} answered, as they were paid for."


def most_bytes(document: Mapping[str, Any]) -> int:
    """Return how many bytes ``labels.csv`` has at most, by a checked certificate; 0 where a release
    has another file."""
    released = certificate_of_json(document).released
    cells = [quoted_if_needed(class_text(value)) for value in released.classes]
    longest = max((len(cell.encode("utf-8", "surrogatepass")) for cell in cells), default=0)
    # a query, a label, whether it abstained, and counts of at most 17 digits and a sign
    line = len(f"{MOST_ROWS},,false\n") + longest + released.count_columns * len(f"-{10**16},")
    return line * released.queries


def _check_stop(answered: "np.ndarray[Any, np.dtype[np.bool_]]", most: int | None) -> None:
    """Refuse an answer after the last abstention that was paid for; rows after it have none."""
    abstained = np.flatnonzero(~answered)
    never = most == 0 and len(abstained)
    require(not never, "labels.csv has abstentions, and the mechanism never abstains.")
    after = most and len(abstained) >= most and answered[abstained[most - 1] :].any()
    require(not after, f"labels.csv has answers after abstention {most}, where the stream stopped.")


def _reach(certificate: Certificate) -> tuple[int, float]:
    """Return the largest count that was cast, and how far noise moves one."""
    by_record = certificate.public.method == RECORD_VOTES
    most = LARGEST_COUNT if by_record else certificate.released.n_teachers
    return most, FARTHEST * (noise_of_counts(certificate.mechanism) + 1)


def _check_counts(labels: IntArray, counts: IntArray, most: int, far: float) -> None:
    """Refuse counts that noise cannot reach, and labels that do not follow from the counts."""
    reached = not counts.size or (counts.min() >= -far and counts.max() <= most + far)
    require(reached, "labels.csv holds a count that noise of the stated size does not reach.")
    # The rules of `majority` and `plurality`: at least half of two classes, the lowest of several
    # that tie.
    read_off = (2 * counts >= most).astype(np.int64) if counts.ndim == 1 else counts.argmax(axis=1)
    given = np.array_equal(read_off, labels)
    require(given, "labels.csv holds a label that is not the one its counts give.")


def answers_bytes(certificate: Mapping[str, Any]) -> bytes:
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


def check_answers(certificate: Certificate, path: Path) -> str:
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


def _lines_of_numbers(terms: Mapping[str, Any]) -> Iterator[str]:
    low, high = terms["bounds"]
    step = (high - low) / (terms["n_classes"] - 1)
    # a sum of all votes is released for a mean, and a position of the grid of a quantile
    parts = terms["n_teachers"] if "rank" not in terms else 1
    yield "query,value"
    for row, (answer,) in zip(terms["rows"], terms["values"], strict=True):
        yield f"{row},{low + answer / parts * step!r}"


def _lines_of_labels(terms: Mapping[str, Any]) -> Iterator[str]:
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
