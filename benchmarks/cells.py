"""Finished cells of a table in a file of JSON lines, so that a long run can be interrupted and go
on; a part of other scripts."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np


class Cells:
    """Results by key, kept in a file.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.known: dict[str, dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                cell = json.loads(line)
                self.known[self._key(cell["key"])] = cell["found"]

    def found(self, key: dict[str, Any], compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the result of this key, computed and stored if it is not known."""
        name = self._key(key)
        if name not in self.known:
            self.known[name] = compute()
            with self.path.open("a") as file:
                file.write(json.dumps({"key": key, "found": self.known[name]}) + "\n")
        return self.known[name]

    def items(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return all keys and results."""
        return [(json.loads(name), found) for name, found in self.known.items()]

    def values(self, field: str, **wanted: Any) -> list[float]:
        """Return one field of all results whose key has these values."""
        return [
            found[field]
            for key, found in self.items()
            if found.get(field) is not None
            and all(key.get(name) == value for name, value in wanted.items())
        ]

    @staticmethod
    def _key(key: dict[str, Any]) -> str:
        return json.dumps(key, sort_keys=True)


def text_of(values: Sequence[float], digits: int = 1) -> str:
    """Return mean and standard deviation, as a cell of a table."""
    if not len(values):
        return "-"
    spread = f" ({np.std(values, ddof=1):.{digits}f})" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def row_of(*cells: object) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def head_of(*names: object) -> str:
    """Return the head of a table."""
    return row_of(*names) + "\n" + "|---" * len(names) + "|"


def number_given(default: int, *, place: int = 1) -> int:
    """Return a whole number of the command line, by its place among the words."""
    return int(sys.argv[place]) if len(sys.argv) > place else default
