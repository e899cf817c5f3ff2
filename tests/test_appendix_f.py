"""The study of Appendix F on people with Adult's columns: numbers by their definitions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import appendix_f
from public_data import ADULT_SCHEMA, ADULT_TARGET


def people() -> pd.DataFrame:
    """Return 400 people whose income follows from age and education, with noise."""
    rng, rows = np.random.default_rng(3), 400
    columns = {
        name: rng.choice(kind, rows) if isinstance(kind, list) else rng.integers(1, 90, rows)
        for name, kind in ADULT_SCHEMA["columns"].items()
    }
    rich = columns["age"] + columns["education-num"] + rng.normal(0, 25, rows) > 95
    return pd.DataFrame({**columns, ADULT_TARGET: np.where(rich, ">50K", "<=50K")})


def test_numbers_are_those_of_teachers_trained_and_asked_one_by_one() -> None:
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
