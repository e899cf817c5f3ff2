"""Run every benchmark of this folder, one after another, each in its own process. What a script
prints, tables for the most part, is left in build/bench/SCRIPT.md."""

import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    here, failed = Path(__file__).parent, []
    out = here.parent / "build" / "bench"
    out.mkdir(parents=True, exist_ok=True)
    for script in sorted(here.glob("*.py")):
        # what has no main is a part of another script
        if script.name == Path(__file__).name or "__main__" not in script.read_text():
            continue
        print(f"\n== {script.name}", flush=True)
        with (out / f"{script.stem}.md").open("w") as table:
            command = [sys.executable, "-u", str(script), *sys.argv[1:]]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                for line in process.stdout:
                    print(line, end="", flush=True)
                    table.write(line)
        if process.returncode:
            failed.append(script.name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")
