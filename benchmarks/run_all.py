"""Run every benchmark of this folder, one after another, each in its own process; the output is
the README's table."""

import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    failed = []
    for script in sorted(Path(__file__).parent.glob("*.py")):
        # what has no main is a part of another script
        if script.name == Path(__file__).name or "__main__" not in script.read_text():
            continue
        print(f"\n== {script.name}", flush=True)
        if subprocess.run([sys.executable, str(script), *sys.argv[1:]], check=False).returncode:
            failed.append(script.name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")
