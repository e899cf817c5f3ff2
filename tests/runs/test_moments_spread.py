"""What a run says of its own spread, by what it released."""

from typing import Any

import numpy as np
import pytest

import secretballot as sb
from secretballot.runs import moments_spread as spreads
from secretballot.runs.moments_spread import MomentsSpread, moments_spread

BUDGET = sb.PrivacyBudget(epsilon=1.0, delta=1e-5)
POOL = np.random.default_rng(99).normal(size=(400, 4))


def records(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=n) > 0).astype(int)


def fitted(n: int, seed: int = 0, **settings: Any) -> sb.RecordMomentsClassifier:
    model = sb.RecordMomentsClassifier(**{**BUDGET.to_json(), **settings})
    return model.fit(*records(n, seed), X_public=POOL, classes=[0, 1])


def spread_of(model: Any, points: Any = POOL, **more: Any) -> MomentsSpread | None:
    return moments_spread(model.student_, model.released_, points, **more)


def told(model: Any, points: Any = POOL, **more: Any) -> MomentsSpread:
    found = spread_of(model, points, **more)
    assert found is not None
    return found


@pytest.mark.parametrize("n", [300, 3000])
def test_what_is_told_is_what_repeated_runs_show(n: int) -> None:
    X, y = records(4000, 1234)
    models = [fitted(n, seed) for seed in range(24)]
    said = [model.predict(X) for model in models]
    real = np.std([np.mean(one == y) for one in said], ddof=1)
    changed = np.mean([np.mean(one != other) for one in said for other in said if one is not other])
    # of eight fits the mean of what is told deviates by a tenth, what is real of all 24 by more
    found = [told(model) for model in models[::3]]
    # By twelve fits of either size, 22 times, the first ratio was 1.2 to 4.2 (mean 2.0: on such
    # columns the doubling is too much; so few fits tell the real one badly, hence twice as many
    # here), the second .83 to 1.04 and .59 to .70.
    assert 1 / 3 < np.mean([one.deviation for one in found]) / real < 8
    assert 1 / 2 < np.mean([one.changed for one in found]) / changed < 2


def test_it_follows_from_released_values_and_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted(300)
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    assert told(model) == told(model)
    assert told(model) != told(model, seed=1)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    again = sb.ReleasedLabels.from_json(model.released_.to_json())
    assert moments_spread(model.student_, again, POOL) == told(model)
    monkeypatch.setattr(spreads, "MOST_POOL", 100)
    assert told(model).changed > 0


def test_where_it_makes_no_difference_or_cannot_be_known_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    labels = sb.RecordMomentsClassifier(epsilon=BUDGET.epsilon, delta=BUDGET.delta)
    X, y = records(300, 0)
    assert spread_of(labels.fit(X, y, classes=[0, 1], public_features=True), X) is None
    first = fitted(300)
    later = sb.RecordMomentsClassifier(epsilon=BUDGET.epsilon, delta=BUDGET.delta)
    later.fit(X, y, X_public=POOL, classes=[0, 1], start=first.released_)
    assert spread_of(later) is None
    assert spread_of(fitted(300, class_weight="balanced")) is None
    monkeypatch.setattr(spreads, "MOST_RECORDS", 100)
    assert spread_of(first) is None
