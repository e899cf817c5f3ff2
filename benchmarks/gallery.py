"""The pictures of docs/gallery.md, from runs of this machine.

    python benchmarks/gallery.py [FOLDER, docs/assets/gallery]

A release's report and a plan, of the simulated clinic; Table 1, Examples 8 and 9 and Appendix F of
Liu et al. 2021. `make docs` calls it before the site is built; it takes some minutes. Without the
reference data of Appendix F its pictures are left out, and the page says so in their place.
"""

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from appendix_f import Sizes, margins_picture, study, sums_picture
from public_data import adult
from secretballot import theory
from secretballot.exceptions import DataError
from secretballot.report.pictures import BLUE, ORANGE, Picture, grid

#: Figures of the report that are shown, by their headings.
REPORT = ("budget", "moments", "columns", "confidence")
SEEDS = range(3)
MARGIN = 0.1  # of Example 9
TEACHERS = (1, 3, 5, 9, 15, 25, 45, 75, 151, 251, 501)


def examples_picture() -> Picture:
    """Examples 8 and 9: the error of a vote of more and more teachers, and that of one."""
    shown = (
        ("Example 8: errors coincide", theory.voting_fails(), ORANGE),
        ("Example 9: errors cancel", theory.voting_wins(MARGIN), BLUE),
    )

    def paint(axes: Any) -> None:
        for name, example, colour in shown:
            errors = [example.voting_error(n) for n in TEACHERS]
            axes.plot(TEACHERS, errors, "o-", color=colour, label=f"{name}, the vote")
            axes.axhline(example.teacher_error, color=colour, linestyle="--", linewidth=0.9)
        axes.set(xscale="log", xlabel="teachers (dashed: one of them)", ylabel="error", ylim=(0, 1))
        axes.set_xticks(TEACHERS[::2], [str(n) for n in TEACHERS[::2]])
        axes.minorticks_off()
        axes.legend(frameon=False, loc="upper left")
        grid(axes, "both")

    return Picture("examples-8-9", 3.2, paint)


def report_figures(page: str) -> dict[str, str]:
    """Return the pictures of a report by the names of their headings, each as an SVG file."""
    found = re.findall(r'aria-labelledby="h-(\w+) [^>]*>.*?(<svg .*?</svg>)', page, re.DOTALL)
    return {
        name: svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        for name, svg in found
    }


def clinic(folder: Path, out: Path) -> None:
    """Run the demonstration and a plan for it, and keep their pictures."""
    program, demo = [sys.executable, "-m", "secretballot"], folder / "demo"
    subprocess.run([*program, "demo", "--out", demo], check=True)
    tables = [demo / "public.csv", "--like", demo / "test.csv", "--target", "readmitted"]
    price = ["--n-records", "20000", "--epsilon", "1", "--delta", "1e-6", "--out", folder / "plan"]
    subprocess.run([*program, "plan", *tables, *price], check=True)
    figures = report_figures((demo / "study" / "release" / "report.html").read_text("utf-8"))
    for name in REPORT:
        (out / f"report-{name}.svg").write_text(figures[name], "utf-8")
    (out / "plan.svg").write_bytes((folder / "plan" / "frontier.svg").read_bytes())


def papers(out: Path) -> None:
    """Draw what the papers show."""
    pictures = {"examples": examples_picture()}
    try:
        frame = pd.concat(list(adult()), ignore_index=True)
    except DataError as error:
        print(f"Appendix F is left out: {error}", file=sys.stderr)
    else:
        findings = [study(frame, Sizes(), seed) for seed in SEEDS]
        pictures |= {"margins": margins_picture(findings), "sums": sums_picture(findings)}
    for name, picture in pictures.items():
        (out / f"{name}.svg").write_bytes(picture.svg())


def main(out: Path) -> None:
    """Make all pictures."""
    out.mkdir(parents=True, exist_ok=True)
    papers(out)
    with TemporaryDirectory() as folder:
        clinic(Path(folder), out)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/assets/gallery"))
