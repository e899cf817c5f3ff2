"""Run the campaign: `python -m campaigns.fuzzing --examples 100000 --out build/fuzz [TARGET ...]`.

Inputs are read in blocks, each in a process of its own; a finished block is kept, so a stopped
campaign goes on where it was. A table of counts is printed; the exit code is 1 if any rule was
broken.
"""

import argparse
import json
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from campaigns.fuzzing.targets import TARGETS

BLOCK = 5_000
#: Seconds without a new input after which a child is taken to hang, although it should have
#: interrupted itself.
LONGEST_SILENCE = 60.0


def block_report(name: str, examples: int, number: int, out: Path) -> dict[str, Any]:
    """Return the report of one block, run now unless it was finished before."""
    kept = out / f"{name}-{number}.json"
    if not kept.exists():
        command = [
            sys.executable,
            "-m",
            "campaigns.fuzzing.child",
            name,
            str(examples),
            str(number),
            str(out),
        ]
        # the input of a process that died long ago would be taken for a long silence of this one
        (out / f"{name}-{number}.case").unlink(missing_ok=True)
        with (out / f"{name}-{number}.err").open("wb") as errors:
            child = subprocess.Popen(command, stdout=errors, stderr=errors)
            code = _exit_code_of(child, out / f"{name}-{number}.case")
        if not kept.exists():
            return report_of_death(code, out / f"{name}-{number}")
        (out / f"{name}-{number}.err").unlink()
    return dict(json.loads(kept.read_text()))


def _exit_code_of(child: "subprocess.Popen[bytes]", case: Path) -> int:
    """Wait for a child and return its exit code; kill one that is silent for too long."""
    begun = time.time()
    while True:
        try:
            return child.wait(timeout=1)
        except subprocess.TimeoutExpired:
            last = case.stat().st_mtime if case.exists() else begun
            if time.time() - last > LONGEST_SILENCE:
                child.kill()


def report_of_death(code: int, place: Path) -> dict[str, Any]:
    """Return the report of a block whose process died: which input it was reading."""
    case = place.with_suffix(".case")
    reading = (
        repr(pickle.loads(case.read_bytes()))[:2000]
        if case.exists() and case.stat().st_size
        else "nothing yet"
    )
    cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    said = place.with_suffix(".err").read_text(errors="replace")[-500:]
    return {"inputs": 0, "codes": {}, "breaches": {f"the process died: {cause}: {said}": reading}}


def target_report(name: str, examples: int, out: Path) -> dict[str, Any]:
    """Return the sum of all blocks of a target."""
    whole: dict[str, Any] = {"inputs": 0, "codes": {}, "breaches": {}}
    for number, start in enumerate(range(0, examples, BLOCK)):
        part = block_report(name, min(BLOCK, examples - start), number, out)
        whole["inputs"] += part["inputs"]
        whole["breaches"] |= part["breaches"]
        for code, count in part["codes"].items():
            whole["codes"][code] = whole["codes"].get(code, 0) + count
    return whole


def main() -> int:
    """Run the campaign and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m campaigns.fuzzing", description=__doc__)
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all by default"
    )
    parser.add_argument("--examples", type=int, default=100_000, help="inputs for each target")
    parser.add_argument(
        "--out", type=Path, default=Path("build/fuzz"), help="where finished blocks are kept"
    )
    given = parser.parse_args()
    unknown = [name for name in given.targets if name not in TARGETS]
    if unknown:
        parser.error(f"unknown target {unknown[0]!r}; give one of {', '.join(TARGETS)}")
    given.out.mkdir(parents=True, exist_ok=True)
    broken = 0
    print(
        "| target | inputs | read | refused | rules broken | seconds |\n|---|---|---|---|---|---|"
    )
    # one target after the other: each is read in a process of its own, and its finished blocks are
    # kept
    for name in given.targets or TARGETS:
        begun = time.monotonic()
        found = target_report(name, given.examples, given.out)
        read = found["codes"].get("0", 0)
        refused = sum(count for code, count in found["codes"].items() if code != "0")
        seconds = time.monotonic() - begun
        print(
            f"| {name} | {found['inputs']} | {read} | {refused} | {len(found['breaches'])} |"
            f" {seconds:.0f} |",
            flush=True,
        )
        broken += len(found["breaches"])
        for rule, case in found["breaches"].items():
            print(f"  {name}: {rule!r}\n    {case}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
