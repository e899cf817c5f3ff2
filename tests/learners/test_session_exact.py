"""The true delta(epsilon) of a few questions that are chosen from the answers so far, through the
session's own code.

A session on made-up votes answers with every value that its noise can take; whatever it keeps
between questions (the ledger, the secret state) is put back before the next value. What comes out
is the exact law of all its answers, on both sides of one teacher's change. It must keep the promise
of the plan.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import secretballot as sb
from exact_games.distributions import discrete_gaussian_distribution, discrete_laplace_distribution
from secretballot.accounting import delta_upper
from secretballot.core import releasing
from secretballot.core.mechanisms import NoisyVotes
from secretballot.core.releasing import AnswerStream
from sessions import session as begun_session
from sessions import sparse

DEPTH = 3  # questions
History = tuple[int, ...]
Tree = Callable[[History], int]


class _Tape:
    """Noise that is played from a list; where the list ends, it keeps which scale came next."""

    exact, description = True, "played"

    def __init__(self):
        self.play(())

    def play(self, values):
        self.values: list[int] = list(values)
        self.needed: float | None = None

    def _next(self, scale, size):
        if self.needed is not None or size > len(self.values):
            self.needed = self.needed or scale
            return np.zeros(size, dtype=np.int64)
        taken, self.values = self.values[:size], self.values[size:]
        return np.array(taken, dtype=np.int64)

    def discrete_gaussian(self, sigma, size):
        return self._next(sigma, size)

    def discrete_laplace(self, scale, size):
        return self._next(scale, size)


@dataclass
class _Votes:
    """Teachers whose votes on a point are looked up by the point."""

    ones: dict[int, int]
    n_teachers: int
    n_classes: int = 2

    def vote_counts(self, points, **_):
        ones = np.array([self.ones[int(point[0])] for point in points])
        return sb.votes_of_counts(np.column_stack([self.n_teachers - ones, ones]))


@pytest.fixture
def tape(monkeypatch):
    played = _Tape()
    monkeypatch.setattr(releasing, "noise_source", lambda: played)
    return played


class World:
    """One session on made-up votes, which can be put back to where it was."""

    def __init__(self, mechanism, queries, ones, n_teachers):
        ledger = sb.Ledger.in_memory(dataset="made up", budget=sb.PrivacyBudget(1e4, 0.9999))
        declared = {"unit": "record", "unit_column": None, "relation": "add-remove"}
        votes = _Votes(ones, n_teachers)
        teachers = sb.TrainedTeachers(votes, (0, 1), declared, np.empty((0, 1)))
        self.session = begun_session(teachers, mechanism, ledger, queries, delta=0.2)
        self.stream: AnswerStream = self.session._stream

    def keep(self):
        book, memory = self._book()
        return memory.serialize(), book._seen, self.stream._states._held

    def put_back(self, kept):
        book, memory = self._book()
        memory.deserialize(kept[0])
        book._seen, self.stream._states._held = kept[1], kept[2]

    def _book(self):
        """Return the account, and the database in memory that holds it."""
        book = self.session.ledger
        ((memory, _, _),) = book._store._resting._kept
        return book, memory

    def hidden(self):
        """Return what the next answer depends on besides its votes."""
        with self.session.ledger.reading(1) as page:
            last = page.last()
        if last is None:
            return ()
        part = self.stream._own.decoded(last)
        secret = self.stream._states.load(part.mark)
        return () if secret is None else (part.used, secret)

    def ask(self, point):
        try:
            answer = self.session.ask([point])
        except sb.BudgetError:
            return None
        return -1 if answer.label is None else answer.label


def promised(mechanism, queries, n_teachers, epsilon):
    """Return the delta that so many answers of a mechanism cost."""
    shape = sb.votes_of_counts([[n_teachers, 0]] * queries).shape
    return delta_upper((mechanism.event(shape),), epsilon)


def outcomes(world, tape, laws, point):
    """Ask with every value of the noise; the world is left as the answer left it at each yield."""
    kept, waiting = world.keep(), [((), 1.0)]
    while waiting:
        values, weight = waiting.pop()
        world.put_back(kept)
        tape.play(values)
        outcome = world.ask(point)
        if tape.needed is not None:
            law = laws[tape.needed]
            waiting += [
                ((*values, int(v)), weight * p) for v, p in zip(law.support, law.pmf, strict=True)
            ]
            continue
        assert tape.values == []
        yield outcome, weight
    world.put_back(kept)


def explore(world, tape, laws, tree):
    """Return the exact law of all labels; a place is walked once for each secret state."""
    found = defaultdict(float)
    places = {((), ()): (1.0, world.keep())}
    for _ in range(DEPTH):
        following = {}
        for (history, _), (weight, kept) in places.items():
            world.put_back(kept)
            for outcome, p in outcomes(world, tape, laws, tree(history)):
                if outcome is None:
                    found[history] += weight * p
                    continue
                place = (*history, outcome), world.hidden()
                before, kept_there = following.get(place) or (0.0, world.keep())
                following[place] = before + weight * p, kept_there
        places = following
    for (history, _), (weight, _) in places.items():
        found[history] += weight
    return found


def delta_of(here, there, epsilon):
    """Return the true delta(epsilon) of the labels, the worse of both directions."""
    seen = here.keys() | there.keys()
    pairs = [(here.get(h, 0.0), there.get(h, 0.0)) for h in seen]
    return max(
        sum(max(0.0, p - math.exp(epsilon) * q) for p, q in pairs),
        sum(max(0.0, q - math.exp(epsilon) * p) for p, q in pairs),
    )


def explored(plan, tape, laws, tree, votes, n_teachers):
    """Return the laws of the answers of a mechanism to so many queries, on both sides."""
    points = {point: votes(point) for point in range(100)}
    sides = []
    for side in (0, 1):
        world = World(*plan, {point: pair[side] for point, pair in points.items()}, n_teachers)
        sides.append(explore(world, tape, laws, tree))
    return sides[0], sides[1]


def near_tie(point):
    return (2, 3) if point % 2 else (3, 2)


def by_last_label(history):
    return 10 * len(history) + (history[-1] if history else 0)


SIGMA, K = 0.9, 5
LABELS = NoisyVotes(scale=SIGMA)
GAUSS = {SIGMA: discrete_gaussian_distribution(SIGMA, 1e-12)}
EPSILONS = (0.0, 0.5, 1.5, 3.0)


def test_labels_keep_their_promise_and_it_is_nearly_attained(tape):
    here, there = explored((LABELS, DEPTH), tape, GAUSS, by_last_label, near_tie, K)
    assert len(here) == 2**DEPTH
    assert sum(here.values()) == pytest.approx(1)
    for epsilon in EPSILONS:
        true = delta_of(here, there, epsilon)
        most = promised(LABELS, DEPTH, K, epsilon)
        assert true <= most
        assert true >= 0.5 * most or epsilon == 3.0


def test_a_question_asked_several_times_is_one_answer(tape):
    here, there = explored((LABELS, 1), tape, GAUSS, lambda _: 0, near_tie, K)
    assert set(here) == {(label,) * DEPTH for label in (0, 1)}
    for epsilon in EPSILONS:
        assert delta_of(here, there, epsilon) <= promised(LABELS, 1, K, epsilon)


def test_the_plan_s_end_is_kept(tape):
    here, there = explored((LABELS, 2), tape, GAUSS, by_last_label, near_tie, K)
    assert {len(history) for history in here} == {2}
    assert delta_of(here, there, 1.5) <= promised(LABELS, 2, K, 1.5)


TEACHERS = 60


def around(threshold):
    """Return votes whose stability is the threshold on one side and one less on the other; even
    points say class 0."""

    def votes(point):
        pair = (TEACHERS // 2 - 1 - threshold, TEACHERS // 2 - threshold)  # votes for class 1
        return pair if point % 2 == 0 else (TEACHERS - pair[0], TEACHERS - pair[1])

    return votes


def by_last_answer(history):
    return 10 * len(history) + (1 if history and history[-1] == 0 else 0)


def test_a_short_sparse_stream_keeps_its_promise(tape):
    mechanism, tail = sparse(0.5, 6, 2), 5e-3
    scale = mechanism.threshold_scale
    laws, threshold = {scale: discrete_laplace_distribution(scale, tail)}, mechanism.threshold
    sides = explored((mechanism, DEPTH), tape, laws, by_last_answer, around(threshold), TEACHERS)
    draws = DEPTH + mechanism.max_abstentions
    for side in sides:
        assert 1 - draws * tail <= sum(side.values()) <= 1 + 1e-9
        assert all(history.count(-1) <= mechanism.max_abstentions for history in side)
    # of all abstentions is lost what one tells, twice
    for epsilon in (0.3, 1.0, 2 * (1 / scale + 2 / mechanism.query_scale)):
        true = delta_of(*sides, epsilon)
        assert true <= promised(mechanism, DEPTH, TEACHERS, epsilon) + draws * tail
