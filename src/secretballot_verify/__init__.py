"""Check a release folder by a second program, of Python's standard library alone.

    python -m secretballot_verify FOLDER [--minutes N]

It was written from docs/explanation/prices.md and docs/reference/certificate.md and shares no line
with the program that makes releases. It reads the folder, compares every file with the digest that
the certificate lists, compares every row of labels.csv with what was paid for, and prices every
event by its own methods: sums in place of tables, integers in place of arrays.

A price comes with an error: closed forms agree with the truth to one part in a million. The price
of labels alone is the value of a game, of which it computes two numbers: one that is certainly not
too small, and one that is certainly not too large, what the best of a few simple attacks reaches.
A game that would take more than two minutes, or N, is not played.

Exit codes: 0 everything is in order; 2 there is nothing to check; 4 something is wrong; 5 nothing
is wrong, but the promise lies within the error of the price, so that it is neither confirmed nor
refused.
"""

import csv
import hashlib
import os
import re
import stat
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader, TextIOWrapper
from itertools import islice

from secretballot_verify import certificate, games
from secretballot_verify.certificate import TABLES, Json, WrongError, require, shown
from secretballot_verify.games import MINUTES
from secretballot_verify.prices import ERROR, price_of

CONFIRMED, REFUSED, UNDECIDED = "ok", "FAILED", "unsure"
WAIT = "wait"  # no verdict: what follows takes long
_CODES = {REFUSED: 4, UNDECIDED: 5, CONFIRMED: 0}
_MAX_LABELS = 250 * 10**6  # bytes
_MAX_TOTAL = 2 * 10**9
_MOST_ROWS = 25_000 * 2**16  # of a public pool
_PAGE = 1 << 13  # queries, in 1 kB
_FILES = re.compile(
    r"README\.txt|model-card\.md|(?:labels|answers)\.(?:csv|parquet)|schema\.json"
    r"|student\.onnx|report\.html"
)
_SIGNATURE, _SIGNATURE_BYTES = "certificate.sig", 64

#: One thing that was looked at: a word for it, a verdict, and one sentence.
Finding = namedtuple("Finding", "name verdict detail")


# --- The folder -----------------------------------------------------------------------------------


@contextmanager
def _opened(path: str, limit: int) -> Iterator[BufferedReader]:
    """Open a regular file of bounded size; links, pipes and devices are not opened.

    Raises
    ------
    WrongError
        If the file is not regular, too large or unreadable.
    """
    name = shown(os.path.basename(path))
    flags = os.O_RDONLY | sum(
        getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
    )
    try:
        require(stat.S_ISREG(os.lstat(path).st_mode), f"{name} is no regular file.")
        with os.fdopen(os.open(path, flags), "rb") as file:
            # asked again of the open file, as another one may have taken the name since
            about = os.fstat(file.fileno())
            fits = stat.S_ISREG(about.st_mode) and about.st_size <= limit
            require(fits, f"{name} is no regular file of at most {limit} bytes.")
            yield file
    except OSError as error:
        raise WrongError(f"{name} cannot be read ({type(error).__name__}).") from None


def _digest_of(path: str, limit: int) -> tuple[str, int]:
    """Return the SHA-256 of a file, and its number of bytes."""
    with _opened(path, limit) as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()


def _check_files(document: Json, folder: str) -> str:
    """Refuse a folder that is not, file by file, the one that the certificate lists."""
    listed = document["files"]
    # a folder of millions of names is not read to its end
    with os.scandir(folder) as entries:
        found = {entry.name for entry in islice(entries, certificate.MAX_FILES + 2)}
    # a signature is of 64 bytes, and no other content; whose it is, other programs tell
    signed = _SIGNATURE in found
    if signed:
        _, size = _digest_of(os.path.join(folder, _SIGNATURE), _MAX_TOTAL)
        require(size == _SIGNATURE_BYTES, f"{_SIGNATURE} has {size} bytes; a signature has 64.")
    for name in sorted((found - {"certificate.json", _SIGNATURE}) ^ set(listed)):
        what = "not listed by the certificate" if name in found else "missing"
        raise WrongError(f"{shown(name)} is {what}.")
    for name, about in listed.items():
        require(_FILES.fullmatch(name), f"{shown(name)} is no file of a release.")
        certificate.check_shape(about, certificate.FILE_FIELDS, f"files.{name}")
    # before any file is read: what is claimed bounds what is read
    whole = sum(about["bytes"] for about in listed.values())
    require(whole <= _MAX_TOTAL, f"The files have more than {_MAX_TOTAL} bytes together.")
    for name, about in listed.items():
        same = _digest_of(os.path.join(folder, name), about["bytes"])
        changed = same != (about["sha256"], about["bytes"])
        require(not changed, f"{name} is not the file that was released.")
    # answers of a table, and sums, are on the certificate itself, and need no digest
    name = _values_of(document)
    # a table as Parquet is a copy for convenience: its digest is checked, not its rows
    tables = {one for one in listed if one.endswith((".csv", ".parquet"))}
    fits = {f"{name}.csv"} <= tables <= {f"{name}.csv", f"{name}.parquet"} if name else not tables
    require(fits, "The certificate lists another file of values than its mechanism has.")
    digest = document["released"]["labels_sha256"]
    labels = name != "labels" or listed["labels.csv"]["sha256"] == digest
    require(labels, "The certificate states another digest of labels.csv.")
    note = f" {_SIGNATURE} was not checked: any 64 bytes look like one." if signed else ""
    return f"{len(listed)} files and no other, each the one that was released.{note}"


def _values_of(document: Json) -> str:
    """Return the name of the file of released values; "" where sums alone were released."""
    if document["public"]["method"] in TABLES:
        return "answers"
    return "labels" if document["released"]["classes"] else ""


def _row_of(cells: Iterable[object]) -> str:
    """Return one line of a CSV file as a release writes it."""
    return ",".join(
        '"' + text.replace('"', '""') + '"'
        if any(mark in text for mark in ',"\r\n') or text != text.strip()
        else text
        for text in map(str, cells)
    )


def _check_labels(document: Json, folder: str) -> str:
    """Refuse rows of labels.csv that the mechanism did not pay for, and every other way to write
    them."""
    released, mechanism = document["released"], document["mechanism"]
    most_silent = {**mechanism, **(mechanism.get("stream") or {})}.get("max_abstentions", 0)
    names = list(map(certificate.class_text, released["classes"]))
    columns = released["count_columns"]
    counted = names[1:] if columns == 1 else names[:columns]
    header = ["query", "label", "abstained", *(f"noisy_count[{name}]" for name in counted)]
    first = _row_of(header) + "\n"
    longest = max(len(first), 64 * (columns + 4) + 4 * max(map(len, names)))
    # every row is written anew and the digest compared, so that no second spelling carries more
    # than the rows say
    stated = hashlib.sha256(first.encode("utf-8", "surrogatepass"))
    index = {name: place for place, name in enumerate(names)}
    asked: dict[int, int] = {}  # a bit for each query, in pages
    count, answered, abstained, problem = 0, 0, 0, ""
    stops = mechanism["kind"] not in certificate.ANSWERS_SOME
    try:
        rows = csv.reader(_lines_of(os.path.join(folder, "labels.csv"), longest))
        next(rows, None)
        for row in rows:
            query, label, silent = int(row[0]), row[1], row[2] == "true"
            counts = [int(count) for count in row[3:]]
            fields = ["", "true"] if silent else [label, "false"]
            line = _row_of([query, *fields, *counts]) + "\n"
            stated.update(line.encode("utf-8", "surrogatepass"))
            count += 1
            require(0 <= query < _MOST_ROWS, "labels.csv names a row of no public pool.")
            page, bit = asked.get(query // _PAGE, 0), 1 << query % _PAGE
            require(not page & bit, "labels.csv names a query twice.")
            asked[query // _PAGE] = page | bit
            if silent:
                abstained += 1
                continue
            answered += 1
            place = f"Row {count} of labels.csv"
            given = len(counts) == columns and (
                not columns or index[label] == _label_of(counts, released["n_teachers"])
            )
            require(given, f"{place} has a label that its counts do not give.")
            require(label in index, f"{place} has a label that is no class.")
            goes_on = not (stops and abstained and abstained >= most_silent)
            require(goes_on, f"{place} is answered after the stream had stopped.")
            certificate.check_range(counts, document)
    except (csv.Error, ValueError, LookupError):
        problem = f"Row {count + 1} of labels.csv is no row of a release."
    # raised after the handler, as the error at hand may quote the file
    require(not problem, problem)
    same = stated.hexdigest() == released["labels_sha256"]
    require(same, "labels.csv is not as a release writes it.")
    counted_rows = (count, answered) == (released["queries"], released["answered"])
    require(counted_rows, "labels.csv holds another number of rows or answers than is stated.")
    return f"labels.csv holds {count} rows, {answered} answered, as a release writes them."


def _check_answers(document: Json, folder: str) -> str:
    """Refuse an answers.csv that is not, byte by byte, the answers of the certificate."""
    stated, released = hashlib.sha256(), document["released"]
    numbers = document["public"]["method"] == "votes-of-numbers"
    for cells in (_number_rows if numbers else _set_rows)(document):
        stated.update(f"{_row_of(cells)}\n".encode("utf-8", "surrogatepass"))
    found, _ = _digest_of(os.path.join(folder, "answers.csv"), _MAX_LABELS)
    require(stated.hexdigest() == found, "answers.csv does not hold the certificate's answers.")
    return f"answers.csv holds the {len(released['rows'])} answers of the certificate."


def _number_rows(document: Json) -> Iterator[list[object]]:
    """Yield the rows of answers.csv of a table of numbers."""
    (low, high), shape = document["public"]["bounds"], document["shape"]
    released, width = document["released"], (high - low) / (shape["n_classes"] - 1)
    votes = shape["n_teachers"] if document["mechanism"]["kind"] == "noisy-means" else 1
    yield ["query", "value"]
    for row, answer in zip(released["rows"], released["values"], strict=True):
        yield [row, repr(low + answer[0] / votes * width)]


def _set_rows(document: Json) -> Iterator[list[object]]:
    """Yield the rows of answers.csv of a table of sets of labels."""
    public, released = document["public"], document["released"]
    labels, counts = public["labels"], document["mechanism"]["release"] == "counts"
    places, teachers = range(len(labels)), document["shape"]["n_teachers"]
    members = [[k] for k in places]  # of each count, the labels that it is about
    if counts and public["ballot"] == "sets":
        members = [[k for k in places if number & 2**k] for number in range(2 ** len(labels))]
    counted = ["+".join(labels[k] for k in one) for one in members] if counts else []
    yield ["query", *labels, *(f"noisy_count[{name}]" for name in counted)]
    for row, answer in zip(released["rows"], released["values"], strict=True):
        votes = [0] * len(labels)
        for count, one in zip(answer, members, strict=True):
            for k in one:
                votes[k] += count
        named = [int(2 * vote >= teachers) for vote in votes] if counts else votes
        yield [row, *named, *(answer if counts else [])]


def _lines_of(path: str, longest: int) -> Iterator[str]:
    """Yield the lines of labels.csv, none of which is longer than a release writes."""
    with _opened(path, _MAX_LABELS) as file:
        text = TextIOWrapper(file, "utf-8", "surrogatepass", newline="\n")
        while line := text.readline(longest + 1):
            require(len(line) <= longest, "labels.csv has a line that is longer than any.")
            yield line


def _label_of(counts: list[int], n_teachers: int) -> int:
    """Return the class that noisy counts give.

    At least half of two classes, else the largest, the first of ties.
    """
    if len(counts) == 1:
        return int(2 * counts[0] >= n_teachers)
    return counts.index(max(counts))


# --- All of it ------------------------------------------------------------------------------------


def check_release(folder: str, minutes: float = MINUTES) -> list[Finding]:
    """Check a release folder and return what was found, thing by thing.

    Parameters
    ----------
    folder : str
        With certificate.json and the files that it lists.
    minutes : float
        That one game may take, about; longer ones are left undecided.
    """
    return [one for one in each_finding(folder, minutes) if one.verdict != WAIT]


def each_finding(folder: str, minutes: float = MINUTES) -> Iterator[Finding]:
    """Yield what `check_release` returns, each as soon as it is found, and before what may take
    minutes a line with the verdict `WAIT`."""
    games.minutes_allowed.set(minutes)
    try:
        with _opened(os.path.join(folder, "certificate.json"), certificate.MAX_CERTIFICATE) as file:
            document = certificate.certificate_in(file.read(certificate.MAX_CERTIFICATE + 1))
    except WrongError as error:
        yield Finding("certificate", REFUSED, str(error))
        return
    yield Finding("certificate", CONFIRMED, "Its digest fits, and every field is there.")
    found = [_looked("files", lambda: _check_files(document, folder)), *_terms_of(document)]
    yield from found
    # rows are read, and prices taken, of what is known to be in range
    if any(finding.verdict != CONFIRMED for finding in found):
        return
    if name := _values_of(document):
        look = _check_answers if name == "answers" else _check_labels
        values = _looked(name, lambda: look(document, folder))
        yield values
        if values.verdict != CONFIRMED:
            return
    yield from _prices_of(document)


def _terms_of(document: Json) -> list[Finding]:
    """Return what there is to find in a certificate itself, but for its prices."""
    optional = {"plan", "choices"} - set(document)
    looks = [(name, look) for name, look in certificate.CHECKS.items() if name not in optional]
    return [_looked(name, partial(look, document)) for name, look in looks]


def check_certificate(content: bytes) -> list[Finding]:
    """Return what is found in a certificate.json by itself, but for prices that take seconds.

    Parameters
    ----------
    content : bytes
        Of the file.
    """
    try:
        document = certificate.certificate_in(content)
    except WrongError as error:
        return [Finding("certificate", REFUSED, str(error))]
    found = _terms_of(document)
    if any(finding.verdict != CONFIRMED for finding in found):
        return found
    parts = [document, *document.get("choices", ())]
    slow = any(part["events"][0]["kind"] in certificate.SLOW for part in parts)
    return found if slow else [*found, *_prices_of(document)]


def _prices_of(document: Json) -> Iterator[Finding]:
    """Yield what the release costs: all of it, and each choice."""
    if document["events"][0]["kind"] in certificate.SLOW:
        yield Finding("price", WAIT, f"A game may take {games.minutes_allowed.get():g} minutes.")
    yield _looked("price", partial(_priced, "price", document))
    for number, choice in enumerate(document.get("choices", ()), 1):
        yield _looked(f"choice {number}", partial(_priced, f"choice {number}", choice))


def _priced(name: str, part: Json) -> Finding:
    """Return whether the event of a release or a choice costs what it promises."""
    epsilon, promised = part["epsilon"], part["delta"]
    price = price_of(part["events"][0], epsilon, promised)
    stated = part["price"]["delta_recomputed"] if "price" in part else promised
    words = (
        f"delta {price.upper:.6g} at epsilon {epsilon:.6g} (at least {price.lower:.6g};"
        f" {price.method})"
    )
    # a stated price below a proved lower bound is false, whatever was promised
    if stated < price.lower * (1 - ERROR):
        return Finding(name, REFUSED, f"It costs {words}; stated as its price is {stated:.6g}.")
    if price.upper <= promised * (1 + ERROR):
        return Finding(name, CONFIRMED, f"At most {words}, within the promised {promised:.6g}.")
    if price.lower > promised:
        return Finding(name, REFUSED, f"It costs {words}; promised was {promised:.6g}.")
    return Finding(
        name,
        UNDECIDED,
        f"It costs at most {words}; whether the promised {promised:.6g} holds is not known. Games"
        f" of more than {games.minutes_allowed.get():g} minutes (--minutes gives it more) were not"
        " played.",
    )


def _looked(name: str, look: Callable[[], str | Finding]) -> Finding:
    """Return what a look finds, which is in order where it is a sentence; whatever a stranger's
    numbers make it raise is a refusal."""
    try:
        found = look()
        return Finding(name, CONFIRMED, found) if isinstance(found, str) else found
    except WrongError as error:
        return Finding(name, REFUSED, str(error))
    except (
        *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError, OSError),
        *(MemoryError, RecursionError),
    ) as error:
        return Finding(name, REFUSED, f"This could not be evaluated ({type(error).__name__}).")


def exit_code(found: list[Finding]) -> int:
    """Return 0, 5 or 4: the worst of the verdicts."""
    verdicts = {finding.verdict for finding in found}
    return next(code for verdict, code in _CODES.items() if verdict in verdicts)
