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

import secretballot
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


def test_all_names_exist():
    for name in MODULES:
        module = importlib.import_module(name)
        assert module.__doc__, f"{name} says nothing about itself"
        declared = getattr(module, "__all__", ())
        assert len(set(declared)) == len(declared)
        for public in declared:
            assert hasattr(module, public), f"{name}.__all__ names {public}"


def test_promised_names_are_there():
    rooms = {room.partition(".")[0] for room in (*PUBLIC_ROOMS, *MORE_ROOMS)}
    assert set(dir(sb)) == {*sb.__all__, *rooms}
    for name in sb.__all__:
        assert getattr(sb, name) is not None
    with pytest.raises(AttributeError):
        _ = sb.nothing_of_the_kind


ALONE = """
import sys
from operator import attrgetter

import numpy as np

import secretballot.core.ledger
from secretballot.core import noise

noise.ready_sampler()
noise.ExactNoise().discrete_gaussian(3.0, 2)
heavy = {"scipy.integrate", "scipy.optimize", "scipy.stats", "sklearn", "pandas"}
assert not heavy & sys.modules.keys()

for room in sys.argv[1:]:
    found = attrgetter(room)(secretballot)
    missing = [name for name in getattr(found, "__all__", ()) if not hasattr(found, name)]
    assert not missing, (room, missing)

X, labels = np.arange(36.0).reshape(18, 2), np.arange(18) % 2
teachers = secretballot.train_teachers("tree", X, labels, classes=[0, 1], n_teachers=3)
teachers.vote(X)
secretballot.TorchClassifier(dict)
assert "torch" not in sys.modules
"""


def test_a_room_is_there_before_anything_was_touched_and_books_wait_for_no_library():
    """A room needs no import of its own, and every name that it promises is found in it, in
    whichever order (`lint-imports` looks for circles); books and noise need no heavy library, and
    teachers of other kinds no torch."""
    rooms = [room for room in (*PUBLIC_ROOMS, *MORE_ROOMS) if room != "core.ledger"]
    subprocess.run([sys.executable, "-c", ALONE, *rooms], check=True, timeout=600)


def test_private_things_state_their_privacy():
    for thing in PRIVATE_THINGS:
        text = inspect.getdoc(thing) or ""
        assert re.search(r"^Privacy$", text, re.MULTILINE), f"{thing} has no Privacy section"


def test_no_path_of_a_machine_is_tracked():
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


def test_only_the_noise_room_reads_entropy():
    sources = {path: path.read_text() for path in (ROOT / "src").rglob("*.py")}
    pattern = re.compile(
        r"os\.urandom|import secrets|from secrets|SystemRandom|getrandom|import opendp|from opendp"
    )
    readers = {path.name for path, text in sources.items() if pattern.search(text)}
    assert readers == {"noise.py"}


def imported_names(path):
    """Return (module, name) of everything that a file imports from the package, wherever in it."""
    return {
        (node.module, alias.name)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("secretballot")
        for alias in node.names
    }


@pytest.mark.parametrize("room", ["benchmarks", "campaigns", "tools"])
def test_what_stands_beside_the_package_imports_what_there_is(room):
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


#: No words of a textbook of the field; `stand-in`, and "to stand for", are.
DIALECT = re.compile(
    r"\b(?:told|tells|stood|house|rooms?|door|dear|dearer|mend|mended|manners"
    r"|stands?\b(?!-in|[ -]+for\b))\b",
    re.IGNORECASE,
)


def test_no_module_gives_a_name_two_values():
    # tools that read code take a constant that is set once more for a variable
    for path in (ROOT / "src").rglob("*.py"):
        assigned = [
            node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Assign)
        ]
        names = [
            name.id for node in assigned for name in node.targets if isinstance(name, ast.Name)
        ]
        assert sorted(names) == sorted(set(names)), path


def test_code_and_pages_are_written_in_plain_words():
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    files += [one for one in (ROOT / "src").rglob("*") if one.suffix in {".py", ".pyi", ".j2"}]
    found = [
        f"{file.relative_to(ROOT)}: {hit[0]}"
        for file in sorted(files)
        for hit in DIALECT.finditer(file.read_text(encoding="utf-8"))
    ]
    assert not found


SOURCE = Path(secretballot.__file__).parent
PRIVATE_SIDE = ("bases", "data", "teachers", "hypotheses", "learners")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
ROUTES = {"alone", "each_alone", "_each_slot", "result_of", "_result_once_seeded", "rows_alone"}
METHODS = {
    "covered",
    "decision_function",
    "errors_on",
    "fit",
    "fit_shards",
    "integers",
    "predict",
    "predict_proba",
    "score",
    "transform",
}
# Functions that catch everything, by the reason.
CATCHES = {
    "a file that cannot be read ends the run": {
        "data/reading.py:_file_system",
        "data/reading.py:_attempt",
    },
    "a file of what can be had again, or of public points": {"teachers/ensemble.py:_read_models"},
    "what an engine fails at ends the run": {
        "teachers/executors.py:_connecting",
        "teachers/executors.py:_dask_workers",
        "teachers/executors.py:_done_by",
        "teachers/executors.py:_run_task",
    },
    "what cannot be pickled is refused, or not kept": {
        "teachers/executors.py:of",
        "teachers/ensemble.py:_pickled_model",
        "teachers/ensemble.py:learner_identity",
    },
    "public points, or settings, alone": {
        "learners/selection.py:_refuse_unfit_candidate",
        "learners/session.py:_problem_of_fit",
    },
}
# Functions that call such a method outside of a callable that a route gets, by the reason.
CALLS = {
    "a basis or a hypothesis of this package, which is exact row by row": {
        "bases/integer_basis.py:transform",
        "hypotheses.py:_labellings",
        "hypotheses.py:errors",
        "hypotheses.py:restrict",
        "learners/labelers.py:relabel",
        "learners/selection.py:private_scores",
    },
    "called by what a route gets": {"teachers/ensemble.py:_named_points"},
    "public points alone": {
        "hypotheses.py:disagreement_coefficient",
        "learners/moments.py:_release",
        "learners/selection.py:_refuse_unfit_candidate",
        "learners/selection.py:_chosen_candidate",
        "learners/selection.py:_chosen_hypothesis",
        "learners/session.py:_problem_of_fit",
        "learners/labelers.py:ask_many",
        "learners/labelers.py:released",
    },
    "a released student": {
        "learners/learner.py:predict",
        "learners/learner.py:predict_log_proba",
        "learners/learner.py:predict_proba",
    },
}


def functions_around(tree):
    """Yield (node, the functions and lambdas around it, the outermost first)."""
    waiting = [(tree, ())]
    while waiting:
        node, around = waiting.pop()
        yield node, around
        inner = (*around, node) if isinstance(node, FUNCTIONS) else around
        waiting += [(child, inner) for child in ast.iter_child_nodes(node)]


def called_name(call):
    """Return the last part of what a call calls."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def handed_over(tree):
    """Return the names of functions, and the lambdas, that stand in the arguments of a route."""
    names, lambdas = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called_name(node) in ROUTES:
            for inner in (part for given in node.args for part in ast.walk(given)):
                if isinstance(inner, ast.Lambda):
                    lambdas.add(inner)
                if isinstance(inner, ast.Name):
                    names.add(inner.id)
                elif isinstance(inner, ast.Attribute) and ast.unparse(inner.value) == "self":
                    names.add(inner.attr)
    return names, lambdas


def place_of(module, around):
    names = [function.name for function in around if not isinstance(function, ast.Lambda)]
    return f"{module}:{names[0] if names else ''}"


def catches_everything(node):
    """Return whether a node is a handler, or a `suppress`, of every exception."""
    if isinstance(node, ast.ExceptHandler):
        caught = [node.type] if node.type is not None else []
        return not caught or any(
            getattr(part, "id", "") in ("Exception", "BaseException")
            for part in ast.walk(caught[0])
        )
    return (
        isinstance(node, ast.Call)
        and called_name(node) == "suppress"
        and any(getattr(given, "id", "") in ("Exception", "BaseException") for given in node.args)
    )


def calls_foreign(node):
    """Return whether a node calls a method of an object that may be anybody's."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    receiver = ast.unparse(node.func.value)
    drawn = node.func.attr == "integers" and ("rng" in receiver or receiver.startswith("np.random"))
    own = receiver in ("super()", "TeacherEnsemble")
    return node.func.attr in METHODS and not drawn and not own


def findings(source, module):
    """Return the places in a module that catch everything, and those that call foreign code."""
    tree = ast.parse(source)
    names, lambdas = handed_over(tree)
    caught, called = set(), set()
    for node, around in functions_around(tree):
        if catches_everything(node):
            caught.add(place_of(module, around))
        handed = any(
            function in lambdas or getattr(function, "name", "") in names for function in around
        )
        if calls_foreign(node) and not handed:
            called.add(place_of(module, around))
    return caught, called


def all_findings():
    caught, called = set(), set()
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).as_posix()
        if module.partition("/")[0].removesuffix(".py") in PRIVATE_SIDE:
            found = findings(path.read_text(), module)
            caught |= found[0]
            called |= found[1]
    return caught, called


def test_nobody_else_catches_everything_or_calls_foreign_code():
    caught, called = all_findings()
    assert caught == set().union(*CATCHES.values())
    assert called == set().union(*CALLS.values())


@pytest.mark.parametrize(
    ("source", "caught", "called"),
    [
        ("def f(b, X):\n    return result_of(lambda: b.integers(X))", False, False),
        ("def f(b, X):\n    def g(r): return b.predict(r)\n    rows_alone(g, X)", False, False),
        ("def f(b, X):\n    return b.transform(X)", False, True),
        ("def f(b, X):\n    with contextlib.suppress(Exception): b.fit(X)", True, True),
        ("def f(b):\n    try: pass\n    except: pass", True, False),
        ("def f(rng):\n    return rng.integers(3)", False, False),
    ],
)
def test_what_the_search_finds(source, caught, called):
    assert [bool(found) for found in findings(source, "m")] == [caught, called]
