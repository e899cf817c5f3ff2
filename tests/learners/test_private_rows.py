"""What private rows may share with public ones: rows by chance alone, cells of the same kinds, each
read by itself."""

import io
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import secretballot as sb
from secretballot.exceptions import DataError
from secretballot.learners import table as table_module
from secretballot.learners.inputs import Target
from secretballot.learners.table import PrivateRows, row_hashes

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(2000, 3))
OTHERS = RNG.normal(size=(400, 3))
#: Cells of a table of categories: rows equal each other by chance.
FEW, SOME, MANY = (10, 0.5), (1000, 1.0), (200_000, 0.9)


def drawn(n, n_values, power, seed):
    """Return rows of two columns, some of them far more frequent than others."""
    chances = np.arange(1, n_values + 1) ** -power
    values = np.random.default_rng(seed).choice(n_values, n, p=chances / chances.sum())
    return np.column_stack([values % 7, values // 7]).astype(float)


def held(public, private, units=None):
    rows = PrivateRows([public])
    rows.add(private, units)
    return rows.hold(0)


@pytest.mark.parametrize("law", [FEW, SOME, MANY])
@pytest.mark.parametrize(("n", "m"), [(20_000, 2000), (300, 5000), (60, 50)])
def test_rows_that_are_equal_by_chance_pass(law, n, m):
    for seed in range(5):
        assert not held(drawn(m, *law, seed=2 * seed), drawn(n, *law, seed=2 * seed + 1))


def test_a_part_of_the_private_rows_is_found_and_rows_that_were_drawn_again():
    for n_private in (10, 100, 400):
        assert held(np.vstack([NUMBERS[5 : 5 + n_private], OTHERS[n_private:]]), NUMBERS)
    for public in (NUMBERS[::-1], NUMBERS[:5], NUMBERS[RNG.integers(0, 99, 900)]):
        assert held(public, NUMBERS)
    assert not held(OTHERS, NUMBERS)


def test_a_part_is_found_among_rows_that_are_equal_by_chance():
    private, public = drawn(20_000, *MANY, seed=1), drawn(2000, *MANY, seed=2)
    equal = len(set(map(tuple, public)) & set(map(tuple, private))) / len(public)
    assert 0.1 < equal < 0.9
    assert not held(public, private)
    assert held(np.vstack([public[:1500], private[:500]]), private)


def test_the_same_rows_are_found_where_chance_would_explain_each_of_them():
    private = drawn(2000, *FEW, seed=1)
    assert held(private[::-1], private)
    assert not held(private[:1000], private)


def test_a_doubled_private_table_explains_nothing():
    assert held(np.vstack([OTHERS[:300], NUMBERS[:100]]), np.vstack([NUMBERS, NUMBERS]))


def test_rows_of_one_unit_are_no_coincidence():
    private, units = np.repeat(NUMBERS[:200], 10, axis=0), np.repeat(np.arange(200), 10)
    public = np.vstack([OTHERS[:300], NUMBERS[:100]])
    assert held(public, private, units)
    assert not held(OTHERS, private, units)


@pytest.mark.parametrize("law", [FEW, SOME, MANY])
def test_blocks_and_a_sample_say_what_the_table_says(law, monkeypatch):
    private, public = drawn(20_000, *law, seed=1), drawn(2000, *law, seed=2)
    monkeypatch.setattr(table_module, "_MOST_SAMPLED", 3000)
    for table, found in ((public, False), (np.vstack([public, NUMBERS[:200, :2]]), True)):
        rows = PrivateRows([table])
        for part in np.array_split(np.vstack([private, NUMBERS[:, :2]]), 7):
            rows.add(part)
        assert rows.hold(0) == found
        assert len(rows._pairs) < 3000 + 4 * len(table) + 4


def test_frames_are_compared_by_cells():
    frame = pd.DataFrame({"age": NUMBERS[:, 0], "ward": RNG.choice(["north", "south"], 2000)})
    assert held(frame.iloc[:50], frame)
    assert not held(frame.iloc[:50].assign(ward="east"), frame)
    assert not PrivateRows([frame]).hold(0)


FRAME = pd.DataFrame(
    {
        "count": RNG.integers(0, 10**6, 2000),
        "kind": pd.Categorical(RNG.choice(["a", "b"], 2000)),
        "name": [f"person {number}" for number in range(2000)],
    }
)


@pytest.mark.parametrize(
    "table",
    [
        NUMBERS,
        RNG.integers(0, 100, size=(2000, 5)),
        RNG.random((2000, 40)) < 0.5,
        np.array([[f"{a:.9f}", "x"] for a in NUMBERS[:, 0]], dtype=object),
        FRAME,
        sparse.csr_matrix(np.where(np.abs(NUMBERS) > 0.5, NUMBERS, 0)),
    ],
    ids=["doubles", "integers", "flags", "texts", "frame", "sparse"],
)
def test_rows_of_every_kind_are_known_again_in_any_order(table):
    some = RNG.permutation(2000)[:60]
    assert held(table.iloc[some] if hasattr(table, "iloc") else table[some], table)


def test_cells_that_differ_make_other_rows():
    for table in (np.eye(40), np.arange(1600.0).reshape(40, 40), 2.0 ** np.eye(40)):
        assert len(set(row_hashes(table))) == 40
    assert not held(NUMBERS[:, [1, 0, 2]], NUMBERS)


BUDGET = sb.PrivacyBudget(1.0, 1e-6)


def people(n, seed, **more):
    rng = np.random.default_rng(seed)
    wards = rng.choice(["north", "south"], n)
    return pd.DataFrame({"age": rng.normal(50, 15, n), "ward": wards}).assign(**more)


def fit(private, public):
    """Fit on an account, and return it."""
    ledger = sb.Ledger.in_memory(dataset="d", budget=BUDGET, unit="record", relation="add-remove")
    model = sb.RecordMomentsClassifier(**BUDGET.to_json(), ledger=ledger)
    y = np.arange(len(private)) % 2
    try:
        model.fit(private, y, X_public=public, classes=[0, 1])
    except DataError:
        assert ledger.releases() == 0
        raise
    return ledger


@pytest.mark.parametrize("kind", [object, "category", "string"])
def test_another_spelling_is_refused_and_no_cell_is_shown(kind):
    public = people(200, 1).astype({"ward": kind})
    private = people(900, 0)
    private["ward"] = private["ward"].str.upper()
    with pytest.raises(DataError, match="Column 'ward' of X does not fit") as refused:
        fit(private, public)
    assert "NORTH" not in str(refused.value)
    if kind is object:
        with pytest.raises(DataError, match="Column 1 of X does not fit"):
            fit(private.to_numpy(), public.to_numpy())
    few = private["ward"].where(np.arange(900) % 30 == 0, private["ward"].str.lower())
    assert fit(private.assign(ward=few), public).releases() == 1


def test_values_of_which_most_are_rare_in_public_too_are_no_misfit():
    private = people(900, 0, street=[f"s{i}" for i in range(900)])
    public = people(200, 1, street=[f"p{i}" for i in range(200)])
    assert fit(private, public).releases() == 1


def read(cells):
    return pd.read_csv(io.StringIO("c\n" + "\n".join(cells))).c


@pytest.mark.parametrize("cell", ["1" + "0" * 400, "-1" + "0" * 400, "TRUE", "true", "False", "12"])
def test_a_target_means_the_same_beside_a_text_as_beside_its_like(cell):
    target = Target.of_number((0.0, 100.0))
    alone, beside = (target.read(read([cell, cell, last]), 3)[:2] for last in (cell, "x"))
    assert alone.tolist() == beside.tolist()
    assert not np.isnan(alone).any()


@pytest.mark.parametrize("text", ["out of memory", "no space left on device", "hello"])
def test_a_text_is_no_number_whatever_it_says(text):
    assert np.isnan(Target.of_number((0.0, 100.0)).read([text, "3"], 2)[0])


@pytest.mark.parametrize("kind", ["object", "category"])
def test_integers_beyond_64_bits_are_no_texts(kind):
    public = pd.DataFrame({"c": pd.Series(["005", "A1", "7"] * 20).astype(kind)})
    learner = sb.RecordMomentsClassifier(epsilon=1.0, delta=1e-6)
    # what pandas, from 3.0 on, reads of a file with 005 and a number of 25 digits
    private = pd.DataFrame({"c": pd.Series([5] * 59 + [10**25 - 1], dtype=object)})
    with pytest.raises(sb.DataError, match="Column 'c' of X does not fit"):
        learner.fit(private, np.arange(60) % 2, X_public=public, classes=[0, 1])


class OddNumber(int):
    def __float__(self):
        raise RuntimeError("of a record")


@pytest.mark.parametrize(
    "cell", ["\ud83d cut in two", 10**5000, "lost: out of memory", OddNumber(2)], ids=type
)
def test_no_cell_ends_a_fit_whatever_it_says(cell):
    rng = np.random.default_rng(0)
    texts, numbers = rng.choice(["a", "b", "c"], 200), rng.integers(1, 4, 200)
    for values, kind in ((texts, object), (numbers, "category")):
        private = values.astype(object)
        private[5] = cell
        learner = sb.RecordMomentsClassifier(epsilon=2.0, delta=1e-6)
        learner.fit(
            pd.DataFrame({"c": pd.Series(private, dtype=object), "x": rng.normal(size=200)}),
            np.arange(200) % 2,
            X_public=pd.DataFrame({"c": values[:80], "x": rng.normal(size=80)}).astype({"c": kind}),
            classes=[0, 1],
        )


def test_the_length_of_an_id_is_not_stated():
    X = np.random.default_rng(0).normal(size=(60, 2))
    said = set()
    for longest in ("p59", "a person of a long name"):
        ids = np.array([f"p{i}" for i in range(59)] + [longest])[:, None]
        learner = sb.RecordMomentsClassifier(epsilon=1.0, delta=1e-6)
        with pytest.raises(sb.DataError) as refused:
            learner.fit(X, np.arange(60) % 2, X_public=X + 1, classes=[0, 1], units=ids)
        said.add(str(refused.value))
    assert len(said) == 1


class OddLabel:
    """Looks like the class 1 until it is compared."""

    def __hash__(self):
        return hash(1)

    def __eq__(self, other):
        raise RuntimeError("a private word")


def test_what_an_odd_label_says_of_itself_is_not_seen():
    y = np.array([0, 1] * 30, dtype=object)
    y[0] = OddLabel()
    learner = sb.RecordMomentsClassifier(epsilon=1.0, delta=1e-6)
    with pytest.raises(sb.DataError) as refused:
        learner.fit(NUMBERS[:60], y, X_public=OTHERS, classes=[0, 1])
    assert "private word" not in str(refused.value)
    assert refused.value.__context__ is None


def test_a_large_delta_ends_no_fit_by_the_number_of_records():
    """Not even where a program makes errors of warnings."""
    for n in (99, 100):
        learner = sb.RecordMomentsClassifier(epsilon=1.0, delta=0.01)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            fitted = learner.fit(NUMBERS[:n], np.arange(n) % 2, X_public=OTHERS, classes=[0, 1])
        assert fitted.classes_.tolist() == [0, 1]
