"""`secretballot evaluate`: models on a public labelled table, and releases side by side."""

from pathlib import Path
from typing import Annotated

from secretballot._places import place_of
from secretballot.cli.outcome import Answer, say
from secretballot.cli.screens import argument, option
from secretballot.cli.texts import show
from secretballot.runs.spec import words_of


def evaluate(
    paths: Annotated[
        list[str],
        argument(
            "RELEASE... [TABLE]",
            "Release folders, or folders of runs; last a public labelled table.",
        ),
    ],
    target: Annotated[
        str | None,
        option("COL[,COL...]", "Column of TABLE to compare with; by default the release's."),
    ] = None,
) -> Answer:
    """Measure models on a public labelled table, or compare releases.

    Every release is verified first. Several students are compared with the first one row by row,
    which distinguishes them better than their separate intervals do. Without TABLE only prices and
    guarantees are compared.

    TABLE must be public, since the figures are exact. Where the private file of a run is still in
    its place, TABLE is refused if it holds more rows of it than chance explains; a few are not
    noticed.

    Example: secretballot evaluate first second test.csv
    """
    from secretballot.cli.console import watching
    from secretballot.report.certificate.plan_checks import total_price
    from secretballot.runs.evaluate import evaluate as evaluate_releases
    from secretballot.runs.evaluate import is_table

    has_table = target is not None or is_table(paths[-1])
    table = place_of(paths[-1]) if has_table else None
    releases = [Path(path) for path in (paths[:-1] if has_table else paths)]
    with watching() as watch:
        watch.step("Evaluating")
        found = evaluate_releases(releases, table, words_of(target) if target else ())

    def show_it() -> None:
        if len(found.releases) == 1 and found.releases[0].metrics is not None:
            show("metrics", found.releases[0].metrics)
        else:
            letters = [chr(ord("A") + i % 26) * (1 + i // 26) for i in range(len(found.releases))]
            prices = ["{:g}, {:g}".format(*total_price(one.certificate)) for one in found.releases]
            show("comparison", found, letters, prices)
        if found.caution is not None:
            say(f"caution: {found.caution}")

    return Answer(found.to_json(), show_it)
