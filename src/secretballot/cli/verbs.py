"""Verbs: from public words and private records, or votes on public points, to a release; what is
done with one; and all of it on a simulated clinic."""

import io
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import typer

from secretballot._files import place_of, shown_place
from secretballot._validation import Json, refusal
from secretballot.cli.outcome import BAD_INPUT, DONE, NOT_VERIFIED, Answer, say, show
from secretballot.cli.screens import settings_of
from secretballot.exceptions import DataError, ParameterError
from secretballot.runs.spec import DEFAULT_OUT, VOTES, RunSpec, Sources, words_of
from secretballot_verify import CONFIRMED, WAIT, each_finding, exit_code

_LEARNING = ("data", "budget", "method", "output", "execution", "about")


@settings_of(
    *("data", "budget.epsilon", "budget.delta", "budget.relation", "method"),
    without="private",
    required=("epsilon", "delta"),
    more=("n_records",),
    public="Public table, or how many points there are.",
)
def plan(
    sources: Sources, *, watch: Any, like: str | None = None, out: Path | None = None
) -> Answer:
    """Recommend settings and forecast accuracy; reads public data only.

    Without --n-records and --like only columns, price and noise are printed.

    Example: secretballot plan public.csv --n-records 20000 --like cohort.csv --target ill
    --epsilon 1 --delta 1e-6 --out plan

    Parameters
    ----------
    like : FILE
        Public labelled table that resembles the private one.
    out : DIR
        Folder for the plan: settings, columns and pictures.
    """
    # Imported here, so that help and usage errors of all verbs come at once.
    from secretballot.planning.plan_model import plan_text
    from secretballot.runs.plan import run_plan

    stand_in = None if like is None else place_of(like)
    found = run_plan(sources, like=stand_in, out=out, reporter=watch)
    columns: Json = {} if found.schema is None else found.schema.to_edit()
    made = {} if found.plan is None else found.plan.to_json()
    quoted = {} if found.quote is None else found.quote.to_json()

    text = "" if found.plan is None else plan_text(found.plan).rstrip("\n")
    public = "PUBLIC" if found.schema is None else shown_place(sources.given["public"])
    places = [shlex.quote(one) for one in (public, str(out or "DIR"))]
    facts = found, columns.get("columns", {}), text, *places
    return Answer({**made, **quoted, **({"schema": columns} if columns else {})}, "plan", facts)


@settings_of("data", "output.evaluate", required=("target",))
def check(sources: Sources, *, watch: Any) -> Answer:
    """Compare a private with a public table, for the curator's eyes.

    Nothing is trained, written or spent.

    Example: secretballot check patients.csv public.csv --target ill --classes no,yes
    """
    from secretballot.runs.tables import check_tables, percent

    # what a run needs, and is not looked at
    sources.given |= {"epsilon": 1, "delta": 0, "total": None}
    found = check_tables(RunSpec.of_tree(sources.tree()), watch)
    # all of it is for the curator alone, and so are all notes
    document = {"notes": [note.text for note in watch.notes], **found}
    code = BAD_INPUT if found["stopping"] else DONE
    return Answer(document, "check", (found, percent), code)


@settings_of(*_LEARNING, required=("target", "epsilon", "delta"))
def learn(sources: Sources, *, watch: Any, dry_run: bool = False) -> Answer:
    """Learn a publishable model from a private labelled table and a public unlabelled one.

    Tables: CSV, Parquet, a folder of Parquet files, or a URL. Writes OUT/release, to publish, and
    OUT/vault, to keep secret. Repeat the command to resume a run; it is charged once.

    Example: secretballot learn patients.csv public.csv --target ill --classes no,yes --epsilon 1
    --delta 1e-6 --total 4,1e-5

    Parameters
    ----------
    dry_run
        Check everything, print price and noise; spend nothing.
    """
    from secretballot.runs.folder import begun_description

    begun = begun_description(sources.given.get("out", DEFAULT_OUT)).get("method")
    return _performed(sources.tree(begun), watch, dry_run=dry_run)


@settings_of(
    *("data.private", "data.classes", "budget", VOTES, "output.out", "output.format"),
    *("execution.confirm", "about"),
    method=VOTES,
    required=("epsilon", "delta"),
    private="Votes or counts, one row for each query: .npy, .csv or .parquet.",
)
def label(sources: Sources, *, watch: Any, dry_run: bool = False) -> Answer:
    """Release labels from votes of teachers trained elsewhere.

    That each record reached one teacher only is your statement; the certificate says so.

    Example: secretballot label counts.npy --kind counts --classes no,yes --epsilon 1 --delta 1e-5
    --total 4,1e-5

    Parameters
    ----------
    dry_run
        Check everything, print price and noise; spend nothing.
    """
    return _performed(sources.tree(), watch, dry_run=dry_run)


def _performed(tree: Json, watch: Any, *, dry_run: bool) -> Answer:
    """Run, or say what a run would cost and ask, and return what came of it."""
    from secretballot.publishing.process import start_publishing

    spec = RunSpec.of_tree(tree)
    if not dry_run:
        start_publishing()  # before this program's own imports, which take as long
    from secretballot.runs.run import quote, run

    if dry_run:
        quoted = quote(spec, watch)
        said = quoted.to_json() | {"forecast": spec.forecast}
        return Answer(said, "quote", (quoted, spec.forecast))
    from secretballot.report.certificate_models import stated, total_price

    outcome = run(spec, watch)
    certificate, report = outcome.certificate, outcome.release / "report.html"
    # of all that was paid for: an estimate or a choice, too
    price = dict(zip(("epsilon", "delta"), total_price(certificate), strict=True))
    named = ("method", "queries", "answered", "accuracy", "chosen", "resumed")
    places = ("release", "vault", "account")
    document = {
        **price,
        **{name: getattr(outcome, name) for name in named},
        **{name: str(getattr(outcome, name)) for name in places},
        "metrics": None if outcome.metrics is None else outcome.metrics.to_json(),
        "plan": certificate.get("plan"),
        "candidates": certificate["public"].get("n_candidates"),
        "certificate": str(outcome.release / "certificate.json"),
        "report": str(report) if report.is_file() else None,
        "forecast": spec.forecast,
    }
    facts = outcome, {**stated(certificate), **price}, spec.forecast
    return Answer(document, "outcome", facts)


def predict(
    student: Path,
    table: Path,
    *,
    watch: Any,
    out: Path | None = None,
    overwrite: bool = False,
    encoding: str = "utf-8",
    as_json: bool = False,
) -> Answer:
    """Predict the rows of a table.

    The schema of the release encodes raw cells; the order of columns does not matter, and further
    columns are not read. Cells that count as missing or as "other" are counted on standard error.

    Example: secretballot predict secretballot-out new.csv --out predictions.csv

    Parameters
    ----------
    student : STUDENT
        A release folder, the folder of a run, or a student.onnx.
    table : TABLE
        Rows with the columns of the public file, CSV or Parquet.
    out : FILE
        Where to write them, as CSV; by default to standard output.
    overwrite
        Replace a file that exists.
    encoding : NAME
        Text encoding of a CSV file, such as cp1252.
    """
    from secretballot.runs.use import run_predict

    if as_json and out is None:
        raise refusal("out", " is missing: --json prints no predictions.")
    rows = run_predict(student, table, out, overwrite=overwrite, encoding=encoding, reporter=watch)
    if out is not None:
        watch.note(f"{rows:,} rows, written to {out}.", private=False)
    return Answer({"rows": rows, "out": str(out)})


def evaluate(
    paths: list[str], *, watch: Any, target: str | None = None, encoding: str = "utf-8"
) -> Answer:
    """Measure models on a public labelled table.

    Every release is verified first. Several students are compared with the first one row by row,
    which distinguishes them better than their separate intervals do.

    TABLE must be public, since the figures are exact. Where the private file of a run is still in
    its place, TABLE is refused if it holds more rows of it than chance explains; a few are not
    noticed.

    Example: secretballot evaluate first second test.csv

    Parameters
    ----------
    paths : RELEASE... TABLE
        Release folders, or folders of runs; last a public labelled table.
    target : COL[,COL...]
        Column of TABLE to compare with; by default the release's.
    encoding : NAME
        Text encoding of TABLE if it is a CSV file, such as cp1252.
    """
    from secretballot.runs.use import evaluate as evaluate_releases

    *releases, table = paths
    if not releases:
        raise ParameterError("Name a release, or several, and last a public labelled table.")
    watch.step("Evaluating")
    found, cautions = evaluate_releases(
        list(map(Path, releases)),
        place_of(table),
        words_of(target) if target else (),
        encoding=encoding,
    )
    letters = [chr(ord("A") + i % 26) * (1 + i // 26) for i in range(len(found))]
    document = {"releases": [one.to_json() for one in found], "cautions": cautions}
    return Answer(document, "evaluated", (found, letters, cautions))


def verify(
    certificate: Path, *, independent: bool = False, key: Path | None = None, as_json: bool = False
) -> Answer:
    """Check a release; needs nothing private.

    Computes the price of the certificate's events again and compares it with the guarantee. Of a
    folder it also checks that it holds the released files and no others, and that every row of
    labels.csv was paid for. A digest shows damage and is no signature: take releases from people
    you trust, or check with --key that they signed them.

    The second program needs Python alone: python -m secretballot_verify. There --minutes gives its
    games more time.

    Example: secretballot verify secretballot-out --independent

    Parameters
    ----------
    certificate : RELEASE
        A release folder, the folder of a run, or a certificate.json alone.
    independent
        Let a second, separate program check the release too.
    key : FILE
        Public key of the signer, Ed25519 in PEM.
    """
    # Imported here, so that help and usage errors of all verbs come at once.
    from secretballot.report.verification import verify_certificate
    from secretballot.runs.use import release_of

    folder = release_of(certificate)
    if certificate.is_dir():  # that of a run too, whose vault is no part of what is verified
        certificate = folder
    elif independent and certificate.name != "certificate.json":
        raise DataError(
            "The second program checks release folders; give the folder of the certificate."
        )
    verification = verify_certificate(certificate, key=key)
    # what the curator states and nobody can check
    document = verification.certificate or {}
    trusted = list(document["assumptions"]) if verification.ok else []
    if not as_json:
        show("checks", verification, trusted)
    second = []
    for finding in each_finding(str(folder)) if independent else ():
        # each as soon as it is found: a game takes minutes
        if not as_json and finding.verdict != CONFIRMED:
            say(f"{finding.verdict:<8}second: {finding.name:<13}{finding.detail}")
            sys.stdout.flush()
        if finding.verdict != WAIT:
            second.append(finding)
    code = DONE if verification.ok else NOT_VERIFIED
    if verification.ok and second:
        code = exit_code(second)
    said = {"certificate": str(certificate), **verification.to_json(), "trusted": trusted}
    if independent:
        said["independent"] = [finding._asdict() for finding in second]
    return Answer(said, "verified", (verification, code if second else None), code)


def sign(
    release: Path | None = None, *, key: Path | None = None, new_key: Path | None = None
) -> Answer:
    """Sign a release, or make a key.

    The release must verify; certificate.sig is written beside its certificate.

    Example: secretballot sign secretballot-out --key signing.pem

    Parameters
    ----------
    release : RELEASE
        A release folder, or the folder of a run.
    key : FILE
        Your private key, Ed25519 in PEM, readable by you alone.
    new_key : FILE
        Make a key, and its public part FILE.pub.
    """
    from secretballot.publishing.signing import new_signing_key, sign_release
    from secretballot.runs.use import release_of

    if new_key is not None:
        if release is not None or key is not None:
            raise ParameterError("--new-key makes a key and signs nothing; give it alone.")
        mark = new_signing_key(new_key)
        found = {"private": str(new_key), "public": f"{new_key}.pub", "key": mark}
    elif release is not None and key is not None:
        folder = release_of(release)
        found = {"release": str(folder), "key": sign_release(folder, key)}
    else:
        raise ParameterError("Name a release and the key to sign it with, or --new-key FILE.")
    return Answer(found, "signed", (found,))


#: Lines of each verb's output that are shown, by their first word.
_SHOWN = {
    "check": ("tables",),
    "learn": ("accuracy", "price"),
    "verify": ("The second",),
    "predict": (),
}


def demo(context: typer.Context, *, out: Path = Path("demo-out"), as_json: bool = False) -> Answer:
    """Run all of this on a simulated clinic, in seconds.

    Needs no network.

    Example: secretballot demo --out demo-out

    Parameters
    ----------
    out : DIR
        New folder for the data and the run.
    """
    program = context.find_root().command
    commands, said = _commands(out), list[str]()

    def tell(line: str) -> None:
        said.append(line)
        if not as_json:
            say(line)

    tell(f"Simulated clinic in {out}: 20,000 private, 2,000 public, 4,000 test patients")
    for number, (verb, words) in enumerate(commands.items(), start=1):
        tell(f"{number} {verb:<9}secretballot {shlex.join(words)}")
        printed = io.StringIO()
        with redirect_stdout(printed):
            try:
                program.main(words, prog_name="secretballot")
            except SystemExit as end:  # as every verb ends
                if end.code:
                    raise
        for line in printed.getvalue().splitlines():
            if line.startswith(_SHOWN[verb]):
                tell(f"{'':<11}{line}")
    tell(f"Open {out / 'study' / 'release' / 'report.html'}; repeat any command above.")
    return Answer({"out": str(out), "commands": commands, "said": said})


def _commands(out: Path) -> dict[str, list[str]]:
    """Write the files of the clinic in a new or empty folder, and return the commands by name."""
    from secretballot.data.synthetic import write_clinic
    from secretballot.runs.folder import check_new_folder

    check_new_folder(out)
    write_clinic(out)
    private, public, test = (str(out / f"{name}.csv") for name in ("private", "public", "test"))
    tables, study = [private, public], str(out / "study")
    target = ["--target", "readmitted", "--classes", "no,yes"]
    price = ["--epsilon", "1", "--delta", "1e-6", "--total", "4,1e-5"]
    measured, predicted = ["--evaluate", test], str(out / "predictions.csv")
    return {
        "check": ["check", *tables, *target],
        "learn": ["learn", *tables, *target, *price, *measured, "--out", study],
        "verify": ["verify", study, "--independent"],
        "predict": ["predict", study, test, "--out", predicted, "--overwrite"],
    }
