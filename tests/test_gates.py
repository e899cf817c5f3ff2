"""Gates: public names, docstring headings, help of every verb, and the walls between the rooms."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import secretballot as sb
from public_rooms import MORE_ROOMS, PUBLIC_ROOMS
from secretballot.core.private import RecordSums, Scores, Votes
from secretballot.core.releasing import AnswerStream

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(sb.__path__, "secretballot.")
    if not module.name.endswith("__main__")
)
PRIVATE_THINGS = [
    sb.release,
    sb.PATEClassifier,
    sb.PATERegressor,
    sb.releasing.release_table,
    sb.SemiPrivateClassifier,
    sb.RecordVotesClassifier,
    sb.RecordMomentsClassifier,
    sb.RecordMomentsRegressor,
    sb.Ledger,
    sb.Labeler,
    sb.LabelingSession,
    sb.choose_candidate,
    sb.estimate_stability,
    sb.hold_out,
    sb.relabel,
    sb.train_teachers,
    AnswerStream,
    Votes.of_teachers,
    Votes.of_records,
    RecordSums.of_products,
    RecordSums.of_labels,
    Scores.of_candidates,
    Scores.of_ranges,
]


def test_all_names_exist() -> None:
    for name in MODULES:
        module = importlib.import_module(name)
        assert module.__doc__, f"{name} says nothing about itself"
        declared = getattr(module, "__all__", ())
        assert len(set(declared)) == len(declared)
        for public in declared:
            assert hasattr(module, public), f"{name}.__all__ names {public}"


def test_promised_names_are_there() -> None:
    rooms = {room.partition(".")[0] for room in (*PUBLIC_ROOMS, *MORE_ROOMS)}
    assert set(dir(sb)) == {*sb.__all__, *rooms}
    for name in sb.__all__:
        assert getattr(sb, name) is not None
    with pytest.raises(AttributeError):
        _ = sb.nothing_of_the_kind


def test_a_room_is_there_before_anything_was_touched() -> None:
    """A room needs no import of its own, and every name that it promises is found in it."""
    code = """
import sys
from operator import attrgetter

for room in sys.argv[1:]:
    for name in [name for name in sys.modules if name.partition(".")[0] == "secretballot"]:
        del sys.modules[name]
    import secretballot
    found = attrgetter(room)(secretballot)
    missing = [name for name in getattr(found, "__all__", ()) if not hasattr(found, name)]
    assert not missing, (room, missing)

for name in [name for name in sys.modules if name.partition(".")[0] == "secretballot"]:
    del sys.modules[name]
import secretballot.learners.pate.estimators
assert callable(secretballot.release)  # the function wins over any module of its name
"""
    rooms = [room for room in (*PUBLIC_ROOMS, *MORE_ROOMS) if room != "core.ledger"]
    subprocess.run([sys.executable, "-c", code, *rooms], check=True, timeout=600)


def test_importing_the_package_is_cheap() -> None:
    code = "import sys, secretballot; sys.exit('sklearn' in sys.modules or 'opendp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "work",
    [
        "import secretballot.core.ledger",
        "from secretballot.core import noise; noise.ready_sampler();"
        " noise.ExactNoise().discrete_gaussian(3.0, 2)",
    ],
    ids=["books", "noise"],
)
def test_books_and_noise_wait_for_no_library_that_they_do_not_need(work: str) -> None:
    heavy = {"scipy.integrate", "scipy.optimize", "scipy.stats", "sklearn", "pandas"}
    code = f"import sys; {work}; print(sorted({heavy!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_private_things_state_their_privacy() -> None:
    for thing in PRIVATE_THINGS:
        text = inspect.getdoc(thing) or ""
        assert re.search(r"^Privacy$", text, re.MULTILINE), f"{thing} has no Privacy section"


def test_no_path_of_a_machine_is_tracked() -> None:
    hits = subprocess.run(
        ["git", "grep", "-nE", r"/(home|root|Users)/[a-z]", "--", ".", ":!tests/test_gates.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if hits.returncode == 128:
        pytest.skip("not a git checkout")
    assert hits.stdout == ""


def test_only_the_noise_room_reads_entropy() -> None:
    sources = {path: path.read_text() for path in (ROOT / "src").rglob("*.py")}
    pattern = re.compile(
        r"os\.urandom|import secrets|from secrets|SystemRandom|getrandom|import opendp|from opendp"
    )
    readers = {path.name for path, text in sources.items() if pattern.search(text)}
    assert readers == {"noise.py"}


def imported_names(path: Path) -> set[tuple[str, str]]:
    """Return (module, name) of everything that a file imports from the package, wherever in it."""
    return {
        (node.module, alias.name)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("secretballot")
        for alias in node.names
    }


@pytest.mark.parametrize("room", ["benchmarks", "campaigns", "tools"])
def test_what_stands_beside_the_package_imports_what_there_is(room: str) -> None:
    # campaigns and benchmarks run for hours, and import some of it late
    found = {
        (path.name, *one) for path in (ROOT / room).rglob("*.py") for one in imported_names(path)
    }
    assert found or room == "tools"
    for file, module, name in sorted(found):
        loaded = importlib.import_module(module)
        try:
            known = hasattr(loaded, name) or bool(importlib.import_module(f"{module}.{name}"))
        except ModuleNotFoundError:
            known = False
        assert known, f"{file}: {module} has no {name}"


def test_no_two_files_of_tests_have_one_name() -> None:
    """Pytest loads them by their bare names, and the second of two would not be run at all."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(names) == len(set(names))


#: No words of a textbook of the field; `stand-in`, and "to stand for", are.
DIALECT = re.compile(
    r"\b(?:told|tells|stood|house|rooms?|door|dear|dearer|mend|mended|manners"
    r"|stands?\b(?!-in|[ -]+for\b))\b",
    re.IGNORECASE,
)


def test_code_and_pages_are_written_in_plain_words() -> None:
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    files += [one for one in (ROOT / "src").rglob("*") if one.suffix in {".py", ".pyi", ".j2"}]
    found = [
        f"{file.relative_to(ROOT)}: {hit[0]}"
        for file in sorted(files)
        for hit in DIALECT.finditer(file.read_text(encoding="utf-8"))
    ]
    assert not found
