"""What anybody may know of how good a release is: released values and public points, in words."""

from typing import Any

import numpy as np

from secretballot._rows import take_rows
from secretballot.released import ReleasedLabels
from secretballot.report.certificate.methods import has_moments, is_chosen
from secretballot.report.wording import count_text

_MOST_POINTS = 10_000  # where there are more, every so many-th is tried


def quality_points(
    released: ReleasedLabels, student: Any = None, X_public: Any = None
) -> list[str]:
    """Return sentences on what was answered, what noise may have decided, and what the student
    makes of it.

    Parameters
    ----------
    released : ReleasedLabels
        With its certificate.
    student : fitted classifier, optional
        Trained on it.
    X_public : array, sparse matrix or frame of shape (n, n_features), optional
        Public points, of which the queries are rows.
    """
    certificate = released.certificate
    asked, answered = len(released.queries), int(released.answered.sum())
    if is_chosen(certificate) or has_moments(certificate):
        return [
            "The released labels are what the model itself says of public points, so they are no"
            " test of it."
        ]
    points = [
        f"{answered:,} of {count_text(asked, 'query')} got a label. Noise was added before, so a"
        " label may differ from what the records say."
    ]
    # None where no noisy counts were released, which alone can tell
    near = _decided_by_noise(released)
    if near is not None:
        points.append(
            f"At {near:,} of them the released counts are so close that the noise may well have"
            " decided: within one standard deviation of it."
        )
    agreement = _agreement_counts(released, student, X_public)
    if agreement is not None:
        agreeing, tried = agreement
        points.append(
            f"The student gives the released label at {agreeing:,} of"
            f" {count_text(tried, 'answered point')}. It learnt from them, so this is no accuracy;"
            " where it differs, either may be right."
        )
    return points


def _decided_by_noise(released: ReleasedLabels) -> int | None:
    """Return at how many queries the lead is within the noise; None where no counts are there."""
    counts = released.noisy_counts
    if counts is None or not len(counts):
        return None
    sigma = float(released.sigma or 0)
    if released.n_classes == 2 and not released.by_record:
        of_second = counts if counts.ndim == 1 else counts[:, 1]
        return int((np.abs(of_second - released.n_teachers / 2) <= sigma).sum())
    # the difference of two noisy counts carries both noises
    ordered = np.sort(counts, axis=1)
    return int((ordered[:, -1] - ordered[:, -2] <= np.sqrt(2) * sigma).sum())


def _agreement_counts(
    released: ReleasedLabels, student: Any, X_public: Any
) -> tuple[int, int] | None:
    """Return at how many answered points the student says what was released, and of how many."""
    if student is None or X_public is None or not released.answered.any():
        return None
    answered = np.flatnonzero(released.answered)
    answered = answered[:: -(-len(answered) // _MOST_POINTS)]
    points = take_rows(X_public, released.queries[answered])
    try:
        said = list(np.asarray(student.predict(points), dtype=object))
    except MemoryError:  # what memory there is, is no property of the student
        raise
    except (
        Exception
    ):  # the student may be anybody's; a sentence less is no reason to lose a release
        return None
    wanted = [released.classes[index] for index in released.labels[answered]]
    if len(said) != len(wanted):
        return None
    return sum(bool(one == other) for one, other in zip(said, wanted, strict=True)), len(wanted)
