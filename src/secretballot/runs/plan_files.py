"""Plans on disk: the file that `learn --plan` reads, and the folder of a plan with its words and
pictures.

Nothing here is secret: a plan is made of public numbers and stand-in data.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from secretballot.core.drafts import (
    draft_folder,
    is_draft_of,
    make_folder,
    sweep_drafts,
    sync_folder,
    sync_tree,
)
from secretballot.exceptions import DataError
from secretballot.planning.plan.model import UNFIT, Plan
from secretballot.planning.plan.pictures import draw_plan_pictures
from secretballot.planning.plan.text import plan_text
from secretballot.report.extras import MissingExtraError
from secretballot.runs.folder import check_outside_of_runs
from secretballot.runs.progress import Watch

LARGEST = 1 << 24  # bytes; a plan has some hundred candidates of a kilobyte each
PLAN_FILE, TEXT_FILE = "plan.json", "plan.txt"
DRAFT = "plan"


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan that was written by `write_plan`, or printed by ``secretballot plan --json``.

    Raises
    ------
    DataError
        If there is no such file, or it holds no plan of this version.
    """
    # Bounded before it is read: a plan comes from anybody.
    file, problem, content = Path(path), "", b""
    where = f"The plan {str(file)!r}"
    try:
        if not file.exists():
            problem = "does not exist; check the path."
        elif not file.is_file():
            problem = "is no file; give the plan.json of a plan's folder."
        elif file.stat().st_size > LARGEST:
            problem = (
                f"is a file of {file.stat().st_size:,} bytes, more than any plan has; give another."
            )
        else:
            content = file.read_bytes()
    except (OSError, ValueError) as error:
        problem = f"cannot be read ({getattr(error, 'strerror', None) or 'the path is not valid'})."
    if problem:
        raise DataError(f"{where} {problem}")
    return _plan_of(content, where)


def _plan_of(content: bytes, where: str) -> Plan:
    try:
        values = json.loads(content.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise DataError(
            f"{where} is no JSON text in UTF-8; give what `secretballot plan --json` prints."
        ) from None
    if isinstance(values, Mapping) and {"error", "exit_code"} <= set(values):
        raise DataError(f"{where} holds the failure of a command and no plan; plan again.")
    try:
        return Plan.from_json(values)
    except DataError as error:
        problem = str(error)
    raise DataError(f"{where} cannot be used: {problem.removeprefix(UNFIT)}")


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(word)  # NaN and infinities are no JSON


def check_plan_folder(folder: Path, plan: Plan | None = None) -> None:
    """Refuse a folder in which a plan has no place, before planning and again with the plan.

    Parameters
    ----------
    folder : Path
    plan : Plan, optional
        What is to be written; another plan in the folder is then refused.

    Raises
    ------
    DataError
        If the folder is no folder, holds something else than this plan, or lies in the vault or the
        release of a run.
    """
    check_outside_of_runs(folder)
    place = Path(os.path.abspath(folder))
    if not os.path.lexists(place):
        return
    if not place.is_dir():
        raise DataError(f"{str(folder)!r} is a file; give a folder with --out.")
    if not (place / PLAN_FILE).is_file():
        # what a killed command left half written is no obstacle to the same command
        if not all(is_draft_of(path.name, DRAFT) for path in place.iterdir()):
            raise DataError(
                f"The folder {str(folder)!r} holds something else than a plan; give a new one with"
                " --out."
            )
    elif plan is not None and read_plan(place / PLAN_FILE) != plan:
        raise DataError(
            f"The folder {str(folder)!r} holds another plan; give a new one with --out."
        )


def write_plan(plan: Plan, folder: Path, watch: Watch | None = None) -> list[Path]:
    """Write a plan as JSON, in words and in pictures, each file complete or not at all.

    Pictures need an optional package; without it they are left out, and the watch is told.

    Parameters
    ----------
    plan : Plan
    folder : Path
        New, empty, or holding the same plan.
    watch : Watch, optional

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    DataError
        If the folder is refused (`check_plan_folder`) or cannot be written.
    """
    check_plan_folder(folder, plan)
    # first, so that from the moment when anything stands in the folder it is the folder of this
    # plan
    contents = {PLAN_FILE: _plan_as_json(plan), TEXT_FILE: plan_text(plan).encode()}
    try:
        for name, picture in draw_plan_pictures(plan).items():
            contents |= {f"{name}.svg": picture.svg(), f"{name}.png": picture.png()}
    except MissingExtraError as error:
        (watch or Watch()).note(f"The pictures of the plan are left out: {error}", private=False)
    _write_all(folder, contents)
    return [folder / name for name in contents]


def _write_all(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files aside, all of them, and then rename them into the folder."""
    # A full disk thus leaves the folder as it was; a new folder is removed again.
    is_new, problem = not folder.exists(), ""
    try:
        make_folder(folder)
        sweep_drafts(folder, DRAFT)
        with draft_folder(folder, DRAFT) as drafts:
            for name, content in contents.items():
                (drafts / name).write_bytes(content)
            sync_tree(drafts)
            for name in contents:
                (drafts / name).replace(folder / name)
            sync_folder(folder)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if not problem:
        return
    if is_new:
        with suppress(OSError):
            folder.rmdir()
    raise DataError(
        f"The plan cannot be written to {str(folder)!r} ({problem}); make room, or give another"
        " folder with --out."
    )


def _plan_as_json(plan: Plan) -> bytes:
    return (
        json.dumps(plan.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    ).encode()
