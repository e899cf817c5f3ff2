"""The story of a release in rounds: the strategy is run again on what was released."""

import warnings
from typing import Any

import numpy as np

from secretballot._rows import take_rows
from secretballot._typing import IntArray
from secretballot.publishing.job import AskedInRounds, ReleaseJob
from secretballot.queries import (
    CheckedSelector,
    PublicPool,
    default_round_size,
    strategy_by_name,
)
from secretballot.released import ReleasedLabels
from secretballot.report.rounds.story import QueryStory, make_story
from secretballot.students import fit_student

POINTS = 10  # of the learning curve; each is one fit of the student


def tell_story(job: ReleaseJob, asked: AskedInRounds, template: Any, student: Any) -> QueryStory:
    """Return how the queries of a release in rounds were chosen.

    Parameters
    ----------
    job : ReleaseJob
    asked : AskedInRounds
    template, student : classifier
        The student of the release before and after its fit.
    """
    plan = job.labels.certificate["plan"]
    return make_story(
        job.X_public,
        job.labels,
        plan["strategy"],
        plan["rounds"],
        _strategy_explanation(job, asked, plan["planned"]),
        learning_curve(job, template, student, plan["rounds"]),
    )


def _strategy_explanation(job: ReleaseJob, asked: AskedInRounds, planned: int) -> dict[str, Any]:
    """Return what the strategy tells of its rounds; nothing where it would ask otherwise now.

    That is so where another strategy spent a part of the reservation before.
    """
    released = job.labels
    pool = PublicPool(take_rows(job.X_public, asked.askable), released.classes, planned, job.seed)
    order = np.searchsorted(asked.askable, released.queries)
    selector = CheckedSelector(strategy_by_name(asked.strategy), pool)
    size = asked.round_size or default_round_size(planned)
    # the same rounds as in the run: the strategy proposes, is given the released answers, and
    # proposes again; one difference means that its words would not be about these queries
    done = 0
    proposed = selector.propose(min(size, planned))
    while len(proposed):
        given = order[done : done + len(proposed)]
        if not np.array_equal(given, proposed[: len(given)]):
            return {}
        done += len(given)
        if len(given) < len(proposed) or done == planned:
            break
        selector.receive(_first_answers(released, done, order))
        proposed = selector.propose(min(size, planned - done))
    return selector.explain() if done == len(order) else {}


def _first_answers(released: ReleasedLabels, n: int, queries: IntArray) -> ReleasedLabels:
    """Return the first `n` answers of a release, about rows of `queries`, without a certificate."""
    return ReleasedLabels(
        queries=queries[:n],
        labels=released.labels[:n],
        classes=released.classes,
        n_teachers=released.n_teachers,
        sigma=released.sigma,
        noisy_counts=None if released.noisy_counts is None else released.noisy_counts[:n],
    )


def learning_curve(
    job: ReleaseJob, template: Any, student: Any, rounds: list[int]
) -> list[float | None]:
    """Return the share of the public pool on which each round's student agrees with the final one.

    At most `POINTS` rounds get a student of their own; the others, and rounds from which nothing
    can be learnt yet, get None.

    Raises
    ------
    MemoryError
        If there is not enough memory to fit a student.
    """
    edges = np.cumsum(rounds)
    final = np.asarray(student.predict(job.X_public))
    curve: list[float | None] = [None] * len(edges)
    for number in np.unique(np.linspace(0, len(edges) - 1, POINTS).round().astype(int)):
        part = _first_answers(job.labels, int(edges[number]), job.labels.queries)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = fit_student(
                    template, job.X_public, part, abstentions=job.abstentions, random_state=job.seed
                )
                curve[number] = float(np.mean(np.asarray(fitted.predict(job.X_public)) == final))
        except MemoryError:  # what memory there is, is no property of the student
            raise
        # any learner may raise anything where there are few answers, or all of one class
        except Exception:
            continue
    return curve
