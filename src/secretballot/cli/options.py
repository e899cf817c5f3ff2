"""The options that several verbs share, and the words that some of them take."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from secretballot._naming import integers_or_words
from secretballot._places import place_of
from secretballot._validation import (
    MECHANISMS,
    AnswerStatistic,
    LabelBallot,
    MechanismName,
    Neighbours,
    ReleaseKind,
    StrategyName,
    shown,
)
from secretballot.core.ledger.urls import DatabasePlace, file_or_database
from secretballot.exceptions import Parameter, ParameterError

if TYPE_CHECKING:
    pass


#: Panels of the help.
DATA, PRIVACY, TEACHERS = "Data", "Privacy", "Method, teachers and student"
QUERIES, OUTPUT = "Queries and answers", "Output"

OUT = Path("secretballot-out")


#: What is released of the votes, or what suits the student best.
AskedRelease = Literal["auto", ReleaseKind]


# A URL stays a text behind these: as a path it would lose a stroke.
PrivateFile = Annotated[
    Path,
    typer.Argument(
        metavar="PRIVATE",
        help="Labelled private records: CSV or Parquet, a folder of Parquet files, or a URL.",
        parser=place_of,
    ),
]
PublicFile = Annotated[
    Path,
    typer.Argument(
        metavar="PUBLIC",
        help="Public records without labels: a file, folder or URL.",
        parser=place_of,
    ),
]
Target = Annotated[
    str,
    typer.Option("--target", metavar="COL", help="Column with the class.", rich_help_panel=DATA),
]
Targets = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="COL",
        help="Column with the class, or with a number (--bounds); several labels that a record has"
        " or not, by commas.",
        rich_help_panel=DATA,
    ),
]
Bounds = Annotated[
    str | None,
    typer.Option(
        "--bounds",
        metavar="LOW,HIGH",
        help="The target is a number: its public bounds, never read off private data.",
        rich_help_panel=DATA,
    ),
]
Statistic = Annotated[
    AnswerStatistic | None,
    typer.Option(
        help="Of a number: the noisy mean of the votes (the default), or a drawn quantile.",
        rich_help_panel=QUERIES,
    ),
]
Rank = Annotated[
    int | None,
    typer.Option(
        "--rank",
        metavar="R",
        help="Of a quantile: which vote, from 1, the smallest; by default the median.",
        rich_help_panel=QUERIES,
    ),
]
Ballot = Annotated[
    LabelBallot | None,
    typer.Option(
        help="Of several labels: count them one by one (the default), or each set as a class.",
        rich_help_panel=QUERIES,
    ),
]
MostNamed = Annotated[
    int | None,
    typer.Option(
        "--most-named",
        metavar="T",
        help="Of several labels: public cap on those that one teacher names at a point.",
        rich_help_panel=QUERIES,
    ),
]
UnitColumn = Annotated[
    str | None,
    typer.Option(
        "--unit",
        metavar="COL",
        help="Column with the person's id: protect persons, not rows.",
        rich_help_panel=DATA,
    ),
]
Relation = Annotated[
    Neighbours,
    typer.Option(
        help="The change that is protected: a unit more or less, or a record replaced.",
        rich_help_panel=PRIVACY,
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="JSON of column types, categories and classes.",
        rich_help_panel=DATA,
    ),
]
Drop = Annotated[
    str | None,
    typer.Option(
        "--drop", metavar="A,B", help="Columns to leave out of every file.", rich_help_panel=DATA
    ),
]
AcceptUnseen = Annotated[
    str | None,
    typer.Option(
        "--accept-unseen",
        metavar="A,B",
        help="Columns to go on with though most of their cells do not fit the public ones.",
        rich_help_panel=DATA,
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Only read and compare the tables, and say what was found, for the curator's eyes:"
        " nothing is trained, written or spent.",
        rich_help_panel=DATA,
    ),
]
Jobs = Annotated[
    int,
    typer.Option("--jobs", metavar="N", help="Workers for the teachers.", rich_help_panel=TEACHERS),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="WHERE",
        help="Where teachers work: local, or a cluster that runs: dask://HOST:PORT, ray,"
        " ray://HOST:PORT.",
        rich_help_panel=TEACHERS,
    ),
]
SendShards = Annotated[
    bool,
    typer.Option(
        "--send-shards",
        help="Send shards that lie on disk to the workers of --engine, which read them from shared"
        " storage otherwise.",
        rich_help_panel=TEACHERS,
    ),
]
Epsilon = Annotated[
    float,
    typer.Option(
        "--epsilon",
        help="Privacy budget epsilon of this release, in nats.",
        rich_help_panel=PRIVACY,
    ),
]
Delta = Annotated[
    float,
    typer.Option(
        "--delta",
        help="Privacy budget delta; well below one over the records.",
        rich_help_panel=PRIVACY,
    ),
]
Queries = Annotated[
    int | None,
    typer.Option(
        "--queries",
        metavar="L",
        help="How many public points to have labelled.",
        rich_help_panel=QUERIES,
    ),
]
MaxAbstentions = Annotated[
    int | None,
    typer.Option(
        "--max-abstentions",
        metavar="T",
        help="Sparse vector and table only: stop at this many abstentions.",
        rich_help_panel=QUERIES,
    ),
]
Threshold = Annotated[
    int | None,
    typer.Option(
        "--threshold",
        metavar="VOTES",
        help="Confident and interactive mechanism only: votes that a query needs.",
        rich_help_panel=QUERIES,
    ),
]
MaxAnswers = Annotated[
    int | None,
    typer.Option(
        "--max-answers",
        metavar="N",
        help="Confident and interactive mechanism only: stop at this many answers.",
        rich_help_panel=QUERIES,
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(
        "--classes",
        metavar="A,B",
        help="All classes of the target, by commas; never read off private data.",
        rich_help_panel=DATA,
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Folder for vault and release; must be new.",
        rich_help_panel=OUTPUT,
    ),
]


def ledger_place(text: str) -> Path | DatabasePlace:
    """Return the file or the database that somebody names.

    Raises
    ------
    typer.BadParameter
        If it is no place for a ledger; quotes nothing of a URL, which may have a password in it.
    """
    try:
        return file_or_database(text)
    except ParameterError as error:
        problem = str(error)
    raise typer.BadParameter(problem)


LedgerFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        metavar="FILE",
        parser=ledger_place,
        help="Account of the private dataset: a file, a folder of accounts, or the URL of a"
        " PostgreSQL database; by default $SECRETBALLOT_LEDGER, else PRIVATE.ledger beside the"
        " private file.",
        rich_help_panel=PRIVACY,
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        metavar="NAME",
        help="Public name of the private dataset; its file's name by default.",
        rich_help_panel=PRIVACY,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="N",
        help="Of fits and of the choice of public points; never of the noise.",
        rich_help_panel=OUTPUT,
    ),
]
Without = Annotated[
    str | None,
    typer.Option(
        "--without",
        metavar="PARTS",
        help="Parts of the release to leave out: report, student, or both.",
        rich_help_panel=OUTPUT,
    ),
]
Title = Annotated[
    str | None,
    typer.Option(
        "--title",
        metavar="TEXT",
        help="What people call the data, for the report; public, as the next three are.",
        rich_help_panel=OUTPUT,
    ),
]
Purpose = Annotated[
    str | None,
    typer.Option(
        "--purpose", metavar="TEXT", help="Why the release is made.", rich_help_panel=OUTPUT
    ),
]
Controller = Annotated[
    str | None,
    typer.Option(
        "--controller",
        metavar="TEXT",
        help="Person or body that answers for the data.",
        rich_help_panel=OUTPUT,
    ),
]
Contact = Annotated[
    str | None,
    typer.Option(
        "--contact", metavar="TEXT", help="How to reach somebody.", rich_help_panel=OUTPUT
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print one JSON object to standard output and nothing else.",
        rich_help_panel=OUTPUT,
    ),
]

OwnLedger = Annotated[
    bool,
    typer.Option(
        "--own-ledger",
        help="Open an account for this run alone, in its vault: it counts no other release.",
        rich_help_panel=PRIVACY,
    ),
]
Forced = Annotated[
    str | None,
    typer.Option(
        "--force",
        metavar="NAMES",
        help=(
            "Go on without being asked about epsilon, delta, records, teachers, noise, target or"
            " unit."
        ),
        rich_help_panel=PRIVACY,
    ),
]
Yes = Annotated[
    bool,
    typer.Option("--yes", help="Go on whatever would be asked.", rich_help_panel=PRIVACY),
]

StatedRecords = Annotated[
    int | None,
    typer.Option(
        "--records",
        metavar="N",
        help="Public statement of how many private records there are.",
        rich_help_panel=DATA,
    ),
]
HowAnswered = Annotated[
    MechanismName,
    typer.Option(
        # all names in one bracket would be wider than a terminal
        metavar="<NAME>",
        help=f"How votes become answers: {', '.join(MECHANISMS[:-1])} or {MECHANISMS[-1]}.",
        rich_help_panel=QUERIES,
    ),
]
HowAsked = Annotated[
    StrategyName,
    typer.Option(
        help="Which public points to ask: random ones at once, or chosen ones in rounds.",
        rich_help_panel=QUERIES,
    ),
]
VotesPerRecord = Annotated[
    int | None,
    typer.Option(
        "--votes-per-record",
        metavar="K",
        help="Public points that a record votes for, with --method record-votes; by default one"
        " in a hundred.",
        rich_help_panel=QUERIES,
    ),
]
WhatReleased = Annotated[
    AskedRelease,
    typer.Option(
        help="Labels alone, or noisy counts; auto suits the student.", rich_help_panel=QUERIES
    ),
]
Teachers = Annotated[
    int | None,
    typer.Option(
        "--teachers",
        metavar="K",
        help="Number of teachers; by default 250, or what suits the stated --records.",
        rich_help_panel=TEACHERS,
    ),
]
PositiveRate = Annotated[
    float | None,
    typer.Option(
        "--positive-rate",
        metavar="R",
        help="Public statement of how frequent the second of two classes is; a rare one is"
        " then looked for (moments only).",
        rich_help_panel=TEACHERS,
    ),
]
ClassWeight = Annotated[
    str | None,
    typer.Option(
        "--class-weight",
        metavar="HOW",
        help="balanced, none, or A:W,B:W: what decisions count each class for; balanced with"
        " --positive-rate, else none (moments only).",
        rich_help_panel=TEACHERS,
    ),
]


def answers_of(force: str | None, yes: bool) -> tuple[str, ...]:
    """Return the names of the questions that are answered beforehand."""
    return (*words_of(force), *(("all",) if yes else ()))


def words_of(text: str | None) -> tuple[str, ...]:
    """Return the words of a list by commas; a word with a comma in it is quoted as in CSV.

    Raises
    ------
    ParameterError
        If the text is no such list on one line, or is not UTF-8: the words go into files that are.
    """
    if text is None:
        return ()
    problem = ""
    try:
        text.encode()
        words = tuple(
            word.strip() for row in csv.reader([text], skipinitialspace=True) for word in row
        )
    except UnicodeEncodeError:
        problem = "it is not UTF-8"
    except csv.Error:
        problem = "it has a line break, or a quotation mark that is not closed"
    if problem:
        raise ParameterError(
            f"The list {shown(text)} cannot be read ({problem}); give words by commas, on one line."
        )
    return words


def bounds_of(text: str | None) -> tuple[float, float] | None:
    """Return two numbers by a comma.

    Raises
    ------
    ParameterError
        If they are none.
    """
    if text is None:
        return None
    words = words_of(text)
    try:
        low, high = map(float, words)
    except ValueError:
        raise ParameterError(
            Parameter("bounds"), f" is {shown(text)}; give two numbers, as in 0,40."
        ) from None
    return low, high


#: What may stand in the place of a price, in a message.


def need_price(
    epsilon: float | None, delta: float | None, instead: str = ""
) -> tuple[float, float]:
    """Return the price of a run; `instead` says what else may be given.

    Raises
    ------
    typer.BadParameter
        If nobody has put a price on it, in the words of a missing option.
    """
    missing = [
        name for name, value in (("--epsilon", epsilon), ("--delta", delta)) if value is None
    ]
    if missing or epsilon is None or delta is None:
        raise typer.BadParameter(
            f"give the price of the release{instead}.",
            param_hint=" and ".join(missing),
        )
    return epsilon, delta


def classes_of(text: str | None) -> tuple[str | int, ...] | None:
    """Return the classes that were listed, as integers where all of them are."""
    if text is None:
        return None
    return integers_or_words(words_of(text))


def class_weight_of(text: str | None, positive_rate: float | None) -> str | dict[str, float] | None:
    """Return what decisions count each class for: by the words given, or balanced where a class is
    said to be rare.

    Raises
    ------
    ParameterError
        If the words are no weights.
    """
    if text is None:
        return None if positive_rate is None else "balanced"
    if text in ("none", "balanced"):
        return None if text == "none" else text
    weights: dict[str, float] = {}
    for number, word in enumerate(words_of(text), start=1):
        name, _, weight = word.rpartition(":")
        try:
            weights[name] = float(weight)
        except ValueError:
            name = ""
        if not name or len(weights) < number:
            raise ParameterError(
                Parameter("class_weight"),
                f" has {shown(word)}; write balanced, none, or class:weight pairs, each class once,"
                " as in no:1,yes:20.",
            )
    return weights


def was_given(ctx: typer.Context, name: str) -> bool:
    """Return whether a parameter stands on the command line, rather than having its default."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
