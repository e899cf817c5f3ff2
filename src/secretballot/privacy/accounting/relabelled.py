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
from collections.abc import Callable

import numpy as np

from secretballot._typing import FloatArray
from secretballot.privacy.accounting.events import RelabelledSampleEvent

Profile = Callable[[float], float]

STEPS = 48  # of the search over t; it only costs sharpness
SLACK = 1e-11  # in nats, relative to 1 + |epsilon|: more than the float error of every figure here
LARGE = 600.0  # nats; beyond, e^epsilon is not computed


def relabelling_loss(neighbours: str, relabel_epsilon: float) -> float:
    """Return eta = log c, rounded up.

    How far apart the log-ratios of two labellings can lie, in nats.
    """
    factors = 2 if neighbours == "replace-one" else 1
    half = relabel_epsilon / 2
    return factors * (half + math.log1p(math.exp(-half))) * (1 + SLACK)


def relabelled_delta(stream: Profile, epsilon: float, loss: float) -> float:
    """Return delta(epsilon) of relabelling followed by a stream, rounded up but for the profile's
    own error.

    Parameters
    ----------
    stream : callable
        Upper bound on delta(epsilon) of the stream, for epsilon of at least 0.
    epsilon : float
        Privacy loss, in nats.
    loss : float
        What `relabelling_loss` returned.
    """
    start = epsilon - SLACK * (1 + abs(epsilon) + loss)
    t = np.linspace(0.0, loss, STEPS + 1)
    if 0 < start < loss:
        t = np.sort(np.append(t, start))  # a profile may bend sharply where its argument is 0
    near, far = (
        np.array([_on_the_line(stream, start - at + more) for at in t.tolist()])
        for more in (0.0, loss)
    )
    return min(1.0, _largest_between(np.exp(-t), near, far, math.exp(loss)) * (1 + SLACK))


def _largest_between(u: FloatArray, near: FloatArray, far: FloatArray, c: float) -> float:
    """Return the largest p H(g u) + (1 - p) H(g c u) with p = (c - 1 / u) / (c - 1), from H at some
    points u.

    Hockey-stick divergences are convex in g u, so between two points a chord lies above. With
    chords for both terms the sum is A + B u + C / u on every cell: largest at an end, or at sqrt(C
    / B) where it is concave.
    """
    width = u[:-1] - u[1:]
    slopes = [(values[:-1] - values[1:]) / width for values in (near, far)]
    bases = [values[1:] - slope * u[1:] for values, slope in zip((near, far), slopes, strict=True)]
    rising, bending = c * slopes[0] - slopes[1], bases[1] - bases[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        top = np.sqrt(bending / rising)
    top = np.where((rising < 0) & (bending < 0), np.clip(top, u[1:], u[:-1]), u[1:])
    ends = [
        (at, near[1:] + slopes[0] * (at - u[1:]), far[1:] + slopes[1] * (at - u[1:]))
        for at in (u[1:], u[:-1], top)
    ]
    return max(
        float(np.max(((c - 1 / at) * first + (1 / at - 1) * second) / (c - 1)))
        for at, first, second in ends
    )


def _on_the_line(profile: Profile, epsilon: float) -> float:
    """Return a bound on delta at any real epsilon from one at epsilon >= 0, as neighbours have
    no order."""
    if epsilon >= 0:
        return min(1.0, profile(epsilon))
    return 1 - math.exp(epsilon) * (1 - min(1.0, profile(-epsilon)))


def unsampled_epsilon(epsilon: float, rate: float) -> float:
    """Return e1 with epsilon = log(1 + rate (e^e1 - 1)), rounded down; `epsilon` at least 0."""
    if epsilon > LARGE:
        return epsilon  # sampling never costs
    return max(epsilon, math.log1p(math.expm1(epsilon) / rate) * (1 - SLACK))


def sampled_delta(event: RelabelledSampleEvent, stream: Profile, epsilon: float) -> float:
    """Return delta(epsilon) of the whole: sample, relabel, stream.

    Parameters
    ----------
    event : RelabelledSampleEvent
    stream : callable
        Falling upper bound on delta(epsilon) of `event.stream`, for epsilon of at least 0.
    epsilon : float
        Privacy loss, in nats; any real number.
    """
    rate, loss = event.rate, relabelling_loss(event.neighbours, event.relabel_epsilon)

    def whole(at: float) -> float:
        return rate * (1 + SLACK) * relabelled_delta(stream, unsampled_epsilon(at, rate), loss)

    return min(1.0, _on_the_line(whole, epsilon))
