"""What a certificate says: its shape, and whether its parts fit each other."""

import hashlib
import json
import math
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from operator import itemgetter
from typing import Any

#: An object of JSON.
Json = dict[str, Any]

MAX_CERTIFICATE = 10 * 10**6  # bytes
MAX_FILES = 1000
_MAX_INTEGER = 2**53
_HALF = 2**52  # chances of a table are whole numbers of 2^-53
_MOST = 10**12  # of whatever an event counts
_BLINDLY = " and every parameter of the mechanism were fixed without looking at private data."
_OR_PAID = ", or chosen by a step listed under choices, at its own price."
_WRONG_OPENDP = ((0, 14, 0), (0, 14, 1))
#: Events whose price may take minutes.
SLOW = ("binary-labels", "class-labels", "confident", "sampled")
_MOST_SLOW = 10
_terms_of = itemgetter("mechanism", "shape", "public")
_drawn_in = itemgetter("mechanism", "shape", "released")


class WrongError(Exception):
    """Something does not hold; the message is one sentence."""


def require(holds: object, message: str) -> None:
    """Refuse what does not hold.

    Raises
    ------
    WrongError
        If it does not hold.
    """
    if not holds:
        raise WrongError(message)


# --- Reading --------------------------------------------------------------------------------------


def shown(value: object) -> str:
    """Return how a message quotes a value: printable, on one line and short."""
    text = value if isinstance(value, str) else repr(value)[:200]
    text = "".join(character if character.isprintable() else "?" for character in text)
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _no_repeated_field(pairs: list[tuple[str, Any]]) -> Json:
    """Return a JSON object, or refuse one that names a field twice.

    Raises
    ------
    ValueError
        If a field is named twice.
    """
    if len(dict(pairs)) < len(pairs):
        raise ValueError
    return dict(pairs)


def _check_json(value: object, depth: int = 0, longest: int = 10_000) -> None:
    """Refuse JSON that is nested too deeply, or holds numbers or strings beyond bounds."""
    require(depth <= 32, "The certificate is nested more than 32 deep.")
    if isinstance(value, dict):
        for key, item in value.items():
            # the weights of a table of abstentions are one text
            _check_json(item, depth + 1, 2**20 if key == "weights" else 10_000)
    elif isinstance(value, list):
        for item in value:
            _check_json(item, depth + 1)
    elif isinstance(value, str):
        require(len(value) <= longest, "The certificate holds a string that is too long.")
    elif isinstance(value, float):
        require(math.isfinite(value), "The certificate holds a number that is not finite.")
    elif isinstance(value, int):
        require(abs(value) <= _MAX_INTEGER, "The certificate holds an integer beyond 2^53.")


def certificate_in(content: bytes) -> Json:
    """Return the certificate that a file holds, whose digest fits and whose fields are all there.

    Raises
    ------
    WrongError
        If the file is no certificate of this format.
    """
    require(len(content) <= MAX_CERTIFICATE, "The certificate is too long.")
    try:
        text = content.decode("utf-8")
        document: Json = json.loads(text, object_pairs_hook=_no_repeated_field)
    except (ValueError, RecursionError):
        raise WrongError("certificate.json is not JSON.") from None
    stated = document.get("format") if isinstance(document, dict) else None
    require(stated == "secretballot/certificate", "certificate.json is no certificate.")
    version = document.get("version")
    # 3.0 is equal to 3
    read = type(version) is int and version == 3
    require(read, f"The certificate has version {shown(version)}; this program reads version 3.")
    _check_json(document)
    body = {key: value for key, value in document.items() if key != "digest"}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    digest = hashlib.sha256(canonical.encode("ascii")).hexdigest()
    require(digest == document.get("digest"), "The digest does not fit the certificate's text.")
    check_shape(document, _FIELDS, "certificate")
    require(document.get("about") != {}, "certificate.about says nothing.")
    return document


# --- The shape of a certificate -------------------------------------------------------------------

_Rule = Callable[[Any], bool]


def _within(*kinds: type) -> Callable[..., _Rule]:
    """Return rules for numbers of some types, by their least and largest value."""
    return lambda least, most=math.inf: (
        lambda value: type(value) in kinds and least <= value <= most
    )


_a_number, _a_float, _an_int = _within(int, float), _within(float), _within(int)


def _a_count(least: int = 0, most: int = _MAX_INTEGER) -> _Rule:
    return _an_int(least, most)


def _a_list(rule: _Rule, least: int = 0, most: float = math.inf) -> _Rule:
    return lambda value: (
        isinstance(value, list) and least <= len(value) <= most and all(map(rule, value))
    )


def _one_of(*words: str) -> _Rule:
    return lambda value: isinstance(value, str) and value in words


def _or_none(rule: _Rule) -> _Rule:
    return lambda value: value is None or rule(value)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _is_sentence(value: object) -> bool:
    return _is_name(value) and str(value).isprintable()


def _is_moment(value: object) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def class_text(value: object) -> str:
    """Return how labels.csv writes a class: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def _are_classes(value: list[Any]) -> bool:
    scalars = all(isinstance(item, str | int | float) for item in value)
    return scalars and len(value) != 1 and len(set(map(class_text, value))) == len(value)


def _are_names(value: Any) -> bool:
    return _a_list(_is_sentence, 1)(value) and len(set(value)) == len(value)


def _is_range(value: Any) -> bool:
    """Return whether a value is two numbers, the smaller first, and a finite way apart."""
    return _a_list(_a_number(-math.inf), 2, 2)(value) and 0 < value[1] - value[0] < math.inf


def _is_truth(value: object) -> bool:
    return isinstance(value, bool)


_is_count, _AT_LEAST_ONE, _COUNTED = _a_count(), _a_count(1), _a_count(1, _MOST)
_IS_EPSILON, _IS_DELTA = _a_number(5e-324), _a_number(0, 1 - 2.0**-53)
_IS_SCALE, _IS_LOSS = _a_float(1e-6, 1e12), _a_float(2.0**-39, 1e6)
_IS_SHARE = _a_float(5e-324, 1 - 2.0**-53)
_ARE_SENTENCES, _IS_LIST = _a_list(_is_sentence, 1), _a_list(lambda _: True)
_UNIT = _one_of("record", "user", "label")
_RELATION = _one_of("add-remove", "replace-one")
_PROMISE = {"epsilon": _IS_EPSILON, "delta": _IS_DELTA}
_PART: Json = {
    **_PROMISE,
    **dict.fromkeys(("mechanism", "shape"), _is_object),
    "public": lambda value: _is_object(value) and _is_sentence(value.get("method")),
    "events": _a_list(_is_object, 1, 1),
}
#: What every certificate holds, object by object, and nothing else; a ``?`` marks what may be
#: missing.
_FIELDS: Json = {
    **_PART,
    "format": _is_name,
    "version": _is_count,
    "issued": _is_moment,
    "purpose": lambda value: isinstance(value, str),
    "unit": _UNIT,
    "unit_column": _or_none(_is_name),
    "relation": _RELATION,
    "price": {
        **_PROMISE,
        "delta_recomputed": _IS_DELTA,
        **dict.fromkeys(("method", "source", "library", "library_version"), _is_sentence),
    },
    "composition": {
        "kind": _one_of("basic", "renyi"),
        "dataset": _is_name,
        "unit": _UNIT,
        "relation": _RELATION,
        "budget": _PROMISE,
        "spent_after": dict.fromkeys(("epsilon", "delta"), _a_number(0)),
        "durable": _is_truth,
        "reservation": _AT_LEAST_ONE,
    },
    "assumptions": _ARE_SENTENCES,
    "not_protected": _ARE_SENTENCES,
    "noise": {"exact": lambda value: value is True, "description": _is_sentence},
    "software": lambda value: (
        _is_object(value)
        and all(map(_is_sentence, value.values()))
        and _is_sentence(value.get("opendp"))
    ),
    "released": {
        **dict.fromkeys(("queries", "answered", "n_teachers", "count_columns"), _is_count),
        "classes": lambda value: isinstance(value, list) and _are_classes(value),
        "labels_sha256": _is_digest,
        "points_sha256?": _is_digest,
        "rows?": _IS_LIST,
        "values?": _IS_LIST,
    },
    "plan?": {
        "planned": _AT_LEAST_ONE,
        "used": _is_count,
        "rounds": _a_list(_AT_LEAST_ONE),
        "strategy": lambda value: _is_object(value) and _is_sentence(value.get("name")),
        "left": _one_of("kept", "returned", "forfeited", "none"),
    },
    "choices?": _a_list(lambda _: True, 0, 100),
    "files": lambda value: _is_object(value) and 1 <= len(value) <= MAX_FILES,
    "about?": dict.fromkeys(("title?", "controller?", "contact?"), _is_sentence),
    "digest": _is_digest,
}
FILE_FIELDS = {"sha256": _is_digest, "bytes": _is_count}
_CHOICE_SHAPE = {**_PART, "purpose": _is_name, "reservation": _AT_LEAST_ONE}
_OUTCOMES: dict[str, _Rule] = {
    "value": lambda value: type(value) is int,
    "labels_sha256": _is_digest,
}


def check_shape(value: Any, shape: Json, place: str) -> None:
    """Refuse an object that lacks a field, has one too many, or holds one of the wrong kind."""
    require(_is_object(value), f"{place} is no JSON object.")
    for unknown in sorted(set(value) - {name.rstrip("?") for name in shape}):
        raise WrongError(f"{place} has a field {shown(unknown)}, which no certificate has.")
    for name, rule in shape.items():
        key = name.rstrip("?")
        if key not in value:
            require(name != key, f"{place} has no field {key!r}.")
        elif isinstance(rule, dict):
            check_shape(value[key], rule, f"{place}.{key}")
        else:
            require(rule(value[key]), f"{place}.{key} is not what it must be.")


# --- Mechanisms and their events ------------------------------------------------------------------

_CONFIDENT = "confident-labels"
ANSWERS_SOME = (_CONFIDENT, "stable-value")
_ABSTAINS = ("sparse-vector", "abstention-table", "relabelled-sample")
_MOMENTS = ("record-moments", "record-moments-of-a-number", "record-moments-of-labels")
TABLES = ("votes-of-labels", "votes-of-numbers")
_SUMMED: Json = {
    "residual_units": _a_list(_a_count(1, 2**20)),
    "mark_weight": _is_count,
    **dict.fromkeys(("marks", "weights"), _IS_LIST),
    "scales": _a_list(_a_list(_a_count(1, 2**18))),
    "expected_uncovered": _a_number(0, 1),
    "n_records": _or_none(_AT_LEAST_ONE),
    "basis": lambda value: _is_object(value) and _is_sentence(value.get("name")),
    "basis_sha256": _is_digest,
    "covered_only": _a_list(_is_truth),
}
_MORE_OF_CLASSES: Json = {
    "start?": {"certificate": _is_digest, "weights": _IS_LIST},
    "class_weights?": _a_list(_a_number(5e-324)),
}
#: By method: kinds of mechanisms, and public settings.
_METHODS: dict[str, tuple[tuple[str, ...], Json]] = {
    "votes": (
        ("noisy-votes", "table-labels", *ANSWERS_SOME, *_ABSTAINS),
        {"confidence?": _IS_SHARE},
    ),
    "record-votes": (("noisy-votes",), {"expected_uncovered?": _a_number(0, 1)}),
    "record-moments": (("noisy-sums",), {**_SUMMED, **_MORE_OF_CLASSES}),
    "record-moments-of-a-number": (("noisy-sums",), {**_SUMMED, "bounds": _is_range}),
    "record-moments-of-labels": (("noisy-sums",), {**_SUMMED, "labels": _are_names}),
    "votes-of-labels": (
        ("noisy-votes",),
        {
            "labels": _are_names,
            "ballot": _one_of("labels", "sets"),
            "most_named": _or_none(_AT_LEAST_ONE),
        },
    ),
    "votes-of-numbers": (("noisy-means", "vote-quantiles"), {"bounds": _is_range}),
    "exponential-choice": (("exponential-choice",), {"n_candidates": _AT_LEAST_ONE}),
    "stability-quantile": (("stability-quantile",), {}),
}
#: Methods whose outcome is no label.
_WITHOUT_CLASSES = {*_MOMENTS, *TABLES} - {"record-moments"}
_KINDS: dict[str, dict[str, _Rule]] = {
    "noisy-votes": {
        "noise": _one_of("gaussian", "laplace"),
        "scale": _IS_SCALE,
        "release": _one_of("labels", "counts"),
    },
    "table-labels": {"weights": _a_list(_AT_LEAST_ONE, 1, 10_000)},
    "confident-labels": {
        **dict.fromkeys(("threshold", "max_answers"), _COUNTED),
        **dict.fromkeys(("threshold_sigma", "sigma"), _IS_SCALE),
    },
    "sparse-vector": {
        **dict.fromkeys(("threshold_scale", "query_scale"), _IS_SCALE),
        "threshold": _a_count(0, 10**15),
        "max_abstentions": _COUNTED,
    },
    "abstention-table": {
        "order": _a_float(1 + 2.0**-10, 2.0**13),
        "charge": _a_float(2.0**-44, 64),
        "false_answer": _a_float(2.0**-56, 0.5),
        "weights": lambda value: (
            isinstance(value, str)
            and re.fullmatch("([0-3][0-9a-f]{15}){1,32769}", value) is not None
        ),
        "max_abstentions": _COUNTED,
    },
    "relabelled-sample": {"stream": _is_object},
    "stable-value": {"scale": _IS_SCALE, "threshold": _a_count(0, 10**15)},
    "noisy-means": {"sigma": _IS_SCALE},
    "vote-quantiles": {"epsilon": _IS_LOSS, "rank": _COUNTED},
    "stability-quantile": {"epsilon": _IS_LOSS, "fraction": _IS_SHARE},
    "noisy-sums": {"sigmas": _a_list(_IS_SCALE, 1, 1000)},
    "exponential-choice": {"epsilon": _IS_LOSS, "rule": _one_of("exponential", "permute-and-flip")},
}
_GUARANTEE = {"guarantee": {"unit": _UNIT, "relation": _RELATION}}
_VOTE_SHAPE = {
    **_GUARANTEE,
    **dict.fromkeys(("n_queries", "moved"), _COUNTED),
    "n_classes": _a_count(2, 2**16),
    "n_teachers": _or_none(_COUNTED),
    "spare_rows": _a_count(0, _MOST),
    "sample": _or_none(_is_object),
}
_SHAPES: dict[str, Json] = {
    "exponential-choice": _GUARANTEE,
    "noisy-sums": {
        **_GUARANTEE,
        "coordinates": _COUNTED,
        "squared_sensitivity": _a_count(1, _MAX_INTEGER - 1),
    },
}
_SAMPLE = {
    **dict.fromkeys(("sampled", "out_of"), _COUNTED),
    "relabel_epsilon": _a_float(2.0**-20, 100),
    **dict.fromkeys(("request", "serial"), _is_name),
}


def _check_model(value: Json, place: str) -> None:
    """Refuse a mechanism of no known kind, or with other fields."""
    kind = value.get("kind")
    fields = _KINDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        raise WrongError(f"{place} {shown(kind)} is of no known kind.")
    check_shape({key: one for key, one in value.items() if key != "kind"}, fields, place)


def _check_part(part: Json) -> None:
    """Refuse mechanism, shape and event of a release, or of a choice, that do not fit each
    other."""
    mechanism, shape = part["mechanism"], part["shape"]
    _check_model(mechanism, "The mechanism")
    check_shape(shape, _SHAPES.get(mechanism["kind"], _VOTE_SHAPE), "shape")
    if "moved" in shape:
        _check_votes(mechanism, shape)
        every = part["public"]["method"] != "votes" or shape["moved"] == shape["n_queries"]
        require(every, "A teacher may vote otherwise at every query.")
    came = (shape["guarantee"]["unit"], shape["guarantee"]["relation"]) == ("label", "add-remove")
    require(not came, "Labels are replaced; they do not come and go.")
    event = _event_of(mechanism, shape)
    # in Python 2.0 and true equal 2 and 1, so texts are compared
    stated = json.dumps(part["events"][0], sort_keys=True)
    require(stated == json.dumps(event, sort_keys=True), "The event is not the mechanism's.")
    counted = max(event.get("shifts", 1), event.get("count", 1))
    within = counted <= _MOST and event.get("squared_sensitivity", 1) < _MAX_INTEGER
    require(within, "The event counts more than any release.")


def _check_votes(mechanism: Json, shape: Json) -> None:
    """Refuse votes that are no votes of teachers or of records, or not what a mechanism takes."""
    teachers, sample, kind = shape["n_teachers"], shape["sample"], mechanism["kind"]
    if teachers is None:
        counted = sample is None and mechanism.get("release") == "counts"
        require(counted, "Votes of records are released as counts.")
    else:
        once = shape["moved"] <= shape["n_queries"] and not shape["spare_rows"]
        require(once, "Teachers vote once in each row, and only in those of queries.")
    sampled = kind == "relabelled-sample"
    require(sampled == (sample is not None), "A relabelled sample alone prices a secret sample.")
    if sampled:
        _check_model(mechanism["stream"], "The stream")
        check_shape(sample, _SAMPLE, "shape.sample")
        require(sample["sampled"] <= sample["out_of"], "More was sampled than there is.")
        asked = mechanism["stream"]["kind"] in _ABSTAINS[:2] and shape["n_classes"] == 2
        require(asked, "A relabelled sample is asked a stream, of two classes.")
        require(shape["guarantee"]["unit"] != "user", "A relabelled sample is of single records.")
    _check_abstentions(mechanism.get("stream", mechanism))
    if kind == "table-labels":
        require(shape["n_classes"] == 2, "A table of chances is for two classes.")
        _check_chances(mechanism["weights"], teachers)
    if kind == _CONFIDENT:
        require(mechanism["threshold"] <= teachers, "The threshold is above the teachers' number.")
        require(mechanism["max_answers"] <= shape["n_queries"], "Too many queries are answered.")
    if kind == "vote-quantiles":
        require(mechanism["rank"] <= teachers, "The rank is that of no teacher.")


def _check_chances(weights: list[int], n_teachers: int) -> None:
    """Refuse a table that is not that of a minority's chances, margin by margin."""
    require(len(weights) <= n_teachers // 2 + 1, "The table has more chances than margins.")
    falls = all(later <= earlier for earlier, later in pairwise(weights))
    require(falls, "A chance of the minority's label grows with the margin.")
    least = weights[0] <= _HALF and weights[-1] < _HALF
    require(least, "The minority's label has a chance of more than one half, or never less.")
    coin = n_teachers % 2 == 1 or weights[0] == _HALF
    require(coin, "An even vote is no fair coin in the table.")


def _check_abstentions(mechanism: Json) -> None:
    """Refuse a table of abstentions that breaks an inequality which its price rests on (section 14
    of prices.md): between neighbours, an abstention charged, the moment of its order is at most 1,
    both ways."""
    if mechanism["kind"] != "abstention-table":
        return
    text, whole = mechanism["weights"], 2**62
    weights = [int(text[place : place + 16], 16) for place in range(0, len(text), 16)]
    within = all(0 < weight < whole for weight in weights)
    require(within, "A table of abstentions has a chance of 0 or 1.")
    tie = Fraction(weights[0], whole) <= Fraction(mechanism["false_answer"])
    require(tie, "The table answers at a tie more often than it states.")
    with localcontext(Context(prec=60, Emin=-(10**9), Emax=10**9)):
        order, charge = Decimal(mechanism["order"]), Decimal(mechanism["charge"])
        logs = [(Decimal(one).ln(), Decimal(whole - one).ln()) for one in weights]
        # logarithms and powers are right to fifty digits
        most = whole * (1 - Decimal(10) ** -46)
        for here, there in pairwise(logs):
            for (s, f), (t, g) in ((here, there), (there, here)):
                answered = order * s + (1 - order) * t
                refused = order * f + (1 - order) * g - charge
                # a power far above the whole ends it, before it is computed
                kept = max(answered, refused) < 50 and answered.exp() + refused.exp() <= most
                require(kept, "The table of abstentions breaks an inequality of its price.")


def _event_of(mechanism: Json, shape: Json) -> Json:
    """Return the one event that a whole release is: what was drawn, and how far one unit moves
    it."""
    kind, moved, teachers = mechanism["kind"], shape.get("moved", 0), shape.get("n_teachers")
    classes = shape.get("n_classes", 0)
    # a teacher that changes its vote moves one count of two classes, and two counts of more; a
    # record moves so many cells as the shape says
    shifts = moved if classes == 2 or teachers is None else 2 * moved

    def taken(*names: str) -> Json:
        return {name: mechanism[name] for name in names}

    match kind:
        case "noisy-votes" if mechanism["noise"] == "laplace":
            return _pure(_least_quotient(1, mechanism["scale"]), shifts)
        case "noisy-votes" if mechanism["release"] == "counts":
            return {"kind": "counts", "sigma": mechanism["scale"], "shifts": shifts}
        case "noisy-votes" if classes != 2:
            return {"kind": "class-labels", "sigma": mechanism["scale"], "queries": moved}
        case "noisy-votes" | "table-labels":
            drawn = {"sigma": mechanism["scale"]} if kind == "noisy-votes" else taken("weights")
            chances = {**drawn, "n_teachers": teachers}
            return {"kind": "binary-labels", "chances": chances, "queries": moved}
        case "confident-labels":
            answers = min(mechanism["max_answers"], moved)
            counted = {"queries": moved, "answers": answers, "n_classes": classes}
            noise = taken("threshold_sigma", "sigma", "threshold")
            return {"kind": "confident", **noise, **counted, "n_teachers": teachers}
        case "sparse-vector":
            noise = taken("threshold_scale", "query_scale", "threshold")
            stops = {"abstentions": mechanism["max_abstentions"]}
            return {"kind": "sparse-stream", **noise, **stops}
        case "abstention-table":
            stops = {"abstentions": mechanism["max_abstentions"]}
            return {"kind": "table-stream", **taken("order", "charge", "false_answer"), **stops}
        case "relabelled-sample":
            sample = {key: shape["sample"][key] for key in ("sampled", "out_of", "relabel_epsilon")}
            sample["relation"] = shape["guarantee"]["relation"]
            return {"kind": "sampled", "stream": _event_of(mechanism["stream"], shape), **sample}
        case "stable-value":
            return {"kind": "stable-tests", **taken("scale", "threshold"), "count": moved}
        case "noisy-means":
            squared = moved * (classes - 1) ** 2
            return _sums([mechanism["sigma"]], squared, shape["n_queries"])
        case "noisy-sums":
            return _sums(mechanism["sigmas"], shape["squared_sensitivity"], shape["coordinates"])
    if kind == "stability-quantile" or mechanism.get("rule") == "permute-and-flip":
        return _pure(mechanism["epsilon"], 1)
    count = moved if kind == "vote-quantiles" else 1
    return {**_pure(mechanism["epsilon"], count), "kind": "bounded-range"}


def _pure(epsilon: float, count: int) -> Json:
    return {"kind": "pure", "epsilon": epsilon, "count": count}


def _sums(sigmas: list[float], squared: int, coordinates: int) -> Json:
    stated = {"sigmas": sigmas, "squared_sensitivity": squared, "coordinates": coordinates}
    return {"kind": "vector-sum", **stated, "count": 1}


def _least_quotient(numerator: int, denominator: float) -> float:
    """Return the smallest float whose product with `denominator` is at least `numerator`."""
    found = numerator / denominator
    while Fraction(found) * Fraction(denominator) < numerator:
        found = math.nextafter(found, math.inf)
    return found


def _check_mechanism(document: Json) -> str:
    """Refuse a mechanism that is unknown, whose event is another one than the certificate states,
    or whose settings contradict it."""
    _check_part(document)
    mechanism, shape, released = _drawn_in(document)
    public, guarantee = document["public"], document["shape"]["guarantee"]
    method = public["method"]
    same = (guarantee["unit"], guarantee["relation"]) == (document["unit"], document["relation"])
    require(same, "The shape is about another unit or relation than the certificate.")
    _check_public(mechanism, public)
    labelled = (not released["classes"]) == (method in _WITHOUT_CLASSES)
    require(labelled, "Labels have two or more classes, and sums or tables alone have none.")
    voted = released["n_teachers"] == (shape.get("n_teachers") or 0)
    require(voted, "The mechanism was priced for another number of teachers than voted.")
    if "moved" in shape:
        of_labels = document["unit"] == "label" and method != "votes"
        known = (shape["n_teachers"] is None) == (method == "record-votes") and not of_labels
        require(known, "The votes are neither those of teachers nor those of records.")
        counted = method in TABLES or shape["n_classes"] == len(released["classes"])
        require(counted, "The shape states another number of classes than the certificate.")
    if method == "record-votes":
        _check_records(document)
    if method in _MOMENTS:
        _check_moments(document)
    return f"The event is that of the mechanism {mechanism['kind']!r}."


def _check_public(mechanism: Json, public: Json) -> None:
    """Refuse settings of no known method, or of another one."""
    kinds, fields = _METHODS.get(public["method"], ((), {}))
    require(mechanism["kind"] in kinds, f"{shown(public['method'])} has no such mechanism.")
    if public["method"] == "exponential-choice":  # whatever describes candidates is allowed
        fields = {**dict.fromkeys(public, lambda _: True), **fields}
    check_shape(public, {"method": _is_sentence, **fields}, "public")
    taken = "confidence" not in public or mechanism["kind"] == _CONFIDENT
    require(taken, "Confident labels alone state a confidence.")


def _check_moments(document: Json) -> None:
    """Refuse settings of sums over records that contradict the sums."""
    mechanism, shape, public = _terms_of(document)
    sigmas, coordinates, marks = mechanism["sigmas"], shape["coordinates"], public["marks"]
    stages, stated = len(public["residual_units"]), public["n_records"]
    classes, weight = document["released"]["classes"], public["mark_weight"]
    of_labels = document["unit"] == "label"
    # but of a number a sum that counts, for a fiftieth of the price, comes before the stages
    number = public["method"] == "record-moments-of-a-number"
    counts = not (number or of_labels or "start" in public)
    require(
        0 < stages <= 100
        and len(set(sigmas[-stages:])) == 1
        and len(sigmas) - stages == int(counts)
        and (not counts or math.isclose(sigmas[0], math.sqrt(49 / stages) * sigmas[-1])),
        "The noise is not that of counts of classes and so many stages.",
    )
    known = not of_labels or (public["method"] == "record-moments" and "start" not in public)
    require(known, "Private labels have classes, and no stage that could start from something.")
    of_public_number = [] if of_labels else ["uncovered"]
    # a record that is replaced moves a sum by twice its longest vector; where one comes or goes,
    # and only there, their number is private
    replaced = document["relation"] == "replace-one"
    require(
        marks == (["records", "uncovered"] if stated is None else of_public_number)
        and (stated is None) != replaced
        and weight <= math.isqrt(shape["squared_sensitivity"] // (4 if replaced else 1)) // 4
        and (weight == 0) == of_labels,
        "The sums count other records than may be counted, or by too large marks.",
    )
    weights, columns = coordinates - len(marks), _columns_of(document)
    require(weights > 0 and weights % columns == 0, "The coordinates fit no columns.")
    # there may be one more model, which no stage follows
    models = stages + (len(public["weights"]) > stages)
    _check_lists(public["weights"], models, weights, "weights")
    _check_lists(public["scales"], stages, weights // columns, "scales")
    if "start" in public:
        _check_lists([public["start"]["weights"]], 1, weights, "weights of the start")
    whole = len(public.get("class_weights", classes)), len(public["covered_only"])
    require(whole == (len(classes), stages), "A class has no weight, or a stage no settings.")


def _check_lists(values: Any, rows: int, columns: int, name: str) -> None:
    """Refuse what is not so many lists of so many integers."""
    integers = _a_list(_a_count(1 - _MAX_INTEGER, _MAX_INTEGER - 1), columns, columns)
    held = _a_list(integers, rows, rows)(values)
    require(held, f"The {name} are not {rows} lists of {columns} integers each.")


def _columns_of(document: Json) -> int:
    """Return how many columns the model of noisy sums has.

    Raises
    ------
    WrongError
        If labels of points are given for targets that have none.
    """
    public, released = document["public"], document["released"]
    if public["method"] == "record-moments":
        classes = len(released["classes"])
        return 1 if classes == 2 else classes
    require(not released["queries"], "Sums were paid for, and no labels of points.")
    return len(public["labels"]) if "labels" in public else 1


def _table_of(document: Json) -> tuple[int, int, float, float]:
    """Return for how many points a table is paid, how many integers answer each, and between which
    numbers they lie.

    Raises
    ------
    WrongError
        If its settings contradict its shape.
    """
    mechanism, shape, public = _terms_of(document)
    released, teachers, queries = document["released"], shape["n_teachers"], shape["n_queries"]
    alone = not (released["queries"] or released["answered"])
    require(alone, "The answers are one table, and list no labels.")
    if public["method"] == "votes-of-numbers":
        require(shape["moved"] == queries, "A teacher may change its number at every point.")
        steps = shape["n_classes"] - 1
        if mechanism["kind"] == "vote-quantiles":
            return queries, 1, 0, steps
        far = 40 * (mechanism["sigma"] + 1)
        return queries, 1, -far, teachers * steps + far
    labels, cap = public["labels"], public["most_named"]
    sets = public["ballot"] == "sets"
    least, most = (2, 8) if sets else (1, 10_000)
    require(least <= len(labels) <= most, "There are too many labels, or too few.")
    require(cap is None or (not sets and cap <= len(labels)), "The cap on the labels is none.")
    # two sets of one teacher differ in no more labels than there are, or than both name together
    rows = 1 if sets else len(labels)
    moved = min(rows, 2 * cap) if cap is not None else rows
    points, counts = queries // rows, 2 ** len(labels) if sets else len(labels)
    votes = queries, shape["moved"], shape["n_classes"], mechanism["noise"]
    same = votes == (points * rows, points * moved, counts if sets else 2, "gaussian")
    require(same, "The votes are not those of these labels, this ballot and this cap.")
    if mechanism["release"] == "labels":
        return points, len(labels), 0, 1
    far = 40 * (mechanism["scale"] + 1)
    return points, counts, -far, teachers + far


def _check_values(document: Json) -> None:
    """Refuse released integers that are no labels, and more or other than the event pays for."""
    mechanism, shape, public = _terms_of(document)
    values, rows = (document["released"].get(name) for name in ("values", "rows"))
    if public["method"] in TABLES:
        points, width, low, high = _table_of(document)
        paid = _a_list(_is_count, 1, points)(rows) and len(set(rows)) == len(rows)
        require(paid, "Other rows were answered than paid for, or one was answered twice.")
        _check_lists(values, len(rows), width, "answers")
        drawn = all(low <= one <= high for answer in values for one in answer)
        require(drawn, "An answer is none that the mechanism could have drawn.")
        return
    require(rows is None, "Tables alone name rows.")
    if mechanism["kind"] == "noisy-sums":
        _check_lists(values, len(mechanism["sigmas"]), shape["coordinates"], "sums")
    elif mechanism["kind"] == "exponential-choice":
        _check_lists(values, 1, 1, "choices")
        candidates = public["n_candidates"]
        require(0 <= values[0][0] < candidates, "The choice fell on a candidate that there is not.")
        every = _a_list(lambda _: True, candidates, candidates)
        require(_or_none(every)(public.get("candidates")), "The candidates have not one name each.")
    elif "expected_uncovered" in public:
        _check_lists(values, 1, 1, "votes of uncovered records")
        # one cell for each vote of a record
        check_range([values[0][0] // _votes_of(shape)], document)
    else:
        require(values is None, "Labels and their counts are all that the mechanism draws.")


def check_range(counts: list[int], document: Json) -> None:
    """Refuse counts of one query that the stated noise does not reach."""
    mechanism, teachers = document["mechanism"], document["shape"].get("n_teachers")
    # Laplace noise of a scale goes beyond sixty times of it with probability e^-60
    wide = 1.5 if mechanism.get("noise") == "laplace" else 1
    far = 40 * (wide * mechanism.get("scale", 0) + 1)
    # how many records voted is private, so a rule bounds their counts
    most = _MOST if teachers is None else teachers
    reached = all(-far <= count <= most + far for count in counts)
    require(reached, "A count was released that noise of the stated size does not reach.")


def _votes_of(shape: Json) -> int:
    """Return how many votes a record casts; one that is replaced takes as many away."""
    return int(shape["moved"] // (2 if shape["guarantee"]["relation"] == "replace-one" else 1))


def _check_records(document: Json) -> None:
    """Refuse votes of records that do not fit in a table of these points."""
    shape, votes = document["shape"], _votes_of(document["shape"])
    each = 2 if document["relation"] == "replace-one" else 1
    fits = shape["moved"] == each * votes and 1 <= votes <= shape["n_queries"]
    require(fits, "A record votes at no public point, or at more than there are.")
    spare = -(-votes // shape["n_classes"]) if "expected_uncovered" in document["public"] else 0
    require(shape["spare_rows"] == spare, "Uncovered records have too many or few rows.")


def _check_counts(document: Json) -> str:
    """Refuse more queries, counts or abstentions than the mechanism pays for."""
    mechanism, shape, released = _drawn_in(document)
    _check_values(document)
    table = document["public"]["method"] in TABLES
    # the number of columns follows from the mechanism; the certificate's own word is only compared
    columns = 0
    if mechanism.get("release") == "counts" and not table:
        one = shape["n_classes"] == 2 and shape["n_teachers"] is not None
        columns = 1 if one else shape["n_classes"]
    found = released["count_columns"]
    require(found == columns, f"{found} counts a query were released, and {columns} paid for.")
    queries, answered = released["queries"], released["answered"]
    within = answered <= queries <= shape.get("n_queries", queries)
    require(within, "More was answered than asked, or more asked than planned.")
    paid = answered <= mechanism.get("max_answers", answered)
    require(paid, "More was answered than paid for.")
    every = mechanism["kind"] in (*ANSWERS_SOME, *_ABSTAINS) or answered == queries
    require(every, "The mechanism answers every query, and not all were answered.")
    if table:
        return f"{len(released['rows'])} answers, as paid for."
    return f"{answered} of {queries} queries answered, as planned and paid for."


# --- Account, plan, choices -----------------------------------------------------------------------


def _adds_to(part: Json, unit: str, relation: str) -> bool:
    """Return whether the promise of a release, or of a choice, holds for another one.

    Votes of teachers about all records of a user are about each; what else a user adds may change
    by more. A record replaced is more than its label.
    """
    own = part["shape"]["guarantee"]
    if own["relation"] != relation or own["unit"] == unit:
        return bool(own["relation"] == relation)
    if relation == "add-remove":
        by_teachers = part["shape"].get("n_teachers") is not None
        return by_teachers and (own["unit"], unit) == ("user", "record")
    return (own["unit"], unit) == ("record", "label")


def _check_account(document: Json) -> str:
    """Refuse units, relations and sums that do not fit the dataset's budget."""
    composition, price = document["composition"], document["price"]
    column = (document["unit"] == "user") == (document["unit_column"] is not None)
    require(column, "A promise to users, and no other one, names their column.")
    about = composition["unit"], composition["relation"]
    require(about != ("label", "add-remove"), "Labels are replaced; they do not come and go.")
    require(_adds_to(document, *about), "The budget is about another unit or relation.")
    parts = [document, *document.get("choices", ())]
    for key in ("epsilon", "delta"):
        require(price[key] == document[key], f"The price states another {key} than the promise.")
        # under basic composition prices add up, so the total cannot be below them
        whole = math.fsum(part[key] for part in parts) if composition["kind"] == "basic" else 0
        spent, budget = composition["spent_after"][key], composition["budget"][key]
        covered = whole <= spent * (1 + 1e-9) and spent <= budget * (1 + 1e-9)
        require(covered, f"The {key} spent is less than the release's, or more than the budget.")
    kept = price["delta_recomputed"] <= document["delta"] * (1 + 1e-9)
    require(kept, "The price is above the promise.")
    return (
        f"Epsilon {composition['spent_after']['epsilon']:.6g} of"
        f" {composition['budget']['epsilon']:.6g} is spent."
    )


def _check_software(document: Json) -> str:
    """Refuse noise of a version of OpenDP that is known to draw another distribution."""
    version = document["software"]["opendp"]
    found = re.match(r"\s*v?(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?", version)
    wrong = found and tuple(int(part or 0) for part in found.groups()) in _WRONG_OPENDP
    require(not wrong, f"OpenDP {shown(version)} is known to draw other noise than it states.")
    return f"OpenDP {shown(version)} drew the noise."


def _check_plan(document: Json) -> str:
    """Refuse a plan that does not fit what was released."""
    plan, used = document["plan"], document["released"]["queries"]
    by_teachers = document["public"]["method"] == "votes"
    require(by_teachers, "Votes of teachers alone are released in rounds.")
    planned, renyi = document["shape"].get("n_queries"), document["composition"]["kind"] == "renyi"
    adds_up = (plan["planned"], plan["used"], sum(plan["rounds"])) == (planned, used, used)
    require(adds_up, "Plan, rounds, mechanism and released queries do not add up.")
    left = (plan["left"] == "none") == (used == planned)
    require(left, "The plan says something else of what was left than its numbers.")
    require(renyi or plan["left"] != "returned", "Only a renyi ledger takes queries back.")
    return f"{used} of {plan['planned']} planned queries used."


def _check_assumptions(document: Json) -> str:
    """Refuse assumptions on choices that are not listed, and silence on choices that are."""
    lines, chosen = document["assumptions"], bool(document.get("choices"))
    listed = any(line.endswith(_OR_PAID) for line in lines)
    denied = chosen and any(line.endswith(_BLINDLY) for line in lines)
    same = listed == chosen and not denied
    require(same, "Assumptions and choices say different things of what was chosen.")
    return f"{len(lines)} assumptions are stated, and {len(document['not_protected'])} limits."


def _check_choice(number: int, choice: Any, document: Json) -> None:
    """Refuse a choice whose outcome is more than the one number, or the labels, that its event
    is about."""
    outcome = "labels_sha256" if _is_object(choice) and "labels_sha256" in choice else "value"
    check_shape(choice, {**_CHOICE_SHAPE, outcome: _OUTCOMES[outcome]}, f"Choice {number}")
    _check_part(choice)
    same = _adds_to(choice, document["unit"], document["relation"])
    require(same, f"Choice {number} is about another unit or relation.")
    # of labels, which are checked with their release, the digest alone is stated
    if outcome == "labels_sha256":
        return
    public, value = choice["public"], choice["value"]
    known = public["method"] in ("stability-quantile", "exponential-choice")
    require(known, f"Choice {number} was drawn by no known mechanism.")
    _check_public(choice["mechanism"], public)
    among = 0 <= value < public.get("n_candidates", math.inf)
    among = among or public["method"] == "stability-quantile"
    require(among, f"Choice {number} fell on a candidate that there is not.")


def _check_choices(document: Json) -> str:
    """Refuse choices that are no choices, that share a reservation, or that would take hours to
    price."""
    choices = document["choices"]
    for number, choice in enumerate(choices, 1):
        _check_choice(number, choice, document)
    slow = sum(choice["events"][0]["kind"] in SLOW for choice in choices)
    require(slow <= _MOST_SLOW, f"More than {_MOST_SLOW} choices are games.")
    paid = [document["composition"]["reservation"], *(choice["reservation"] for choice in choices)]
    require(len(set(paid)) == len(paid), "Two of the release and its choices were paid once.")
    return f"{len(choices)} listed, each under a reservation of its own."


#: What there is to find in a certificate itself, but for its prices; plans and choices may be
#: missing.
CHECKS: dict[str, Callable[[Json], str]] = {
    "mechanism": _check_mechanism,
    "queries": _check_counts,
    "account": _check_account,
    "software": _check_software,
    "assumptions": _check_assumptions,
    "plan": _check_plan,
    "choices": _check_choices,
}
