"""The README.txt of a release folder: what may be done with it, and how."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from secretballot.released import ReleasedLabels, ReleasedTable
from secretballot.report.certificate.methods import has_moments, has_table, is_by_record, is_chosen
from secretballot.report.certificate.plan_checks import total_price
from secretballot.report.release.about_words import about_rows, caution, name_of_data
from secretballot.report.release.chosen_words import chosen_words
from secretballot.report.release.moments_words import (
    coverage_warning,
    moments_words,
    votes_coverage_words,
)
from secretballot.report.release.plan_words import choices_words, plan_words
from secretballot.report.release.table_words import answers_section
from secretballot.report.release.usage import Usage
from secretballot.report.wording import number_text, one_in, shown, unit_noun


def release_readme(
    released: ReleasedLabels | ReleasedTable,
    files: Mapping[str, str],
    left_out: Mapping[str, str],
    usage: Usage,
    formula_like: Sequence[str],
) -> str:
    """Return the text of README.txt.

    Parameters
    ----------
    released : ReleasedLabels or ReleasedTable
        With its certificate.
    files : mapping
        Name of each file, with what it is.
    left_out : mapping
        Name of each file that could not be made, with the reason.
    usage : Usage
        How the student's files are used.
    formula_like : sequence of str
        Classes that a spreadsheet might take for a formula.
    """
    # the promise comes first, then what is there, then how to use and to check it; names that a
    # stranger chose pass through `shown`
    certificate = released.certificate
    epsilon, delta = total_price(certificate)
    width = max(map(len, files))
    parts = [
        (f"A private release, made by secretballot from {name_of_data(certificate)}"),
        *_about_section(certificate),
        _wrapped_text(
            f"Everything in this folder may be published. It is ({number_text(epsilon)}, "
            f"{number_text(delta)})-differentially private:"
            f" {_compared_worlds(certificate['unit'])}, "
            "what is released would have nearly the same distribution (delta: "
            f"{one_in(delta)}). The files may be copied, combined and used for training; "
            "the guarantee stays. The epsilons and deltas of releases from the same data add up."
        ),
        "Files\n" + "\n".join(f"  {name:<{width}}  {words}" for name, words in files.items()),
    ]
    if certificate["unit"] == "label":
        parts.append(
            _wrapped_text(
                "Only labels are protected: the features of the records were taken as public"
                " already."
            )
        )
    if is_chosen(certificate):
        parts.append(_wrapped_text(chosen_words(certificate)))
    if has_moments(certificate):
        parts.append(_wrapped_text(moments_words(certificate)))
    if isinstance(released, ReleasedLabels) and is_by_record(certificate):
        parts.append(_wrapped_text(votes_coverage_words(released)))
    if isinstance(released, ReleasedLabels) and (warning := coverage_warning(released)):
        parts.append(_wrapped_text(f"Careful: {warning}"))
    parts += [
        _wrapped_text(words)
        for words in (plan_words(certificate), choices_words(certificate))
        if words
    ]
    if left_out:
        parts.append(
            "Left out\n"
            + "\n".join(_wrapped_text(f"{n}: {why}", "  ") for n, why in left_out.items())
        )
    parts += _using_sections(usage)
    parts += [
        _labels_section(certificate, formula_like),
        _verifying_section(),
    ]
    return "\n\n".join(parts) + "\n"


def _about_section(certificate: Mapping[str, Any]) -> list[str]:
    """Return what the curator said of the release, and a caution where its promise is weak."""
    said = [f"{name}: {words}" for name, words, is_said in about_rows(certificate) if is_said]
    listed = ["\n".join(_wrapped_text(line) for line in said)] if said else []
    careful = caution(certificate)
    return [*listed, *([_wrapped_text(careful)] if careful else [])]


def _compared_worlds(unit: str) -> str:
    if unit == "label":
        return "whatever any one label of the private data is"
    return f"with or without any one {unit_noun(unit)} of the private data"


def _wrapped_text(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 96, initial_indent=indent, subsequent_indent=indent)


def _using_sections(usage: Usage) -> list[str]:
    """Return how to use the student: commands and lines that can be copied as they stand."""
    parts = []
    if usage.command_line is not None:
        parts.append(["Predict rows of a table like the public one", usage.command_line])
    if usage.runtime_alone:
        parts.append(
            [
                "The same in Python without this package (pip install onnxruntime)",
                *usage.runtime_alone,
            ]
        )
    if usage.package:
        parts.append(["The same in Python with it", *usage.package])
    texts = ["\n  ".join(part) for part in parts]
    if usage.of_matrix:
        texts.append(
            _wrapped_text(
                "student.onnx reads the public points of the release: as one input X, or by the"
                " names of their columns where these hold texts."
            )
        )
    return texts


def _labels_section(certificate: Mapping[str, Any], formula_like: Sequence[str]) -> str:
    counts = ""
    if certificate["released"]["count_columns"]:
        counts = "; `noisy_count[...]` are the released noisy counts, in votes"
    rows = "the public file or of the vote file"
    if has_moments(certificate) or is_by_record(certificate):
        rows = "the public points"
    text = (
        answers_section(certificate)
        if has_table(certificate)
        else f"labels.csv: `query` is the row (from 0) of {rows}, `label`"
        f" the released class, empty where `abstained` is true{counts}. Values are written as they"
        " are."
    )
    if formula_like:
        names = ", ".join(shown(name) for name in formula_like)
        text += (
            f" Careful: a spreadsheet may take some classes for formulas ({names}); import the"
            " column as strings."
        )
    return _wrapped_text(text)


def _verifying_section() -> str:
    return "Verify\n  secretballot verify .\n" + _wrapped_text(
        "It prices the events of certificate.json again, and compares every file with the digest"
        " that the certificate lists. A digest shows damage; it is not a signature, so get the"
        " folder from someone you trust.",
        "  ",
    )
