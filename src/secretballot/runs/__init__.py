"""Whole jobs, from files to folders: what the command line calls. They compose the rooms below
and draw no noise."""

from typing import TYPE_CHECKING, Any

from secretballot._lazy import load_name

if TYPE_CHECKING:
    from secretballot.runs.check import TableCheck, check_tables_of_run
    from secretballot.runs.choose import ChooseOutcome, ChooseRun, run_choose
    from secretballot.runs.label import LabelOutcome, LabelRun, run_label
    from secretballot.runs.learn import LearnOutcome, LearnRun, run_learn
    from secretballot.runs.plan import PlanRun, classifier_by_plan, run_plan
    from secretballot.runs.plan_files import read_plan
    from secretballot.runs.progress import Watch
    from secretballot.runs.records import RecordsRun, run_records
    from secretballot.runs.tables import LabelledTable, RunTables

_HOMES = {
    "ChooseOutcome": "choose",
    "ChooseRun": "choose",
    "LabelOutcome": "label",
    "LabelRun": "label",
    "LabelledTable": "tables",
    "LearnOutcome": "learn",
    "LearnRun": "learn",
    "PlanRun": "plan",
    "RecordsRun": "records",
    "RunTables": "tables",
    "TableCheck": "check",
    "Watch": "progress",
    "check_tables_of_run": "check",
    "classifier_by_plan": "plan",
    "read_plan": "plan_files",
    "run_choose": "choose",
    "run_label": "label",
    "run_learn": "learn",
    "run_plan": "plan",
    "run_records": "records",
}
_ROOMS: tuple[str, ...] = ()

__all__ = [
    "ChooseOutcome",
    "ChooseRun",
    "LabelOutcome",
    "LabelRun",
    "LabelledTable",
    "LearnOutcome",
    "LearnRun",
    "PlanRun",
    "RecordsRun",
    "RunTables",
    "TableCheck",
    "Watch",
    "check_tables_of_run",
    "classifier_by_plan",
    "read_plan",
    "run_choose",
    "run_label",
    "run_learn",
    "run_plan",
    "run_records",
]


def __getattr__(name: str) -> Any:
    return load_name(__name__, name, _HOMES, _ROOMS)


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
