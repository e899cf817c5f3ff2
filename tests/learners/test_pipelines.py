"""Inside of scikit-learn's pipelines and searches."""

import warnings
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import secretballot as sb
from secretballot.exceptions import UnpricedFitWarning
from sessions import in_rounds

RNG = np.random.default_rng(0)
SCALE = np.array([1000.0, 1.0, 0.001])
X, X_PUBLIC = RNG.normal(size=(2000, 3)) * SCALE, RNG.normal(size=(300, 3)) * SCALE
X_TEST = RNG.normal(size=(1000, 3)) * SCALE
Y, Y_TEST = (X[:, 2] > 0).astype(int), (X_TEST[:, 2] > 0).astype(int)
BUDGET = sb.PrivacyBudget(epsilon=4.0, delta=1e-5)
TERMS = {"dataset": "people", "budget": BUDGET}

GIVEN = BUDGET.to_json()
STUMPS = sb.hypotheses.DecisionStumps(3)
POOLED: dict[str, Any] = {
    "pate": lambda **more: sb.PATEClassifier(n_teachers=40, **GIVEN, **more),
    "active": lambda **more: in_rounds(n_teachers=40, n_queries=40, **GIVEN, **more),
    "moments": lambda **more: sb.RecordMomentsClassifier(**GIVEN, **more),
    "record votes": lambda **more: sb.RecordVotesClassifier(**GIVEN, **more),
    "semi-private": lambda **more: sb.SemiPrivateClassifier(epsilon=BUDGET.epsilon, **more),
    "stability": lambda **more: sb.Labeler(
        "stability:max_abstentions=1", **GIVEN, n_queries=5, n_teachers=100, **more
    ),
}
ALONE: dict[str, Any] = {
    "agnostic": lambda **more: sb.Labeler("agnostic", STUMPS, **GIVEN, n_queries=2, **more),
    "universal": lambda **more: sb.Labeler(hypotheses=STUMPS, **GIVEN, **more),
}
LABELS: dict[str, Any] = {"pate": POOLED["pate"]}


def fit(pipeline: Any, **more: Any) -> Any:
    """Fit a pipeline whose last step gets public points and classes."""
    name = pipeline.steps[-1][0]
    given = {"X_public": X_PUBLIC, "classes": [0, 1], **more}
    given = {key: value for key, value in given.items() if value is not None}
    return pipeline.fit(X, Y, **{f"{name}__{key}": value for key, value in given.items()})


def test_a_fit_in_a_pipeline_or_a_search_warns_before_it_spends() -> None:
    given = {"X_public": X_PUBLIC, "classes": [0, 1]}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnpricedFitWarning)
        for made in (POOLED, ALONE, LABELS):
            for learner in made.values():
                pipeline = make_pipeline(StandardScaler(), learner())
                with pytest.raises(UnpricedFitWarning, match="In a pipeline no price"):
                    fit(
                        pipeline,
                        X_public=X_PUBLIC if made is POOLED else None,
                        public_features=True if made is LABELS else None,
                    )
        around = TransformedTargetRegressor(sb.RecordMomentsRegressor(**GIVEN))
        with pytest.raises(UnpricedFitWarning, match="In a pipeline no price"):
            around.fit(X, X[:, 1], X_public=X_PUBLIC, bounds=(-5.0, 5.0))
        with pytest.raises(UnpricedFitWarning, match="spends a budget of its own"):
            cross_val_score(POOLED["moments"](), X, Y, params=given, error_score="raise")


def test_fits_by_hand_and_searches_in_one_ledger_pass() -> None:
    given = {"X_public": X_PUBLIC, "classes": [0, 1]}
    ledger = sb.Ledger.in_memory(dataset="people", budget=sb.PrivacyBudget(8.0, 1e-4))
    POOLED["moments"]().fit(X, Y, **given)
    model = POOLED["moments"](ledger=ledger)
    with pytest.raises(sb.BudgetError):  # the third fit
        cross_val_score(model, X, Y, params=given, error_score="raise")
    assert len(ledger.history()) == 2


@pytest.mark.filterwarnings("ignore::secretballot.exceptions.UnpricedFitWarning")
@pytest.mark.parametrize("name", ["active", "moments"])
def test_routed_points_go_through_the_same_steps(name: str) -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        learner = POOLED[name]().set_fit_request(X_public=True, classes=True)
        pipeline = make_pipeline(
            FrozenEstimator(StandardScaler().fit(X_PUBLIC)), learner, transform_input=["X_public"]
        )
        pipeline.fit(X, Y, X_public=X_PUBLIC, classes=[0, 1])
        assert np.mean(pipeline.predict(X_TEST) == Y_TEST) > 0.85
    plain = POOLED[name]().fit(
        StandardScaler().fit(X_PUBLIC).transform(X),
        Y,
        X_public=StandardScaler().fit_transform(X_PUBLIC),
        classes=[0, 1],
    )
    if name == "active":  # which points are asked follows from the noise
        return
    digests = [model.certificate_["released"]["points_sha256"] for model in (pipeline[-1], plain)]
    assert digests[0] == digests[1]  # the same public points came in


@pytest.mark.parametrize("name", list(POOLED))
def test_private_records_are_no_public_points(name: str) -> None:
    ledger = sb.Ledger.in_memory(**TERMS)
    part = np.vstack([X[:100], X_PUBLIC])
    copies = [X, X.copy(), X[::-1], X[:100], X[RNG.integers(0, 2000, 400)], part]
    for points in copies:
        with pytest.raises(sb.DataError, match=r"holds private records.*Nothing"):
            POOLED[name](ledger=ledger).fit(X, Y, X_public=points, classes=[0, 1])
    few = X[:60]
    with pytest.raises(sb.DataError, match="holds private records"):
        POOLED[name](ledger=ledger).fit(few, Y[:60], X_public=few, classes=[0, 1])
    assert ledger.history() == []
