"""A service to look at: a clinic that is simulated, its teachers, a session, keys, and the server.

Run it as ``python -m campaigns.demo_service [FOLDER]``. In a folder that was made before it goes on
with the same session. Without a folder the ledger is in a PostgreSQL server, which is started for
it and goes with it.
"""

import json
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pandas as pd

import secretballot as sb
from campaigns.postgres_server import PostgresServer, reason_for_none
from secretballot.data.schema import Schema
from secretballot.data.synthetic import write_clinic

PROGRAM = (sys.executable, "-m", "secretballot")
QUESTIONS, EXAMPLES = 300, 20
TITLE = "Who came back: a simulated clinic"


def said(*words: str | Path, folder: Path) -> str:
    """Return what the program says to a command in a folder."""
    return subprocess.run(
        [*PROGRAM, *map(str, words)], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def prepare(folder: Path, ledger: str = "clinic.ledger", questions: int = QUESTIONS) -> None:
    """Train teachers, begin a session, ask its first questions, and write the settings of the
    service and a few points to ask next."""
    files = write_clinic(folder / "data")
    task = ("--target", files.target, "--classes", ",".join(files.classes))
    task += ("--epsilon", "1", "--delta", "1e-6", "--n-teachers", "250")
    account = ("--dataset", "clinic", "--total", "1,1e-6", "--ledger", ledger)
    account += ("--n-queries", str(questions), "--set", f"title={TITLE}", "--out", ".")
    said("serve", "prepare", files.private, files.public, *task, *account, folder=folder)
    session = sb.LabelingSession.reopen(folder / "clinic-vault")
    schema, public = Schema.read(folder / "clinic-schema.json"), pd.read_csv(files.public)
    asked = schema.encoding(public.head(EXAMPLES), role="table of points").matrix
    session.ask_many(asked)
    public.iloc[EXAMPLES : 2 * EXAMPLES].to_csv(folder / "points.csv", index=False)
    said("sign", "--new-key", "service.pem", folder=folder)
    config = folder / "service.toml"
    config.write_text(f'signing_key = "service.pem"\n{config.read_text()}')


def main(folder: Path, ledger: str = "clinic.ledger") -> None:
    """Prepare a demonstration in a folder, if it is not there, and serve it until it is stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "points.csv").exists():
        prepare(folder, ledger)
    for role in ("analyst", "curator"):
        words = ("serve", "key", "add", "--role", role, "--dataset", "*", "--json")
        print(f"{role:<12} {json.loads(said(*words, folder=folder))['key']}")
    print("ask          SECRETBALLOT_KEY=... secretballot serve ask ADDRESS points.csv", flush=True)
    with suppress(KeyboardInterrupt):  # how it is meant to end
        subprocess.run([*PROGRAM, "serve", "start"], cwd=folder, check=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        main(Path(sys.argv[1]))
    elif reason := reason_for_none():
        sys.exit(reason)
    else:
        with PostgresServer() as server, tempfile.TemporaryDirectory() as place:
            main(Path(place), server.url())
