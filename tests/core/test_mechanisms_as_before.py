"""Draws and events are those of the mechanisms and aggregators that they replace, on the same
noise. This file goes with them."""

import numpy as np
import pytest

from secretballot import aggregation as recipes
from secretballot.aggregation.tables import LabelSetVoting, NumberVoting
from secretballot.core import events
from secretballot.core.mechanisms import (
    AbstentionTable,
    ConfidentLabels,
    NoisyMeans,
    NoisyVotes,
    RelabelledSample,
    SparseVector,
    StableValue,
    State,
    TableLabels,
    VoteQuantiles,
    weights_text,
)
from secretballot.core.types import Guarantee, Sample, VoteShape
from secretballot.privacy import accounting
from secretballot.privacy import mechanisms as old
from secretballot.privacy.accounting.abstention_table import answer_weights

RECORD = Guarantee(unit="record", relation="add-remove")
REPLACED = Guarantee(unit="record", relation="replace-one")
LOOSE = accounting.PrivacyBudget(1e4, 0.5)
ROWS, K = 60, 9
SAMPLE = Sample(sampled=50, out_of=1000, relabel_epsilon=1.0, request="r", serial="s")
TABLE = events.TableStream(order=3.0, charge=0.75, false_answer=0.01, abstentions=4)
SPARSE = {"threshold_scale": 2.0, "query_scale": 3.0, "threshold": 1}
CONFIDENT = {"threshold": 6, "threshold_sigma": 2.0, "sigma": 1.5, "max_answers": 7}


class RecordedNoise:
    """Seeded numbers in the order in which they are asked for, and what was asked for."""

    exact, description = False, "for a test"

    def __init__(self, seed):
        self.rng, self.asked = np.random.default_rng(seed), []

    def drawn(self, low, high, size, *asked):
        self.asked.append((*asked, size))
        return self.rng.integers(low, high, size)

    def discrete_laplace(self, scale, size):
        return self.drawn(-4, 5, size, "laplace", scale)

    def discrete_gaussian(self, sigma, size):
        return self.drawn(-4, 5, size, "gaussian", sigma)

    def uniform_integers(self, bits, size):
        return self.drawn(0, 2**bits, size, bits)

    def exponential_index(self, scores, scale):
        return int(self.drawn(0, len(scores), 1, scores.tolist(), scale)[0])

    def exponential_range(self, starts, ends, scale):
        first, last = sorted(self.drawn(0, len(starts), 2, starts.tolist(), ends.tolist(), scale))
        return None if first == 0 else (int(first), int(last))


def shape(n_classes, **more):
    fields = {"guarantee": RECORD, "n_queries": ROWS, "n_teachers": K, "moved": ROWS}
    return VoteShape(**{**fields, "n_classes": n_classes, **more})


def answered(aggregator):
    """Return how an aggregator draws, up to where it stops, and its event."""

    def draw(votes, noise):
        answers = aggregator.answer(votes, K, noise)
        drawn = answers.labels if answers.noisy_counts is None else answers.noisy_counts
        return drawn[: answers.n_reached]

    return draw, aggregator.events(K)[0]


def tabled(recipe, opened=lambda votes: votes):
    return lambda votes, noise: recipe.draw(opened(votes), noise), recipe.event


def stable(votes, noise):
    distances, labels = old.stability(votes), old.plurality(votes)
    return old.DistanceToInstability(3.0, 2).release(distances, labels, noise)


def positions(votes):
    return np.array([np.repeat(np.arange(votes.shape[1]), row) for row in votes])


def table_of(event):
    names = ("order", "charge", "false_answer")
    weights = weights_text(answer_weights(event, 4))
    terms = {name: getattr(event, name) for name in names}
    return AbstentionTable(max_abstentions=event.abstentions, weights=weights, **terms)


def voting(kind, scale, n_classes, release):
    priced = {"n_teachers": K} if kind is recipes.GaussianAggregator else {}
    settings = {"n_classes": n_classes, "release": release, "budget": LOOSE, **priced}
    return answered(kind(scale, ROWS, **settings))


NUMBERS = {"n_teachers": K, "target_range": (0.0, 1.0), "n_positions": 5, "budget": LOOSE}
SETS = {"n_teachers": K, "budget": LOOSE, "release": "counts", "ballot": "sets"}
SPARSE_EVENT = events.SparseStream(**SPARSE, abstentions=4, refresh=True)
WEIGHTS = (2**51, 2**50)
VOTES = {
    f"{noise} {release} {classes}": (
        NoisyVotes(noise=noise, scale=4.0, release=release),
        shape(classes),
        voting(kind, 4.0, classes, release),
    )
    for noise, kind in (
        ("gaussian", recipes.GaussianAggregator),
        ("laplace", recipes.LaplaceAggregator),
    )
    for release in ("labels", "counts")
    for classes in (2, 4)
} | {
    "table": (
        TableLabels(weights=WEIGHTS),
        shape(2),
        answered(recipes.VoteTableAggregator(WEIGHTS, ROWS, n_teachers=K, budget=LOOSE)),
    ),
    "confident": (
        ConfidentLabels(**CONFIDENT),
        shape(3),
        answered(
            recipes.ConfidentAggregator(n_queries=ROWS, n_classes=3, budget=LOOSE, **CONFIDENT)
        ),
    ),
    "sparse": (
        SparseVector(**SPARSE, max_abstentions=4),
        shape(3),
        answered(
            recipes.SparseVectorAggregator(
                **SPARSE, max_unstable=4, n_queries=ROWS, n_classes=3, budget=LOOSE
            )
        ),
    ),
    "abstentions": (
        table_of(TABLE),
        shape(3),
        answered(
            recipes.AbstentionTableAggregator(
                *(3.0, 0.75, 0.01, 4), n_queries=ROWS, n_classes=3, budget=LOOSE
            )
        ),
    ),
    "stable": (
        StableValue(scale=3.0, threshold=2),
        shape(3),
        (stable, events.StableTests(scale=3.0, threshold=2, count=ROWS)),
    ),
    "means": (
        NoisyMeans(sigma=3.0),
        shape(5),
        tabled(NumberVoting(3.0, ROWS, **NUMBERS)),
    ),
    "quantiles": (
        VoteQuantiles(epsilon=0.7, rank=5),
        shape(5),
        tabled(NumberVoting(0.7, ROWS, statistic="quantile", **NUMBERS)),
    ),
    "sets": (
        NoisyVotes(scale=3.0, release="counts"),
        shape(4),
        tabled(LabelSetVoting(3.0, ROWS, labels=("a", "b"), **SETS)),
    ),
}
for stream, event in (("sparse", SPARSE_EVENT), ("abstentions", TABLE)):
    sampled = events.Sampled(
        stream=event, sampled=50, out_of=1000, relation="replace-one", relabel_epsilon=1.0
    )
    VOTES[f"relabelled {stream}"] = (
        RelabelledSample(stream=VOTES[stream][0]),
        shape(2, guarantee=REPLACED, sample=SAMPLE),
        answered(recipes.RelabelledAggregator(sampled, n_queries=ROWS, budget=LOOSE)),
    )


@pytest.mark.parametrize("name", VOTES)
def test_votes(name):
    mechanism, terms, (draw, event) = VOTES[name]
    if name == "confident":  # the threshold is stated, for two classes' sake
        event = event.model_copy(update={"threshold": CONFIDENT["threshold"], "n_teachers": K})
    assert mechanism.event(terms) == event
    for seed in range(25):
        votes = np.random.default_rng(seed).multinomial(
            K, (s := np.arange(1, terms.n_classes + 1)) / s.sum(), ROWS
        )
        noises = RecordedNoise(seed), RecordedNoise(seed)
        found, _ = mechanism.draw(terms, (votes, np.zeros_like(votes)), noises[0], State())
        assert found.dtype == np.int64
        assert found.ravel().tolist() == np.ravel(draw(votes, noises[1])).tolist()
        assert noises[0].asked == noises[1].asked


def test_corrected_predictions():
    aggregator = recipes.InteractiveAggregator(
        n_queries=ROWS, n_classes=3, budget=LOOSE, **CONFIDENT
    )
    rng = np.random.default_rng(0)
    votes, shares = rng.multinomial(K, [0.6, 0.3, 0.1], ROWS), rng.dirichlet(np.ones(3), ROWS)
    noises = RecordedNoise(0), RecordedNoise(0)
    predicted = np.floor(shares * K).astype(np.int64)
    found, _ = ConfidentLabels(**CONFIDENT).draw(shape(3), (votes, predicted), noises[0], State())
    before = aggregator.answer(votes, K, noises[1], shares)
    assert found.ravel().tolist() == before.labels[: before.n_reached].tolist()
    assert noises[0].asked == noises[1].asked


@pytest.mark.parametrize("guarantee", [RECORD, REPLACED])
def test_votes_of_records(guarantee):
    aggregator = recipes.RecordVotesAggregator(
        3.0,
        ROWS,
        votes_per_record=5,
        n_classes=3,
        neighbours=guarantee.relation,
        budget=LOOSE,
        expected_uncovered=0.1,
    )
    moved = 5 if guarantee == RECORD else 10
    terms = shape(3, guarantee=guarantee, n_teachers=None, moved=moved, spare_rows=2)
    mechanism = NoisyVotes(scale=3.0, release="counts")
    assert [mechanism.event(terms)] == list(aggregator.events(0))
    votes = np.random.default_rng(0).integers(0, 1000, (ROWS + 2, 3))
    found, _ = mechanism.draw(terms, (votes, np.zeros_like(votes)), RecordedNoise(0), State())
    before = aggregator.answer(votes, 0, RecordedNoise(0))
    assert found[:ROWS].tolist() == before.noisy_counts.tolist()
    assert found[ROWS:].ravel()[:5].sum() == before.outcome["uncovered_votes"]
