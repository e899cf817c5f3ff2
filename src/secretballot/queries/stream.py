"""Algorithm 7 of Liu et al. 2021: ask in the region of disagreement, update at powers of two."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot.exceptions import ParameterError
from secretballot.queries.base import PublicPool, QuerySelector
from secretballot.queries.labelled import LabelledRows, labelled_rows
from secretballot.queries.regions import Region
from secretballot.released import ReleasedLabels

# Points whose place is found out together where that is costly.
_BLOCK = 256


@dataclass(frozen=True)
class MistakeSlack:
    """How many more mistakes than the fewest a hypothesis may make and stay in the running.

    The bound j U(j, gamma_j) = c (D + sqrt(j e D)) with D = d log(theta) + log(1 / gamma_j),
    gamma_j = gamma / log2(2j)^2. Summed over the updates j = 2, 4, 8, ..., the gamma_j stay below
    0.645 gamma.

    Attributes
    ----------
    constant : float
        c.
    noise_rate : float
        e, error of the best hypothesis on the labels of the service.
    disagreement_coefficient : float
        theta.
    vc_dimension : int
        d.
    failure_probability : float
        gamma.
    """

    constant: float
    noise_rate: float
    disagreement_coefficient: float
    vc_dimension: int
    failure_probability: float

    def at(self, j: int) -> float:
        """Return the slack after `j` points of the stream, in mistakes."""
        gamma_j = self.failure_probability / math.log2(2 * j) ** 2
        complexity = self.vc_dimension * math.log(self.disagreement_coefficient) + math.log(
            1 / gamma_j
        )
        return self.constant * (complexity + math.sqrt(j * self.noise_rate * complexity))


class StreamSelector(QuerySelector):
    """One run of Algorithm 7 along the pool.

    Points are numbered j = 1, ..., m. After point j = 2^i the version space is updated on all
    answers so far; between updates the region of disagreement stands still, so the points of (2^i,
    2^(i+1)] that lie in it are asked together, and the run asks exactly what the printed algorithm
    asks one by one. Abstentions teach nothing. The run ends when the stream does, or when no point
    of the rest lies in the region.

    Parameters
    ----------
    pool : PublicPool
    region : Region
    slack : MistakeSlack
    """

    def __init__(self, pool: PublicPool, region: Region, slack: MistakeSlack) -> None:
        self._pool, self._region, self._slack = pool, region, slack
        self._known = LabelledRows.none()
        # the region, as far as it was looked at
        self._inside = np.zeros(pool.n_points, dtype=np.bool_)
        self._looked = 0  # points whose place in or out of the region of now is known
        self._passed = 0  # points whose request, if any, stands in the queue
        # point after which the next update is due; the one at j = 1 is left out
        self._stop = min(2, pool.n_points)
        self._requested = np.empty(0, dtype=np.int64)
        self._waiting = np.empty(0, dtype=np.int64)  # requested, not yet proposed
        self._learnt = 0  # answers in the last update
        self._ended = False
        self._updates: list[dict[str, Any]] = []
        self._open_epoch(0, None)

    def propose(self, n: int) -> IntArray:
        """Return up to `n` of the next points in the region, all of them before the next update.

        Raises
        ------
        ParameterError
            If an update is due and an answer to an earlier proposal is missing.
        """
        while len(self._waiting) < n and self._find_more(needed=len(self._waiting) == 0):
            pass
        rows, self._waiting = self._waiting[:n], self._waiting[n:]
        return rows

    def receive(self, released: ReleasedLabels) -> None:
        """Take in everything released so far."""
        self._known = labelled_rows(released, self._pool)

    def explain(self) -> dict[str, Any]:
        """Return the settings of the slack, the version space, and what every update found.

        Of each update: `j` points of the stream had passed, `asked` of them had been requested and
        `answered` got a label; `slack`, in mistakes; of the rest of the stream, `examined` points
        were looked at before the next update, and `in_region` of them lie in the region. An update
        without a new answer changes nothing and is not listed.
        """
        return {
            **self._region.describe(),
            "points": self._pool.n_points,
            "points_passed": self._passed,
            "updates": [dict(update) for update in self._updates],
        }

    def _find_more(self, *, needed: bool) -> bool:
        """Find more requests; return whether there may be more before a needless update."""
        if self._passed < self._stop:
            self._pass_block()
            return True
        if self._ended or not needed:
            return False
        self._update_version_space()
        return True

    def _pass_block(self) -> None:
        """Pass some points of the stream, and put what is to be asked of them in the queue."""
        if self._looked == self._passed:
            self._look_ahead_to(min(self._passed + _BLOCK, self._stop))
        end = min(self._looked, self._stop)
        found = self._passed + np.flatnonzero(self._inside[self._passed : end])
        self._passed = end
        self._requested = np.concatenate([self._requested, found])
        # what was answered already, as in a run that is taken again, need not be asked again
        self._waiting = np.concatenate([self._waiting, found[~np.isin(found, self._known.asked)]])

    def _look_ahead_to(self, end: int) -> None:
        """Find out which points up to `end` lie in the region."""
        start = self._looked
        if start == end:  # the last update may come after the last point of the stream
            return
        self._inside[start:end] = self._region.contains(np.arange(start, end))
        self._looked = end
        self._updates[-1]["examined"] += end - start
        self._updates[-1]["in_region"] += int(self._inside[start:end].sum())

    def _update_version_space(self) -> None:
        if not np.isin(self._requested, self._known.asked).all():
            raise ParameterError(
                "propose was called before all answers to the last proposal came in; call receive"
                " with them first."
            )
        j, learnt = self._stop, self._known.among(self._requested)
        self._stop = min(2 * j, self._pool.n_points)
        self._ended = j == self._stop
        if self._ended and (j == 1 or j & (j - 1)):  # the stream need not end at a power of two
            return
        # without a new answer, a slack that grew with j would remove nothing
        if len(learnt.rows) == self._learnt:
            return
        slack = self._slack.at(j)
        self._region.update(learnt, slack)
        self._learnt = len(learnt.rows)
        self._looked = j
        self._open_epoch(j, slack)

    def _open_epoch(self, j: int, slack: float | None) -> None:
        self._updates.append(
            {
                "j": j,
                "asked": len(self._requested),
                "answered": self._learnt,
                "slack": slack,
                "examined": 0,
                "in_region": 0,
            }
        )
        if self._region.looks_ahead:
            self._look_ahead_to(self._pool.n_points)
            if not self._inside[j:].any():  # on this pool the version space is a point
                self._passed = self._stop = self._pool.n_points
                self._ended = True
