"""Images in a table: learned from, released and read again from the command line."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from patients import invoke
from sklearn.datasets import load_digits


def write_table(folder: Path, name: str, rows: slice) -> Path:
    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))[rows]
    path = folder / f"{name}.csv"
    size = np.where(digits[order] > 4, "large", "small")
    larger = np.kron(images[order].reshape(-1, 8, 8), np.ones((2, 2))).astype(np.uint8)
    pixels = larger.reshape(len(larger), -1).tolist()
    pd.DataFrame({"size": size, "image": pixels}).to_csv(path, index=False)
    return path


def test_images_in_a_table_are_learned_released_and_read_again(tmp_path: Path) -> None:
    folder = tmp_path
    write_table(folder, "private", slice(0, 1200))
    write_table(folder, "public", slice(1200, 1600))
    write_table(folder, "test", slice(1600, None))
    tables = (folder / "private.csv", folder / "public.csv", "--target", "size")
    price = ("--classes", "small,large", "--epsilon", 8, "--delta", 1e-4, "--ledger", "own")
    test = ("--evaluate", folder / "test.csv", "--confirm", "epsilon,delta,records,noise", "--json")
    result = invoke("learn", *tables, *price, "--out", folder / "moments", *test)
    assert result.exit_code == 0, result.stderr
    said = json.loads(result.stdout)
    release = folder / "moments" / "release"
    # public points that look like images are told apart by nothing but themselves
    certificate = json.loads((release / "certificate.json").read_text())
    assert certificate["public"]["basis"]["name"] == "images"
    columns = json.loads((release / "schema.json").read_text())["columns"]
    assert columns["image"]["kind"] == "vector"
    assert len(columns["image"]["center"]) == 256
    result = invoke("predict", release, folder / "test.csv", "--out", folder / "said.csv")
    assert result.exit_code == 0, result.stderr
    truth = pd.read_csv(folder / "test.csv")["size"]
    right = (pd.read_csv(folder / "said.csv")["label"] == truth).mean()
    assert right > 0.85  # six runs: .944 to .954
    assert right == pytest.approx(said["metrics"]["accuracy"], abs=1e-9)
    assert "vectors" in (release / "model-card.md").read_text()
    assert invoke("verify", folder / "moments").exit_code == 0
