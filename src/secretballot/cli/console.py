"""What a person sees while a verb works, on standard error: notes and, on a terminal, progress."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

if TYPE_CHECKING:
    from secretballot.runs.questions import Caution, Note, Watch


@contextmanager
def watching() -> Iterator["Watch"]:
    """Give a watch that shows notes, and progress where standard error is a terminal."""
    from secretballot.runs.questions import Watch

    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)

    # A note that depends on private data says so, lest it be copied into what is published.
    def tell(note: "Note") -> None:
        # a run that is paid for goes on, whether its notes can be written or not
        with suppress(OSError):
            console.print(f"{'curator only' if note.private else 'note'}: {note.text}")

    def ask(caution: "Caution") -> bool:
        # only somebody who sees the question and can type an answer is asked
        if not (console.is_terminal and sys.stdin is not None and sys.stdin.isatty()):
            return False
        console.print(f"{'curator only' if caution.private else 'caution'}: {caution.text}")
        return typer.confirm("Go on all the same?", err=True)

    def ask_total(caution: "Caution") -> str | None:
        if not (console.is_terminal and sys.stdin is not None and sys.stdin.isatty()):
            return None
        console.print(f"caution: {caution.text}")
        return str(typer.prompt("Limit of all releases, as epsilon,delta", err=True))

    # a bar that is switched off still ends with an empty line in some versions of rich
    if not console.is_terminal:
        yield Watch(tell=tell, ask=ask, ask_total=ask_total)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:

        def step(text: str) -> None:
            for task in bar.task_ids:
                bar.remove_task(task)
            bar.add_task(text, total=None)

        def progress(done: int, total: int) -> None:
            bar.update(bar.task_ids[-1], completed=done, total=total)

        def without_bar(asked: Callable[["Caution"], Any], caution: "Caution") -> Any:
            bar.stop()
            try:
                return asked(caution)
            finally:
                bar.start()

        yield Watch(
            step=step,
            progress=progress,
            tell=tell,
            ask=partial(without_bar, ask),
            ask_total=partial(without_bar, ask_total),
        )
