"""Inside of scikit-learn's pipelines: what saw all private records is refused, the rest is carried
for both tables."""

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, StandardScaler

import secretballot as sb

RNG = np.random.default_rng(0)
SCALE = np.array([1000.0, 1.0, 0.001])
X, X_PUBLIC = RNG.normal(size=(2000, 3)) * SCALE, RNG.normal(size=(300, 3)) * SCALE
X_TEST = RNG.normal(size=(1000, 3)) * SCALE
Y, Y_TEST = (X[:, 2] > 0).astype(int), (X_TEST[:, 2] > 0).astype(int)
BUDGET = sb.PrivacyBudget(epsilon=4.0, delta=1e-5)
TERMS = {"dataset": "people", "budget": BUDGET}

POOLED: dict[str, Any] = {
    "pate": lambda **more: sb.PATEClassifier(n_teachers=40, budget=BUDGET, **more),
    "active": lambda **more: sb.ActivePATEClassifier(
        n_teachers=40, n_queries=40, budget=BUDGET, **more
    ),
    "moments": lambda **more: sb.RecordMomentsClassifier(budget=BUDGET, **more),
    "record votes": lambda **more: sb.RecordVotesClassifier(budget=BUDGET, **more),
    "semi-private": lambda **more: sb.SemiPrivateClassifier(budget=BUDGET, **more),
    "stability": lambda **more: sb.StabilityLabeler(
        budget=BUDGET, n_queries=5, n_teachers=100, max_unstable=1, **more
    ),
}
ALONE: dict[str, Any] = {
    "agnostic": lambda **more: sb.AgnosticLabeler(
        sb.hypotheses.DecisionStumps(3), budget=BUDGET, n_queries=2, **more
    ),
    "universal": lambda **more: sb.UniversalLabeler(
        sb.hypotheses.DecisionStumps(3), budget=BUDGET, **more
    ),
}
LABELS: dict[str, Any] = {
    "pate": lambda **more: sb.LabelPrivateClassifier(n_teachers=40, budget=BUDGET, **more),
    "moments": lambda **more: sb.LabelPrivateMomentsClassifier(budget=BUDGET, **more),
}


class Shift(TransformerMixin, BaseEstimator):
    """Learns nothing."""

    def fit(self, X: Any, y: Any = None) -> Any:
        return self

    def transform(self, X: Any) -> Any:
        return X + 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def fit(pipeline: Any, **more: Any) -> Any:
    """Fit a pipeline whose last step gets public points and classes."""
    name = pipeline.steps[-1][0]
    given = {"X_public": X_PUBLIC, "classes": [0, 1], **more}
    given = {key: value for key, value in given.items() if value is not None}
    return pipeline.fit(X, Y, **{f"{name}__{key}": value for key, value in given.items()})


@pytest.mark.parametrize("step", [StandardScaler(), MinMaxScaler(), SelectKBest(k=2)])
@pytest.mark.parametrize("name", [*POOLED, *ALONE])
def test_a_step_that_was_fitted_to_private_records_is_refused(name: str, step: Any) -> None:
    ledger = sb.Ledger.in_memory(**TERMS)
    make = (POOLED | ALONE)[name]
    pipeline = make_pipeline(Shift(), step, make(ledger=ledger))
    with pytest.raises(sb.ParameterError, match=r"fitted to all private records.*teacher") as told:
        fit(pipeline, **({"X_public": None} if name in ALONE else {}))
    assert type(step).__name__ in str(told.value)
    assert ledger.history() == []


@pytest.mark.parametrize(
    "step",
    [
        make_pipeline(Normalizer(), StandardScaler()),
        make_union(Normalizer(), StandardScaler()),
        make_column_transformer((StandardScaler(), [0]), remainder="passthrough"),
        make_column_transformer((Normalizer(), [0]), remainder=StandardScaler()),
    ],
)
def test_it_is_found_inside_of_other_steps(step: Any) -> None:
    with pytest.raises(sb.ParameterError, match="fitted to all private records"):
        fit(make_pipeline(step, POOLED["moments"]()))


def test_it_is_found_around_the_pipeline() -> None:
    inner = Pipeline([("shift", Shift()), ("model", POOLED["moments"]())])
    outer = Pipeline([("scale", StandardScaler()), ("inner", inner)])
    with pytest.raises(sb.ParameterError, match="'shift' changes X and not X_public"):
        outer.fit(X, Y, inner__model__X_public=X_PUBLIC, inner__model__classes=[0, 1])
    inner = Pipeline([("model", POOLED["moments"]())])
    outer = Pipeline([("scale", StandardScaler()), ("inner", inner)])
    with pytest.raises(sb.ParameterError, match=r"'scale'.*fitted to all private records"):
        outer.fit(X, Y, inner__model__X_public=X_PUBLIC, inner__model__classes=[0, 1])


@pytest.mark.parametrize(
    "step",
    [
        Shift(),
        Normalizer(),
        FunctionTransformer(np.tanh),
        FrozenEstimator(StandardScaler().fit(X_PUBLIC)),
        make_column_transformer((Normalizer(), [0, 1]), remainder="drop"),
        FeatureUnion([("n", Normalizer()), ("nothing", "passthrough")]),
    ],
)
def test_a_step_that_leaves_the_public_points_behind_is_refused(step: Any) -> None:
    ledger = sb.Ledger.in_memory(**TERMS)
    with pytest.raises(sb.ParameterError, match=r"changes X and not X_public.*transform_input"):
        fit(make_pipeline(step, POOLED["moments"](ledger=ledger)))
    assert ledger.history() == []


@pytest.mark.parametrize("name", ["pate", "active", "moments", "record votes"])
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


def test_nothing_before_the_learner_is_no_pipeline() -> None:
    for pipeline in (
        make_pipeline(POOLED["moments"]()),
        Pipeline([("none", "passthrough"), ("gone", None), ("model", POOLED["moments"]())]),
    ):
        assert np.mean(fit(pipeline).predict(X_TEST) == Y_TEST) > 0.85


def test_a_pipeline_as_teacher_scales_each_shard_by_itself() -> None:
    teacher = make_pipeline(StandardScaler(), LogisticRegression())
    student = make_pipeline(StandardScaler(), LogisticRegression())
    model = sb.PATEClassifier(teacher, student, n_teachers=40, budget=BUDGET)
    model.fit(X, Y, X_public=X_PUBLIC, classes=[0, 1])
    assert np.mean(model.predict(X_TEST) == Y_TEST) > 0.85


class OfSomebody(StandardScaler):
    """May do anything with labels, for all that is known."""


@pytest.mark.parametrize("name", list(LABELS))
def test_public_features_may_be_scaled_and_not_chosen_by_labels(name: str) -> None:
    pipeline = make_pipeline(StandardScaler(), LABELS[name]())
    assert np.mean(fit(pipeline, X_public=None).predict(X_TEST) == Y_TEST) > 0.85
    for step in (SelectKBest(k=2), LinearDiscriminantAnalysis(), OfSomebody()):
        with pytest.raises(sb.ParameterError, match=r"'\w+' \(\w+\) may have learnt from"):
            fit(make_pipeline(step, LABELS[name]()), X_public=None)


def test_targets_that_were_scaled_by_all_of_them_are_refused() -> None:
    model = sb.RecordMomentsRegressor((-5.0, 5.0), budget=BUDGET)
    wrapped = TransformedTargetRegressor(model, transformer=StandardScaler())
    with pytest.raises(sb.ParameterError, match="fitted to all private targets"):
        wrapped.fit(X, X[:, 1], X_public=X_PUBLIC)
    halved = TransformedTargetRegressor(
        model, func=lambda y: y / 2, inverse_func=lambda y: 2 * y, check_inverse=False
    )
    halved.fit(X, X[:, 1], X_public=X_PUBLIC)
    around = TransformedTargetRegressor(make_pipeline(model), transformer=MinMaxScaler())
    with pytest.raises(sb.ParameterError, match="fitted to all private targets"):
        around.fit(X, X[:, 1], recordmomentsregressor__X_public=X_PUBLIC)


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


def test_points_that_meet_records_by_chance_are_taken() -> None:
    cells = RNG.integers(0, 4, size=(2000, 3))
    world = np.array(np.meshgrid(range(4), range(4), range(4))).reshape(3, -1).T
    for points in (world, cells[:300]):
        model = sb.RecordMomentsClassifier(budget=BUDGET)
        model.fit(cells, Y, X_public=points, classes=[0, 1])
