"""The price of a stream on a relabelled secret sample: constants, steps of the proof, small
worlds enumerated."""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from exact_games.distributions import discrete_laplace_distribution
from exact_games.games import hockey_stick
from made_events import sampled_event, sparse_event
from secretballot.accounting import (
    PrivacyBudget,
    Sampled,
    SparseStream,
    calibrate_sparse_vector,
    delta_upper,
)
from secretballot.core import sampling
from secretballot.core.mechanisms import plurality, stability
from secretballot.core.sampling import SLACK, relabelling_loss
from secretballot.hypotheses import FiniteClass, HypothesisClass, Intervals, Thresholds

C = (1 + math.exp(0.5)) ** 2
LOUD = sparse_event(1.0, 1.0, 0, 1)

Record = tuple[int, int]
Law = np.ndarray
LINE: tuple[Record, ...] = tuple(itertools.product((0, 1, 2), (0, 1)))


def drawn_weights(mistakes: np.ndarray, et: float) -> np.ndarray:
    """Return the chances by which `relabel` draws labellings with so many mistakes."""
    weights = np.exp((mistakes.min() - mistakes) * et / 2)
    return np.asarray(weights / weights.sum())


def relabelled_delta(profile: Callable[[float], float], epsilon: float, loss: float) -> float:
    """Return the bound of the core, of a profile of single numbers."""
    found = sampling._relabelled_delta(np.vectorize(profile), np.array([epsilon]), loss)
    return float(found[0])


def unsampled_epsilon(epsilon: float, rate: float) -> float:
    return float(sampling._unsampled_epsilon(np.array([epsilon]), rate)[0])


@cache
def calibrated(epsilon: float, max_abstentions: int) -> SparseStream:
    return calibrate_sparse_vector(PrivacyBudget(epsilon, 1e-6), max_abstentions)


def test_the_constant_is_that_of_the_errata() -> None:
    assert math.exp(relabelling_loss("replace-one", 1.0)) == pytest.approx(7.0157, abs=5e-5)
    assert relabelling_loss("replace-one", 1.0) == pytest.approx(1.9482, abs=5e-5)
    assert math.exp(relabelling_loss("add-remove", 1.0)) == pytest.approx(1 + math.exp(0.5))
    assert relabelling_loss("replace-one", 1.0) >= math.log(C)


class _Table:
    """A function on integers, given by its values."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self._values[X[:, 0].astype(int)]


def restricted_law(
    hypotheses: HypothesisClass, points: list, labels: list, common: int, et: float
) -> dict:
    """Law of the labels that the relabelling gives to the first `common` points."""
    X = np.array(points, dtype=float)[:, None]
    labellings = hypotheses.dichotomies(X)
    weights = drawn_weights(labellings.errors(labels), et)
    law: dict = {}
    for weight, hypothesis in zip(weights, labellings, strict=True):
        key = tuple(hypothesis.predict(X[:common]).tolist())
        law[key] = law.get(key, 0.0) + weight
    return law


def log_ratio_range(law: dict, other: dict) -> tuple[float, float]:
    assert set(law) == set(other)
    ratios = [math.log(law[key] / other[key]) for key in law]
    return min(ratios), max(ratios)


def extreme_pair(size: int, et: float) -> tuple[dict, dict]:
    """Two samples that differ in their last record: one function is free there on one side, all
    others on the other."""
    # point 0 tells functions apart as far as its neighbours need; functions 1.. vary on points
    # 1..size alone
    columns = size + 3
    tables = []
    for j in range(size):
        shared = np.zeros(columns, dtype=int)
        shared[1 + j] = j > 0
        free = size + 1 if j == 0 else size + 2
        for last in (0, 1):
            table = shared.copy()
            table[free] = last
            tables.append(_Table(table))
    members = FiniteClass(tables)
    points, labels = list(range(1, size + 1)), [0] * size
    here = restricted_law(members, [*points, size + 1], [*labels, 1], size, et)
    there = restricted_law(members, [*points, size + 2], [*labels, 1], size, et)
    return here, there


def test_the_constant_is_nearly_attained_and_forgetting_the_half_is_caught() -> None:
    low, high = log_ratio_range(*extreme_pair(60, 1.0))
    assert math.log(6.6) < high <= math.log(C)
    assert high - low <= math.log(C) + 1e-12
    # without the half the exponent is that of et = 2: beyond what is charged
    assert log_ratio_range(*extreme_pair(40, 2.0))[1] > math.log(C) + 0.4


@pytest.mark.parametrize(
    "hypotheses", [Thresholds(), Thresholds("either"), Intervals()], ids=lambda h: h.name
)
def test_no_selection_ratio_exceeds_the_constant(hypotheses: HypothesisClass) -> None:
    """All labels, all neighbours, up to four points that are shared, on a line."""
    loss, worst = relabelling_loss("replace-one", 1.0), 0.0
    for shared in ([0, 2], [0, 2, 4], [0, 0, 2, 4]):
        for labels in itertools.product((0, 1), repeat=len(shared)):
            laws = [
                restricted_law(hypotheses, [*shared, x], [*labels, y], len(shared), 1.0)
                for x, y in itertools.product((-1, 0, 1, 3, 5), (0, 1))
            ]
            for here, there in itertools.permutations(laws, 2):
                low, high = log_ratio_range(here, there)
                assert high - low <= loss
                worst = max(worst, high)
            alone = restricted_law(hypotheses, shared, labels, len(shared), 1.0)
            for here in laws:
                low, high = log_ratio_range(here, alone)
                assert max(high, -low, high - low) <= relabelling_loss("add-remove", 1.0)
    assert worst > 0.5  # something was looked at


def two_points(share: float, loss: float, high: float) -> Callable[[float], float]:
    """Delta of a log-ratio of `high` or `high - loss`, before a stream with the profile `share`
    e^(-5 x)."""
    p = (math.exp(loss) - math.exp(high)) / (math.exp(loss) - 1)

    def profile(x: float) -> float:
        return (
            share * math.exp(-5 * x) if x >= 0 else 1 - math.exp(x) * (1 - share * math.exp(5 * x))
        )

    return lambda epsilon: p * profile(epsilon - high) + (1 - p) * profile(epsilon - high + loss)


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 1.9, 3.0, 6.0])
def test_the_worst_relabelling_is_found_from_above(epsilon: float) -> None:
    loss = relabelling_loss("replace-one", 1.0)
    found = relabelled_delta(lambda x: 1e-3 * math.exp(-5 * x), epsilon, loss)
    fine = max(two_points(1e-3, loss, t)(epsilon) for t in np.linspace(0, loss, 4001))
    assert fine <= found <= 1.02 * fine
    assert found <= 1e-3 * math.exp(-5 * (epsilon - loss)) * (1 + 1e-6) or epsilon < loss


def test_the_chain_is_below_the_printed_one_and_below_plain_constants() -> None:
    stream = calibrated(1.0, 3)
    whole = sampled_event(stream, 1, 1, "replace-one")
    inner = delta_upper([stream], 1.0)
    plain = delta_upper([whole], 1.001 + math.log(C))  # past the next step of the grid
    assert plain <= inner * (1 + 1e-6)  # the failures are not multiplied by the constant
    assert plain < 0.1 * 4 * math.e * inner  # which Lemma 3.1 prints, and only at epsilon 4


def test_sampling_never_costs_and_rates_follow_the_rule() -> None:
    for rate, epsilon in itertools.product((1e-6, 0.01, 0.3, 1.0), (0.0, 1e-3, 1.0, 5.0, 700.0)):
        inside = unsampled_epsilon(epsilon, rate)
        assert inside >= epsilon
        if 0 < epsilon < 100:
            assert math.log1p(rate * math.expm1(inside)) <= epsilon * (1 + 1e-9)
    stream = calibrated(1.0, 3)
    deltas = [
        delta_upper([sampled_event(stream, s, 100, "replace-one")], 1.0)
        for s in (1, 5, 10, 30, 100)
    ]
    assert deltas == sorted(deltas)
    assert deltas[0] < deltas[-1]
    whole = float(stream.pure()) + relabelling_loss("replace-one", 1.0)
    pure = sampled_event(stream, 1, 100, "replace-one").pure()
    assert 0 <= pure - math.log1p(0.01 * math.expm1(whole)) < 1e-8


def test_the_printed_chain_keeps_epsilon_below_56_and_delta_below_5() -> None:
    def total(epsilon: float) -> float:  # Lemma 3.4: q = epsilon / 56, (e* + 3) with e* = 1
        return math.log1p(epsilon / 56 * math.expm1(4.0))

    shares = {0.01: 0.953, 0.1: 0.914, 0.5: 0.782, 1.0: 0.671}
    for epsilon, share in shares.items():
        assert total(epsilon) / epsilon == pytest.approx(share, abs=6e-4)
    assert [round(total(e), 2) for e in (2.0, 5.0, 10.0)] == [1.07, 1.76, 2.36]
    factor = 4 * math.e / 56  # of delta, times epsilon
    assert factor == pytest.approx(0.194, abs=5e-4)
    assert 1 / factor == pytest.approx(5.15, abs=5e-3)


def test_the_printed_bound_on_repetitions_fails_where_the_errata_say() -> None:
    """P(Bin(n', 1/n') > log(2 / delta)) <= delta / 2 is printed; it is false for some large
    deltas, loose for small."""

    def holds(delta: float, n: int = 10**6) -> bool:
        return float(binom.sf(math.floor(math.log(2 / delta)), n, 1 / n)) <= delta / 2

    for low, high in ((0.0367, 0.0377), (0.1007, 0.1589), (0.2725, 0.5217)):
        assert not any(holds(delta) for delta in np.linspace(low + 1e-4, high - 1e-4, 9))
    assert float(binom.sf(2, 10**6, 1e-6)) == pytest.approx(0.0803, abs=5e-5)
    assert all(holds(delta) for delta in np.geomspace(1e-9, 0.036, 200))
    smallest = {1e-2: 4, 1e-3: 6, 1e-6: 9}
    for delta, repetitions in smallest.items():
        assert (
            binom.sf(repetitions, 10**6, 1e-6) <= delta / 2 < binom.sf(repetitions - 1, 10**6, 1e-6)
        )


def test_a_sample_in_the_order_of_the_table_is_not_amplified() -> None:
    """Dealt out by place, as our sample is, and drawn two of five: in random order the rule
    holds, in this one not. Every label is told rightly with probability e^loss / (1 + e^loss)."""
    loss, epsilon = 1.0, 0.5
    inside = unsampled_epsilon(epsilon, 2 / 5)
    bound = 2 / 5 * (math.exp(loss) - math.exp(inside)) / (1 + math.exp(loss))
    right = math.exp(loss) / (1 + math.exp(loss))
    one = [np.array([right, 1 - right]), np.array([1 - right, right])]

    def told(orders: list[tuple[int, ...]]) -> float:
        here, there = (
            np.mean([np.outer(one[labels[i]], one[labels[j]]).ravel() for i, j in orders], axis=0)
            for labels in ((0, 1, 1, 1, 0), (0, 1, 1, 1, 1))
        )
        return max(hockey_stick(here, there, epsilon), hockey_stick(there, here, epsilon))

    assert told(list(itertools.combinations(range(5), 2))) > 1.5 * bound
    assert told(list(itertools.permutations(range(5), 2))) <= bound


QUERIES = np.array([[0.5], [1.5]])


def stream_law(event: SparseStream, n_teachers: int) -> Callable[[tuple[int, ...]], Law]:
    """Law of the answers to two queries, given how many teachers vote 1 on each: label 0, label 1
    or none, in pairs.

    A query after the stop has the outcome 3.
    """
    shift = discrete_laplace_distribution(event.threshold_scale)
    query = discrete_laplace_distribution(event.query_scale)
    votes = np.arange(n_teachers + 1)
    counts = np.stack([n_teachers - votes, votes], axis=1)
    distance, label = stability(counts), plurality(counts)
    # P(answered), for every count and every threshold noise
    above = query.at_least(event.threshold + shift.support[None, :] - distance[:, None] + 1)

    @cache
    def law(asked: tuple[int, ...]) -> Law:
        first, second = asked
        table = np.zeros((4, 4))
        one, two = above[first], above[second]
        table[label[first], label[second]] += shift.pmf @ (one * two)
        table[label[first], 2] += shift.pmf @ (one * (1 - two))
        if event.abstentions == 1:
            table[2, 3] += shift.pmf @ (1 - one)
        else:
            answered = float((1 - one) @ shift.pmf * (shift.pmf @ two))
            table[2, label[second]] += answered
            table[2, 2] += float((1 - one) @ shift.pmf) - answered
        return table.ravel()

    return law


def spy(shard: list[Record]) -> np.ndarray:
    return np.array([int((0, 1) in shard), int(len(shard) > 0 and shard[0][1])])


def learner(hypotheses: HypothesisClass) -> Callable[[list[Record]], np.ndarray]:
    def votes(shard: list[Record]) -> np.ndarray:
        if not shard:
            return np.zeros(len(QUERIES), dtype=int)
        X, y = np.array([[float(x)] for x, _ in shard]), np.array([label for _, label in shard])
        return hypotheses.erm(X, y).predict(QUERIES)

    return votes


class World:
    """Everything that happens to a few records on a line, with exact probabilities."""

    def __init__(
        self, event: Sampled, hypotheses: HypothesisClass, n_teachers: int, teacher: str
    ) -> None:
        self.event, self.n_teachers, self.hypotheses = event, n_teachers, hypotheses
        self.teacher = spy if teacher == "spy" else learner(hypotheses)
        self.stream = stream_law(event.stream, n_teachers)
        self.known: dict = {}

    def relabelled(self, sample: tuple[Record, ...]) -> Iterator[tuple[float, tuple[Record, ...]]]:
        if not sample:
            yield 1.0, ()
            return
        X = np.array([[float(x)] for x, _ in sample])
        labellings = self.hypotheses.dichotomies(X)
        weights = drawn_weights(labellings.errors([y for _, y in sample]), 1.0)
        for weight, hypothesis in zip(weights, labellings, strict=True):
            labels = hypothesis.predict(X).tolist()
            yield weight, tuple((x, label) for (x, _), label in zip(sample, labels, strict=True))

    def dealt(self, sample: tuple[Record, ...], shards: tuple[int, ...]) -> Law:
        """Law of the answers for records dealt to teachers in a given way."""
        if (sample, shards) not in self.known:
            total = np.zeros(16)
            for weight, records in self.relabelled(sample):
                votes = np.zeros(len(QUERIES), dtype=int)
                for k in range(self.n_teachers):
                    votes += self.teacher(
                        [r for r, shard in zip(records, shards, strict=True) if shard == k]
                    )
                total += weight * self.stream(tuple(votes.tolist()))
            self.known[sample, shards] = total
        return self.known[sample, shards]

    def replace_one(self, records: tuple[Record, ...]) -> Law:
        """Without replacement, in random order, dealt by place."""
        m = self.event.sampled
        shards = tuple(place % self.n_teachers for place in range(m))
        orders = list(itertools.permutations(range(len(records)), m))
        return sum(self.dealt(tuple(records[i] for i in order), shards) for order in orders) / len(
            orders
        )

    def add_remove(self, records: tuple[Record, ...]) -> Law:
        """Each by itself, dealt at random."""
        total, q = np.zeros(16), self.event.rate
        for taken in itertools.product((0, 1), repeat=len(records)):
            sample = tuple(r for r, t in zip(records, taken, strict=True) if t)
            ways = list(itertools.product(range(self.n_teachers), repeat=len(sample)))
            law = sum(self.dealt(sample, way) for way in ways) / len(ways)
            total += q ** len(sample) * (1 - q) ** (len(records) - len(sample)) * law
        return total

    def neighbours(self, n: int) -> Iterator[tuple[Law, Law]]:
        for shared in itertools.combinations_with_replacement(LINE, n - 1):
            if self.event.relation == "replace-one":
                laws = [self.replace_one((*shared, record)) for record in LINE]
                yield from itertools.permutations(laws, 2)
            else:
                alone = self.add_remove(shared)
                for record in LINE:
                    law = self.add_remove((*shared, record))
                    yield law, alone
                    yield alone, law

    def worst(self, n: int, epsilons: list[float]) -> np.ndarray:
        pairs = list(self.neighbours(n))
        here, there = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
        return np.array(
            [np.maximum(here - math.exp(e) * there, 0).sum(axis=1).max() for e in epsilons]
        )


EPSILONS = [0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 3.0]
FAINT = sparse_event(6.0, 6.0, 0, 2)
LOUD_TWICE = LOUD.changed(abstentions=2)

WORLDS = [
    (sampled_event(LOUD, 3, 4, "replace-one"), Thresholds(), 3, "learner", 4),
    (sampled_event(LOUD, 2, 5, "replace-one"), Thresholds(), 2, "spy", 5),
    (sampled_event(LOUD, 3, 3, "replace-one"), Intervals(), 3, "spy", 3),
    (sampled_event(FAINT, 3, 4, "replace-one"), Thresholds(), 3, "spy", 4),
    (sampled_event(LOUD_TWICE, 3, 4, "replace-one"), Intervals(), 3, "learner", 4),
    (sampled_event(LOUD, 1, 2, "add-remove"), Thresholds(), 2, "spy", 3),
    (sampled_event(LOUD, 1, 1, "add-remove"), Intervals(), 2, "learner", 2),
]


@pytest.mark.parametrize(
    ("event", "hypotheses", "n_teachers", "teacher", "n"), WORLDS, ids=range(len(WORLDS))
)
def test_no_small_world_costs_more_than_its_price(
    event: Sampled, hypotheses: HypothesisClass, n_teachers: int, teacher: str, n: int
) -> None:
    true = World(event, hypotheses, n_teachers, teacher).worst(n, EPSILONS)
    promised = np.array([delta_upper([event], epsilon) for epsilon in EPSILONS])
    assert (true <= promised + 1e-12).all()
    assert true[0] > 1e-3  # something was told


@pytest.mark.parametrize(
    ("u", "near", "far"),
    [  # the largest value is at an end, and twice inside
        ([1.0, 0.6], [0.1, 0.4], [0.0, 0.3]),
        ([0.6, 0.3], [0.2, 0.5], [0.1, 0.1]),
        ([0.5, 1 / 7], [0.4, 0.9], [0.01, 0.5]),
    ],
)
def test_the_largest_value_of_a_cell_is_found_inside_too(
    u: list[float], near: list[float], far: list[float]
) -> None:
    c, at = 7.0, np.linspace(u[1], u[0], 1_000_001)
    p = (c - 1 / at) / (c - 1)
    first, second = (np.interp(at, u[::-1], ends[::-1]) for ends in (near, far))
    found = sampling._largest_between(*(np.array([row]) for row in (u, near, far)), c)
    assert found[0] == pytest.approx((p * first + (1 - p) * second).max(), rel=1e-11)


def test_a_steep_stream_is_worst_where_relabelling_says_little() -> None:
    c, loss, at = math.exp(1.5), 1.5, np.linspace(0.1, 1.5, 20_001)
    found = relabelled_delta(lambda x: 1e-3 * max(0.0, -math.expm1(x - 2.9)), 3.0, loss)
    truth = (c - np.exp(at)) / (c - 1) * 1e-3 * -np.expm1(0.1 - at)
    assert at[truth.argmax()] < 0.9
    assert truth.max() <= found <= 1.02 * truth.max()


def test_chords_are_a_little_above_a_profile() -> None:
    at = np.random.default_rng(0).uniform(0, 3, 1000)
    found = sampling._by_chords(lambda x: np.exp(-5 * x), 3.0)(at) / np.exp(-5 * at)
    assert ((found > 1) & (found < 1 + 1e-5)).all()


@pytest.mark.parametrize("epsilon", [2.5, 40.0])
def test_profiles_are_read_a_little_to_the_left_and_values_are_lifted(epsilon: float) -> None:
    """A profile whose step is at the very epsilon counts with all of it."""
    loss, at = relabelling_loss("replace-one", 1.0), np.array([epsilon])
    found = sampling._relabelled_delta(lambda x: np.where(x < epsilon, 1e-3, 0.0), at, loss)[0]
    assert 1e-3 * (1 + SLACK / 2) < found < 1e-3 * (1 + 2 * SLACK)
    exact = 2 * math.log1p(math.exp(0.5))
    assert exact * (1 + SLACK / 2) < loss < exact * (1 + 2 * SLACK)
    for rate in (1e-6, 0.3):
        inside = float(sampling._unsampled_epsilon(at, rate)[0])
        whole = math.log1p(rate * math.expm1(inside))
        assert epsilon * (1 - 1e-9) < whole < epsilon - epsilon * SLACK / 1000
        flat, reach = sampling.sampled_profile(lambda x: 0.0 * x + 1e-3, 2.0, rate, loss)
        assert flat(at)[0] > 1e-3 * rate * (1 + 2.5 * SLACK)
        assert reach > math.log1p(rate * math.expm1(2.0 + loss)) * (1 + 1e-10)
