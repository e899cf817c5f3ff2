"""`secretballot plan`: what a budget will buy, before any private file is touched."""

from pathlib import Path
from typing import Annotated, Any

import typer

from secretballot._places import place_of
from secretballot._validation import MechanismName
from secretballot.cli.learn import LEARNER_NAMES
from secretballot.cli.options import (
    DATA,
    OUTPUT,
    TEACHERS,
    ClassWeight,
    Delta,
    Epsilon,
    PositiveRate,
    class_weight_of,
    classes_of,
    words_of,
)
from secretballot.cli.outcome import print_json, say
from secretballot.exceptions import Parameter, ParameterError


def plan(
    records: Annotated[
        int,
        typer.Option(
            "--records",
            metavar="N",
            help="Public statement of how many private records there are.",
            rich_help_panel=DATA,
        ),
    ],
    public: Annotated[
        int,
        typer.Option(
            "--public", metavar="M", help="How many public points there are.", rich_help_panel=DATA
        ),
    ],
    epsilon: Epsilon,
    delta: Delta,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            metavar="C",
            help="Number of classes, or their names by commas; by default --like's.",
            rich_help_panel=DATA,
        ),
    ] = None,
    learner: Annotated[
        str,
        typer.Option(
            "--learner",
            "--teacher",
            metavar="NAME",
            help=f"Teacher: {LEARNER_NAMES}.",
            rich_help_panel=TEACHERS,
        ),
    ] = "logistic",
    student: Annotated[
        str,
        typer.Option(
            "--student",
            metavar="NAME",
            help=f"Student: auto, boosted (stumps), {LEARNER_NAMES}.",
            rich_help_panel=TEACHERS,
        ),
    ] = "auto",
    like: Annotated[
        Path | None,
        typer.Option(
            "--like",
            metavar="FILE",
            parser=place_of,
            help="Labelled PUBLIC records that stand in for the private ones.",
            rich_help_panel=DATA,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", metavar="COL", help="Column of --like with the class.", rich_help_panel=DATA
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            metavar="FILE",
            help="JSON of column types, as for the run to come.",
            rich_help_panel=DATA,
        ),
    ] = None,
    drop: Annotated[
        str | None,
        typer.Option(
            "--drop", metavar="A,B", help="Columns of --like to leave out.", rich_help_panel=DATA
        ),
    ] = None,
    curve: Annotated[
        str | None,
        typer.Option(
            "--curve",
            metavar="N:A,N:A",
            help="In place of --like: accuracy A of one teacher that learnt from N records.",
            rich_help_panel=DATA,
        ),
    ] = None,
    teachers: Annotated[
        int | None,
        typer.Option(
            "--teachers",
            metavar="K",
            help="Number of teachers, where it is given; by default it is chosen.",
            rich_help_panel=TEACHERS,
        ),
    ] = None,
    mechanism: Annotated[
        MechanismName | None,
        typer.Option(
            "--mechanism",
            metavar="NAME",
            help="Plan for votes by this mechanism alone (gaussian, vote-table, sparse-vector,"
            " abstention-table, laplace, confident or interactive); by default all are weighed.",
            rich_help_panel=TEACHERS,
        ),
    ] = None,
    positive_rate: PositiveRate = None,
    class_weight: ClassWeight = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Of the simulation.", rich_help_panel=OUTPUT)
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder for the plan, in words and pictures.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print the plan as JSON, for `learn --plan`, and nothing else.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
) -> None:
    """Plan a release: teachers, queries, recipe, what to expect of them, and why.

    No private data are read. Without --like or --curve the forecast rests on a guess.

    \b
    Example: secretballot plan --records 20000 --public 2000 --classes 2
             --epsilon 1 --delta 1e-6 --json > plan.json
    """
    # Imported here, so that help and usage errors of all verbs come at once.
    from secretballot.cli.console import watching
    from secretballot.cli.local_modules import find_in_this_folder
    from secretballot.planning.plan.text import plan_text
    from secretballot.runs.plan import PlanRun, run_plan

    find_in_this_folder(learner, student)
    run = PlanRun(
        records,
        public,
        epsilon,
        delta,
        classes=number_or_names(classes),
        teacher=learner,
        student=student,
        like=_stand_in(like, target, schema, drop),
        curve=curve_of(curve),
        teachers=teachers,
        seed=seed,
        out=out,
        positive_rate=positive_rate,
        class_weight=class_weight_of(class_weight, positive_rate),
        mechanism=mechanism,
    )
    with watching() as watch:
        made = run_plan(run, watch)
    if as_json:
        print_json(made.to_json())
        return
    say(plan_text(made).rstrip("\n"), keep="\n")
    if out is not None:
        say("")
        say(
            f"written to {out}; for use: secretballot learn PRIVATE PUBLIC --target COL --plan"
            f" {out / 'plan.json'}"
        )


def _stand_in(
    like: Path | str | None, target: str | None, schema: Path | None, drop: str | None
) -> Any:
    """Return the stand-in table, None where none is named; its options make no sense without it."""
    from secretballot.runs.stand_in_table import StandInTable

    if like is not None:
        if target is None:
            raise ParameterError(
                Parameter("target"), " is missing; name the column of --like that holds the class."
            )
        return StandInTable(like, target, schema, words_of(drop))
    for name, given in (("target", target), ("schema", schema), ("drop", drop)):
        if given is not None:
            raise ParameterError(
                Parameter(name),
                " is about the table of ",
                Parameter("like"),
                ", and none is given; name one, or leave it out.",
            )
    return None


def number_or_names(text: str | None) -> tuple[str | int, ...] | int | None:
    """Return how many classes there are if one integer is given, else the classes listed."""
    names = classes_of(text)
    if names is not None and len(names) == 1 and isinstance(names[0], int):
        return names[0]
    return names


def curve_of(text: str | None) -> dict[int, float] | None:
    """Return a learning curve that was given as sizes and accuracies: ``50:0.72,200:0.8``.

    Raises
    ------
    ParameterError
        If it is not written so, sizes do not rise, or an accuracy lies outside (0, 1).
    """
    if text is None:
        return None
    # Comparisons are written so that nan fails them.
    curve: dict[int, float] = {}
    for word in text.split(","):
        size, _, accuracy = word.partition(":")
        try:
            number, share = int(size), float(accuracy)
        except ValueError:
            raise ParameterError(
                Parameter("curve"),
                f" has {word.strip()!r}; write size:accuracy pairs, as in 50:0.72,200:0.8.",
            ) from None
        if not (number >= 1 and number > max(curve, default=0)):
            raise ParameterError(
                Parameter("curve"),
                f" has the size {number} in the wrong place; sizes are at least 1 and rise.",
            )
        if not 0 < share < 1:
            raise ParameterError(
                Parameter("curve"),
                f" has the accuracy {accuracy.strip()}; each lies strictly between 0 and 1.",
            )
        curve[number] = share
    return curve
