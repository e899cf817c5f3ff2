"""How two records of a run or a verb differ, and what of it is refused."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

LAST_DIGITS = 1e-6  # machines differ below
PROBABILITY, MARGIN = 1e-5, 1e-3  # predictions may differ by the first, labels below the second
DEAREST = 1.01  # of a recorded price
INTEGERS = "integers"  # the finding that an integer left of the release moved


@dataclass(frozen=True)
class Moved:
    """One value that moved, and what that is: "below", "fell", "dearer", "integers" or "moved"."""

    entry: str
    old: Any
    new: Any
    finding: str

    def __str__(self) -> str:
        return f"{self.finding:8} {self.entry}: {shown(self.old)} -> {shown(self.new)}"


def shown(value: Any) -> str:
    """Return a value as a short text."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def run_moved(name: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Moved]:
    """Yield what moved in one run."""
    for part in sorted(old.keys() | new.keys()):
        entry, before, after = f"{name}: {part}", old.get(part), new.get(part)
        if part == "predicted" or before == after:
            continue
        if part == "prices" and len(before or ()) == len(after or ()):
            yield from _prices(entry, before, after)
        elif part == "values" and before and after:
            yield from _values(name, old, new)
        else:
            finding = INTEGERS if part in ("opened", "private") else "moved"
            yield from _places(entry, before, after, finding)
    if "values" not in old and old.get("predicted") != new.get("predicted"):
        yield Moved(f"{name}: predicted", old.get("predicted"), new.get("predicted"), "moved")


def _places(entry: str, old: Any, new: Any, finding: str) -> Iterator[Moved]:
    """Yield the first places at which two values differ, not the whole of them."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                yield from _places(f"{entry}, {key}", old.get(key), new.get(key), finding)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        places = [i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
        yield from _places(f"{entry}[{places[0]}]", old[places[0]], new[places[0]], finding)
    elif not (isinstance(old, float) and math.isclose(old, new, rel_tol=LAST_DIGITS)):
        yield Moved(entry, old, new, finding)


def _prices(entry: str, old: Any, new: Any) -> Iterator[Moved]:
    for i, ((epsilon, delta), (new_epsilon, new_delta)) in enumerate(zip(old, new, strict=True)):
        pairs = (("epsilon", epsilon, new_epsilon, 1.0), ("delta", delta, new_delta, DEAREST))
        for what, before, after, most in pairs:
            named = f"{entry}[{i}] {what}"
            if after < before * (1 - LAST_DIGITS):
                yield Moved(named, before, after, "fell")
            elif after > before * most * (1 + LAST_DIGITS):
                yield Moved(named, before, after, "dearer")


def _values(name: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Moved]:
    before, after = old["values"], new["values"]
    if [len(row) for row in before] != [len(row) for row in after]:
        yield Moved(f"{name}: values", before, after, "moved")
        return
    for i, (row, other) in enumerate(zip(before, after, strict=True)):
        if any(
            abs(a - b) > PROBABILITY * max(1.0, abs(a)) for a, b in zip(row, other, strict=True)
        ):
            yield Moved(f"{name}: values[{i}]", row, other, "moved")
            return
    labels = zip(old.get("predicted", ()), new.get("predicted", ()), before, strict=False)
    for i, (label, other, row) in enumerate(labels):
        best, second = sorted((*row, 1 - sum(row)), reverse=True)[:2]
        if label != other and best - second > MARGIN:
            yield Moved(f"{name}: predicted[{i}]", label, other, "moved")
            return
