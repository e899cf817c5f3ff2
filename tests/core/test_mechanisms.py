"""Every mechanism: its JSON and event, its bounds, its law by enumeration, and its stream, which is
a fold."""

import json
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from pydantic import TypeAdapter

from exact_games.distributions import discrete_gaussian_distribution, discrete_laplace_distribution
from exact_games.games import adaptive_delta
from exact_games.statistics import outcomes_p_value
from exact_games.worlds import ScriptedNoise, all_counts, neighbouring_counts, output_distribution
from secretballot.core import events
from secretballot.core.errors import ParameterError
from secretballot.core.label_games import GaussianChances, TableChances
from secretballot.core.mechanisms import (
    AbstentionTable,
    AnyMechanism,
    ConfidentLabels,
    ExponentialChoice,
    NoisyMeans,
    NoisySums,
    NoisyVotes,
    RelabelledSample,
    SparseVector,
    StabilityQuantile,
    StableValue,
    State,
    TableLabels,
    VoteQuantiles,
    _rank_distances,
    margin,
    plurality,
    stability,
    weights_of,
    weights_text,
)
from secretballot.core.noise import ExactNoise
from secretballot.core.price import delta_upper
from secretballot.core.private import Scores
from secretballot.core.types import LARGEST, Guarantee, Sample, ScoreShape, SumShape, VoteShape
from secretballot.hypotheses import Intervals

RECORD = Guarantee(unit="record", relation="add-remove")
REPLACED = Guarantee(unit="record", relation="replace-one")
SAMPLE = Sample(sampled=50, out_of=1000, relabel_epsilon=1.0, request="r", serial="s")
#: Of an answer at distances 0 to 4, rising as fast as order 3 and charge .75 allow.
WEIGHTS = np.array(
    [
        46116860176891904,
        177648939741216768,
        449582252205015040,
        862528358750093312,
        1371621718744891392,
    ]
)
TERMS = {"order": 3.0, "charge": 0.75, "false_answer": 0.01, "max_abstentions": 2}
TABLE = AbstentionTable(**TERMS, weights=weights_text(WEIGHTS))
SPARSE = SparseVector(threshold_scale=2.0, query_scale=3.0, threshold=2, max_abstentions=2)
CONFIDENT = ConfidentLabels(threshold=5, threshold_sigma=3.0, sigma=2.0, max_answers=2)
TAIL = 1e-9  # of noise that no enumeration lists
START = State()


def votes(n_classes, n_teachers=9, n_queries=7, **more):
    fields = {"guarantee": RECORD, "n_queries": n_queries, "n_teachers": n_teachers}
    return VoteShape(**{**fields, "moved": n_queries, "n_classes": n_classes, **more})


def drawn(mechanism, shape, counts, noise, state=START):
    return mechanism.draw(shape, (counts, np.zeros_like(counts)), noise, state)


CHANCES = GaussianChances(sigma=3.0, n_teachers=9)
SPARSE_EVENT = events.SparseStream(threshold_scale=2.0, query_scale=3.0, threshold=2, abstentions=2)
TABLE_EVENT = events.TableStream(order=3.0, charge=0.75, false_answer=0.01, abstentions=2)
RECORDS = votes(3, None, moved=4, spare_rows=2)


def sampled(stream, relation, relabel_epsilon=1.0):
    drawn = {"sampled": 50, "out_of": 1000, "relation": relation}
    return events.Sampled(stream=stream, relabel_epsilon=relabel_epsilon, **drawn)


def confident(queries, answers, n_classes):
    fields = {"threshold_sigma": 3.0, "sigma": 2.0, "threshold": 5, "n_teachers": 9}
    return events.Confident(queries=queries, answers=answers, n_classes=n_classes, **fields)


EXAMPLES = [
    (
        '{"kind":"noisy-votes","noise":"gaussian","scale":3.0,"release":"labels"}',
        (votes(2, moved=5), events.BinaryLabels(chances=CHANCES, queries=5), (7, 1)),
        (votes(3, moved=5), events.ClassLabels(sigma=3.0, queries=5), (7, 1)),
    ),
    (
        '{"kind":"noisy-votes","noise":"gaussian","scale":3.0,"release":"counts"}',
        (votes(2, moved=5), events.Counts(sigma=3.0, shifts=5), (7, 1)),
        (votes(3, moved=5), events.Counts(sigma=3.0, shifts=10), (7, 3)),
        (RECORDS, events.Counts(sigma=3.0, shifts=4), (9, 3)),
    ),
    (
        '{"kind":"noisy-votes","noise":"laplace","scale":4.0,"release":"labels"}',
        (votes(2, moved=5), events.Pure(epsilon=0.25, count=5), (7, 1)),
        (votes(3, moved=5), events.Pure(epsilon=0.25, count=10), (7, 1)),
    ),
    (
        '{"kind":"noisy-votes","noise":"laplace","scale":4.0,"release":"counts"}',
        (votes(2, moved=5), events.Pure(epsilon=0.25, count=5), (7, 1)),
        (votes(3, moved=5), events.Pure(epsilon=0.25, count=10), (7, 3)),
        (RECORDS, events.Pure(epsilon=0.25, count=4), (9, 3)),
        (votes(2, None, moved=4), events.Pure(epsilon=0.25, count=4), (7, 2)),
    ),
    (
        '{"kind":"table-labels","weights":[2251799813685248,1125899906842624]}',
        (
            votes(2),
            events.BinaryLabels(
                chances=TableChances(weights=(2**51, 2**50), n_teachers=9), queries=7
            ),
            (7, 1),
        ),
    ),
    (
        '{"kind":"confident-labels","threshold":5,"threshold_sigma":3.0,"sigma":2.0,"max_answers":2}',
        (votes(3, moved=5), confident(5, 2, 3), (7, 1)),
        (votes(2, moved=1), confident(1, 1, 2), (7, 1)),
    ),
    (
        '{"max_abstentions":2,"kind":"sparse-vector","threshold_scale":2.0,"query_scale":3.0,'
        '"threshold":2}',
        (votes(3), SPARSE_EVENT, (7, 1)),
    ),
    (
        '{"max_abstentions":2,"kind":"abstention-table","order":3.0,"charge":0.75,'
        '"false_answer":0.01,"weights":"00a3d70a3d000000027722c4fc000000"}',
        (votes(3), TABLE_EVENT, (7, 1)),
    ),
    (
        '{"kind":"relabelled-sample","stream":{"max_abstentions":2,"kind":"sparse-vector",'
        '"threshold_scale":2.0,"query_scale":3.0,"threshold":2}}',
        (votes(2, guarantee=REPLACED, sample=SAMPLE), sampled(SPARSE_EVENT, "replace-one"), (7, 1)),
        (
            votes(2, sample=SAMPLE.changed(relabel_epsilon=2.0)),
            sampled(SPARSE_EVENT, "add-remove", 2.0),
            (7, 1),
        ),
    ),
    (
        json.dumps({"kind": "relabelled-sample", "stream": TABLE.model_dump()}),
        (votes(2, sample=SAMPLE), sampled(TABLE_EVENT, "add-remove"), (7, 1)),
    ),
    (
        '{"kind":"stable-value","scale":3.0,"threshold":2}',
        (votes(3, moved=5), events.StableTests(scale=3.0, threshold=2, count=5), (7, 1)),
    ),
    (
        '{"kind":"noisy-means","sigma":3.0}',
        (
            votes(5),
            events.VectorSum(sigmas=(3.0,), squared_sensitivity=7 * 16, coordinates=7),
            (7, 1),
        ),
        (
            votes(2, moved=3),
            events.VectorSum(sigmas=(3.0,), squared_sensitivity=3, coordinates=7),
            (7, 1),
        ),
    ),
    (
        '{"kind":"vote-quantiles","epsilon":0.5,"rank":9}',
        (votes(5, moved=5), events.BoundedRange(epsilon=0.5, count=5), (7, 1)),
    ),
    (
        '{"epsilon":0.5,"kind":"stability-quantile","fraction":0.25}',
        (votes(5), events.Pure(epsilon=0.5, count=1), (1, 1)),
    ),
    (
        '{"kind":"noisy-sums","sigmas":[3.0,4.0]}',
        (
            SumShape(guarantee=RECORD, coordinates=6, squared_sensitivity=100),
            events.VectorSum(sigmas=(3.0, 4.0), squared_sensitivity=100, coordinates=6),
            (2, 6),
        ),
    ),
    (
        '{"kind":"exponential-choice","epsilon":0.5,"rule":"exponential"}',
        (ScoreShape(guarantee=RECORD), events.BoundedRange(epsilon=0.5, count=1), (1, 1)),
        (ScoreShape(guarantee=REPLACED), events.BoundedRange(epsilon=0.5, count=1), (1, 1)),
    ),
    (
        '{"kind":"exponential-choice","epsilon":0.5,"rule":"permute-and-flip"}',
        (ScoreShape(guarantee=REPLACED), events.Pure(epsilon=0.5, count=1), (1, 1)),
    ),
]
read = TypeAdapter(AnyMechanism).validate_json
MECHANISMS = [read(text) for text, *_ in EXAMPLES]
KINDS = {type(mechanism): mechanism for mechanism in MECHANISMS}


@pytest.mark.parametrize(("text", "cases"), [(text, cases) for text, *cases in EXAMPLES])
def test_json_is_fixed_and_the_event_is_that_of_the_shape(text, cases):
    mechanism = read(text)
    assert json.loads(mechanism.model_dump_json()) == json.loads(text)
    for shape, event, answers in cases:
        assert mechanism.event(shape) == event
        assert mechanism.answer_shape(shape) == answers


HOSTILE = {
    "number": [math.nan, math.inf, -math.inf, 0.0, -1.0, 1e300, 10**400, True, "1", None, [1.0]],
    "integer": [2**60, -1, 1.0, math.nan, True, "1", None, np.int64(1), 10**400, [1]],
    "word": ["", "gaussian ", b"labels", None, 1],
    "sigmas": [[], [math.nan], [True], ["1"], [1.0] * 1001, 1.0, None, [[1.0]]],
    "weights": [[], [0], [-1], [1.0], [True], ["1"], [2**54], [1] * 10_001, None, "1"],
    "text": ["", "0" * 15, "0" * 17, "4" + "0" * 15, "0" * 15 + "g", "0" * 16 + "\n", b"0" * 16],
    "stream": [None, {}, {"kind": "stable-value"}, NoisyVotes(scale=1.0), "sparse-vector"],
}
FIELDS = {
    "noise": "word",
    "release": "word",
    "sigmas": "sigmas",
    "stream": "stream",
    **dict.fromkeys(("threshold", "max_answers", "max_abstentions", "rank"), "integer"),
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_parameter_is_out_of_its_range(kind):
    given = dict(KINDS[kind])
    assert isinstance(kind(**given), kind)
    for name in given.keys() - {"kind"}:
        hostile = HOSTILE[FIELDS.get(name, "number")]
        if name == "weights":
            hostile = HOSTILE["weights" if kind is TableLabels else "text"]
        for value in hostile:
            with pytest.raises(ParameterError) as caught:
                kind(**{**given, name: value})
            assert "input_value" not in str(caught.value)
        if isinstance(given[name], float):
            # numbers of numpy become plain ones
            plain = kind(**{**given, name: np.float32(given[name])})
            assert read(plain.model_dump_json()) == plain
            assert type(getattr(plain, name)) is float
    with pytest.raises(ParameterError):
        kind(**given, more=1)


@pytest.mark.parametrize(
    ("mechanism", "shape"),
    [
        (NoisyVotes(scale=3.0), RECORDS),
        (NoisyVotes(scale=3.0, noise="laplace"), RECORDS),
        (SPARSE, RECORDS),
        (TABLE, RECORDS),
        (StableValue(scale=3.0, threshold=2), RECORDS),
        (NoisyMeans(sigma=3.0), RECORDS),
        (RelabelledSample(stream=SPARSE), votes(2, None, sample=SAMPLE)),
        (VoteQuantiles(epsilon=0.5, rank=1), RECORDS),
        (CONFIDENT, RECORDS),
        (TableLabels(weights=(2**51,)), votes(2, None)),
        (StabilityQuantile(epsilon=0.5, fraction=0.25), RECORDS),
        # teachers of a relabelled sample are not single teachers' records, and the reverse
        (SPARSE, votes(2, sample=SAMPLE)),
        (NoisyVotes(scale=3.0, release="counts"), votes(2, sample=SAMPLE)),
        (RelabelledSample(stream=SPARSE), votes(2)),
        (RelabelledSample(stream=SPARSE), votes(3, sample=SAMPLE)),
        (
            RelabelledSample(stream=SPARSE),
            votes(2, sample=SAMPLE, guarantee=Guarantee(unit="user", relation="add-remove")),
        ),
        (NoisySums(sigmas=(3.0,)), votes(2)),
        (NoisyVotes(scale=3.0), ScoreShape(guarantee=RECORD)),
        (ExponentialChoice(epsilon=0.5), votes(2)),
        (TableLabels(weights=(2**51,)), votes(3)),
        (TableLabels(weights=(2**51, 2**52)), votes(2)),
        (CONFIDENT, votes(2, 4)),
        (CONFIDENT, votes(2, n_queries=1)),
        (VoteQuantiles(epsilon=0.5, rank=10), votes(2)),
        (NoisyMeans(sigma=3.0), votes(2**16, n_queries=10**12)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_shapes_that_no_price_holds_for_are_refused(mechanism, shape):
    with pytest.raises(ParameterError):
        mechanism.event(shape)


@pytest.mark.parametrize("place", range(len(WEIGHTS)))
def test_a_table_that_breaks_an_inequality_at_one_distance_is_refused(place):
    assert TABLE.event(votes(2)) == TABLE_EVENT
    broken = WEIGHTS.copy()
    broken[place] += 2**32  # a share of 1e-9
    for weights in (broken, WEIGHTS[::-1], np.append(WEIGHTS, 0)):
        table = AbstentionTable(**TERMS, weights=weights_text(weights))
        assert weights_of(table.weights).tolist() == weights.tolist()
        for asked, shape in (
            (table, votes(2)),
            (RelabelledSample(stream=table), votes(2, sample=SAMPLE)),
        ):
            with pytest.raises(ParameterError, match="inequality"):
                asked.event(shape)


def test_prices_of_scales_round_upward():
    for scale in (3.0, 49.0, 0.7, 1e-6, 1e12, 1 / 3):
        epsilon = NoisyVotes(noise="laplace", scale=scale).event(votes(2)).epsilon
        below = math.nextafter(epsilon, 0.0)
        assert Fraction(below) * Fraction(scale) < 1 <= Fraction(epsilon) * Fraction(scale)


class Asked:
    """Notes what is drawn, and gives zeros, or the first of all candidates."""

    def __init__(self):
        self.draws = []

    def __getattr__(self, name):
        def draw(*given):
            if not name.startswith(("exponential", "flipped")):
                self.draws.append((name, *given))
                return np.zeros(given[1], dtype=np.int64)
            self.draws.append((name, given[-1]))  # the scale alone
            return (0, 0) if name.endswith("range") else 0

        return draw


def choices_of(rule, relation):
    mechanism = ExponentialChoice(epsilon=0.5, rule=rule)
    return mechanism, ScoreShape(guarantee=Guarantee(unit="record", relation=relation))


ROWS, SCORES = np.array([[4, 5], [9, 0]]), np.array([3, 1])
NOISE = [
    (NoisyVotes(scale=3.0), votes(2), ROWS, [("discrete_gaussian", 3.0, 2)]),
    (NoisyVotes(scale=3.0), votes(3), np.eye(3, dtype=int) * 9, [("discrete_gaussian", 3.0, 9)]),
    (NoisyVotes(scale=3.0, release="counts"), RECORDS, ROWS, [("discrete_gaussian", 3.0, 4)]),
    (NoisyVotes(scale=4.0, noise="laplace"), votes(2), ROWS, [("discrete_laplace", 4.0, 2)]),
    (TableLabels(weights=(2**51,)), votes(2), ROWS, [("uniform_integers", 53, 2)]),
    (CONFIDENT, votes(2), ROWS, [("discrete_gaussian", 3.0, 2), ("discrete_gaussian", 2.0, 2)]),
    # the second query abstains, at the first threshold; then there is another one
    (
        SPARSE,
        votes(2),
        ROWS[::-1],
        [("discrete_laplace", 2.0, 1), ("discrete_laplace", 3.0, 2), ("discrete_laplace", 2.0, 1)],
    ),
    (TABLE, votes(2), ROWS, [("uniform_integers", 62, 2)]),
    (RelabelledSample(stream=TABLE), votes(2, sample=SAMPLE), ROWS, [("uniform_integers", 62, 2)]),
    (StableValue(scale=3.0, threshold=2), votes(2), ROWS, [("discrete_laplace", 3.0, 2)]),
    (NoisyMeans(sigma=3.0), votes(2), ROWS, [("discrete_gaussian", 3.0, 2)]),
    (VoteQuantiles(epsilon=0.5, rank=9), votes(2), ROWS, 2 * [("exponential_index", 4.0)]),
    (StabilityQuantile(epsilon=0.5, fraction=0.25), votes(2), ROWS, [("discrete_laplace", 2.0, 1)]),
    (
        NoisySums(sigmas=(3.0, 4.0)),
        SumShape(guarantee=RECORD, coordinates=6, squared_sensitivity=100),
        [np.arange(6)],
        [("discrete_gaussian", 3.0, 6)],
    ),
    *(
        (*choices_of(rule, relation), given, [(name, moved / 0.5)])
        for rule, name, given in (
            ("exponential", "exponential_index", [SCORES]),
            ("permute-and-flip", "flipped_index", [SCORES]),
            ("exponential", "exponential_range", [SCORES, SCORES]),
            ("permute-and-flip", "exponential_range", [SCORES, SCORES]),
        )
        for relation, moved in (("add-remove", 1), ("replace-one", 2))
    ),
]


@pytest.mark.parametrize(("mechanism", "shape", "given", "expected"), NOISE)
def test_noise_is_drawn_at_the_scale_that_is_priced(mechanism, shape, given, expected):
    noise = Asked()
    opened = given if isinstance(given, list) else [given, 0 * given]
    mechanism.draw(shape, opened, noise, START)
    assert noise.draws == expected


class Sources:
    """Seeded numbers, one sequence for each kind of noise, whatever the order of the questions."""

    def __init__(self, seed):
        self.seed, self.generators = seed, {}

    def drawn(self, low, high, size, *kind):
        seed = [self.seed, *map(ord, str(kind))]
        generator = self.generators.setdefault(kind, np.random.default_rng(seed))
        return generator.integers(low, high, size)

    def discrete_laplace(self, scale, size):
        return self.drawn(-4, 5, size, "laplace", scale)

    def discrete_gaussian(self, sigma, size):
        return self.drawn(-4, 5, size, "gaussian", sigma)

    def uniform_integers(self, bits, size):
        return self.drawn(0, 2**bits, size, bits)

    def exponential_index(self, scores, scale):
        return int(self.drawn(0, len(scores), 1, scale)[0])


@pytest.mark.parametrize(
    "mechanism",
    [
        one
        for one, (_, case, *_) in zip(MECHANISMS, EXAMPLES, strict=True)
        if isinstance(case[0], VoteShape)
    ]
    + [RelabelledSample(stream=TABLE), NoisyVotes(scale=2.0, noise="laplace", release="counts")],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_a_stream_answers_as_its_batch_and_nothing_after_its_end(mechanism):
    n_classes, ended = 2 if isinstance(mechanism, TableLabels) else 3, 0
    shape = votes(n_classes, n_queries=40)
    for seed in range(20):
        counts = np.random.default_rng(seed).multinomial(9, [1 / n_classes] * n_classes, 40)
        if isinstance(mechanism, StabilityQuantile):
            counts = counts[:1]  # of one row, whose first part is all of it
        whole, end = drawn(mechanism, shape, counts, Sources(seed))
        assert whole.dtype == np.int64
        assert whole.shape[1] == mechanism.answer_shape(shape)[1]
        noise, state, found = Sources(seed), START, []
        for part in np.split(counts, [1, 2, 5, 5, 17]):
            answers, state = drawn(mechanism, shape, part, noise, state)
            found.append(answers)
        assert np.concatenate(found).tolist() == whole.tolist()
        assert state == end
        stream = getattr(mechanism, "stream", mechanism)
        assert isinstance(stream, SparseVector) or state.secret is None
        if mechanism.stops_at is None:
            assert (state, len(whole)) == (START, 40)
        elif state.used == mechanism.stops_at:
            ended += 1
            after, same = drawn(mechanism, shape, counts, None, state)
            assert (after.shape, same) == ((0, whole.shape[1]), state)
        else:
            assert len(whole) == 40
            assert state.used < mechanism.stops_at
    assert mechanism.stops_at is None or ended > 10


def test_comparisons_are_strict_and_ties_follow_the_rule():
    two = np.array([[5, 13], [4, 14], [3, 15], [9, 9]])  # distances 3, 4, 5, 0
    silent = ScriptedNoise(np.zeros(99, dtype=np.int64))
    for mechanism in (
        StableValue(scale=2.0, threshold=4),
        SparseVector(threshold_scale=2.0, query_scale=2.0, threshold=4, max_abstentions=9),
    ):
        assert drawn(mechanism, votes(2, 18), two, silent)[0].ravel().tolist() == [-1, -1, 1, -1]
    assert drawn(NoisyVotes(scale=1.0), votes(2, 18), two[3:], silent)[0].tolist() == [[1]]
    odd = np.array([[5, 4], [4, 5]])
    assert drawn(NoisyVotes(scale=1.0), votes(2), odd, silent)[0].tolist() == [[0], [1]]
    three = np.array([[1, 4, 4], [3, 3, 3]])
    assert (plurality(two[3:]).tolist(), plurality(three).tolist()) == ([1], [1, 0])
    assert drawn(NoisyVotes(scale=1.0), votes(3), three, silent)[0].tolist() == [[1], [0]]


def test_a_table_answers_below_its_weight():
    rows = all_counts(9, 2)
    for offset, told in ((-1, plurality(rows)), (0, np.full(10, -1))):
        noise = ScriptedNoise(WEIGHTS[stability(rows)] + offset)
        table = TABLE.model_copy(update={"max_abstentions": 99})
        assert drawn(table, votes(2), rows, noise)[0][:, 0].tolist() == told.tolist()
        table = TableLabels(weights=(2**51, 2**50))
        weights = np.array([2**51, 2**50, 2**50, 2**50, 2**50])[margin(rows) // 2]
        minority = drawn(table, votes(2), rows, ScriptedNoise(weights + offset))[0][:, 0]
        assert (minority != plurality(rows)).all() == (offset == -1)


def test_confident_labels_are_refused_answered_and_ended():
    # tops 4, 6, 6, 8, less what is predicted 4, 6, 3, 8; noise on them first, then on each label
    counts = np.array([[4, 4], [2, 6], [6, 2], [0, 8]])
    predicted = np.array([[0, 0], [0, 0], [3, 0], [0, 0]])
    noise = ScriptedNoise([1, -1, 1, -9, 0, -3])
    found = CONFIDENT.draw(votes(2, 8), (counts, predicted), noise, START)
    assert found[0].tolist() == [[1], [0]]  # two answers, and nothing after the second
    assert found[1] == State(2)
    noise = ScriptedNoise([0, -2, 1, -3, -9])
    found = CONFIDENT.draw(votes(2, 8), (counts, predicted), noise, START)
    assert found[0].tolist() == [[-1], [-1], [-1], [0]]
    assert found[1] == State(1)


@pytest.mark.parametrize(
    ("counts", "predicted", "label"),
    [
        # the top is class 1's, of 4 votes, and the label is that of the votes by themselves
        ([[5, 4, 0]], [[5, 0, 0]], 0),
        ([[5, 4]], [[3, 0]], 0),
        # what is predicted below 0 raises no top
        ([[3, 6]], [[0, -9]], None),
    ],
)
def test_predictions_lower_the_highest_count_and_touch_nothing_else(counts, predicted, label):
    given, shape = (np.array(counts), np.array(predicted)), votes(len(counts[0]))
    mechanism = CONFIDENT.changed(threshold=7 if label is None else 4)
    found, state = mechanism.draw(shape, given, ScriptedNoise([0] * 9), START)
    assert found.tolist() == [[-1 if label is None else label]]
    assert state == State(int(label is not None))


def test_nothing_leaves_64_bits_and_all_answers_can_be_stored():
    most, far = 10**12, 2**62
    counts = np.array([[most, 0], [0, most]])
    shape = votes(2, most, n_queries=2)
    for noise in (far, -far):
        scripted = ScriptedNoise([noise] * 99)
        label = drawn(NoisyVotes(scale=2.0**39), shape, counts, scripted)[0]
        assert label.tolist() == [[int(noise > 0)]] * 2
        for mechanism in (
            NoisyVotes(scale=2.0**39, release="counts"),
            NoisyMeans(sigma=2.0**39),
            StabilityQuantile(epsilon=1.0, fraction=0.5),
        ):
            answers = drawn(mechanism, shape, counts, scripted)[0]
            assert (answers == math.copysign(LARGEST, noise)).all()
        sums = np.array([2**63 - 1, -(2**63), 0])
        summed = SumShape(guarantee=RECORD, coordinates=3, squared_sensitivity=1)
        answers, _ = NoisySums(sigmas=(1.0,)).draw(summed, (sums,), scripted, START)
        assert (answers == math.copysign(LARGEST, noise)).all()
        mechanism = StableValue(scale=2.0**39, threshold=0)
        assert (drawn(mechanism, shape, counts, scripted)[0] >= 0).all() == (noise > 0)
    grid = np.zeros((1, 4096), dtype=np.int64)
    grid[0, -1] = most
    found, _ = drawn(NoisyMeans(sigma=1.0), votes(4096, most), grid, ScriptedNoise([-3]))
    assert found.tolist() == [[most * 4095 - 3]]
    assert _rank_distances(grid, most).max() == most


def test_every_stage_draws_with_its_own_scale():
    shape = SumShape(guarantee=RECORD, coordinates=2, squared_sensitivity=1)
    noise = SimpleNamespace(discrete_gaussian=lambda sigma, size: np.full(size, int(sigma)))
    mechanism, state, found = NoisySums(sigmas=(1.0, 2.0)), START, []
    for _ in range(3):
        answers, state = mechanism.draw(shape, (np.array([5, -7]),), noise, state)
        found += answers.tolist()
    assert (found, state) == ([[6, -6], [7, -5]], State(2))


def test_ranges_are_numbered_by_first_place_and_then_by_last():
    shape, scores, found = ScoreShape(guarantee=RECORD), np.arange(9), []
    for chosen in (None, *((first, last) for first in range(9) for last in range(first, 9))):
        noise = SimpleNamespace(exponential_range=lambda *_, chosen=chosen: chosen)
        number, state = ExponentialChoice(epsilon=1.0).draw(shape, (scores, scores), noise, START)
        found.append(int(number[0, 0]))
    assert (found, state) == (list(range(46)), State(1))
    points = np.arange(9.0)[:, None]
    candidates, sealed = (Intervals().dichotomies(points), Scores.of_ranges(scores, scores, RECORD))
    assert len(candidates) == sealed.n_candidates == 46
    cut = Scores.of_candidates(np.array([-(2**52), 2**52]), RECORD)._unseal()
    assert ExponentialChoice(epsilon=1.0).draw(shape, cut, ExactNoise(), START)[0] == 1


def silent_answers(mechanism, shape, counts):
    return drawn(mechanism, shape, counts, ScriptedNoise(np.zeros(counts.size, dtype=np.int64)))[0]


@pytest.mark.parametrize("n_teachers", [8, 9])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_declared_moves_are_the_largest_between_neighbours(n_teachers, n_classes):
    shape = votes(n_classes, n_teachers, n_queries=1)
    here, there = neighbouring_counts(n_teachers, n_classes)
    for mechanism, squared in (
        (NoisyVotes(scale=1.0, release="counts"), lambda event: event.shifts),
        (NoisyMeans(sigma=1.0), lambda event: event.squared_sensitivity),
    ):
        moves = silent_answers(mechanism, shape, here) - silent_answers(mechanism, shape, there)
        assert (moves**2).sum(axis=1).max() == squared(mechanism.event(shape))


@pytest.mark.parametrize(
    ("n_teachers", "n_classes"), [(8, 2), (9, 2), (250, 2), (251, 2), (7, 3), (8, 3), (6, 4)]
)
def test_stability_moves_by_one_and_vanishes_where_any_plurality_changes(n_teachers, n_classes):
    counts, neighbours = neighbouring_counts(n_teachers, n_classes)
    here, there = stability(counts), stability(neighbours)
    assert np.abs(here - there).max() == 1
    # whatever the rule for ties: some class leads here and not there
    leads_here, leads_there = (
        table == table.max(axis=1, keepdims=True) for table in (counts, neighbours)
    )
    may_change = (leads_here != leads_there).any(axis=1) | (leads_here.sum(axis=1) > 1)
    assert (here[may_change] == 0).all()
    assert (there[may_change] == 0).all()


def law_of(mechanism, shape, row, factor=1.0):
    """Return the chances of the outcomes of one query, -1 last, with a factor on all noise."""
    if isinstance(mechanism, ConfidentLabels):
        first = discrete_gaussian_distribution(factor * mechanism.threshold_sigma, 1e-11)
        tops = np.tile(row, (len(first.support), 1))
        every = mechanism.model_copy(update={"max_answers": len(tops)})
        script = ScriptedNoise(np.concatenate([first.support, np.zeros(tops.size, dtype=np.int64)]))
        passing = float(first.pmf[drawn(every, shape, tops, script)[0][:, 0] >= 0].sum())
        labels = law_of(NoisyVotes(scale=mechanism.sigma), shape, row, factor)
        return np.append(passing * labels, 1 - first.missing - passing)
    if isinstance(mechanism, VoteQuantiles):
        asked = {}

        def index(scores, scale):
            weights = np.exp(scores / (factor * scale))
            return asked.setdefault("law", weights / weights.sum()).argmax()

        drawn(mechanism, shape, row[None], SimpleNamespace(exponential_index=index))
        return asked["law"]
    if isinstance(mechanism, TableLabels):
        weights, place = np.array(mechanism.weights) / 2**53, int(margin(row[None])[0]) // 2
        minority = factor * weights[min(place, len(weights) - 1)]
        return np.array([minority, 1 - minority])[:: 1 if plurality(row[None])[0] else -1]
    laplace = isinstance(mechanism, StableValue) or mechanism.noise == "laplace"
    listed = discrete_laplace_distribution if laplace else discrete_gaussian_distribution
    draws = shape.n_classes if shape.n_classes > 2 and isinstance(mechanism, NoisyVotes) else 1
    noise = listed(factor * mechanism.scale, 1e-11 if draws < 3 else 1e-9)
    outcomes = shape.n_classes + isinstance(mechanism, StableValue)

    def release(counts, scripted):
        return drawn(mechanism, shape, counts, scripted)[0][:, 0]

    return output_distribution(release, row, noise, draws=draws, n_outcomes=outcomes)


def steps_of(mechanism, shape, factor=1.0):
    """Return the laws of one query on all neighbouring votes, in both directions."""
    rows = all_counts(shape.n_teachers, shape.n_classes)
    laws = {tuple(row): law_of(mechanism, shape, row, factor) for row in rows}
    here, there = neighbouring_counts(shape.n_teachers, shape.n_classes)
    return [(laws[tuple(a)], laws[tuple(b)]) for a, b in zip(here, there, strict=True)]


#: Mechanism, shape of a run, epsilons, how much of the price the worst run loses, and a factor of
#: the noise that is caught.
RUNS = [
    (NoisyVotes(scale=2.0), votes(2, 9, 4), (0.2, 0.7, 1.5), 0.97, 0.95),
    (NoisyVotes(scale=0.8), votes(2, 8, 2), (0.7, 1.5), 0.97, 0.95),
    (NoisyVotes(scale=1.5), votes(3, 4, 2), (0.2, 1.0), 0.5, 0.9),
    (NoisyVotes(scale=2.0, noise="laplace"), votes(2, 8, 3), (0.3, 1.2), 0.97, 0.95),
    (NoisyVotes(scale=1.0, noise="laplace"), votes(3, 5, 1), (0.6, 2.0), 0.3, 0.7),
    (TableLabels(weights=(2**51, 2**50, 2**49)), votes(2, 9, 2), (0.3, 1.5), 0.9, 0.7),
    (StableValue(scale=2.0, threshold=10), votes(2, 31, 3), (0.2, 1.5), 0.2, 0.7),
    (VoteQuantiles(epsilon=0.9, rank=2), votes(3, 3, 4), (0.2, 0.9, 2.0), 0.05, 0.7),
]


@pytest.mark.parametrize(
    ("mechanism", "shape", "epsilons", "share", "caught"),
    RUNS,
    ids=[type(run[0]).__name__ for run in RUNS],
)
def test_no_short_run_loses_more_than_its_price_and_less_noise_is_caught(
    mechanism, shape, epsilons, share, caught
):
    steps, event = steps_of(mechanism, shape), mechanism.event(shape)
    promised = [delta_upper([event], epsilon) for epsilon in epsilons]
    true = [adaptive_delta(steps, shape.n_queries, epsilon) for epsilon in epsilons]
    for lost, price in zip(true, promised, strict=True):
        assert share * price < lost <= price * (1 + 1e-9) + 20 * TAIL
    weak = steps_of(mechanism, shape, caught)
    assert any(
        adaptive_delta(weak, shape.n_queries, epsilon) > price + 100 * TAIL
        for epsilon, price in zip(epsilons, promised, strict=True)
    )


@pytest.mark.parametrize(
    ("mechanism", "row"),
    [
        (NoisyVotes(scale=4.0), [1, 8]),
        (NoisyVotes(scale=2.0), [4, 3, 2]),
        (NoisyVotes(scale=4.0, noise="laplace"), [1, 8]),
        (NoisyVotes(scale=1.0, noise="laplace"), [4, 3, 2]),
        (StableValue(scale=3.0, threshold=2), [0, 9]),
        (CONFIDENT.model_copy(update={"max_answers": 20_000}), [2, 7]),
        (VoteQuantiles(epsilon=1.0, rank=2), [3, 6, 0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_drawn_answers_follow_their_law_and_that_of_no_other_noise(mechanism, row):
    trials, row = 5000 if isinstance(mechanism, VoteQuantiles) else 20_000, np.array(row)
    shape = votes(len(row), 9)
    answers = drawn(mechanism, shape, np.tile(row, (trials, 1)), ExactNoise())[0][:, 0]
    for factor in (1.0, 0.7, 1.3):
        law = law_of(mechanism, shape, row, factor)
        seen = (answers % len(law)).tolist()
        assert (outcomes_p_value(seen, dict(enumerate(law))) > 1e-6) == (factor == 1)
