"""All golden values as they are recorded, as the library has them now, and what moved between."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from golden import runs
from golden.moved import Moved, run_moved

HERE = Path(__file__).parent
NOISES = ("zero", "hashed")
Values = dict[str, dict[str, Any]]


def read(name: str) -> Values:
    """Return the recorded "runs" or "verbs"."""
    found: Values = json.loads((HERE / f"{name}.json").read_text())
    return found


def write(name: str, values: Values) -> None:
    """Replace them, one entry a line."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in values.items()]
    (HERE / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def runs_now() -> Values:
    """Carry out every run, under both kinds of noise."""
    return {
        f"{name}, noise {noise}": runs.recorded_run(name, noise)
        for name in runs.RUNS
        if runs.is_possible(name)
        for noise in NOISES
    }


def method_of(entry: str) -> str:
    """Return the method that a run belongs to, by its name with its noise or a place in it."""
    names = (name for name in runs.RUNS if entry.startswith(f"{name}, noise "))
    return str(runs.RUNS[next(names)]["method"])


def moved(old: Values, new: Values) -> Iterator[Moved]:
    """Yield what moved among runs or verbs; an entry on one side alone has moved, too."""
    for name in new:
        yield from run_moved(name, old.get(name, {}), new[name])


def table(found: Iterable[Moved]) -> str:
    """Return what moved as a table that is read."""
    lines = [str(one) for one in found]
    return "\n".join([*lines, f"{len(lines)} values moved."]) if lines else "Nothing moved."
