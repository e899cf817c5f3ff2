"""Images in a table: learned from, released and read again from the command line."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from patients import invoke
from sklearn.datasets import load_digits
from typer.testing import Result


def write_table(folder: Path, name: str, rows: slice) -> Path:
    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))[rows]
    path = folder / f"{name}.csv"
    size = np.where(digits[order] > 4, "large", "small")
    larger = np.kron(images[order].reshape(-1, 8, 8), np.ones((2, 2))).astype(np.uint8)
    pixels = larger.reshape(len(larger), -1).tolist()
    pd.DataFrame({"size": size, "image": pixels}).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    write_table(folder, "private", slice(0, 1200))
    write_table(folder, "public", slice(1200, 1600))
    write_table(folder, "test", slice(1600, None))
    return folder


def learn(folder: Path, out: str, *more: object) -> Result:
    tables = (folder / "private.csv", folder / "public.csv", "--target", "size")
    price = ("--classes", "small,large", "--epsilon", 8, "--delta", 1e-4, "--total", "20,1e-2")
    return invoke(
        "learn", *tables, *price, "--out", folder / out, "--ledger", "own", "--json", *more
    )


def test_images_in_a_table_are_learned_released_and_read_again(folder: Path) -> None:
    result = learn(
        folder,
        "moments",
        "--evaluate",
        folder / "test.csv",
        "--confirm",
        "epsilon,delta,records,teachers,noise,target,unit",
    )
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
