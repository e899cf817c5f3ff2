"""What pandas makes of a column, where one record lets it read all others otherwise: each cell
means the same, or the fit is refused."""

import io

import numpy as np
import pandas as pd
import pytest

import secretballot as sb
from secretballot.learners.training.inputs import Target


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
    target = Target.of_number((0.0, 100.0))
    assert np.isnan(target.read([text, "3"], 2)[0])


@pytest.mark.parametrize("kind", ["object", "category"])
def test_integers_beyond_64_bits_are_no_texts(kind):
    public = pd.DataFrame({"c": pd.Series(["005", "A1", "7"] * 20).astype(kind)})
    learner = sb.RecordMomentsClassifier(epsilon=1.0, delta=1e-6)
    private = pd.DataFrame({"c": read(["005"] * 59 + ["9" * 25])})
    assert private.c.dtype == object
    with pytest.raises(sb.DataError, match="Column 'c' of X does not fit"):
        learner.fit(private, np.arange(60) % 2, X_public=public, classes=[0, 1])


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
