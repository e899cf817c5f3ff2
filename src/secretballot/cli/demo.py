"""`secretballot demo`: all of the program on a simulated clinic."""

import io
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import typer

from secretballot.cli.outcome import Answer, say
from secretballot.exceptions import DataError

#: Lines of each verb's output that are shown, by their first word.
_SHOWN = {
    "check": ("tables",),
    "learn": ("accuracy", "price"),
    "verify": ("The second",),
    "predict": (),
}


def demo(context: typer.Context, *, out: Path = Path("demo-out"), as_json: bool = False) -> Answer:
    """Run all of this on a simulated clinic, in seconds.

    Needs no network.

    Example: secretballot demo --out demo-out

    Parameters
    ----------
    out : DIR
        New folder for the data and the run.
    """
    program = context.find_root().command
    commands, said = _commands(out), list[str]()

    def tell(line: str) -> None:
        said.append(line)
        if not as_json:
            say(line)

    tell(f"Simulated clinic in {out}: 20,000 private, 2,000 public, 4,000 test patients")
    for number, (verb, words) in enumerate(commands.items(), start=1):
        tell(f"{number} {verb:<9}secretballot {shlex.join(words)}")
        printed = io.StringIO()
        with redirect_stdout(printed):
            try:
                program.main(words, prog_name="secretballot")
            except SystemExit as end:  # as every verb ends
                if end.code:
                    raise
        for line in printed.getvalue().splitlines():
            if line.startswith(_SHOWN[verb]):
                tell(f"{'':<11}{line}")
    tell(f"Open {out / 'study' / 'release' / 'report.html'}; repeat any command above.")
    return Answer({"out": str(out), "commands": commands, "said": said})


def _commands(out: Path) -> dict[str, list[str]]:
    """Write the files of the clinic in a new or empty folder, and return the commands by name."""
    from secretballot.data.synthetic import write_clinic

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{str(out)!r} exists; give a new folder, or remove it.")
    write_clinic(out)
    private, public, test = (str(out / f"{name}.csv") for name in ("private", "public", "test"))
    tables, study = [private, public], str(out / "study")
    target = ["--target", "readmitted", "--classes", "no,yes"]
    price = ["--epsilon", "1", "--delta", "1e-6", "--total", "4,1e-5"]
    measured, predicted = ["--evaluate", test], str(out / "predictions.csv")
    return {
        "check": ["check", *tables, *target],
        "learn": ["learn", *tables, *target, *price, *measured, "--out", study],
        "verify": ["verify", study, "--independent"],
        "predict": ["predict", study, test, "--out", predicted, "--overwrite"],
    }
