"""model-card.md of a release: what the student is, how to use it, what it reads, what it is good
for."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from secretballot.released import ReleasedLabels, ReleasedTable
from secretballot.report.certificate.methods import has_moments, is_by_record, is_chosen
from secretballot.report.certificate.plan_checks import total_price
from secretballot.report.metrics import Metrics
from secretballot.report.release.about_words import about_rows, caution, name_of_data
from secretballot.report.release.metrics_words import metrics_sentences
from secretballot.report.release.table_words import (
    table_metrics_rows,
    table_metrics_sentences,
    table_words,
)
from secretballot.report.release.usage import Usage
from secretballot.report.table_metrics import TableMetrics
from secretballot.report.wording import count_text, number_text, shown, unit_noun

_MOST_NAMED = 20  # categories of a column


def model_card(
    released: ReleasedLabels | ReleasedTable,
    schema: Mapping[str, Any] | None,
    usage: Usage,
    metrics: Metrics | TableMetrics | None = None,
) -> str:
    """Return the text of model-card.md.

    Parameters
    ----------
    released : ReleasedLabels or ReleasedTable
        With its certificate.
    schema : mapping or None
        Public description of the columns.
    usage : Usage
        How the student's files are used.
    metrics : Metrics or TableMetrics, optional
        Of the student on public labelled rows.
    """
    certificate = released.certificate
    columns = {} if schema is None else schema["columns"]
    parts = [
        f"# Model card: a student of {_without_markup(name_of_data(certificate))}",
        _what_it_is(released),
        *_about_section(certificate),
        "## Use it",
        *_usage_parts(usage, {column["kind"] for column in columns.values()}),
    ]
    if schema is not None:
        parts += ["## What it reads", *_columns_section(schema)]
    parts += [
        "## What it is good for, and what not",
        _bullet_list(_good_and_bad(released, metrics)),
    ]
    return "\n\n".join(parts) + "\n"


def _about_section(certificate: Mapping[str, Any]) -> list[str]:
    """Return what the curator said of the release, as one list."""
    rows = [
        f"{name}: {_without_markup(words)}" for name, words, said in about_rows(certificate) if said
    ]
    return [_bullet_list(rows)] if rows else []


def _what_it_is(released: ReleasedLabels | ReleasedTable) -> str:
    certificate = released.certificate
    epsilon, delta = total_price(certificate)
    if isinstance(released, ReleasedTable):
        answers = _without_markup(table_words(certificate))
    else:
        classes = ", ".join(f"`{_code_text(value)}`" for value in released.classes)
        n_classes = count_text(len(released.classes), "class")
        answers = f"A classifier that answers one of {n_classes}: {classes}."
    return (
        f"{answers} It was made {_method_words(certificate)} and is ({number_text(epsilon)},"
        f" {number_text(delta)})-differentially private for each {unit_noun(certificate['unit'])},"
        f" under {certificate['neighbours']}: using, copying and publishing it adds nothing to that"
        " price. `certificate.json` states the promise in full; `secretballot verify .` checks it."
    )


def _method_words(certificate: Mapping[str, Any]) -> str:
    if has_moments(certificate):
        return "from noisy sums over all private records"
    if is_by_record(certificate):
        return "from noisy counts of votes that private records cast at public points"
    if is_chosen(certificate):
        return "by a private choice among candidates"
    return "from noisy votes of teachers, each trained on its own part of the private records"


def _usage_parts(usage: Usage, kinds: Collection[str]) -> list[str]:
    parts = []
    if usage.command_line is not None:
        parts += ["From the command line:", _code_block("console", [f"$ {usage.command_line}"])]
    if usage.runtime_alone:
        parts += [
            "In Python without this package (`pip install onnxruntime`). `student.onnx` has one"
            " input for each column below: numbers as `tensor(double)`, NaN where nothing is known;"
            ' all else as `tensor(string)`, as it stands in a file, "" where nothing is known.'
            f" Texts stand without space around them.{_other_inputs(kinds)}",
            _code_block("python", usage.runtime_alone),
            "`answers` has one entry for each output. Classes, or labels, in the order of the"
            " columns of `probabilities`, stand in the file's metadata: `model.get_modelmeta()`.",
        ]
    if usage.package:
        parts += ["In Python with this package:", _code_block("python", usage.package)]
    if usage.of_matrix:
        parts.append("It reads the public points of the release, as columns of one input `X`.")
    return parts or ["The file of the student was left out; `README.txt` says why."]


def _other_inputs(kinds: Collection[str]) -> str:
    """Return how lengths of time and vectors are given, where there are any."""
    words = ""
    if "duration" in kinds:
        words += " Lengths of time, and times of day, are `tensor(double)`, in seconds."
    if "vector" in kinds:
        words += " Vectors are `tensor(double)` with a column for each of their numbers."
    return words


def _code_block(language: str, lines: Sequence[str]) -> str:
    return "\n".join([f"```{language}", *lines, "```"])


def _columns_section(schema: Mapping[str, Any]) -> list[str]:
    """Return a table of the columns, and of those that are not read."""
    rows, ignored = (
        ["| column | holds | where it is empty, or something else |", "|---|---|---|"],
        [],
    )
    for name, column in schema["columns"].items():
        if column["kind"] == "ignored":
            ignored.append(
                f"{_without_markup(name)} ({_without_markup(column.get('reason', 'declared so'))})"
            )
        else:
            holds, empty = _column_words(column)
            rows.append(f"| {_without_markup(name)} | {holds} | {empty} |")
    parts = ["\n".join(rows)]
    if ignored:
        parts.append(f"Not read: {'; '.join(ignored)}.")
    return parts


def _column_words(column: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a column holds, and what becomes of a cell that is empty or something else."""
    match column["kind"]:
        case "numeric" | "duration":
            what = "a number" if column["kind"] == "numeric" else "a length of time, in seconds"
            return (
                f"{what}; of the public ones the mean is {number_text(column['center'])}, the"
                f" deviation {number_text(column['scale'])}",
                _median_words(number_text(column["median"]), column),
            )
        case "date":
            style = "" if column["format"] == "iso" else f" or {_without_markup(column['format'])}"
            parts = "".join(f", the {part}" for part in column["parts"])
            return (
                f"a date, with a time of day or without, written as in ISO 8601{style}; read: the"
                f" day{parts}",
                _median_words(_without_markup(column["median"]), column),
            )
        case "boolean":
            return "`True` or `False`, also `true`, `TRUE` and the like", '"other"'
        case "text":
            return f"free text; read: {_text_words(column)}", "no word"
        case "vector":
            width = len(column["center"])
            return f'a vector of {width} numbers, such as "[0.5, -1, ...]"', "the public mean"
    return f"one of {_first_values(column['categories'])}", '"other"'


def _text_words(column: Mapping[str, Any]) -> str:
    """Return what is read of a free text."""
    if column.get("encoding") == "hashed":
        pairs = " and pairs of words" if column["bigrams"] else ""
        return f"its words{pairs}, each hashed to one of {column['width']} places"
    weighed = " (rare ones weigh more)" if column.get("encoding") == "tfidf" else ""
    return f"whether it has {_first_values(column['words'])}{weighed}"


def _median_words(median: str, column: Mapping[str, Any]) -> str:
    marked = ", and marked as missing" if column["indicator"] else ""
    return f"{median}, the public median{marked}"


def _first_values(values: Sequence[str]) -> str:
    """Return the first of some values as code, and how many more there are."""
    named = ", ".join(f"`{_code_text(one)}`" for one in values[:_MOST_NAMED])
    more = f" and {len(values) - _MOST_NAMED} more" if len(values) > _MOST_NAMED else ""
    return f"{named}{more}"


def _good_and_bad(
    released: ReleasedLabels | ReleasedTable, metrics: Metrics | TableMetrics | None
) -> list[str]:
    """Return what a reader should know before trusting an answer."""
    careful = caution(released.certificate)
    of_table = isinstance(released, ReleasedTable)
    how_good = _how_good_of_table(metrics) if of_table else _how_good(metrics)
    said = "numbers" if "target_range" in released.certificate["public"] else "probabilities"
    points = [
        "It knows what is true of many: patterns of large groups come through the noise, those of"
        " small groups and rare classes may not.",
        "It is for rows like the public points of the release. A value that they do not show, or"
        " that the table above does not list, tells it nothing.",
        *how_good,
        f"Its {said} come from a model that noise has shaped; compare them with what happens before"
        " you act on them.",
        "Nothing of it was tested for decisions about single people, and the guarantee says nothing"
        " on fairness between groups.",
    ]
    return [*points, careful] if careful else points


def _how_good_of_table(metrics: Metrics | TableMetrics | None) -> list[str]:
    """Return the released measurements of a student of a table, or that there are none."""
    if metrics is None or isinstance(metrics, Metrics):
        return [
            "How good it is is not stated here, since no measurement was released. Measure it on"
            " labelled rows of your own before you use it, beside the best constant answer."
        ]
    rows = table_metrics_rows(metrics)
    labels = [
        f"{_without_markup(name)}: accuracy {accuracy}, and {majority} by its more frequent answer."
        for name, _, accuracy, majority, *_ in rows[1:]
    ]
    return [*table_metrics_sentences(metrics), *labels]


def _how_good(metrics: Metrics | TableMetrics | None) -> list[str]:
    """Return the released measurements, or that there are none."""
    if not isinstance(metrics, Metrics):
        return [
            "How often it is right is not stated here, since no measurement was released. Measure"
            " it on labelled rows of your own before you use it, beside the most frequent class:"
            " `secretballot compare . OTHER --evaluate FILE --target COL`.",
        ]
    recalls = ", ".join(
        f"{_without_markup(one.name)} {'-' if one.recall is None else f'{one.recall:.3f}'}"
        for one in metrics.classes
    )
    return [*metrics_sentences(metrics), f"Recall by class: {recalls}."]


def _bullet_list(points: Sequence[str]) -> str:
    return "\n".join(f"- {point}" for point in points)


def _without_markup(text: object) -> str:
    """Return text in which nothing is markup."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>#|!" else char for char in shown(text))


def _code_text(text: object) -> str:
    """Return text for a span of code in a table."""
    return shown(text).replace("`", "'").replace("|", "\\|")
