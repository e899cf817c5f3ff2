"""Check a release folder by a second program: this one file, and Python's standard library alone.

    python verify_release.py FOLDER [--minutes N]

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

import codecs
import csv
import hashlib
import json
import math
import os
import re
import stat
import sys
from bisect import bisect_right
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import accumulate, pairwise
from operator import mul
from typing import Any

CONFIRMED, REFUSED, UNDECIDED = "ok", "FAILED", "unsure"
NOTHING_TO_CHECK = 2
WAIT = "wait"  # no verdict: what follows takes long
_CODES = {CONFIRMED: 0, UNDECIDED: 5, REFUSED: 4}

#: One thing that was looked at: a word for it, a verdict, and one sentence.
Finding = namedtuple("Finding", "name verdict detail")

#: Bounds on a delta, and how it was computed. The truth, or what the documented rule charges, lies
#: between them.
Price = namedtuple("Price", "lower upper method")

# relative error of every closed form; floats, sums and logarithms of factorials stay well below it
ERROR = 1e-6
_LOST = 2.0**-48  # what floats may lose of a probability, or of a loss in nats and as a share of it

_MAX_CERTIFICATE = 10 * 10**6  # bytes
_MAX_LABELS = 250 * 10**6
_MAX_FILES = 1000
_MAX_TOTAL = 2 * 10**9
_MAX_INTEGER = 2**53
_ONE, _HALF = 2**53, 2**52  # chances of a table are whole numbers of 2^-53
_MOST_CHANCES = 10_000
_BLINDLY = " and every parameter of the mechanism were fixed without looking at private data."
_OR_PAID = ", or chosen by a step listed under choices, at its own price."
_WRONG_OPENDP = ((0, 14, 0), (0, 14, 1))
MINUTES = 2.0  # that one game may take, about
_minutes = ContextVar("minutes", default=MINUTES)
_CELLS_A_MINUTE = 2.5e9  # of a game, times steps and outcomes; a fast machine does twice as many
_CHORDS = 1500  # of a profile beside a game, on either side of x = 1
_SLOW = ("binary-labels", "class-labels", "confident", "sampled")
_MOST_SLOW = 10
# events whose losses are bounded: from some epsilon on they cost no delta at all
_MAY_COST_NOTHING = ("pure", "bounded-range", "binary-labels")


class WrongError(Exception):
    """Something does not hold; the message is one sentence."""


class UndecidedError(Exception):
    """Nothing is known to be wrong, and nothing could be confirmed; the message is one sentence."""


# --- Reading --------------------------------------------------------------------------------------


def shown(value: object) -> str:
    """Return how a message quotes a value: printable, on one line and short."""
    text = value if isinstance(value, str) else repr(value)[:200]
    text = "".join(character if character.isprintable() else "?" for character in text)
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def blocks_of(path: str, limit: int) -> Iterator[bytes]:
    """Yield the content of a regular file of bounded size; links, pipes and devices are not
    opened.

    Raises
    ------
    WrongError
        If the file is not regular, too large, changing or unreadable.
    """
    name = shown(os.path.basename(path))
    flags = os.O_RDONLY | sum(
        getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
    )
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise WrongError(f"{name} is no regular file.")
        with os.fdopen(os.open(path, flags), "rb") as file:
            # asked again of the open file, as another one may have taken the name since
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_size > limit:
                raise WrongError(f"{name} is no regular file of at most {limit} bytes.")
            left = about.st_size
            while left > 0 and (block := file.read(min(1 << 20, left))):
                left -= len(block)
                yield block
            if left or file.read(1):
                raise WrongError(f"{name} changed while it was read.")
    except (OSError, ValueError) as error:
        raise WrongError(f"{name} cannot be read ({type(error).__name__}).") from None


def no_repeated_field(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, or refuse one that names a field twice.

    Raises
    ------
    ValueError
        If a field is named twice.
    """
    if len(dict(pairs)) < len(pairs):
        raise ValueError
    return dict(pairs)


def check_json(value: object, depth: int = 0, longest: int = 10_000) -> None:
    """Refuse JSON that is nested too deeply, or holds numbers or strings beyond bounds.

    Raises
    ------
    WrongError
        If it is nested too deeply, or a value is beyond its bounds.
    """
    if depth > 32:
        raise WrongError("The certificate is nested more than 32 deep.")
    if isinstance(value, dict):
        for key, item in value.items():
            # the weights of a table of abstentions are one text
            check_json(item, depth + 1, 2**20 if key == "weights" else 10_000)
    elif isinstance(value, list):
        for item in value:
            check_json(item, depth + 1)
    elif isinstance(value, str) and len(value) > longest:
        raise WrongError("The certificate holds a string that is too long.")
    elif isinstance(value, float) and not math.isfinite(value):
        raise WrongError("The certificate holds a number that is not finite.")
    elif isinstance(value, int) and not abs(value) <= _MAX_INTEGER:
        raise WrongError("The certificate holds an integer beyond 2^53.")


def certificate_in(content: bytes) -> dict[str, Any]:
    """Return the certificate that a file holds, whose digest fits and whose fields are all there.

    Raises
    ------
    WrongError
        If the file is no certificate of this format.
    """
    if len(content) > _MAX_CERTIFICATE:
        raise WrongError(f"The certificate has more than {_MAX_CERTIFICATE} bytes.")
    try:
        document = json.loads(content.decode("utf-8"), object_pairs_hook=no_repeated_field)
    except (ValueError, RecursionError):
        raise WrongError("certificate.json is not JSON.") from None
    if not isinstance(document, dict) or document.get("format") != "secretballot/certificate":
        raise WrongError("certificate.json is no certificate of a release.")
    version = document.get("version")
    if type(version) is not int or version != 3:  # 3.0 is equal to 3
        raise WrongError(
            f"The certificate has version {shown(version)}; this program reads version 3."
        )
    check_json(document)
    body = {key: value for key, value in document.items() if key != "digest"}
    canonical = json.dumps(
        body, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
    if hashlib.sha256(canonical.encode("ascii")).hexdigest() != document.get("digest"):
        raise WrongError("The digest of the certificate does not fit its text.")
    check_shape(document, _SHAPE, "certificate")
    check_words(document)
    return document


# --- The shape of a certificate -------------------------------------------------------------------


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_count(value: object, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= _MAX_INTEGER


def is_digest(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def is_amount(value: object) -> bool:
    return is_number(value) and value >= 0  # type: ignore[operator]


def is_epsilon(value: object) -> bool:
    return is_number(value) and value > 0  # type: ignore[operator]


def is_delta(value: object) -> bool:
    return is_number(value) and 0 <= value < 1  # type: ignore[operator]


def is_text(value: object) -> bool:
    return isinstance(value, str)


def is_name(value: object) -> bool:
    return isinstance(value, str) and value.strip() != ""


def is_sentence(value: object) -> bool:
    return isinstance(value, str) and value.strip() != "" and value.isprintable()


def are_sentences(value: object) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(map(is_sentence, value))


def is_moment(value: object) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def one_of(*words: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and value in words


def class_text(value: object) -> str:
    """Return how labels.csv writes a class: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def are_classes(value: object) -> bool:
    if not isinstance(value, list) or not all(
        isinstance(item, str | int | float) for item in value
    ):
        return False
    return len(value) >= 2 and len({class_text(item) for item in value}) == len(value)


_BUDGET = {"epsilon": is_epsilon, "delta": is_delta}
_SPENT = {"epsilon": is_amount, "delta": is_amount}
_UNITS, _RELATIONS = ("record", "user", "label"), ("add-remove", "replace-one")

#: What every certificate holds, object by object, and nothing else; a ``?`` marks what may be
#: missing.
_SHAPE: dict[str, Any] = {
    "format": is_text,
    "version": is_count,
    "issued": is_moment,
    "purpose": is_text,
    "unit": one_of(*_UNITS),
    "unit_column": lambda value: value is None or is_name(value),
    "neighbours": one_of(*_RELATIONS),
    "epsilon": is_epsilon,
    "delta": is_delta,
    "mechanism": lambda value: isinstance(value, dict),
    "shape": lambda value: isinstance(value, dict),
    "public": lambda value: isinstance(value, dict) and is_sentence(value.get("method")),
    "events": (
        lambda value: isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict)
    ),
    "price": {
        "epsilon": is_epsilon,
        "delta": is_delta,
        "delta_recomputed": is_delta,
        **dict.fromkeys(("method", "source", "library", "library_version"), is_sentence),
    },
    "composition": {
        "kind": one_of("basic", "renyi"),
        "dataset": is_name,
        "unit": one_of(*_UNITS),
        "neighbours": one_of(*_RELATIONS),
        "budget": _BUDGET,
        "spent_after": _SPENT,
        "durable": lambda value: isinstance(value, bool),
        "reservation": lambda value: is_count(value, 1),
    },
    "assumptions": are_sentences,
    "not_protected": are_sentences,
    "noise": {"exact": lambda value: value is True, "description": is_sentence},
    "software": lambda value: (
        isinstance(value, dict)
        and all(map(is_sentence, value.values()))
        and is_sentence(value.get("opendp"))
    ),
    "released": {
        "queries": is_count,
        "answered": is_count,
        "classes": lambda value: value == [] or are_classes(value),
        "n_teachers": is_count,
        "count_columns": is_count,
        "labels_sha256": is_digest,
        "points_sha256?": is_digest,
        "rows?": lambda value: isinstance(value, list),
        "values?": lambda value: isinstance(value, list),
    },
    "plan?": {
        "planned": lambda value: is_count(value, 1),
        "used": is_count,
        "rounds": (
            lambda value: isinstance(value, list) and all(is_count(item, 1) for item in value)
        ),
        "strategy": lambda value: isinstance(value, dict) and is_sentence(value.get("name")),
        "left": one_of("kept", "returned", "forfeited", "none"),
    },
    "choices?": lambda value: isinstance(value, list) and len(value) <= 100,
    "files": lambda value: isinstance(value, dict) and 1 <= len(value) <= _MAX_FILES,
    "about?": {"title?": is_sentence, "controller?": is_sentence, "contact?": is_sentence},
    "digest": is_digest,
}
_CHOICE_SHAPE = {
    "purpose": is_name,
    **{name: _SHAPE[name] for name in ("mechanism", "shape", "public", "events")},
    "epsilon": is_epsilon,
    "delta": is_delta,
    "reservation": lambda value: is_count(value, 1),
}
_OUTCOMES: dict[str, Callable[[Any], bool]] = {
    "value": lambda value: type(value) is int,
    "labels_sha256": is_digest,
}
_FILE_SHAPE = {"sha256": is_digest, "bytes": is_count}


def check_shape(value: object, shape: dict[str, Any], place: str) -> None:
    """Refuse an object that lacks a field, has one too many, or holds one of the wrong kind.

    Raises
    ------
    WrongError
        If it has another shape.
    """
    if not isinstance(value, dict):
        raise WrongError(f"{place} is no JSON object.")
    fields = {name.rstrip("?"): rule for name, rule in shape.items()}
    unknown = sorted(set(value) - set(fields))
    if unknown:
        raise WrongError(f"{place} has a field {shown(unknown[0])}, which no certificate has.")
    for name, rule in shape.items():
        key = name.rstrip("?")
        if key not in value:
            if name == key:
                raise WrongError(f"{place} has no field {key!r}.")
        elif isinstance(rule, dict):
            check_shape(value[key], rule, f"{place}.{key}")
        elif not rule(value[key]):
            raise WrongError(f"{place}.{key} is not what it must be.")


def check_words(document: dict[str, Any]) -> None:
    """Refuse a field of the curator's words that is empty.

    Raises
    ------
    WrongError
        If they cannot be there.
    """
    if document.get("about") == {}:
        raise WrongError("certificate.about says nothing.")


# --- Mechanisms and their events ------------------------------------------------------------------

_ANSWERS_SOME = "confident-labels"
_ABSTAINS = ("sparse-vector", "abstention-table", "relabelled-sample")
_MOMENTS = ("record-moments", "record-moments-of-a-number", "record-moments-of-labels")
_TABLES = ("votes-of-labels", "votes-of-numbers")
_SUMMED = {
    *("residual_units", "mark_weight", "marks", "expected_uncovered", "n_records", "basis"),
    *("basis_sha256", "weights", "covered_only"),
}
#: By method: kinds of mechanisms, public settings, and those that may be missing.
_METHODS: dict[str, tuple[tuple[str, ...], set[str], set[str]]] = {
    "votes": (("noisy-votes", "table-labels", _ANSWERS_SOME, *_ABSTAINS), set(), {"confidence"}),
    "record-votes": (("noisy-votes",), set(), {"expected_uncovered"}),
    "record-moments": (("noisy-sums",), _SUMMED, {"start", "class_weights"}),
    "record-moments-of-a-number": (("noisy-sums",), _SUMMED | {"target_range"}, set()),
    "record-moments-of-labels": (("noisy-sums",), _SUMMED | {"labels"}, set()),
    "votes-of-labels": (("noisy-votes",), {"labels", "ballot", "most_named"}, set()),
    "votes-of-numbers": (("noisy-means", "vote-quantiles"), {"target_range"}, set()),
    "exponential-choice": (("exponential-choice",), {"n_candidates"}, set()),
    "stability-quantile": (("stability-quantile",), set(), set()),
}
#: Methods whose outcome is no label.
_WITHOUT_CLASSES = {*_MOMENTS, *_TABLES} - {"record-moments"}


def is_loss(value: object) -> bool:
    return isinstance(value, float) and 2.0**-39 <= value <= 1e6


def is_scale(value: object) -> bool:
    return isinstance(value, float) and 1e-6 <= value <= 1e12


def is_float(value: object) -> bool:
    return isinstance(value, float)


_STREAM_SHAPE = {
    "sparse-vector": {
        **dict.fromkeys(("threshold_scale", "query_scale"), is_scale),
        "threshold": lambda value: is_threshold(value),
    },
    "abstention-table": {
        **dict.fromkeys(
            ("order", "charge", "false_answer"), lambda value: isinstance(value, float)
        ),
        "weights": lambda value: (
            isinstance(value, str)
            and re.fullmatch("([0-3][0-9a-f]{15}){1,32769}", value) is not None
        ),
    },
}
_KINDS: dict[str, dict[str, Any]] = {
    "noisy-votes": {
        "noise": one_of("gaussian", "laplace"),
        "scale": is_scale,
        "release": one_of("labels", "counts"),
    },
    "table-labels": {"weights": lambda value: are_weights(value)},
    "confident-labels": {
        **dict.fromkeys(("threshold", "max_answers"), lambda value: is_events_count(value)),
        **dict.fromkeys(("threshold_sigma", "sigma"), is_scale),
    },
    **{
        kind: {**fields, "max_abstentions": lambda value: is_events_count(value)}
        for kind, fields in _STREAM_SHAPE.items()
    },
    "relabelled-sample": {"stream": lambda value: isinstance(value, dict)},
    "noisy-means": {"sigma": is_scale},
    "vote-quantiles": {"epsilon": is_loss, "rank": lambda value: is_events_count(value)},
    "stability-quantile": {
        "epsilon": is_loss,
        "fraction": lambda value: isinstance(value, float) and 0 < value < 1,
    },
    "noisy-sums": {
        "sigmas": lambda value: (
            isinstance(value, list) and 1 <= len(value) <= 1000 and all(map(is_scale, value))
        )
    },
    "exponential-choice": {
        "epsilon": is_loss,
        "rule": one_of("exponential", "permute-and-flip"),
    },
}
_GUARANTEE = {"unit": one_of(*_UNITS), "relation": one_of(*_RELATIONS)}
_SUM_SHAPE = {
    "guarantee": _GUARANTEE,
    "coordinates": lambda value: is_events_count(value),
    "squared_sensitivity": lambda value: is_count(value, 1) and value < _MAX_INTEGER,
}
_VOTE_SHAPE = {
    "guarantee": _GUARANTEE,
    **dict.fromkeys(("n_queries", "moved"), lambda value: is_events_count(value)),
    "n_classes": lambda value: is_count(value, 2) and value <= 2**16,
    "n_teachers": lambda value: value is None or is_events_count(value),
    "spare_rows": lambda value: is_count(value) and value <= 10**12,
    "sample": lambda value: value is None or isinstance(value, dict),
}
_SAMPLE = {
    **dict.fromkeys(("sampled", "out_of"), lambda value: is_events_count(value)),
    "relabel_epsilon": lambda value: isinstance(value, float) and 2.0**-20 <= value <= 100,
    **dict.fromkeys(("request", "serial"), is_name),
}


def check_model(value: dict[str, Any], kinds: dict[str, dict[str, Any]], place: str) -> None:
    """Refuse an object of no known kind, or with other fields.

    Raises
    ------
    WrongError
        If it is one.
    """
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise WrongError(f"{place} {shown(kind)} is of no known kind.")
    check_shape({key: one for key, one in value.items() if key != "kind"}, kinds[kind], place)


def check_part(part: dict[str, Any]) -> None:
    """Refuse mechanism, shape and event of a release, or of a choice, that do not fit each other.

    Raises
    ------
    WrongError
        If they do not.
    """
    mechanism, shape = part["mechanism"], part["shape"]
    check_model(mechanism, _KINDS, "The mechanism")
    kind = mechanism["kind"]
    if kind == "noisy-sums":
        check_shape(shape, _SUM_SHAPE, "shape")
    elif kind == "exponential-choice":
        check_shape(shape, {"guarantee": _GUARANTEE}, "shape")
    else:
        check_shape(shape, _VOTE_SHAPE, "shape")
        check_votes(mechanism, shape)
    if (shape["guarantee"]["unit"], shape["guarantee"]["relation"]) == ("label", "add-remove"):
        raise WrongError("Labels are replaced; they do not come and go.")
    if part["public"]["method"] == "votes" and shape.get("moved") != shape.get("n_queries"):
        raise WrongError("A teacher may vote otherwise at every query.")
    stated = part["events"][0]
    check_event(stated)
    # in Python 2.0 and true equal 2 and 1, so texts are compared
    if json.dumps(stated, sort_keys=True) != json.dumps(event_of(mechanism, shape), sort_keys=True):
        raise WrongError("The event is not the one of the mechanism.")


def check_votes(mechanism: dict[str, Any], shape: dict[str, Any]) -> None:
    """Refuse votes that are no votes of teachers or of records, or not what a mechanism takes.

    Raises
    ------
    WrongError
        If they are not.
    """
    teachers, sample = shape["n_teachers"], shape["sample"]
    if teachers is None:
        if sample is not None or mechanism.get("release") != "counts":
            raise WrongError("Votes of records are released as counts.")
    elif shape["moved"] > shape["n_queries"] or shape["spare_rows"]:
        raise WrongError("Teachers vote once in each row, and only in those of queries.")
    if (mechanism["kind"] == "relabelled-sample") != (sample is not None):
        raise WrongError("A relabelled sample, and nothing else, prices a secret sample.")
    if sample is not None:
        check_model(mechanism["stream"], _KINDS, "The stream")
        check_shape(sample, _SAMPLE, "shape.sample")
        if mechanism["stream"]["kind"] not in _STREAM_SHAPE or shape["n_classes"] != 2:
            raise WrongError("A relabelled sample is asked a stream, of two classes.")
        if shape["guarantee"]["unit"] == "user":
            raise WrongError("A relabelled sample is one of single records.")
    if mechanism["kind"] == "table-labels" and shape["n_classes"] != 2:
        raise WrongError("A table of chances is for two classes.")
    if mechanism["kind"] == _ANSWERS_SOME and not (
        mechanism["threshold"] <= teachers and mechanism["max_answers"] <= shape["n_queries"]
    ):
        raise WrongError("The threshold is above the number of teachers, or too many are answered.")
    if mechanism["kind"] == "vote-quantiles" and mechanism["rank"] > teachers:
        raise WrongError("The rank is that of no teacher.")


def event_of(mechanism: dict[str, Any], shape: dict[str, Any]) -> dict[str, Any]:
    """Return the one event that a whole release is: what was drawn, and how far one unit moves
    it."""
    kind, moved, teachers = mechanism["kind"], shape.get("moved", 0), shape.get("n_teachers")
    classes = shape.get("n_classes")
    # a teacher that changes its vote moves one count of two classes, and two counts of more; a
    # record moves so many cells as the shape says
    shifts = moved if classes == 2 or teachers is None else 2 * moved
    match kind:
        case "noisy-votes" if mechanism["noise"] == "laplace":
            loss = least_quotient(1, mechanism["scale"])
            return {"kind": "pure", "epsilon": loss, "count": shifts}
        case "noisy-votes" if mechanism["release"] == "counts":
            return {"kind": "counts", "sigma": mechanism["scale"], "shifts": shifts}
        case "noisy-votes" if classes != 2:
            return {"kind": "class-labels", "sigma": mechanism["scale"], "queries": moved}
        case "noisy-votes" | "table-labels":
            drawn = {"sigma": mechanism["scale"]} if kind == "noisy-votes" else {}
            drawn |= {"weights": mechanism["weights"]} if kind == "table-labels" else {}
            chances = {**drawn, "n_teachers": teachers}
            return {"kind": "binary-labels", "chances": chances, "queries": moved}
        case "confident-labels":
            noise = {key: mechanism[key] for key in ("threshold_sigma", "sigma")}
            answers = min(mechanism["max_answers"], moved)
            counted = {"queries": moved, "answers": answers, "n_classes": classes}
            passed = {"threshold": mechanism["threshold"], "n_teachers": teachers}
            return {"kind": "confident", **noise, **counted, **passed}
        case "sparse-vector":
            noise = {key: mechanism[key] for key in ("threshold_scale", "query_scale", "threshold")}
            stops = {"abstentions": mechanism["max_abstentions"], "refresh": True}
            return {"kind": "sparse-stream", **noise, **stops}
        case "abstention-table":
            told = {key: mechanism[key] for key in ("order", "charge", "false_answer")}
            return {"kind": "table-stream", **told, "abstentions": mechanism["max_abstentions"]}
        case "relabelled-sample":
            sample = {key: shape["sample"][key] for key in ("sampled", "out_of", "relabel_epsilon")}
            sample["relation"] = shape["guarantee"]["relation"]
            return {"kind": "sampled", "stream": event_of(mechanism["stream"], shape), **sample}
        case "noisy-means":
            squared = moved * (classes - 1) ** 2  # type: ignore[operator]
            return sums_of([mechanism["sigma"]], squared, shape["n_queries"])
        case "noisy-sums":
            return sums_of(mechanism["sigmas"], shape["squared_sensitivity"], shape["coordinates"])
        case "stability-quantile":
            return {"kind": "pure", "epsilon": mechanism["epsilon"], "count": 1}
    count = moved if kind == "vote-quantiles" else 1
    if mechanism.get("rule") == "permute-and-flip":
        return {"kind": "pure", "epsilon": mechanism["epsilon"], "count": 1}
    return {"kind": "bounded-range", "epsilon": mechanism["epsilon"], "count": count}


def sums_of(sigmas: list[float], squared: int, coordinates: int) -> dict[str, Any]:
    stated = {"sigmas": sigmas, "squared_sensitivity": squared, "coordinates": coordinates}
    return {"kind": "vector-sum", **stated, "count": 1}


def least_quotient(numerator: int, denominator: float) -> float:
    """Return the smallest float whose product with `denominator` is at least `numerator`."""
    found = numerator / denominator
    while Fraction(found) * Fraction(denominator) < numerator:
        found = math.nextafter(found, math.inf)
    return found


def check_event(event: dict[str, Any]) -> None:
    """Refuse an event of no known kind, or with parameters out of range.

    Raises
    ------
    WrongError
        If it is of no known kind, or a parameter is out of range.
    """
    by_table = "weights" in event["chances"] if isinstance(event.get("chances"), dict) else False
    n_teachers = (
        is_events_count if by_table else lambda value: value is None or is_events_count(value)
    )
    drawn: dict[str, Callable[[Any], bool]] = (
        {"weights": are_weights} if by_table else {"sigma": is_scale}
    )
    parts: dict[str, Callable[[Any], bool]] = {
        "epsilon": lambda value: isinstance(value, float) and 0 < value <= 1e12,
        "count": is_events_count,
    }
    ranges: dict[str, dict[str, Any]] = {
        "counts": {"sigma": is_scale, "shifts": is_events_count},
        "binary-labels": {
            "chances": {**drawn, "n_teachers": n_teachers},
            "queries": is_events_count,
        },
        "class-labels": {"sigma": is_scale, "queries": is_events_count},
        "confident": {
            **dict.fromkeys(("threshold_sigma", "sigma"), is_scale),
            **dict.fromkeys(("queries", "answers"), is_events_count),
            "n_classes": lambda value: is_events_count(value) and value >= 2,
            **dict.fromkeys(("threshold", "n_teachers"), lambda v: v is None or is_events_count(v)),
        },
        "vector-sum": {
            "sigmas": lambda value: (
                isinstance(value, list)
                and 1 <= len(value) <= _MOST_CHANCES
                and all(map(is_scale, value))
            ),
            "squared_sensitivity": lambda value: is_count(value, 1) and value < _MAX_INTEGER,
            **dict.fromkeys(("coordinates", "count"), is_events_count),
        },
        "pure": parts,
        "bounded-range": parts,
        "stable-tests": {"scale": is_scale, "threshold": is_threshold, "count": is_events_count},
        "sparse-stream": {
            "threshold_scale": is_scale,
            "query_scale": is_scale,
            "threshold": is_threshold,
            "abstentions": is_events_count,
            "refresh": lambda value: isinstance(value, bool),
        },
        "table-stream": {
            "order": lambda value: isinstance(value, float) and 1 + 2.0**-10 <= value <= 2**13,
            "charge": lambda value: isinstance(value, float) and 2.0**-44 <= value <= 64,
            "false_answer": lambda value: isinstance(value, float) and 2.0**-56 <= value <= 0.5,
            "abstentions": is_events_count,
        },
        "sampled": {
            "stream": lambda value: (
                isinstance(value, dict) and value.get("kind") in ("sparse-stream", "table-stream")
            ),
            "sampled": is_events_count,
            "out_of": is_events_count,
            "relation": one_of(*_RELATIONS),
            "relabel_epsilon": lambda value: isinstance(value, float) and 2.0**-20 <= value <= 100,
        },
    }
    kind = event.get("kind")
    fields = ranges.get(kind) if isinstance(kind, str) else None
    if fields is None:
        raise WrongError(f"The event {shown(kind)} is of no known kind.")
    stated = {key: value for key, value in event.items() if key != "kind"}
    check_shape(stated, fields, "The event")
    if kind == "binary-labels" and by_table:
        check_chances(**event["chances"])
    if kind == "confident" and not event["answers"] <= event["queries"]:
        raise WrongError("More queries were answered than asked.")
    if kind == "confident" and not (event["threshold"] or 0) <= (event["n_teachers"] or math.inf):
        raise WrongError("The threshold is above the number of teachers.")
    if kind == "sampled":
        check_event(event["stream"])
        if not event["sampled"] <= event["out_of"]:
            raise WrongError("More records were sampled than there are.")


def are_weights(value: object) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 1 for item in value)


def check_chances(weights: list[int], n_teachers: int) -> None:
    """Refuse a table that is not that of a minority's chances, margin by margin.

    Raises
    ------
    WrongError
        If it is not.
    """
    if not 1 <= len(weights) <= min(_MOST_CHANCES, n_teachers // 2 + 1):
        raise WrongError("The table has no chance, or more than the teachers have margins.")
    if any(later > earlier for earlier, later in pairwise(weights)):
        raise WrongError("A chance of the minority's label grows with the margin.")
    if weights[0] > _HALF or weights[-1] >= _HALF:
        raise WrongError("The minority's label has a chance of more than one half, or never less.")
    if n_teachers % 2 == 0 and weights[0] != _HALF:
        raise WrongError("An even vote is no fair coin in the table.")


def is_events_count(value: object) -> bool:
    return is_count(value, 1) and value <= 10**12  # type: ignore[operator]


def is_threshold(value: object) -> bool:
    return is_count(value) and value <= 10**15  # type: ignore[operator]


def check_mechanism(document: dict[str, Any]) -> str:
    """Refuse a mechanism that is unknown, whose event is another one than the certificate states,
    or whose settings contradict it.

    Raises
    ------
    WrongError
        If that is the case.
    """
    check_part(document)
    mechanism, shape, released = document["mechanism"], document["shape"], document["released"]
    public, guarantee = document["public"], document["shape"]["guarantee"]
    if (guarantee["unit"], guarantee["relation"]) != (document["unit"], document["neighbours"]):
        raise WrongError("The shape is about another unit or relation than the certificate.")
    check_public(mechanism, public)
    method = public["method"]
    if (not released["classes"]) != (method in _WITHOUT_CLASSES):
        raise WrongError("Labels have two or more classes, and sums or tables alone have none.")
    if released["n_teachers"] != (shape.get("n_teachers") or 0):
        raise WrongError("The mechanism was priced for another number of teachers than voted.")
    if "moved" in shape:
        of_labels = document["unit"] == "label" and method != "votes"
        if (shape["n_teachers"] is None) != (method == "record-votes") or of_labels:
            raise WrongError("The votes are neither those of teachers nor those of records.")
        if method not in _TABLES and shape["n_classes"] != len(released["classes"]):
            raise WrongError("The shape states another number of classes than the certificate.")
    if method == "record-votes":
        check_records(document)
    if method in _MOMENTS:
        check_moments(document)
    return f"The event is that of the mechanism {mechanism['kind']!r}."


def check_public(mechanism: dict[str, Any], public: dict[str, Any]) -> None:
    """Refuse settings of no known method, or of another one.

    Raises
    ------
    WrongError
        If they are.
    """
    kinds, needed, optional = _METHODS.get(public["method"], ((), set(), set()))
    if mechanism["kind"] not in kinds:
        raise WrongError(f"The method {shown(public['method'])} has no such mechanism.")
    found = set(public) - {"method"}
    candidates = public["method"] == "exponential-choice"  # whatever describes candidates may stand
    if not needed <= found or not (candidates or found <= needed | optional):
        raise WrongError("The public settings lack or add a field.")
    if candidates and not is_count(public["n_candidates"], 1):
        raise WrongError("The choice states no candidates.")
    if public["method"] == "votes" and "confidence" in public:
        share = public["confidence"]
        if mechanism["kind"] != _ANSWERS_SOME or not isinstance(share, float) or not 0 < share < 1:
            raise WrongError("The settings state a confidence that is no probability.")
    if "expected_uncovered" in public:
        share = public["expected_uncovered"]
        if not is_number(share) or not 0 <= share <= 1:
            raise WrongError("The expected share of uncovered records is no share.")


def check_moments(document: dict[str, Any]) -> None:
    """Refuse settings of sums over records that contradict the sums.

    Raises
    ------
    WrongError
        If they do.
    """
    mechanism, shape, released = document["mechanism"], document["shape"], document["released"]
    public = document["public"]
    of_classes = public["method"] == "record-moments"
    sigmas, coordinates, marks = mechanism["sigmas"], shape["coordinates"], public["marks"]
    stages, stated = len(sigmas), public["n_records"]
    if len(set(sigmas)) > 1 or stages > 100:
        raise WrongError("The stages have noise of several sizes, or are too many.")
    weight, of_labels = public["mark_weight"], document["unit"] == "label"
    if of_labels and not of_classes:
        raise WrongError("Where labels alone are private, each is one of some classes.")
    if not is_count(weight) or (weight == 0) != of_labels:
        raise WrongError("What counts a record adds nothing, or something where none is counted.")
    of_public_number = [] if of_labels else ["uncovered"]
    counted = ["records", "uncovered"] if stated is None else of_public_number
    if marks != counted:
        raise WrongError("The sums count records where their number is public, or do not.")
    if stated is not None and not is_count(stated, 1):
        raise WrongError("The number of records is none.")
    if (stated is None) != (document["neighbours"] == "add-remove"):
        raise WrongError(
            "The number of records is private where one comes or goes, and only there."
        )
    # a record that is replaced moves a sum by twice its longest vector
    replaced = 4 if document["neighbours"] == "replace-one" else 1
    if not weight <= math.isqrt(shape["squared_sensitivity"] // replaced) // 4:
        raise WrongError("A mark adds more than a quarter of the bound.")
    columns = columns_of(public, released)
    if coordinates <= len(marks) or (coordinates - len(marks)) % columns:
        raise WrongError("The coordinates are no whole number for each column of the model.")
    basis = public["basis"]
    named = isinstance(basis, dict) and is_sentence(basis.get("name"))
    if not named or not is_digest(public["basis_sha256"]):
        raise WrongError("The basis is not named, or its digest is none.")
    check_lists(public["weights"], stages, coordinates - len(marks), "weights")
    if "start" in public:
        check_start(public["start"], coordinates - len(marks), of_labels)
    weights = public.get("class_weights", [1.0] * len(released["classes"]))
    if not isinstance(weights, list) or len(weights) != len(released["classes"]):
        raise WrongError("The weights of classes are not one for each class.")
    if not all(is_number(one) and 0 < one < math.inf for one in weights):
        raise WrongError("A weight of a class is no positive number.")
    covered = public["covered_only"]
    if not isinstance(covered, list) or [type(one) for one in covered] != [bool] * stages:
        raise WrongError("The stages do not say which records they are about.")
    units = public["residual_units"]
    if not are_integers(units, stages) or not all(1 <= unit <= 2**20 for unit in units):
        raise WrongError("The residual units are not one integer up to 2^20 for each stage.")


def check_lists(values: object, rows: int, columns: int, name: str) -> None:
    """Refuse what is not so many lists of so many integers.

    Raises
    ------
    WrongError
        If it is not.
    """
    if not isinstance(values, list) or len(values) != rows:
        raise WrongError(f"The {name} are not {rows} lists.")
    if not all(are_integers(one, columns) for one in values):
        raise WrongError(f"The {name} are not {columns} integers each.")


def columns_of(public: dict[str, Any], released: dict[str, Any]) -> int:
    """Return how many columns the model of noisy sums has.

    Raises
    ------
    WrongError
        If labels of points stand beside targets that have none, or these are none.
    """
    if public["method"] == "record-moments":
        classes = len(released["classes"])
        return 1 if classes == 2 else classes
    if released["queries"]:
        raise WrongError("Sums were paid for, and no labels of points.")
    if public["method"] == "record-moments-of-labels":
        labels = public["labels"]
        if not are_sentences(labels) or len(set(labels)) < len(labels):
            raise WrongError("The labels are no list of names.")
        return len(labels)
    bounds = public["target_range"]
    if not isinstance(bounds, list) or len(bounds) != 2 or not all(map(is_number, bounds)):
        raise WrongError("The range of the numbers is none.")
    if not bounds[0] < bounds[1]:
        raise WrongError("The range of the numbers is empty.")
    return 1


def table_of(document: dict[str, Any]) -> tuple[int, int, float, float]:
    """Return for how many points a table is paid, how many integers answer each, and between which
    numbers they lie.

    Raises
    ------
    WrongError
        If its settings contradict its shape.
    """
    mechanism, shape, public = document["mechanism"], document["shape"], document["public"]
    released, teachers, queries = document["released"], shape["n_teachers"], shape["n_queries"]
    if released["queries"] or released["answered"] or "plan" in document:
        raise WrongError("The answers are one table, without rounds, and list no labels.")
    if public["method"] == "votes-of-numbers":
        bounds, steps = public["target_range"], shape["n_classes"] - 1
        if not isinstance(bounds, list) or len(bounds) != 2 or not all(map(is_number, bounds)):
            raise WrongError("The range of the numbers is none.")
        if not bounds[0] < bounds[1] or not math.isfinite(bounds[1] - bounds[0]):
            raise WrongError("The range of the numbers is empty.")
        if shape["moved"] != queries:
            raise WrongError("A teacher may change its number at every point.")
        if mechanism["kind"] == "vote-quantiles":
            return queries, 1, 0, steps
        far = 40 * (mechanism["sigma"] + 1)
        return queries, 1, -far, teachers * steps + far
    labels, cap = public["labels"], public["most_named"]
    sets = public["ballot"] == "sets"
    if public["ballot"] not in ("labels", "sets"):
        raise WrongError("The ballot is unknown.")
    least, most = (2, 8) if sets else (1, 10_000)
    if not are_sentences(labels) or not least <= len(set(labels)) == len(labels) <= most:
        raise WrongError("The labels are no list of names, or too many or too few.")
    if cap is not None and (sets or not is_count(cap, 1) or cap > len(labels)):
        raise WrongError("The cap on the labels of a teacher is none.")
    # two sets of one teacher differ in no more labels than there are, or than both name together
    rows = 1 if sets else len(labels)
    moved = min(rows, 2 * cap) if cap is not None else rows
    points = queries // rows
    votes = (points * rows, points * moved, 2 ** len(labels) if sets else 2, "gaussian")
    if votes != (queries, shape["moved"], shape["n_classes"], mechanism["noise"]):
        raise WrongError("The votes are not those of these labels, this ballot and this cap.")
    if mechanism["release"] == "labels":
        return points, len(labels), 0, 1
    far = 40 * (mechanism["scale"] + 1)
    return points, 2 ** len(labels) if sets else len(labels), -far, teachers + far


def check_values(document: dict[str, Any]) -> None:
    """Refuse released integers that are no labels, and more or other than the event pays for.

    Raises
    ------
    WrongError
        If they are.
    """
    mechanism, shape, public = document["mechanism"], document["shape"], document["public"]
    values, rows = (document["released"].get(name) for name in ("values", "rows"))
    if public["method"] in _TABLES:
        points, width, low, high = table_of(document)
        if not isinstance(rows, list) or not 1 <= len(rows) <= points:
            raise WrongError("Other rows were answered than paid for.")
        if not all(map(is_count, rows)) or len(set(rows)) < len(rows):
            raise WrongError("A row was answered twice, or is none.")
        check_lists(values, len(rows), width, "answers")
        if not all(low <= one <= high for answer in values for one in answer):
            raise WrongError("An answer is none that the mechanism could have drawn.")
        return
    if rows is not None:
        raise WrongError("Tables alone name rows.")
    if mechanism["kind"] == "noisy-sums":
        check_lists(values, len(mechanism["sigmas"]), shape["coordinates"], "sums")
    elif mechanism["kind"] == "exponential-choice":
        check_lists(values, 1, 1, "choices")
        if not 0 <= values[0][0] < public["n_candidates"]:
            raise WrongError("The choice fell on a candidate that there is not.")
        names = public.get("candidates")
        if names is not None and not (
            isinstance(names, list) and len(names) == public["n_candidates"]
        ):
            raise WrongError("The candidates have not one name each.")
    elif "expected_uncovered" in public:
        check_lists(values, 1, 1, "votes of uncovered records")
        # one cell for each vote of a record
        check_range([values[0][0] // votes_of(shape)], document)
    elif values is not None:
        raise WrongError("Labels and their counts are all that the mechanism draws.")


def check_start(start: object, n_weights: int, of_labels: bool) -> None:
    """Refuse a start that is not one model, of a release that is named.

    Raises
    ------
    WrongError
        If it is not.
    """
    if of_labels:
        raise WrongError("Sums of labels have no stage that could start from something.")
    if not isinstance(start, dict) or set(start) != {"certificate", "weights"}:
        raise WrongError("The start lacks or adds a field.")
    if not is_digest(start["certificate"]) or not are_integers(start["weights"], n_weights):
        raise WrongError("The start names no certificate, or its weights are none of this model.")


def are_integers(value: object, length: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) == length
        and all(type(item) is int and abs(item) < _MAX_INTEGER for item in value)
    )


def votes_of(shape: dict[str, Any]) -> int:
    """Return how many votes a record casts; one that is replaced takes as many away."""
    return int(shape["moved"] // (2 if shape["guarantee"]["relation"] == "replace-one" else 1))


def check_records(document: dict[str, Any]) -> None:
    """Refuse votes of records that do not fit in a table of these points.

    Raises
    ------
    WrongError
        If they do not.
    """
    shape, votes = document["shape"], votes_of(document["shape"])
    each = 2 if document["neighbours"] == "replace-one" else 1
    if shape["moved"] != each * votes or not 1 <= votes <= shape["n_queries"]:
        raise WrongError("A record votes at no public point, or at more than there are.")
    spare = -(-votes // shape["n_classes"]) if "expected_uncovered" in document["public"] else 0
    if shape["spare_rows"] != spare:
        raise WrongError("Uncovered records have other rows than their votes need.")
    if "plan" in document:
        raise WrongError("Votes of records are one table, without rounds.")


def check_counts(document: dict[str, Any]) -> str:
    """Refuse more queries, counts or abstentions than the mechanism pays for.

    Raises
    ------
    WrongError
        If there is more than was paid for.
    """
    released, mechanism, shape = document["released"], document["mechanism"], document["shape"]
    check_values(document)
    table = document["public"]["method"] in _TABLES
    # the number of columns follows from the mechanism; the certificate's own word is only compared
    columns = 0
    if mechanism.get("release") == "counts" and not table:
        one = shape["n_classes"] == 2 and shape["n_teachers"] is not None
        columns = 1 if one else shape["n_classes"]
    if released["count_columns"] != columns:
        raise WrongError(
            f"{released['count_columns']} counts for each query were released, and {columns} paid"
            " for."
        )
    queries, answered = released["queries"], released["answered"]
    if not answered <= queries <= shape.get("n_queries", queries):
        raise WrongError("More was answered than asked, or more asked than planned.")
    if answered > mechanism.get("max_answers", answered):
        raise WrongError("More was answered than paid for.")
    if mechanism["kind"] not in (_ANSWERS_SOME, *_ABSTAINS) and answered != queries:
        raise WrongError("The mechanism answers every query, and not all were answered.")
    if table:
        return f"{len(released['rows'])} answers, as paid for."
    return f"{answered} of {queries} queries answered, as planned and paid for."


def adds_to(part: dict[str, Any], unit: str, relation: str) -> bool:
    """Return whether the promise of a release, or of a choice, holds for another one.

    Votes of teachers about all records of a user are about each; what else a user adds may change
    by more. A record replaced is more than its label.
    """
    own = part["shape"]["guarantee"]
    if (own["unit"], own["relation"]) == (unit, relation):
        return True
    if own["relation"] != relation:
        return False
    if relation == "add-remove":
        by_teachers = part["shape"].get("n_teachers") is not None
        return by_teachers and (own["unit"], unit) == ("user", "record")
    return (own["unit"], unit) == ("record", "label")


def check_account(document: dict[str, Any]) -> str:
    """Refuse units, relations and sums that do not fit the dataset's budget.

    Raises
    ------
    WrongError
        If unit, relation or a sum does not fit.
    """
    composition = document["composition"]
    if (document["unit"] == "user") != (document["unit_column"] is not None):
        raise WrongError(
            "A promise to users names the column that distinguishes them, and no other one does."
        )
    if (composition["unit"], composition["neighbours"]) == ("label", "add-remove"):
        raise WrongError("Labels are replaced; they do not come and go.")
    if not adds_to(document, composition["unit"], composition["neighbours"]):
        raise WrongError("The release is about another unit or relation than the dataset's budget.")
    parts = [document, *document.get("choices", ())]
    for key in ("epsilon", "delta"):
        # under basic composition prices add up, so the total cannot be below them
        whole = math.fsum(part[key] for part in parts) if composition["kind"] == "basic" else 0
        spent, budget = composition["spent_after"][key], composition["budget"][key]
        if not whole <= spent * (1 + 1e-9) or not spent <= budget * (1 + 1e-9):
            raise WrongError(
                f"The {key} spent on the dataset is less than this release cost, or more than the"
                " budget."
            )
    if not document["price"]["epsilon"] == document["epsilon"]:
        raise WrongError("The price is stated at another epsilon.")
    price, most = document["price"], document["delta"] * (1 + 1e-9)
    if price["delta"] != document["delta"] or price["delta_recomputed"] > most:
        raise WrongError("The price states another delta than the promise.")
    return (
        f"Epsilon {composition['spent_after']['epsilon']:.6g} of"
        f" {composition['budget']['epsilon']:.6g} is spent."
    )


def check_software(document: dict[str, Any]) -> str:
    """Refuse noise of a version of OpenDP that is known to draw another distribution.

    Raises
    ------
    WrongError
        If that version is known to draw another distribution.
    """
    version = document["software"]["opendp"]
    found = re.match(r"\s*v?(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?", version)
    if found and tuple(int(part or 0) for part in found.groups()) in _WRONG_OPENDP:
        raise WrongError(
            f"OpenDP {shown(version)} drew the noise, which is known to draw another than it"
            " states."
        )
    return f"OpenDP {shown(version)} drew the noise."


def check_plan(document: dict[str, Any]) -> str:
    """Refuse a plan that does not fit what was released.

    Raises
    ------
    WrongError
        If it does not fit.
    """
    plan, used = document["plan"], document["released"]["queries"]
    if (
        plan["planned"] != document["shape"].get("n_queries")
        or plan["used"] != used
        or sum(plan["rounds"]) != used
    ):
        raise WrongError("Plan, rounds, mechanism and released queries do not add up.")
    if (plan["left"] == "none") != (used == plan["planned"]):
        raise WrongError("The plan says something else of what was left than its numbers.")
    if plan["left"] == "returned" and document["composition"]["kind"] != "renyi":
        raise WrongError("Only a renyi ledger takes queries back.")
    return f"{used} of {plan['planned']} planned queries used."


def check_assumptions(document: dict[str, Any]) -> str:
    """Refuse assumptions on choices that are not listed, and silence on choices that are.

    Raises
    ------
    WrongError
        If the list and the choices do not agree.
    """
    listed = sum(line.endswith(_OR_PAID) for line in document["assumptions"])
    chosen = bool(document.get("choices"))
    denied = chosen and any(line.endswith(_BLINDLY) for line in document["assumptions"])
    if (listed > 0) != chosen or denied:
        raise WrongError(
            "The assumptions and the list of choices say different things of what was chosen."
        )
    stated, limits = (len(document[name]) for name in ("assumptions", "not_protected"))
    return f"{stated} assumptions are stated, and {limits} limits."


def check_choice(number: int, choice: Any, document: dict[str, Any]) -> None:
    """Refuse a choice whose outcome is more than the one number, or the labels, that its event
    is about.

    Raises
    ------
    WrongError
        If the outcome is anything else.
    """
    outcome = "labels_sha256" if isinstance(choice, dict) and "labels_sha256" in choice else "value"
    check_shape(choice, {**_CHOICE_SHAPE, outcome: _OUTCOMES[outcome]}, f"Choice {number}")
    check_part(choice)
    if not adds_to(choice, document["unit"], document["neighbours"]):
        raise WrongError(f"Choice {number} is about another unit or relation.")
    # of labels, which are checked with their release, the digest alone is stated
    if outcome == "labels_sha256":
        return
    public, value = choice["public"], choice["value"]
    if public["method"] not in ("stability-quantile", "exponential-choice"):
        raise WrongError(f"Choice {number} was drawn by no known mechanism.")
    check_public(choice["mechanism"], public)
    if public["method"] == "exponential-choice" and not 0 <= value < public["n_candidates"]:
        raise WrongError(f"Choice {number} fell on a candidate that there is not.")


def check_choices(document: dict[str, Any]) -> str:
    """Refuse choices that are no choices, that share a reservation, or that would take hours to
    price.

    Raises
    ------
    WrongError
        If one is no choice, or two share a reservation.
    """
    choices = document["choices"]
    for number, choice in enumerate(choices, 1):
        check_choice(number, choice, document)
    if sum(choice["events"][0]["kind"] in _SLOW for choice in choices) > _MOST_SLOW:
        raise WrongError(f"More than {_MOST_SLOW} choices are label games or relabelled samples.")
    paid = [document["composition"]["reservation"], *(choice["reservation"] for choice in choices)]
    if len(set(paid)) < len(paid):
        raise WrongError(
            "Two of the choices, or a choice and the release, name the same reservation."
        )
    return f"{len(choices)} listed, each under a reservation of its own."


# --- The folder -----------------------------------------------------------------------------------

_FILES = re.compile(
    r"README\.txt|model-card\.md|(?:labels|answers)\.csv|schema\.json"
    r"|student\.(skops|onnx)|report\.html"
    r"|queries\.json|queries-[a-z]{1,20}\.(svg|png)"
)
_SIGNATURE, _SIGNATURE_BYTES = "certificate.sig", 64


def check_files(document: dict[str, Any], folder: str) -> str:
    """Refuse a folder that is not, file by file, the one that the certificate lists.

    Raises
    ------
    WrongError
        If a file is missing, added or changed.
    """
    listed = document["files"]
    # a folder of millions of names is not read to its end
    with os.scandir(folder) as entries:
        found = {entry.name for _, entry in zip(range(_MAX_FILES + 2), entries, strict=False)}
    # a signature is of 64 bytes, and no other content; whose it is, other programs tell
    signed = _SIGNATURE in found
    if signed:
        size = sum(map(len, blocks_of(os.path.join(folder, _SIGNATURE), _MAX_TOTAL)))
        if size != _SIGNATURE_BYTES:
            raise WrongError(f"{_SIGNATURE} has {size} bytes; a signature has 64.")
    found -= {"certificate.json", _SIGNATURE}
    for name in sorted(found ^ set(listed)):
        raise WrongError(
            f"{shown(name)} is {'not listed by the certificate' if name in found else 'missing'}."
        )
    for name, about in listed.items():
        if not _FILES.fullmatch(name):
            raise WrongError(f"{shown(name)} is no file of a release.")
        check_shape(about, _FILE_SHAPE, f"files.{name}")
    # before any file is read: what is claimed bounds what is read
    if sum(about["bytes"] for about in listed.values()) > _MAX_TOTAL:
        raise WrongError(f"The files have more than {_MAX_TOTAL} bytes together.")
    for name, about in listed.items():
        digest, size = hashlib.sha256(), 0
        for block in blocks_of(os.path.join(folder, name), about["bytes"]):
            digest.update(block)
            size += len(block)
        if (digest.hexdigest(), size) != (about["sha256"], about["bytes"]):
            raise WrongError(f"{name} is not the file that was released.")
    # the answers of a table stand on the certificate itself, and need no digest
    table = document["public"]["method"] in _TABLES
    if ("answers.csv" in listed) != table or ("labels.csv" in listed) == table:
        raise WrongError("The certificate lists another file of values than its mechanism has.")
    if not table and listed["labels.csv"]["sha256"] != document["released"]["labels_sha256"]:
        raise WrongError("The certificate states another digest of labels.csv.")
    note = f" {_SIGNATURE} was not checked: any 64 bytes look like one." if signed else ""
    return f"{len(listed)} files and no other, each the one that was released.{note}"


def cell(text: str) -> str:
    """Return a CSV cell as a release writes it."""
    if any(mark in text for mark in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def check_labels(document: dict[str, Any], folder: str) -> str:
    """Refuse rows of labels.csv that the mechanism did not pay for, and every other way to write
    them.

    Raises
    ------
    WrongError
        If a row was not paid for, or is written in another way.
    """
    released, mechanism = document["released"], document["mechanism"]
    most_silent = {**mechanism, **(mechanism.get("stream") or {})}.get("max_abstentions", 0)
    names, columns = [class_text(value) for value in released["classes"]], released["count_columns"]
    counted = names[1:] if columns == 1 else names[:columns]
    header = ["query", "label", "abstained", *(f"noisy_count[{name}]" for name in counted)]
    first = ",".join(map(cell, header)) + "\n"
    longest = max(len(first), 64 * (columns + 4) + 4 * max(map(len, names)))
    # every row is written anew and both digests compared, so that no second spelling carries more
    # than the rows say
    stated, found = hashlib.sha256(first.encode("utf-8", "surrogatepass")), hashlib.sha256()
    index = {name: place for place, name in enumerate(names)}
    asked = Asked()
    answered = abstained = 0
    problem = ""
    try:
        rows = csv.reader(lines_of(os.path.join(folder, "labels.csv"), longest, found))
        next(rows, None)
        for row in rows:
            query, label, silent = int(row[0]), row[1], row[2] == "true"
            counts = [int(count) for count in row[3:]]
            line = written(query, None if silent else label, counts)
            stated.update(line.encode("utf-8", "surrogatepass"))
            asked.add(query)
            if silent:
                abstained += 1
                continue
            answered += 1
            if len(counts) != columns or (
                columns and index[label] != label_of(counts, released["n_teachers"])
            ):
                raise WrongError(
                    f"Row {asked.count} of labels.csv has a label that its counts do not give."
                )
            if label not in index:
                raise WrongError(f"Row {asked.count} of labels.csv has a label that is no class.")
            stops = mechanism["kind"] != _ANSWERS_SOME
            if stops and abstained and abstained >= most_silent:
                raise WrongError(
                    f"Row {asked.count} of labels.csv is answered after the stream had stopped."
                )
            check_range(counts, document)
    except (csv.Error, ValueError, LookupError):
        problem = f"Row {asked.count + 1} of labels.csv is no row of a release."
    # raised after the handler, as the error at hand may quote the file
    if problem:
        raise WrongError(problem)
    if stated.hexdigest() != found.hexdigest():
        raise WrongError("labels.csv is not written as a release writes it.")
    if (asked.count, answered) != (released["queries"], released["answered"]):
        raise WrongError(
            "labels.csv holds another number of rows or answers than the certificate states."
        )
    return (
        f"labels.csv holds {asked.count} rows, {answered} answered, written as a release writes"
        " them."
    )


def check_answers(document: dict[str, Any], folder: str) -> str:
    """Refuse an answers.csv that is not, byte by byte, the answers of the certificate.

    Raises
    ------
    WrongError
        If it is not.
    """
    found, stated = hashlib.sha256(), hashlib.sha256()
    check_part(document)
    check_public(document["mechanism"], document["public"])
    check_values(document)
    for block in blocks_of(os.path.join(folder, "answers.csv"), _MAX_LABELS):
        found.update(block)
    numbers = document["public"]["method"] == "votes-of-numbers"
    for line in (number_lines if numbers else set_lines)(document):
        stated.update(f"{line}\n".encode("utf-8", "surrogatepass"))
    if stated.hexdigest() != found.hexdigest():
        raise WrongError("answers.csv does not hold the answers of the certificate.")
    return f"answers.csv holds the {len(document['released']['rows'])} answers of the certificate."


def number_lines(document: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of answers.csv of a table of numbers."""
    (low, high), shape = document["public"]["target_range"], document["shape"]
    width = (high - low) / (shape["n_classes"] - 1)
    votes = shape["n_teachers"] if document["mechanism"]["kind"] == "noisy-means" else 1
    yield "query,value"
    for row, answer in zip(
        document["released"]["rows"], document["released"]["values"], strict=True
    ):
        yield f"{row},{low + answer[0] / votes * width!r}"


def set_lines(document: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of answers.csv of a table of sets of labels."""
    public, released = document["public"], document["released"]
    labels, counts = public["labels"], document["mechanism"]["release"] == "counts"
    members = [[k] for k in range(len(labels))]  # of each count, the labels that it is about
    if counts and public["ballot"] == "sets":
        members = [
            [k for k in range(len(labels)) if number & 2**k] for number in range(2 ** len(labels))
        ]
    counted = ["+".join(labels[k] for k in one) for one in members] if counts else []
    yield ",".join(map(cell, ["query", *labels, *(f"noisy_count[{name}]" for name in counted)]))
    for row, answer in zip(released["rows"], released["values"], strict=True):
        votes = [0] * len(labels)
        for count, one in zip(answer, members, strict=True):
            for k in one:
                votes[k] += count
        teachers = document["shape"]["n_teachers"]
        named = [int(2 * vote >= teachers) for vote in votes] if counts else votes
        yield ",".join(map(str, [row, *named, *(answer if counts else [])]))


def lines_of(path: str, longest: int, digest: Any) -> Iterator[str]:
    """Yield the lines of labels.csv, none of which is longer than a release writes, and digest
    them.

    Raises
    ------
    WrongError
        If a line is longer.
    """
    decode = codecs.getincrementaldecoder("utf-8")("surrogatepass").decode
    rest = ""
    for block in blocks_of(path, _MAX_LABELS):
        digest.update(block)
        *whole, rest = (rest + decode(block)).split("\n")
        for line in (*whole, rest):
            if len(line) > longest:
                raise WrongError("labels.csv has a line that is longer than a release writes it.")
        for line in whole:
            yield f"{line}\n"
    rest += decode(b"", final=True)
    if rest:
        yield rest


class Asked:
    """The queries of labels.csv: how many there are, and which, in a bit for each."""

    PAGE = 1 << 16  # queries, in 8 kB
    MOST = 25_000 * PAGE

    def __init__(self) -> None:
        self.count = 0
        self._pages: dict[int, bytearray] = {}

    def add(self, query: int) -> None:
        """Take one query more, or refuse one that was named before or is no row of a public
        pool.

        Raises
        ------
        WrongError
            If it was named before, or is no row.
        """
        self.count += 1
        if not 0 <= query < self.MOST:
            raise WrongError("labels.csv names a row of no public pool.")
        number, place = divmod(query, self.PAGE)
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = bytearray(self.PAGE // 8)
        bit = 1 << place % 8
        if page[place // 8] & bit:
            raise WrongError("labels.csv names a query twice.")
        page[place // 8] |= bit


def written(query: int, label: str | None, counts: Iterable[int]) -> str:
    """Return one line of labels.csv."""
    cells = [
        str(query),
        "" if label is None else cell(label),
        "true" if label is None else "false",
        *map(str, counts),
    ]
    return ",".join(cells) + "\n"


def label_of(counts: list[int], n_teachers: int) -> int:
    """Return the class that noisy counts give.

    At least half of two classes, else the largest, the first of ties.
    """
    if len(counts) == 1:
        return int(2 * counts[0] >= n_teachers)
    return counts.index(max(counts))


def check_range(counts: list[int], document: dict[str, Any]) -> None:
    """Refuse counts of one query that the stated noise does not reach.

    Raises
    ------
    WrongError
        If there is one.
    """
    mechanism, teachers = document["mechanism"], document["shape"].get("n_teachers")
    # Laplace noise of a scale goes beyond sixty times of it with probability e^-60
    wide = 1.5 if mechanism.get("noise") == "laplace" else 1
    far = 40 * (wide * mechanism.get("scale", 0) + 1)
    # how many records voted is private, so a rule bounds their counts
    most = 10**12 if teachers is None else teachers
    if any(not -far <= count <= most + far for count in counts):
        raise WrongError("A count was released that noise of the stated size does not reach.")


# --- Prices: noisy counts (docs/explanation/prices.md, section 1) ---------------------------------


def gaussian_delta(sigma: float, n: int, epsilon: float) -> float:
    """Return delta of `n` integers under discrete Gaussian noise, each moved by one.

    At least the truth.
    """
    variance = n * sigma * sigma
    reach = 12.5 * math.sqrt(variance)
    kink = sigma * sigma * epsilon - n / 2  # below it the hockey stick is 0
    outside = 2 * math.exp(-(12.5**2) / 2)
    if kink >= reach:
        return min(outside, renyi_delta(lambda a: a * n / (2 * sigma * sigma), epsilon))
    if sigma < 4:
        return small_gaussian_delta(sigma, n, epsilon)
    first, last = math.floor(kink) + 1, math.ceil(reach)
    fourier = 5 * n * (last - max(first, -last) + 1) * math.exp(-(math.pi**2) * sigma * sigma / 2)
    if last - max(first, -last) > 2_000_000:
        return wide_gaussian_delta(sigma, n, epsilon, kink) + outside + fourier

    # a million terms are no rarity: nothing is computed in them that is the same in all
    spread, slope, exp, expm1 = 2 * variance, 2 * sigma * sigma, math.exp, math.expm1
    terms = (
        exp(-s * s / spread) * -expm1(epsilon - (2 * s + n) / slope)
        for s in range(max(first, -last), last + 1)
    )
    return math.fsum(terms) / math.sqrt(2 * math.pi * variance) + outside + fourier


def wide_gaussian_delta(sigma: float, n: int, epsilon: float, kink: float) -> float:
    """Return the integral in place of the sum over very many lattice points, plus a bound on
    what lies between."""
    deviation, variance = math.sqrt(n) * sigma, n * sigma * sigma

    def above(value: float) -> float:
        return 0.5 * math.erfc(value / math.sqrt(2))

    integral = above(kink / deviation) - math.exp(epsilon) * above((kink + n) / deviation)
    if kink >= deviation:
        density = math.exp(-kink * kink / (2 * variance)) / math.sqrt(2 * math.pi * variance)
        return integral + density * (4 * kink + 2 * n) / variance / 4
    return integral + (1 + math.exp(epsilon)) / variance


def vector_sum_price(event: dict[str, Any], epsilon: float) -> Price:
    """Return bounds on the price of noisy sums of integer vectors.

    That of continuous noise of variance sigma^2 - 4, but for what the rounding loses
    (docs/explanation/prices.md, section 10).

    Raises
    ------
    UndecidedError
        If the noise is too small for that.
    """
    sigmas, count = event["sigmas"], event["count"]
    if not min(sigmas) >= 4:
        raise UndecidedError("Sums with a sigma below 4 are not priced by this program.")
    squared = event["squared_sensitivity"] * count
    mu = math.sqrt(math.fsum(squared / (sigma**2 - 4) for sigma in sigmas))
    # the rounding's error lies 30 orders below what a float shows, for as many integers
    if not event["coordinates"] * count * len(sigmas) <= 10**12 or not mu <= 30:
        raise UndecidedError("So many sums, or so little noise, is not priced by this program.")
    first = math.erfc((epsilon / mu - mu / 2) / math.sqrt(2)) / 2
    second = math.erfc((epsilon / mu + mu / 2) / math.sqrt(2)) / 2
    # where the second is nothing to a float, leaving it out only raises the bound
    value = first - (math.exp(epsilon + math.log(second)) if second > 0 else 0.0)
    # of very short vectors the two nearly cancel
    lower, upper = max(0.0, value - 1e-13 * first), min(1.0, value + 1e-13 * first)
    return Price(
        lower * max(0.0, 1 - 2000 / min(sigmas) ** 2), upper, "a continuous Gaussian, rounded"
    )


def small_gaussian_delta(sigma: float, n: int, epsilon: float) -> float:
    """Return delta where the noise is too small for the normal density.

    Its distribution is convolved, in integers.
    """
    if n > 16_384:
        return renyi_delta(lambda a: a * n / (2 * sigma * sigma), epsilon)
    reach = math.ceil(12.5 * sigma * math.sqrt(n)) + 1
    bits = 200
    single = [math.exp(-x * x / (2 * sigma * sigma)) for x in range(math.ceil(40 * sigma) + 2)]
    mass = single[0] + 2 * math.fsum(single[1:])
    distribution = {
        x: math.ceil(single[abs(x)] / mass * 2**bits) for x in range(-len(single) + 1, len(single))
    }
    width = min(reach, len(single) - 1)
    power = [distribution[x] for x in range(-width, width + 1)]
    result, left = [1 << bits], n
    while left:
        if left & 1:
            result = convolved(result, power, reach, bits)
        power = convolved(power, power, reach, bits) if left > 1 else power
        left >>= 1
    centre = len(result) // 2
    losses = (
        (value, (2 * (place - centre) + n) / (2 * sigma * sigma))
        for place, value in enumerate(result)
    )
    kept = math.fsum(
        value / 2**bits * -math.expm1(epsilon - loss) for value, loss in losses if loss > epsilon
    )
    # each of at most n convolutions lets fall what lies beyond the reach
    return kept + 2 * n * math.exp(-(12.5**2) / 2)


def convolved(one: list[int], other: list[int], reach: int, bits: int) -> list[int]:
    """Return the convolution of two distributions on integers around 0, as integers over 2**bits,
    rounded up and cut."""
    size = (2 * bits + max(len(one), len(other)).bit_length() + 15) // 8
    packed = [
        int.from_bytes(b"".join(v.to_bytes(size, "little") for v in distribution), "little")
        for distribution in (one, other)
    ]
    length = len(one) + len(other) - 1
    whole = (packed[0] * packed[1]).to_bytes(size * (length + 1), "little")
    values = [int.from_bytes(whole[size * i : size * (i + 1)], "little") for i in range(length)]
    cut = max(0, length // 2 - reach)
    return [-(-value >> bits) for value in values[cut : length - cut]]


# --- Prices: Renyi divergences (section 8) --------------------------------------------------------


def renyi_delta(divergence: Callable[[float], float], epsilon: float) -> float:
    """Return the least delta that a Renyi divergence of some order gives; every order is a
    bound."""

    def log_delta(step: float) -> float:
        a = 1 + math.exp(step)
        try:
            value = (a - 1) * (divergence(a) - epsilon) + a * math.log1p(-1 / a) - math.log(a - 1)
        except OverflowError:
            return math.inf
        return value if value == value else math.inf

    steps = [step / 4 for step in range(-48, 57)]
    best = min(steps, key=log_delta)
    low, high = best - 0.25, best + 0.25
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(60):
        one, other = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, other) if log_delta(one) < log_delta(other) else (one, high)
    # never 0: a bound below the smallest number is that number
    return max(5e-324, math.exp(min(0.0, log_delta(best), log_delta((low + high) / 2))))


def randomised_response_divergence(a: float, e: float) -> float:
    """Return the Renyi divergence of order `a` of randomised response that is e-DP."""
    return (log_cosh((2 * a - 1) * e / 2) - log_cosh(e / 2)) / (a - 1)


def log_cosh(value: float) -> float:
    size = abs(value)
    if size < 1e-3:
        return size * size / 2  # from above: the next term is negative
    return size + math.log1p(math.exp(-2 * size)) - math.log(2)


# --- Prices: parts (section 3) --------------------------------------------------------------------


def parts_delta(count: int, e0: float, epsilon: float) -> float:
    """Return delta of `count` parts that are e0-DP each: randomised response, composed."""
    if count * e0 <= epsilon:
        return 0.0
    if count > 200_000:
        return renyi_delta(lambda a: count * randomised_response_divergence(a, e0), epsilon)
    log_one = e0 + math.log1p(math.exp(-e0))  # log(1 + e^e0)
    terms = []
    for i in range(count + 1):
        loss = (count - 2 * i) * e0
        if loss <= epsilon:
            break
        log_weight = (
            math.lgamma(count + 1)
            - math.lgamma(i + 1)
            - math.lgamma(count - i + 1)
            + (count - i) * e0
        )
        terms.append(math.exp(log_weight - count * log_one) * -math.expm1(epsilon - loss))
    return math.fsum(terms)


def ranged_price(event: dict[str, Any], epsilon: float) -> Price:
    """Return bounds on the price of draws whose losses lie in intervals of one length.

    From above by a Renyi divergence of a e^2 / 8 each, or as parts, and by chords from there to the
    pure loss of all, since delta is convex in e^epsilon; from below by randomised response of half
    the length, which is such a draw (docs/explanation/prices.md, section 16).
    """
    count, length = event["count"], event["epsilon"]
    whole = count * length
    if whole <= epsilon * (1 + 1e-9):
        return Price(0.0, 0.0, "plain addition")

    def divergence(a: float) -> float:
        return float(count * min(a * length**2 / 8, randomised_response_divergence(a, length)))

    def chord(start: float) -> float:
        found = min(renyi_delta(divergence, start), parts_delta(count, length, start))
        return found * (math.expm1(epsilon - whole) / math.expm1(start - whole))

    upper = chord(epsilon)
    low, high = 0.0, epsilon
    while upper > 0 and high - low > 1e-9 * (1 + epsilon):
        third = (high - low) / 3
        one, two = chord(low + third), chord(high - third)
        upper = min(upper, one, two)
        low, high = (low, high - third) if one < two else (low + third, high)
    least = parts_delta(count, length / 2, epsilon) if count <= 200_000 else 0.0
    return Price(least * (1 - ERROR), upper, "draws of bounded range")


def failing(count: int, failure: float) -> float:
    """Return the probability that one of `count` parts fails."""
    return -math.expm1(count * math.log1p(-failure)) if failure < 1 else 1.0


def with_failure(failure: float, delta: float) -> float:
    return failure + (1 - failure) * delta


def crossing_probability(event: dict[str, Any]) -> float:
    """Return p0, the probability that the noise alone answers a query of distance 0 (section 8).

    Fifty digits: the difference of two nearly equal numbers stands in the formula.
    """
    with localcontext() as context:
        context.prec = 60
        larger, smaller = sorted(
            (Decimal(event["threshold_scale"]), Decimal(event["query_scale"])), reverse=True
        )
        a, b, n = (-1 / larger).exp(), (-1 / smaller).exp(), event["threshold"] + 1
        if larger - smaller <= larger * Decimal("1e-20"):
            return float(a**n * ((n + 1) * (1 - a) + 2 * a * a / (1 + a) + a) / (1 + a) ** 2)

        def f(u: Decimal) -> Decimal:
            power: Decimal = u ** (n + 1)
            return power / ((1 - u * u) * (1 - u))

        return float((1 - a) ** 2 * (1 - b) ** 2 * (f(a) - f(b)) / ((a - b) * (1 - a * b)))


# --- Prices: streams and samples (sections 4, 5, 7) -----------------------------------------------


def table_delta(event: dict[str, Any], epsilon: float) -> float:
    """Return delta of a stream that answers by a table of chances (section 14).

    All that the table promises is at one order: each abstention multiplies the moment of that order
    by at most e^charge, and answers do not raise it.
    """
    a, count = event["order"], event["abstentions"]
    divergence = count * event["charge"] / (a - 1)
    log_delta = (a - 1) * (divergence - epsilon) + a * math.log1p(-1 / a) - math.log(a - 1)
    # divergences grow with the order, so smaller orders have at most this one
    smaller = renyi_delta(lambda order: divergence if order <= a else math.inf, epsilon)
    pattern = min(smaller, math.exp(min(0.0, log_delta)))
    return min(1.0, failing(count, event["false_answer"]) + pattern)


def stream_profile(event: dict[str, Any]) -> Callable[[float], float]:
    """Return the profile of a stream: delta at every epsilon, negative ones too."""
    if event["kind"] == "table-stream":
        return both_ways(lambda epsilon: table_delta(event, epsilon))
    count, first, second = (
        event["abstentions"],
        1 / event["threshold_scale"],
        2 / event["query_scale"],
    )
    failure = failing(count, crossing_probability(event))

    def at_least_zero(epsilon: float) -> float:
        charged = failure + renyi_delta(
            lambda a: count * one_vote_charge(a, second / 2) / (a - 1), epsilon
        )
        if event["refresh"]:
            parts = with_failure(failure, parts_delta(count, first + second, epsilon))
            return min(1.0, parts, charged)
        # without refresh one noise is on the threshold all along, so that it is paid for once
        pattern = renyi_delta(
            lambda a: (
                randomised_response_divergence(a, first) + count * charge(a, second) / (a - 1)
            ),
            epsilon,
        )
        whole = parts_delta(1, first + count * second, epsilon)
        return min(1.0, failure + pattern, charged, with_failure(failure, whole))

    return both_ways(at_least_zero)


def both_ways(at_least_zero: Callable[[float], float]) -> Callable[[float], float]:
    """Return a profile at every epsilon, from one at epsilons of at least 0."""

    def profile(epsilon: float) -> float:
        # both directions of a pair have this profile, so a negative epsilon follows from the
        # positive one
        if epsilon >= 0:
            return at_least_zero(epsilon)
        return 1 - math.exp(epsilon) * (1 - at_least_zero(-epsilon))

    return profile


def charge(a: float, e2: float) -> float:
    """Return kappa(a), what one abstention costs where the threshold was drawn once."""
    log_sum = e2 + math.log1p(math.exp(-e2))  # log(1 + e^e2)
    other = math.exp(e2 - log_sum - a * e2)  # q^a p^(1 - a)
    return a * e2 - log_sum - math.log1p(-other)


def one_vote_charge(a: float, e1: float) -> float:
    """Return kappa(a), what one abstention costs where the threshold is not moved (section 5)."""
    log_sum = e1 + math.log1p(math.exp(-e1))  # log(1 + e^e1)
    larger = math.exp(min(0.0, a * e1 - log_sum))  # p^a q^(1 - a)
    if larger > 0.999:
        return math.inf
    smaller = math.exp((1 - a) * e1 - log_sum)  # q^a p^(1 - a)
    excess = larger + smaller - 1
    if excess < 1e-6:
        # of a difference of nearly equal numbers: the exact form, a product
        excess = 2 * math.sinh(a * e1 / 2) * math.sinh((a - 1) * e1 / 2) / math.cosh(e1 / 2)
    return math.log1p(excess / (1 - larger))


def relabelled_delta(event: dict[str, Any], epsilon: float) -> float:
    """Return delta of a stream on a relabelled secret sample."""
    rate: float = event["sampled"] / event["out_of"]
    inner = epsilon if rate == 1 else math.log1p(math.expm1(epsilon) / rate)
    length = math.log1p(math.exp(event["relabel_epsilon"] / 2)) * (
        2 if event["relation"] == "replace-one" else 1
    )
    return rate * worst_mixture(stream_profile(event["stream"]), inner, length)


def worst_mixture(profile: Callable[[float], float], epsilon: float, length: float) -> float:
    """Return the maximum over t of p_t H(eps - t) + (1 - p_t) H(eps - t + length), from above.

    In u = e^-t the true H(eps - t) and H(eps - t + length) are convex, so chords lie above them. On
    a cell the sum becomes k0 + k1 u + k2 / u, whose maximum is known. The cells that may hold the
    maximum are halved until nothing is gained.
    """
    c = math.exp(length)

    def ends(t: float) -> tuple[float, float, float]:
        return math.exp(-t), profile(epsilon - t), profile(epsilon - t + length)

    def bound(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
        (u, near, far), (v, near_v, far_v) = one, other
        slope, slope_far = (near_v - near) / (v - u), (far_v - far) / (v - u)
        alpha, beta = near - slope * u - far + slope_far * u, slope - slope_far
        k0, k1, k2 = (
            far - slope_far * u + (c * alpha - beta) / (c - 1),
            slope_far + c * beta / (c - 1),
            -alpha / (c - 1),
        )
        places = [u, v]
        if k1 < 0 and k2 < 0 and min(u, v) < math.sqrt(k2 / k1) < max(u, v):
            places.append(math.sqrt(k2 / k1))
        return max(k0 + k1 * place + k2 / place for place in places)

    points = [ends(length * step / 64) for step in range(65)]
    times = [length * step / 64 for step in range(65)]
    cells = [
        (bound(points[i], points[i + 1]), times[i], times[i + 1], points[i], points[i + 1])
        for i in range(64)
    ]
    for _ in range(200):
        # the cell with the largest bound is split; wherever this stops, the bound holds
        cells.sort(key=lambda cell: cell[0])
        top, low, high, one, other = cells.pop()
        if high - low < length * 1e-6:
            return top
        middle = (low + high) / 2
        between = ends(middle)
        cells += [
            (bound(one, between), low, middle, one, between),
            (bound(between, other), middle, high, between, other),
        ]
    return max(cell[0] for cell in cells)


# --- Prices: labels alone, a game (section 2) -----------------------------------------------------


def tails_of(sigma: float) -> list[float]:
    """Return P(N >= t) for t = 0, 1, 2, ... of discrete Gaussian noise, each to its last digits."""
    most = math.ceil(14 * sigma) + 8
    weights = [math.exp(-x * x / (2 * sigma * sigma)) for x in range(most)]
    tails = [0.0] * (most + 1)
    for x in range(most - 1, -1, -1):
        tails[x] = tails[x + 1] + weights[x]
    whole = 2 * tails[1] + weights[0]
    return [tail / whole for tail in tails]


class Pairs:
    """The probabilities of a label 1 under neighbouring votes, as corners of a polygon that
    contains them all.

    A pair is (p, q, 1 - p, 1 - q). Where t = ceil(K / 2) - votes, p = P(N >= t) and q = P(N >= t -
    1). Pairs the other way round are these pairs with both outcomes exchanged, at t' = 2 - t, so
    they need not be listed.
    """

    def __init__(self, sigma: float, n_teachers: int | None) -> None:
        self.sigma, self._tails = sigma, tails_of(sigma)
        self.middle = 1  # of the t, which is its own mirror image
        self.reach = len(self._tails) - 2
        self.all_within = False  # whether there are no pairs beyond the reach
        if n_teachers is not None:
            half = -(-n_teachers // 2)
            farthest = max(half, 2 - (half - n_teachers + 1))
            self.all_within = farthest <= self.reach
            self.reach = min(self.reach, farthest)

    def _upper_tail(self, t: int) -> float:
        """Return P(N >= t)."""
        if t >= 0:
            return self._tails[min(t, len(self._tails) - 1)]
        return 1 - self._tails[min(1 - t, len(self._tails) - 1)]

    def at(self, t: int) -> tuple[float, float, float, float]:
        """Return the pair at t; of both numbers the smaller side is kept to its last digits."""
        return (
            self._upper_tail(t),
            self._upper_tail(t - 1),
            self._upper_tail(1 - t),
            self._upper_tail(2 - t),
        )

    def corners(self, fine: float, wide: float) -> list[tuple[float, float, float, float]]:
        """Return corners; lines lie `fine` deviations apart in the middle, where labels tell
        most, wider outside."""
        last = min(self.reach, math.ceil(9 * self.sigma) + 2)
        # the edge from t to t - 1, seen from the middle outward; 2 and 1 meet in the middle
        edges, t = [self.middle + 1], self.middle + 1
        while t < last:
            away = (t - self.middle + 1) / self.sigma
            t = min(last, t + max(1, int(self.sigma * max(fine, wide * (away - 0.6)))))
            edges.append(t)
        found = [self.at(self.middle)]
        for near, far in pairwise(edges):
            found.append(self._meeting_point(near, far))
        found.append(self.at(last))
        if last < self.reach:  # everything farther lies under this corner
            small = self._upper_tail(last)
            found.append((0.0, small, 1.0, 1 - small))
        return found + [(s, r, q, p) for p, q, r, s in found[1:]]

    def arc(self, first: int, last: int, fine: float) -> list[tuple[float, float, float, float]]:
        """Return corners of a polygon that, with equal chances, contains the pairs at first, ...,
        last, and as many turned round. Lines lie `fine` deviations apart."""
        found = []
        for low, high, far in ((max(first, 1), last, False), (max(2 - last, 2), 2 - first, True)):
            end = min(high, self.reach, math.ceil(9 * self.sigma) + 2)
            corners = []
            if low <= end:
                edges = [*range(low + 1, end, max(1, int(fine * self.sigma))), end]
                corners = [self.at(low), self.at(end)]
                corners += [self._meeting_point(*two) for two in pairwise(edges) if two[0] < two[1]]
            if end < high:
                small = self._upper_tail(max(end, low - 1))
                corners.append((0.0, small, 1.0, 1 - small))
            found += [(s, r, q, p) if far else (p, q, r, s) for p, q, r, s in corners]
        return found + [(q, p, s, r) for p, q, r, s in found]

    def _meeting_point(self, near: int, far: int) -> tuple[float, float, float, float]:
        """Return where the lines through two edges meet; both lie above all pairs."""
        if far == near + 1:
            return self.at(near)
        p1, q1 = self.at(near)[:2]
        p2, q2 = self.at(far - 1)[:2]
        first, second = (
            math.exp((2 * (edge - 1) - 1) / (2 * self.sigma**2)) for edge in (near, far)
        )
        p = (q2 - q1 + first * p1 - second * p2) / (first - second)
        q = q1 + first * (p - p1)
        return p, q, 1 - p, 1 - q


def attack_delta(pairs: Pairs, queries: int, epsilon: float, sigma: float) -> float:
    """Return what is reached by asking one and the same vote again and again.

    No price can be smaller.
    """
    best = 0.0
    for t in sorted(
        {
            pairs.middle + round(away / 10 * sigma)
            for away in (*range(-30, -5, 5), *range(-5, 6), *range(10, 31, 5))
        }
    ):
        if not 2 * pairs.middle - pairs.reach <= t <= pairs.reach:
            continue
        # probabilities that vanish in floats have no log; leaving them out only lowers this lower
        # bound
        if min(pairs.at(t)) > 0:
            best = max(best, repeated_delta(pairs.at(t), queries, epsilon))
    return best


def repeated_delta(pair: tuple[float, float, float, float], queries: int, epsilon: float) -> float:
    """Return what is reached by answers that all have one pair of chances."""
    p, q, r, s = pair
    terms = []
    for ones in range(queries + 1):
        choose = math.lgamma(queries + 1) - math.lgamma(ones + 1) - math.lgamma(queries - ones + 1)
        under_p = choose + ones * math.log(p) + (queries - ones) * math.log(r)
        loss = ones * math.log(p / q) + (queries - ones) * math.log(r / s)
        loss -= _LOST * (queries + abs(loss))
        if loss > epsilon and under_p > -700:
            terms.append(math.exp(under_p) * -math.expm1(epsilon - loss))
    return math.fsum(terms)


def one_label_price(
    pairs: Iterable[tuple[float, float, float, float]], epsilon: float, method: str
) -> Price:
    """Return bounds on what a single label costs that has one of these pairs, either way round."""
    ratio, lower, upper = math.exp(epsilon), 0.0, 0.0
    for p, q, r, s in pairs:
        for a, b, c, d in ((p, q, r, s), (q, p, s, r)):
            lower = max(lower, excess(a, ratio * b, -_LOST) + excess(c, ratio * d, -_LOST))
            upper = max(upper, excess(a, ratio * b, _LOST) + excess(c, ratio * d, _LOST))
    return Price(lower, upper * (1 + 1e-9) + 1e-300, method)


def excess(one: float, other: float, lost: float) -> float:
    """Return by how much a number is above another, with what floats may lose of both for it."""
    return max(0.0, one * (1 + lost) - other * (1 - lost))


class Cells:
    """Vectors of fixed-point numbers, packed into one integer each, so that integers do the work
    of arrays."""

    WEIGHT = 30  # bits of a weight: one digit of Python's integers

    def __init__(self, size: int, precision: int) -> None:
        self.size, self.precision = size, precision
        self.bytes = (precision + self.WEIGHT + 4 + 7) // 8
        self.width = 8 * self.bytes
        ones = self.packed([1] * size)
        self.all = (1 << self.width * size) - 1
        self.tops = ones << (self.width - 1)
        self.almost = ones * ((1 << self.WEIGHT) - 1)
        self.low = ones * ((1 << (self.width - self.WEIGHT)) - 1)

    def packed(self, values: Iterable[int]) -> int:
        return int.from_bytes(
            b"".join(value.to_bytes(self.bytes, "little") for value in values), "little"
        )

    def value(self, vector: int, place: int) -> int:
        return (vector >> (self.width * place)) & ((1 << self.width) - 1)

    def larger(self, one: int, other: int) -> int:
        """Return the larger number of every cell."""
        found = ((one | self.tops) - other) & self.tops
        mask = found - (found >> (self.width - 1))
        return other ^ ((one ^ other) & mask)

    def rounded(self, vector: int) -> int:
        """Return every cell over 2**WEIGHT, rounded up."""
        return ((vector + self.almost) >> self.WEIGHT) & self.low


def nothing_else(epsilon: float) -> float:
    """Return the profile of a mechanism that tells nothing."""
    return max(0.0, -math.expm1(epsilon)) if epsilon < 0 else 0.0


def game_profile(
    corners: list[tuple[float, float, float, float]],
    queries: int,
    reach: tuple[float, float],
    cells: int,
    precision: int,
) -> Callable[[float], float]:
    """Return the value of the game at every epsilon, from above.

    Convexity makes interpolation an upper bound, integers round up.

    Cells are a geometric grid of likelihood ratios x; `cells` of them make one step of the pair in
    the middle, which therefore falls on the grid. Values have `precision` bits after the point.
    Left of the grid the chord to (0, 1) lies above the value, right of it the last value. `reach`
    says how far the grid goes to the left and to the right of x = 1, in nats; what lies outside
    hardly counts, and is bounded from above.

    Raises
    ------
    UndecidedError
        If the game is too long to be played here.
    """
    p, q = corners[0][:2]
    laws = [((a, b), (c, d)) for a, b, c, d in corners]
    return profile_of_steps(laws, math.log(q / p) / cells, queries, reach, precision)


def cells_allowed() -> float:
    """Return how many cells one game may have, counted by steps and outcomes."""
    return _CELLS_A_MINUTE * _minutes.get()


def _the_time() -> str:
    return f"{_minutes.get():g} minutes (--minutes gives it more)"


Law = tuple[tuple[float, float], ...]  # chances of all outcomes, and the neighbour's


def profile_of_steps(
    laws: Sequence[Law],
    step: float,
    queries: int,
    reach: tuple[float, float],
    precision: int,
    passing: Sequence[tuple[int, Sequence[Law]]] = (),
) -> Callable[[float], float]:
    """Return what `game_profile` does, where a step is any of some pairs of distributions and a
    cell of the grid is `step` nats wide.

    With `passing` a step is a question with two outcomes, and the first one is followed by one of
    the pairs: each entry says how many of `laws`, from the first on, may follow, and what pairs
    the question may be then.

    Raises
    ------
    UndecidedError
        If the game would take longer than it may.
    """
    left, right = reach
    if not step * cells_allowed() > left + right:
        raise UndecidedError(f"A game of {queries} labels is too fine for {_the_time()}.")
    start = math.ceil(left / step)  # the cell of x = 1
    size = start + math.ceil(right / step) + 1
    asked = [law for _, questions in passing for law in questions]
    if size * queries * sum(map(len, [*laws, *asked])) > cells_allowed():
        raise UndecidedError(f"A game of {queries} labels takes more than {_the_time()}.")
    space, scale = Cells(size, precision), 1 << precision
    ready = {law: weights_of(law, step) for law in {*laws, *asked}}
    sure = {
        law: space.packed([math.ceil(giveaway(law) * scale * (1 << Cells.WEIGHT))] * size)
        for law in ready
    }
    places = [shift for move in ready.values() for part in move for _, shift in part]
    margin_left, margin_right = 1 + max(0, -min(places)), 2 + max(0, *places)
    below = [math.exp(-step * k) for k in range(margin_left, 0, -1)]
    vector = space.packed(
        [min(scale, math.ceil(nothing_else(step * (i - start)) * scale)) for i in range(size)]
    )
    limit = 1 << precision

    def padded(values: int) -> int:
        first, last = space.value(values, 0), space.value(values, size - 1)
        chord = [min(limit, limit - int((limit - first) * ratio) + 1) for ratio in below]
        pads = space.packed(chord), space.packed([last] * margin_right)
        return (
            pads[0]
            | (values << space.width * margin_left)
            | (pads[1] << space.width * (margin_left + size))
        )

    def best_of(listed: Sequence[Law], first: int, others: int) -> int:
        """Return the best value of some pairs; the first outcome leads to other values."""
        best = 0
        for law in listed:
            total = sure[law]
            for i, part in enumerate(ready[law]):
                for weight, shift in part:
                    wide = others if i else first
                    total += weight * (wide >> space.width * (margin_left + shift))
            total &= space.all
            best = space.larger(total, best) if best else total
        return space.rounded(best)

    for _ in range(queries):
        wide = padded(vector)
        if not passing:
            vector = best_of(laws, wide, wide)
            continue
        told, found, known = vector, vector, 0
        for followed, questions in passing:
            told = space.larger(told, best_of(laws[known:followed], wide, wide))
            found = space.larger(found, best_of(questions, padded(told), wide))
            known = followed
        vector = found
    content = vector.to_bytes(space.bytes * size, "little")
    values = [
        int.from_bytes(content[space.bytes * i : space.bytes * (i + 1)], "little") / scale
        for i in range(size)
    ]

    def profile(epsilon: float) -> float:
        # e^epsilon lies between two cells; the left one is the larger
        epsilon -= _LOST * (1 + abs(epsilon))
        place = start + math.floor(epsilon / step)
        if place >= size - 1:
            return values[-1]
        if place < 0:
            return min(1.0, 1 - (1 - values[0]) * math.exp(epsilon + step * start) + 1e-15)
        at = (math.exp(epsilon - step * (place - start)) - 1) / math.expm1(step)
        return (1 - at) * values[place] + at * values[place + 1]

    return profile


def spread_of(corners: list[tuple[float, float, float, float]], queries: int) -> float:
    """Return how far the likelihood ratio of so many labels usually goes, in nats."""
    p, q = corners[0][:2]
    return math.log(q / p) * math.sqrt(queries)


def game_delta(
    corners: list[tuple[float, float, float, float]],
    queries: int,
    epsilon: float,
    cells: int,
    precision: int,
    beside: Callable[[float], float] | None = None,
) -> float:
    """Return the value of the game at one epsilon, as `game_profile` computes it, by itself or with
    another mechanism, whose profile is `beside`.

    Raises
    ------
    UndecidedError
        If the game is too long to be played here.
    """
    spread = spread_of(corners, queries)
    reach = 4 * spread, 4 * spread + epsilon
    game = game_profile(corners, queries, reach, cells, precision)
    if beside is None:
        return game(epsilon)
    return composed_delta(game, beside, epsilon, 2.0**-precision)


def composed_delta(
    game: Callable[[float], float],
    beside: Callable[[float], float],
    epsilon: float,
    nothing: float,
) -> float:
    """Return delta of two mechanisms together, in any order, from above.

    The value of the game is averaged over the likelihood ratios of the other one
    (docs/explanation/prices.md, section 12): a game played before the other mechanism would be
    worth less, as its questions could not follow from what the other one told. The ratios are those
    of the other profile's chords in x, which lie above it; where the figures of a profile bend the
    wrong way, by their last digits, a chance is taken for nothing, which only raises the mean.

    Parameters
    ----------
    game, beside : callable
        Profiles, from above.
    epsilon : float
    nothing : float
        What may be left of the other profile where its chords end; it is added.
    """
    far = 0.5
    while nothing < beside(far) > beside(1.25 * far) and far < 300:
        far *= 1.25
    points = [far * (place / _CHORDS - 1) for place in range(2 * _CHORDS + 1)]
    values = [min(1.0, beside(point)) for point in points]
    ratios = [math.exp(point) for point in points]
    slopes = [(values[0] - 1) / ratios[0]]
    slopes += [
        (right - left) / (ratios[i + 1] - ratios[i])
        for i, (left, right) in enumerate(pairwise(values))
    ]
    # the chance of a ratio 1 / x is what the slope changes there, times x
    terms = [
        ratios[i] * max(0.0, after - before) * game(epsilon - points[i])
        for i, (before, after) in enumerate(pairwise([*slopes, 0.0]))
    ]
    return min(1.0, math.fsum(terms) * (1 + 1e-9) + values[-1])


def giveaway(law: Law) -> float:
    """Return the probability of outcomes that the other side never has.

    There x becomes 0, and its value is 1.
    """
    return math.fsum(p for p, q in law if q <= 0)


def weights_of(law: Law, step: float) -> list[list[tuple[int, int]]]:
    """Return, for each outcome of a pair of distributions, weights over 2**WEIGHT, rounded up,
    and shifts in cells.

    The value falls to the right, so shifts are rounded to the left.
    """
    found = []
    for weight, other in law:
        shares: tuple[tuple[float, int], ...] = ()
        if weight > 0 and other > 0:
            moved = math.log(other / weight)
            places = (moved - _LOST * (1 + abs(moved))) / step
            low = math.floor(places)
            at = min(1.0, math.expm1(step * (places - low)) / math.expm1(step))
            shares = ((1 - at, low), (at, low + 1)) if at > 1e-9 else ((1.0, low),)
        found.append(
            [(math.ceil(weight * share * (1 << Cells.WEIGHT)), shift) for share, shift in shares]
        )
    return found


def label_price(
    sigma: float, queries: int, n_teachers: int | None, epsilon: float, promised: float | None
) -> Price:
    """Return bounds on the price of labels alone; finer ones while the promise lies between
    them."""
    upper, method = gaussian_delta(sigma, queries, epsilon), "as the counts that they are read off"
    if sigma > 1e5 or queries > 20_000:
        return Price(0.0, upper, method)
    pairs = Pairs(sigma, n_teachers)
    return labels_between(pairs, queries, epsilon, promised, Price(0.0, upper, method))


def labels_between(
    pairs: Pairs, queries: int, epsilon: float, promised: float | None, known: Price
) -> Price:
    """Return bounds on the price of labels that have these pairs, within the known ones."""
    sigma, upper, method = pairs.sigma, known.upper, known.method
    if queries == 1 and pairs.all_within and pairs.reach <= 20_000:
        votes = range(2 - pairs.reach, pairs.reach + 1)
        one = one_label_price(map(pairs.at, votes), epsilon, "the worst pair of votes")
        return one._replace(lower=min(one.lower, upper) * (1 - ERROR), upper=min(one.upper, upper))
    lower = min(upper, attack_delta(pairs, queries, epsilon, sigma))
    if promised is not None and upper <= promised:
        return Price(lower, upper, method)
    target = upper if promised is None else promised
    precision = 40 - math.floor(math.log2(max(target, 1e-30)))
    cells = min(60, max(12, round(12 * math.sqrt(300 / queries))))
    wide = 0.35 * min(1.0, queries / 100)  # of few labels the pairs farther out count too
    for fine, finer in ((0.08, 1), (0.04, 2), (0.02, 2)):
        if promised is not None and lower > promised:
            break
        try:
            value = game_delta(
                pairs.corners(fine, wide), queries, epsilon, finer * cells, precision
            )
        except UndecidedError:
            break
        if value < upper:
            upper, method = value, f"a game on {cells} cells a step"
        if promised is not None and upper <= promised * (1 + ERROR):
            break
    return Price(min(lower, upper), upper, method)


# --- Prices: labels of more than two classes (section 15) -----------------------------------------


Chances = tuple[float, float, float]
CLASS_LAWS = 1400  # of a game's list, about


class ClassLabels:
    """Labels of more than two classes under discrete Gaussian noise on every count.

    The adversary sees the largest noisy count of the classes that are not touched. A label is then
    one of three outcomes, whose chances follow from two integers: u, the noise that the class
    losing a vote needs to win over the others, and w, that of the class gaining one. For a
    neighbour they are u + 1 and w - 1.
    """

    FAR, DEEP = 9, 3  # deviations; of one noise and of both, beyond which all is told
    MOST_SIGMA = 300  # votes; beyond, this program takes too long

    def __init__(self, sigma: float, order: float) -> None:
        self.sigma, self.order = sigma, order
        self.reach = math.ceil(14 * sigma) + 2
        weights = [
            math.exp(-x * x / (2 * sigma * sigma)) for x in range(-self.reach, self.reach + 1)
        ]
        whole = math.fsum(weights)
        self.pmf = [weight / whole for weight in weights]
        self.sums = [0.0, *accumulate(self.pmf)]

    def below(self, t: int) -> float:
        """Return P(N < t)."""
        return self.sums[min(max(0, t + self.reach), len(self.pmf))]

    def chances(self, points: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Chances]:
        """Return the chances of the three outcomes at each point (u, w): the others, the first
        class, the second."""
        lines: dict[int, list[int]] = {}
        for u, w in points:
            lines.setdefault(w - u, []).append(u)
        found = {}
        size, reach = len(self.pmf), self.reach
        for d, firsts in lines.items():
            start = min(max(0, min(min(firsts), min(firsts) + d) + reach), size - 1)
            pmf = self.pmf[start:]
            one = self._weighted_sums(pmf, start + d + 1)
            two = self._weighted_sums(pmf, start - d)
            for u in firsts:
                found[u, u + d] = (
                    self.below(u) * self.below(u + d),
                    one[len(pmf) - 1 - (u + reach - start)],
                    two[len(pmf) - 1 - (u + d + reach - start)],
                )
        return found

    def _weighted_sums(self, pmf: list[float], first: int) -> list[float]:
        """Return the sums of pmf times P(N < k) from the last k on, where the first k stands at
        place `first` of the sums."""
        most = len(self.sums) - 1
        below = [self.sums[min(max(0, first + i), most)] for i in range(len(pmf))]
        return list(accumulate(map(mul, reversed(pmf), reversed(below))))

    def excesses(self, here: Chances, there: Chances) -> list[tuple[float, float]]:
        """Return, for each outcome, what convex functions of order a of its ratio are."""
        a, found = self.order, []
        for p, q in zip(here, there, strict=True):
            log_r = math.log(q / p)
            change = math.expm1(log_r)
            found.append(
                (
                    math.expm1((1 - a) * log_r) + (a - 1) * change,
                    math.expm1(a * log_r) - a * change,
                )
            )
        return found

    def left_out(self, edge: int, deep: int) -> float:
        """Return what noise beyond the squares adds at most."""
        both, low = range(-self.reach, -deep), range(-self.reach, -edge)
        high, whole = range(edge, self.reach + 1), range(-self.reach, self.reach + 1)
        pairs = [(both, both)]
        pairs += [pair for far in (low, high) for pair in ((far, whole), (whole, far))]
        return math.fsum(self._pointwise_moment(*pair) for pair in pairs)

    def _pointwise_moment(self, one: range, other: range) -> float:
        a, totals = self.order, [1.0, 1.0, 1.0, 1.0]
        for noises, sign in ((one, -1), (other, 1)):
            sums = [0.0, 0.0, 0.0, 0.0]
            for n in noises:
                log_r = (sign * 2 * n - 1) / (2 * self.sigma**2)
                for i, power in enumerate((0.0, 1.0, 1 - a, a)):
                    sums[i] += self.pmf[n + self.reach] * math.exp(power * log_r)
            totals = [total * value for total, value in zip(totals, sums, strict=True)]
        p, q, there, back = totals
        return max(there - p + (a - 1) * (q - p), back - p - a * (q - p))

    def keep(self, most: float) -> bool:
        """Return whether the moment of order a, less 1, is at most `most` for all votes."""
        edge, deep = self.FAR * math.ceil(self.sigma), math.ceil((self.DEEP + 0.25) * self.sigma)
        most = (most - self.left_out(edge, deep)) / (1 + 1e-5)
        side = 1
        while side < self.sigma / 4:
            side *= 2
        starts = range(-edge, edge + 1, side)
        squares = [(u, w) for u in starts for w in starts]
        while squares:
            far = side - 1
            squares = [(u, w) for u, w in squares if max(u, w) + far >= -deep]
            corners = [(u, w + far) for u, w in squares] + [(u + far, w) for u, w in squares]
            values = self.chances({*corners, *((u + 1, w - 1) for u, w in corners)})
            open_ones = []
            for u, w in squares:
                high, low = (u, w + far), (u + far, w)
                here = values[high]
                if far:
                    top = self.below(u + far) * self.below(w + far)
                    here = top, here[1], values[low][2]
                above = self.excesses(values[high], values[u + 1, w + far - 1])
                under = self.excesses(values[low], values[u + far + 1, w - 1]) if far else above
                bound = max(
                    math.fsum(
                        p * max(one[way], two[way])
                        for p, one, two in zip(here, above, under, strict=True)
                    )
                    for way in (0, 1)
                )
                if bound > most:
                    open_ones.append((u, w))
            # a square bounds its points from above: in parts it may fit yet, a point alone may not
            if open_ones and side == 1:
                return False
            side //= 2
            squares = [(u + i, w + j) for u, w in open_ones for i in (0, side) for j in (0, side)]
        return True


class ThreeOutcomes:
    """A list of pairs of distributions on three outcomes that dominates what a label of more than
    two classes tells (section 15).

    The list holds what labels tell at the knots of a net over the lattice of `ClassLabels`, both
    ways round, with their ratios spread. Each point of the lattice has to lie below the mixture of
    the four knots around it: its hockey stick nowhere above theirs.
    """

    LEAST_SIGMA, MOST_SIGMA = 10, 300  # votes
    FAR, DEEP = 7.8, 5.4  # deviations; of one noise and of both, beyond which all is told
    CHARGE = 5e-14  # a label, for noises farther out and for what the comparison lets pass
    PASSED = 5e-15
    OFF = 1e-11  # what floats lose of a chance, and of a ratio of two, at most
    MOST_SPREAD = 0.4
    STEPS = (
        *(0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.35, 1.5, 1.8, 2.2, 2.7),
        *(3.4, 4.4, 5.4, 6.5, 7.5, 8.5),
    )
    SUMS = (
        *(-3.6, -1.7, -1.3, -1.1, -0.9, -0.7, -0.5, -0.25, 0, 0.25, 0.6, 1.1, 1.9, 2.9, 3.8, 4.7),
        *(5.4, 6.1, 7.2, 8.8),
    )

    def __init__(self, sigma: float, excess: float) -> None:
        self.sigma, self.labels = sigma, ClassLabels(sigma, 2.0)
        root = math.sqrt(2) * sigma
        steps = sorted({max(1, round(at * root)) for at in self.STEPS})
        self.steps = [1 - d for d in reversed(steps)] + steps
        self.sums = sorted({2 * round(at * root / 2) for at in self.SUMS})
        self.edge, self.deep = math.ceil(self.FAR * sigma), math.ceil(self.DEEP * sigma)
        self.most = [value * (1 + excess) for value in self._largest_moments()]
        self.knots = self._spread_laws()
        self.cells: dict[tuple[int, int], list[tuple[float, list[float]]]] = {}

    def _ratio_moments(self, law: Law) -> list[float]:
        """Return moments of the ratios less 1: of order 2, and of two more in both directions."""
        sums = [0.0] * 7
        for p, q in law:
            ratio = q / p
            sums[0] += p * (ratio - 1) ** 2
            log_r, place = math.log(ratio), 1
            for tilt in (0.4, 0.8, 1.2):
                for a in (tilt * self.sigma, 1 - tilt * self.sigma):
                    sums[place] += p * (math.exp(a * log_r) - 1 - a * (ratio - 1))
                    place += 1
        return sums

    def _laws_at(self, points: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Law]:
        values = self.labels.chances({*points, *((u + 1, w - 1) for u, w in points)})
        return {
            (u, w): tuple(zip(values[u, w], values[u + 1, w - 1], strict=True)) for u, w in points
        }

    def _largest_moments(self) -> list[float]:
        stride = max(1, round(self.sigma / 9))
        axis = range(-math.ceil(4 * self.sigma), math.ceil(2 * self.sigma), stride)
        laws = self._laws_at([(u, w) for u in axis for w in axis]).values()
        largest = [max(column) for column in zip(*map(self._ratio_moments, laws), strict=True)]
        for i in range(1, len(largest), 2):  # both directions have the same
            largest[i] = largest[i + 1] = max(largest[i : i + 2])
        return largest

    def _spread_laws(self) -> list[list[Law]]:
        """Return the spread laws of all knots, sum by sum."""
        rim = self.edge + math.ceil(self.sigma)
        places = []
        for row, total in enumerate(self.sums):
            for d in self.steps:
                u = (total + d % 2 - d) // 2
                if row == 0:  # stands for all that lies deeper
                    top = max(-self.deep, abs(d) - self.edge)
                    u = min(top, top - d)
                w = u + d
                places.append((min(max(u, -rim), rim), min(max(w, -rim), rim)))
        values = self._laws_at(places)
        laws = [self._spread_law(values[place]) for place in places]
        n = len(self.steps)
        return [laws[n * row : n * (row + 1)] for row in range(len(self.sums))]

    def _spread_law(self, law: Law) -> Law:
        """Return the law with its ratios as far from 1 as the moments allow, and sums of 1."""
        low, high = 0.0, self.MOST_SPREAD
        for _ in range(10):
            middle = (low + high) / 2
            wide = tuple((p, p + (1 + middle) * (q - p)) for p, q in law)
            if min(q / p for p, q in wide) >= 0.1 and all(
                value <= most
                for value, most in zip(self._ratio_moments(wide), self.most, strict=True)
            ):
                low = middle
            else:
                high = middle
        found = [(p, p + (1 + low) * (q - p)) for p, q in law]
        largest = max(range(3), key=lambda i: found[i][0])
        others = [found[i] for i in range(3) if i != largest]
        found[largest] = 1 - math.fsum(p for p, _ in others), 1 - math.fsum(q for _, q in others)
        return tuple(found)

    def laws(self) -> list[Law]:
        """Return the list, without laws that another one of it dominates."""
        every = [law for row in self.knots for law in row]
        every += [tuple((q, p) for p, q in law) for law in every]
        every.sort(key=lambda law: -math.fsum((q - p) ** 2 / p for p, q in law))
        kept: list[Law] = []
        tests: list[list[tuple[float, float]]] = []
        for law in every:
            for test in tests:
                if all(above_silence(law, x) <= height for x, height in test):
                    break
            else:
                kept.append(law)
                points = [1.0, *(p / q for p, q in law)]
                tests.append([(x, above_silence(law, x) + 1e-15 * min(1.0, x)) for x in points])
        return kept

    def _cell_sticks(self, column: int, row: int) -> list[tuple[float, list[float]]]:
        """Return where the slopes of four knots' hockey sticks change, and the sticks there."""
        found = self.cells.get((column, row))
        if found is None:
            four = [self.knots[j][i] for j in (row, row + 1) for i in (column, column + 1)]
            points = sorted({1.0, *(p / q for law in four for p, q in law)})
            found = [(x, [above_silence(law, x) for law in four]) for x in points]
            self.cells[column, row] = found
        return found

    def cover(self) -> bool:
        """Return whether each point of the lattice lies below the mixture around it."""
        side = 1
        while side < self.sigma / 5:
            side *= 2
        starts = range(-self.edge, self.edge + 1, side)
        squares = [(u, w) for u in starts for w in starts]
        while squares:
            far = side - 1
            squares = [
                (u, w)
                for u, w in squares
                if max(u, w) + far >= -self.deep and u <= self.edge and w <= self.edge
            ]
            corners = [(u, w + far) for u, w in squares]
            corners += [(u + far, w) for u, w in squares] if far else []
            laws = self._laws_at(corners)
            open_ones = [
                (u, w)
                for u, w in squares
                if not self._square_below(u, w, far, laws[u, w + far], laws[u + far, w])
            ]
            # its bound holds for all points of a square: in parts it may fit yet, a point may not
            if open_ones and side == 1:
                return False
            side //= 2
            squares = [(u + i, w + j) for u, w in open_ones for i in (0, side) for j in (0, side)]
        return True

    def _square_below(self, u: int, w: int, far: int, high: Law, low: Law) -> bool:
        """Return whether all points of a square lie below the mixture at its middle.

        `high` and `low` are its laws with the largest and with the smallest ratios.
        """
        most = (self.labels.below(u + far) * self.labels.below(w + far), high[1][0], low[2][0])
        terms = [
            (p * (1 + self.OFF), b / a * (1 - self.OFF), d / c * (1 + self.OFF))
            for p, (a, b), (c, d) in zip(most, low, high, strict=True)
        ]
        column, across = share_between(self.steps, w - u)
        row, along = share_between(self.sums, u + w + far)
        shares = (
            *((1 - along) * (1 - across), (1 - along) * across),
            *(along * (1 - across), along * across),
        )
        for x, heights in self._cell_sticks(column, row):
            found = sum(map(mul, shares, heights)) + self.PASSED * min(1.0, x)
            down = [p * (1 - x * least) if x * least < 1 else 0.0 for p, least, _ in terms]
            up = [p * (x * greatest - 1) if x * greatest > 1 else 0.0 for p, _, greatest in terms]
            here, there = (down, up) if x >= 1 else (up, down)
            if here[0] + here[1] + here[2] <= found:
                continue
            # any outcome is what the two others leave
            between = -abs(1 - x)
            if not any(
                max(here[i] + here[j], between + there[i] + there[j]) <= found
                for i, j in ((0, 1), (0, 2), (1, 2))
            ):
                return False
        return True


def share_between(knots: Sequence[int], at: float) -> tuple[int, float]:
    """Return between which two knots a number lies, and how far along; beyond an end, that end."""
    place = min(max(bisect_right(knots, at) - 1, 0), len(knots) - 2)
    return place, min(max((at - knots[place]) / (knots[place + 1] - knots[place]), 0.0), 1.0)


def above_silence(law: Law, x: float) -> float:
    """Return by how much a hockey stick exceeds that of silence; the largest outcome is what the
    others leave."""
    largest = max(range(len(law)), key=lambda i: law[i][0])
    down = up = 0.0
    for i, (p, q) in enumerate(law):
        if i != largest:
            gap = p - x * q
            if gap > 0:
                down += gap
            else:
                up -= gap
    return max(down, 1 - x + up) if x >= 1 else max(up, down - 1 + x)


def spread_of_classes(sigma: float, queries: int) -> float:
    """Return about how far the losses of labels of more than two classes spread."""
    return 1.135 / sigma * math.sqrt(queries)


def class_game_profile(
    sigma: float, queries: int, reach: tuple[float, float], precision: int
) -> Callable[[float], float] | None:
    """Return the value of the game of labels of more than two classes at every epsilon, from above;
    None where it is too long for this program. `reach` is as for `game_profile`."""
    cells = min(60, max(12, round(10 * math.sqrt(300 / queries))))
    step = 1.135 / sigma / cells
    size = (reach[0] + reach[1]) / step
    if not ThreeOutcomes.LEAST_SIGMA <= sigma <= ThreeOutcomes.MOST_SIGMA:
        return None
    # the list takes about as long as a game of so many cells
    if 1e7 * sigma + size * queries * 3 * CLASS_LAWS > cells_allowed():
        return None
    for excess in (0.01, 0.013, 0.017, 0.022, 0.03):
        net = ThreeOutcomes(sigma, excess)
        if net.cover():
            break
    else:
        return None
    game = profile_of_steps(net.laws(), step, queries, reach, precision)
    return lambda epsilon: game(epsilon) + queries * ThreeOutcomes.CHARGE


def threshold_divergence(sigma: float, a: float) -> float:
    """Return the largest Renyi divergence of order a of an answer about a threshold."""
    pairs, worst = Pairs(sigma, None), 0.0
    for t in range(2 - pairs.reach, pairs.reach + 1):
        p, q, r, s = pairs.at(t)
        if min(p, q, r, s) <= 0:
            continue
        up, down = math.log(q / p), math.log(s / r)
        worst = max(
            worst,
            p * math.expm1((1 - a) * up) + r * math.expm1((1 - a) * down),
            q * math.expm1((a - 1) * up) + s * math.expm1((a - 1) * down),
        )
    return math.log1p(worst * (1 + 1e-9) + 1e-15) / (a - 1)


def classes_fit(
    sigma: float, labels: int, epsilon: float, promised: float, threshold: tuple[float, int] | None
) -> bool:
    """Return whether labels of more than two classes, beside answers about a threshold, keep a
    delta by their Renyi divergence of some order."""
    if not 1 <= sigma <= ClassLabels.MOST_SIGMA or not promised > 0:
        return False
    if threshold is not None and not 4 <= threshold[0] <= 2_000:
        return False
    found = []
    for a in (1 + 0.25 * 1.1**i for i in range(80)):
        if a > 1 + 2 * sigma or (threshold is not None and a > 1 + threshold[0]):
            break
        factor = a * math.log1p(-1 / a) - math.log(a - 1)
        room = epsilon + (math.log(promised) - factor) / (a - 1)
        # before the answers about the threshold are computed, they are nearly 2 / pi of counts
        likely = labels * a / sigma**2 * (0.64 + 0.015 * (a / sigma) ** 2)
        if threshold is not None:
            likely += threshold[1] * 0.637 * a / (2 * threshold[0] ** 2)
        found.append((room / likely, a, room))
    # with little noise the likely divergence is off by some per cent, and more orders are tried
    for share, a, room in sorted(found, reverse=True)[: 8 if sigma < 20 else 1]:
        if threshold is not None:
            room -= threshold[1] * threshold_divergence(threshold[0], a)
        limit = math.expm1(min(700.0, (a - 1) * room / labels)) * (1 - 1e-9)
        if share > 0.9 and ClassLabels(sigma, a).keep(limit):
            return True
    return False


def even_vote(sigma: float) -> tuple[float, float, float, float]:
    """Return the chances of a class that is as high as one other, and far above all the rest.

    The difference of both noises is discrete Gaussian noise, and moves by two votes.
    """
    tails = tails_of(math.sqrt(2) * sigma)
    less, more = tails[1], 1 - tails[2]
    return less, more, 1 - less, 1 - more


def class_labels_price(event: dict[str, Any], epsilon: float, promised: float | None) -> Price:
    """Return bounds on the price of labels of more than two classes.

    First as noisy counts; while the promise is less, by a Renyi divergence that all votes keep, and
    by a game. The lower bound is an even vote between two classes, asked again and again.
    """
    sigma, queries = event["sigma"], event["queries"]
    upper, method = gaussian_delta(sigma, 2 * queries, epsilon), "as the counts they are read off"
    lower = 0.0
    if 4 <= sigma <= 1e4 and queries <= 20_000:
        lower = repeated_delta(even_vote(sigma), queries, epsilon) * (1 - ERROR)
    if (
        promised is not None
        and lower <= promised < upper
        and classes_fit(sigma, queries, epsilon, promised, None)
    ):
        return Price(min(lower, promised), promised, "a divergence that all votes keep")
    # the game takes longest: only where all else leaves the promise open
    if promised is not None and lower <= promised < upper:
        precision = 40 - math.floor(math.log2(max(promised, 1e-30)))
        far = 5 * spread_of_classes(sigma, queries)
        with suppress(UndecidedError):
            game = class_game_profile(sigma, queries, (far, far + epsilon), precision)
            if game is not None and game(epsilon) < upper:
                upper, method = game(epsilon), "a game of three outcomes"
    return Price(min(lower, upper), upper, method)


# --- Prices: labels drawn from a table (section 13) -----------------------------------------------


def table_points(weights: list[int], n_teachers: int) -> list[tuple[int, int]]:
    """Return the chances of label 1 under v and v + 1 votes, for all v that differ."""
    upper = [_ONE - weight for weight in weights]
    if n_teachers % 2 == 0:
        upper = upper[1:]
    chances = [*reversed(weights), *upper]
    return [(p, q) for p, q in pairwise(chances) if p < q]


def turns_right(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> bool:
    return (b[1] - a[1]) * (c[0] - b[0]) > (c[1] - b[1]) * (b[0] - a[0])


def table_hull(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the points above which no line between two others passes."""
    found: list[tuple[int, int]] = []
    for point in points:
        while len(found) >= 2 and not turns_right(found[-2], found[-1], point):
            found.pop()
        found.append(point)
    return found


def meeting_of(
    a: tuple[int, int], b: tuple[int, int], c: tuple[int, int], d: tuple[int, int]
) -> tuple[Fraction, Fraction]:
    """Return where the line through the first two points meets that through the last two."""
    first, second = Fraction(b[1] - a[1], b[0] - a[0]), Fraction(d[1] - c[1], d[0] - c[0])
    p = (c[1] - a[1] + first * a[0] - second * c[0]) / (first - second)
    return p, a[1] + first * (p - a[0])


def table_corners(
    weights: list[int], n_teachers: int, share: float
) -> list[tuple[float, float, float, float]]:
    """Return corners of a polygon around all pairs of a table, the one that tells most first.

    Lines through edges of the hull lie on or above all pairs. Edges between two are left out as
    long as the two meet at most `share` above the hull, as a share of the gap that is there.
    """
    hull = table_hull(table_points(weights, n_teachers))
    across, gaps = [float(p) for p, _ in hull], [float(q - p) for p, q in hull]
    slopes = [(gaps[k + 1] - gaps[k]) / (across[k + 1] - across[k]) for k in range(len(hull) - 1)]
    corners: list[tuple[Any, Any]] = [hull[0]]
    edge, last = 0, len(hull) - 2
    while edge < last:
        ahead = edge + 1
        # floats say which edges to leave out; where two lines meet is exact
        while ahead < last and slopes[edge] > slopes[ahead + 1]:
            fall = slopes[edge] - slopes[ahead + 1]
            along = gaps[ahead + 1] - slopes[ahead + 1] * (across[ahead + 1] - across[edge])
            along = (along - gaps[edge]) / fall
            place = bisect_right(across, across[edge] + along, edge + 1, ahead + 2) - 1
            inside = across[edge] - across[place] + along
            below = gaps[place] + slopes[min(place, last)] * inside
            if not gaps[edge] + slopes[edge] * along <= (1 + share) * below:
                break
            ahead += 1
        alone = ahead == edge + 1
        ends = hull[edge : edge + 2] + hull[ahead : ahead + 2]
        corners.append(hull[ahead] if alone else meeting_of(*ends))
        edge = ahead
    if last >= 0:
        corners.append(hull[-1])
    found = [
        (float(p / _ONE), float(q / _ONE), float((_ONE - p) / _ONE), float((_ONE - q) / _ONE))
        for p, q in corners
    ]

    def loses(corner: tuple[float, float, float, float]) -> float:
        p, q, r, s = corner
        return p * math.log(q / p) ** 2 + r * math.log(s / r) ** 2

    first = max(found, key=loses)
    return [first, *(corner for corner in found if corner is not first)]


def table_price(event: dict[str, Any], epsilon: float, promised: float | None) -> Price:
    """Return bounds on the price of labels drawn from a table of chances.

    First as parts of its largest loss; while the promise is less, as a game.
    """
    queries, drawn = event["queries"], event["chances"]
    weights, teachers = drawn["weights"], drawn["n_teachers"]
    points = table_points(weights, teachers)
    pairs = [(p / _ONE, q / _ONE, (_ONE - p) / _ONE, (_ONE - q) / _ONE) for p, q in points]
    # the other way round are these with both labels exchanged, as the table is symmetric
    ratio = max(max((q - p) / p, (q - p) / (_ONE - q)) for p, q in points)
    loss = math.log1p(ratio) * (1 + 1e-14)
    upper, method = parts_delta(queries, loss, epsilon), "parts of the largest loss"
    if queries == 1:
        return one_label_price(pairs, epsilon, "the worst pair of votes")
    if queries > 20_000:
        return Price(0.0, upper, method)
    middle, step = len(pairs) // 2, max(1, len(pairs) // 30)
    asked = [*range(max(0, middle - 3), middle), *range(middle, len(pairs), step)]
    lower = min(upper, max(repeated_delta(pairs[i], queries, epsilon) for i in asked))
    target = upper if promised is None else promised
    precision = 40 - math.floor(math.log2(max(target, 1e-30)))
    cells = min(60, max(12, round(12 * math.sqrt(300 / queries))))
    work = 0.0
    for share, finer in ((3e-4, 1), (1e-4, 2)):
        if promised is not None and (lower > promised or upper <= promised * (1 + ERROR)):
            break
        corners = table_corners(weights, teachers, share)
        # a game goes over eight times its spread, and epsilon, in steps of the first corner
        steps = 8 * math.sqrt(queries) + epsilon / math.log(corners[0][1] / corners[0][0])
        work += finer * cells * steps * queries * len(corners)
        if 2 * work > cells_allowed():
            break
        value = game_delta(corners, queries, epsilon, finer * cells, precision)
        if value < upper:
            upper, method = value, f"a game on {finer * cells} cells a step"
    return Price(min(lower, upper), upper, method)


# --- Prices: answers that pass a threshold (section 12) -------------------------------------------


def rounded_delta(squared_mu: float, epsilon: float) -> float:
    """Return delta of a continuous Gaussian of this squared mu, from above, at any epsilon.

    The rounding of section 10 lies 30 orders below what a float shows.
    """
    mu = math.sqrt(squared_mu)
    first = math.erfc((epsilon / mu - mu / 2) / math.sqrt(2)) / 2
    second = math.erfc((epsilon / mu + mu / 2) / math.sqrt(2)) / 2
    # where the second is nothing to a float, leaving it out only raises the bound
    value = first - (math.exp(epsilon + math.log(second)) if second > 0 else 0.0)
    return min(1.0, max(0.0, value) + 1e-14 * first)


def counts_delta(sigma: float, n: int, epsilon: float) -> float:
    """Return delta of `n` integers that move by one, from above, at any epsilon, in closed form.

    The integral of section 1 and its error, or the rounding of section 10, whichever is less.
    """
    rounded = rounded_delta(n / (sigma**2 - 4), epsilon)
    deviation = math.sqrt(n) * sigma
    if not epsilon <= 700:
        return rounded
    kink = sigma * sigma * epsilon - n / 2
    points = 25 * deviation + 2
    beyond = 2 * math.exp(-(12.5**2) / 2) + 5 * n * points * math.exp(
        -(math.pi**2) * sigma * sigma / 2
    )
    tail = math.erfc(kink / deviation / math.sqrt(2)) / 2
    whole = wide_gaussian_delta(sigma, n, epsilon, kink)
    return min(rounded, max(0.0, whole) + 1e-14 * tail + beyond)


def confident_price(event: dict[str, Any], epsilon: float, promised: float | None) -> Price:
    """Return bounds on the price of queries that a noisy threshold refuses or lets pass.

    First as noisy counts; while the promise is less, the answers about the threshold, and the
    labels of two classes, are games.

    Raises
    ------
    UndecidedError
        If the noise is too small to be priced here.
    """
    binary = event["n_classes"] == 2
    asked, answers = event["queries"], event["answers"]
    first, second = event["threshold_sigma"], event["sigma"]
    if not min(first, second) >= 4:
        raise UndecidedError("Thresholds and labels with a sigma below 4 are not priced here.")
    threshold_mu = asked / (first**2 - 4)
    label_mu = answers * (1 if binary else 2) / (second**2 - 4)
    if not threshold_mu + label_mu <= 900 or not asked * event["n_classes"] <= 10**12:
        raise UndecidedError("So many queries, or so little noise, is not priced by this program.")
    upper, method = rounded_delta(threshold_mu + label_mu, epsilon), "as noisy counts, composed"
    lower, joint = 0.0, binary and None not in (event["threshold"], event["n_teachers"])
    # where a threshold keeps even votes back not all labels are told
    for sigma, queries in ((first, asked), *(((second, answers),) if binary and not joint else ())):
        if sigma <= 1e5 and queries <= 20_000:
            attacked = attack_delta(Pairs(sigma, None), queries, epsilon, sigma)
            lower = max(lower, attacked)
    if not binary and second <= 1e4 and answers <= 20_000:
        lower = max(lower, repeated_delta(even_vote(second), answers, epsilon) * (1 - ERROR))
    if (
        promised is not None
        and not binary
        and lower <= promised < upper
        and classes_fit(second, answers, epsilon, promised, (first, asked))
    ):
        return Price(min(lower, promised), promised, "divergences that all votes keep")
    target = upper if promised is None else promised
    precision = 40 - math.floor(math.log2(max(target, 1e-30)))
    counts = (
        partial(counts_delta, first, asked),
        partial(counts_delta, second, answers * (1 if binary else 2)),
    )
    # a coarse game first: a finer one takes longer
    for fine in (0.16, 0.08) if joint else ():
        if promised is None or (upper > promised * (1 + ERROR) and lower <= promised):
            with suppress(UndecidedError):
                value = passing_delta(event, epsilon, precision, fine)
                if value < upper:
                    upper, method = value, "a game of thresholds and labels"
    for fine, finer in ((0.08, 1), (0.04, 2)):
        if promised is not None and (upper <= promised * (1 + ERROR) or lower > promised):
            break
        for value in games_of(event, epsilon, precision, fine, finer, counts):
            if value < upper:
                upper, method = value, "games, composed"
            if promised is not None and upper <= promised * (1 + ERROR):
                break
    return Price(min(lower, upper), upper, method)


def passing_delta(event: dict[str, Any], epsilon: float, precision: int, fine: float) -> float:
    """Return delta of queries of two classes, each a question about the highest count that a label
    may follow, from above.

    The highest count is at most that of the larger class. So with e votes from an even vote the
    question's t is at least threshold - K // 2 - e, one less at an even vote of an odd K. What may
    follow are labels of votes that are far enough from even.

    Raises
    ------
    UndecidedError
        If the game is too long to be played here.
    """
    asked, n_teachers, half = event["queries"], event["n_teachers"], event["n_teachers"] // 2
    tops, labels = Pairs(event["threshold_sigma"], None), Pairs(event["sigma"], None)
    if max(tops.sigma, labels.sigma) > 1e4:
        raise UndecidedError("Such noise is not played here.")
    width = max(1, int(labels.sigma * fine))
    starts = [0, *range(1, min(half + 1, math.ceil(5 * labels.sigma)), width)]
    groups, above = [], tops.reach + math.ceil(20 * tops.sigma)
    for start, end in pairwise([*starts, half + 1]):
        least = event["threshold"] - min(n_teachers, half + end)
        if start or n_teachers % 2 == 0:
            least += 1
        questions = tops.arc(least, above, fine) if least <= above else []
        groups.append((labels.arc(1 + start, end, fine), questions))
        above = min(above, least - 1)
    laws: list[Law] = []
    passing = []
    for told, questions in reversed(groups):
        laws += [((p, q), (r, s)) for p, q, r, s in told]
        passing.append((len(laws), [((p, q), (r, s)) for p, q, r, s in questions]))
    usual = spread_of([labels.at(1)], 1)
    cells = min(60, max(12, round(12 * math.sqrt(300 / asked))))
    spread = math.sqrt(asked * (usual**2 + spread_of([tops.at(1)], 1) ** 2))
    reach = 4 * spread, 4 * spread + epsilon
    return profile_of_steps(laws, usual / cells, asked, reach, precision, passing)(epsilon)


def games_of(
    event: dict[str, Any],
    epsilon: float,
    precision: int,
    fine: float,
    finer: int,
    counts: tuple[Callable[[float], float], Callable[[float], float]],
) -> Iterator[float]:
    """Yield bounds on delta in which more and more of the event is a game.

    `counts` are the profiles of what stands beside it: of the tops, and of the counts that labels
    are read off. Games that take too long for this program are left out.
    """
    kinds = [(event["threshold_sigma"], event["queries"], counts[1])]
    if event["n_classes"] == 2:
        kinds.append((event["sigma"], event["answers"], counts[0]))
    tables = []
    for sigma, queries, other in kinds:
        if sigma > 1e5 or queries > 20_000:
            return
        corners = Pairs(sigma, None).corners(fine, 0.35 * min(1.0, queries / 100))
        cells = finer * min(60, max(12, round(12 * math.sqrt(300 / queries))))
        tables.append((corners, queries, cells))
        try:
            yield game_delta(corners, queries, epsilon, cells, precision, other)
        except UndecidedError:
            continue
    # labels first, as far as the answers about the threshold may lead
    outer, asked, cells = tables[0]
    with suppress(UndecidedError):
        if len(tables) == 1:
            sigma, answers = event["sigma"], event["answers"]
            far = 4 * spread_of(outer, asked) + 5 * spread_of_classes(sigma, answers)
            of_classes = class_game_profile(sigma, answers, (far, far + epsilon), precision)
            if of_classes is not None:
                yield game_delta(outer, asked, epsilon, cells, precision, of_classes)
            return
        inner, answers, inner_cells = tables[1]
        far = 4 * (spread_of(outer, asked) + spread_of(inner, answers))
        labels = game_profile(inner, answers, (far, far + epsilon), inner_cells, precision)
        yield game_delta(outer, asked, epsilon, cells, precision, labels)


# --- Prices of events -----------------------------------------------------------------------------


def price_events(
    events: list[dict[str, Any]], epsilon: float, promised: float | None = None
) -> Price:
    """Return bounds on the delta that events cost at `epsilon`.

    Parameters
    ----------
    events : list of dict
        As a certificate lists them.
    epsilon : float
    promised : float, optional
        The delta that is promised: bounds that decide are not made finer. By default they are made
        as fine as can be.

    Raises
    ------
    WrongError
        If an event is unknown or out of range.
    UndecidedError
        If these events are not priced together by this program.
    """
    for event in events:
        check_event(event)
    price = bounds_on_price(events, epsilon, promised)
    # where floats end, a price that is never 0 may have come out as 0
    least = 0.0 if all(event["kind"] in _MAY_COST_NOTHING for event in events) else 1e-300
    return price._replace(upper=max(price.upper, least))


def bounds_on_price(events: list[dict[str, Any]], epsilon: float, promised: float | None) -> Price:
    """Return bounds on the delta of events that are within their ranges.

    Raises
    ------
    UndecidedError
        If these events are not priced together by this program.
    """
    # what this program has no method of its own for stays undecided, never confirmed
    event: dict[str, Any] = events[0] if len(events) == 1 else {"kind": "several"}
    kind = event["kind"]
    if kind == "binary-labels":
        drawn = event["chances"]
        if "weights" in drawn:
            return table_price(event, epsilon, promised)
        terms = drawn["sigma"], event["queries"], drawn["n_teachers"]
        return label_price(*terms, epsilon, promised)
    if kind == "counts":
        value = gaussian_delta(event["sigma"], event["shifts"], epsilon)
        return exact(value, "a sum over the lattice")
    if kind == "sampled":
        return exact(relabelled_delta(event, epsilon), "a stream, relabelled and sampled")
    if kind == "class-labels":
        return class_labels_price(event, epsilon, promised)
    if kind == "confident":
        return confident_price(event, epsilon, promised)
    if kind == "vector-sum":
        return vector_sum_price(event, epsilon)
    if kind == "bounded-range":
        return ranged_price(event, epsilon)
    if kind == "sparse-stream":
        return exact(stream_profile(event)(epsilon), "parts, or a charge for each abstention")
    if kind == "table-stream":
        return exact(table_delta(event, epsilon), "a charge for each abstention of a table")
    pure = [one for one in events if one["kind"] == "pure"]
    if len(pure) == len(events):
        total = math.fsum(one["epsilon"] * one["count"] for one in pure)
        if total <= epsilon * (1 + 1e-9):
            return Price(0.0, 0.0, "plain addition")
        if len({one["epsilon"] for one in pure}) == 1:
            value = parts_delta(sum(one["count"] for one in pure), pure[0]["epsilon"], epsilon)
            return exact(value, "randomised response, composed")
    if kind == "stable-tests":
        tail = math.exp(-(event["threshold"] + 1) / event["scale"]) / (
            1 + math.exp(-1 / event["scale"])
        )
        value = with_failure(
            failing(event["count"], tail), parts_delta(event["count"], 1 / event["scale"], epsilon)
        )
        return exact(value, "parts that may fail")
    raise UndecidedError("These events are not priced together by this program.")


def exact(value: float, method: str) -> Price:
    return Price(value * (1 - ERROR), value, method)


def priced(name: str, part: dict[str, Any]) -> Finding:
    """Return whether the events of a release or a choice cost what it promises."""
    epsilon, promised = part["epsilon"], part["delta"]
    try:
        price = price_events(part["events"], epsilon, promised)
    except UndecidedError as reason:
        return Finding(name, UNDECIDED, str(reason))
    stated = part["price"]["delta_recomputed"] if "price" in part else promised
    # a stated price below a proved lower bound is false, whatever was promised
    if stated < price.lower * (1 - ERROR):
        return Finding(
            name,
            REFUSED,
            f"It costs at least delta {price.lower:.6g}; stated as its price is {stated:.6g}.",
        )
    words = (
        f"delta {price.upper:.6g} at epsilon {epsilon:.6g} (at least {price.lower:.6g};"
        f" {price.method})"
    )
    if price.upper <= promised * (1 + ERROR):
        return Finding(name, CONFIRMED, f"At most {words}, within the promised {promised:.6g}.")
    if price.lower > promised:
        return Finding(name, REFUSED, f"It costs {words}; promised was {promised:.6g}.")
    return Finding(
        name,
        UNDECIDED,
        f"It costs at most {words}; whether the promised {promised:.6g} holds is not known. Games"
        f" of more than {_the_time()} were not played.",
    )


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
    before = _minutes.set(minutes)
    try:
        yield from findings_of(folder)
    finally:
        _minutes.reset(before)


def findings_of(folder: str) -> Iterator[Finding]:
    try:
        content = b"".join(blocks_of(os.path.join(folder, "certificate.json"), _MAX_CERTIFICATE))
        document = certificate_in(content)
    except WrongError as error:
        yield Finding("certificate", REFUSED, str(error))
        return
    found = [Finding("certificate", CONFIRMED, "Its digest fits, and every field is there.")]
    yield found[0]
    values: tuple[str, Callable[[], str]] = "labels", lambda: check_labels(document, folder)
    if document["public"]["method"] in _TABLES:
        values = "answers", lambda: check_answers(document, folder)
    for name, look in (("files", lambda: check_files(document, folder)), values):
        found.append(looked(name, look))
        yield found[-1]
    for finding in terms_of(document):
        found.append(finding)
        yield finding
    # prices are taken of what is known to be in range
    if all(finding.verdict == CONFIRMED for finding in found):
        yield from prices_of(document)


def terms_of(document: dict[str, Any]) -> Iterator[Finding]:
    """Yield what there is to find in a certificate itself, but for its prices."""
    looks: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        ("mechanism", check_mechanism),
        ("queries", check_counts),
        ("account", check_account),
        ("software", check_software),
        ("assumptions", check_assumptions),
    ]
    looks += [("plan", check_plan)] if "plan" in document else []
    looks += [("choices", check_choices)] if "choices" in document else []
    for name, look in looks:
        yield looked(name, partial(look, document))


def check_certificate(content: bytes) -> list[Finding]:
    """Return what is found in a certificate.json by itself, but for prices that take seconds.

    Parameters
    ----------
    content : bytes
        Of the file.
    """
    try:
        document = certificate_in(content)
    except WrongError as error:
        return [Finding("certificate", REFUSED, str(error))]
    found = list(terms_of(document))
    if any(finding.verdict != CONFIRMED for finding in found):
        return found
    parts = [document, *document.get("choices", ())]
    events = [event for part in parts for event in part["events"]]
    return found if any(one["kind"] in _SLOW for one in events) else [*found, *prices_of(document)]


def prices_of(document: dict[str, Any]) -> Iterator[Finding]:
    """Yield what the release costs: all of it, and each choice."""
    events = document["events"]
    if any(event["kind"] in _SLOW for event in events):
        yield Finding("price", WAIT, f"A game may take {_minutes.get():g} minutes.")
    yield safely("price", lambda: priced("price", document))
    for number, choice in enumerate(document.get("choices", ()), 1):
        yield safely(f"choice {number}", partial(priced, f"choice {number}", choice))


def looked(name: str, look: Callable[[], str]) -> Finding:
    return safely(name, lambda: Finding(name, CONFIRMED, look()))


def safely(name: str, look: Callable[[], Finding]) -> Finding:
    """Return what a look finds; whatever a stranger's numbers make it raise is a refusal."""
    try:
        return look()
    except WrongError as error:
        return Finding(name, REFUSED, str(error))
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        OSError,
        MemoryError,
        RecursionError,
    ) as error:
        return Finding(name, REFUSED, f"This could not be evaluated ({type(error).__name__}).")


def exit_code(found: list[Finding]) -> int:
    """Return 0, 5 or 4: the worst of the verdicts."""
    verdicts = {finding.verdict for finding in found}
    worst = next(verdict for verdict in (REFUSED, UNDECIDED, CONFIRMED) if verdict in verdicts)
    return _CODES[worst]


def minutes_of(text: str) -> float:
    """Return the number that a text is, 0 if it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def main(arguments: list[str]) -> int:
    """Check the folder that is named, print what was found, and return the exit code."""
    match arguments:
        case [folder]:
            minutes = MINUTES
        case [folder, "--minutes", number] | ["--minutes", number, folder]:
            minutes = minutes_of(number)
        case _:
            folder, minutes = "", MINUTES
    if not os.path.isdir(folder) or not 0 < minutes < math.inf:
        print(
            "Give one release folder, and how many minutes a game may take:"
            " python verify_release.py FOLDER [--minutes 2]",
            file=sys.stderr,
        )
        return NOTHING_TO_CHECK
    found = []
    for finding in each_finding(folder, minutes):
        # at once, as the next one may take minutes
        print(f"{finding.verdict:<7} {finding.name:<12} {finding.detail}", flush=True)
        found += [finding] if finding.verdict != WAIT else []
    code = exit_code(found)
    print(
        {
            0: "The release is confirmed.",
            5: "The release is NOT confirmed.",
            4: "The release is REFUSED.",
        }[code]
    )
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
