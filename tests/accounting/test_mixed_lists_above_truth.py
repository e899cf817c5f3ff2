"""Lists of several kinds and what fixed runs on neighbouring votes tell: a filter admits none that
tells more, and an event that is priced as silence is caught. That prices are above such runs is
tested on the golden lists."""

import math
import random

import numpy as np

from golden.truth import (
    beside,
    bits,
    delta_of,
    gaussian,
    label,
    laplace_tail,
    passing,
    repeated,
    wrong,
)
from made_events import (
    abstention_event,
    admits,
    class_event,
    counts_event,
    pure_event,
    ranged_event,
    sparse_event,
    stable_event,
    sums_event,
)
from secretballot.accounting import (
    Event,
    PrivacyBudget,
    delta_upper,
    filter_for,
)
from secretballot.accounting.abstention_table import answer_weights

EPSILONS = (-1.0, 0.0, 0.05, 0.3, 1.0, 2.0, 5.0)


def drawn(rng: random.Random) -> tuple[Event, tuple]:
    """Return an event and a pair that one run of it can reach."""
    count = rng.randint(1, 3)
    match rng.randrange(8):
        case 0:
            sigma = rng.choice([4.0, 7.0, 15.0])
            return counts_event(sigma, count), repeated(gaussian(sigma, 1), count)
        case 1:
            e = rng.choice([0.01, 0.3, 2.0])
            p = 1 / (1 + math.exp(-e))
            return pure_event(e, count), repeated(bits(p, 1 - p), count)
        case 2:
            # two outcomes whose losses lie as far apart as may be
            e, p = rng.choice([0.01, 0.3, 2.0]), rng.choice([0.05, 0.3, 0.7, 0.95])
            pair = bits(p, p / (p + (1 - p) * math.exp(-e)))
            return ranged_event(e, count), repeated(pair, count)
        case 3:
            scale, threshold = rng.choice([0.5, 2.0, 10.0]), rng.choice([0, 3, 20])
            near, far = (laplace_tail(threshold + 1 - d, scale) for d in (4, 5))
            pair = wrong(laplace_tail(threshold + 1, scale)) if count > 1 else bits(near, far)
            return stable_event(scale, threshold, count), repeated(pair, count)
        case 4:
            scales = rng.choice([0.5, 2.0, 10.0]), rng.choice([1.0, 5.0, 20.0])
            distance = rng.choice([0, 1, 8, 40])
            event = sparse_event(*scales, rng.choice([0, 5, 40]), count)
            pair = bits(passing(event, distance), passing(event, distance + 1))
            if rng.random() < 0.4:
                pair = wrong(passing(event, 0))
            return event, repeated(pair, count)
        case 5:
            terms = rng.choice([(27.0, 0.25, 1e-9), (3.0, 0.5, 1e-3), (10.0, 0.1, 1e-6)])
            event = abstention_event(*terms, count)
            chances = answer_weights(event, 60) / 2.0**62
            d = min(rng.choice([0, 1, 3, 10, 30]), len(chances) - 2)
            pair = bits(chances[d], chances[d + 1])
            if rng.random() < 0.3:
                pair = wrong(chances[0])
            return event, repeated(pair, count)  # so many are asked, and some may be withheld
        case 6:
            event = sums_event(9.0, 4, 2, count)
            return event, repeated(gaussian(9.0, 2), count)
    sigma = rng.choice([2.5, 4.0])
    d = round(0.7 * sigma)
    pair = label(sigma, [d + 1, d, 0]), label(sigma, [d, d + 1, 0])
    return class_event(sigma, count), repeated(pair, count)


def a_list(seed):
    rng = random.Random(seed)
    events, whole = [], (np.ones(1), np.ones(1))
    for _ in range(rng.randint(2, 4)):
        event, pair = drawn(rng)
        events.append(event)
        whole = beside(whole, pair)
    return events, whole


def test_a_renyi_filter_admits_no_list_that_tells_more_than_its_budget():
    admitted = 0
    for seed in range(40):
        events, pair = a_list(seed)
        for epsilon, delta, order in ((1.0, 0.05, 8.0), (4.0, 1e-3, 3.5), (8.0, 0.1, 2.0)):
            rule = filter_for("renyi", PrivacyBudget(epsilon, delta), order=order)
            if admits(rule, [], (tuple(events), PrivacyBudget(epsilon, delta))):
                admitted += 1
                assert delta_of(pair, epsilon) <= delta
    assert admitted > 15


def test_the_runs_tell_enough_to_see_an_event_that_is_priced_as_silence():
    seen = set()
    for seed in range(40):
        events, pair = a_list(seed)
        for i, event in enumerate(events):
            others = events[:i] + events[i + 1 :]
            if any(delta_upper(others, e) < delta_of(pair, e) - 1e-12 for e in EPSILONS):
                seen.add(type(event).__name__)
    assert len(seen) == 8  # all kinds above
