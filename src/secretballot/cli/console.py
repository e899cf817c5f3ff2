"""What a person sees while a verb works, on standard error: notes and, on a terminal, progress."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn

from secretballot.cli.outcome import RUNNING

if TYPE_CHECKING:
    from secretballot.runs.questions import Caution, Note, Watch


@contextmanager
def watching() -> Iterator["Watch"]:
    """Give a watch that shows notes, and progress where standard error is a terminal; its notes go
    into the answer."""
    from secretballot.runs.questions import Watch

    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    columns = (SpinnerColumn(), *Progress.get_default_columns())
    bar = Progress(*columns, console=console, transient=True)

    # A note that depends on private data says so, lest it be copied into what is published.
    def tell(note: "Note") -> None:
        # a run that is paid for goes on, whether its notes can be written or not
        with suppress(OSError):
            console.print(f"{'curator only' if note.private else 'note'}: {note.text}")

    def ask(questions: "list[Caution]") -> "dict[Caution, str]":
        # only somebody who sees the questions and can type an answer is asked
        answers: dict[Caution, str] = {}
        if not (console.is_terminal and sys.stdin is not None and sys.stdin.isatty()):
            return answers
        bar.stop()
        s = "s" if len(questions) > 1 else ""
        console.print(f"{len(questions)} question{s} before anything is spent:")
        for number, one in enumerate(questions, start=1):
            console.print(f"{number} {'curator only: ' if one.private else ''}{one.text}")
        for number, one in enumerate(questions, start=1):
            if one.name == "total":
                answers[one] = typer.prompt(f"{number} Limit, as epsilon,delta", err=True)
            elif typer.confirm(f"{number} Go on all the same?", err=True):
                answers[one] = "yes"
            else:
                break
        bar.start()
        return answers

    def step(text: str) -> None:
        for task in bar.task_ids:
            bar.remove_task(task)
        bar.add_task(text, total=None)

    def progress(done: int, total: int) -> None:
        for task in bar.task_ids:
            bar.update(task, completed=done, total=total)

    RUNNING.watch = Watch(step=step, progress=progress, tell=tell, ask=ask)
    # a bar that is switched off still ends with an empty line in some versions of rich
    with bar if console.is_terminal else nullcontext():
        yield RUNNING.watch
