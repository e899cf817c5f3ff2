"""Notebooks, examples and studies beside the package run."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import appendix_f
from public_data import ADULT_SCHEMA, ADULT_TARGET
from quick_plans import quick_forecasts

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells_of(path):
    document = json.loads(path.read_text(encoding="utf-8"))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    return document["cells"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    done = 0
    with quick_forecasts():  # a notebook's plan is read, and not judged
        for number, cell in enumerate(cells_of(path)):
            if cell["cell_type"] == "code":
                place = f"{path.name}, cell {number + 1}"
                exec(compile("".join(cell["source"]), place, "exec"), names)
                done += 1
    assert done >= 4
    # each of them pays from an account, and from nothing that lies elsewhere
    assert names["ledger"].spent().epsilon > 0


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_plain(path):
    cells = cells_of(path)
    assert cells[0]["cell_type"] == "markdown"
    assert cells[0]["source"][0].startswith("# ")
    assert len({cell["id"] for cell in cells}) == len(cells)
    for cell in cells:
        # no outputs that grow old, and no shell or magic that a test cannot run
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
        if cell["cell_type"] == "code":
            assert not re.search(r"^\s*[!%]", "".join(cell["source"]), re.MULTILINE)


SILOS = Path(__file__).parents[1] / "examples" / "silos"
CURATOR = SILOS / "curator.py"


class OneAfterTheOther:
    """In the place of a process: a program that runs here, when it is started."""

    def __init__(self, command):
        with pytest.MonkeyPatch.context() as here:
            here.setattr(sys, "argv", command[1:])
            runpy.run_path(command[1], run_name="__main__")

    def wait(self):
        return 0


@pytest.mark.parametrize("mode", ["trusted", "noisy"])
def test_three_hospitals_teach_one_student(tmp_path, mode, monkeypatch, capsys):
    # imports would take most of the time of four processes
    monkeypatch.syspath_prepend(SILOS)
    monkeypatch.setattr(subprocess, "Popen", OneAfterTheOther)
    monkeypatch.setattr(sys, "argv", [str(CURATOR), str(tmp_path), mode])
    runpy.run_path(str(CURATOR), run_name="__main__")
    said = capsys.readouterr().out
    # A coin has 50. In 3,000 draws of the trusted curator's noise the student's weights had 4.37 on
    # average along the truth, with a deviation of .31, and 0 across it, with .17 in each
    # direction: nearest to 80 %, where across is .73 of along, is 11 deviations away, 1e-26.
    assert float(said.split()[1]) > 80
    exact = list(tmp_path.rglob("counts.npy"))
    assert len(exact) == (3 if mode == "trusted" else 0)
    assert {path.stat().st_mode & 0o077 for path in exact} <= {0}


def people():
    """Return 400 people whose income follows from age and education, with noise."""
    rng, rows = np.random.default_rng(3), 400
    columns = {
        name: rng.choice(kind, rows) if isinstance(kind, list) else rng.integers(1, 90, rows)
        for name, kind in ADULT_SCHEMA["columns"].items()
    }
    rich = columns["age"] + columns["education-num"] + rng.normal(0, 25, rows) > 95
    return pd.DataFrame({**columns, ADULT_TARGET: np.where(rich, ">50K", "<=50K")})


def test_numbers_are_those_of_teachers_trained_and_asked_one_by_one():
    frame = people()
    sizes = appendix_f.Sizes(n_private=240, n_queries=120, n_teachers=8, n_others=2)
    findings = appendix_f.study(frame, sizes, 0)
    data = appendix_f.split(frame, sizes, 0)
    assert data.X.shape[0] == 240
    assert data.X_public.shape[0] == 160
    measured, learner = findings.numbers, LogisticRegression(max_iter=2000)
    star = learner.fit(data.X, data.y).predict(data.X_public)[:120]
    votes = np.array(
        [learner.fit(data.X[k::8], data.y[k::8]).predict(data.X_public)[:120] for k in range(8)]
    )
    truth, share = data.y_public[:120], votes.mean(axis=0)
    vote = (share >= 0.5).astype(int)
    margin, against = np.abs(share - 0.5), np.mean(votes != star, axis=0)
    assert measured["star"] == pytest.approx(100 * np.mean(star == truth))
    assert measured["vote"] == pytest.approx(100 * np.mean(vote == truth))
    assert measured["teacher"] == pytest.approx(
        100 * np.mean([np.mean(one == truth) for one in votes])
    )
    assert measured["equal"] == pytest.approx(100 * np.mean(vote == star))
    assert measured["clear"] == pytest.approx(100 * np.mean(margin > 0.3))
    assert measured["very clear"] == pytest.approx(100 * np.mean(margin > 0.45))
    assert measured["wrong"] == pytest.approx(100 * np.mean((margin > 0.3) & (vote != star)))
    assert measured["correlation"] == pytest.approx(np.corrcoef(margin, 0.5 - against)[0, 1])
    sums = np.cumsum(margin), np.cumsum(0.5 - against)
    assert measured["cumulated"] == pytest.approx(np.corrcoef(*sums)[0, 1])
