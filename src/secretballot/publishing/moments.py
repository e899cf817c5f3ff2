"""The model of released moments, made anew from the certificate and the public points."""

import hashlib
import math
import numbers
from typing import Any

import numpy as np

from secretballot.bases import Basis, GraphBasis, ImageBasis, KernelBasis, TableBasis
from secretballot.bases.integer_model import (
    IntegerLabels,
    IntegerLine,
    IntegerModel,
    model_of_stages,
)
from secretballot.exceptions import DataError
from secretballot.released import ReleasedLabels, ReleasedSums
from secretballot.report.certificate.methods import SUMS
from secretballot.students import MomentsStudent


def model_of_certificate(released: ReleasedLabels | ReleasedSums, X_public: Any) -> MomentsStudent:
    """Return the model whose weights the certificate states, in the basis of the public points.

    Raises
    ------
    DataError
        If the certificate is about something else, or the public points do not give its basis.
    """
    certificate = released.certificate
    if certificate["public"]["method"] not in SUMS:
        raise DataError(
            "The release holds no sums over records, so no model follows from its certificate; name"
            " another student."
        )
    if X_public is None:
        raise DataError("The model needs the public points of the release; give them as X_public.")
    public = certificate["public"]
    basis = _basis_by_settings(public["basis"]).fit(X_public)
    pool = basis.rows(X_public)
    weights = np.array(public["weights"], dtype=np.int64)
    classes = released.classes if isinstance(released, ReleasedLabels) else None
    labels, bounds = public.get("labels"), public.get("bounds")
    n_columns = len(labels or classes or [bounds])
    if classes is not None and n_columns == 2:
        n_columns = 1  # which says both
    shape = (len(weights), pool.shape[1] - len(basis.levels_), n_columns)
    # in any other basis the weights would be those of another model
    digest = hashlib.sha256(pool.astype("<i8").tobytes()).hexdigest()
    if digest != public["basis_sha256"] or weights.size != math.prod(shape):
        raise DataError(
            "The public points do not give the basis of the certificate: their coordinates have"
            " another digest. Give the very points of the release, with the versions of numpy and"
            " scipy that the certificate names, on a processor of the same kind; nothing that was"
            " paid for is lost."
        )
    kind = IntegerLabels if labels else IntegerLine if bounds else IntegerModel
    stages = [*weights.reshape(shape)]
    model = model_of_stages(kind, stages, public["covered_only"], pool, basis.levels_)
    return MomentsStudent(
        basis,
        model.weights,
        classes,
        labels=labels,
        bounds=None if bounds is None else (bounds[0], bounds[1]),
        before=model.before,
    )


_BASES: dict[object, type[TableBasis] | type[KernelBasis] | type[GraphBasis]] = {
    "table": TableBasis,
    "kernel": KernelBasis,
    "graph": GraphBasis,
    "images": ImageBasis,
}


def _basis_by_settings(described: Any) -> Basis:
    """Return the unfitted basis that a certificate describes; the file may be a stranger's."""
    settings = dict(described) if isinstance(described, dict) else {}
    if "embedding" in settings:
        raise DataError(
            "The basis embeds rows by a transformer that the certificate does not hold, so the"
            " model cannot be made anew; publish a student that learns from the released labels."
        )
    name = settings.pop("name", None)
    kind = _BASES.get(name) if isinstance(name, str) else None
    plain = all(isinstance(value, numbers.Real) for value in settings.values())
    # the certificate may be anybody's: numbers alone, and exactly the names that a basis has
    if kind is None or {*settings} != {*kind().get_params()} or not plain:
        raise DataError(
            "The certificate describes a basis that this program does not know; use the version"
            " that it names."
        )
    return kind(**settings)
