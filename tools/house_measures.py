"""Measure how the code reads: rooms, comments, names, lines, docstrings.

    python tools/house_measures.py [--check] [SOURCE_FOLDER [ROOM ...]]

Prints one row for each measurement. Code lines are lines that are neither blank, comment nor
docstring. A room is a folder below SOURCE_FOLDER; with rooms given, only their files are measured.
With --check, prints the rows that are beyond their bounds alone, and ends with code 1 if there are
any.
"""

import ast
import io
import math
import re
import sys
import tokenize
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
LONG_FUNCTION = 20
SMALL_FILE = 60
# measurements that `make check` holds, with the least and the largest figure
BOUNDS = {
    "comment lines per 100 code lines": (4.0, 12.0),
    f"functions of {LONG_FUNCTION}+ lines with a comment": (85, 100),
    "private helpers with a one-word name": (0, 3),
    "nested ternaries": (0, 0),
    "public functions that raise, with Raises": (96, 100),
    "public functions that take arrays, with shapes": (80, 100),
}
ARRAY_NAMES = {"X", "y", "votes", "counts", "labels", "queries", "points", "rows", "X_public"}


@dataclass
class SourceFile:
    """One Python file: its text, its syntax tree, and which of its lines are code."""

    path: Path
    text: str = field(repr=False)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def functions(self) -> list[Function]:
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]

    @cached_property
    def comment_lines(self) -> set[int]:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return {token.start[0] for token in tokens if token.type == tokenize.COMMENT}

    @cached_property
    def docstring_lines(self) -> set[int]:
        lines: set[int] = set()
        for node in (self.tree, *self.functions, *self.classes):
            if ast.get_docstring(node, clean=False) is not None:
                first = node.body[0]
                lines |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
        return lines

    @cached_property
    def code_lines(self) -> set[int]:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        blank = {
            tokenize.COMMENT,
            tokenize.NL,
            tokenize.NEWLINE,
            tokenize.INDENT,
            tokenize.DEDENT,
            tokenize.ENDMARKER,
        }
        lines: set[int] = set()
        for token in tokens:
            if token.type not in blank:
                lines |= set(range(token.start[0], token.end[0] + 1))
        return lines - self.docstring_lines

    def code_in(self, node: Function) -> int:
        return len(self.code_lines & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)))


def percent(part: int, whole: int) -> str:
    """Return a share in percent, or a dash where there is nothing to share."""
    return f"{100 * part / whole:.0f} %" if whole else "-"


def is_nested(node: ast.IfExp) -> bool:
    """Return whether a conditional expression holds another as one of its two values."""
    return isinstance(node.body, ast.IfExp) or isinstance(node.orelse, ast.IfExp)


def has_public_name(node: ast.ClassDef | Function) -> bool:
    return not node.name.startswith("_")


def takes_arrays(node: Function) -> bool:
    """Return whether a parameter has the name or the annotation of an array."""
    parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    annotations = [
        ast.unparse(parameter.annotation) for parameter in parameters if parameter.annotation
    ]
    return any("Array" in text or "ndarray" in text for text in annotations) or any(
        parameter.arg in ARRAY_NAMES for parameter in parameters
    )


def raises_itself(node: Function) -> bool:
    return any(isinstance(inner, ast.Raise) for inner in ast.walk(node))


def floors_of(files: list[SourceFile], root: Path) -> dict[str, int]:
    """Return the length of the longest chain of imports among the parts of each room."""
    parts: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for file in files:
        place = file.path.relative_to(root).with_suffix("").parts
        if len(place) < 2:
            continue
        room, part = place[0], place[1]
        parts[room].setdefault(part, set())
        for node in ast.walk(file.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                f"secretballot.{room}"
            ):
                names = (node.module or "").split(".")
                targets = {names[2]} if len(names) > 2 else {alias.name for alias in node.names}
                parts[room][part] |= targets - {part}
    return {room: max(chain_lengths(edges).values(), default=0) for room, edges in parts.items()}


def chain_lengths(edges: dict[str, set[str]]) -> dict[str, int]:
    """Return the number of parts on the longest chain of imports that starts at each part."""
    lengths: dict[str, int] = {}

    def length(part: str) -> int:
        if part not in lengths:
            lengths[part] = 1  # a circle would end here; the import contracts forbid circles
            below = [length(other) for other in edges[part] if other in edges]
            lengths[part] = 1 + max(below, default=0)
        return lengths[part]

    for part in list(edges):
        if part != "__init__":
            length(part)
    return lengths


def measurements(files: list[SourceFile], root: Path) -> list[tuple[str, str]]:
    """Return rows of name and value."""
    code = sum(len(file.code_lines) for file in files)
    comments = sum(len(file.comment_lines) for file in files)
    long_functions = [
        (file, node)
        for file in files
        for node in file.functions
        if file.code_in(node) >= LONG_FUNCTION
    ]
    commented = [
        node
        for file, node in long_functions
        if any(node.lineno <= line <= (node.end_lineno or 0) for line in file.comment_lines)
    ]
    private = [
        node.name
        for file in files
        for node in file.functions
        if re.fullmatch(r"_[a-z0-9_]+", node.name) and not node.name.startswith("__")
    ]
    one_word = [name for name in private if "_" not in name[1:]]
    lines = [line for file in files for line in file.text.splitlines()]
    ternaries = [
        node for file in files for node in ast.walk(file.tree) if isinstance(node, ast.IfExp)
    ]
    nodes = sum(sum(1 for _ in ast.walk(file.tree)) for file in files)
    classes = [node for file in files for node in file.classes if has_public_name(node)]
    shown = [node for node in classes if ">>>" in (ast.get_docstring(node) or "")]
    public = [node for file in files for node in file.functions if has_public_name(node)]
    raising = [node for node in public if raises_itself(node)]
    arrays = [node for node in public if takes_arrays(node)]
    with_raises = [node for node in raising if "Raises" in (ast.get_docstring(node) or "")]
    with_shapes = [node for node in arrays if "shape" in (ast.get_docstring(node) or "")]
    small = [
        file
        for file in files
        if len(file.text.splitlines()) < SMALL_FILE and file.path.name != "__init__.py"
    ]
    rooms: dict[str, int] = defaultdict(int)
    for file in files:
        place = file.path.relative_to(root).parts
        rooms[place[0] if len(place) > 1 else "."] += len(file.code_lines)
    biggest = max(rooms, key=lambda room: rooms[room])
    floors = floors_of(files, root)
    tallest = max(floors, key=lambda room: floors[room], default="-")
    return [
        ("files / code lines", f"{len(files)} / {code}"),
        ("rooms", str(len(rooms))),
        ("biggest room", f"{biggest}: {percent(rooms[biggest], code)} of the code lines"),
        ("inner floors of learners", str(floors.get("learners", 0))),
        ("most inner floors", f"{tallest}: {floors.get(tallest, 0)}"),
        ("comment lines per 100 code lines", f"{100 * comments / code:.1f}"),
        (
            f"functions of {LONG_FUNCTION}+ lines with a comment",
            percent(len(commented), len(long_functions)),
        ),
        ("private helpers with a one-word name", percent(len(one_word), len(private))),
        ("lines over 80 columns", percent(sum(len(line) > 80 for line in lines), len(lines))),
        ("lines over 100 columns", str(sum(len(line) > 100 for line in lines))),
        ("syntax nodes per code line", f"{nodes / code:.1f}"),
        ("ternaries per 1,000 code lines", f"{1000 * len(ternaries) / code:.0f}"),
        ("nested ternaries", str(sum(is_nested(node) for node in ternaries))),
        ("public classes with an example", percent(len(shown), len(classes))),
        (f"files under {SMALL_FILE} lines", str(len(small))),
        ("public functions that raise, with Raises", percent(len(with_raises), len(raising))),
        ("public functions that take arrays, with shapes", percent(len(with_shapes), len(arrays))),
    ]


def is_beyond(name: str, value: str) -> bool:
    """Return whether a row lies outside of its bounds, if it has any."""
    least, largest = BOUNDS.get(name, (-math.inf, math.inf))
    return name in BOUNDS and not least <= float(value.split()[0]) <= largest


def main() -> None:
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    root = Path(arguments[0] if arguments else "src/secretballot")
    rooms = set(arguments[1:])
    paths = sorted(root.rglob("*.py"))
    files = [
        SourceFile(path, path.read_text(encoding="utf-8"))
        for path in paths
        if not rooms or path.relative_to(root).parts[0] in rooms
    ]
    rows = measurements(files, root)
    if "--check" in sys.argv:
        rows = [(name, value) for name, value in rows if is_beyond(name, value)]
        rows = [(name, f"{value}; between {BOUNDS[name]} is asked") for name, value in rows]
    for name, value in rows:
        print(f"{name:48} {value}")
    if "--check" in sys.argv and rows:
        sys.exit(1)


if __name__ == "__main__":
    main()
