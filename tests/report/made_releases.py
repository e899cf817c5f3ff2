"""Releases of every kind, priced for real and small enough to be quick."""

import math
from dataclasses import replace
from functools import cache

import numpy as np

from made_certificates import ACCOUNT, build_certificate, renewed
from made_events import abstention_event, json_of, sparse_event
from noisy_plans import calibrated, confident, noisy, priced
from secretballot.accounting import PrivacyBudget, calibrate_pure
from secretballot.accounting.calibration import calibrate_vector_sum
from secretballot.accounting.recipes import Terms, stream_mechanism
from secretballot.core.mechanisms import (
    ExponentialChoice,
    NoisySums,
    NoisyVotes,
    RelabelledSample,
    StabilityQuantile,
    StableValue,
    TableLabels,
)
from secretballot.core.types import Guarantee, Sample, ScoreShape, SumShape, VoteShape
from secretballot.released import ReleasedLabels
from secretballot.report.certificate import describe_released, with_about
from secretballot.teachers.votes import guarantee_of, record_votes_shape

BUDGET = PrivacyBudget(1.0, 1e-5)
STREAM = {"threshold_scale": 30.0, "query_scale": 60.0, "threshold": 1200, "max_abstentions": 2}
TABLE = abstention_event(15.0, 0.5, 1e-7, 2)
N = 12
RECORD_NOISE = NoisyVotes(scale=20.0, release="counts")
RECORDS, USERS = (Guarantee(unit=unit, relation="add-remove") for unit in ("record", "user"))


def votes_of(n, guarantee=USERS, sample=None):
    return VoteShape(
        guarantee=guarantee, n_queries=n, n_classes=2, n_teachers=250, moved=n, sample=sample
    )


def drawn_choice(mechanism, shape, **more):
    """Return what a certificate lists of a choice by a mechanism."""
    return {
        "mechanism": mechanism.model_dump(mode="json"),
        "shape": shape.model_dump(mode="json"),
        "events": [json_of(mechanism.event(shape))],
        **more,
    }


POOL = votes_of(90, RECORDS)
ESTIMATE = StabilityQuantile(epsilon=calibrate_pure(PrivacyBudget(0.1, 0.0), 1), fraction=0.5)
CHOSEN = drawn_choice(
    ESTIMATE,
    POOL,
    purpose="how often the teachers disagree",
    public={"method": "stability-quantile"},
    epsilon=0.1,
    delta=0.0,
    value=412,
    reservation=3,
)
COMPARED = drawn_choice(
    NoisyVotes(noise="laplace", scale=1000.0),
    POOL,
    purpose="how often the teachers disagree",
    public={"method": "votes"},
    epsilon=0.1,
    delta=0.0,
    labels_sha256="0" * 64,
    reservation=4,
)


def issue(
    terms,
    labels,
    counts=None,
    *,
    classes=None,
    unit="record",
    relation="add-remove",
    kind="basic",
    n_teachers=250,
    outcome=None,
    **more,
):
    """Return a release as it would be certified."""
    mechanism = terms.mechanism
    sigma = None if counts is None else mechanism.scale
    shape = terms.shape.changed(guarantee=guarantee_of(unit, relation))
    queries, classes = 3 * np.arange(len(labels)), classes or list("abc")[: shape.n_classes]
    told = describe_released(queries, labels, classes, n_teachers, counts, "1" * 64)
    told |= {} if outcome is None else {"values": [[outcome]]}
    given = {
        "mechanism": mechanism,
        "shape": shape,
        "public": terms.public,
        "budget": terms.budget,
        "released": told,
        "composition": ACCOUNT | {"kind": kind, "unit": unit, "relation": relation},
        "purpose": "triage",
    }
    certificate = build_certificate(**(given | more))
    return ReleasedLabels(queries, labels, classes, n_teachers, sigma, counts, certificate)


def binary(classes=("no", "yes"), n=60, scale=32.0, n_queries=None, **more):
    """Return counts of two classes by user, for a plan of `n_queries`."""
    counts = np.clip(np.random.default_rng(5).normal(130, 90, n), -100, 350).astype(int)
    terms = noisy(scale, n_queries or n, release="counts", budget=BUDGET, n_teachers=250)
    labels = (2 * counts >= 250).astype(int)
    return issue(terms, labels, counts, classes=classes, **({"unit": "user"} | more))


def voted(**more):
    return issue(noisy(20.0, N, budget=BUDGET, n_teachers=250), np.arange(N) % 2, **more)


def counted(**more):
    counts = np.arange(N) * 20
    return issue(
        noisy(20.0, N, release="counts", budget=BUDGET, n_teachers=250),
        (2 * counts >= 250) * 1,
        counts,
        **more,
    )


def tallied(classes=("a", "b", "c"), **more):
    counts = np.random.default_rng(1).integers(0, 250, (N, len(classes)))
    terms = noisy(30.0, N, n_classes=len(classes), release="counts", budget=BUDGET, n_teachers=250)
    return issue(terms, counts.argmax(axis=1), counts, classes=classes, **more)


def by_record(n_classes=2, relation="add-remove", **more):
    counts = np.random.default_rng(1).integers(-20, 900, (N, n_classes))
    shape = record_votes_shape(N, n_classes, 4, guarantee_of(more.get("unit", "record"), relation))
    return issue(
        Terms(RECORD_NOISE, shape, BUDGET, {"method": "record-votes"}),
        counts.argmax(axis=1),
        counts,
        relation=relation,
        n_teachers=0,
        **more,
    )


def uncovered_counted():
    counts = np.random.default_rng(1).integers(-20, 900, (N, 2))
    shape = record_votes_shape(N, 2, 4, RECORDS, counts_uncovered=True)
    public = {"method": "record-votes", "expected_uncovered": 0.125}
    terms = Terms(RECORD_NOISE, shape, BUDGET, public)
    return issue(terms, counts.argmax(axis=1), counts, n_teachers=0, outcome=4 * 37 - 11)


def withheld(classes=("a", "b", "c"), stream=None, **more):
    stream = stream or sparse_event(*STREAM.values())
    labels = np.arange(N) % len(classes)
    labels[[2, *range(8, N)]] = -1
    terms = priced(stream_mechanism(stream, 250), N, 250, len(classes), BUDGET)
    return issue(terms, labels, classes=classes, **more)


def passed(confidence=None):
    mechanism, labels = confident(160, 120.0, 30.0, 2), np.array([0, -1, -1, 1])
    # the second verifier plays a game whose length is the number of queries
    terms = priced(mechanism, len(labels), 250, delta=1e-5, confidence=confidence)
    assert terms.budget.epsilon < 2
    return issue(terms, labels)


def stable():
    labels = np.where(np.arange(N) % 3 == 0, -1, np.arange(N) % 2)
    terms = priced(StableValue(scale=20.0, threshold=300), N, 250, delta=1e-5)
    return issue(terms, labels)


def by_chances():
    weights = (2**52, 15 * 2**48, 14 * 2**48)
    terms = priced(TableLabels(weights=weights), N, 250, delta=1e-5)
    assert terms.budget.epsilon < 1.5
    return issue(terms, np.arange(N) % 2)


def pure(release):
    counts = np.random.default_rng(1).integers(-40, 250, (N, 3))
    terms = calibrated(
        PrivacyBudget(1.0, 0.0), N, n_classes=3, release=release, n_teachers=250, noise="laplace"
    )
    return issue(terms, counts.argmax(axis=1), counts if release == "counts" else None)


def relabelled(relation, stream=None):
    stream = stream or sparse_event(*STREAM.values())
    sample = Sample(sampled=10, out_of=1000, relabel_epsilon=1.0, request="request", serial="a")
    rows = {"n_queries": N, "moved": N, "guarantee": guarantee_of("record", relation)}
    shape = POOL.changed(**rows, sample=sample)
    mechanism = RelabelledSample(stream=stream_mechanism(stream, 250))
    labels = np.where((np.arange(N) < 8) & (np.arange(N) != 3), 1, -1)
    terms = Terms(mechanism, shape, BUDGET, {"method": "votes"})
    return issue(terms, labels, relation=relation)


def in_rounds():
    plan = {
        "planned": N,
        "used": 8,
        "rounds": [5, 3],
        "strategy": {"name": "margin"},
        "left": "kept",
    }
    counts = np.arange(8) * 30
    terms = noisy(20.0, N, release="counts", budget=BUDGET, n_teachers=250)
    return issue(terms, (2 * counts >= 250) * 1, counts, plan=plan, choices=[CHOSEN, COMPARED])


def without_teachers(mechanism, shape, public, budget, values):
    """Return released integers, and labels that follow from them."""
    labels = np.arange(N) % 2
    told = describe_released(np.arange(N), labels, ["a", "b"], 0) | {"values": values}
    certificate = build_certificate(
        mechanism=mechanism, shape=shape, public=public, budget=budget, released=told
    )
    return ReleasedLabels(np.arange(N), labels, ["a", "b"], 0, certificate=certificate)


def chosen():
    budget = PrivacyBudget(0.5, 0.0)
    mechanism = ExponentialChoice(epsilon=calibrate_pure(budget, 1))
    public = {"method": "exponential-choice", "n_candidates": 7, "hypotheses": "intervals"}
    return without_teachers(mechanism, ScoreShape(guarantee=RECORDS), public, budget, [[3]])


def summed(relation="add-remove", unit="record", start=None):
    """Return noisy sums of two stages over three coordinates, after counts of the classes where
    nothing else is there to start from, and the labels that follow."""
    counts = start is None and unit != "label"
    public = relation == "replace-one"
    marks = ["uncovered"] if public else ["records", "uncovered"]
    marks = [] if unit == "label" else marks
    squared = (4 if public else 1) * 1000**2
    first = math.sqrt(49 / 2) if counts else None
    sigma = calibrate_vector_sum(BUDGET, squared, 3 + len(marks), 2, first=first)
    mechanism = NoisySums(sigmas=(*([first * sigma] if first else []), sigma, sigma))
    guarantee, coordinates = guarantee_of(unit, relation), 3 + len(marks)
    shape = SumShape(guarantee=guarantee, coordinates=coordinates, squared_sensitivity=squared)
    settings = {
        "method": "record-moments",
        "residual_units": [1024, 1280],
        "mark_weight": 99 if marks else 0,
        "marks": marks,
        "expected_uncovered": 0.02,
        "n_records": 500 if public else None,
        "basis": {"name": "table", "n_bins": 16},
        "basis_sha256": "2" * 64,
        "weights": [[5, -6, 7], [8, 9, -10]],
        "covered_only": [True, True],
        "scales": [[4096, 4096, 4096], [1, 5000, 2**18]],
    }
    settings |= {} if start is None else {"start": start}
    sums = [[2000 + k for k in range(coordinates)] for _ in mechanism.sigmas]
    return without_teachers(mechanism, shape, settings, BUDGET, sums)


def started():
    """Return sums whose first stage started from an earlier release."""
    return summed(start={"certificate": "3" * 64, "weights": [11, 12, 13]})


def named():
    """Return labels with the curator's words on them, as a release folder has them."""
    plain = voted()
    about = {"title": "The registry", "controller": "The office", "contact": "office@example.org"}
    return replace(plain, certificate=with_about(plain.certificate, about))


def weighted():
    """Return sums of a model whose decisions count one class for more."""
    plain = summed()
    public = plain.certificate["public"] | {"class_weights": [0.5, 20.0]}
    return replace(plain, certificate=renewed(plain.certificate, public=public))


KINDS = {
    "labels": voted,
    "labels by user": lambda: voted(unit="user"),
    "counts": counted,
    "counts, replaced": lambda: counted(relation="replace-one"),
    "counts, of labels": lambda: counted(unit="label", relation="replace-one"),
    "counts of three classes": tallied,
    "stream": withheld,
    "table of abstentions": lambda: withheld(stream=TABLE),
    "table on a relabelled sample": lambda: relabelled("replace-one", TABLE),
    "stream of two classes": lambda: withheld(("a", "b")),
    "relabelled": lambda: relabelled("replace-one"),
    "relabelled, add-remove": lambda: relabelled("add-remove"),
    "confident": passed,
    "interactive": lambda: passed(0.9),
    "stable values": stable,
    "vote table": by_chances,
    "laplace": lambda: pure("labels"),
    "laplace counts": lambda: pure("counts"),
    "rounds and choices": in_rounds,
    "choice": chosen,
    "votes of records": by_record,
    "votes of records, uncovered ones apart": uncovered_counted,
    "votes of records, replaced": lambda: by_record(3, "replace-one"),
    "votes of records, by user": lambda: by_record(unit="user"),
    "sums": summed,
    "sums, started from labels": started,
    "sums, of weighted classes": weighted,
    "sums, replaced": lambda: summed("replace-one"),
    "sums, by user": lambda: summed(unit="user"),
    "sums, of labels": lambda: summed("replace-one", "label"),
    "labels with words": named,
}


@cache
def issued(kind):
    return KINDS[kind]()
