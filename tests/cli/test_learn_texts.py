"""A table with free text from files to a release, and back by `predict`."""

import json

import numpy as np
import pandas as pd

from patients import invoke

WORDS = ["pain", "fever", "cough", "rash", "since", "today", "knee", "no", "left", "right"]
SECRET = "zyxwvut"


def people(n, seed):
    rng = np.random.default_rng(seed)
    notes = [" ".join(rng.choice(WORDS, size=rng.integers(2, 7))) for _ in range(n)]
    ill = ["yes" if "pain" in note or "fever" in note else "no" for note in notes]
    return pd.DataFrame({"note": notes, "memo": notes[::-1], "ill": ill})


def test_free_text_is_learned_released_and_read_again(tmp_path):
    (tmp_path / "private").mkdir()
    private = people(900, 1)
    private.loc[[3, 4, 5], "note"] = [f"{SECRET} pain " * 50_000, None, SECRET]
    private.to_parquet(tmp_path / "private" / "a.parquet", index=False)
    people(120, 2).drop(columns="ill").to_csv(tmp_path / "public.csv", index=False)
    people(80, 3).to_csv(tmp_path / "new.csv", index=False)
    hashed = {"kind": "text", "encoding": "hashed", "width": 32}
    kinds = {"note": hashed, "memo": {"kind": "text", "width": 6}}
    (tmp_path / "schema.json").write_text(json.dumps({"columns": kinds}))
    tables = (tmp_path / "private", tmp_path / "public.csv", "--schema", tmp_path / "schema.json")
    price = ("--target", "ill", "--classes", "no,yes", "--epsilon", 10, "--delta", 1e-5)
    of_votes = ("--n-teachers", 15, "--ledger", "own", "--out", tmp_path / "out")
    result = invoke("learn", *tables, *price, *of_votes, "--set", "exclude=report")
    assert result.exit_code == 0, result.stderr
    assert SECRET not in result.stdout + result.stderr
    release = tmp_path / "out" / "release"
    assert not any(SECRET.encode() in path.read_bytes() for path in release.iterdir())
    columns = json.loads((release / "schema.json").read_text())["columns"]
    assert columns["note"] == hashed
    assert len(columns["memo"]["words"]) == 6
    assert "schema.json" in json.loads((release / "certificate.json").read_text())["files"]
    assert "student.onnx" in {path.name for path in release.iterdir()}
    assert "onnxruntime" not in (release / "README.txt").read_text()  # which cannot hash words
    assert invoke("verify", release / "certificate.json").exit_code == 0
    result = invoke("predict", release, tmp_path / "new.csv", "--out", tmp_path / "said.csv")
    assert result.exit_code == 0, result.stderr
    right = pd.read_csv(tmp_path / "said.csv")["label"] == pd.read_csv(tmp_path / "new.csv")["ill"]
    assert right.mean() > 0.6  # five runs: .74 to .79
