"""Whatever one record is, every other teacher gets the same bytes, and no message quotes a cell
of it."""

import datetime
import decimal
import fractions
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin

from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Ledger
from secretballot.exceptions import DataError, SecretBallotError
from secretballot.learners import table as room
from secretballot.learners.inputs import as_matrix
from secretballot.learners.selection import choose_candidate
from secretballot.learners.session import train_teachers

K, N = 6, 24
MARK = "4711"
# both classes in every shard of records row, row + K, ...
LABELS = [(row // K) % 2 for row in range(N)]
NUMBERS = [[float(row) / 7, float((row * 5) % 11), float(row % 3)] for row in range(N)]
NUMBERS[10][1] = 2.0**60 + 2.0**9
TEXTS = [[f"tü{row % 4}", "x\0y" if row % 5 else "1.0"] for row in range(N)]
DAYS = [
    [datetime.datetime(2020, 1, 1 + row), datetime.datetime(1999, 5, 1 + row)] for row in range(N)
]

CELLS = [
    *(None, float("nan"), float("inf"), -0.0, 1e300, 4711.4711, 4711, -4711, 2**53 + 1),
    *(2**63, 2**64 - 1, 10**400, True, "", "x4711", "4711.4711", "1e400", "nan", " 7 ", "1_0"),
    *("\0", "\ud800", "x4711\nx4711", "2020-01-01T04:07:11", b"x4711", b"7", 4711j),
    "out of memory",  # what a conversion quotes is not the machine's
    *(decimal.Decimal("4711.4711"), decimal.Decimal("sNaN"), fractions.Fraction(4711, 7)),
    *(datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 4, 7, 11)),
    *(datetime.datetime(9999, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)),
    *(datetime.timedelta(microseconds=1), datetime.time(4, 7, 11), np.float32(0.1), np.int8(3)),
    *(np.float16(0.1), np.longdouble("4711.1"), np.bool_(True), np.datetime64("2020", "Y")),
    *(np.timedelta64(1, "ns"), np.str_("x4711"), pd.NA, pd.NaT, pd.Timestamp(4711)),
    *(pd.Timedelta(4711), pd.Interval(0, 4711), pd.Period("4711"), [4711], [4711, 4711], ()),
    *({"x4711": 1}, {4711}, object(), np.array([4711.0])),
]
SPELLINGS = ["1", "1.0", 1.0, np.int64(1), decimal.Decimal(1), 10**5000]
SPELLINGS.append(decimal.Decimal("1e999999999"))


def nullable(rows):
    return pd.DataFrame(rows).convert_dtypes()


def arrow_typed(rows):
    pytest.importorskip("pyarrow")
    return pd.DataFrame(rows).convert_dtypes(dtype_backend="pyarrow")


def polars_frame(rows):
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    return pl.DataFrame(rows, orient="row", strict=False)


def arrow_table(rows):
    pa = pytest.importorskip("pyarrow")
    return pa.table(
        {str(place): list(column) for place, column in enumerate(zip(*rows, strict=True))}
    )


def one_column_a_block(rows):
    frame = pd.DataFrame(rows)
    frame.attrs["sum"] = str(rows)  # what a careless loader leaves
    frame.index = pd.Index([f"r{len(rows) - row}" for row in range(len(rows))])
    return pd.concat([frame[[name]] for name in frame], axis=1)


CONTAINERS = {
    "list": list,
    "list of tuples": lambda rows: [tuple(row) for row in rows],
    "tuple": tuple,
    "list of arrays": lambda rows: [np.array(row) for row in rows],
    "object array": lambda rows: objects(rows),
    "array": np.array,
    "array by columns": lambda rows: np.asfortranarray(np.array(rows)),
    "turned array": lambda rows: np.array([list(column) for column in zip(*rows, strict=True)]).T,
    "frame": pd.DataFrame,
    "frame with index and attributes": one_column_a_block,
    "frame of objects": lambda rows: pd.DataFrame(rows, dtype=object),
    "nullable frame": nullable,
    "arrow-typed frame": arrow_typed,
    "categories": lambda rows: pd.DataFrame(rows).astype("category"),
    "polars": polars_frame,
    "arrow": arrow_table,
}
NUMERIC = {
    "single precision": lambda rows: np.array(rows, dtype=np.float32),
    "array of texts": lambda rows: np.array([[str(cell) for cell in row] for row in rows]),
    "frame of single precision": lambda rows: pd.DataFrame(rows, dtype=np.float32),
    "sparse frame": lambda rows: pd.DataFrame(rows).astype(pd.SparseDtype(float, 0.0)),
    "csr": lambda rows: sp.csr_matrix(np.array(rows)),
    "csc": lambda rows: sp.csc_array(np.array(rows)),
    "coo": lambda rows: coo_twice(np.array(rows)),
    "blocks": lambda rows: sp.bsr_matrix(np.array(rows), blocksize=(2, 1)),
    "diagonals": lambda rows: sp.dia_matrix(np.array(rows)),
    "dictionary of keys": lambda rows: sp.dok_array(np.array(rows)),
    "lists of lists": lambda rows: sp.lil_array(np.array(rows)),
}


def objects(rows):
    table = np.empty((len(rows), len(rows[0])), dtype=object)
    for place, row in enumerate(rows):
        table[place] = [*row]
    return table


def coo_twice(dense):
    """Every value in two halves, which are summed on conversion."""
    whole = sp.coo_array(dense)
    data = np.concatenate([whole.data // 2, whole.data - whole.data // 2])
    places = tuple(np.tile(one, 2) for one in whole.coords)
    return sp.coo_array((data, places), shape=dense.shape)


class Witness(ClassifierMixin, BaseEstimator):
    """Remember to the byte what it was trained on."""

    seen: list = []  # noqa: RUF012  # clones share it

    def fit(self, X, y):
        self.classes_ = np.arange(2)
        if len(y) <= 2 * N // K:  # the trial fits, on public points, have more rows
            Witness.seen.append((form(X), y.dtype.str, y.strides, y.tolist()))
        return self

    def predict(self, X):
        return np.zeros(X.shape[0], dtype=int)


def form(X):
    """Return all that a learner can find of a table."""
    if isinstance(X, pd.DataFrame):
        columns = [
            (repr(name), column_form(X.iloc[:, place])) for place, name in enumerate(X.columns)
        ]
        return "frame", repr(X.index), dict(X.attrs), columns, X.to_numpy().flags.f_contiguous
    if sp.issparse(X):
        parts = [(part.dtype.str, part.tobytes()) for part in (X.data, X.indices, X.indptr)]
        return type(X).__name__, X.shape, X.has_canonical_format, parts
    flags = X.flags.c_contiguous, X.flags.f_contiguous, X.flags.writeable, X.flags.owndata
    return type(X).__name__, X.dtype.str, X.shape, X.strides, flags, cells_form(X)


def column_form(column):
    kind = column.dtype
    coded = isinstance(kind, pd.CategoricalDtype | pd.ArrowDtype)
    categories = repr(list(column.astype("category").cat.categories)) if coded else ""
    return str(kind), categories, cells_form(np.asarray(column))


def cells_form(cells):
    if cells.dtype.kind == "O":
        return [(type(cell).__name__, repr(cell)) for cell in cells.ravel()]
    return cells.tobytes()


@pytest.fixture(autouse=True)
def known_key(monkeypatch):
    """Let every run cut the same shards: the key of a partition is drawn anew otherwise."""
    monkeypatch.setattr(room, "entropy_bytes", lambda size: bytes(range(32)) * (size // 32 + 1))


def refuse_quotes(error):
    """Assert that nothing that rides on an exception quotes the record."""
    waiting = [error]
    while waiting:
        one = waiting.pop()
        said = [str(one), repr(one), repr(one.args), repr(getattr(one, "__notes__", ""))]
        said += traceback.format_exception_only(one)
        assert MARK not in "".join(said)
        waiting += [other for other in (one.__cause__, one.__context__) if other is not None]
    assert len(str(error)) < 500
    assert str(error).isprintable()


def shards_seen(fit):
    """Return what the teachers of a fit were trained on, by shard, or None where it was refused
    without a quote."""
    Witness.seen.clear()
    try:
        fit()
    except SecretBallotError as error:
        refuse_quotes(error)
        return None
    return list(Witness.seen)


def made(container, rows):
    """Return a container of rows, or None where numpy or another library refuses to make it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return container(rows)
    except (pytest.skip.Exception, KeyboardInterrupt):
        raise
    except BaseException:  # polars panics
        return None


def others_unmoved(container, rows, public, news, *, path):
    """Assert that any new first record leaves the parts of all shards but its own as they were,
    or is refused."""
    alone = shards_seen(lambda: path(made(container, rows), public))
    tables = [] if alone is None else [made(container, [new, *rows[1:]]) for new in news]
    for new, table in zip(news, tables, strict=False):
        found = None if table is None else shards_seen(lambda table=table: path(table, public))
        if found is not None:
            assert found[1:] == alone[1:], new


def with_cells(row, width):
    """Return copies of a row, each with one odd cell in turn."""
    return [[*row[: at % width], cell, *row[at % width + 1 :]] for at, cell in enumerate(CELLS)]


# every kind of table meets a third of the odd cells at each commit, and all of them in slow runs
WHOLE = pytest.mark.parametrize(
    "whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["a third", "whole"]
)


def some_of(news, *, whole, turn):
    return news if whole else news[turn % 3 :: 3]


def taught(X, public, **options):
    settings = {"classes": [0, 1], "n_teachers": K, "relation": "replace-one"} | options
    train_teachers(Witness(), X, LABELS, X_public=public, **settings)


ALL = {**CONTAINERS, **NUMERIC}


@WHOLE
@pytest.mark.parametrize("name", ALL)
def test_a_record_of_any_kind_changes_no_other_teacher_s_numbers(name, whole):
    public = made(ALL[name], NUMBERS[:8])
    assert shards_seen(lambda: taught(made(ALL[name], NUMBERS), public)) is not None
    cells = some_of(with_cells(NUMBERS[0], 3), whole=whole, turn=[*ALL].index(name))
    news = [*cells, [], [1.0], [1.0] * 4, [1.0] * 40]
    others_unmoved(ALL[name], NUMBERS, public, news, path=taught)


WORDS = {"texts": TEXTS, "points in time": DAYS}


TEXTS_ALONE = [("frame", "points in time"), ("arrow-typed frame", "texts"), ("polars", "texts")]


@WHOLE
@pytest.mark.parametrize(
    ("name", "words", "alike"),
    [(name, words, True) for name in CONTAINERS for words in WORDS if name != "tuple"]
    + [(name, words, False) for name, words in TEXTS_ALONE],
)
def test_a_record_of_any_kind_changes_no_other_teacher_s_words(name, words, alike, whole):
    """Public cells are of the same kind, or all of them texts."""
    rows = [row[:2] for row in WORDS[words]]
    public = [[f"w{row}", "w"] for row in range(8)]
    public = made(CONTAINERS[name], rows[:8]) if alike else pd.DataFrame(public)
    # in turn, so that a kind of table meets all cells beside one kind of words or another
    turn = [*CONTAINERS].index(name) + [*WORDS].index(words)
    news = some_of(with_cells(rows[0], 2), whole=whole, turn=turn)
    others_unmoved(CONTAINERS[name], rows, public, news, path=taught)


def test_a_dictionary_of_all_records_is_refused():
    pa = pytest.importorskip("pyarrow")
    column = pd.arrays.ArrowExtensionArray(pa.array(["a", "b"] * 12).dictionary_encode())
    table = pd.DataFrame({"word": pd.Series(column)})
    assert shards_seen(lambda: taught(table, table[:2])) is None


@pytest.mark.parametrize("kind", [object, "str"])
def test_numbers_that_are_categories_are_no_words(kind):
    # one cell among them makes 1.0 of every 1, or 1 of every True
    public = pd.DataFrame({"word": ["a", "b"]}, dtype=kind)

    def seen(cells):
        return shards_seen(lambda: taught(pd.DataFrame({"word": cells}, dtype="category"), public))

    for new in (2, 2.5, 1, 1 + 0j, "x4711"):
        assert seen([new, True, 2, *range(3, N)]) is None
    assert len(seen([f"w{row % 3}" for row in range(N)])) == K


@pytest.mark.parametrize(
    "container", [list, tuple, np.array, pd.Series, objects], ids=lambda kind: kind.__name__
)
@pytest.mark.parametrize("kind", ["label", "unit"])
def test_a_label_or_an_id_of_any_kind_moves_no_other_record(kind, container):
    def column(values):
        if container is objects:
            found = np.empty(len(values), dtype=object)
            found[:] = values
            return found
        return container(values)

    ids = [2**60 + row % 9 for row in range(N)]

    def path(values):
        labels, options = values, {"relation": "replace-one"}
        if kind == "unit":
            labels, options = LABELS, {"relation": "add-remove", "units": values}
        train_teachers(Witness(), NUMBERS, labels, classes=[0, 1], n_teachers=K, **options)

    values = LABELS if kind == "label" else ids
    alone = shards_seen(lambda: path(column(values)))
    assert alone is not None
    for cell in [*CELLS, *SPELLINGS]:
        new = made(column, [cell, *values[1:]])
        found = None if new is None else shards_seen(lambda new=new: path(new))
        if found is not None:
            rows = [len(part[-1]) for part in found]
            same = sum(part in alone for part in found)
            assert same >= len(alone) - (1 if kind == "label" else 2), (cell, rows)


class AskedCandidate:
    """Remember to the byte each record that it is asked about."""

    asked: list = []  # noqa: RUF012

    def predict(self, X):
        AskedCandidate.asked.append(form(X))
        return np.zeros(X.shape[0], dtype=int)


@pytest.mark.parametrize("name", ["list", "frame", "coo"])
def test_a_record_of_any_kind_changes_no_other_record_of_a_choice(name):
    def asked(rows):
        AskedCandidate.asked.clear()
        ledger = Ledger.in_memory(dataset="d", budget=PrivacyBudget(1.0, 0.0))
        candidates = [AskedCandidate(), AskedCandidate()]
        about = {"classes": [0, 1], "X_public": made(ALL[name], NUMBERS[:3])}
        try:
            choose_candidate(candidates, rows, LABELS, epsilon=0.1, ledger=ledger, **about)
        except SecretBallotError as error:
            refuse_quotes(error)
            return None
        return AskedCandidate.asked[-N:]

    alone, turn = asked(made(ALL[name], NUMBERS)), ["list", "frame", "coo"].index(name)
    for cell in some_of(CELLS, whole=False, turn=turn):
        table = made(ALL[name], [[cell, 1.0, 2.0], *NUMBERS[1:]])
        found = None if table is None else asked(table)
        assert found is None or found[1:] == alone[1:]


@pytest.mark.parametrize(
    "X",
    [
        np.array([[datetime.date(2020, 1, 1)]], dtype="M8[D]"),
        np.array([[1]], dtype="m8[s]"),
        np.zeros((2, 2), dtype=[("a", int)]),
        np.ma.masked_all((2, 2)),
        {1: [2]},
        {1, 2},
        (row for row in NUMBERS),
        range(3),
        "x4711",
        [[1, 2], [3]],
        [["x4711", [4711]]],
        ["x4711", "y"],
        [{"x4711": 1}],
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
    ],
    ids=lambda X: type(X).__name__,
)
def test_what_is_no_table_is_refused_by_its_type(X):
    with pytest.raises(DataError) as caught:
        train_teachers(Witness(), X, [0], classes=[0, 1], X_public=np.zeros((3, 2)))
    refuse_quotes(caught.value)


def test_a_record_in_the_place_of_the_header_is_not_quoted():
    table = pd.DataFrame([["a", 1.0]], columns=["x4711", 4711.25])
    public = pd.DataFrame([["a", 1.0]], columns=["word", "number"])
    with pytest.raises(
        DataError, match="misses columns 'word', 'number' and has columns that"
    ) as error:
        train_teachers(Witness(), table, [0], X_public=public, classes=[0, 1], n_teachers=1)
    refuse_quotes(error.value)


def test_cells_that_cannot_be_compared_are_refused_in_a_sentence():
    class Diagonals:
        shape = (2, 2)

        def __array__(self, dtype=None, copy=None):
            raise decimal.InvalidOperation("sNaN 4711")

    with pytest.raises(DataError, match="expected a 2D array or frame") as caught:
        as_matrix("X", Diagonals())
    assert caught.value.__cause__ is caught.value.__context__ is None
