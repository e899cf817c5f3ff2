"""Plans on disk: settings that `learn --config` reads, the plan as text and its pictures.

Nothing here is secret: a plan is made of public numbers and stand-in data.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from secretballot.data.schema import Schema
from secretballot.drafts import (
    draft_folder,
    is_draft_of,
    make_folder,
    sweep_drafts,
    sync_folder,
    sync_tree,
)
from secretballot.exceptions import DataError
from secretballot.planning.plan.model import Plan
from secretballot.planning.plan.pictures import draw_plan_pictures
from secretballot.planning.plan.text import plan_text
from secretballot.report.extras import MissingExtraError
from secretballot.runs.folder import check_outside_of_runs
from secretballot.runs.progress import Watch
from secretballot.runs.spec import groups, toml_value

PLAN_FILE, JSON_FILE, TEXT_FILE = "plan.toml", "plan.json", "plan.txt"
SCHEMA_FILE = "plan.schema.json"
DRAFT = "plan"


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
    elif plan is not None and (place / PLAN_FILE).read_bytes() != plan_toml(plan).encode():
        raise DataError(
            f"The folder {str(folder)!r} holds another plan; give a new one with --out."
        )


def write_plan(
    plan: Plan, folder: Path, schema: Schema | None = None, watch: Watch | None = None
) -> list[Path]:
    """Write a plan as settings of a run, as JSON, as text and in pictures, each file complete or
    not at all.

    Pictures need an optional package; without it they are left out, and the watch is told.

    Parameters
    ----------
    plan : Plan
    folder : Path
        New, empty, or holding the same plan.
    schema : Schema, optional
        Columns of the public table, to be edited.
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
    # first, so that from the moment when anything is in the folder it is the folder of this plan
    contents = {
        PLAN_FILE: plan_toml(plan).encode(),
        JSON_FILE: _json(plan.to_json()),
        TEXT_FILE: plan_text(plan).encode(),
    }
    if schema is not None:
        contents[SCHEMA_FILE] = schema_bytes(schema)
    try:
        for name, picture in draw_plan_pictures(plan).items():
            contents |= {f"{name}.svg": picture.svg(), f"{name}.png": picture.png()}
    except MissingExtraError as error:
        (watch or Watch()).note(f"The pictures of the plan are left out: {error}", private=False)
    write_plan_files(folder, contents)
    return [folder / name for name in contents]


def plan_toml(plan: Plan) -> str:
    """Return a plan as settings of a run that bind, and its forecast."""
    tables: dict[str, dict[str, Any]] = {}
    for name, value in plan.settings().items():
        key = "name" if name == "method" else name
        tables.setdefault(groups()[name], {})[key] = value
    tables["forecast"] = plan.forecast()
    lines = []
    for group, values in tables.items():
        lines += [f"[{group}]", *(f"{key} = {toml_value(one)}" for key, one in values.items()), ""]
    return "\n".join(lines)


def schema_bytes(schema: Schema) -> bytes:
    """Return a schema to be edited, with a reason for each column."""
    return _json(schema.to_edit())


def write_plan_files(folder: Path, contents: Mapping[str, bytes]) -> None:
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


def _json(document: Mapping[str, Any]) -> bytes:
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", "surrogatepass")
