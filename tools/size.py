"""Print the size of the project, and check that it does not grow.

    python tools/size.py [--check]

Code lines are neither blank, comment nor docstring. Syntax nodes are those of `ast`. Public names
are functions, classes and constants at the top of a module, without a leading underscore. Words
are those of all Markdown files in `docs`. With --check, syntax nodes and words are compared with
`tools/size.json`, which only goes down; a commit that must raise it says why.
"""

import ast
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIMITS = ROOT / "tools" / "size.json"
WITH_DOCSTRING = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(text: str, tree: ast.Module) -> int:
    """Return the number of lines that are neither blank, comment nor docstring."""
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            docstrings |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in docstrings
        for number, line in enumerate(text.splitlines(), 1)
    )


def public_names(tree: ast.Module) -> set[str]:
    """Return the public names that a module defines at its top."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def measure() -> dict[str, int]:
    """Return every figure by its name."""
    texts = [path.read_text() for path in sorted((ROOT / "src").rglob("*.py"))]
    trees = [ast.parse(text) for text in texts]
    tests = (ROOT / "tests").rglob("*.py")
    pages = (ROOT / "docs").rglob("*.md")
    return {
        "code lines": sum(map(code_lines, texts, trees)),
        "syntax nodes": sum(1 for tree in trees for _ in ast.walk(tree)),
        "files": len(texts),
        "public names": sum(len(public_names(tree)) for tree in trees),
        "lines of tests": sum(len(path.read_text().splitlines()) for path in tests),
        "words of docs": sum(len(path.read_text().split()) for path in pages),
    }


def main() -> int:
    """Print the figures; return 1 if one is above its limit."""
    figures = measure()
    limits = json.loads(LIMITS.read_text())
    for name, figure in figures.items():
        limit = f"  (at most {limits[name]:,})" if name in limits else ""
        print(f"{name:<16}{figure:>9,}{limit}")
    above = [name for name, limit in limits.items() if figures[name] > limit]
    if "--check" in sys.argv and above:
        print(f"{', '.join(above)}: above the limit of tools/size.json; remove something.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
