"""`secretballot diagnose`: a curator looks into his own vault; nothing of it may be published."""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secretballot._validation import Resampling, shown
from secretballot.cli.options import (
    DATA,
    OUTPUT,
    PRIVACY,
    QUERIES,
    TEACHERS,
    AsJson,
    Engine,
    Jobs,
    Seed,
    words_of,
)
from secretballot.cli.outcome import print_json, say
from secretballot.exceptions import Parameter, ParameterError

if TYPE_CHECKING:
    from secretballot.ensemble.diagnostics.sealed_result import Diagnosis
    from secretballot.runs.diagnosis.run import DiagnoseOutcome

__all__ = ["diagnose"]

_SHOWN_LEVELS = (0.05, 0.1, 0.25)
_LONGEST_NUMBER = 18  # digits; Python refuses to read a number of thousands


def diagnose(
    vault: Annotated[
        Path, typer.Argument(metavar="VAULT", help="Vault of a finished `learn`, or its folder.")
    ],
    public: Annotated[
        Path,
        typer.Option(
            "--public",
            metavar="FILE",
            help="Points to vote on, with the columns of the run.",
            rich_help_panel=DATA,
        ),
    ],
    private: Annotated[
        Path | None,
        typer.Option(
            "--private",
            metavar="FILE",
            help="The run's private file: trains teachers again on resamples.",
            rich_help_panel=DATA,
        ),
    ] = None,
    labelled: Annotated[
        Path | None,
        typer.Option(
            "--labelled",
            metavar="FILE",
            help="Labelled points: is the vote right, how noisy are labels?",
            rich_help_panel=DATA,
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            help="Of a sparse vector to consider; by default the run's.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    delta: Annotated[
        float | None, typer.Option("--delta", help="Likewise.", rich_help_panel=PRIVACY)
    ] = None,
    max_unstable: Annotated[
        str,
        typer.Option(
            "--max-unstable",
            metavar="T,T",
            help="Numbers of its abstentions to consider.",
            rich_help_panel=QUERIES,
        ),
    ] = "1,3,10,30,100",
    ensembles: Annotated[
        int,
        typer.Option(
            "--ensembles",
            metavar="R",
            help="How many times all teachers are trained again.",
            rich_help_panel=TEACHERS,
        ),
    ] = 5,
    resampling: Annotated[
        Resampling,
        typer.Option(
            help="How records are resampled: new splits, or drawn with replacement.",
            rich_help_panel=TEACHERS,
        ),
    ] = "splits",
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            metavar="FILE",
            help="The release's schema.json, where it was moved from the vault.",
            rich_help_panel=DATA,
        ),
    ] = None,
    jobs: Jobs = 1,
    engine: Engine = "local",
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Private folder for the results; by default in the vault.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look into the vault of a finished run: margins, stability, agreement, noise. NOT RELEASABLE.

    For the curator's eyes: every number is computed from private votes without noise. The results
    go to VAULT/diagnostics, never into a release. Settings of a later run that are chosen by them
    are chosen by private data.

    \b
    Example: secretballot diagnose study/vault --public public.csv
             --private patients.csv
    """
    # Imported here, so that help and usage errors of all verbs come at once.
    from secretballot.cli.console import watching
    from secretballot.runs.diagnosis.run import DiagnoseRun, run_diagnose

    run = DiagnoseRun(
        vault,
        public,
        private=private,
        labelled=labelled,
        schema=schema,
        epsilon=epsilon,
        delta=delta,
        max_unstable=_integers_of(max_unstable),
        ensembles=ensembles,
        resampling=resampling,
        out=out,
        seed=seed,
        jobs=jobs,
        engine=engine,
    )
    with watching() as watch:
        outcome = run_diagnose(run, watch)
    if as_json:
        print_json(outcome.to_private_json() | {"files": [str(path) for path in outcome.files]})
    else:
        _print_lines(outcome)


def _integers_of(text: str) -> tuple[int, ...]:
    """Return integers listed by commas."""
    words = words_of(text)
    if not words or not all(word.isdecimal() and len(word) <= _LONGEST_NUMBER for word in words):
        raise ParameterError(
            Parameter("max_unstable"),
            f" is {shown(text)}; give integers by commas, such as 1,10,100.",
        )
    return tuple(int(word) for word in words)


def _print_lines(outcome: "DiagnoseOutcome") -> None:
    """Print the outcome for the curator, under a warning."""
    # The warning comes first: whoever copies the beginning of the output copies it too.
    from secretballot.ensemble.diagnostics.sealed_result import NOT_RELEASABLE

    found = outcome.diagnoses
    sizes = found["margins"].sizes
    print(
        f"{NOT_RELEASABLE}: computed from private data without noise, for the curator's eyes alone."
    )
    say(
        f"votes        of {sizes['teachers']:,} teachers {outcome.teachers}, on"
        f" {sizes['queries']:,} public points"
    )
    _print_margins(found["margins"], found["expected"])
    for name, words in (("reference", "one model of all records"), ("labels", "the labelled file")):
        if name in found:
            values = found[name].values()
            vote, ties, teacher = (100 * values[part] for part in ("vote", "ties", "teacher"))
            print(
                f"agreement    with {words}: the vote {vote:.1f} % (ties {ties:.1f} %), a teacher"
                f" {teacher:.1f} %"
            )
    _print_stability(outcome)
    if "noise" in found:
        tau, low, high, eta, least = (
            found["noise"].values()[k] for k in ("tau", "low", "high", "eta", "massart")
        )
        interval = f"tau {tau:.2f} ({low:.2f} to {high:.2f})"
        print(f"noise        {interval}, eta {eta:.3g}; least |r - 1/2| {least:.2g} (estimated)")
    for path in outcome.files[:1]:
        say(f"keep secret  {path.parent}{os.sep}")


def _print_margins(realised: "Diagnosis", expected: "Diagnosis") -> None:
    """Print the margins of the votes, and how they would be on average over teachers."""
    import numpy as np

    margins, k = realised.values()["margins"], realised.sizes["teachers"]
    low, middle, high = np.quantile(margins, [0.1, 0.5, 0.9])
    print(
        f"margins      median {middle:.0f} of {k:,} votes; a tenth at most {low:.0f}, a tenth at"
        f" least {high:.0f}"
    )
    values, r = expected.values(), expected.sizes["ensembles"]
    from_ = f"{r} ensembles" if r > 1 else "one ensemble"
    print(
        f"expected     margin: median {np.median(values['margins']):.3f} of 1/2, standard error "
        f"{np.median(values['standard_errors']):.3f}, from {from_}"
    )
    for level in _SHOWN_LEVELS:
        # levels are floats, and 0.1 may stand a rounding below itself
        at = int(np.searchsorted(values["levels"], level - 1e-9))
        share, low, high = (values[name][at] for name in ("shares", "low", "high"))
        print(
            f"  at most {level:<4g} at {100 * share:5.1f} % of the points ({100 * low:.1f} to"
            f" {100 * high:.1f} %)"
        )


def _print_stability(outcome: "DiagnoseOutcome") -> None:
    """Print how many queries are unstable, and what a sparse vector would answer."""
    values, budget = outcome.diagnoses["stability"].values(), outcome.budget
    print(
        f"stability    for a sparse vector of epsilon {budget.epsilon:g}, delta {budget.delta:g}:"
    )
    columns = (values[name] for name in ("max_unstable", "needed", "unstable", "answered", "asked"))
    for t, needed, unstable, answered, asked in zip(*columns, strict=True):
        print(
            f"  T {t:>5,}: needs a margin of {2 * math.ceil(needed) + 1:,}, {100 * unstable:5.1f} %"
            f" unstable, answers {answered:,.1f} of {asked:,.1f} asked"
        )
