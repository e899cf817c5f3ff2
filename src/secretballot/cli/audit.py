"""`secretballot audit`: attack a command or a whole `learn`, and print what was found."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from secretballot._validation import RecordChange, Relation, ReleaseKind
from secretballot.cli.outcome import DONE, FOUND, Answer, say
from secretballot.cli.screens import group, option, verb, words

if TYPE_CHECKING:
    from secretballot.audit import CanaryAudit, ReleaseAudit

app = group("audit", "Attack releases, to find more leakage than certified.")

Runs = Annotated[int, option("N", "Runs in all, half of them on each side.")]
Confidence = Annotated[float, option("C", "Probability that a bound is not above the truth.")]
Jobs = Annotated[int, option("N", "Runs at the same time.")]
Seed = Annotated[int | None, option("N", "Seed of which input each run gets; fresh by default.")]
Program = Annotated[str | None, option("COMMAND", "What to start in place of this program.")]


@verb(app)
def release(
    context: typer.Context,
    command: Annotated[
        list[str],
        typer.Argument(metavar="-- COMMAND", help="The command to attack, without `secretballot`."),
    ],
    private: Annotated[Path, option("FILE", "The private file, as COMMAND names it.")],
    neighbour: Annotated[Path | None, option("FILE", "The neighbouring private file.")] = None,
    change: Annotated[
        RecordChange | None,
        option("HOW", f"Instead of --neighbour, what to do to one record: {words(RecordChange)}."),
    ] = None,
    row: Annotated[int, option("N", "Which record, from 0.")] = 0,
    runs: Runs = 60,
    confidence: Confidence = 0.99,
    steps: Annotated[
        int | None, option("K", "Records by which the two inputs differ, if not one.")
    ] = None,
    epsilon: Annotated[float | None, option("E", "Guarantee instead of the certificate's.")] = None,
    delta: Annotated[float | None, option("D", "Likewise.")] = None,
    released: Annotated[
        str | None, option("DIR", "Folder to observe; by default COMMAND's release.")
    ] = None,
    program: Program = None,
    n_jobs: Jobs = 1,
    random_state: Seed = None,
) -> Answer:
    """Run a command on two neighbouring inputs, many times, and attack all that it releases.

    Every run has a fresh process and folder. A third of the runs choose the field that
    distinguishes the inputs best; the others certify a lower bound on epsilon, which must not
    exceed the certificate's.

    Example: secretballot audit release --private patients.csv --change drop -- learn patients.csv
    public.csv --target ill --classes no,yes --epsilon 1 --delta 1e-6 --ledger own
    """
    # Imported here, so that help and usage errors of all verbs come at once.
    from secretballot.audit.release_audit import audit_release

    return _audit(context, audit_release, "Running the command")


@verb(app)
def canaries(
    context: typer.Context,
    epsilon: Annotated[float, option("E", "Price at which `learn` runs.")] = 4.0,
    delta: Annotated[float, option("D", "Likewise.")] = 1e-6,
    promise: Annotated[
        float | None, option("E", "Judge by this epsilon: would a smaller one be refuted?")
    ] = None,
    runs: Annotated[int, option("N", "Runs of `learn`.")] = 100,
    canaries: Annotated[int, option("M", "Canaries in each run.")] = 1,
    n_teachers: Annotated[int, option("K", "Teachers of each run.")] = 10,
    n_queries: Annotated[int, option("L", "Queries of each run.")] = 40,
    release: Annotated[
        ReleaseKind, option("WHAT", f"What the runs release: {words(ReleaseKind)}.")
    ] = "counts",
    relation: Annotated[
        Relation, option("NAME", f"The change that is protected: {words(Relation)}.")
    ] = "add-remove",
    share: Annotated[float, option("P", "Share of canaries to guess, the surest first.")] = 1.0,
    confidence: Confidence = 0.99,
    program: Program = None,
    n_jobs: Jobs = 1,
    random_state: Seed = None,
) -> Answer:
    """Attack a whole `learn` with canaries, poisoned teachers and queries of the attacker's choice.

    All data are made here. A canary is a record that is present with probability one half; its
    teacher's vote shows in the answers. One canary a run reaches the whole price; with several in
    a run, few runs suffice.

    Example: secretballot audit canaries --epsilon 8 --promise 0.8 --runs 200 --n-jobs 2
    """
    from secretballot.audit.canaries import audit_canaries

    return _audit(context, audit_canaries, "Running learn")


def _audit(context: typer.Context, attack: Any, step: str) -> Answer:
    """Attack with the options that were given, and return what was found."""
    from secretballot.cli.console import watching

    given = {name: one for name, one in context.params.items() if name != "as_json"}
    program = given.pop("program")
    with watching() as watch:
        watch.step(step)
        found: CanaryAudit | ReleaseAudit = attack(
            **given,
            program=None if program is None else shlex.split(program),
            progress=watch.progress,
        )
    code = DONE if found.passed else FOUND
    return Answer(found.to_json(), lambda: say(found.text(), keep="\n"), code)
