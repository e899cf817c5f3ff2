"""The study of Appendix F on synthetic people with Adult's columns: numbers by their definitions,
and pictures."""

import importlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from reference_data import reference
from secretballot.datasets import ADULT_SCHEMA, ADULT_TARGET, adult

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield {
            name: importlib.import_module(f"appendix_f{name}")
            for name in ("", "_study", "_pictures")
        }


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Return 400 people whose income follows from age and education, with noise."""
    rng, rows = np.random.default_rng(3), 400
    columns = {
        name: rng.choice(kind, rows) if isinstance(kind, list) else rng.integers(1, 90, rows)
        for name, kind in ADULT_SCHEMA["columns"].items()
    }
    rich = columns["age"] + columns["education-num"] + rng.normal(0, 25, rows) > 95
    return pd.DataFrame({**columns, ADULT_TARGET: np.where(rich, ">50K", "<=50K")})


@pytest.fixture(scope="module")
def sizes(scripts: dict[str, Any]) -> Any:
    return scripts["_study"].Sizes(
        n_private=240, n_queries=120, n_teachers=8, compared=(4, 8), n_others=2
    )


@pytest.fixture(scope="module")
def findings(scripts: dict[str, Any], frame: pd.DataFrame, sizes: Any) -> list[Any]:
    return [scripts["_study"].study(frame, sizes, seed) for seed in (0, 1)]


def test_numbers_are_those_of_teachers_trained_and_asked_one_by_one(
    scripts: dict[str, Any], frame: pd.DataFrame, sizes: Any, findings: list[Any]
) -> None:
    data = scripts["_study"].split(frame, sizes, 0)
    assert data.X.shape[0] == 240
    assert data.X_public.shape[0] == 160
    for penalty, measured in ((1.0, findings[0].numbers["1"]), (0.3, findings[0].numbers["0.3"])):
        learner = LogisticRegression(C=penalty, max_iter=2000)
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


def test_the_margin_for_one_model_is_the_margin_up_to_its_sign(findings: list[Any]) -> None:
    """Why the appendix's absolute value around it would leave nothing to compare."""
    found = findings[0]
    assert np.abs(found.for_star) == pytest.approx(found.margins)
    assert (found.for_star[found.equal] >= 0).all()
    assert (found.for_star[~found.equal] <= 0).all()
    assert (found.for_star < 0).any()


def test_the_expected_margin_comes_from_other_partitions(
    scripts: dict[str, Any], frame: pd.DataFrame, sizes: Any, findings: list[Any]
) -> None:
    study, found = scripts["_study"], findings[0]
    data = study.split(frame, sizes, 0)
    shares = np.mean([study.counted(data, 8, 1.0, other)[:120, 1] for other in (1, 2)], axis=0) / 8
    assert found.expected == pytest.approx(np.abs(shares - 0.5))
    assert not np.array_equal(found.expected, found.margins)
    assert found.numbers["1"]["error"] == pytest.approx(
        math.sqrt(np.mean((found.expected - found.margins) ** 2))
    )


def test_seeds_repeat_and_differ(
    scripts: dict[str, Any], frame: pd.DataFrame, sizes: Any, findings: list[Any]
) -> None:
    again = scripts["_study"].study(frame, sizes, 1)
    assert again.numbers == findings[1].numbers
    assert findings[0].numbers != findings[1].numbers


def test_intervals_are_wilsons_for_the_points_of_one_seed(scripts: dict[str, Any]) -> None:
    counts = np.zeros((2, 10), dtype=int)
    counts[:, 4], counts[:, 9] = (50, 45), (100, 100)
    found = scripts["_study"].Findings(by_margin={7: counts})
    some, none = scripts["_pictures"].calibration([found, found], 7)
    z, n, p = 1.959964, 50, 0.1
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    assert some == pytest.approx(
        (0.225, 0.1, (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n))
    )
    assert none[:3] == pytest.approx((0.475, 0, 0), abs=1e-12)
    assert none[3] == pytest.approx(z * z / (100 + z * z))


@pytest.mark.parametrize(
    ("values", "reference", "word"),
    [
        ((97.5, 97.36, 97.74), (97.4, 97.7), "yes"),
        ((97.5, 97.3, 97.7), (97.4, 97.7), "mean only"),
        ((97.2, 97.1, 97.5), (97.4, 97.7), "no"),
        ((0.155, 0.0, 0.155), (0, 0.15), "no"),
        ((0.154, 0.0, 0.154), (0, 0.15), "yes"),
        ((0.0, 0.0, 0.05), (0, 0), "mean only"),
    ],
)
def test_within(
    scripts: dict[str, Any], values: tuple[float, ...], reference: tuple[float, float], word: str
) -> None:
    assert scripts[""].within(np.array(values), reference) == word


def test_the_sizes_are_those_of_the_paper(scripts: dict[str, Any]) -> None:
    people = pd.concat(list(reference(adult)), ignore_index=True)
    study = scripts["_study"]
    sizes = study.Sizes()
    data = study.split(people, sizes, 0)
    assert len(people) == 48_842
    assert (len(data.y), len(data.y_public)) == (36_631, 12_211)
    assert (sizes.n_queries, sizes.n_teachers, 12_211 - sizes.n_queries) == (2_000, 250, 10_211)
    counts = study.counted(data._replace(X=data.X[:2_000], y=data.y[:2_000]), 10, 1.0)[:500]
    assert (counts.sum(axis=1) == 10).all()
    measured = study.numbers(counts, data.y_public[:500], data.y_public[:500])
    assert 77 < measured["teacher"] < measured["vote"] < 89
