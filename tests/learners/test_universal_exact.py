"""The true delta(epsilon) of a universal labeler, both parts together, over all neighbours of tiny
worlds.

The labeler's own code runs: what it samples, how it relabels and which noise it meets are scripted,
and what its second draw weighs is read off. Both parts use coins of their own, so that the law of
everything is the product of their laws.
"""

import itertools
import math
from functools import cache

import numpy as np
import pytest

import secretballot as sb
from exact_games.distributions import discrete_laplace_distribution
from flips import ScriptedChoice
from made_events import pure_event, sampled_event, sparse_event
from secretballot.accounting import PrivacyBudget, delta_upper, price
from secretballot.core import releasing
from secretballot.core.mechanisms import plurality, stability
from secretballot.learners import labelers as secret_sample
from secretballot.learners.labelers import Agnostic, _BudgetSplit

# worlds so small that hardly any delta is below one over their number
pytestmark = pytest.mark.filterwarnings("ignore:delta is")
QUERIES = np.array([[0.5], [1.5]])
LINE = tuple(itertools.product((0.0, 1.0, 2.0), (0, 1)))
Records = tuple[tuple[float, int], ...]
Law = np.ndarray
BUDGET = PrivacyBudget(1.0, 0.95)


def true_delta(here, there, epsilon):
    return float(np.maximum(here - math.exp(epsilon) * there, 0).sum())


def jointly(*laws):
    """Law of everything that leaves, for parts with coins of their own."""
    whole = np.ones(1)
    for law in laws:
        whole = np.outer(whole, law).ravel()
    return whole


def answers_law(event, ones, n_teachers):
    """Law of the answers to two queries with so many votes for 1: label 0, label 1, none, or 3
    after the stop."""
    shift, query = (
        discrete_laplace_distribution(event.threshold_scale),
        discrete_laplace_distribution(event.query_scale),
    )
    counts = np.array([[n_teachers - votes, votes] for votes in ones])
    label = plurality(counts)
    one, two = query.at_least(
        event.threshold + shift.support[None, :] - stability(counts)[:, None] + 1
    )
    table = np.zeros((4, 4))
    table[label[0], label[1]] = shift.pmf @ (one * two)
    table[label[0], 2] = shift.pmf @ (one * (1 - two))
    assert event.abstentions == 1
    table[2, 3] = shift.pmf @ (1 - one)
    return table.ravel()


class World:
    """Universal labelers on a few records, fitted and asked with every outcome of their coins."""

    def __init__(self, monkeypatch, hypotheses, event, share):
        self.hypotheses, self.event, self.share = hypotheses, event, share
        self.first_epsilon = BUDGET.epsilon - share
        self.rows, self.relabelling, self.choice = np.arange(0), ScriptedChoice(), ScriptedChoice()
        monkeypatch.setattr(secret_sample, "_sample_in_random_order", lambda n, m: self.rows)
        monkeypatch.setattr(secret_sample, "noise_source", lambda: self.relabelling)
        monkeypatch.setattr(releasing, "noise_source", lambda: self.choice)
        monkeypatch.setattr(Agnostic, "terms", lambda _, asked: self.plan(asked))
        self.answers = cache(lambda ones: answers_law(event.stream, ones, 1))
        self.told = cache(self._told)

    def plan(self, asked):
        """Return a plan small enough to be enumerated, in place of one that keeps the budget:
        with one teacher."""
        assert asked.budget.epsilon == self.first_epsilon
        return self.event, 1

    def fitted(self, records):
        labeler = sb.Labeler(
            f"universal:n_first={len(QUERIES)},epsilon_share={self.share}",
            self.hypotheses,
            **BUDGET.to_json(),
            relation="replace-one",
        )
        X, y = np.array([[x] for x, _ in records]), [label for _, label in records]
        return labeler.fit(X, y, classes=[0, 1])

    def _told(self, sample):
        """Law of the first part's answers, given what was sampled, in its order."""
        self.rows, self.relabelling.outcome, total = np.arange(len(sample)), 0, np.zeros(16)
        filled = sample + LINE[:1] * (self.event.out_of - len(sample))
        while self.relabelling.outcome < len(self.relabelling.law) or not self.relabelling.outcome:
            session = self.fitted(filled).session_.first
            assert session is not None
            ones = session._teachers.vote(QUERIES, request=session.request)._unseal()[0][:, 1]
            total += self.relabelling.law[self.relabelling.outcome] * self.answers(
                tuple(ones.tolist())
            )
            self.relabelling.outcome += 1
        return total

    def first(self, records):
        """Law of the answers of the first part."""
        samples = list(itertools.permutations(records, self.event.sampled))
        return sum((self.told(sample) for sample in samples), np.zeros(16)) / len(samples)

    def endless(self, records):
        """Law of the hypothesis that answers in the end."""
        self.rows, self.relabelling.outcome = np.arange(self.event.sampled), 0
        labeler = self.fitted(records)
        # answered as if no noise were drawn, and then the switch
        assert labeler.ask_many(QUERIES).answered.all()
        assert len(self.choice.law) == labeler.session_.endless.n_candidates
        return self.choice.law

    def pairs(self, law):
        """Laws of all datasets that differ in one record."""
        for shared in itertools.combinations_with_replacement(LINE, self.event.out_of - 1):
            yield from itertools.permutations(
                [law(tuple(sorted((*shared, record)))) for record in LINE], 2
            )


def test_both_parts_together_cost_no_more_than_was_asked(monkeypatch):
    share, event = 0.5, sampled_event(sparse_event(1.0, 1.0, 0, 1), 2, 3, "replace-one")
    world = World(monkeypatch, sb.hypotheses.Thresholds(), event, share)
    first, endless = cache(world.first), cache(world.endless)
    whole = list(world.pairs(lambda records: jointly(first(records), endless(records))))
    alone, told = list(world.pairs(endless)), list(world.pairs(first))
    for epsilon in (0.0, 0.1, 0.3, share, BUDGET.epsilon, 1.5):
        true = max(true_delta(*pair, epsilon) for pair in whole)
        promised = price((event, pure_event(share, 1)), epsilon=epsilon).delta
        assert true <= promised + 1e-12
    # split as asked: all of delta, and what is left of epsilon, are the first part's
    assert max(true_delta(*pair, BUDGET.epsilon) for pair in whole) <= delta_upper(
        [event], BUDGET.epsilon - share
    )
    losses = [np.abs(np.log(here / there)).max() for here, there in alone]
    assert 0.55 * share < max(losses) <= share
    # each part tells something by itself, and together they tell what neither would
    assert max(true_delta(*pair, 0.0) for pair in told) > 1e-3
    assert max(true_delta(*pair, max(losses)) for pair in whole) > 1e-4
    # a hypothesis that is drawn anew would be caught
    twice = world.pairs(lambda records: jointly(endless(records), endless(records)))
    assert max(true_delta(*pair, share) for pair in twice) > 0.01


def sharpest(epsilon, side):
    """The law that tells most of all that are (epsilon, 0)-private."""
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    return np.array([right, 1 - right])[:: 1 - 2 * side]


def printed(total, share, n_first):
    """As Algorithm 4 has it: all of epsilon to each part."""
    return _BudgetSplit(
        epsilon=total.epsilon,
        delta=total.delta,
        first_epsilon=total.epsilon,
        endless_epsilon=total.epsilon,
        first_questions=n_first,
    )


ASKED = PrivacyBudget(1.0, 1e-6)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_worst_of_two_guarantees_keeps_epsilon_and_as_printed_it_does_not(share):
    def delta(split):
        sides = [
            jointly(sharpest(split.first_epsilon, side), sharpest(split.endless_epsilon, side))
            for side in (0, 1)
        ]
        return true_delta(*sides, ASKED.epsilon)

    assert delta(_BudgetSplit.of(ASKED, share, 100)) <= 1e-15
    assert delta(printed(ASKED, share, 100)) == pytest.approx(0.338, abs=5e-4)
