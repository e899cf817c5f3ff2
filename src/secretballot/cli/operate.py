"""`secretballot ledger`, `serve` and `audit`: the account of a private dataset, streams of answers
over HTTP, and attacks on a command or a whole `learn`."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from secretballot._files import shown_place
from secretballot._validation import Composition, Json, Relation, Unit, refusal
from secretballot.cli.outcome import BUDGET_REFUSED, DONE, FOUND, Answer, say
from secretballot.cli.screens import group, settings_of, verb
from secretballot.exceptions import LedgerError, ParameterError
from secretballot.runs.spec import STREAM, RunSpec, Sources

if TYPE_CHECKING:
    from secretballot.audit import CanaryAudit, ReleaseAudit
    from secretballot.core.ledger import Ledger
    from secretballot.service.access import Access

ledger_verbs = group("ledger", "Create, show and check accounts.")


@verb(ledger_verbs)
def create(
    place: str,
    *,
    dataset: str,
    total: str,
    composition: Composition = "basic",
    unit: Unit = "record",
    relation: Relation = "add-remove",
) -> Answer:
    """Create the account of a private dataset, with the limit of all its releases.

    Example: secretballot ledger create registry.ledger --dataset registry-2026 --total 4,1e-5

    Parameters
    ----------
    place : LEDGER
        The ledger's file, or the URL of a PostgreSQL database.
    dataset : NAME
        Public name of the private dataset.
    total : E,D
        Limit of all releases from the dataset.
    composition : NAME
        How releases add up.
    unit : NAME
        What is protected, of a user all records.
    relation : NAME
        The change that is protected.
    """
    from secretballot.core.ledger import Ledger
    from secretballot.core.price import PrivacyBudget
    from secretballot.runs.spec import BudgetSpec

    # The total is checked before the path, so that a number out of range leaves no file behind. A
    # link that leads nowhere would be followed, whosever its target is.
    budget = PrivacyBudget(*(BudgetSpec.of_tree({"total": total}).total or ()))
    if Ledger.exists(place):
        raise LedgerError(
            f"{shown_place(place)!r} exists already; a ledger is created once, so give another path"
            " or keep that one."
        )
    made = Ledger(
        place, dataset=dataset, budget=budget, composition=composition, unit=unit, relation=relation
    )
    return _shown(made)


@verb(ledger_verbs)
def show(place: str) -> Answer:
    """Show whose account it is, what is spent and left, and every release, oldest first.

    Example: secretballot ledger show patients.csv.ledger

    Parameters
    ----------
    place : LEDGER
        The ledger's file, or the URL of a PostgreSQL database.
    """
    from secretballot.core.ledger import Ledger

    return _shown(Ledger.open_existing(place))


def _shown(ledger: "Ledger") -> Answer:
    amounts: Json = {"total": ledger.budget, "spent": ledger.spent(), "left": ledger.remaining()}
    entries = ledger.history()
    terms = {name: getattr(ledger, name) for name in ("dataset", "unit", "relation", "composition")}
    pairs = {name: {"epsilon": pair.epsilon, "delta": pair.delta} for name, pair in amounts.items()}
    releases = [entry.to_json() for entry in entries]
    document = {**terms, **pairs, "releases": releases}
    return Answer(document, "ledger", (ledger, amounts, entries))


@verb(ledger_verbs)
def check(place: str) -> Answer:
    """Check every page and every row of the account, from the first one on.

    Example: secretballot ledger check patients.csv.ledger

    Parameters
    ----------
    place : LEDGER
        The ledger's file, or the URL of a PostgreSQL database.
    """
    from secretballot.core.ledger import Ledger

    ledger = Ledger.open_existing(place)
    ledger.check()
    rows, chain = ledger.head()
    document = {"dataset": ledger.dataset, "rows": rows, "chain": chain, "ok": True}
    return Answer(document, "checked", (document,))


serve_verbs = group("serve", "Prepare, start and query a service.")
_key_app = group("key", "Make, list and revoke the API keys of a service.")
serve_verbs.add_typer(_key_app)

_CONFIG = Path("service.toml")


@verb(serve_verbs)
@settings_of(
    *("data", "budget", STREAM, "output.out", "execution"),
    method=STREAM,
    required=("target", "epsilon", "delta", "n_queries"),
    out="Folder of the service.  [default: service]",
    ledger="Account: a file or a database's URL; by default $SECRETBALLOT_LEDGER, else"
    " PRIVATE.ledger.",
)
def prepare(sources: Sources, *, watch: Any) -> Answer:
    """Train teachers on a private table and begin a stream that `serve start` answers from.

    Writes OUT/DATASET-vault, which stays secret, OUT/DATASET-schema.json, and OUT/service.toml
    unless it exists. All queries are paid for now. Repeat the command to resume a run; it is
    charged once.

    Example: secretballot serve prepare patients.csv public.csv --target ill --classes no,yes
    --dataset registry --epsilon 1 --delta 1e-6 --total 4,1e-5 --n-queries 200
    """
    from secretballot.runs.run import run_prepare

    sources.given.setdefault("out", Path("service"))
    made = run_prepare(RunSpec.of_tree(sources.tree()), watch)
    return Answer(made, "prepared", (made,))


@verb(serve_verbs)
def start(
    *,
    config: Path = _CONFIG,
    host: str | None = None,
    port: int | None = None,
    workers: int | None = None,
    as_json: bool = False,
) -> Answer:
    """Answer queries over HTTP, from streams that were prepared.

    Stops at Ctrl-C or a TERM signal, once the queries that have begun are answered.

    Example: secretballot serve start --config service.toml --workers 2

    Parameters
    ----------
    config : FILE
        Settings of the service, in TOML.
    host : HOST
        Address to listen at, instead of the settings'.
    port : N
        Port; 0 lets the system choose.
    workers : N
        Processes that share the ledgers.
    """
    from secretballot.service.run import listening_socket
    from secretballot.service.run import serve as run_service
    from secretballot.service.settings import read_settings

    settings = read_settings(config)
    given: Json = {"host": host, "port": port, "workers": workers}
    own = settings.listen.changed(**{name: one for name, one in given.items() if one is not None})
    with listening_socket(own.host, own.port) as listening:
        url = f"http://{own.host}:{listening.getsockname()[1]}"
        if not as_json:
            say(f"serving      {url}")
            sys.stdout.flush()  # whoever reads the address through a pipe waits for it
        run_service(settings.changed(listen=own), listening)
    return Answer({"served": url})


#: Holds the key where no file does: on the command line every user of the machine would see it.
_KEY_VARIABLE = "SECRETBALLOT_KEY"


@verb(serve_verbs)
def ask(
    url: str,
    points: Path,
    *,
    key_file: Path | None = None,
    dataset: str | None = None,
    stream: str | None = None,
    max_new: int | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    as_json: bool = False,
) -> Answer:
    """Ask a service for the labels of the rows of a file, and write them as a table.

    A row that was asked before has its stored answer and costs nothing, so an interrupted command
    can be repeated.

    Example: secretballot serve ask https://labels.example.org points.csv --out answers.csv

    Parameters
    ----------
    url : URL
        Address of the service.
    points : POINTS
        Public points, CSV with a header or Parquet.
    key_file : FILE
        File of the API key; by default $SECRETBALLOT_KEY.
    dataset : NAME
        Dataset, if there are several.
    stream : NAME
        Stream, if not the first one.
    max_new : N
        Ask nothing if more of the rows are new queries; by default those that are left.
    out : FILE
        Where to write the answers, as CSV.
    overwrite
        Replace a file that exists.
    """
    from secretballot._validation import shown
    from secretballot.runs.folder import check_new_file, write_files
    from secretballot.service.remote import answers_table, connect, points_of_file

    if out is not None:
        check_new_file(out, points, overwrite=overwrite)
    with connect(url, _read_key(key_file), dataset=dataset, session=stream) as there:
        rows_to_ask = points_of_file(points, there)
        most = there.left if max_new is None else max_new
        if (new := there.count_new(rows_to_ask)) > most:
            found = f"is missing with {most} queries left" if max_new is None else f"is {most}"
            raise refusal(
                "max_new",
                f" {found}, and {shown(points)} has {new} new queries; nothing was asked. Give as"
                " many to have those answered that can be.",
            )
        answers = there.ask_many(rows_to_ask)
        table = answers_table(answers, there.classes)
    given, rows = int(answers.given.sum()), len(table)
    document: Json = {"points": rows, "given": given, "left": answers.left}
    text, csv = "", table.to_csv(index=False)
    if out is not None:
        write_files(out.parent, {out.name: csv.encode()})
        text = "asked"
    elif as_json:
        document["answers"] = {name: table[name].tolist() for name in table}
    else:
        say(csv.rstrip("\n"), keep="\n\t")
    if given < rows:
        # on the standard error: the standard output may be the table
        why = f"{given} of {rows} points were answered, then the budget or the quota was spent."
        print(f"secretballot: {why}", file=sys.stderr)
    return Answer(document, text, (out, document), BUDGET_REFUSED if given < rows else DONE)


def _read_key(file: Path | None) -> str:
    """Return the key in a file or in the environment.

    Raises
    ------
    ParameterError
        If there is none.
    """
    key = os.environ.get(_KEY_VARIABLE, "") if file is None else file.read_text("ascii", "replace")
    if not key.strip():
        raise ParameterError(
            f"There is no key; set {_KEY_VARIABLE}, or name a file with --key-file."
        )
    return key.strip()


def _access(config: Path) -> "Access":
    from secretballot.service.access import Access
    from secretballot.service.settings import read_settings

    return Access(read_settings(config).state)


@verb(_key_app)
def add(
    *,
    role: Literal["analyst", "curator", "auditor"],
    dataset: list[str],
    owner: str = "",
    quota: int | None = None,
    config: Path = _CONFIG,
) -> Answer:
    """Make a key and print it, this once: only its hash is kept.

    Example: secretballot serve key add --role analyst --dataset registry --owner Ana --quota 200

    Parameters
    ----------
    role : NAME
        What the key may do; an analyst asks, an auditor oversees, a curator does both.
    dataset : NAME
        Dataset it is for; repeat it, or * for all.
    owner : TEXT
        Whose key it is.
    quota : N
        New queries it may ask of each dataset.
    config : FILE
        Settings of the service, in TOML.
    """
    with _access(config) as access:
        key, token = access.add(role, dataset, owner=owner, quota=quota)
    return Answer({**key.model_dump(mode="json"), "key": token}, "key", (key, token))


@verb(_key_app, name="list")
def _list_keys(*, config: Path = _CONFIG) -> Answer:
    """List all keys, oldest first, revoked ones too.

    Example: secretballot serve key list

    Parameters
    ----------
    config : FILE
        Settings of the service, in TOML.
    """
    with _access(config) as access:
        keys = access.keys()
    return Answer({"keys": [key.model_dump(mode="json") for key in keys]}, "keys", (keys,))


@verb(_key_app)
def revoke(key_id: str, *, config: Path = _CONFIG) -> Answer:
    """Revoke a key for good; it is refused from now on.

    Example: secretballot serve key revoke 0f3c9a7b2d41

    Parameters
    ----------
    key_id : ID
        Id of the key.
    config : FILE
        Settings of the service, in TOML.
    """
    with _access(config) as access:
        key = access.revoke(key_id)
    return Answer(key.model_dump(mode="json"), "revoked", (key,))


@verb(_key_app, name="audit")
def _read_log(*, config: Path = _CONFIG) -> Answer:
    """Print the audit log: who asked how many points when, and who downloaded what.

    Example: secretballot serve key audit

    Parameters
    ----------
    config : FILE
        Settings of the service, in TOML.
    """
    with _access(config) as access:
        rows = access.rows(None, after=0, most=2**31)
    return Answer({"rows": [vars(row) for row in rows]}, "log", (rows,))


audit_verbs = group("audit", "Attack releases, to find more leakage than certified.")


@verb(audit_verbs)
def release(
    context: typer.Context,
    command: list[str],
    *,
    watch: Any,
    private: Path,
    neighbour: Path,
    runs: int = 60,
    confidence: float = 0.99,
    steps: int = 1,
    program: str | None = None,
    n_jobs: int = 1,
    random_state: int | None = None,
) -> Answer:
    """Run a command on two neighbouring inputs, many times, and attack all that it releases.

    Every run has a fresh process and folder. A third of the runs choose the field that
    distinguishes the inputs best; the others certify a lower bound on epsilon, which must not
    exceed the certificate's.

    Example: secretballot audit release --private patients.csv --neighbour one-more.csv -- learn
    patients.csv public.csv --target ill --classes no,yes --epsilon 1 --delta 1e-6 --ledger own

    Parameters
    ----------
    command : -- COMMAND
        The command to attack, without `secretballot`.
    private : FILE
        The private file, as COMMAND names it.
    neighbour : FILE
        The neighbouring private file.
    runs : N
        Runs in all, half of them on each side.
    steps : K
        Records by which the two inputs differ; one replaced is two that come and go.
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

    watch.step("Running the command")
    return _audit(context, watch, audit_release, "release_audit")


@verb(audit_verbs)
def canaries(
    context: typer.Context,
    *,
    watch: Any,
    epsilon: float = 4.0,
    delta: float = 1e-6,
    runs: int = 100,
    canaries: int = 1,
    n_teachers: int = 10,
    n_queries: int = 40,
    confidence: float = 0.99,
    program: str | None = None,
    n_jobs: int = 1,
    random_state: int | None = None,
) -> Answer:
    """Attack a whole `learn` with canaries, poisoned teachers and queries of the attacker's choice.

    All data are made here. A canary is a record that is present with probability one half; its
    teacher's vote shows in the answers. One canary a run reaches the whole price; with several in
    a run, few runs suffice.

    Example: secretballot audit canaries --epsilon 0.5 --runs 200 --n-jobs 2

    Parameters
    ----------
    epsilon : E
        Price at which `learn` runs.
    delta : D
        Likewise.
    runs : N
        Runs of `learn`.
    canaries : M
        Canaries in each run.
    n_teachers : K
        Teachers of each run.
    n_queries : L
        Queries of each run.
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

    watch.step("Running learn")
    return _audit(context, watch, audit_canaries, "canary_audit")


def _audit(context: typer.Context, watch: Any, attack: Any, text: str) -> Answer:
    """Attack with the options that were given, and return what was found."""
    given = {name: one for name, one in context.params.items() if name != "as_json"}
    program = given.pop("program")
    found: CanaryAudit | ReleaseAudit = attack(
        **given, program=None if program is None else shlex.split(program), progress=watch.progress
    )
    return Answer(found.to_json(), text, (found,), DONE if found.passed else FOUND)
