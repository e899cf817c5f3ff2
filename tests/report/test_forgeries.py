"""Every field and every cell of genuine releases is changed, and the digests renewed: what survives
is settled here.

A forger can renew every digest. What must never verify is more than was paid for. What does verify
after a change is the curator's word, which docs/reference/certificate.md lists; a field that is
new, or no longer checked, fails these tests.
"""

import json
import re

import pytest
from made_releases import KINDS, N, issued

import secretballot_verify as second
from made_certificates import changed, renewed
from secretballot.accounting import epsilon_upper, event_in
from secretballot.report.verification import read_certificate, verify_certificate

# Single fields that may say something else, and the certificate still verifies: the curator's word,
# or a number that promises less than it could. Each is in docs/reference/certificate.md.
WORDS = {
    *("version", "issued", "purpose", "unit", "unit_column", "public.hypotheses"),
    *("public.n_candidates", "price.delta_recomputed", "price.method", "price.source"),
    *("price.library", "price.library_version", "composition.dataset", "composition.durable"),
    *("composition.budget.epsilon", "composition.budget.delta", "composition.kind"),
    *("composition.unit", "composition.spent_after.epsilon", "composition.spent_after.delta"),
    *("composition.reservation", "noise.description", "software.*", "assumptions.*"),
    *("not_protected.*", "released.points_sha256", "released.labels_sha256", "released.answered"),
    *("released.n_teachers", "released.queries", "released.classes.*", "plan.strategy.name"),
    *("plan.left", "choices.*.purpose", "choices.*.reservation", "choices.*.delta"),
    # what an estimate was of does not enter its price
    *{f"choices.*.shape.{name}" for name in ("n_queries", "n_teachers", "moved", "n_classes")},
    *{"choices.*.value", "choices.*.labels_sha256", "choices.*.mechanism.fraction"},
    *{"choices.*.public.method", "choices.*.epsilon", "choices.*.mechanism.release"},
    *{"about.title", "about.controller", "about.contact"},
}
# What sums came to, and what they were of, is the word of who made the release; how many there are,
# and of which noise and bound, is not.
SUMMED = {
    *("released.values.*.*", "public.weights.*.*", "public.residual_units.*"),
    *("public.covered_only.*", "public.expected_uncovered", "public.mark_weight"),
    "public.scales.*.*",
    *("public.start.weights.*", "public.class_weights.*"),
    *("public.basis.name", "public.basis.n_bins", "public.n_records"),
}
# The price of votes of records does not depend on how many points take them; of a stream, whose
# queries all move, one number alone does not change.
STREAMS = (
    *("stream", "stream of two classes", "relabelled", "relabelled, add-remove"),
    *("votes of records", "votes of records, replaced", "votes of records, by user"),
    *("votes of records, uncovered ones apart", "table of abstentions"),
    "table on a relabelled sample",
)
# what is refused does not enter the price
PASSED = {"mechanism.threshold", "public.confidence"}
COUNTED = {"public.expected_uncovered", "released.values.*.*"}
SAMPLED = {"shape.sample.request", "shape.sample.serial"}


def leaves(value, place=()):
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*place, key))
    else:
        yield place


def others(value):
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int):
        found = [value + 1, value - 1]
    elif isinstance(value, float):
        found = [value * 2, value * 0.99, 0]
    else:
        words = "replace-one add-remove record label labels counts renyi"
        found = [*words.split(), "exact votes", None]
    return [other for other in found if other != value]


#: Of the same fields as others.
ALIKE = {
    *("relabelled, add-remove", "counts, replaced", "counts, of labels", "stream of two classes"),
    *("confident", "laplace", "votes of records, replaced", "votes of records, by user"),
    *("sums, replaced", "sums, by user", "table on a relabelled sample"),
}
one_of_a_kind = pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.slow] if kind in ALIKE else ()) for kind in KINDS],
)


@one_of_a_kind
def test_only_words_may_say_something_else(kind):
    certificate = issued(kind).certificate
    assert verify_certificate(certificate).ok
    survivors = set()
    for place in leaves({key: value for key, value in certificate.items() if key != "digest"}):
        value = certificate
        for key in place:
            value = value[key]
        named = (*place[:-1], "*") if place[0] == "software" else place
        pattern = ".".join("*" if isinstance(key, int) else key for key in named)
        if any(
            verify_certificate(renewed(changed(certificate, place, other))).ok
            for other in others(value)
        ):
            survivors.add(pattern)
    more = SUMMED if kind.startswith("sums") else COUNTED if "apart" in kind else set()
    more = more | PASSED if kind in ("confident", "interactive") else more
    more = more | {"released.values.*.*"} if kind == "choice" else more
    assert survivors <= WORDS | more | SAMPLED | ({"shape.n_queries"} if kind in STREAMS else set())


# Values that are equal to right ones in Python, or empty, or no text for a page; none of our
# programs writes them.
ODD = (True, None, "", " ", "\n", "\x1b[31m", [], {}, [""], ["x\n"], 1.0)
# Where one of them is the curator's word all the same: free texts and class names, which are shown
# with care.
ODD_WORDS = {
    *{
        (place, repr("\x1b[31m"))
        for place in ("composition.dataset", "unit_column", "choices.*.purpose")
    },
    *{("purpose", repr(text)) for text in ("", " ", "\n", "\x1b[31m")},
    *{("released.classes.*", repr(odd)) for odd in (True, "", " ", "\n", "\x1b[31m", 1.0)},
    *{("public.hypotheses", repr(odd)) for odd in ODD},
    *{("public.basis.n_bins", repr(odd)) for odd in ODD},
    ("public.expected_uncovered", "1.0"),
    *{
        (f"shape.sample.{name}", repr(text))
        for name in ("request", "serial")
        for text in (" ", "\n", "\x1b[31m")
    },
    ("public.basis.n_bins", "16.0"),
}


FIELDS = (
    *("labels by user", "labels with words", "rounds and choices", "relabelled", "choice"),
    *("votes of records", "sums", "vote table"),
)


@pytest.mark.parametrize(
    ("kind", "whole"),
    [
        *((kind, False) for kind in FIELDS),
        *(
            pytest.param(kind, True, marks=pytest.mark.slow)
            for kind in (*FIELDS, "interactive", "laplace counts")
        ),
    ],
)
def test_no_field_holds_a_value_that_only_looks_right(kind, whole, make_folder):
    """Both verifiers; what each says of the folder's other files does not matter here.

    At each commit a field takes a third of the odd values, and the next field the next third.
    """
    folder = make_folder(issued(kind))
    certificate = read_certificate(folder / "certificate.json")
    survivors = set()
    fields = {key: value for key, value in certificate.items() if key != "digest"}
    for number, place in enumerate(branches(fields)):
        value = certificate
        for key in place:
            value = value[key]
        some = ODD if whole else ODD[number % 3 :: 3]
        for odd in (*some, *([float(value)] if type(value) is int else [])):
            if place and repr(odd) != repr(value) and not (odd == 1.0 and isinstance(value, float)):
                document = renewed(changed(certificate, place, odd))
                (folder / "certificate.json").write_text(json.dumps(document))
                other = second.exit_code(second.check_release(str(folder)))
                if verify_certificate(document).ok or other == 0:
                    named = ("*" if isinstance(key, int) else key for key in place)
                    survivors.add((".".join(named), repr(odd)))
    assert survivors <= ODD_WORDS


def branches(value, place=()):
    yield place
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from branches(item, (*place, key))


# Several fields changed together, by a forger who knows what must agree; each claims more than was
# paid for.
def least_epsilon(certificate):
    """Return the epsilon that the events really cost at the promised delta."""
    if not certificate["delta"]:
        return float(certificate["epsilon"])
    if certificate["mechanism"]["kind"] == "relabelled-sample":
        return 0.001  # far too little, and found at once
    return epsilon_upper([event_in(event) for event in certificate["events"]], certificate["delta"])


SIGMAS = ("mechanism.sigmas", "events.0.sigmas")
TOGETHER = {
    "a smaller epsilon": lambda d: [
        (place, 0.99 * least_epsilon(d)) for place in ("epsilon", "price.epsilon")
    ],
    "a smaller delta": lambda d: [
        (place, d["price"]["delta_recomputed"] / 2)
        for place in ("delta", "price.delta", "price.delta_recomputed")
    ],
    "less noise": lambda d: [
        (place, d["mechanism"].get("scale", 0) / 2)
        for place in ("mechanism.scale", "events.0.sigma", "events.0.chances.sigma")
    ],
    "less noise on sums": lambda d: [
        (place, [sigma / 2 for sigma in d["mechanism"].get("sigmas", ())]) for place in SIGMAS
    ],
    "more queries": lambda d: [
        *[
            (place, 6 * N)
            for place in ("shape.n_queries", "shape.moved", "plan.planned", "events.0.queries")
        ],
        ("events.0.shifts", 6 * N * (1 if d["shape"].get("n_classes") == 2 else 2)),
    ],
    "queries that no teacher moves": lambda d: (
        [] if d["public"]["method"] != "votes" else [("shape.n_queries", 6 * N)]
    ),
    "counts of classes that are kept back": lambda d: [
        *[(place, d["mechanism"].get("sigmas", [])[1:]) for place in SIGMAS],
        ("released.values", d["released"].get("values", [])[1:]),
    ],
    "counts of classes with other noise": lambda d: [
        (place, [1e6, *d["mechanism"].get("sigmas", [])[1:]]) for place in SIGMAS
    ],
    "more sums": lambda d: [
        ("mechanism.sigmas", 2 * d["mechanism"].get("sigmas", [])),
        ("events.0.sigmas", 2 * d["mechanism"].get("sigmas", [])),
        ("released.values", 2 * d["released"].get("values", [])),
        *[
            (f"public.{name}", 2 * d["public"].get(name, []))
            for name in ("weights", "residual_units", "covered_only", "scales")
        ],
    ],
    "more models": lambda d: [("public.weights", 3 * d["public"].get("weights", []))],
    "longer vectors": lambda d: [
        (place, 4 * d["shape"].get("squared_sensitivity", 1))
        for place in ("shape.squared_sensitivity", "events.0.squared_sensitivity")
    ],
    "marks beyond a quarter of the bound": lambda d: [("public.mark_weight", 251)],
    "residuals whose squares wrap around": lambda d: [("public.residual_units.0", 2**33)],
    "sums by user for an account about records": lambda d: (
        [("composition.unit", "record")]
        if d["public"]["method"] == "record-moments" and d["unit"] == "user"
        else []
    ),
    "the number of records, which is private": lambda d: (
        [
            ("public.n_records", 500),
            ("public.marks", ["uncovered"]),
            ("shape.coordinates", d["shape"]["coordinates"] - 1),
            ("events.0.coordinates", d["shape"]["coordinates"] - 1),
            ("released.values", [one[:-1] for one in d["released"]["values"]]),
        ]
        if d["public"].get("marks") == ["records", "uncovered"]
        else []
    ),
    "the price of records that come": lambda d: (
        [
            ("shape.guarantee.relation", "add-remove"),
            ("shape.moved", d["shape"]["moved"] // 2),
            ("events.0.shifts", d["shape"]["moved"] // 2),
        ]
        if (d["public"]["method"], d["relation"]) == ("record-votes", "replace-one")
        else []
    ),
    "more abstentions": lambda d: [
        (place, 400)
        for place in (
            "mechanism.max_abstentions",
            "mechanism.stream.max_abstentions",
            "events.0.abstentions",
            "events.0.stream.abstentions",
        )
    ],
    "a table that answers at a tie": lambda d: (
        [("mechanism.weights", "3" + "f" * 15 + d["mechanism"]["weights"][16:])]
        if d["mechanism"]["kind"] == "abstention-table"
        else []
    ),
    "more of the records": lambda d: [
        (place, 1000) for place in ("shape.sample.sampled", "events.0.sampled")
    ],
    "counts for the price of labels": lambda d: [
        ("mechanism.release", "counts"),
        ("released.count_columns", 1),
    ],
    "a smaller choice": lambda d: [
        (place, 0.05)
        for place in ("choices.0.epsilon", "choices.1.epsilon", "choices.1.events.0.epsilon")
    ],
    "a free choice": lambda d: [("choices", [])],
    **{
        f"a choice, {name}": lambda d, changes=changes: (
            changes if d["public"]["method"] == "exponential-choice" else []
        )
        for name, changes in {
            "by user": [
                *(("unit", "user"), ("unit_column", "id")),
                ("shape.guarantee.unit", "user"),
            ],
            "of none of the candidates": [("released.values", [[7]])],
            "by another step": [("events.0", {"kind": "counts", "sigma": 90.0, "shifts": 1})],
        }.items()
    },
    "nothing spent": lambda d: [
        ("composition.spent_after.epsilon", 0.0),
        ("composition.spent_after.delta", 0.0),
    ],
}


def changed_together(certificate, name):
    """Return a certificate with several fields changed, and how many there were."""
    document, touched = json.loads(json.dumps(certificate)), 0
    for place, value in TOGETHER[name](certificate):
        *path, last = place.split(".")
        holder = document
        for key in path:
            holder = holder[int(key)] if isinstance(holder, list) else (holder or {}).get(key, {})
        known = int(last) if isinstance(holder, list) else last
        if (isinstance(holder, list) or known in (holder or {})) and holder[known] != value:
            holder[known], touched = value, touched + 1
    return renewed(document), touched


#: What the second verifier refuses without a look at the price.
OF_SUMS = {
    *("residuals whose squares wrap around", "sums by user for an account about records"),
    *("the number of records, which is private", "marks beyond a quarter of the bound"),
    *("counts of classes that are kept back", "counts of classes with other noise"),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_no_change_of_fields_together_claims_more_than_was_paid(name):
    tried = 0
    for kind in KINDS:
        document, touched = changed_together(issued(kind).certificate, name)
        # the price of a stream does not depend on how many queries it may ask
        if touched and not (name == "more queries" and kind in STREAMS):
            assert not verify_certificate(document).ok, kind
            if name in OF_SUMS and kind.startswith("sums, "):
                told = [second._terms_of(one) for one in (issued(kind).certificate, document)]
                verdicts = [{one.verdict for one in found} for found in told]
                assert verdicts[0] == {second.CONFIRMED}
                assert second.REFUSED in verdicts[1], kind
            tried += 1
    assert tried >= 1


NO_STARTS = {
    "a weight less": lambda start: start | {"weights": start["weights"][1:]},
    "no weights": lambda start: {"certificate": start["certificate"]},
    "weights that are no integers": lambda start: start | {"weights": [0.5, 1, 2]},
    "weights beyond every reader": lambda start: start | {"weights": [2**53, 1, 2]},
    "a digest of nothing": lambda start: start | {"certificate": "votes"},
    "something beside": lambda start: start | {"labels": [1, 0]},
    "a list": lambda start: [start],
    "nothing": lambda start: None,
}


def test_both_verifiers_refuse_what_is_no_start_and_a_start_where_no_stage_has_one():
    started, place = issued("sums, started from labels").certificate, ("public", "start")
    start = started["public"]["start"]
    second.certificate._check_mechanism(started)
    forged = {name: changed(started, place, forge(start)) for name, forge in NO_STARTS.items()}
    # the mechanism of a choice may say what it likes of its candidates
    kinds = [kind for kind in KINDS if not kind.startswith("sums") and kind != "choice"]
    for kind in (*kinds, "sums, of labels"):
        forged[kind] = changed(issued(kind).certificate, place, start)
    for name, document in forged.items():
        assert not verify_certificate(renewed(document)).ok, name
        with pytest.raises(second.WrongError):
            second.certificate._check_mechanism(renewed(document))


def first_row(lines, row):
    """Return lines with another first row."""
    return [lines[0], row, *lines[2:]]


CELLS = {
    "one more row": lambda lines: [*lines, "99,a,false" + ",130" * (lines[0].count(",") - 2)],
    "a row twice": lambda lines: [*lines, lines[1]],
    "a row less": lambda lines: lines[:-1],
    "a column of votes": lambda lines: [f"{lines[0]},votes", *(f"{one},201" for one in lines[1:])],
    "a column that is named": lambda lines: [
        f"{lines[0]},noisy_count[b]",
        *(f"{line},201" for line in lines[1:]),
    ],
    "free text": lambda lines: first_row(
        lines, re.sub(",[abc],", ",the patient is ill,", lines[1])
    ),
    "text in a number": lambda lines: first_row(lines, f"0{lines[1]}"),
    "an answer that abstains": lambda lines: first_row(lines, lines[1].replace("false", "true")),
    "an answer after the end": lambda lines: [
        *lines[:-1],
        re.sub(",,true$", ",b,false", lines[-1]),
    ],
    "a comment": lambda lines: [lines[0], "# 201 of 250", *lines[1:]],
    **{
        f"query {query}": lambda lines, query=query: first_row(
            lines, re.sub(r"^\d+", query, lines[1])
        )
        for query in ("-1", str(25_000 * 2**16))
    },
    **{
        f"a count of {count}": lambda lines, count=count: first_row(
            lines, re.sub(r"-?\d+$", count, lines[1])
        )
        for count in ("-10000", "10000", str(2**62))
    },
    "a label that its counts do not give": lambda lines: first_row(
        lines, lines[1].replace(",a,", ",b,") if "noisy_count" in lines[0] else lines[1]
    ),
}


@one_of_a_kind
def test_no_cell_says_more_than_was_paid_for(kind, tmp_path, seal, make_folder):
    """Both verifiers, and with the numbers of rows and answers set right on the certificate."""
    released = issued(kind)
    folder = make_folder(released)
    assert verify_certificate(folder).ok
    assert second.exit_code(second.check_release(str(folder))) == 0
    lines = (folder / "labels.csv").read_text().splitlines()
    for name, forge in CELLS.items():
        rows = forge(lines)
        # one model answers any number of points
        models = kind == "choice" or kind.startswith("sums")
        # how many records voted is told nowhere, so that no count is too high
        free = kind.startswith("votes of records") and name == "a count of 10000"
        if rows == lines or free or (models and name == "one more row"):
            continue
        (folder / "labels.csv").write_text("\n".join(rows) + "\n")
        stated = {"queries": len(rows) - 1, "answered": sum("false" in row for row in rows)}
        for other in ({}, stated) if name != "a row less" else ({},):
            seal(
                folder,
                {**released.certificate, "released": released.certificate["released"] | other},
            )
            assert not verify_certificate(folder).ok, name
            assert second.exit_code(second.check_release(str(folder))) == 4, name
