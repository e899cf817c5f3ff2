"""A session to look at: a clinic that never was, its teachers, and the right to ask them."""

from pathlib import Path

import pandas as pd

from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger.urls import file_or_database
from secretballot.data.schema import Schema
from secretballot.data.synthetic import write_clinic
from secretballot.learners.labelers.session import LabelingSession
from secretballot.planning.planner import plan
from secretballot.publishing.release import write_release
from secretballot.runs.plan import write_plan
from secretballot.runs.prepare import run_prepare
from secretballot.runs.spec import STREAM, RunSpec, Sources

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-6)
_TEACHERS, _QUESTIONS, _EXAMPLES = 250, 300, 20
_RECORDS = 20_000  # as is stated publicly
_TITLE = "Who came back: a clinic that never was"


def begin_demonstration_session(folder: Path, ledger_at: str | None = None) -> str:
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
