"""The examples of README.md and docs/ run as they stand: Python blocks, and the commands of this
program.

A page is run from top to bottom in an empty folder with a few small files, all its Python blocks in
one namespace. In a console block a line ``$ secretballot ...`` is run; lines after it, if there are
any, are its output, in which ``...`` stands for anything; ``$ echo $?`` asks for the exit code,
which is 0 where nobody asks. A comment ``<!-- not run: reason -->`` on the line before a block
leaves it out, and ``<!-- run with: module, module -->`` where one of these is not installed.
"""

import doctest
import re
import shlex
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from patients import rows
from quick_plans import quick_forecasts
from secretballot.cli import app

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "src/secretballot/core"
PAGES = [
    page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if page.is_file()
]
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

FENCE = re.compile(r"^ {0,3}```\s*(\w*)\s*$")
LEFT_OUT = re.compile(r"^<!-- not run: \S.* -->$")
RUN_WITH = re.compile(r"^<!-- run with: (\w+(?:, \w+)*) -->$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the number of its first line, its lines, and whether it is
    to be run."""

    language: str
    line: int
    lines: tuple[str, ...]
    run: bool


def is_run(comment):
    """Return whether a block after this line is to be run here."""
    needed = RUN_WITH.match(comment)
    modules = needed.group(1).split(", ") if needed else []
    return LEFT_OUT.match(comment) is None and all(map(find_spec, modules))


def blocks_of(text):
    """Yield the fenced blocks of a page."""
    lines, opened, language, run = text.splitlines(), None, "", True
    for number, line in enumerate(lines, start=1):
        fence = FENCE.match(line)
        if fence and opened is None:
            before = next(
                (above.strip() for above in reversed(lines[: number - 1]) if above.strip()), ""
            )
            opened, language, run = number, fence.group(1), is_run(before)
        elif fence and opened is not None:
            yield Block(language, opened + 1, tuple(lines[opened : number - 1]), run)
            opened = None
    assert opened is None, f"the block that opens in line {opened} is never closed"


def commands_of(block):
    """Yield the commands of this program in a console block, those of others are for the reader:
    line, words, the output that the page shows, and the exit code that it states."""
    prompt = []
    for number, line in enumerate(block.lines, start=block.line):
        if line.startswith("$ "):
            prompt.append((number, line[2:], []))
        elif prompt and prompt[-1][1].endswith("\\"):
            number, start, shown = prompt[-1]
            prompt[-1] = (number, start.removesuffix("\\") + line, shown)
        elif prompt:
            prompt[-1][2].append(line)
    following = [*prompt[1:], (0, "", [])]
    for (number, typed, shown), (_, after, answer) in zip(prompt, following, strict=True):
        if typed.startswith("secretballot "):
            code = int(answer[0]) if after == "echo $?" else 0
            yield number, shlex.split(typed)[1:], "\n".join(shown), code


def write_files(folder):
    """Write what the pages name: records of patients, public records, a labelled test, a
    labelled stand-in, and votes on cases."""
    for name, count in (("patients", 2000), ("test", 200), ("last-year", 500)):
        rows(count, count).to_csv(folder / f"{name}.csv", index=False)
    rows(300, 5)[["age", "ward", "dose"]].to_csv(folder / "public.csv", index=False)
    rng = np.random.default_rng(5)
    for_yes = rng.binomial(250, np.where(rng.random(400) < 0.5, 0.1, 0.9))
    np.save(folder / "counts.npy", np.stack([250 - for_yes, for_yes], axis=1))


def run_python(page, block, names):
    """Run a block; a traceback names the page and the line in it."""
    source = "\n" * (block.line - 1) + "\n".join(block.lines) + "\n"
    exec(compile(source, str(page), "exec"), names)


def run_command(page, line, words, shown, code):
    """Run a command and compare exit code and output with what the page says."""
    result = CliRunner().invoke(app, words, prog_name="secretballot")
    place = f"{page.name}, line {line}"
    assert result.exit_code == code, f"{place}: exit code {result.exit_code}\n{result.output}"
    found = result.stdout if code == 0 else result.output
    same = doctest.OutputChecker().check_output(shown + "\n", found, LOOSELY)
    assert same or not shown.strip(), f"{place}:\n{found}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run_as_they_stand(page, tmp_path, monkeypatch):
    blocks = [block for block in blocks_of(page.read_text(encoding="utf-8")) if block.run]
    if blocks:  # most pages are text alone
        write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    with quick_forecasts():  # plans are read, and not judged
        for block in blocks:
            if block.language == "python":
                run_python(page, block, names)
            elif block.language == "console":
                for command in commands_of(block):
                    run_command(page, *command)


def test_the_page_of_the_core_lists_its_modules():
    listed = re.findall(r"^\| (`.+?) \|", (CORE / "README.md").read_text(), re.MULTILINE)
    modules = {path.stem for path in CORE.glob("*") if path.suffix in (".py", "")}
    found = re.findall(r"\w+", " ".join(listed))
    assert sorted(found) == sorted(modules - {"__init__", "__pycache__"})


def test_tests_and_files_that_pages_name_are_there():
    tests = (ROOT / "tests").rglob("test_*.py")
    known = {
        name
        for path in tests
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    files = {
        f"/{path.relative_to(ROOT)}"
        for top in ("src", "tests", "docs", "benchmarks", "campaigns")
        for path in (ROOT / top).rglob("*.*")
    }
    for page in (*PAGES, CORE / "README.md"):
        for code in re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8")):
            path, _, name = code.rpartition("::")
            if name.startswith("test_") and not name.endswith(".py"):
                assert name in known, f"{page.name} names {name}"
                assert not path or f"def {name}" in (ROOT / path).read_text(), (
                    f"{page.name} names {code}"
                )
            elif re.fullmatch(r"[\w-]+/[\w/.-]+\.(py|md)", code):
                assert any(path.endswith(f"/{code}") for path in files), f"{page.name} names {code}"
