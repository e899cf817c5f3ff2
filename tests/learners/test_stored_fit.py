"""Learners of a table on disk: what they release is that of the same table in memory. Sparse public
points make sparse shards of it, whose rows are those of arrays."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier

import secretballot as sb
from secretballot.data import stored as stored_table
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError, ParameterError
from secretballot.learners import session
from secretballot.learners import table as tables
from secretballot.learners.moment_stages import MomentTarget
from secretballot.runs.tables import store_table
from secretballot.teachers.ensemble import TeacherEnsemble
from sessions import in_rounds

N, CLASSES = 600, ["no", "yes"]
TERMS = {"epsilon": 5, "delta": 1e-4}


def rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    age, ward = rng.normal(50, 15, n), rng.choice(["north", "south"], n)
    ill = np.where(age + 10 * (ward == "north") + rng.normal(0, 5, n) > 55, "yes", "no")
    person = [f"p{i % (n // 3)}" for i in range(n)]
    return pd.DataFrame({"age": age, "ward": ward, "ill": ill, "person": person})


PUBLIC = rows(300, 1)[["age", "ward"]]
SCHEMA = Schema.infer(PUBLIC)
X_PUBLIC = SCHEMA.encode(PUBLIC)


@pytest.fixture(params=[None, "person"])
def unit(request):
    return request.param


ABOUT = {"schema": SCHEMA, "target": "ill", "classes": CLASSES}


def kept(folder, unit=None, n=N, table=None):
    (rows(n) if table is None else table).to_parquet(folder / "private.parquet", index=False)
    drop = ["person"] if unit is None else []
    return store_table(folder / "private.parquet", folder / "vault", unit=unit, drop=drop, **ABOUT)


def in_memory(unit, n=N):
    table = rows(n)
    units = None if unit is None else table[unit].to_numpy()
    return {"X": SCHEMA.encode(table[["age", "ward"]]), "y": table["ill"], "units": units}


def account(unit):
    return sb.Ledger.in_memory(
        dataset="d", budget=sb.PrivacyBudget(100, 1e-3), unit="record" if unit is None else "user"
    )


def made_by(where, model, **data):
    """Return what a fit would release from, which only the release may have."""
    seen = []

    def look(first, second, *args, **more):
        if where.endswith("moments"):  # the first stage and its exact sums
            stage = second.asked_after([])
            seen.append((stage, first(stage)._unseal()[0]))
        else:
            seen.append((second() if where.endswith("labels") else first())._unseal()[0])
        raise InterruptedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"secretballot.learners.{where}", look)
        with pytest.raises(InterruptedError):
            model.fit(**data, X_public=X_PUBLIC, classes=CLASSES)
    return seen[0]


def sums_of(unit, **data):
    model = sb.RecordMomentsClassifier(epsilon=1, delta=1e-6, ledger=account(unit))
    return made_by("moments.release_moments", model, **data)


def votes_of(unit, **data):
    terms = {"epsilon": 1, "delta": 1e-6, "votes_per_record": 3}
    model = sb.RecordVotesClassifier(**terms, ledger=account(unit))
    return made_by("record_votes.release_labels", model, **data)


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as spawned:
        yield spawned


def test_moments_of_a_table_on_disk_are_those_in_memory_wherever_they_are_added_up(
    tmp_path, unit, monkeypatch, pool
):
    table = kept(tmp_path, unit)
    _, known = sums_of(unit, **in_memory(unit))
    monkeypatch.setattr(tables, "_PART_CELLS", 200)
    for rows_together in (9, 10_000):
        monkeypatch.setattr(stored_table, "_BLOCK_ENTRIES", rows_together * table.n_columns)
        monkeypatch.setattr(tables, "_ROWS_TOGETHER", rows_together)
        assert sums_of(unit, X=table, y=None)[1].tolist() == known.tolist()
    for data in ({"X": table, "y": None}, in_memory(unit)):
        assert sums_of(unit, **data, executor=pool)[1].tolist() == known.tolist()
    assert [path.name for path in table.vault.iterdir() if path.name.startswith("persons-")] == []


@pytest.mark.parametrize("send", [False, True])
def test_rows_on_disk_travel_by_their_place_or_whole(tmp_path, unit, send):
    table, vault, elsewhere = kept(tmp_path, unit), tmp_path / "vault", tmp_path / "elsewhere"
    target = MomentTarget.of_classes(CLASSES)
    private, _ = tables.private_table(table, None, X_PUBLIC, target, None, None)
    dealt = replace(tables._assign_stored_shards(table, 5, "add-remove", vault), sparse=True)
    with private.parts(send=send) as parts:
        shards = [dealt.loader(number, send=send) for number in range(5)]
        loads = pickle.loads(pickle.dumps([*parts(), *shards]))
        vault.rename(elsewhere)
        if send:
            assert sum(load()[0].shape[0] for load in loads) == 2 * N
        for load in loads if not send else ():
            with pytest.raises(DataError, match=r"The rows in .* are not seen .*send_shards"):
                load()
        elsewhere.rename(vault)


def test_a_person_with_many_records_is_bounded_once_on_disk_too(tmp_path):
    """Without one person the sum changes by no more than the bound, whatever the records are."""
    table, found = rows(), []
    table.loc[: N // 2, "person"] = "p0"
    for place, part in (("all", table), ("less", table[table["person"] != "p0"])):
        (tmp_path / place).mkdir()
        stored = kept(tmp_path / place, "person", table=part)
        stage, sums = sums_of("person", X=stored, y=None)
        found.append(sums)
    moved = np.linalg.norm((found[0] - found[1]).astype(float))
    assert 0.5 * stage.bound < moved <= stage.bound


@pytest.mark.usefixtures("nothing_drawn")
def test_teachers_of_a_table_on_disk_vote_as_those_in_memory(tmp_path, monkeypatch, pool):
    counts = []
    vote = TeacherEnsemble.vote_counts

    def noted(self, *args, **more):
        counts.append(vote(self, *args, **more))
        return counts[-1]

    monkeypatch.setattr(TeacherEnsemble, "vote_counts", noted)
    table = kept(tmp_path, "person")
    stored = {"X": table, "y": None}
    for number, data in enumerate((stored, in_memory("person"), stored | {"executor": pool})):
        given = {"n_teachers": 20, "n_queries": 50, "random_state": 3, **TERMS}
        tree = DecisionTreeClassifier(max_depth=3)
        model = sb.PATEClassifier(tree, **given, ledger=account("person"))
        vault = tmp_path / f"vault {number}"  # where no teachers are found
        model.fit(**data, X_public=X_PUBLIC, classes=CLASSES, vault=vault)
        assert model.certificate_["unit"] == "user"
        # before anything was released, the shards were removed; the table is the curator's
        assert not (vault / "shards").exists()
    assert table.count_rows() == N
    one, *others = (found._unseal()[0].tolist() for found in counts)
    assert others == [one, one]


def test_votes_of_records_on_disk_are_those_in_memory(tmp_path, unit, monkeypatch):
    monkeypatch.setattr(tables, "_ROWS_TOGETHER", 50)
    counts = [votes_of(unit, X=kept(tmp_path, unit), y=None), votes_of(unit, **in_memory(unit))]
    if unit is None:
        assert counts[0].tolist() == counts[1].tolist()
    # of a person one record votes, whichever is drawn
    assert counts[0].sum() == counts[1].sum() == 3 * (N if unit is None else N // 3)


def test_which_record_of_a_person_votes_does_not_follow_from_who_else_is_there(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("secretballot.learners.table.entropy_bytes", bytes)
    table, counts = kept(tmp_path, "person"), []
    for rows_together in (10, 100, 10_000):  # how many stand together follows from their number
        monkeypatch.setattr(tables, "_ROWS_TOGETHER", rows_together)
        counts.append(votes_of("person", X=table, y=None).tolist())
    assert counts[0] == counts[1] == counts[2]


def test_a_choice_on_disk_counts_as_in_memory(tmp_path, unit, monkeypatch):
    table = rows(400, 5)
    encoded = SCHEMA.encode(table[["age", "ward"]])
    models = [
        DecisionTreeClassifier(max_depth=depth, random_state=0).fit(encoded, table["ill"])
        for depth in (1, 3)
    ]
    monkeypatch.setattr(tables, "_ROWS_TOGETHER", 50)
    found = []
    for data in ({"X": kept(tmp_path, unit, 150), "y": None}, in_memory(unit, 150)):
        model = sb.SemiPrivateClassifier(models, epsilon=1, ledger=account(unit))
        found.append(made_by("selection.choose_by_scores", model, **data).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["hive", "named"])
def test_only_one_file_has_positions(tmp_path, name):
    table = rows().drop(columns="person")
    table.to_parquet(tmp_path / "private.parquet", index=False)
    for ward, part in table.groupby("ward"):
        if name == "named" and ward != "north":  # a folder of one file
            continue
        inside = f"part={ward}" if name == "hive" else "."
        (tmp_path / name / inside).mkdir(parents=True, exist_ok=True)
        part.to_parquet(tmp_path / name / inside / "a.parquet", index=False)
    budget, place = sb.PrivacyBudget(100, 1e-3), tmp_path / name
    ledger = sb.Ledger.in_memory(dataset="d", budget=budget, relation="replace-one")
    for _ in range(2):  # written, and found again
        stored = store_table(place, tmp_path / "vault", **ABOUT, drop=["part"])
        about = {"relation": "replace-one", "ledger": ledger}
        model = sb.PATEClassifier("tree", n_teachers=5, **TERMS, **about)
        with pytest.raises(ParameterError, match="give one file that is not sorted by content"):
            model.fit(stored, None, X_public=X_PUBLIC, classes=CLASSES)
        assert ledger.history() == []
    tables._assign_stored_shards(stored, 5, "add-remove", tmp_path / "vault")


def test_records_get_a_shard_of_their_own_at_each_dealing(tmp_path):
    table, vault = kept(tmp_path), tmp_path / "vault"
    one = tables._assign_stored_shards(table, 5, "add-remove", vault)
    again = tables._assign_stored_shards(table, 5, "add-remove", vault)
    assert (one.serial, one.sizes) == (again.serial, again.sizes)  # an interrupted fit goes on
    tables.forget_records(vault)
    other = tables._assign_stored_shards(table, 5, "add-remove", vault)
    assert one.serial != other.serial
    assert one.sizes != other.sizes
    # 600 in five shards: a deviation of 9.8, and at 60 more than six of them
    assert max(abs(size - N / 5) for size in other.sizes) < 60
    placed = tables._assign_stored_shards(table, 5, "replace-one", vault)
    assert placed.sizes == (N // 5,) * 5
    assert placed.part(0)[0].tobytes() == in_memory(None)["X"][::5].tobytes()
    with pytest.raises(ParameterError, match="every teacher needs a record"):
        tables._assign_stored_shards(table, N + 1, "replace-one", vault)


def test_without_a_vault_nothing_is_left_but_the_table(tmp_path):
    table = kept(tmp_path)
    for model in (
        *(kind("tree", n_teachers=20, **TERMS) for kind in (sb.PATEClassifier, in_rounds)),
        sb.RecordMomentsClassifier(**TERMS),
    ):
        model.fit(table, None, X_public=X_PUBLIC, classes=CLASSES)
        assert model.n_features_in_ == table.n_columns
        # fifteen runs of each: .86, .74 and .90 at least; means .88, .87, .90, deviations to .04
        assert model.score(SCHEMA.encode(rows(500, 9)), rows(500, 9)["ill"]) > 0.6
    assert sorted(path.name for path in (tmp_path / "vault").iterdir()) == ["table"]


def test_what_does_not_go_with_a_table_on_disk_is_refused(tmp_path):
    table = kept(tmp_path)
    for model in (sb.RecordMomentsClassifier(**TERMS), sb.PATEClassifier(n_teachers=20, **TERMS)):
        for given, words in (
            ({"y": rows()["ill"]}, "y is given beside a stored table"),
            ({"units": rows()["person"]}, "units is given beside a stored table"),
            ({"classes": ["yes", "no"]}, "give the same in the same order"),
            ({"X_public": PUBLIC}, "X_public does not have the 4 encoded columns"),
            ({"X_public": X_PUBLIC[:, :1]}, "X_public does not have the 4 encoded columns"),
        ):
            settings = {"y": None, "X_public": X_PUBLIC, "classes": CLASSES, **given}
            with pytest.raises((ParameterError, DataError), match=words):
                model.fit(table, **settings)
    with pytest.raises(DataError, match="a table on disk, which this learner does not take"):
        sb.train_teachers("tree", table, None, classes=CLASSES)
    persons = tmp_path / "persons"
    persons.mkdir()
    with pytest.raises(ParameterError, match="about single records"):
        sb.RecordMomentsClassifier(**TERMS, relation="replace-one").fit(
            kept(persons, "person"), None, X_public=X_PUBLIC, classes=CLASSES
        )


WARDS = [f"w{number}" for number in range(1200)]


def people(n, seed):
    rng = np.random.default_rng(seed)
    ward = rng.integers(0, len(WARDS), n)
    ill = np.where(ward % 2 == 1, "yes", "no")
    return pd.DataFrame({"age": rng.normal(50, 9, n), "ward": np.array(WARDS)[ward], "ill": ill})


OF_WARDS = Schema.from_json({"columns": {"age": "numeric", "ward": WARDS}}, public=people(50, 0))
IN_WARDS, WARD_POINTS = people(1200, 1), people(150, 2)


class Noting(ClassifierMixin, BaseEstimator):
    """Notes what it is given, in a list that all copies share."""

    seen: list[Any] = []  # noqa: RUF012

    def fit(self, X, y):
        self.seen.append(X)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        self.seen.append(X)
        return np.zeros(X.shape[0], dtype=int)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@pytest.mark.parametrize("narrow", [False, True])
def test_shards_on_disk_have_the_form_of_sparse_points(tmp_path, monkeypatch, narrow):
    private, points = IN_WARDS[["age", "ill"]], WARD_POINTS[["age"]]
    schema = Schema.infer(points) if narrow else OF_WARDS
    (private if narrow else IN_WARDS).to_csv(tmp_path / "private.csv", index=False)
    about = {"schema": schema, "target": "ill", "classes": CLASSES}
    table = store_table(tmp_path / "private.csv", tmp_path / "v", **about)
    monkeypatch.setattr(Noting, "seen", [])
    model = sb.PATEClassifier(Noting(), n_teachers=8, epsilon=8.0, delta=1e-5)
    model.fit_labels(table, None, X_public=schema.encode_sparse(WARD_POINTS), classes=CLASSES)
    of_teachers = [X for X in Noting.seen if X.shape[0] != session._ROWS]
    assert len(of_teachers) == 16
    assert all(sparse.issparse(one) for one in of_teachers)


def test_sparse_rows_are_those_of_the_array_to_the_last_bit():
    cells = ["some pain", "no pain; fever", None, "", "!", "pain"] * 20
    frame = pd.DataFrame(
        {
            "a": cells,
            "b": cells,
            "c": cells,
            "n": [0, 1.5, None, "x", -2, 0] * 20,
            "d": "2020-02-29",
        }
    )
    kinds = {
        "a": "text",
        "b": {"kind": "text", "width": 3},
        "c": {"kind": "text", "encoding": "hashed", "width": 20},
        "n": {"kind": "numeric", "center": 0, "scale": 1},
        "d": "date",
    }
    schema = Schema.from_json({"columns": kinds}, public=frame)
    rows, _ = schema.compact(frame)
    made = schema.widen_sparse(rows)
    wanted = sparse.csr_matrix(schema.widen(rows))
    for name in ("data", "indices", "indptr"):
        assert getattr(made, name).tobytes() == getattr(wanted, name).tobytes()
    assert (schema.encode_sparse(frame) != made).nnz == 0
    with pytest.raises(DataError, match="lacks"):
        schema.encode_sparse(frame[["a"]])
    assert schema.widen_sparse(rows[:0]).shape == (0, schema.widen(rows).shape[1])


def test_an_empty_stored_shard_has_its_width(tmp_path):
    IN_WARDS[:2].to_csv(tmp_path / "private.csv", index=False)
    table = store_table(
        tmp_path / "private.csv", tmp_path / "v", schema=OF_WARDS, target="ill", classes=CLASSES
    )
    shards = tables._assign_stored_shards(table, 3, "add-remove", tmp_path / "v")
    sizes = [replace(shards, sparse=True).part(number)[0].shape for number in range(3)]
    assert {width for _, width in sizes} == {OF_WARDS.encode(WARD_POINTS).shape[1]}
    assert sum(rows for rows, _ in sizes) == 2
