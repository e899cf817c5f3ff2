"""What lists can tell at least: chances of all outcomes of runs on neighbouring votes, composed.

No price may be below. Independent of the library's accounting, and enumerated in floats: outcomes
are merged, which tells less, and 12 standard deviations leave out less than 1e-30.
"""

import itertools
import math
from types import SimpleNamespace

import numpy as np

from golden.lists import NeutralEvent

MOST = 400  # atoms that are kept
WIDEST = 20_000  # sigma; beyond, an enumeration is long, and the event is left out
SLACK = 1e-12  # for sums of floats
SILENCE = np.ones(1), np.ones(1)

# Every pair is two arrays, the chances of all outcomes on both sides.


def merged(p, q):
    """Return a pair that tells no more: outcomes of nearly one ratio are told as one."""
    keep = (p > 0) | (q > 0)
    p, q = p[keep], q[keep]
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(p) - np.log(q)
    sure = np.isinf(loss)
    order = np.argsort(loss[~sure])
    groups = np.arange(len(order)) * MOST // max(len(order), MOST)
    middle = [np.bincount(groups, side[~sure][order]) for side in (p, q)]
    ends = [[side[loss == end].sum() for end in (math.inf, -math.inf)] for side in (p, q)]
    return tuple(np.concatenate(both) for both in zip(middle, ends, strict=True))


def beside(one, other):
    """Return the pair of two independent ones."""
    return merged(*(np.outer(a, b).ravel() for a, b in zip(one, other, strict=True)))


def repeated(pair, count):
    """Return the pair of so many independent ones, by doubling."""
    if count == 1:
        return pair
    half = repeated(pair, count // 2)
    twice = beside(half, half)
    return beside(twice, pair) if count % 2 else twice


def delta_of(pair, epsilon):
    """Return the larger true delta of both directions."""
    p, q = pair
    factor = math.exp(epsilon)
    return max(np.maximum(0, a - factor * b).sum() for a, b in ((p, q), (q, p)))


def bits(p, q):
    return np.array([p, 1 - p]), np.array([q, 1 - q])


def gaussian(sigma, shift):
    k = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + shift + 1)
    sides = [np.exp(-((k - mean) ** 2) / (2 * sigma**2)) for mean in (0, shift)]
    return merged(*(side / side.sum() for side in sides))


def label(sigma, votes):
    """Return the chances of each class to have the highest noisy count, lowest class first."""
    k = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + max(votes) + 1)
    weights = [np.exp(-((k - n) ** 2) / (2 * sigma**2)) for n in votes]
    chances = [weight / weight.sum() for weight in weights]
    below = [np.cumsum(chance) - chance for chance in chances]
    upto = [np.cumsum(chance) for chance in chances]
    found = []
    for j, chance in enumerate(chances):
        rivals = [below[i] if i < j else upto[i] for i in range(len(votes)) if i != j]
        found.append(float((chance * np.prod(rivals, axis=0)).sum()))
    return np.array(found)


def laplace_tail(value, scale):
    """Return P(X >= value) of discrete Laplace noise."""
    r = math.exp(-1 / scale)
    return r**value / (1 + r) if value >= 1 else 1 - r ** (1 - value) / (1 + r)


def passing(event, distance):
    """Return the chance that a query passes the noisy threshold of a sparse vector."""
    y = np.arange(-math.ceil(40 * event.threshold_scale), math.ceil(40 * event.threshold_scale) + 1)
    weight = np.exp(-np.abs(y) / event.threshold_scale)
    tails = [laplace_tail(event.threshold - distance + 1 + int(n), event.query_scale) for n in y]
    return float(weight @ np.array(tails) / weight.sum())


def wrong(chance):
    """Return the pair of an answer that differs, and of an abstention."""
    return np.array([chance, 0.0, 1 - chance]), np.array([0.0, chance, 1 - chance])


def pair_of(one: NeutralEvent):
    """Return a pair that a run of one event reaches; that of silence where none is cheap."""
    match one["kind"]:
        case "counts":
            return repeated(gaussian(one["sigma"], 1), one["shifts"])
        case "sums":
            whole = SILENCE
            for sigma in one["sigmas"]:
                if sigma <= WIDEST:
                    whole = beside(whole, gaussian(sigma, math.isqrt(one["squared"])))
            return whole
        case "binary-labels":
            return repeated(majority(one["sigma"]), one["queries"])
        case "class-labels":
            return repeated(plurality(one["sigma"]), one["queries"])
        case "table-labels":
            chances = [weight / 2**53 for weight in one["weights"]]
            neighbours = list(itertools.pairwise(chances))
            near, far = max(neighbours, key=lambda two: two[0] / two[1])
            return repeated(bits(near, far), one["queries"])
        case "confident":  # every query passes the threshold
            label_of = majority if one["classes"] == 2 else plurality
            return repeated(label_of(one["sigma"]), one["answers"])
        case "pure":
            chance = 1 / (1 + math.exp(-one["epsilon"]))
            return repeated(bits(chance, 1 - chance), one["count"])
        case "bounded-range":  # two outcomes whose losses lie as far apart as may be
            p = 1 / (1 + math.exp(-one["epsilon"] / 2))
            pair = bits(p, p / (p + (1 - p) * math.exp(-one["epsilon"])))
            return repeated(pair, one["count"])
        case "stable-tests":  # a distance at the threshold
            near, far = laplace_tail(1, one["scale"]), laplace_tail(2, one["scale"])
            return repeated(bits(near, far), one["count"])
        case "sparse-stream":
            # one query at the threshold, then such as are surely withheld, which renews its noise
            event, distance = SimpleNamespace(**one), one["threshold"]
            pair = bits(passing(event, distance), passing(event, distance + 1))
            return repeated(pair, one["abstentions"])
        case "table-stream":
            return repeated(wrong(one["false_answer"]), one["abstentions"])
    return SILENCE


def majority(sigma):
    """Return the pair of a label at a tie of two classes and a vote beside it."""
    noise = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
    weight = np.exp(-(noise**2) / (2 * sigma**2))
    weight /= weight.sum()
    return bits(float(weight[noise >= 0].sum()), float(weight[noise >= 1].sum()))


def plurality(sigma):
    d = round(0.7 * sigma)
    return label(sigma, [d + 1, d, 0]), label(sigma, [d, d + 1, 0])


def least_of(listed) -> tuple[float, float]:
    """Return what the delta at a list's epsilon and the epsilon at its delta are at least."""
    pair = SILENCE
    for one in listed["events"]:
        pair = beside(pair, pair_of(one))
    low, high = 0.0, 64.0
    if not delta_of(pair, low) > listed["delta"] + SLACK:
        return delta_of(pair, listed["epsilon"]), 0.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if delta_of(pair, middle) > listed["delta"] + SLACK else (low, middle)
        )
    return delta_of(pair, listed["epsilon"]), low
