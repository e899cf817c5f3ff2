"""Private tables that go to disk: checked as in memory, learned from, and nothing left of them.
Rows of them in public files are refused by every run, before anything is paid."""

import os

import numpy as np
import pandas as pd
import pytest

import secretballot as sb
from secretballot.data.schema import Schema
from secretballot.data.stored import StoredTable
from secretballot.exceptions import DataError, ParameterError
from secretballot.runs import tables as run_tables
from secretballot.runs.questions import Watch
from secretballot.runs.run import quote, run
from secretballot.runs.spec import RunSpec
from secretballot.runs.tables import RunInputs, _units_that_mark, check_tables
from secretballot.teachers.ensemble import TeacherEnsemble

N, SECRET = 900, "s3cr3t"


@pytest.fixture(autouse=True)
def small_memory(monkeypatch):
    monkeypatch.setattr(run_tables, "_MOST_IN_MEMORY", 0)
    monkeypatch.setattr("secretballot.runs.tables._BLOCK_ROWS", 100)


def people(n=N, seed=0):
    rng = np.random.default_rng(seed)
    age, ward = rng.normal(50, 15, n), rng.choice(["north", "south"], n)
    ill = np.where(age + 10 * (ward == "north") + rng.normal(0, 5, n) > 55, "yes", "no")
    return pd.DataFrame({"age": age, "ward": ward, "person": np.arange(n) // 3, "ill": ill})


def spec_of(folder, records=None, **more):
    """Write the tables, and return a run of its own account, by record moments."""
    (people() if records is None else records).to_csv(folder / "private.csv", index=False)
    people(300, 1)[["age", "ward"]].to_csv(folder / "public.csv", index=False)
    people(500, 2).drop(columns="person").to_csv(folder / "test.csv", index=False)
    fields = {
        **{name: folder / f"{name}.csv" for name in ("private", "public")},
        "target": "ill",
        "classes": "no,yes",
        "out": folder / "out",
        "ledger": "own",
        "epsilon": 1,
        "delta": 1e-5,
        "exclude": "report",  # which nothing here looks at
        **({} if more.get("unit") else {"drop": "person"}),
    }
    return RunSpec.read(**fields | {key: one for key, one in more.items() if one is not None})


VOTING = {"n_teachers": 20, "n_queries": 60, "teacher": "tree"}
WAYS = {
    "record-moments": {},
    "record-votes": {"method": "record-votes"},
    "pate": VOTING,
    "rounds": {**VOTING, "strategy": "margin"},
}
PAIRS = [("record-moments", None), ("record-votes", "person"), ("pate", "person"), ("rounds", None)]


@pytest.mark.parametrize(("way", "unit"), PAIRS)
def test_a_run_from_disk_learns_and_leaves_no_record_behind(tmp_path, way, unit):
    test = tmp_path / "test.csv"
    made = run(spec_of(tmp_path, epsilon=5, unit=unit, evaluate=test, **WAYS[way]))
    # fourteen runs of each: means .90 to .93; rounds vary most, by .03, with .79 at least
    assert made.metrics.accuracy > 0.65
    assert made.certificate["unit"] == ("record" if unit is None else "user")
    assert sb.verify_certificate(made.certificate).ok
    left = {path.name for path in (tmp_path / "out" / "vault").iterdir()}
    assert not left & {"table", "shards", "record.ids"}
    assert not [name for name in left if name.startswith(("persons-", "shards-"))]


def test_what_is_read_from_disk_is_what_is_read_in_memory(tmp_path, monkeypatch):
    private = people()
    private.loc[[5, 450], "ward"] = [SECRET, ""]
    private["age"] = private["age"].astype(object)
    private.loc[[7, 801], "age"] = SECRET
    given = spec_of(tmp_path, private, unit="person")
    watch, plain = Watch(), Watch()
    found = RunInputs(given, watch, tmp_path / "vault")
    monkeypatch.setattr(run_tables, "_MOST_IN_MEMORY", 1)
    known = RunInputs(given, plain)
    assert isinstance(found.private, StoredTable)
    X = np.concatenate([block.X for block in found.private.blocks()])
    assert X.tobytes() == known.private.rows.tobytes()
    assert [note.text for note in watch.notes] == [note.text for note in plain.notes]
    assert "(rows 7, 801)" in watch.notes[-1].text
    assert all(note.private for note in watch.notes)
    assert found.n_units == known.n_units == N // 3
    assert SECRET not in repr(found) + repr(found.private)
    assert "array" not in repr(next(found.private.blocks()))
    assert str(N) not in repr(found.private)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda p: p.assign(ill=p["ill"].where(p.index != 777)), r"1 rows without a label .*777"),
        (
            lambda p: p.assign(ill=p["ill"].where(p.index != 777, SECRET)),
            r"none of the 2 declared classes \(row 777\)",
        ),
        (
            lambda p: p.assign(person=p["person"].where(p.index != 777)),
            r"1 rows without a unit .*row 777",
        ),
        (lambda p: p.assign(ward=p["ward"].str.upper()), "does not fit .column 'ward', 100 %"),
        (lambda p: p.drop(columns="age"), "lacks column 'age'"),
        (lambda p: p.assign(more=SECRET), "has column 'more' that the public file lacks"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_and_nothing_is_left(tmp_path, spoil, words):
    spec = spec_of(tmp_path, spoil(people()), unit="person")
    with pytest.raises(DataError, match=words) as refused:
        run(spec)
    assert SECRET not in str(refused.value)
    assert sorted(os.listdir(tmp_path)) == ["private.csv", "public.csv", "test.csv"]


def test_a_check_looks_at_a_large_table_block_by_block(tmp_path):
    private = people()
    found = check_tables(spec_of(tmp_path, private.assign(ward=private["ward"].str.upper())))
    assert found["rows"]["private"] == N
    assert ["column 'ward', 100 %" in one for one in found["stopping"]] == [True]
    assert [(one["name"], one["strange"]) for one in found["columns"]] == [("ward", 1), ("age", 0)]
    assert sorted(os.listdir(tmp_path)) == ["private.csv", "public.csv", "test.csv"]


def test_a_run_that_was_killed_while_reading_begins_anew_and_one_that_had_read_goes_on(
    tmp_path, monkeypatch
):
    spec = spec_of(tmp_path)

    class Killed(BaseException):
        """Like a signal, which nobody catches."""

    def die(*args, **more):
        raise Killed

    for place in (
        "secretballot.data.stored.TableWriter.finish",
        "secretballot.learners.learner.Learner.fit_labels",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, die)
            with pytest.raises(Killed):
                run(spec)
        assert (tmp_path / "out" / "vault" / "table").exists()
    # the table lies there whole: its rows are not read again
    monkeypatch.setattr("secretballot.runs.tables.table_blocks", die)
    assert run(spec).resumed
    assert not (tmp_path / "out" / "vault" / "table").exists()


def test_what_a_crash_left_of_a_finished_run_goes_when_it_is_looked_at(tmp_path):
    spec = spec_of(tmp_path)
    run(spec)
    place = tmp_path / "out" / "vault" / "table"
    place.mkdir()
    (place / "rows").write_text(SECRET)
    run(spec)
    assert not place.exists()


def test_candidates_are_chosen_by_a_table_on_disk(tmp_path):
    account = {"ledger": str(tmp_path / "account"), "total": (9, 1e-4)}
    private = people(300)
    for name, epsilon in (("a", 5.0), ("b", 1.0)):
        run(spec_of(tmp_path, private, epsilon=epsilon, out=tmp_path / name, **account))
    places = ",".join(str(tmp_path / name / "release" / "student.onnx") for name in "ab")
    choice = {"hypotheses": places, "delta": 0, "out": tmp_path / "chosen", **account}
    chosen = run(spec_of(tmp_path, private, **choice))
    assert chosen.certificate["public"]["n_candidates"] == 2
    assert not (tmp_path / "chosen" / "vault" / "table").exists()


def test_python_stores_a_table_once(tmp_path):
    folder = tmp_path / "all"
    for ward, part in people().groupby("ward"):
        (folder / f"ward={ward}").mkdir(parents=True)
        part.drop(columns=["ward", "person"]).to_parquet(
            folder / f"ward={ward}" / "a.parquet", index=False
        )
    schema = Schema.infer(people(300, 1)[["age", "ward"]])
    seen = []

    def store(**more):
        settings = {"target": "ill", "classes": ["no", "yes"], "progress": seen.append, **more}
        return sb.store_table(folder, tmp_path / "vault", schema=schema, **settings)

    first = store()
    assert (seen[-1], first.count_rows()) == (N, N)
    assert store().serial == first.serial
    part = next((folder / "ward=north").iterdir())
    pd.concat([pd.read_parquet(part)] * 2).to_parquet(part, index=False)
    assert store().serial != first.serial
    with pytest.raises(ParameterError, match="two or more distinct values"):
        store(classes=["no"])
    for _ in range(2):  # the second call does not find what the first one refused
        with pytest.raises(DataError, match="does not fit"):
            sb.store_table(
                folder, tmp_path / "other", target="ill", classes=["no", "yes"],
                schema=Schema.infer(pd.DataFrame({"age": ["1", "2"], "ward": ["N", "S"]})),
            )  # fmt: skip
        assert not (tmp_path / "other" / "table").exists()


def test_the_identity_of_a_table_is_that_of_the_files_that_were_read(tmp_path):
    folder, added = tmp_path / "all", people(50, 7).drop(columns="person")
    folder.mkdir()
    people().drop(columns="person").to_parquet(folder / "a.parquet", index=False)

    def add(rows):
        added.to_parquet(folder / "b.parquet", index=False)

    settings = {"target": "ill", "classes": ["no", "yes"]}
    settings["schema"] = Schema.infer(people(300, 1)[["age", "ward"]])
    with pytest.raises(DataError, match="was changed while it was read"):
        sb.store_table(folder, tmp_path / "vault", progress=add, **settings)
    assert sb.store_table(folder, tmp_path / "vault", **settings).count_rows() == N + 50


def test_what_a_folder_cannot_do_is_refused_before_an_account_is_opened(tmp_path):
    folder, whole = tmp_path / "all", people().drop(columns="person")
    for ward, part in whole.groupby("ward"):
        (folder / f"ward={ward}").mkdir(parents=True)
        part.drop(columns="ward").to_parquet(folder / f"ward={ward}" / "a.parquet", index=False)
    spec = spec_of(
        tmp_path, whole, private=folder, drop="", method="pate", relation="replace-one", n_records=N
    )
    for perform in (run, quote):
        with pytest.raises(ParameterError, match="give one file that is not sorted by content"):
            perform(spec)
    for place in (folder, tmp_path / "private.csv"):
        spec = spec_of(tmp_path, whole, private=place, drop="", hypotheses="stumps", delta=0)
        with pytest.raises(ParameterError, match="fitted classifiers alone are compared"):
            run(spec)
    assert not [*tmp_path.glob("*.ledger"), *tmp_path.glob("out")]


@pytest.mark.parametrize("url", [False, True])
@pytest.mark.parametrize("part", ["public", "evaluate"])
def test_a_private_file_is_no_public_one_by_whatever_name(tmp_path, part, url):
    (tmp_path / "all").mkdir()
    for number in range(2):
        people(seed=number + 5).to_parquet(tmp_path / "all" / f"{number}.parquet", index=False)
    one = tmp_path / "all" / "1.parquet"
    private = f"file://{tmp_path}/all" if url else tmp_path / "all"
    places = {"evaluate": tmp_path / "test.csv", "private": private, part: one}
    spec = spec_of(tmp_path, publish_metrics=True, **places)
    for perform in (run, check_tables):
        with pytest.raises(DataError, match="holds rows of the private file"):
            perform(spec)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("unit", [None, "person"])
def test_an_interrupted_run_finds_its_shards_and_teachers_again(tmp_path, unit, monkeypatch):
    spec = spec_of(tmp_path, epsilon=5, unit=unit, **VOTING)
    fitted = []

    def killed(*args, **more):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TeacherEnsemble, "vote_counts", killed)
        with pytest.raises(KeyboardInterrupt):
            run(spec)
    monkeypatch.setattr(
        "secretballot.teachers.ensemble._trained",
        lambda recipe, source, waiting, workers, **more: (fitted.append(one) for one in waiting),
    )
    assert run(spec).resumed
    assert fitted == []


def test_units_are_counted_in_little_memory():
    rng = np.random.default_rng(0)
    for n_units in (1, 3, 1000, 300_000):
        digests = rng.integers(0, 2**64, (n_units, 2), dtype=np.uint64)
        marked = np.zeros(2**26, dtype=np.bool_)
        marked[digests[:, 0] % np.uint64(len(marked))] = True
        assert _units_that_mark(marked) == pytest.approx(n_units, rel=0.001)


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize(
    ("part", "more"),
    [
        ("public", {}),
        ("evaluate", {"publish_metrics": True}),
        ("public", {"method": "pate"}),
        ("evaluate", {"method": "semi-private", "hypotheses": "stumps", "delta": 0}),
    ],
    ids=str,
)
def test_private_rows_in_public_files_are_refused_before_anything_is_paid(
    tmp_path, monkeypatch, part, more, in_memory
):
    if in_memory or "hypotheses" in more:
        monkeypatch.setattr(run_tables, "_MOST_IN_MEMORY", N)
    spec = spec_of(tmp_path, evaluate=tmp_path / "test.csv", **more)
    path = tmp_path / {"public": "public.csv", "evaluate": "test.csv"}[part]
    own = pd.read_csv(path)
    with_private = pd.concat([own, people()[:133].assign(ill="no")[own.columns]])
    with_private.iloc[:, ::-1].to_csv(path, index=False)  # in another order of columns
    for perform in (quote, run, check_tables, run):  # kept in the vault or not, all are compared
        with pytest.raises(DataError, match=r"file .*holds rows of the private file.*Nothing was"):
            perform(spec)
    assert sorted(os.listdir(tmp_path)) == ["private.csv", "public.csv", "test.csv"]


def test_rows_of_one_person_are_no_coincidence(tmp_path):
    copies = pd.concat([people().assign(person=range(N))] * 4)
    spec = spec_of(tmp_path, copies, unit="person")
    public = pd.concat([people(300, 1), people()[:100]])
    public[["age", "ward"]].to_csv(tmp_path / "public.csv", index=False)
    with pytest.raises(DataError, match="public file holds rows of the private file"):
        quote(spec)
