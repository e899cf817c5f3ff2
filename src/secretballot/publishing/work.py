"""From a job to the files of a release: fit the student, tell the story, write the folder.

The story of a release in rounds: its strategy is run again on what was released.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from secretballot._rows import take_rows
from secretballot._typing import IntArray
from secretballot.exceptions import DataError
from secretballot.hypotheses import hypotheses_by_name
from secretballot.publishing.job import (
    AskedInRounds,
    ChosenHypothesis,
    GivenStudent,
    NamedStudent,
    ReleasedWeights,
    ReleaseJob,
    SavedStudent,
)
from secretballot.publishing.moments import model_of_certificate
from secretballot.queries import CheckedSelector, PublicPool, default_round_size, strategy_by_name
from secretballot.released import ReleasedLabels, ReleasedTable
from secretballot.report.certificate.methods import has_moments
from secretballot.report.metrics import Metrics, metrics_of_student
from secretballot.report.release.folder import WrittenFiles, write_files
from secretballot.report.rounds.story import QueryStory, make_story
from secretballot.report.student.load import OnnxStudent
from secretballot.report.table_metrics import TableMetrics, metrics_of_table_student
from secretballot.students import HypothesisStudent, default_student, fit_student, fit_table_student
from secretballot.students.names import student_by_name
from secretballot.students.table_students import table_student_of

POINTS = 10  # of the learning curve; each is one fit of the student


@dataclass(frozen=True, eq=False)
class MadeRelease:
    """What came of a job.

    Attributes
    ----------
    written : WrittenFiles
    student : fitted classifier or None
        The very one whose files were written.
    """

    written: WrittenFiles
    student: Any


def make_release(job: ReleaseJob, folder: Path, say: Callable[[str], None]) -> MadeRelease:
    """Make a release in an empty folder.

    Parameters
    ----------
    job : ReleaseJob
        In its canonical form.
    folder : Path
    say : callable of str
        Called with the name of each step before it begins.

    Raises
    ------
    DataError
        If the student cannot learn from what was released, or something does not fit.
    CertificateError
        If the certificate is not the one of these labels.
    OSError
        If the disk fails.
    """
    released = job.released
    if isinstance(released, ReleasedTable):
        template = student = _student_of_table(job, released, say)
    else:
        template, student = _students_before_and_after(job, say)
    say("Writing the release")
    # what happened in rounds is reported for both students, so it is reported only now
    story = None if job.asked is None else tell_story(job, job.asked, template, student)
    written = write_files(
        folder,
        job.released,
        student=student,
        X_public=job.X_public,
        schema=job.schema,
        story=story,
        without=job.without,
        raw_rows=job.raw_rows,
        metrics=_metrics_of_job(job, student),
        about=job.about,
    )
    return MadeRelease(written, student)


def _metrics_of_job(job: ReleaseJob, student: Any) -> Metrics | TableMetrics | None:
    """Return how good the student is on public labelled points, where that is to be published."""
    if job.test is None or student is None:
        return None
    if not isinstance(job.released, ReleasedLabels):
        return metrics_of_table_student(student, *job.test)
    return metrics_of_student(student, *job.test, job.released.classes)


def _student_of_table(job: ReleaseJob, table: ReleasedTable, say: Callable[[str], None]) -> Any:
    """Return the student of a table, fitted here or before; None where there is none."""
    of_numbers = "bounds" in table.certificate["public"]
    match job.student:
        case None:
            return None
        case GivenStudent(model, True):
            return table_student_of(model, table)
        case NamedStudent(name):
            template = student_by_name(name, of_numbers=of_numbers)
        case GivenStudent(model, False):
            template = model
        case _:
            raise DataError("The release is of a table, and the student is of something else.")
    say("Fitting the student")
    return fit_table_student(template, job.X_public, table, random_state=job.seed)


def _students_before_and_after(job: ReleaseJob, say: Callable[[str], None]) -> tuple[Any, Any]:
    """Return the student before and after its fit; None twice where there is none."""
    # a student from a file is fitted already; the story needs the template only to fit it again
    # round by round, and then both are the same
    source = job.student
    if source == NamedStudent("auto") and has_moments(job.released.certificate):
        source = ReleasedWeights()  # the model itself is the best that follows from its labels
    match source:
        case GivenStudent(model, True):
            return model, model
        case SavedStudent(content):
            student = OnnxStudent(content)
            return student, student
        case ChosenHypothesis(name):
            student = _hypothesis_of_certificate(job, name)
            return student, student
        case ReleasedWeights():
            say("Fitting the basis")
            student = model_of_certificate(job)
            return student, student
        case NamedStudent(name):
            template = student_by_name(name)
        case GivenStudent(model, False):
            template = model
        case _:
            return None, None
    if template is None:
        template = default_student(job.labels)
    say("Fitting the student")
    fitted = fit_student(
        template, job.X_public, job.labels, abstentions=job.abstentions, random_state=job.seed
    )
    return template, fitted


def _hypothesis_of_certificate(job: ReleaseJob, name: str) -> HypothesisStudent:
    """Return the hypothesis that the certificate numbers, among those on the public points."""
    points = np.asarray(take_rows(job.X_public, job.labels.queries))
    hypotheses = hypotheses_by_name(name, points.shape[1])
    hypothesis = hypotheses.dichotomies(points).hypothesis(
        job.labels.certificate["released"]["values"][0][0]
    )
    return HypothesisStudent.of(hypothesis, hypotheses, list(job.labels.classes), points.shape[1])


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
    """Return what the strategy reports of its rounds; nothing where it would ask otherwise now.

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
