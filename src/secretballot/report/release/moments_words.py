"""Noisy sums over records in words and pictures, for the page and for README.txt."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from secretballot._typing import FloatArray
from secretballot.bases import TableBasis
from secretballot.released import ReleasedLabels
from secretballot.report.certificate.coverage import Coverage, coverage_by_votes, coverage_on
from secretballot.report.certificate.methods import (
    CLASS_WEIGHTS,
    STARTED,
    has_moments,
    is_by_record,
)
from secretballot.report.certificate.terms import stated
from secretballot.report.pictures.moments import draw_columns, draw_moments, released_sizes
from secretballot.report.student.raw_columns import encoded_width
from secretballot.report.wording import count_text, number_text, shown, unit_noun, value_text

MOMENTS_SENTENCE = (
    "The vectors of all records are added up, and random noise with a Gaussian distribution on the"
    " integers is added to every number of the sum."
)
_PARAMETERS = {
    "n_stages": "stages, each one noisy sum",
    "sigma": "standard deviation of the noise on every number",
    "bound": "largest length of a vector",
    "coordinates": "numbers in a sum",
    "residual_units": "units in which a stage counts what the model misses",
    "mark_weight": "what a record adds to a number that counts records",
    "marks": "counted beside",
    "expected_uncovered": "share of uncovered records where they are like the public points",
    "n_records": "number of records, public",
    "covered_only": "stages over the records alone that the public points cover",
    "basis": "basis",
    "basis_sha256": "SHA-256 of the public points in this basis",
    "class_weights": "what the decisions of the model count each class for",
    "start": "digest of the certificate of the labels that the first stage started from",
}
_NOT_SHOWN = {
    *("kind", "method", "guarantee", "sigmas", "squared_sensitivity", "rows", "values", "weights"),
}
_CLEAR = 2.0  # standard deviations of the noise: larger ones are rarely noise
_BY_CHANCE = 0.0455  # share of pure noise beyond that


def moments_words(certificate: Mapping[str, Any]) -> str:
    """Return what was released, in sentences.

    Parameters
    ----------
    certificate : mapping
        Of noisy sums over records.
    """
    mechanism, unit = stated(certificate), unit_noun(certificate["unit"])
    if unit == "label":
        return _label_moments_words(mechanism)
    together = " of one person together" if certificate["unit"] == "user" else ""
    return (
        f"Released were {count_text(mechanism['n_stages'], 'noisy sum')} of"
        f" {number_text(mechanism['coordinates'])} numbers each, one a stage. What a {unit} adds to"
        f" a sum is its coordinates in a basis fixed by the public points, times what the model so"
        f" far misses of its class{together}, and no longer than a fixed bound. The model is the"
        " logistic one whose sums on the public points meet the released ones. The labels are what"
        f" it says of the public points.{_start_words(mechanism)}"
        f"{_class_weights_words(certificate)} {_number_of_records(certificate)}"
    )


def _start_words(mechanism: Mapping[str, Any]) -> str:
    """Return what the first stage started from, in sentences; nothing where it was nothing."""
    if STARTED not in mechanism:
        return ""
    return (
        " The first stage started from a model of labels that were released before, under the"
        f" certificate {mechanism[STARTED]['certificate']}; what that release cost is on its own"
        " certificate, and comes on top where it is about the same data."
    )


def _class_weights_words(certificate: Mapping[str, Any]) -> str:
    """Return by how much decisions count each class, in a sentence; nothing where all are alike."""
    weights = stated(certificate).get(CLASS_WEIGHTS)
    if weights is None:
        return ""
    classes = certificate["released"]["classes"]
    pairs = (
        f"{number_text(float(f'{weight:.3g}'))} for {shown(name)}"
        for name, weight in zip(classes, weights, strict=True)
    )
    return (
        f" The model's decisions and probabilities count classes by weight: {', '.join(pairs)}. A"
        " class that is rare among the records is thus found, at the cost of more points that are"
        " called so by mistake; its probabilities are not those of records as they are."
    )


def _label_moments_words(mechanism: Mapping[str, Any]) -> str:
    """Return what was released where labels alone are private, in sentences."""
    return (
        f"Released was one noisy sum of {number_text(mechanism['coordinates'])} numbers. The"
        f" features of all {number_text(mechanism['n_records'])} records are public, and so is how"
        " many there are. What a label adds to the sum is the coordinates of its record in a basis"
        " fixed by these features, shortened where they are long, in the place of its class. The"
        " model is the logistic one with this sum. The labels are what it says of the records, and"
        " not those that were given."
    )


def _number_of_records(certificate: Mapping[str, Any]) -> str:
    """Return how many records there are and how far the public points cover them."""
    counted = coverage_on(stated(certificate))
    assert counted is not None  # else labels alone are private
    n_records = stated(certificate)["n_records"]
    covered_only = stated(certificate)["covered_only"]
    return f"{_counted_words(*counted, n_records)}{_left_out_words(covered_only)}"


def _counted_words(coverage: Coverage, number: float, error: float, n_records: int | None) -> str:
    # the number of records is public under replace-one alone; elsewhere noise is in it
    if n_records is None:
        records = (
            "The release counts the records, too, with noise:"
            f" {number_text(round(number))}, with a standard error of"
            f" {number_text(float(f'{error:.2g}'))}."
        )
    else:
        records = f"There are {number_text(n_records)} records, which is public."
    return (
        f"{records} Of them, {_percent_text(coverage.uncovered)} have a value that the public"
        f" points do not show (standard error {_percent_text(coverage.standard_error)}); where"
        f" records are like the public points it is about {_percent_text(coverage.expected)}."
    )


def _left_out_words(covered_only: Sequence[bool]) -> str:
    """Return from which sums such records were left out, in a sentence."""
    if not any(covered_only):
        return ""
    stages = ", ".join(str(place + 1) for place, one in enumerate(covered_only) if one)
    of_sums = "" if all(covered_only) else f" of stage {stages}"
    return f" Such records were left out of the sums{of_sums}."


def _percent_text(share: float) -> str:
    return f"{number_text(float(f'{100 * share:.2g}'))} %"


def votes_coverage_words(released: ReleasedLabels) -> str:
    """Return how many records voted and how far the public points cover them, of votes of records;
    or that nobody looked."""
    assert released.noisy_counts is not None
    counted = coverage_by_votes(stated(released.certificate), released.noisy_counts)
    if counted is None:
        return (
            "Whether the public points cover the records was not looked at: a record votes at its"
            " nearest public points however far they are, and nothing here shows a part of the"
            " population that they miss."
        )
    return f"{_counted_words(*counted, None)} Such records voted at no public point."


def coverage_warning(released: ReleasedLabels) -> str:
    """Return what to say aloud of public points that miss a part of the records; else nothing."""
    mechanism, counted = stated(released.certificate), None
    if has_moments(released.certificate):
        counted = coverage_on(mechanism)
    elif is_by_record(released.certificate) and released.noisy_counts is not None:
        counted = coverage_by_votes(mechanism, released.noisy_counts)
    return counted[0].warning if counted is not None and counted[0].is_poor else ""


def moments_facts(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that the page shows at a glance."""
    mechanism = stated(certificate)
    return {
        "stages": mechanism["n_stages"],
        "coordinates": mechanism["coordinates"],
        # where the records that count change between stages, the model is begun anew
        "anew": len(set(mechanism["covered_only"])) > 1,
    }


def moments_rows(mechanism: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the parameters as pairs of words, without the long lists of the certificate."""
    found = []
    for key, value in mechanism.items():
        if key in _NOT_SHOWN or value is None:
            continue
        if key == STARTED:
            value = value["certificate"]
        found.append((_PARAMETERS.get(key, shown(key)), _value_text(value)))
    return found


def _value_text(value: object) -> str:
    if isinstance(value, list) and all(isinstance(one, bool) for one in value):
        return ", ".join(str(place + 1) for place, one in enumerate(value) if one) or "none"
    return value_text(value)


def moments_pictures(
    certificate: Mapping[str, Any],
    student: Any,
    X_public: Any,
    schema: Mapping[str, Any] | None,
) -> dict[str, str]:
    """Return the pictures by name; that of the columns where the student is the model itself.

    Parameters
    ----------
    certificate : mapping
        Of a release of noisy sums.
    student : fitted estimator or None
    X_public : table of shape (n, n_features), or None
        Public points, whose columns are named.
    schema : mapping or None
        Public description of the columns, as JSON values.
    """
    pictures = {"moments": draw_moments(stated(certificate))}
    basis = getattr(student, "basis", None)
    if X_public is not None and isinstance(basis, TableBasis):
        names, shares = _named_shares(student, X_public, schema)
        if shares.any():
            pictures["columns"] = draw_columns(names, shares)
    return pictures


def _named_shares(
    student: Any, X_public: Any, schema: Mapping[str, Any] | None
) -> tuple[list[str], FloatArray]:
    """Return the columns of the table, by name, and the share of each."""
    shares = student.column_shares(X_public)
    encoded = [] if schema is None else _columns_of_schema(schema)
    if len(encoded) != len(shares):
        encoded = [str(name) for name in student.basis.feature_names_in_]
    names = list(dict.fromkeys(encoded))
    places = [names.index(name) for name in encoded]
    of_names: FloatArray = np.bincount(places, shares, minlength=len(names)).astype(np.float64)
    return names, of_names


def _columns_of_schema(schema: Mapping[str, Any]) -> list[str]:
    """Return, for each encoded column, the column of the table that it was made of."""
    columns = schema.get("columns")
    found: list[str] = []
    for name, spec in columns.items() if isinstance(columns, Mapping) else ():
        width = encoded_width(spec) if isinstance(spec, Mapping) else 0
        found += [str(name)] * width
    return found


def moments_captions(certificate: Mapping[str, Any]) -> dict[str, str]:
    """Return a caption for each picture."""
    sizes = released_sizes(stated(certificate))
    clear = [int((size > _CLEAR).sum()) for size in sizes]
    n = len(sizes[0])
    stages = " and ".join(f"{number:,} in stage {place + 1}" for place, number in enumerate(clear))
    return {
        "moments": (
            f"The {n:,} released numbers of each stage, by size. Inside the grey band a number is"
            " below one standard deviation of its noise; the dashed line is what noise alone would"
            f" give. Beyond {_CLEAR:g} standard deviations are {stages}; of noise alone it would be"
            f" about {round(_BY_CHANCE * n):,}. A later stage asks for what the model still misses,"
            " so it is smaller."
        ),
        "columns": (
            "How much of what the model says on the public points comes from each column: the share"
            " of the variance of its log-odds. Columns that tell the same divide their share as it"
            " happens, and a large share is no cause."
        ),
    }
