"""Where the stages begin: at nothing, or at a model of labels that were released before; public."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import shown_classes
from secretballot.bases.integer_model import WEIGHT_UNIT, IntegerModel
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.training.inputs import points_digest
from secretballot.released import ReleasedLabels
from secretballot.report.certificate.build import labels_digest
from secretballot.report.certificate.verify import verify_certificate
from secretballot.students.moment_fit import MomentFit
from secretballot.students.moment_links import Link, MomentEquations
from secretballot.teachers.rows import n_rows, take_rows


@dataclass(frozen=True, eq=False)
class ReleasedStart:
    """A model of labels that were released before.

    Attributes
    ----------
    fit : MomentFit
        What the first stage starts from; its weights are whole numbers of 1 / `WEIGHT_UNIT`.
    certificate_digest : str
        Of the certificate of these labels.
    """

    fit: MomentFit
    certificate_digest: str

    def to_json(self) -> dict[str, Any]:
        """Return what a certificate says of it."""
        return {
            "certificate": self.certificate_digest,
            "weights": IntegerModel.of(self.fit.weights).weights.ravel().tolist(),
        }


def check_start(start: object, classes: tuple[Any, ...], X_public: Any) -> None:
    """Refuse a start that is no verified release about these classes and these public points.

    Parameters
    ----------
    start : object
        None, or what should be a `ReleasedLabels`.
    classes : tuple
    X_public : array, sparse matrix or frame of shape (n_public, n_features)
        As their digest is taken.

    Raises
    ------
    ParameterError
        If it is no release, says less than its certificate, or is about something else.
    """
    if start is None:
        return
    if not isinstance(start, ReleasedLabels):
        raise ParameterError(
            Parameter("start"),
            f" is a {type(start).__name__}; give the ReleasedLabels of a release, such as"
            " released_ of a learner: anything else may have looked at private data.",
        )
    failures = verify_certificate(start.certificate).failures
    if failures:
        raise ParameterError(
            "The certificate of ",
            Parameter("start"),
            f" does not verify ({failures[0].name}: {failures[0].detail}); give a release as it was"
            " made.",
        )
    stated, rows = start.certificate["released"], start.queries
    own = labels_digest(rows, start.labels, start.classes, start.noisy_counts)
    # 1, 1.0 and True are equal but not the same class
    found, wanted = ([(type(value), value) for value in one] for one in (start.classes, classes))
    # labels are rows of the pool, and in another pool they would belong to wrong points
    inside = rows.min(initial=0) >= 0 and rows.max(initial=0) < n_rows(X_public)
    known = points_digest(take_rows(X_public, rows)) if inside else None
    problems = {
        "has other labels than its certificate; take both from one release": (
            stated["labels_sha256"] != own
        ),
        f"is about the classes {shown_classes(start.classes)}; these are {shown_classes(classes)},"
        " so give a release of the same ones in the same order": found != wanted,
        "is about other public points, or its certificate has no points_sha256; give the X_public"
        " of that release, rows in the same order": known is None
        or stated.get("points_sha256") != known,
        "answers no query; fit without it": not start.answered.any(),
    }
    for problem, is_so in problems.items():
        if is_so:
            raise ParameterError(Parameter("start"), f" {problem}.")


def released_start(
    start: ReleasedLabels | None, pool: IntArray, link: Link, n_cells: int = 0
) -> ReleasedStart | None:
    """Return the model that a release comes to in a public basis; None where there is no release.

    It is the logistic or softmax one of largest posterior density, with the prior of a fit that
    starts from nothing. Released labels say where weights lie, and not how surely: they follow from
    votes or from another model, and are no draws from what holds of records. So the start replaces
    the mean of the prior, and the prior stays as wide, however many labels there are.

    Parameters
    ----------
    start : ReleasedLabels or None
        Checked by `check_start`.
    pool : ndarray of int64, shape (n_public, n_coordinates + n_cells)
        The public points, as rows of a `LinearModel`.
    link : Link
    n_cells : int
    """
    if start is None:
        return None
    nothing = MomentFit.start(pool, link, n_cells=n_cells)
    weights, shares, noise = _shares_of(start)
    points = nothing.points[start.queries[start.answered]]
    targets = shares[:, -link.n_columns :]
    equations = MomentEquations(
        points,
        weights[:, None],
        points.T @ targets / len(points),
        # noise of votes is added to the variance of a label
        nothing.precision * (1 + noise / link.variance) / len(points),
        nothing.weights,
        np.zeros_like(targets),
    )
    whole = IntegerModel.of(link.weights_of(equations)).weights
    return ReleasedStart(replace(nothing, weights=whole / WEIGHT_UNIT), start.certificate["digest"])


def _shares_of(released: ReleasedLabels) -> tuple[FloatArray, FloatArray, float]:
    """Return what a release reveals at its answered queries: their weights by the number of votes,
    1 in the mean; the shares of the classes times these, of shape (n_answered, n_classes); and the
    variance of what noise adds to a share. Of noisy counts shares are without bias, and may lie
    below 0 or above 1; of labels alone they are all or nothing."""
    n_classes, labels = released.n_classes, released.labels[released.answered]
    if released.noisy_counts is None:
        return np.ones(len(labels)), np.eye(n_classes)[labels], 0.0
    assert released.sigma is not None
    counts, left = released.noisy_counts[released.answered].astype(np.float64), 1.0
    if counts.ndim == 1:
        counts = np.column_stack([released.n_teachers - counts, counts])
    else:
        left = 1 - 1 / n_classes  # what is the same noise in all classes is taken away
    # votes of records are as many at a point as there are records near it
    total = counts.sum(axis=1)
    votes = np.maximum(total, 0) if released.by_record else np.full(len(total), released.n_teachers)
    counts += (votes - total)[:, None] / n_classes
    mean = max(float(votes.mean()), 1.0)
    return votes / mean, counts / mean, left * (released.sigma / mean) ** 2
