"""`secretballot evaluate`: models on a public labelled table, and releases side by side."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from secretballot._places import place_of
from secretballot.cli.metrics_lines import print_metrics, print_no_better, share_text
from secretballot.cli.outcome import print_json, say
from secretballot.cli.settings import AsJson
from secretballot.runs.spec import words_of

if TYPE_CHECKING:
    from secretballot.report.metrics import PairedDifference
    from secretballot.runs.evaluate import EvaluatedRelease, Evaluation


_LABEL = 18  # columns of the words before the values


def evaluate(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="RELEASE... [TABLE]",
            help="Release folders, or folders of runs; last a public labelled table.",
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="COL[,COL...]",
            help="Column of the table to compare with; by default as the release says.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure models on a public labelled table, and compare their releases.

    Every release is verified first. Students are compared with the first one row by row, so the
    interval of a difference is narrower than the intervals of each suggest. Without a table prices
    and guarantees alone are compared. Rows of the private file are refused where the folder of the
    run says which file that is.

    \b
    Example: secretballot evaluate first second test.csv
    """
    from secretballot.cli.console import watching
    from secretballot.runs.evaluate import evaluate as evaluate_releases
    from secretballot.runs.evaluate import is_table

    has_table = target is not None or is_table(paths[-1])
    table = place_of(paths[-1]) if has_table else None
    releases = [Path(path) for path in (paths[:-1] if has_table else paths)]
    with watching() as watch:
        watch.step("Evaluating")
        found = evaluate_releases(releases, table, words_of(target) if target else ())
    if as_json:
        print_json(found.to_json())
    elif len(found.releases) == 1 and found.releases[0].metrics is not None:
        print_no_better(found.releases[0].metrics)
        print_metrics(found.releases[0].metrics)
        if found.caution is not None:
            say(f"caution: {found.caution}")
    else:
        _print_lines(found)


def _print_lines(found: "Evaluation") -> None:
    """Print the comparison for a person: a column for each release, by letters."""
    letters = [chr(ord("A") + i % 26) * (1 + i // 26) for i in range(len(found.releases))]
    for letter, release in zip(letters, found.releases, strict=True):
        print_no_better(release.metrics, f"{letter} is ")
    for letter, release in zip(letters, found.releases, strict=True):
        say(f"{letter:<3}{release.path}")
    rows = [
        ("", letters),
        *((words, [tell(release) for release in found.releases]) for words, tell in _LINES),
    ]
    if found.differences:
        rows += [(words, [tell(release) for release in found.releases]) for words, tell in _METRICS]
        for name in ("accuracy", "balanced_accuracy"):
            # differences are from the first release, whose own cell stays empty
            told = [_difference_text(getattr(one, name)) for one in found.differences]
            rows.append((f"{name.split('_')[0]} less A's", ["", *(text for text, _ in told)]))
            rows.append(("  95 %, paired", ["", *(text for _, text in told)]))
    width = max(len(cell) for _, cells in rows for cell in cells) + 2
    for words, cells in rows:
        say(f"{words:<{_LABEL}}{''.join(f'{cell:<{width}}' for cell in cells)}".rstrip())
    if found.caution is not None:
        say(f"caution: {found.caution}")


def _difference_text(found: "PairedDifference") -> tuple[str, str]:
    """Return a difference, and its interval."""
    low, high = found.interval.low, found.interval.high
    return f"{found.difference:+.4f}", f"{low:+.4f} to {high:+.4f}"


def _price_text(release: "EvaluatedRelease") -> str:
    from secretballot.report.certificate.plan_checks import total_price

    epsilon, delta = total_price(release.certificate)
    return f"{epsilon:g}, {delta:g}"


def _spent_text(release: "EvaluatedRelease") -> str:
    account = release.certificate["composition"]
    spent, budget = (account.get(name) or {} for name in ("spent_after", "budget"))
    if "epsilon" not in spent or "epsilon" not in budget:
        return "-"
    return f"epsilon {spent['epsilon']:g} of {budget['epsilon']:g}"


def _size_text(release: "EvaluatedRelease") -> str:
    size = release.student_bytes
    return "-" if size is None else f"{size:,} bytes"


def _of_metrics(name: str) -> Callable[["EvaluatedRelease"], str]:
    return lambda release: share_text(getattr(release.metrics, name))


def _interval_text(release: "EvaluatedRelease") -> str:
    interval: Any = getattr(release.metrics, "accuracy_interval", None)
    return f"{interval.low:.4f} to {interval.high:.4f}"


def _recall_text(release: "EvaluatedRelease") -> str:
    classes: Any = getattr(release.metrics, "classes", ())
    return " ".join(f"{one.name}: {share_text(one.recall)}" for one in classes[:4])


_LINES: tuple[tuple[str, Callable[["EvaluatedRelease"], str]], ...] = (
    ("epsilon, delta", _price_text),
    ("for each", lambda one: str(one.certificate["unit"])),
    ("relation", lambda one: str(one.certificate["relation"])),
    ("dataset", lambda one: str(one.certificate["composition"]["dataset"])),
    ("spent after it", _spent_text),
    ("method", lambda one: one.method),
    ("teachers", lambda one: f"{one.certificate['released'].get('n_teachers') or '-'}"),
    ("answers", lambda one: f"{one.certificate['released'].get('answered') or '-'}"),
    ("student", _size_text),
)
_METRICS: tuple[tuple[str, Callable[["EvaluatedRelease"], str]], ...] = (
    ("accuracy", _of_metrics("accuracy")),
    ("  Wilson, 95 %", _interval_text),
    ("majority", _of_metrics("majority_accuracy")),
    ("balanced", _of_metrics("balanced_accuracy")),
    ("ROC area", _of_metrics("auc")),
    ("recall", _recall_text),
)
