"""What the machine fails at ends a run; only what a shard's own content raises becomes a fixed
vote. Code that fails at one private record moves no other."""

import errno
import pickle
import signal
import sys
import traceback
from concurrent.futures import BrokenExecutor, CancelledError
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

import secretballot as sb
from ensembles import ensemble_of
from secretballot.exceptions import ParameterError, ResourceError
from secretballot.foreign_code import resource_failure, result_of, rows_alone
from secretballot.hypotheses import FiniteClass, HypothesisClass
from secretballot.learners.labelers import relabel
from secretballot.learners.selection import private_scores
from secretballot.teachers.votes import guarantee_of

MARK = "private 4711"
K = 4
RNG = np.random.default_rng(0)
X, X_PUBLIC = RNG.normal(size=(40, 2)), RNG.normal(size=(30, 2))
Y, SHARDS = np.arange(40) % 2, np.arange(40) // 2 % K

MACHINE = {
    "memory": lambda: MemoryError(MARK),
    "array memory": lambda: np.linalg.LinAlgError("Unable to allocate 3 GiB"),
    "files": lambda: OSError(errno.EMFILE, "Too many open files"),
    "swap": lambda: OSError(errno.ENOMEM, "Cannot allocate memory"),
    "disk": lambda: OSError(errno.ENOSPC, "No space left on device"),
    "time": lambda: TimeoutError(MARK),
    "pipe": lambda: BrokenPipeError(MARK),
    "threads": lambda: RuntimeError("can't start new thread"),
    "card": lambda: RuntimeError("CUDA out of memory"),
    "stack": lambda: RecursionError("maximum recursion depth exceeded"),
    "library": lambda: ImportError("cannot open shared object file"),
    "pool": lambda: BrokenProcessPool(MARK),
    "worker": lambda: TerminatedWorkerError(MARK),
    "executor": lambda: BrokenExecutor(MARK),
    "cancelled": lambda: CancelledError(MARK),
    "pickle": lambda: pickle.PicklingError(MARK),
    "wrapped": lambda: _wrapped(MemoryError(MARK)),
    "handled": lambda: _handled(OSError(errno.EMFILE, MARK)),
    "group": lambda: ExceptionGroup(MARK, [ValueError(MARK), MemoryError(MARK)]),
    "told": lambda: ValueError("All the 5 fits failed.\n  MemoryError"),
}
CONTENT = {
    "value": lambda: ValueError(MARK),
    "division": lambda: ZeroDivisionError(MARK),
    "key": lambda: KeyError(MARK),
    "runtime": lambda: RuntimeError(MARK),
    "algebra": lambda: np.linalg.LinAlgError(MARK),
    "assertion": lambda: AssertionError(MARK),
    "exit": lambda: SystemExit(MARK),
    "panic": lambda: Panic(MARK),
    "warning": lambda: UserWarning(MARK),
}


class Panic(BaseException):
    """What compiled code raises where it breaks off."""


def _wrapped(cause):
    try:
        raise ValueError(MARK) from cause
    except ValueError as error:
        return error


def _handled(cause):
    try:
        try:
            raise cause
        except OSError:
            raise ValueError(MARK)  # noqa: B904
    except ValueError as error:
        return error


class FailsAt(ClassifierMixin, BaseEstimator):
    """Raise what it is told while it fits or predicts, if its shard holds the record at (9, 9)."""

    def __init__(self, stage="fit", name="memory", only_the_marked=False):
        self.stage = stage
        self.name = name
        self.only_the_marked = only_the_marked

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.marked_ = not self.only_the_marked or bool((np.asarray(X) == 9).all(axis=1).any())
        self._fail_at("fit")
        return self

    def predict(self, X):
        self._fail_at("predict")
        return np.zeros(len(X), dtype=int)

    def _fail_at(self, stage):
        if stage == self.stage and self.marked_:
            raise {**MACHINE, **CONTENT}[self.name]()


def voted(teacher, rows=X):
    ensemble = ensemble_of(teacher, rows, Y, SHARDS, n_teachers=K, n_classes=2)
    return ensemble.vote_counts(X_PUBLIC)._unseal()[0]


def refuse_trace(error):
    """Assert that an exception and all that rides on it are one sentence without the mark."""
    assert error.__cause__ is None
    assert error.__context__ is None
    text = "".join(traceback.format_exception_only(error))
    assert MARK not in text + repr(error.args)
    assert "\n" not in str(error)
    assert len(str(error)) < 300


def test_what_is_the_machine_s_failure_and_what_is_the_content_s():
    assert [name for name, error in MACHINE.items() if resource_failure(error()) is None] == []
    assert [name for name, error in CONTENT.items() if resource_failure(error()) is not None] == []


@pytest.mark.parametrize("stage", ["fit", "predict"])
@pytest.mark.parametrize("name", ["memory", "threads", "wrapped", "group", "pool"])
def test_what_the_machine_fails_at_ends_the_run(name, stage):
    with pytest.raises(ResourceError, match="private rows ended because") as caught:
        voted(FailsAt(stage, name))
    refuse_trace(caught.value)


@pytest.mark.parametrize("stage", ["fit", "predict"])
@pytest.mark.parametrize("name", ["value", "exit", "panic"])
def test_what_a_shard_s_content_raises_is_its_fixed_vote(name, stage):
    marked = X.copy()
    marked[0] = 9
    counts = voted(FailsAt(stage, name, only_the_marked=True), marked)
    assert (counts == [K, 0]).all()  # the fixed vote of teacher 0 is class 0, and the others say 0
    marked[0], marked[2] = X[0], 9
    assert (voted(FailsAt(stage, name, only_the_marked=True), marked) == [K - 1, 1]).all()


def test_linear_teachers_end_the_run_too(monkeypatch):
    monkeypatch.setattr(
        "secretballot.teachers.ensemble._LinearStack.counts",
        lambda *_: (_ for _ in ()).throw(MemoryError(MARK)),
    )
    with pytest.raises(ResourceError) as caught:
        voted(LogisticRegression())
    refuse_trace(caught.value)


def test_what_was_being_handled_before_is_none_of_the_learner_s():
    try:
        raise MemoryError(MARK)
    except MemoryError:
        assert result_of(lambda: [][1]) is None


def test_an_exception_that_cannot_say_what_it_is_counts_as_the_shard_s():
    class MuteError(Exception):
        def __str__(self):
            raise ValueError(MARK)

    loop = MuteError()
    loop.__context__ = KeyError(MARK)
    loop.__context__.__context__ = loop
    assert resource_failure(loop) is None


def test_what_one_row_draws_moves_the_draws_of_no_other():
    def ask(row):
        return float(np.random.normal()) if np.isnan(row).any() else float(row[0, 0])  # noqa: NPY002

    def drawn(first):
        return rows_alone(ask, np.array([[first], [np.nan], [2.0], [np.nan]]))

    assert drawn(np.nan)[1:] == drawn(1.0)[1:]


@pytest.mark.parametrize("place", [0, 3, 7])
def test_code_that_stays_broken_after_one_row_ends_the_run_wherever_the_row_stands(place):
    broken = []

    def ask(row):
        if row[0, 0] == 77:
            broken.append(row)
        if broken:
            raise ValueError(MARK)
        return 1

    rows = np.zeros((8, 1))
    rows[place] = 77
    with pytest.raises(ResourceError, match="fails at everything since"):
        rows_alone(ask, rows)


ODD, SIGNS = X.copy(), (X[:, 0] > 0).astype(int)
ODD[7] = 9
OF_ROWS = {
    **{name: MACHINE[name] for name in ("files", "stack", "card")},
    "memory": lambda: np.ones(2**46),  # more than any machine has
    "interrupt": KeyboardInterrupt,
    "signal": lambda: signal.raise_signal(signal.SIGUSR1),
}
OF_MACHINE = sorted({*OF_ROWS} - {"interrupt", "signal"})


class Foreign(BaseEstimator):
    """Raises where it meets the record at (9, 9), and ever after if it `stays` broken."""

    broken = False

    def __init__(self, error="value", stays=False):
        self.error = error
        self.stays = stays

    def meet(self, X):
        X = np.asarray(X)
        if self.broken or (X == 9).any():
            self.broken = self.stays
            raise {**OF_ROWS, **CONTENT}[self.error]()
        return X


class Model(ClassifierMixin, Foreign):
    """A teacher, a candidate, a member of a finite class."""

    def fit(self, X, y):
        self.meet(X)
        return self

    def predict(self, X):
        return (self.meet(X)[:, 0] > 0).astype(int)


class Never(BaseEstimator):
    def predict(self, X):
        return np.zeros(len(X), dtype=int)


def by_member(foreign, rows, ledger):
    dichotomies = FiniteClass([Never(), Model(**foreign)]).dichotomies(X_PUBLIC)
    made = guarantee_of("record", "add-remove")
    return private_scores(dichotomies, rows, SIGNS, made)._unseal()[0].tolist()


def by_candidate(foreign, rows, ledger):
    return sb.choose_candidate(
        [Never(), Model(**foreign)], rows, SIGNS, classes=[0, 1], epsilon=1e4, ledger=ledger
    ).choice_.values.item()


WAYS = [by_member, by_candidate]


def account():
    return sb.Ledger.in_memory(dataset="d", budget=sb.PrivacyBudget(1e7, 1e-3))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", OF_MACHINE)
def test_what_the_machine_fails_at_at_one_record_ends_the_run_unpaid(way, error):
    ledger = account()
    with pytest.raises(ResourceError, match="private rows ended because") as caught:
        way({"error": error}, ODD, ledger)
    refuse_trace(caught.value)
    assert ledger.spent().epsilon == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", ["interrupt", "signal"])
def test_an_interruption_passes_through(way, error):
    ledger, before = account(), signal.signal(signal.SIGUSR1, lambda *_: sys.exit("told"))
    with pytest.raises((KeyboardInterrupt, SystemExit)) as caught:
        way({"error": error}, ODD, ledger)
    signal.signal(signal.SIGUSR1, before)
    assert str(caught.value) in ("", "1")
    assert caught.value.__context__ is None
    assert ledger.spent().epsilon == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", ["card", "runtime"])
def test_a_device_that_stays_broken_ends_the_run_instead_of_moving_all_votes(way, error):
    ledger = account()
    with pytest.raises(ResourceError):
        way({"error": error, "stays": True}, ODD, ledger)
    assert ledger.spent().epsilon == 0


@pytest.mark.parametrize("way", WAYS)
def test_what_fails_at_the_content_of_one_record_moves_no_other(way):
    """All are released without noise, near enough: with the record odd in this way, they are what
    they are with it missing in another way."""
    others = way({"error": "runtime"}, ODD, account())
    assert way({"error": "value"}, ODD, account()) == others


class LastDigit:
    """Decides by a number whose last digit depends on how many rows it meets at once."""

    def describe(self):
        return {}

    def predict(self, X):
        return (X[:, 0] + np.spacing(1.0) * (len(X) % 2) > 1.0).astype(int)


def test_one_record_more_moves_the_mistakes_of_a_member_by_one_at_most():
    dichotomies = FiniteClass([LastDigit(), Never()]).dichotomies([[0.0], [2.0]])
    rows = np.ones((5, 1))  # copies of one point, at the decision
    mistakes = [dichotomies.errors_on(rows[:n], np.ones(n, dtype=int)) for n in (4, 5)]
    assert np.abs(mistakes[1] - mistakes[0]).max() <= 1
    relabelled = FiniteClass([LastDigit(), Never()]).dichotomies(rows)
    assert relabelled.errors(np.ones(5, dtype=int)).tolist() in ([0, 5], [5])


class OwnClass(HypothesisClass):
    """A class of another package, which may count mistakes of all records at once."""

    name = "own"
    vc_dimension = 1

    def dichotomies(self, X):
        raise AssertionError("all records at once")


def test_a_class_of_another_package_is_refused():
    for refuse in (
        lambda: sb.SemiPrivateClassifier(OwnClass(), epsilon=1.0).fit(
            ODD[:, :1], SIGNS, X_public=X_PUBLIC[:, :1], classes=[0, 1]
        ),
        lambda: relabel(X, SIGNS, OwnClass()),
    ):
        with pytest.raises(ParameterError, match="hypotheses is"):
            refuse()
