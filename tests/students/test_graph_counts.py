import numpy as np

from secretballot.students import GraphCountsClassifier, NoisyCountsClassifier

K = 250


def two_moons(rng, n):
    side = rng.integers(0, 2, n)
    angle = np.pi * rng.random(n)
    X = np.column_stack(
        [np.cos(angle) + side, np.where(side, 0.4 - np.sin(angle), np.sin(angle) - 0.1)]
    )
    return X + 0.08 * rng.standard_normal((n, 2)), side


def test_the_pool_shape_beats_a_kernel_where_few_points_are_asked():
    rng = np.random.default_rng(0)
    X, side = two_moons(rng, 1200)
    asked = np.arange(120)
    counts = np.rint(K * (0.2 + 0.6 * side[asked]) + 200 * rng.standard_normal(120))
    graph = GraphCountsClassifier().fit(X[asked], counts, n_teachers=K, sigma=200.0, pool=X[:1000])
    kernel = NoisyCountsClassifier(random_state=0).fit(
        X[asked], counts, n_teachers=K, sigma=200.0, pool=X[:1000]
    )
    new = slice(1000, 1200)
    accuracy = (graph.predict(X[new]) == side[new]).mean()
    assert accuracy > 0.95
    assert accuracy >= (kernel.predict(X[new]) == side[new]).mean()


def test_far_points_and_doubled_points_have_a_place():
    X = np.repeat(np.random.default_rng(4).standard_normal((20, 2)), 3, axis=0)
    student = GraphCountsClassifier(4).fit(X, np.arange(60), n_teachers=K, sigma=5.0)
    assert np.isfinite(student.predict_shares(np.vstack([X, [[1e6, 1e6]]]))).all()
