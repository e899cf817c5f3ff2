"""What a verb shows: notes and progress while it works, on standard error, and how it ends: exit
code, texts for a person or an object for a machine, no traceback."""

import errno
import functools
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import jinja2
import typer
from markupsafe import Markup

from secretballot._validation import JsonView, kind_and_line, plain_line, without_controls
from secretballot.core.errors import BrokenOffError, UnknownEndError
from secretballot.exceptions import (
    Argument,
    BudgetError,
    CertificateError,
    DataError,
    LedgerError,
    Parameter,
    ParameterError,
    ResourceError,
    SamplerError,
    SecretBallotError,
)

if TYPE_CHECKING:
    from secretballot.runs.questions import Caution, Note, Watch


DONE, _DEFECT, BAD_INPUT, BUDGET_REFUSED = 0, 1, 2, 3
NOT_VERIFIED, _NOT_CONFIRMED, FOUND, _FAILED, _INTERRUPTED = 4, 5, 6, 7, 130

#: What the exit codes mean, for the help text.
EXIT_CODES = (
    "Exit codes: 0 done, 1 a defect of the program, 2 bad input or an unanswered question,"
    " 3 budget refused or queries answered in part, 4 the certificate does not verify,"
    " 5 the second program is undecided, 6 an audit found a violation, 7 memory, disk, database,"
    " network or sampler failed: repeat the command, it is charged once, 130 interrupted."
)

# typer bundles click or depends on it, according to its version; either way its bad parameter is a
# usage error.
_UsageError = typer.BadParameter.__mro__[1]
_ClickError = typer.BadParameter.__mro__[2]

_KINDS: tuple[tuple[Any, str, int], ...] = (
    (BudgetError, "budget", BUDGET_REFUSED),
    (CertificateError, "certificate", NOT_VERIFIED),
    (BrokenOffError | UnknownEndError, "ledger", _FAILED),
    (LedgerError, "ledger", BAD_INPUT),
    (SamplerError, "sampler", _FAILED),
    (ParameterError, "parameter", BAD_INPUT),
    (DataError, "data", BAD_INPUT),
    (ResourceError, "system", _FAILED),
    (SecretBallotError, "input", BAD_INPUT),
)
#: Of a path that is wrong the next time, too.
_WRONG_PLACES = (
    *(FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError),
    PermissionError,
)


@dataclass
class Running:
    """The verb that runs: its name, the options that messages may name, and who is notified."""

    verb: str = ""
    options: set[str] = field(default_factory=set)
    watch: "Watch | None" = None


RUNNING = Running()


@dataclass(frozen=True)
class Answer:
    """What a verb found.

    Attributes
    ----------
    document : mapping
        For machines.
    text : str
        Name of the text that a person sees; none where it was shown already.
    facts : tuple
        What that text takes.
    code : int
        Exit code.
    """

    document: JsonView
    text: str = ""
    facts: tuple[Any, ...] = ()
    code: int = DONE


@dataclass(frozen=True)
class _Failure:
    """Why a verb did not finish.

    Attributes
    ----------
    error : str
        One sentence.
    kind : str
        One word for machines.
    exit_code : int
    parameter : str or None
        Name in Python of the parameter that is at fault, where it is one parameter's.
    """

    error: str
    kind: str
    exit_code: int
    parameter: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "error", plain_line(self.error))


def option_of(name: str) -> str:
    """Return the option of a setting."""
    return f"--{name.replace('_', '-')}"


def _as_options(error: SecretBallotError) -> str:
    """Return the message of an error with options where it names parameters of which the verb has
    one: ``epsilon`` becomes ``--epsilon``, and a value for a setting without an option ``--set``.
    Text stays as it is, whatever names are quoted in it."""
    from secretballot.runs.spec import groups

    def part_of(part: str | Parameter | Argument) -> str:
        if isinstance(part, str):
            return part
        option, value = option_of(part.name), getattr(part, "value", None)
        if option in RUNNING.options:
            return option if value is None or value is True else f"{option} {value}"
        is_setting = "--set" in RUNNING.options and part.name in groups()
        return f"--set {part.name}={value}" if is_setting and value is not None else str(part)

    return "".join(map(part_of, error.parts))


def failure_of(error: BaseException) -> _Failure:
    """Return what to say of an exception, on one line; of one unforeseen, only its type and place.

    The message of a foreign exception may quote a private cell, so it is not shown.
    """
    # Only messages that this package wrote are shown as they are.
    for kind, word, code in _KINDS:
        if isinstance(error, kind):
            return _Failure(_as_options(error), word, code, error.parameter)
    if isinstance(error, _ClickError):
        return _Failure(_usage_sentence(error), "usage", BAD_INPUT)
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        said = "Interrupted; repeat the same command to go on."
        return _Failure(said, "interrupted", _INTERRUPTED)
    if isinstance(error, MemoryError):
        said = "The memory of this machine is not enough; give fewer rows or columns."
        return _Failure(said, "system", _FAILED)
    if isinstance(error, _WRONG_PLACES) and error.filename is not None:
        place, why = os.fsdecode(error.filename), error.strerror
        return _Failure(f"{place!r} cannot be used ({why}); correct the path.", "data", BAD_INPUT)
    if isinstance(error, OSError):
        return _Failure(_system_sentence(error), "system", _FAILED)
    said = (
        f"A defect of the program ({kind_and_line(error)}), whose details are withheld since they"
        " might quote private data; please report it."
    )
    return _Failure(said, "defect", _DEFECT)


def _usage_sentence(error: Any) -> str:
    """Return what the parser of the command line says; of an option that is none also how settings
    without one are given."""
    said = " ".join(str(getattr(error, "format_message", lambda: error)()).split())
    said = said.replace(": Value error, ", ": ", 1)  # the name of a kind of exception
    parameters = [] if error.ctx is None else error.ctx.command.params
    by_set = any("--set" in one.opts for one in parameters)
    more = " A setting without an option is given by --set NAME=VALUE; --help-all lists them."
    return said + (more if by_set and type(error).__name__ == "NoSuchOption" else "")


def guarded(work: Callable[[], object], *, as_json: bool) -> int:
    """Do the work of a verb and return its exit code, having reported what went wrong."""
    try:
        outcome = work()
        code = outcome if isinstance(outcome, int) else DONE
        if code == _INTERRUPTED:
            raise KeyboardInterrupt
        _write_out()
        return code
    except (Exception, KeyboardInterrupt) as error:
        failure = failure_of(error)
    with suppress(OSError):
        print(f"secretballot: {failure.error}", file=sys.stderr)
        # whoever reads the output as JSON finds one object in any case
        if as_json:
            print_json(vars(failure), failure.exit_code)
        _write_out()
    return failure.exit_code


def _write_out() -> None:
    """Write what is left in the buffers of the standard streams.

    Raises
    ------
    OSError
        If the output cannot be written, unless its reader has left.
    """
    for stream in (sys.stderr, sys.stdout):
        try:
            stream.flush()
        except OSError as error:
            # the interpreter would try again at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if stream is sys.stdout and not isinstance(error, BrokenPipeError):
                raise


def say(text: str, *, keep: str = "") -> None:
    """Print text for a person; control characters in names are written out, but those to keep."""
    print(without_controls(text, keep=keep))


def print_json(document: JsonView, code: int) -> None:
    """Print what a verb found, or why it did not finish, as one JSON object: the verb, its exit
    code, and its notes, but for those that depend on private data, beside what is its own."""
    notes = [] if RUNNING.watch is None else RUNNING.watch.notes
    said = [note.text for note in notes if not note.private]
    envelope = {"verb": RUNNING.verb, "exit_code": code, "notes": said, **document}
    # what a terminal may obey, or cannot show, is written as an escape
    print(json.dumps(envelope, indent=2, allow_nan=False).replace("\x7f", "\\u007f"))


def _system_sentence(error: OSError) -> str:
    place = f" ({os.fsdecode(error.filename)})" if isinstance(error.filename, str | bytes) else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            f"The disk is full{place}; free space and repeat the command: what was paid for is kept"
            " in the ledger."
        )
    return f"The system refused{place}: {error.strerror or type(error).__name__}."


# --- texts: the macros of `texts.txt.j2`, line by line ---


def _on_one_line(value: Any) -> Any:
    """Return a value for a text: a name from anybody's file begins no line of its own."""
    plain = not isinstance(value, str) or isinstance(value, Markup)
    return value if plain else without_controls(value)


@functools.cache
def _texts() -> Any:
    from secretballot.report.certificate_models import total_price

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_on_one_line,
    )
    environment.filters |= {
        "g": lambda number, digits=6: number if number == "-" else f"{number:.{digits}g}",
        "fixed": lambda number, digits=3: "-" if number is None else f"{number:.{digits}f}",
        "interval": lambda one, form: f"{one.low:{form}} to {one.high:{form}}",
        "signed": lambda number: f"{number:+.4f}",
        "count": lambda number: f"{number:,}",
        "amount": lambda number: f"{number:,}" if number not in (None, 0, "-") else "-",
        # to the right, or to the left of a negative width
        "cell": lambda value, width: f"{value!s:{'<' if width < 0 else '>'}{abs(width)}}",
        "repr": repr,
        "lines": Markup,  # of a macro, whose own values were made harmless
    }
    environment.filters["price"] = lambda one: "{:g}, {:g}".format(*total_price(one))
    environment.globals["zip"] = zip
    text = files("secretballot.cli").joinpath("texts.txt.j2").read_text("utf-8")
    return environment.from_string(text).module


def show(name: str, *facts: Any) -> None:
    """Print a text."""
    for line in str(getattr(_texts(), name)(*facts)).splitlines():
        say(line.rstrip())


@contextmanager
def watching() -> Iterator["Watch"]:
    """Give a watch that shows notes, and progress where standard error is a terminal; its notes go
    into the answer."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn

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
