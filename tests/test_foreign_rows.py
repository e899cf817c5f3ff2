"""Foreign code that fails at one private record: at its content, or since the machine fails."""

import itertools
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import secretballot as sb
from secretballot.exceptions import ParameterError, ResourceError
from secretballot.hypotheses import FiniteClass, HypothesisClass
from secretballot.learners.labeler_algorithms import relabel
from secretballot.learners.selection import private_scores

# so much that no noise is drawn but 0, all but surely
BUDGET = sb.PrivacyBudget(1e5, 1e-6)
RNG = np.random.default_rng(0)
POOL, X = RNG.uniform(-2, 2, size=(60, 2)), RNG.uniform(-2, 2, size=(120, 2))
Y = (X[:, 0] > 0).astype(int)
ODD = X.copy()
ODD[7] = 9

MACHINE = {
    "memory": lambda: MemoryError("9 9"),
    "file": lambda: OSError("9 9"),
    "stack": lambda: RecursionError("9 9"),
    "device": lambda: RuntimeError("CUDA error: device-side assert triggered at 9 9"),
}
ERRORS = {
    **MACHINE,
    "content": lambda: ValueError("9 9"),
    "unknown device": lambda: RuntimeError("the stream is invalid at 9 9"),
    "interrupt": KeyboardInterrupt,
}


class Foreign(BaseEstimator):
    """Raises where it meets the record at (9, 9), and ever after if it `stays` broken."""

    broken = False

    def __init__(self, error="content", stays=False):
        self.error = error
        self.stays = stays

    def meet(self, X):
        X = np.asarray(X)
        if self.broken or (X == 9).any():
            self.broken = self.stays
            raise ERRORS[self.error]()
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
    dichotomies = FiniteClass([Never(), Model(**foreign)]).dichotomies(POOL)
    return private_scores(dichotomies, rows, Y, "record", "add-remove")._unseal()[0].tolist()


def by_candidate(foreign, rows, ledger):
    chosen = sb.choose_candidate(
        [Never(), Model(**foreign)], rows, Y, classes=[0, 1], epsilon=1e4, ledger=ledger
    )
    return chosen.choice_.values.item()


def by_teacher(foreign, rows, ledger):
    model = sb.PATEClassifier(Model(**foreign), n_teachers=4, ledger=ledger, **BUDGET.to_json())
    return model.fit(rows, Y, X_public=POOL, classes=[0, 1]).released_.labels.tolist()


WAYS = [by_member, by_candidate]


def account():
    return sb.Ledger.in_memory(dataset="d", budget=sb.PrivacyBudget(1e7, 1e-3))


@pytest.mark.parametrize(
    ("way", "error"), [*itertools.product(WAYS, MACHINE), (by_teacher, "memory")]
)
def test_what_the_machine_fails_at_at_one_record_ends_the_run_unpaid(way, error):
    ledger = account()
    with pytest.raises(ResourceError, match="private rows ended because") as caught:
        way({"error": error}, ODD, ledger)
    assert "9 9" not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert ledger.spent().epsilon == 0


@pytest.mark.parametrize("way", WAYS)
def test_an_interruption_passes_through(way):
    ledger = account()
    with pytest.raises(KeyboardInterrupt):
        way({"error": "interrupt"}, ODD, ledger)
    assert ledger.spent().epsilon == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", ["device", "unknown device"])
def test_a_device_that_stays_broken_ends_the_run_instead_of_moving_all_votes(way, error):
    ledger = account()
    with pytest.raises(ResourceError):
        way({"error": error, "stays": True}, ODD, ledger)
    assert ledger.spent().epsilon == 0


@pytest.mark.parametrize("way", WAYS)
def test_what_fails_at_the_content_of_one_record_moves_no_other(way):
    """All are released without noise, near enough: with the record odd in this way, they are what
    they are with it missing in another way."""
    others = way({"error": "unknown device"}, ODD, account())
    assert way({"error": "content"}, ODD, account()) == others


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
            ODD[:, :1], Y, X_public=POOL[:, :1], classes=[0, 1]
        ),
        lambda: relabel(X, Y, OwnClass()),
    ):
        with pytest.raises(ParameterError, match="hypotheses is"):
            refuse()


OUT_OF_MEMORY = """
import resource
import numpy as np
import secretballot as sb

class Model:
    def predict(self, X):
        # one record asks for 64 GiB
        return np.zeros(len(X), int) if not (X == 9).any() else np.ones((2**33, 1)) * X

X = np.random.default_rng(0).normal(size=(80, 2))
X[3] = 9
ledger = sb.Ledger.in_memory(dataset="d", budget=sb.PrivacyBudget(1.0, 1e-6))
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + 2**31
resource.setrlimit(resource.RLIMIT_AS, (most, most))
try:
    sb.choose_candidate(
        [Model(), Model()], X, np.arange(80) % 2, classes=[0, 1], epsilon=1.0, ledger=ledger
    )
except sb.exceptions.ResourceError as error:
    print(error, ledger.spent().epsilon)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
def test_a_record_that_exhausts_memory_ends_the_program_unpaid():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(OUT_OF_MEMORY)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert "ran out; no answer is made of that" in done.stdout
    assert done.stdout.rstrip().endswith(" 0.0")
