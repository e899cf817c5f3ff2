import numpy as np

from secretballot.students import GraphCountsClassifier, NoisyCountsClassifier
from secretballot.students.graph_counts import NeighbourGraph

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


def test_modes_of_the_graph():
    rng = np.random.default_rng(2)
    apart = np.vstack([rng.standard_normal((40, 2)), 100 + rng.standard_normal((40, 2))])
    graph = NeighbourGraph.build(apart, 5, 10)
    assert (np.diff(graph.frequencies) >= -1e-12).all()
    np.testing.assert_allclose(graph.frequencies[:2], 0.0, atol=1e-6)  # one for each connected part
    slow = graph.modes[:, :2]
    np.testing.assert_allclose(np.ptp(slow[:40], axis=0), 0.0, atol=1e-2)
    np.testing.assert_allclose(np.ptp(slow[40:], axis=0), 0.0, atol=1e-2)
    np.testing.assert_allclose(graph.place(apart)[:, :2], slow, atol=1e-2)


def test_far_points_and_doubled_points_have_a_place():
    X = np.repeat(np.random.default_rng(4).standard_normal((20, 2)), 3, axis=0)
    student = GraphCountsClassifier(4).fit(X, np.arange(60), n_teachers=K, sigma=5.0)
    assert np.isfinite(student.predict_shares(np.vstack([X, [[1e6, 1e6]]]))).all()
