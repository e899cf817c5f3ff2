"""`secretballot audit`: attack a command or a whole `learn`, and print what was found."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from secretballot._validation import RecordChange, Relation, ReleaseKind
from secretballot.cli.outcome import DONE, FOUND, Answer
from secretballot.cli.screens import group, verb

if TYPE_CHECKING:
    from secretballot.audit import CanaryAudit, ReleaseAudit

app = group("audit", "Attack releases, to find more leakage than certified.")


@verb(app)
def release(
    context: typer.Context,
    command: list[str],
    *,
    watch: Any,
    private: Path,
    neighbour: Path | None = None,
    change: RecordChange | None = None,
    row: int = 0,
    runs: int = 60,
    confidence: float = 0.99,
    steps: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    released: str | None = None,
    program: str | None = None,
    n_jobs: int = 1,
    random_state: int | None = None,
) -> Answer:
    """Run a command on two neighbouring inputs, many times, and attack all that it releases.

    Every run has a fresh process and folder. A third of the runs choose the field that
    distinguishes the inputs best; the others certify a lower bound on epsilon, which must not
    exceed the certificate's.

    Example: secretballot audit release --private patients.csv --change drop -- learn patients.csv
    public.csv --target ill --classes no,yes --epsilon 1 --delta 1e-6 --ledger own

    Parameters
    ----------
    command : -- COMMAND
        The command to attack, without `secretballot`.
    private : FILE
        The private file, as COMMAND names it.
    neighbour : FILE
        The neighbouring private file.
    change : HOW
        Instead of --neighbour, what to do to one record.
    row : N
        Which record, from 0.
    runs : N
        Runs in all, half of them on each side.
    steps : K
        Records by which the two inputs differ, if not one.
    epsilon : E
        Guarantee instead of the certificate's.
    delta : D
        Likewise.
    released : DIR
        Folder to observe; by default COMMAND's release.
    confidence : C
        Probability that a bound is not above the truth.
    program : COMMAND
        What to start in place of this program.
    n_jobs : N
        Runs at the same time.
    random_state : N
        Seed of which input each run gets; fresh by default.
    """
    # Imported here, so that help and usage errors of all verbs come at once.
    from secretballot.audit.release_audit import audit_release

    return _audit(context, watch, audit_release, "Running the command")


@verb(app)
def canaries(
    context: typer.Context,
    *,
    watch: Any,
    epsilon: float = 4.0,
    delta: float = 1e-6,
    promise: float | None = None,
    runs: int = 100,
    canaries: int = 1,
    n_teachers: int = 10,
    n_queries: int = 40,
    release: ReleaseKind = "counts",
    relation: Relation = "add-remove",
    share: float = 1.0,
    confidence: float = 0.99,
    program: str | None = None,
    n_jobs: int = 1,
    random_state: int | None = None,
) -> Answer:
    """Attack a whole `learn` with canaries, poisoned teachers and queries of the attacker's choice.

    All data are made here. A canary is a record that is present with probability one half; its
    teacher's vote shows in the answers. One canary a run reaches the whole price; with several in
    a run, few runs suffice.

    Example: secretballot audit canaries --epsilon 8 --promise 0.8 --runs 200 --n-jobs 2

    Parameters
    ----------
    epsilon : E
        Price at which `learn` runs.
    delta : D
        Likewise.
    promise : E
        Judge by this epsilon: would a smaller one be refuted?
    runs : N
        Runs of `learn`.
    canaries : M
        Canaries in each run.
    n_teachers : K
        Teachers of each run.
    n_queries : L
        Queries of each run.
    release : WHAT
        What the runs release.
    relation : NAME
        The change that is protected.
    share : P
        Share of canaries to guess, the surest first.
    confidence : C
        Probability that a bound is not above the truth.
    program : COMMAND
        What to start in place of this program.
    n_jobs : N
        Runs at the same time.
    random_state : N
        Seed of which input each run gets; fresh by default.
    """
    from secretballot.audit.canaries import audit_canaries

    return _audit(context, watch, audit_canaries, "Running learn")


def _audit(context: typer.Context, watch: Any, attack: Any, step: str) -> Answer:
    """Attack with the options that were given, and return what was found."""
    given = {name: one for name, one in context.params.items() if name != "as_json"}
    program = given.pop("program")
    watch.step(step)
    found: CanaryAudit | ReleaseAudit = attack(
        **given, program=None if program is None else shlex.split(program), progress=watch.progress
    )
    return Answer(found.to_json(), "audit", (found.text(),), DONE if found.passed else FOUND)
