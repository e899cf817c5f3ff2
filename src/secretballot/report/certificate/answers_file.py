"""The answers of a released table as text: the bytes of ``answers.csv``, which follow from the
certificate."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from secretballot.exceptions import CertificateError
from secretballot.report.certificate.labels_file import quoted_if_needed
from secretballot.report.certificate.methods import LABEL_VOTES
from secretballot.report.certificate.models import Certificate
from secretballot.report.certificate.regular_files import read_regular
from secretballot.report.certificate.terms import Terms, stated
from secretballot.report.wording import count_text

ANSWERS_FILE = "answers.csv"
_MAX_BYTES = 250 * 10**6


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


def check_answers(certificate: Certificate, terms: Terms, path: Path) -> str:
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
    terms.drawable(certificate)
    if read_regular(path, _MAX_BYTES) != answers_bytes(certificate.model_dump(exclude_unset=True)):
        raise CertificateError(f"{ANSWERS_FILE} does not hold the answers of the certificate.")
    answers = count_text(len(certificate.released.rows), "answer")
    return f"{ANSWERS_FILE} holds the {answers} of the certificate, as paid for."


def _lines_of_numbers(terms: Mapping[str, Any]) -> Iterator[str]:
    low, high = terms["bounds"]
    step = (high - low) / (terms["n_classes"] - 1)
    # a sum of all votes is told of a mean, and a position of the grid of a quantile
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
