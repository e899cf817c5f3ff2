"""The report: one page that a data-protection officer can read, made of released values alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from secretballot._typing import FloatArray
from secretballot.bases import TableBasis
from secretballot.released import ReleasedLabels, ReleasedSums, ReleasedTable, labels_of_table
from secretballot.report.certificate.build import UNSEEN_TEACHERS
from secretballot.report.certificate.verify import verify_certificate
from secretballot.report.metrics import Metrics, TableMetrics
from secretballot.report.pictures import (
    draw_budget,
    draw_columns,
    draw_confidence,
    draw_curve,
    draw_moments,
    draw_numbers,
    draw_shares,
    draw_votes,
    released_sizes,
)
from secretballot.report.release.words import Facts, answers_to_draw, template


def render_page(
    released: ReleasedLabels | ReleasedSums,
    *,
    student: Any = None,
    X_public: Any = None,
    files_written: Mapping[str, str] | None = None,
    curve: Sequence[float | None] = (),
    columns: Sequence[str] = (),
    metrics: Metrics | TableMetrics | None = None,
) -> str:
    """Return the report of a release as one HTML page that needs nothing else.

    Parameters
    ----------
    released : ReleasedLabels, ReleasedTable or ReleasedSums
        What was released, with its certificate.
    student : fitted classifier, or student of tables, optional
        Trained on it.
    X_public : array or frame of shape (n, n_features), optional
        Public points on which the student's confidence is drawn.
    files_written : mapping, optional
        Name of each file beside the page, with what it is.
    curve : sequence of float or None
        Of a release in rounds, for each round the share of the public pool on which its student
        agrees with the final one.
    columns : sequence of n_features str
        Name of the raw column that each column of the points is of, for pictures.
    metrics : Metrics or TableMetrics, optional
        Of the student on public labelled points.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    facts, said = Facts(released), None
    pictures = {"budget": draw_budget(facts.certificate)}
    if isinstance(released, ReleasedLabels | ReleasedTable):
        pictures["votes"] = _picture_of_answers(released, facts)
    # our own student of noisy counts predicts votes; any other predicts the class itself
    of_votes = hasattr(student, "predict_shares")
    if student is not None and X_public is not None:
        said = answers_to_draw(student, X_public, facts.target)
    if said is not None:
        pictures["confidence"] = _picture_of_student(said, facts, of_votes)
    if facts.kind == "sums":
        pictures["moments"] = draw_moments(facts.terms)
        pictures |= _picture_of_columns(student, X_public, columns)
    if any(share is not None for share in curve):
        pictures["curve"] = draw_curve(facts.certificate["plan"]["rounds"], curve)
    return template("page.html.j2").render(
        f=facts,
        # the pictures are the package's own SVG: the template must not escape them
        pictures={name: Markup(svg) for name, svg in pictures.items()},
        sizes=released_sizes(facts.terms) if facts.kind == "sums" else [],
        n_drawn=None if said is None else len(said),
        of_votes=of_votes,
        student=None if student is None else type(student).__name__,
        metrics=metrics,
        unseen=UNSEEN_TEACHERS,
        verification=verify_certificate(facts.certificate),
        files_written=dict(files_written or {}),
    )


def _picture_of_answers(released: ReleasedLabels | ReleasedTable, facts: Facts) -> str:
    if isinstance(released, ReleasedLabels):
        return draw_votes(released)
    if facts.kind == "numbers":
        bounds = facts.terms["bounds"]
        return draw_numbers("votes", released.values[:, 0], bounds, "released number")
    given = np.column_stack([one.labels for one in labels_of_table(released)])
    return draw_shares("votes", facts.terms["labels"], given.mean(axis=0))


def _picture_of_student(said: FloatArray, facts: Facts, of_votes: bool) -> str:
    """Draw what the student says of public points."""
    if facts.target == "labels":
        return draw_shares("confidence", facts.terms["labels"], said.mean(axis=0))
    if facts.target == "number":
        return draw_numbers("confidence", said, facts.terms["bounds"], "predicted number")
    return draw_confidence(said.max(axis=1), len(facts.classes), of_votes=of_votes)


def _picture_of_columns(student: Any, X_public: Any, columns: Sequence[str]) -> dict[str, str]:
    """Draw the columns of the table, by name, and the share of each, where the student is the model
    itself and says anything."""
    if X_public is None or not isinstance(getattr(student, "basis", None), TableBasis):
        return {}
    shares: FloatArray = student.column_shares(X_public)
    raw = [*map(str, columns or student.basis.feature_names_in_)]
    names = list(dict.fromkeys(raw))
    of_names = np.bincount([names.index(one) for one in raw], shares, minlength=len(names))
    return {"columns": draw_columns(names, of_names)} if of_names.any() else {}
