"""The price of a stream that runs on a relabelled secret sample: relabelling first, then
amplification by sampling.

Relabelling (Nandi and Bassily 2020, Algorithm 2) chooses a labelling of the sample by the
exponential mechanism. Its candidates depend on the sample, so that it is not private by itself; but
on the points that two neighbouring samples share, the chosen labels have distributions whose
log-ratio lies in an interval of length eta = log c,

    c = (1 + e^(r / 2))^2, r = relabel_epsilon, where one record is replaced, c = 1 + e^(r / 2)
    where one comes or goes,

and given these labels the relabelled samples differ in one record. With H the profile of the stream
that follows,

    delta(eps) <= max over t in [0, eta] of p_t H(eps - t) + (1 - p_t) H(eps - t + eta),  p_t = (c -
    e^t) / (c - 1),

which is below H(eps - eta), and far below the printed 4 e H(eps - 3). Sampling then turns delta(e1)
into q delta(e1) at eps = log(1 + q (e^e1 - 1)). Proofs: `docs/explanation/prices.md`.
"""

import math

import numpy as np

from secretballot.core.losses import LOSS_ERROR, PROFILE_ERROR, Profile
from secretballot.core.types import FloatArray

_STEPS = 48  # of the search over t; it only costs sharpness
SLACK = 1e-11  # in nats, relative to 1 + |epsilon|: more than the float error of every figure here
_POINTS = 6000  # at which the profile of a stream is read
LARGE = 600.0  # nats; beyond, e^epsilon is not computed


def relabelling_loss(relation: str, relabel_epsilon: float) -> float:
    """Return eta = log c, rounded up.

    How far apart the log-ratios of two labellings can lie, in nats.
    """
    factors = 2 if relation == "replace-one" else 1
    half = relabel_epsilon / 2
    return factors * (half + math.log1p(math.exp(-half))) * (1 + SLACK)


def _relabelled_delta(stream: Profile, epsilon: FloatArray, loss: float) -> FloatArray:
    """Return delta of relabelling followed by a stream at each epsilon, rounded up but for the
    profile's own error.

    Parameters
    ----------
    stream : callable
        Upper bounds on delta of the stream at each epsilon >= 0 of an array.
    epsilon : ndarray of shape (n,)
        In nats.
    loss : float
        What `relabelling_loss` returned.
    """
    start = epsilon - SLACK * (1 + np.abs(epsilon) + loss)
    t = np.broadcast_to(np.linspace(0.0, loss, _STEPS + 1), (len(start), _STEPS + 1))
    # a profile may bend sharply where its argument is 0
    t = np.sort(np.column_stack([t, np.clip(start, 0.0, loss)]), axis=1)
    near, far = (_on_the_line(stream, start[:, None] - t + more) for more in (0.0, loss))
    found: FloatArray = _largest_between(np.exp(-t), near, far, math.exp(loss)) * (1 + SLACK)
    return np.minimum(1.0, found)


def _largest_between(u: FloatArray, near: FloatArray, far: FloatArray, c: float) -> FloatArray:
    """Return the largest p H(g u) + (1 - p) H(g c u) with p = (c - 1 / u) / (c - 1), from H at some
    points u, in rows of shape (n, points).

    Hockey-stick divergences are convex in g u, so between two points a chord lies above. With
    chords for both terms the sum is A + B u + C / u on every cell: largest at an end, or at sqrt(C
    / B) where it is concave.
    """
    width = u[:, :-1] - u[:, 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = [np.where(width > 0, (v[:, :-1] - v[:, 1:]) / width, 0.0) for v in (near, far)]
        bases = [v[:, 1:] - s * u[:, 1:] for v, s in zip((near, far), slopes, strict=True)]
        rising, bending = c * slopes[0] - slopes[1], bases[1] - bases[0]
        top = np.sqrt(bending / rising)
    concave = (rising < 0) & (bending < 0)
    top = np.where(concave, np.clip(top, u[:, 1:], u[:, :-1]), u[:, 1:])
    found = np.full(len(u), -math.inf)
    for at in (u[:, 1:], u[:, :-1], top):
        first, second = (
            v[:, 1:] + s * (at - u[:, 1:]) for v, s in zip((near, far), slopes, strict=True)
        )
        mean = ((c - 1 / at) * first + (1 / at - 1) * second) / (c - 1)
        found = np.maximum(found, mean.max(axis=1))
    return found


def _on_the_line(profile: Profile, epsilon: FloatArray) -> FloatArray:
    """Return bounds on delta at any real epsilon from those at epsilon >= 0, as neighbours have
    no order."""
    known = np.minimum(1.0, profile(np.abs(epsilon)))
    return np.where(epsilon >= 0, known, 1 - np.exp(np.minimum(0.0, epsilon)) * (1 - known))


def _unsampled_epsilon(epsilon: FloatArray, rate: float) -> FloatArray:
    """Return e1 with epsilon = log(1 + rate (e^e1 - 1)), rounded down; each epsilon at least 0."""
    inner = np.log1p(np.expm1(np.minimum(epsilon, LARGE)) / rate) * (1 - SLACK)
    return np.where(epsilon > LARGE, epsilon, np.maximum(epsilon, inner))  # sampling never costs


def _by_chords(profile: Profile, top: float) -> Profile:
    """Return a profile that is read by chords between some points: it is convex in e^epsilon."""
    h = top / _POINTS
    value = profile(h * np.arange(_POINTS + 2.0)) * (1 + PROFILE_ERROR)

    def delta(at: FloatArray) -> FloatArray:
        place = np.minimum(at * (1 - LOSS_ERROR) / h, _POINTS)
        low = np.floor(place).astype(np.int64)
        share = np.expm1((place - low) * h) / math.expm1(h)
        return np.asarray((1 - share) * value[low] + share * value[low + 1])

    return delta


def sampled_profile(stream: Profile, top: float, rate: float, loss: float) -> tuple[Profile, float]:
    """Return the profile of the whole (sample, relabel, stream) at epsilon >= 0, and an epsilon
    from which on it reveals no more than its failure.

    Parameters
    ----------
    stream : callable
        Upper bounds on delta of the stream at each epsilon >= 0 of an array.
    top : float
        Epsilon from which on the stream reveals no more than its failure.
    rate : float
        Probability that one record is in the sample.
    loss : float
        What `relabelling_loss` returned.
    """

    known = _by_chords(stream, top)

    def whole(at: FloatArray) -> FloatArray:
        inner = _relabelled_delta(known, _unsampled_epsilon(at, rate), loss)
        return np.minimum(1.0, rate * (1 + SLACK) * inner)

    reach = top + loss
    if reach < LARGE:
        reach = math.log1p(rate * math.expm1(max(0.0, reach))) * (1 + 1e-9) + 1e-9
    return whole, reach
