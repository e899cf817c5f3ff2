"""Diagnoses of a vault: what they hold, where they may be written, and that the vault stays as
it was."""

import json
import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from secretballot.datasets.schema import Schema
from secretballot.datasets.tables import read_table
from secretballot.ensemble.diagnostics.kept_teachers import kept_teachers
from secretballot.ensemble.diagnostics.margins import vote_margins
from secretballot.ensemble.teachers import TeacherEnsemble
from secretballot.exceptions import DataError, ParameterError
from secretballot.privacy.accounting import calibrate_sparse_vector
from secretballot.runs.diagnosis import run as diagnose_run
from secretballot.runs.diagnosis.folder import check_private_place, write_diagnoses
from secretballot.runs.diagnosis.run import (
    DiagnoseOutcome,
    DiagnoseRun,
    _noise_diagnosis,
    run_diagnose,
)
from secretballot.runs.diagnosis.study import LabelledRows, Study
from secretballot.runs.learn import LearnRun, run_learn
from secretballot.runs.progress import Watch
from secretballot.runs.tables import RunTables

K, N_PUBLIC = 30, 90


def table(count: int, seed: int, *, labels: bool = True, units: bool = False) -> str:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=count).round(3), rng.normal(size=count).round(3)
    ill = a + 0.5 * b + rng.normal(0, 0.5, size=count) > 0
    head = ["a", "b", *(["ill"] if labels else []), *(["who"] if units else [])]
    lines = []
    for number in range(count):
        cells = [a[number], b[number], *(["yes" if ill[number] else "no"] if labels else [])]
        lines.append(",".join(map(str, [*cells, *([f"p{number // 2}"] if units else [])])))
    return "\n".join([",".join(head), *lines]) + "\n"


def study(folder: Path, **more) -> DiagnoseRun:
    """Learn from small files, and return a diagnosis of the vault."""
    units = more.pop("units", False)
    (folder / "private.csv").write_text(table(900, 1, units=units))
    (folder / "public.csv").write_text(table(N_PUBLIC, 2, labels=False))
    (folder / "labelled.csv").write_text(table(300, 3))
    tables = RunTables(
        folder / "private.csv",
        folder / "public.csv",
        "ill",
        ("no", "yes"),
        unit="who" if units else None,
    )
    run_learn(LearnRun(tables, 2.0, 1e-5, folder / "out", **{"teachers": K, **more}))
    return DiagnoseRun(
        folder / "out" / "vault", folder / "public.csv", max_unstable=(3,), ensembles=2
    )


@pytest.fixture(autouse=True, scope="module")
def same_noise_once() -> Iterator[None]:
    """Calibrate each sparse vector once: it takes most of the time of a small diagnosis."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagnose_run, "calibrate_sparse_vector", lru_cache(calibrate_sparse_vector))
        yield


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> DiagnoseRun:
    return study(tmp_path_factory.mktemp("learnt"))


def with_files(run: DiagnoseRun, **more) -> DiagnoseRun:
    folder = run.public.parent
    return replace(run, private=folder / "private.csv", labelled=folder / "labelled.csv", **more)


@pytest.fixture(scope="module")
def whole(learnt: DiagnoseRun) -> DiagnoseOutcome:
    return run_diagnose(with_files(learnt, out=learnt.public.parent / "whole"))


def image(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file under a folder with its mode and content, without diagnoses."""
    files = [
        path for path in folder.rglob("*") if path.is_file() and "diagnostics" not in path.parts
    ]
    return {str(path): (path.stat().st_mode, path.read_bytes()) for path in files}


def test_kept_teachers_vote_as_they_did(learnt: DiagnoseRun) -> None:
    outcome = run_diagnose(learnt)
    assert outcome.teachers == "kept in the vault"
    schema = Schema.read(learnt.vault.parent / "release" / "schema.json")
    kept = kept_teachers(learnt.vault, 2, n_teachers=K)
    assert kept is not None
    votes = kept.vote_counts(schema.encode(read_table(learnt.public))).open_at_the_door()
    assert outcome.diagnoses["margins"].values()["margins"].tolist() == vote_margins(votes).tolist()
    assert outcome.diagnoses["expected"].values()["margins"] == pytest.approx(
        vote_margins(votes) / K / 2
    )
    assert set(outcome.diagnoses) == {"margins", "expected", "stability"}


def test_a_diagnosis_changes_nothing_in_vault_and_release(learnt: DiagnoseRun) -> None:
    before = image(learnt.vault.parent)
    run_diagnose(with_files(learnt))
    assert image(learnt.vault.parent) == before


def test_everything_is_there_with_all_the_files(whole: DiagnoseOutcome) -> None:
    found = whole.diagnoses
    assert set(found) == {"margins", "expected", "stability", "reference", "labels", "noise"}
    assert found["expected"].sizes["ensembles"] == 2
    assert found["reference"].values()["vote"] > 0.9
    assert 0.7 < found["labels"].values()["vote"] < 1
    assert found["labels"].sizes["queries"] == 300
    noise = found["noise"].values()
    assert 0 < noise["low"] <= noise["tau"] <= noise["high"] <= 1
    stability = found["stability"].values()
    assert stability["max_unstable"].tolist() == [3]
    assert (stability["answered"] <= stability["asked"]).all()
    assert stability["asked"].max() <= N_PUBLIC
    distances = found["margins"].values()["distances"]
    assert stability["unstable"].tolist() == [
        np.mean(distances < needed) for needed in stability["needed"]
    ]


def test_the_reference_is_one_model_of_all_records(
    learnt: DiagnoseRun, whole: DiagnoseOutcome
) -> None:
    run = with_files(learnt)
    found = whole.diagnoses["reference"].values()
    schema = Schema.read(learnt.vault.parent / "release" / "schema.json")
    assert run.private is not None
    frame = read_table(run.private)
    model = LogisticRegression(C=10.0, solver="liblinear").fit(
        schema.encode(frame), frame["ill"] == "yes"
    )
    says = model.predict(schema.encode(read_table(run.public))).astype(int)
    kept = kept_teachers(learnt.vault, 2, n_teachers=K)
    assert kept is not None
    votes = kept.vote_counts(schema.encode(read_table(run.public))).open_at_the_door()
    assert found["teacher"] == pytest.approx(np.mean(votes[np.arange(N_PUBLIC), says] / K))


def test_without_kept_teachers_they_are_trained_again(tmp_path: Path) -> None:
    run = study(tmp_path, units=True)
    for path in (run.vault / "teachers").iterdir():
        path.write_bytes(b"damaged")
    with pytest.raises(DataError, match="name the private file"):
        run_diagnose(run)
    outcome = run_diagnose(replace(run, private=tmp_path / "private.csv"))
    assert outcome.teachers == "trained again"
    assert outcome.diagnoses["expected"].sizes["ensembles"] == 2


def test_teachers_of_a_run_in_rounds_are_those_of_its_plan(tmp_path: Path) -> None:
    run = study(tmp_path, strategy="margin", queries=20, round_size=10)
    # those of the fit, and those of the plan
    assert len(list((run.vault / "teachers").iterdir())) > 1
    outcome = run_diagnose(run)
    assert (outcome.teachers, outcome.diagnoses["margins"].sizes["teachers"]) == (
        "kept in the vault",
        K,
    )
    (run.vault / "teachers.json").write_text("{}")
    with pytest.raises(DataError, match="damaged"):
        run_diagnose(run)


def test_three_classes_are_diagnosed_without_noise_diagnosis(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    for name, count in (("private", 600), ("labelled", 300)):
        a = rng.normal(size=count).round(3)
        rows = [f"{x},{'low' if x < -0.5 else 'high' if x > 0.5 else 'middle'}" for x in a]
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,kind", *rows]) + "\n")
    (tmp_path / "public.csv").write_text(
        "\n".join(["a", *map(str, rng.normal(size=50).round(3))]) + "\n"
    )
    tables = RunTables(
        tmp_path / "private.csv", tmp_path / "public.csv", "kind", ("low", "middle", "high")
    )
    run_learn(LearnRun(tables, 2.0, 1e-5, tmp_path / "out", teachers=12, teacher="tree"))
    run = DiagnoseRun(tmp_path / "out", tmp_path / "public.csv", max_unstable=(3,), ensembles=2)
    found = run_diagnose(with_files(run)).diagnoses
    assert set(found) == {"margins", "expected", "stability", "reference", "labels"}
    assert found["labels"].values()["vote"] > 0.9
    assert found["margins"].sizes == {"queries": 50, "classes": 3, "teachers": 12}


def test_of_two_whole_sets_of_teachers_none_is_taken(tmp_path: Path) -> None:
    for serial in ("one", "two"):
        assert serial == "one" or kept_teachers(tmp_path, 2, n_teachers=3) is not None
        TeacherEnsemble([LogisticRegression(), None, None], 2).keep(tmp_path, serial)
    assert kept_teachers(tmp_path, 2, n_teachers=3) is None
    assert kept_teachers(tmp_path, 2, n_teachers=2) is None
    assert kept_teachers(tmp_path / "nowhere", 2, n_teachers=3) is None
    assert not (tmp_path / "nowhere").exists()


def test_the_number_of_teachers_is_taken_from_the_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = study(tmp_path, teachers=None, neighbours="replace-one", records=900)
    train, asked = diagnose_run.retrained_votes, []
    monkeypatch.setattr(
        diagnose_run,
        "retrained_votes",
        lambda *given, **more: (asked.append(more["even"]), train(*given, **more))[1],
    )
    certificate = json.loads((run.vault.parent / "release" / "certificate.json").read_text())
    outcome = run_diagnose(
        replace(run, private=tmp_path / "private.csv", resampling="bootstrap", ensembles=1)
    )
    assert outcome.diagnoses["margins"].sizes["teachers"] == certificate["released"]["n_teachers"]
    assert asked == [True]  # shards of equal size, as under replace-one
    moved = (run.vault.parent / "release").rename(tmp_path / "published")
    with pytest.raises(DataError, match="its release's schema"):
        run_diagnose(run)
    assert run_diagnose(replace(run, schema=moved / "schema.json")).diagnoses["margins"].sizes == {
        "queries": N_PUBLIC,
        "classes": 2,
        "teachers": certificate["released"]["n_teachers"],
    }
    (moved / "certificate.json").unlink()
    with pytest.raises(DataError, match="no certificate of a finished release"):
        run_diagnose(replace(run, schema=moved / "schema.json"))


def test_files_are_closed_and_say_what_they_are(learnt: DiagnoseRun) -> None:
    outcome = run_diagnose(learnt)
    folder = learnt.vault / "diagnostics"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    names = {path.name for path in folder.iterdir()}
    parts = ("margins", "high-margin", "stability")
    assert names == {
        "diagnostics.json",
        *(f"diagnostics-{p}.{kind}" for p in parts for kind in ("svg", "png")),
    }
    assert {path.name for path in outcome.files} == names
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        if path.suffix != ".png":
            assert "NOT RELEASABLE" in path.read_text()
    document = json.loads((folder / "diagnostics.json").read_text())
    assert document == outcome.to_private_json()
    assert document["releasable"] is False
    assert all(part["releasable"] is False for part in document["diagnoses"].values())


def test_an_outcome_shows_nothing_by_itself(whole: DiagnoseOutcome) -> None:
    for text in (repr(whole), str(whole), repr(whole.diagnoses)):
        assert "NOT RELEASABLE" in text
        assert not re.search(r"\d\.\d", text)


def test_notes_carry_no_value(learnt: DiagnoseRun) -> None:
    watch = Watch()
    few = learnt.public.parent / "few.csv"
    few.write_text(table(30, 4))
    outcome = run_diagnose(replace(learnt, labelled=few), watch)
    assert "noise" not in outcome.diagnoses
    assert [note.text for note in watch.notes] == [
        "The labelled file is too short to estimate how noisy labels are: that takes 200."
    ]
    watch, one_class = Watch(), LabelledRows(np.zeros((400, 1)), np.zeros(400, dtype=np.int64))
    assert _noise_diagnosis(one_class, 2, 0, watch) == {}
    assert "too few rows of one class" in watch.notes[0].text
    assert _noise_diagnosis(one_class, 3, 0, Watch()) == {}


@pytest.mark.parametrize("inside", [".", "deep/er", "diagnostics"])
def test_no_diagnosis_is_written_into_a_release(learnt: DiagnoseRun, inside: str) -> None:
    release = learnt.vault.parent / "release"
    before = image(release)
    with pytest.raises(DataError, match="NOT RELEASABLE"):
        run_diagnose(replace(learnt, out=release / inside))
    assert image(release) == before


def test_a_release_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    places = {"certificate.json": ["certificate.json"], "texts": ["README.txt", "labels.csv"]}
    for name, files in places.items():
        folder = tmp_path / name
        folder.mkdir()
        for file in files:
            (folder / file).write_text("{}")
        (tmp_path / f"to-{name}").symlink_to(folder)
        for place in (folder, folder / "sub", tmp_path / f"to-{name}" / "sub"):
            with pytest.raises(DataError, match="lies in the release"):
                write_diagnoses(place, {}, {})
    (tmp_path / "study" / "vault").mkdir(parents=True)
    with pytest.raises(DataError, match="lies in the release"):
        check_private_place(tmp_path / "study" / "release" / "new")
    assert check_private_place(tmp_path / "release") == tmp_path / "release"
    (tmp_path / "texts" / "sub").mkdir()
    (tmp_path / "harmless").symlink_to(tmp_path / "texts" / "sub")
    with pytest.raises(DataError, match="lies in the release"):
        write_diagnoses(tmp_path / "harmless", {}, {})


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    mode = tmp_path.stat().st_mode
    for place in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(DataError, match="something else than diagnoses"):
            write_diagnoses(place, {}, {})
    assert tmp_path.stat().st_mode == mode
    folder = tmp_path / "mine"
    write_diagnoses(folder, {"old": 1}, {"old.png": b"old"})
    write_diagnoses(folder, {"new": 1}, {"new.png": b"new"})
    assert {path.name for path in folder.iterdir()} == {"diagnostics.json", "diagnostics-new.png"}
    (folder / "diagnostics-notes.txt").write_text("mine")
    (folder / "diagnostics-old.svg").mkdir()
    write_diagnoses(folder, {"newer": 1}, {})
    kept = {"diagnostics.json", "diagnostics-notes.txt", "diagnostics-old.svg"}
    assert {path.name for path in folder.iterdir()} == kept


def test_a_vault_itself_is_no_place_for_them(learnt: DiagnoseRun) -> None:
    before = image(learnt.vault)
    with pytest.raises(DataError, match="something else"):
        run_diagnose(replace(learnt, out=learnt.vault))
    assert image(learnt.vault) == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ensembles": 0}, "ensembles"),
        ({"jobs": 0}, "jobs"),
        ({"seed": -1}, "seed"),
        ({"max_unstable": ()}, "max_unstable"),
        ({"max_unstable": (0,)}, "max_unstable"),
        ({"max_unstable": (10**400,)}, "max_unstable"),
        ({"max_unstable": (1,) * 21}, "max_unstable has 21"),
        ({"resampling": "jackknife"}, "resampling"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"vault": Path("nowhere")}, "no vault"),
        ({"public": Path("nowhere.csv")}, "nowhere.csv"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    learnt: DiagnoseRun, tmp_path: Path, change: dict, words: str
) -> None:
    with pytest.raises((DataError, ParameterError), match=words):
        run_diagnose(replace(learnt, out=tmp_path / "out", **change))
    assert not (tmp_path / "out").exists()


def test_other_files_are_refused_without_a_cell(learnt: DiagnoseRun, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a,c\ns3cr3t,2\n")
    for change, words in (
        ({"public": other}, "'b'"),
        ({"private": other}, "is not the one that this run learned from"),
        ({"labelled": other}, "'ill'"),
        ({"schema": other}, "no JSON"),
    ):
        with pytest.raises(DataError, match=words) as caught:
            run_diagnose(replace(learnt, out=tmp_path / "out", **change))
        assert "s3cr3t" not in str(caught.value)
        assert "--drop" not in str(caught.value)  # which a diagnosis has not
    wrong = tmp_path / "wrong.csv"
    wrong.write_text(table(250, 6).replace("yes", "s3cr3t"))
    with pytest.raises(DataError) as caught:
        run_diagnose(replace(learnt, out=tmp_path / "out", labelled=wrong))
    assert "s3cr3t" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_schema_alone_does_not_open_a_run_without_a_release(
    learnt: DiagnoseRun, tmp_path: Path
) -> None:
    """Any run of the same columns has one: the certificate must be there, and be of the run."""
    release = learnt.vault.parent / "release"
    content = (release / "schema.json").read_bytes()
    (tmp_path / "schema.json").write_bytes(content)
    run = replace(learnt, schema=tmp_path / "schema.json", out=tmp_path / "out")
    stated = json.loads((release / "certificate.json").read_text())
    for text in (None, "{}", "no JSON", json.dumps(stated | {"released": {}}), json.dumps([])):
        if text is not None:
            (tmp_path / "certificate.json").write_text(text)
        with pytest.raises(DataError, match="no certificate of a finished release"):
            run_diagnose(run)
    other = json.loads(content)
    other["classes"] = other["classes"][::-1]
    for certificate, schema, words in (
        (stated | {"epsilon": 3.0}, json.loads(content), "epsilon"),
        (stated | {"unit_column": "who"}, json.loads(content), "unit"),
        (
            stated | {"released": stated["released"] | {"n_teachers": 31}},
            json.loads(content),
            "teachers",
        ),
        (stated, other, "classes"),
    ):
        (tmp_path / "certificate.json").write_text(json.dumps(certificate))
        (tmp_path / "schema.json").write_text(json.dumps(schema))
        with pytest.raises(
            DataError, match=f"of another run than the vault: it differs in {words};"
        ):
            run_diagnose(run)
    assert not (tmp_path / "out").exists()


def test_a_vault_is_found_from_inside(learnt: DiagnoseRun, monkeypatch: pytest.MonkeyPatch) -> None:
    for here, place in (
        (".", "."),
        ("teachers", ".."),
        ("teachers", "../../vault/teachers/.."),
        ("..", "vault"),
    ):
        monkeypatch.chdir(learnt.vault / here)
        assert Study.read(place).n_teachers == K


def test_an_estimate_beside_the_release_takes_its_part_of_epsilon(
    learnt: DiagnoseRun, tmp_path: Path
) -> None:
    release = learnt.vault.parent / "release"
    (tmp_path / "schema.json").write_bytes((release / "schema.json").read_bytes())
    stated = json.loads((release / "certificate.json").read_text()) | {
        "epsilon": 1.4,
        "delta": 0.5e-5,
    }
    (tmp_path / "certificate.json").write_text(json.dumps(stated))
    assert Study.read(learnt.vault, tmp_path / "schema.json").n_teachers == K


def test_a_vault_with_half_a_description_is_no_vault(learnt: DiagnoseRun, tmp_path: Path) -> None:
    about = json.loads((learnt.vault / "run.json").read_text())
    for name in (
        "epsilon",
        "delta",
        "teacher",
        "teachers",
        "seed",
        "target",
        "unit",
        "classes",
        "private file",
    ):
        described = {key: value for key, value in about["description"].items() if key != name}
        (tmp_path / "run.json").write_text(json.dumps(about | {"description": described}))
        with pytest.raises(DataError, match="is no vault of a run of `learn`"):
            run_diagnose(replace(learnt, vault=tmp_path))


def test_cells_that_are_no_numbers_are_told_of(learnt: DiagnoseRun, tmp_path: Path) -> None:
    """The run's own public file set the schema; another one may write its numbers otherwise."""
    (tmp_path / "public.csv").write_text('a,b\n0.5,1\n"1,5",2\n0.1,"2,5"\n"0,3",1\n')
    watch = Watch()
    run_diagnose(replace(learnt, public=tmp_path / "public.csv", out=tmp_path / "out"), watch)
    assert [note.private for note in watch.notes] == [True, True]
    assert watch.notes[0].text.startswith(
        "Column 'a' of the public file has 2 cells that are no numbers"
    )
    assert not any("1,5" in note.text for note in watch.notes)


def test_a_run_without_a_release_is_not_diagnosed(tmp_path: Path) -> None:
    """Whoever looks before the release would choose by private data what the release asks."""
    run = study(tmp_path)
    (run.vault.parent / "release" / "certificate.json").unlink()
    with pytest.raises(DataError, match="finish the run first"):
        run_diagnose(run)
