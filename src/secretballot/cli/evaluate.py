"""`secretballot evaluate`: models on a public labelled table, and releases side by side."""

from pathlib import Path
from typing import Annotated

from secretballot._places import place_of
from secretballot.cli.outcome import Answer, say
from secretballot.cli.screens import argument, option
from secretballot.cli.texts import show
from secretballot.exceptions import ParameterError
from secretballot.runs.spec import words_of


def evaluate(
    paths: Annotated[
        list[str],
        argument(
            "RELEASE... TABLE",
            "Release folders, or folders of runs; last a public labelled table.",
        ),
    ],
    target: Annotated[
        str | None,
        option("COL[,COL...]", "Column of TABLE to compare with; by default the release's."),
    ] = None,
) -> Answer:
    """Measure models on a public labelled table.

    Every release is verified first. Several students are compared with the first one row by row,
    which distinguishes them better than their separate intervals do.

    TABLE must be public, since the figures are exact. Where the private file of a run is still in
    its place, TABLE is refused if it holds more rows of it than chance explains; a few are not
    noticed.

    Example: secretballot evaluate first second test.csv
    """
    from secretballot.cli.console import watching
    from secretballot.runs.evaluate import evaluate as evaluate_releases

    *releases, table = paths
    if not releases:
        raise ParameterError("Name a release, or several, and last a public labelled table.")
    with watching() as watch:
        watch.step("Evaluating")
        found, cautions = evaluate_releases(
            list(map(Path, releases)), place_of(table), words_of(target) if target else ()
        )

    def show_it() -> None:
        if len(found) == 1:
            show("metrics", found[0].metrics)
        else:
            letters = [chr(ord("A") + i % 26) * (1 + i // 26) for i in range(len(found))]
            show("comparison", found, letters)
        for caution in cautions:
            say(f"caution: {caution}")

    document = {"releases": [one.to_json() for one in found], "cautions": cautions}
    return Answer(document, show_it)
