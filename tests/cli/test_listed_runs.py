"""Runs that take their noise off the list of a ledger: `ledger create`, `label`, `learn`, `ledger
show`."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from secretballot.cli import app
from secretballot.exceptions import ParameterError
from secretballot.privacy.accounting import (
    ArgmaxGaussianEvent,
    GaussianEvent,
    LabelGaussianEvent,
    PrivacyBudget,
    PureEvent,
    VectorSumEvent,
    VoteTableEvent,
    calibrate_argmax_gaussian,
)
from secretballot.privacy.ledger import Ledger
from secretballot.report.certificate.verify import verify_certificate
from secretballot.runs import label as label_run
from secretballot.runs.listed_account import events_to_list, listed_noise

BUDGET = PrivacyBudget(2.0, 1e-6)
TOTAL = ["--epsilon", "2", "--delta", "1e-6"]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "counts.npy", np.tile([20, 80], (30, 1)))
    rows = "\n".join(f"{x:.3f},{'yes' if x > 0.5 else 'no'}" for x in rng.random(240))
    (tmp_path / "private.csv").write_text(f"x,y\n{rows}\n")
    public = "\n".join(f"{x:.3f}" for x in rng.random(40))
    (tmp_path / "public.csv").write_text(f"x\n{public}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, words)
    return done.exit_code, done.stdout, done.stderr


def created(name: str, dataset: str, *listed: str) -> dict[str, object]:
    code, said, _ = invoke(
        "ledger", "create", name, "--dataset", dataset, *TOTAL, *listed, "--json"
    )
    assert code == 0
    return dict(json.loads(said))


LABEL = ["label", "--votes", "counts.npy", "--kind", "counts", "--classes", "a,b"]
LEARN = ["learn", "private.csv", "public.csv", "--target", "y", "--classes", "no,yes", "--yes"]
BARE = ["--without", "report,student", "--json"]


def test_label_takes_its_noise_off_the_list_until_nothing_is_left(world: Path) -> None:
    shown = created("l.ledger", "counts", "--labels", "25", "--teachers", "100")
    assert shown["left"] == shown["listed"]
    sigma = shown["listed"][0]["sigma"]
    run = [*LABEL, "--ledger", "l.ledger", "--without", "report"]
    code, said, _ = invoke(*run, "--queries", "20", "--out", "first", "--json")
    assert code == 0
    first = json.loads(said)
    assert 1.5 < first["epsilon"] < 2
    document = json.loads((world / "first" / "release" / "certificate.json").read_text())
    assert document["mechanism"]["sigma"] == sigma
    assert verify_certificate(world / "first" / "release").ok
    # the same command finds what it paid for; another one finds too little left
    assert invoke(*run, "--queries", "20", "--out", "first")[0] == 0
    code, _, words = invoke(*run, "--queries", "20", "--out", "second")
    assert code == 3
    assert "left: 5 labels of two classes" in " ".join(words.split())
    code, said, _ = invoke("ledger", "show", "l.ledger", "--json")
    shown = json.loads(said)
    assert shown["spent"] == shown["budget"] == {"epsilon": 2.0, "delta": 1e-6}
    assert shown["taken_by_itself"]["epsilon"] == pytest.approx(first["epsilon"])
    assert [event["queries"] for event in (*shown["taken"], *shown["left"])] == [20, 5]
    said = invoke("ledger", "show", "l.ledger")[1]
    assert "taken        20 labels of two classes" in said
    assert "left         5 labels of two classes" in said
    assert "The budget is the promise of all releases together" in said


def test_a_release_that_was_paid_for_is_found_though_nothing_is_left(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created("l.ledger", "counts", "--labels", "20")
    run = [*LABEL, "--ledger", "l.ledger", "--without", "report", "--queries", "20"]

    def broken(*_: object, **__: object) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patched:
        patched.setattr(label_run, "publish", broken)
        assert invoke(*run, "--out", "first")[0] != 0
    assert Ledger.open_existing(world / "l.ledger").remaining_events() == ()
    assert invoke(*run, "--out", "first")[0] == 0
    assert verify_certificate(world / "first" / "release").ok


def test_learn_by_moments_and_by_votes_take_theirs(world: Path) -> None:
    created("s.ledger", "private", "--sums", "8")
    code, said, _ = invoke(*LEARN, "--ledger", "s.ledger", "--out", "m", *BARE)
    assert code == 0
    found = json.loads(said)
    assert (found["method"], found["method_reason"]) == ("moments", "the ledger lists its noise")
    assert Ledger.open_existing("s.ledger").remaining_events()[0].count == 4
    assert verify_certificate(world / "m" / "release").ok
    # votes are not on this list, and the list of the next one has nothing else
    code, _, words = invoke(*LEARN, "--ledger", "s.ledger", "--queries", "10", "--out", "v")
    assert code == 3
    assert "holds 8 noisy sums" in " ".join(words.split())
    created("v.ledger", "private", "--counts", "30")
    run = [*LEARN, "--ledger", "v.ledger", "--teachers", "12", "--queries", "10"]
    code, said, _ = invoke(*run, "--dry-run", "--json")
    account = json.loads(said)["account"]
    assert (account["admits"], account["listed_left"][0]["shifts"]) == (True, 30)
    assert invoke(*run, "--out", "v", *BARE)[0] == 0
    assert Ledger.open_existing("v.ledger").remaining_events() == (
        GaussianEvent(account["listed_left"][0]["sigma"], 20),
    )
    said = invoke(*run, "--queries", "30", "--dry-run")[1]
    assert "left of its list 20 noisy counts" in said
    assert "would be refused" in said
    # refused before any teacher is trained
    code, _, words = invoke(*run, "--queries", "21", "--out", "w")
    assert code == 3
    assert "left: 20 noisy counts" in " ".join(words.split())


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "--queries is missing"),
        (["--queries", "10", "--epsilon", "1", "--delta", "1e-6"], 3, "has a list, whose noise"),
        (["--queries", "10", "--epsilon", "1"], 2, "give the price of the release"),
        (["--queries", "10", "--max-unstable", "3"], 2, "--max-unstable goes with noise"),
        (["--queries", "10", "--aggregator", "laplace"], 2, "--aggregator is 'laplace'"),
        (["--queries", "10", "--release", "counts"], 3, "'gaussian' are asked for"),
        (["--queries", "10", "--own-ledger"], 2, "--own-ledger or --ledger"),
    ],
)
def test_label_says_what_does_not_go_with_a_list(
    words: list[str], code: int, said: str, world: Path
) -> None:
    created("l.ledger", "counts", "--labels", "20")
    done = invoke(*LABEL, "--ledger", "l.ledger", "--out", "o", *words)
    assert done[0] == code
    assert said in " ".join(done[2].split())
    assert Ledger.open_existing("l.ledger").releases() == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--method", "record-votes"], "--method is 'record-votes'"),
        (["--queries", "10", "--estimate-epsilon", "0.1"], "--estimate-epsilon goes with noise"),
        (["--queries", "10", "--classes", "no,yes,maybe"], "holds 20 labels of two classes"),
    ],
)
def test_learn_says_what_does_not_go_with_a_list(words: list[str], said: str, world: Path) -> None:
    created("l.ledger", "private", "--labels", "20")
    done = invoke(*LEARN, "--ledger", "l.ledger", "--out", "o", *words)
    assert done[0] in (2, 3)
    assert said in " ".join(done[2].split())


def test_without_a_list_a_price_is_needed(world: Path) -> None:
    created("b.ledger", "counts")
    for ledger in ("b.ledger", "none.ledger"):
        code, _, words = invoke(*LABEL, "--ledger", ledger, "--queries", "10")
        assert code == 2
        assert "give the price of the release" in " ".join(words.split())


# --- what is listed, and what of it a run takes ---


@pytest.mark.parametrize(
    ("asked", "event"),
    [
        ({"labels": 9}, LabelGaussianEvent),
        ({"labels": 9, "n_classes": 3}, ArgmaxGaussianEvent),
        ({"labels": 9, "aggregator": "vote-table", "teachers": 30}, VoteTableEvent),
        ({"counts": 9}, GaussianEvent),
        ({"counts": 9, "n_classes": 3}, GaussianEvent),
        ({"sums": 9}, VectorSumEvent),
    ],
)
def test_what_is_asked_for_is_listed_and_costs_the_budget(
    asked: dict[str, object], event: type
) -> None:
    events = events_to_list(BUDGET, **asked)
    assert [type(one) for one in events] == [event]
    ledger = Ledger.in_memory(dataset="people", budget=BUDGET, events=events)
    assert ledger.remaining_events() == events
    assert events_to_list(BUDGET) is None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"labels": 9, "counts": 9}, "labels and counts are both asked for"),
        ({"labels": 0}, "0 labels cannot be listed"),
        ({"labels": 10**12}, "1000000000000 labels cannot be listed; list at least one, and at"),
        ({"sums": 1001}, "1001 sums cannot be listed"),
        ({"labels": 9, "composition": "basic"}, "what is to be listed is labels"),
        ({"composition": "list"}, "composition is 'list', and what is to be listed is nothing"),
        ({"sums": 3, "teachers": 9}, "teachers says what is listed"),
        ({"sums": 3, "n_classes": 3}, "classes says what is listed"),
        ({"counts": 3, "aggregator": "gaussian"}, "aggregator says what is listed"),
        ({"labels": 3, "aggregator": "confident"}, "cannot be taken one by one"),
        ({"labels": 3, "aggregator": "vote-table"}, "teachers is missing"),
    ],
)
def test_what_cannot_be_listed_is_refused(asked: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        events_to_list(BUDGET, **asked)


def test_a_run_takes_what_fits_it_of_a_list_of_several_kinds(tmp_path: Path) -> None:
    place = tmp_path / "m.ledger"
    table = VoteTableEvent((2**52, 2**51 + 2**50), 5, 20)
    sums = VectorSumEvent(10**7, 10**12, 10**9, 8)
    more = ArgmaxGaussianEvent(calibrate_argmax_gaussian(BUDGET, 200), 7)
    listed = (table, sums, more, PureEvent(0.01, 3))
    assert listed_noise(place, method="auto", queries=None) is None
    Ledger(place, dataset="people", budget=PrivacyBudget(20.0, 1e-6), events=listed)
    by_sums = listed_noise(place, method="auto", queries=None)
    assert (by_sums.method, by_sums.sums.count) == ("moments", 4)
    with pytest.raises(ParameterError, match="classes are missing"):
        listed_noise(place, method="auto", queries=3)
    labels = listed_noise(place, method="auto", queries=3, n_classes=3).aggregator
    assert (labels.sigma, labels.n_classes) == (more.sigma, 3)
    drawn = listed_noise(place, method="votes", queries=3, n_classes=2, teachers=20).aggregator
    assert drawn.weights == table.weights
    with pytest.raises(ParameterError, match="queries is missing"):
        listed_noise(place, method="votes", queries=None)
