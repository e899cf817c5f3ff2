"""The story of rounds: told from public things, the same after JSON, refused where it does not
fit."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.neighbors import KNeighborsClassifier

from secretballot.exceptions import DataError, ParameterError
from secretballot.released import ReleasedLabels
from secretballot.report.rounds.positions import project_pool
from secretballot.report.rounds.story import QueryStory, check_story, make_story

Make = Callable[..., ReleasedLabels]
STRATEGY = {"name": "margin", "batch": 20}


@pytest.fixture(name="X_public")
def public_points() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(180, 2))


@pytest.fixture
def story(make_withheld: Make, X_public: np.ndarray) -> QueryStory:
    explanation = {"updates": [{"j": np.int64(1), "region": 1.0}]}
    return make_story(
        X_public,
        make_withheld(),
        STRATEGY,
        [20, 30],
        explanation,
        agreement=[0.9, 1.0],
        region=X_public[:, 0] > 0,
    )


def changed(story: QueryStory, **fields: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(story.to_json()))
    return document | fields


def test_a_story_tells_rounds_in_order(story: QueryStory, make_withheld: Make) -> None:
    released = make_withheld()
    assert story.asked.tolist() == released.queries.tolist()
    assert [len(entry["asked"]) for entry in story.rounds] == [20, 30]
    assert [entry["answered"] for entry in story.rounds] == [
        int(released.answered[:20].sum()),
        int(released.answered[20:].sum()),
    ]
    assert story.round_of.tolist() == [0] * 20 + [1] * 30
    assert [entry["agreement"] for entry in story.rounds] == [0.9, 1.0]
    assert story.explanation == {"updates": [{"j": 1, "region": 1.0}]}
    check_story(story, released)


def test_a_story_comes_back_from_json(story: QueryStory) -> None:
    document = json.loads(json.dumps(story.to_json()))
    back = QueryStory.from_json(document)
    assert back == story
    assert back.to_json() == story.to_json()
    assert np.array_equal(back.positions, story.positions)
    assert back.region is not None
    assert back.region.dtype == bool
    assert back != QueryStory.from_json(document | {"n_points": 181})
    assert story != "story"
    assert "50 queries in 2 rounds, of 180 public points" in repr(story)


def test_arrays_of_a_story_cannot_be_changed(story: QueryStory) -> None:
    for array in (story.rows, story.positions, story.region):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_story_without_regions_and_rounds_comes_back_too(
    X_public: np.ndarray, make_withheld: Make
) -> None:
    told = make_withheld()
    nothing = ReleasedLabels(told.queries[:0], told.labels[:0], told.classes, 250)
    story = make_story(X_public, nothing, STRATEGY, [])
    assert story.rounds == ()
    assert QueryStory.from_json(json.loads(json.dumps(story.to_json()))) == story


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"format": "other"}, "queries.json"),
        ({"version": 2}, "version 2"),
        ({"more": 1}, "misses or adds fields: more"),
        ({"strategy": {}}, "no name"),
        ({"strategy": None}, "dict of JSON values"),
        ({"rounds": {}}, "no list"),
        ({"rounds": [{"asked": [0]}]}, "Round 1 must hold"),
        ({"rounds": [{"asked": [0.5], "answered": 1, "agreement": None}]}, "no number"),
        ({"rounds": [{"asked": 3, "answered": 1, "agreement": None}]}, "no number"),
        ({"rounds": [{"asked": [0], "answered": 2, "agreement": None}]}, "2 answers to 1"),
        ({"rounds": [{"asked": [0], "answered": 1, "agreement": 1.5}]}, "from 0 to 1"),
        ({"rounds": [{"asked": [0], "answered": 1, "agreement": "x"}]}, "no number"),
        ({"rounds": [{"asked": [0, 0], "answered": 1, "agreement": None}]}, "twice"),
        ({"rounds": [{"asked": [999], "answered": 1, "agreement": None}]}, "no position"),
        ({"rows": [[0]]}, "list of integers"),
        ({"rows": list(range(179, -1, -1))}, "ascend"),
        ({"rows": [0, 0, *range(2, 180)]}, "ascend"),
        ({"n_points": 100}, "between 0 and 99"),
        ({"n_points": 0}, "at least 1"),
        ({"positions": [[0.0, 0.0]]}, r"shape \(180, 2\)"),
        ({"positions": [["a", "b"]] * 180}, "positions does not fit"),
        ({"positions": [[0.0, float("nan")]] * 180}, "nan or infinity"),
        ({"region": [1] * 180}, "region does not fit"),
        ({"region": [True]}, r"shape \(180,\)"),
        ({"projected": "t-SNE"}, "as is, principal components"),
        ({"axes": ["a"]}, "pair of strings"),
        ({"explanation": []}, "dict of JSON values"),
    ],
)
def test_a_document_that_does_not_fit_is_refused(
    story: QueryStory, fields: dict[str, Any], words: str
) -> None:
    with pytest.raises((DataError, ParameterError), match=words) as caught:
        QueryStory.from_json(changed(story, **fields))
    assert "\n" not in str(caught.value)


def test_no_document_is_no_story() -> None:
    nothing: list[Any] = [None, [], {}]
    for document in nothing:
        with pytest.raises(DataError, match=r"queries\.json"):
            QueryStory.from_json(document)


def test_agreement_is_counted_on_the_whole_pool(X_public: np.ndarray, make_withheld: Make) -> None:
    released = make_withheld()
    labels = (X_public[:, 0] > 0).astype(int)
    early = KNeighborsClassifier(1).fit(X_public[:3], labels[:3])
    final = KNeighborsClassifier(1).fit(X_public[:90], labels[:90])
    story = make_story(
        X_public, released, STRATEGY, [10, 20, 20], students_by_round=[None, early, final]
    )
    expected = float(np.mean(early.predict(X_public) == final.predict(X_public)))
    assert [entry["agreement"] for entry in story.rounds] == [None, expected, 1.0]
    assert 0 < expected < 1


def test_students_that_do_not_fit_are_one_sentence(
    X_public: np.ndarray, make_withheld: Make
) -> None:
    class Odd:
        def predict(self, X: Any) -> Any:
            return np.zeros(3)

    class Broken:
        def predict(self, X: Any) -> Any:
            raise RuntimeError("inside")

    released = make_withheld()
    for students, words in (
        ([None, Odd()], r"shape \(3,\)"),
        ([None, Broken()], r"cannot predict on X_public \(RuntimeError\)"),
        ([Odd(), None], "no final student"),
        ([], "no final student"),
    ):
        with pytest.raises(DataError, match=words):
            make_story(X_public, released, STRATEGY, [20, 30], students_by_round=students)


def test_what_does_not_fit_together_is_refused(X_public: np.ndarray, make_withheld: Make) -> None:
    released = make_withheld()
    with pytest.raises(ParameterError, match="ReleasedLabels only"):
        make_story(X_public, released.to_json(), STRATEGY, [50])  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="give one of them"):
        make_story(X_public, released, STRATEGY, [50], agreement=[1.0], students_by_round=[None])
    for rounds in ([20], [50, 50], []):
        with pytest.raises(DataError, match="50 were released"):
            make_story(X_public, released, STRATEGY, rounds)
    with pytest.raises(ParameterError, match="A round is 0"):
        make_story(X_public, released, STRATEGY, [50, 0])
    with pytest.raises(DataError, match="give one each"):
        make_story(X_public, released, STRATEGY, [20, 30], agreement=[1.0])
    with pytest.raises(DataError, match="Row 147 was asked of a public pool of 100 rows"):
        make_story(X_public[:100], released, STRATEGY, [50])
    with pytest.raises(DataError, match="region does not fit"):
        make_story(X_public, released, STRATEGY, [50], region=np.zeros(3, dtype=bool))
    with pytest.raises(DataError, match="explanation holds a value"):
        make_story(X_public, released, STRATEGY, [50], {"x": float("nan")})
    with pytest.raises(DataError, match="strategy holds a value"):
        make_story(X_public, released, {"name": "a", "x": object()}, [50])


def test_a_story_of_another_release_is_refused(
    story: QueryStory, make_withheld: Make, make_binary: Make
) -> None:
    with pytest.raises(ParameterError, match="give a QueryStory"):
        check_story(story.to_json(), make_withheld())  # type: ignore[arg-type]
    one = make_withheld()
    flipped = np.where(np.arange(50) == 0, -1 - one.labels, one.labels).clip(-1, 1)
    for other in (
        make_binary(),
        ReleasedLabels(one.queries[::-1], one.labels, one.classes, 250),
        ReleasedLabels(
            one.queries, flipped if flipped[0] != one.labels[0] else -flipped, one.classes, 250
        ),
    ):
        with pytest.raises(DataError, match="other queries or answers"):
            check_story(story, other)


def test_a_story_that_denies_the_plan_is_refused(story: QueryStory, make_withheld: Make) -> None:
    plan = {"planned": 80, "used": 50, "rounds": [20, 30], "strategy": STRATEGY, "left": "kept"}
    scales = {
        "threshold_scale": 30.0,
        "query_scale": 60.0,
        "threshold": 1200,
        "max_unstable": 4,
        "refresh": True,
    }
    mechanism = {"name": "sparse-vector", **scales, "n_queries": 80}
    check_story(story, make_withheld(mechanism=mechanism, plan=plan))
    for change in ({"rounds": [25, 25]}, {"strategy": {"name": "passive"}}):
        with pytest.raises(DataError, match="other rounds or another strategy"):
            check_story(story, make_withheld(mechanism=mechanism, plan=plan | change))


def test_two_features_stay_as_they_are(X_public: np.ndarray) -> None:
    pool = project_pool(X_public, np.array([3, 5]))
    assert pool.projected == "as is"
    assert pool.axes == ("feature 1", "feature 2")
    assert pool.rows.tolist() == list(range(180))
    assert np.abs(pool.positions - X_public).max() < 1e-5 * np.abs(X_public).max()
    frame = pd.DataFrame({"age": X_public[:, 0], "name": "a", "tall": X_public[:, 1] > 0})
    named = project_pool(frame, np.array([3, 5]))
    assert named.axes == ("age", "tall")
    assert set(named.positions[:, 1]) == {0.0, 1.0}


def test_one_feature_is_spread_out_by_a_fixed_rule(X_public: np.ndarray) -> None:
    pool = project_pool(X_public[:, :1], np.array([3]))
    assert pool.axes == ("feature 1", "")
    assert np.allclose(pool.positions[:, 0], X_public[:, 0], atol=1e-5)
    heights = np.sort(pool.positions[:, 1])
    assert heights[0] >= 0
    assert heights[-1] < 1
    assert np.diff(heights).max() < 0.03


def test_more_features_are_projected_to_principal_components() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 6)) @ rng.normal(size=(6, 6)) * [1, 100, 1, 1e-3, 1, 1] + 50
    pool = project_pool(X, np.array([7]))
    standard = np.clip((X - X.mean(axis=0)) / X.std(axis=0), -5, 5)
    standard -= standard.mean(axis=0)
    left, strengths, _ = np.linalg.svd(standard, full_matrices=False)
    for axis in range(2):
        expected = left[:, axis] * strengths[axis]
        assert np.allclose(np.abs(pool.positions[:, axis]), np.abs(expected), atol=1e-4)
    share = 100 * strengths[0] ** 2 / (strengths**2).sum()
    assert pool.axes[0] == f"component 1 ({share:.0f} % of variance)"
    assert pool.projected == "principal components"
    assert np.array_equal(project_pool(X, np.array([7])).positions, pool.positions)
    sparse = project_pool(scipy.sparse.csr_array(X), np.array([7]))
    assert np.allclose(sparse.positions, pool.positions)


def test_a_large_pool_is_thinned_around_the_asked_rows() -> None:
    X, asked = np.arange(80_000.0).reshape(40_000, 2), np.array([1, 2, 3, 39_998])
    pool = project_pool(X, asked)
    assert len(pool.rows) == 5000
    assert np.isin(asked, pool.rows).all()
    assert np.diff(pool.rows).max() <= 9
    assert pool.n_points == 40_000
    assert np.allclose(pool.positions, X[pool.rows])
    many = project_pool(X, np.arange(6000))
    assert many.rows.tolist() == list(range(6000))


def test_gaps_constants_and_wide_pools_are_borne() -> None:
    X = np.random.default_rng(5).normal(size=(60, 700))
    X[0, 0], X[1, 1], X[:, 2], X[:, 3], X[2, 4] = np.nan, np.inf, np.nan, 7.0, 1e300
    assert np.isfinite(project_pool(X, np.array([0])).positions).all()
    assert not project_pool(np.ones((5, 4)), np.array([0])).positions.any()
    cells = np.random.default_rng(6).random((60, 3000))
    wide = scipy.sparse.coo_array(np.where(cells < 0.02, cells, 0.0))
    assert project_pool(wide, np.array([0])).positions.std(axis=0).all()
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [1.0, 2.0, 3.0]})
    assert project_pool(frame, np.array([0])).positions[:, 0].tolist() == [1.0, 2.0, 3.0]


def test_columns_that_are_no_real_numbers_are_left_out() -> None:
    times = pd.to_timedelta([1, 2])
    frame = pd.DataFrame(
        {"": [1.0, 2.0], "b": [True, False], "t": times, "c": [1j, 2j], "d": ["x", "y"]}
    )
    assert project_pool(frame, np.array([0])).axes == ("column 1", "b")
    mixed = np.array([[1, "a", 2.5], [2, "b", 3.5]], dtype=object)
    assert project_pool(mixed, np.array([0])).axes == ("feature 1", "feature 3")


def test_pools_without_numbers_are_refused() -> None:
    for pool, words in (
        (np.array([["a", "b"]]), "no numeric column"),
        (pd.DataFrame({"a": ["x"]}), "no numeric column"),
        (np.zeros((0, 2)), "table of public points"),
        (np.zeros(3), "table of public points"),
        ([[1, 2]], "table of public points"),
    ):
        with pytest.raises(DataError, match=words):
            project_pool(pool, np.array([0]))
