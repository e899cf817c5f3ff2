"""What a release is made of: released values and public inputs, and nothing that was private."""

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from secretballot._typing import AnyArray
from secretballot.exceptions import DataError
from secretballot.publishing.serving import not_portable
from secretballot.released import ReleasedLabels, ReleasedSums
from secretballot.report.student.raw_columns import RawRows


@dataclass(frozen=True)
class ChosenHypothesis:
    """The hypothesis that was selected privately: its class by name, its number on the certificate.

    Attributes
    ----------
    hypotheses : {"stumps", "thresholds", "intervals"}
    """

    hypotheses: str


@dataclass(frozen=True, eq=False)
class ReleaseJob:
    """Everything that the files of a release follow from.

    Attributes
    ----------
    released : ReleasedLabels or ReleasedSums
        What was released, with its certificate; also a ReleasedTable.
    student : str, ChosenHypothesis, estimator or None
        By name, unfitted, or fitted, when it is written as it is. "auto" is the one that measured
        best: of sums over records the model itself, whose weights are on the certificate.
    X_public : array, sparse matrix or frame of shape (n, n_features), or None
        Public points.
    schema : mapping or None
        Public description of the columns, as JSON values.
    abstentions : str
        What a student of labels makes of unanswered points.
    seed : int
        Of the student; public.
    without : tuple of {"report", "student"}
        Parts that are not wanted.
    raw_rows : RawRows or None
        Public rows before and after the encoding of the schema, to check a file that encodes them
        itself.
    test : tuple of array and ndarray, or None
        Public labelled points and the class of each, as an index; without classes the number of
        each, or its labels as 0 and 1: the student's metrics on them are published.
    about : mapping
        The curator's words on the release, as the field of the certificate has them.
    """

    released: ReleasedLabels | ReleasedSums
    student: Any = None
    X_public: Any = None
    schema: Mapping[str, Any] | None = None
    abstentions: str = "drop"
    seed: int = 0
    without: tuple[str, ...] = ()
    raw_rows: RawRows | None = None
    test: tuple[Any, AnyArray] | None = None
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def labels(self) -> ReleasedLabels:
        """The released labels.

        Raises
        ------
        DataError
            If a table, or sums alone, were released in their place.
        """
        if not isinstance(self.released, ReleasedLabels):
            raise DataError(
                "No labels of one class each were released, and this needs them; of record moments"
                " publish the model itself, as the student auto."
            )
        return self.released

    def canonical(self) -> "ReleaseJob":
        """Return the same job in the one form that its values have: plain lists, rows in order.

        The order in which an array lies in memory can change the last digit of a sum.
        """
        released = type(self.released).from_json(json.loads(json.dumps(self.released.to_json())))
        return replace(self, released=released, X_public=_canonical_points(self.X_public))

    def to_bytes(self) -> bytes:
        """Return the job as bytes, for another process.

        Raises
        ------
        ParameterError
            If the student cannot be taken to another process.
        """
        try:
            return pickle.dumps(self.canonical(), protocol=5)
        except Exception as error:  # a student may be anybody's, and refuse in any way
            refused = not_portable(error)
        raise refused


def _canonical_points(X: Any) -> Any:
    """Return public points with rows one after the other, sparse ones sorted, without doubles."""
    if hasattr(X, "tocsr"):
        matrix = X.tocsr().copy()
        matrix.sum_duplicates()
        matrix.sort_indices()
        return matrix
    return np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X
