"""The runs of the demonstration: which data, how many teachers, which price."""

from pathlib import Path

from secretballot.data.synthetic import (
    DemonstrationFiles,
    write_breast_cancer,
    write_clinic,
)
from secretballot.exceptions import DataError
from secretballot.runs.learn import LearnRun
from secretballot.runs.tables import RunTables


def demonstration_runs(out: Path) -> dict[str, LearnRun]:
    """Write the demonstration's files and return its runs by name.

    Parameters
    ----------
    out : Path
        Folder for data and runs; it must be new or empty.

    Raises
    ------
    DataError
        If the folder is in use.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{str(out)!r} exists; give a new folder with --out, or remove it.")
    clinic = write_clinic(out / "clinic-data")
    cancer = write_breast_cancer(out / "breast-cancer-data")
    return {
        "clinic": _demonstration_run(
            clinic, out / "clinic", epsilon=1.0, delta=1e-6, teachers=250, records=20_000
        ),
        "breast-cancer": _demonstration_run(
            cancer, out / "breast-cancer", epsilon=2.0, delta=1e-4, teachers=30, records=320
        ),
    }


def _demonstration_run(
    files: DemonstrationFiles,
    out: Path,
    *,
    epsilon: float,
    delta: float,
    teachers: int,
    records: int,
) -> LearnRun:
    tables = RunTables(
        files.private, files.public, files.target, files.classes, evaluate=files.test
    )
    return LearnRun(
        tables, epsilon, delta, out, teachers=teachers, records=records, dataset=f"demo-{out.name}"
    )
