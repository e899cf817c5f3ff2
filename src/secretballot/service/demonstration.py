"""A service to look at: a clinic that never was, its teachers, a session, keys, and the server.

Run it as ``python -m secretballot.service.demonstration FOLDER [PORT [LEDGER]]``, by
``make demo-service-sqlite``, or with a PostgreSQL server by ``make demo-service``. In a folder that
was made before it goes on with the same session.
"""

import os
import sys
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger.urls import file_or_database
from secretballot.data.schema import Schema
from secretballot.data.synthetic import write_clinic
from secretballot.learners.training.session import LabelingSession
from secretballot.planning.planner import plan
from secretballot.publishing.release import write_release
from secretballot.publishing.signing import new_signing_key
from secretballot.runs.plan import write_plan
from secretballot.runs.prepare import run_prepare
from secretballot.runs.spec import STREAM, RunSpec, Sources
from secretballot.service.api_keys import KeyRing
from secretballot.service.run import listening_socket, serve
from secretballot.service.settings import read_settings

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-6)
_TEACHERS, _QUESTIONS, _EXAMPLES = 250, 300, 20
_RECORDS = 20_000  # as is stated publicly
_TITLE = "Who came back: a clinic that never was"
_SETTINGS = """\
# The service of a demonstration; every setting is described in docs/guides/service.md.
state = "service-state"
{signs}
{dataset}plan = "plan/plan.json"
releases = ["first-answers"]
"""


def begin_session(folder: Path, ledger_at: str | None = None) -> str:
    """Plan, train teachers, begin a session and release its first answers: ``plan``,
    ``clinic-vault``, the ledger, ``first-answers``, and a few public points to ask next in
    ``points.csv``. Return the lines of a service's settings about it.

    Parameters
    ----------
    folder : Path
        Where all of it goes.
    ledger_at : path or URL, optional
        Place of the ledger; ``clinic.ledger`` in the folder by default.
    """
    # from what is public alone, before the private records are read
    planned = plan(_RECORDS, _QUESTIONS, budget=BUDGET, n_classes=2, n_teachers=_TEACHERS)
    write_plan(planned, folder / "plan")
    files = write_clinic(folder / "data")
    settings = Sources(
        fields={
            "private": files.private,
            "public": files.public,
            "target": files.target,
            "classes": files.classes,
            "epsilon": BUDGET.epsilon,
            "delta": BUDGET.delta,
            "total": BUDGET,
            "ledger": file_or_database(ledger_at or str(folder / "clinic.ledger")),
            "dataset": "clinic",
            "n_queries": _QUESTIONS,
            "n_teachers": _TEACHERS,
            "out": folder,
            "title": _TITLE,
            "purpose": "a demonstration of the service",
        },
        method=STREAM,
    )
    prepared = run_prepare(RunSpec.of_tree(settings.tree()))
    schema, public = Schema.read(prepared.schema), pd.read_csv(files.public)
    session = LabelingSession.reopen(prepared.vault)
    asked = schema.encoding(public.head(_EXAMPLES), role="table of points").matrix
    session.ask_many(asked)
    write_release(
        folder / "first-answers",
        session.released(asked),
        without=["student"],
        overwrite=True,  # where a start was broken off
        about={"title": _TITLE},
    )
    public.iloc[_EXAMPLES : 2 * _EXAMPLES].to_csv(folder / "points.csv", index=False)
    return prepared.table


def prepare(folder: Path, ledger_at: str | None = None) -> dict[str, str]:
    """Train teachers, begin a session and make keys; return the token of each key by its role."""
    config = folder / "service.toml"
    # preparing writes settings too; these are complete once they name what was released
    if not config.exists() or "first-answers" not in config.read_text(encoding="utf-8"):
        dataset = begin_session(folder, ledger_at)
        key = folder / "service.pem"
        if find_spec("cryptography") is not None and not key.exists():
            new_signing_key(key)
        signs = f'signing_key = "{key.name}"\n' if key.exists() else ""
        config.write_text(_SETTINGS.format(signs=signs, dataset=dataset), encoding="utf-8")
    ring = KeyRing(read_settings(config).state)
    return {
        role: ring.add(role, ["*"], owner="demonstration")[1] for role in ("analyst", "curator")
    }


def main(words: list[str]) -> None:
    """Prepare a demonstration in a folder and serve it."""
    folder = Path(words[0] if words else "demo-service").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    keys = prepare(folder, words[2] if len(words) > 2 else None)
    settings = read_settings(folder / "service.toml")
    port = int(words[1]) if len(words) > 1 else settings.listening.port
    settings = replace(settings, listening=replace(settings.listening, port=port))
    with listening_socket(settings.listening.host, port) as listening:
        address = f"http://{settings.listening.host}:{listening.getsockname()[1]}"
        print(f"serving      {address}")
        for role, token in keys.items():
            print(f"{role:<12} {token}")
        points = os.path.relpath(folder / "points.csv")
        question = f"secretballot serve ask {address} {points}"
        print(f"ask          SECRETBALLOT_KEY={keys['analyst']} {question}")
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):  # how it is meant to end
            serve(settings, listening)


if __name__ == "__main__":
    main(sys.argv[1:])
