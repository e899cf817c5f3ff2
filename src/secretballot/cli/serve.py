"""`secretballot serve`: streams of answers over HTTP, prepared, served and queried."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from secretballot.cli.outcome import BUDGET_REFUSED, DONE, Answer, say
from secretballot.cli.screens import group, verb
from secretballot.cli.settings import settings_of
from secretballot.runs.spec import STREAM, RunSpec, Sources

if TYPE_CHECKING:
    from secretballot.service.access import Access


app = group("serve", "Prepare, start and query a service.")
key_app = group("key", "Make, list and revoke the API keys of a service.")
app.add_typer(key_app)

_CONFIG = Path("service.toml")


@verb(app)
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
    from secretballot.runs.prepare import run_prepare

    sources.given.setdefault("out", Path("service"))
    made = run_prepare(RunSpec.of_tree(sources.tree()), watch)
    return Answer(made, "prepared", (made,))


@verb(app)
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
    given: dict[str, Any] = {"host": host, "port": port, "workers": workers}
    own = settings.listen.changed(**{name: one for name, one in given.items() if one is not None})
    with listening_socket(own.host, own.port) as listening:
        url = f"http://{own.host}:{listening.getsockname()[1]}"
        if not as_json:
            say(f"serving      {url}")
            sys.stdout.flush()  # whoever reads the address through a pipe waits for it
        run_service(settings.changed(listen=own), listening)
    return Answer({"served": url})


#: Holds the key where no file does: on the command line every user of the machine would see it.
KEY_VARIABLE = "SECRETBALLOT_KEY"


@verb(app)
def ask(
    url: str,
    points: Path,
    *,
    key_file: Path | None = None,
    dataset: str | None = None,
    stream: str | None = None,
    max_new: int | None = None,
    out: Path | None = None,
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
        Ask nothing if more of the rows are new queries.
    out : FILE
        Where to write the answers, as CSV.
    """
    from secretballot._validation import shown
    from secretballot.exceptions import Parameter, ParameterError
    from secretballot.runs.folder import write_files
    from secretballot.service.asked_files import answers_table, points_of_file
    from secretballot.service.remote import connect

    with connect(url, _read_key(key_file), dataset=dataset, session=stream) as there:
        rows_to_ask = points_of_file(points, there)
        if max_new is not None and (new := there.count_new(rows_to_ask)) > max_new:
            raise ParameterError(
                Parameter("max_new"),
                f" is {max_new}, and {shown(points)} has {new} new queries; nothing was asked.",
            )
        answers = there.ask_many(rows_to_ask)
        table = answers_table(answers, there.classes)
    given, rows = int(answers.given.sum()), len(table)
    document: dict[str, Any] = {"points": rows, "given": given, "left": answers.left}
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
    from secretballot.exceptions import ParameterError

    key = os.environ.get(KEY_VARIABLE, "") if file is None else file.read_text("ascii", "replace")
    if not key.strip():
        raise ParameterError(
            f"There is no key; set {KEY_VARIABLE}, or name a file with --key-file."
        )
    return key.strip()


def _access(config: Path) -> "Access":
    from secretballot.service.access import Access
    from secretballot.service.settings import read_settings

    return Access(read_settings(config).state)


@verb(key_app)
def add(
    *,
    role: Literal["analyst", "curator", "auditor"],
    dataset: list[str],
    owner: str = "",
    quota: int | None = None,
    expires: str | None = None,
    config: Path = _CONFIG,
) -> Answer:
    """Make a key and print it, this once: only its hash is kept.

    Example: secretballot serve key add --role analyst --dataset registry --owner Ana --quota 200
    --expires 2030-12-31

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
    expires : DATE
        Last day on which it holds, such as 2030-12-31 (UTC); by default until revoked.
    config : FILE
        Settings of the service, in TOML.
    """
    with _access(config) as access:
        key, token = access.add(role, dataset, owner=owner, quota=quota, expires=expires)
    return Answer({**key.model_dump(mode="json"), "key": token}, "key", (key, token))


@verb(key_app, name="list")
def list_keys(*, config: Path = _CONFIG) -> Answer:
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


@verb(key_app)
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


@verb(key_app)
def audit(*, config: Path = _CONFIG) -> Answer:
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
