"""`secretballot audit`: attack a command or a whole `learn`, and print what was found."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secretballot._validation import RecordChange, Relation, ReleaseKind
from secretballot.cli.outcome import EXIT_CODES, FOUND, print_json, say
from secretballot.cli.settings import AsJson

if TYPE_CHECKING:
    from secretballot.audit import CanaryAudit, ReleaseAudit


app = typer.Typer(
    help=("Attack releases: certified lower bounds on epsilon, beside what was promised."),
    epilog=EXIT_CODES,
    no_args_is_help=False,
)


Runs = Annotated[
    int, typer.Option("--runs", metavar="N", help="Runs in all, half of them on each side.")
]
Confidence = Annotated[
    float, typer.Option("--confidence", help="Chance that a bound is not above the truth.")
]
Jobs = Annotated[int, typer.Option("--n-jobs", metavar="N", help="Runs at the same time.")]
Work = Annotated[
    Path,
    typer.Option("--work", metavar="DIR", help="Private folder of the audit; deleted at the end."),
]
Keep = Annotated[bool, typer.Option("--keep", help="Leave the work folder in place.")]
Seed = Annotated[
    int | None,
    typer.Option(
        "--random-state",
        metavar="N",
        help="Random seed of which input each run gets; fresh by default.",
    ),
]
Program = Annotated[
    str | None,
    typer.Option("--program", metavar="WORDS", help="What to start in place of this program."),
]
Timeout = Annotated[float, typer.Option("--timeout", metavar="S", help="Seconds for one run.")]


@app.command(epilog=EXIT_CODES)
def release(
    command: Annotated[
        list[str],
        typer.Argument(metavar="-- COMMAND", help="The command to attack, without `secretballot`."),
    ],
    private: Annotated[
        Path,
        typer.Option("--private", metavar="FILE", help="The private file, as COMMAND names it."),
    ],
    neighbour: Annotated[
        Path | None,
        typer.Option(
            "--neighbour", metavar="FILE", help="The neighbouring file, for the second world."
        ),
    ] = None,
    change: Annotated[
        RecordChange | None,
        typer.Option("--change", help="In place of a neighbour: what to do to one record."),
    ] = None,
    row: Annotated[int, typer.Option("--row", metavar="N", help="Which record, from 0.")] = 0,
    runs: Runs = 60,
    confidence: Confidence = 0.99,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps",
            metavar="K",
            help="Steps of the certificate's relation between the two inputs.",
        ),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="The promise, in place of the certificate's.")
    ] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="Likewise.")] = None,
    released: Annotated[
        str | None,
        typer.Option(
            "--released",
            metavar="DIR",
            help="Folder to observe; the release of COMMAND by default.",
        ),
    ] = None,
    program: Program = None,
    work: Work = Path("secretballot-audit"),
    keep: Keep = False,
    jobs: Jobs = 1,
    timeout: Timeout = 600.0,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Run a command on two neighbouring inputs, many times, and attack all that it releases.

    Every run has a fresh process and folder. A third of the runs choose the field that tells the
    inputs apart; the others certify a lower bound on epsilon, which must not exceed the
    certificate's. An interrupted audit goes on when the same command is repeated.

    \b
    Example: secretballot audit release --private patients.csv --change drop --
             learn patients.csv public.csv --target ill --classes no,yes
             --epsilon 1 --delta 1e-6 --ledger own
    """
    # Imported here, so that help and usage errors of all verbs come at once.
    from secretballot.audit.release_audit import audit_release
    from secretballot.cli.console import watching

    with watching() as watch:
        watch.step("Running the command")
        found = audit_release(
            command,
            private,
            neighbour=neighbour,
            change=change,
            row=row,
            runs=runs,
            confidence=confidence,
            steps=steps,
            epsilon=epsilon,
            delta=delta,
            released=released,
            program=None if program is None else shlex.split(program),
            work=work,
            keep=keep,
            jobs=jobs,
            timeout=timeout,
            seed=seed,
            progress=watch.progress,
        )
    _print_finding(found, as_json=as_json)


@app.command(epilog=EXIT_CODES)
def canaries(
    epsilon: Annotated[float, typer.Option("--epsilon", help="Price at which `learn` runs.")] = 4.0,
    delta: Annotated[float, typer.Option("--delta", help="Likewise.")] = 1e-6,
    promise: Annotated[
        float | None,
        typer.Option(
            "--promise",
            metavar="E",
            help="Judge by this epsilon: would a smaller promise be refuted?",
        ),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", metavar="N", help="Runs of `learn`.")] = 100,
    per_run: Annotated[
        int, typer.Option("--canaries", metavar="M", help="Canaries in each run.")
    ] = 1,
    teachers: Annotated[
        int, typer.Option("--teachers", metavar="K", help="Teachers of each run.")
    ] = 10,
    queries: Annotated[
        int, typer.Option("--queries", metavar="L", help="Queries of each run.")
    ] = 40,
    release: Annotated[ReleaseKind, typer.Option(help="What the runs release.")] = "counts",
    relation: Annotated[
        Relation, typer.Option(help="The change that is protected.")
    ] = "add-remove",
    share: Annotated[
        float,
        typer.Option("--share", help="Share of the canaries that are guessed, the surest first."),
    ] = 1.0,
    confidence: Confidence = 0.99,
    program: Program = None,
    work: Work = Path("secretballot-audit"),
    keep: Keep = False,
    jobs: Jobs = 1,
    timeout: Timeout = 600.0,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Attack a whole `learn` with canaries, poisoned teachers and queries of the attacker's choice.

    All data are made here. A canary is a record that is there with probability one half; its
    teacher's vote shows in the answers. One canary a run reaches the whole price; many share it, so
    that few runs can tell something.

    \b
    Example: secretballot audit canaries --epsilon 8 --promise 0.8 --runs 200
             --jobs 2
    """
    # Imported here, so that help and usage errors of all verbs come at once.
    from secretballot.audit.canaries import audit_canaries
    from secretballot.cli.console import watching

    with watching() as watch:
        watch.step("Running learn")
        found = audit_canaries(
            epsilon=epsilon,
            delta=delta,
            promise=promise,
            runs=runs,
            canaries=per_run,
            teachers=teachers,
            queries=queries,
            release=release,
            relation=relation,
            share=share,
            confidence=confidence,
            program=None if program is None else shlex.split(program),
            work=work,
            keep=keep,
            jobs=jobs,
            timeout=timeout,
            seed=seed,
            progress=watch.progress,
        )
    _print_finding(found, as_json=as_json)


def _print_finding(found: "CanaryAudit | ReleaseAudit", *, as_json: bool) -> None:
    """Print what an audit found, and end with the code of a finding if there is one."""
    if as_json:
        print_json(found.to_json())
    else:
        say(found.text(), keep="\n")
    if not found.passed:
        raise typer.Exit(FOUND)
