"""Nobody but `secretballot.foreign_code` calls foreign code on private rows: held over the syntax
trees of the packages that meet private rows."""

import ast
from pathlib import Path

import pytest

import secretballot

SOURCE = Path(secretballot.__file__).parent
PRIVATE_SIDE = ("bases", "data", "teachers", "hypotheses", "learners")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
ROUTES = {"alone", "each_alone", "each_slot", "result_of", "result_once_seeded", "rows_alone"}
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
        "data/sources.py:_file_system",
        "data/sources.py:attempt",
    },
    "a file of what can be had again, or of public points": {"teachers/ensemble.py:_read_models"},
    "what an engine fails at ends the run": {
        "teachers/executors.py:_connecting",
        "teachers/executors.py:_dask_workers",
        "teachers/executors.py:_done_by",
        "teachers/executors.py:run_task",
    },
    "what cannot be pickled is refused, or not kept": {
        "teachers/executors.py:of",
        "teachers/ensemble.py:pickled_model",
        "teachers/ensemble.py:learner_identity",
    },
    "public points, or settings, alone": {
        "learners/selection.py:_refuse_unfit_candidate",
        "learners/training/trained.py:problem_of_fit",
    },
}
# Functions that call such a method outside of a callable that a route gets, by the reason.
CALLS = {
    "a basis or a hypothesis of this package, which is exact row by row": {
        "bases/integer_basis.py:transform",
        "hypotheses/base.py:_labellings",
        "hypotheses/base.py:errors",
        "hypotheses/base.py:restrict",
        "learners/labelers/relabel.py:relabel",
        "learners/selection.py:private_scores",
    },
    "called by what a route gets": {
        "teachers/ensemble.py:predicted",
        "teachers/training.py:_named_points",
        "teachers/training.py:_predicted_numbers",
    },
    "public points alone": {
        "hypotheses/base.py:disagreement_coefficient",
        "learners/moments/estimators.py:_release",
        "learners/selection.py:_refuse_unfit_candidate",
        "learners/selection.py:_chosen_candidate",
        "learners/selection.py:_chosen_hypothesis",
        "learners/training/trained.py:problem_of_fit",
        "learners/labelers/labeler.py:ask_many",
        "learners/labelers/labeler.py:released",
    },
    "a released student": {
        "learners/training/learner.py:predict",
        "learners/training/learner.py:predict_log_proba",
        "learners/training/learner.py:predict_proba",
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
    for package in PRIVATE_SIDE:
        for path in sorted((SOURCE / package).rglob("*.py")):
            module = path.relative_to(SOURCE).as_posix()
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
