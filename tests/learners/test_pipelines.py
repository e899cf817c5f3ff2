"""Inside of scikit-learn's pipelines and searches."""

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
from secretballot.learners.inputs import points_digest
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
POOLED = {
    "pate": lambda **more: sb.PATEClassifier(n_teachers=40, **GIVEN, **more),
    "active": lambda **more: in_rounds(n_teachers=40, n_queries=40, **GIVEN, **more),
    "moments": lambda **more: sb.RecordMomentsClassifier(**GIVEN, **more),
    "record votes": lambda **more: sb.RecordVotesClassifier(**GIVEN, **more),
    "semi-private": lambda **more: sb.SemiPrivateClassifier(epsilon=BUDGET.epsilon, **more),
    "stability": lambda **more: sb.Labeler(
        "stability:max_abstentions=1", **GIVEN, n_queries=5, n_teachers=100, **more
    ),
}
ALONE = {
    "agnostic": lambda **more: sb.Labeler("agnostic", STUMPS, **GIVEN, n_queries=2, **more),
    "universal": lambda **more: sb.Labeler(hypotheses=STUMPS, **GIVEN, **more),
}
LABELS = {"pate": POOLED["pate"]}
PUBLIC = {"classes": [0, 1], "public_features": True}


def test_a_fit_in_a_pipeline_or_a_search_warns_before_it_spends():
    given = {"X_public": X_PUBLIC, "classes": [0, 1]}
    # warnings are errors in all tests
    said = "In a pipeline no price"
    for learners, more in ((POOLED, given), (ALONE, {"classes": [0, 1]}), (LABELS, PUBLIC)):
        for made in learners.values():
            pipeline = make_pipeline(StandardScaler(), made())
            name = pipeline.steps[-1][0]
            with pytest.raises(UnpricedFitWarning, match=said):
                pipeline.fit(X, Y, **{f"{name}__{key}": value for key, value in more.items()})
    around = TransformedTargetRegressor(sb.RecordMomentsRegressor(**GIVEN))
    with pytest.raises(UnpricedFitWarning, match=said):
        around.fit(X, X[:, 1], X_public=X_PUBLIC, bounds=(-5.0, 5.0))
    with pytest.raises(UnpricedFitWarning, match="spends a budget of its own"):
        cross_val_score(POOLED["moments"](), X, Y, params=given, error_score="raise")


def test_fits_by_hand_and_searches_in_one_ledger_pass():
    given = {"X_public": X_PUBLIC, "classes": [0, 1]}
    ledger = sb.Ledger.in_memory(dataset="people", budget=sb.PrivacyBudget(8.0, 1e-4))
    POOLED["moments"]().fit(X, Y, **given)
    model = POOLED["moments"](ledger=ledger)
    with pytest.raises(sb.BudgetError):  # the third fit
        cross_val_score(model, X, Y, params=given, error_score="raise")
    assert len(ledger.history()) == 2


@pytest.mark.filterwarnings("ignore::secretballot.exceptions.UnpricedFitWarning")
def test_routed_points_go_through_the_same_steps():
    scaler, about = StandardScaler().fit(X_PUBLIC), {"classes": [0, 1]}
    with sklearn.config_context(enable_metadata_routing=True):
        learner = POOLED["moments"]().set_fit_request(X_public=True, classes=True)
        pipeline = make_pipeline(FrozenEstimator(scaler), learner, transform_input=["X_public"])
        pipeline.fit(X, Y, X_public=X_PUBLIC, **about)
        assert np.mean(pipeline.predict(X_TEST) == Y_TEST) > 0.85
    digest = pipeline[-1].certificate_["released"]["points_sha256"]
    assert digest == points_digest(scaler.transform(X_PUBLIC))  # the same public points came in


@pytest.mark.parametrize("name", list(POOLED))
def test_private_records_are_no_public_points(name):
    ledger = sb.Ledger.in_memory(**TERMS)
    for private, points in (
        *((X, one) for one in (X, X[::-1], X[:100], np.vstack([X[:100], X_PUBLIC]))),
        *((few, few) for few in (X[:8], X[:60])),
    ):
        learner = POOLED[name](ledger=ledger)
        with pytest.raises(sb.DataError, match=r"holds private records.*Nothing"):
            learner.fit(private, Y[: len(private)], X_public=points, classes=[0, 1])
    assert ledger.history() == []
