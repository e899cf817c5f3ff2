"""`secretballot learn` on a number and on several labels, by record moments and by votes: what it
writes, how good it is, resumption, what it refuses."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import secretballot_verify as second
from patients import broken_off, document_of, invoke
from secretballot.core.ledger import Ledger

FEATURES, LABELS = ["a", "b", "ward"], ["fever", "cough", "rash"]
N_PUBLIC = 120
QUIET = ("--set", "exclude=report")
#: Price, and what names the method.
METHODS = {
    "record-moments": ("--epsilon", "2", "--delta", "1e-6"),
    "pate": ("--epsilon", "4", "--delta", "1e-5", "--n-teachers", "60"),
}


def rows(count, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, count)).round(3)
    return pd.DataFrame(
        {
            "patient": np.arange(count) // 2,
            "a": a,
            "b": b,
            "ward": rng.choice(["north", "south"], count),
            "dose": (20 + 6 * a - 3 * b + rng.normal(size=count)).round(2),
            "fever": np.where(a > 0, "yes", "no"),
            "cough": (b > 0.3).astype(int),
            "rash": a + b > 1,
        }
    )


def write_files(folder):
    private = rows(2000, 1)
    private[["patient", *FEATURES, "dose"]].to_csv(folder / "number.csv", index=False)
    private[["patient", *FEATURES, *LABELS]].to_csv(folder / "labels.csv", index=False)
    rows(N_PUBLIC, 3)[FEATURES].to_csv(folder / "public.csv", index=False)
    rows(300, 2).to_csv(folder / "test.csv", index=False)
    return folder


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path)


def words_of(folder, kind, *more, method="record-moments"):
    """Return a small, complete command; later options override earlier ones."""
    tables = [str(folder / f"{kind}.csv"), str(folder / "public.csv")]
    target = ["dose", "--bounds", "0,40"] if kind == "number" else [",".join(LABELS)]
    out = ["--total", "20,1e-2", "--out", str(folder / "out"), "--drop", "patient"]
    return ["learn", *tables, "--target", *target, *METHODS[method], *out, *more]


def learn(folder, kind, *more, method="record-moments"):
    return invoke(*words_of(folder, kind, *more, method=method))


@pytest.fixture(
    scope="module",
    params=[(method, kind) for method in METHODS for kind in ("number", "labels")],
    ids=" of ".join,
)
def made(request, tmp_path_factory):
    """A run that was broken off before it was published, and repeated."""
    method, kind = request.param
    folder = write_files(tmp_path_factory.mktemp("made"))
    broken_off(*words_of(folder, kind, method=method))
    test = ["--evaluate", str(folder / "test.csv"), "--json"]
    said = document_of(learn(folder, kind, *test, method=method))
    release = folder / "out" / "release"
    return SimpleNamespace(folder=folder, release=release, method=method, kind=kind, said=said)


def test_a_run_is_whole_and_paid_once_and_both_verifiers_confirm_it(made):
    by_votes = made.method == "pate"
    assert {path.name for path in made.release.iterdir()} == {
        *("README.txt", "certificate.json", "model-card.md", "report.html"),
        *("schema.json", "student.onnx", *(["answers.csv"] if by_votes else [])),
    }
    assert (made.said["method"], made.said["resumed"]) == (made.method, True)
    ledger = Ledger.open_existing(made.folder / f"{made.kind}.csv.ledger")
    assert (ledger.spent().epsilon, ledger.releases()) == (float(METHODS[made.method][1]), 1)
    assert invoke("verify", str(made.folder / "out")).exit_code == 0
    assert second.exit_code(second.check_release(str(made.release))) == 0
    page, card, readme = (
        (made.release / name).read_text() for name in ("report.html", "model-card.md", "README.txt")
    )
    if by_votes:
        assert made.said["queries"] == len(pd.read_csv(made.release / "answers.csv")) == N_PUBLIC
        assert "measurement was released" in page
    else:
        whole = page + card + readme
        for stray in ("labels.csv", "answers.csv", "majority", "its class", "<dt>Labelled</dt>"):
            assert stray not in whole
    learns = "A regressor that predicts a number from 0 to 40"
    if made.kind == "labels":
        learns = "A classifier that predicts which of 3 labels apply: fever, cough, rash"
    assert learns in card


def test_the_model_is_good_and_anybody_measures_the_same(made):
    metrics, test = made.said["metrics"], str(made.folder / "test.csv")
    assert metrics["beats_constant"]
    said = made.folder / "said.csv"
    predict = ["predict", str(made.release), test, "--out", str(said)]
    assert invoke(*predict).exit_code == 0
    truth, predicted = pd.read_csv(test), pd.read_csv(said)
    if made.kind == "number":
        error = np.sqrt(np.mean((predicted["prediction"] - truth["dose"]) ** 2))
        assert error == pytest.approx(metrics["root_mean_squared_error"])
        # the noise of the target alone is 1, and its mean is off by 6.6
        most = 2 if made.method == "record-moments" else 3
        assert error < most < 6 < metrics["constant_root_mean_squared_error"]
    else:
        right = predicted["label[cough]"] == truth["cough"]
        assert right.mean() == pytest.approx(metrics["labels"]["cough"]["accuracy"])
        assert predicted["probability[rash]"].between(0, 1).all()
        assert metrics["exact"] > 0.7 > 0.4 > metrics["majority_exact"]
    target = "dose" if made.kind == "number" else ",".join(LABELS)
    words = ["evaluate", str(made.release), test, "--target", target, "--json"]
    (evaluated,) = document_of(invoke(*words))["releases"]
    figure = "root_mean_squared_error" if made.kind == "number" else "exact"
    assert evaluated["metrics"][figure] == pytest.approx(metrics[figure])


def test_what_a_dry_run_says_and_asks_is_what_the_run_does(files):
    of_sums = learn(files, "labels", "--dry-run").stdout
    words = "counts of the labels and 4 noisy sums over all records"
    assert f"record-moments: {words}" in of_sums
    found = document_of(learn(files, "number", "--dry-run", "--json", method="pate"))
    assert (found["queries"], found["teachers"], found["epsilon"]) == (N_PUBLIC, 60, 4.0)
    quantile = ["--set", "n_queries=100", "--set", "mechanism=quantile"]
    few = learn(files, "number", "--dry-run", *quantile, method="pate")
    assert "[--confirm noise]" in few.stdout
    several = learn(files, "labels", "--dry-run", method="pate")
    assert "noisy counts of labels, 3 of them, at 120 public points" in several.stdout
    assert not (files / "out").exists()
    assert not list(files.glob("*.ledger"))


@pytest.mark.parametrize("method", METHODS)
def test_every_private_number_is_read_from_itself_alone(files, method):
    """Odd targets leave their own records out, or are cut, and refuse nothing."""
    table = pd.read_csv(files / "number.csv", dtype=str)
    table.loc[:5, "dose"] = ["", "xyz", "inf", "-inf", "nan", "1e300"]
    table.to_csv(files / "number.csv", index=False)
    result = learn(files, "number", *QUIET, method=method)
    assert result.exit_code == 0, result.stderr
    assert "curator only: Of the private targets 3 are no numbers" in result.stderr
    assert "xyz" not in result.stderr + result.stdout
    for path in (files / "out" / "release").iterdir():
        assert b"xyz" not in path.read_bytes()


def test_a_target_that_hardly_says_numbers_is_asked_about(files):
    table = pd.read_csv(files / "number.csv")
    table.rename(columns={"dose": "ward", "ward": "dose"}).to_csv(files / "number.csv", index=False)
    table = pd.read_csv(files / "public.csv").rename(columns={"ward": "dose"})
    table.assign(ward=1.5).drop(columns="dose").to_csv(files / "public.csv", index=False)
    result = learn(files, "number")
    assert result.exit_code == 2
    assert "2,000 are no numbers" in result.stderr
    assert "[--confirm target]" in result.stderr
    assert not (files / "number.csv.ledger").exists()


def test_labels_are_read_by_their_spelling(files):
    table = pd.read_csv(files / "labels.csv")
    for name in LABELS:
        table[name] = np.where(table[name].astype(str).isin(["yes", "1", "True"]), "ja", "nein")
    table.to_csv(files / "labels.csv", index=False)
    refused = learn(files, "labels")
    assert refused.exit_code == 2
    assert "2000 rows without a label in column 'fever'" in refused.stderr
    assert "nein" not in refused.stderr
    assert learn(files, "labels", "--classes", "nein,ja", *QUIET).exit_code == 0


ONE_TARGET = "goes with one target of classes, and the target is"
REFUSED = [
    ("pate", "number", ["--set", "mechanism=laplace"], "must be one of auto, mean, quantile"),
    ("pate", "number", ["--set", "strategy=margin"], ONE_TARGET),
    ("pate", "number", ["--set", "n_queries=estimate:epsilon=0.1"], "n_queries is 'estimate"),
    ("record-moments", "labels", ["--class-weight", "balanced"], "does not go with labels"),
    ("pate", "labels", ["--classes", "a,b,c"], "of several labels give two spellings"),
    ("pate", "number", ["--set", "relation=replace-one", "--unit", "patient"], "use 'add-remove'"),
    ("record-moments", "number", ["--student", "ridge"], ONE_TARGET),
    (
        "record-moments",
        "number",
        ["--delta", "0"],
        "of classes, for a delta of 0: --method pate --set mechanism=laplace",
    ),
    ("record-moments", "number", ["--method", "record-votes"], "use record-moments or pate"),
]


@pytest.mark.parametrize(
    ("method", "kind", "options", "sentence"), REFUSED, ids=lambda one: str(one)[:40]
)
def test_what_does_not_go_together_is_refused(files, method, kind, options, sentence):
    result = learn(files, kind, *options, method=method)
    assert result.exit_code == 2
    assert sentence in result.stderr.strip().splitlines()[-1]
    assert not (files / f"{kind}.csv.ledger").exists()
    assert not (files / "out").exists()
