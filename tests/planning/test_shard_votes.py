import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from samples import synthetic_two_class
from secretballot.planning.simulation.shard_votes import (
    Stock,
    _simulated_shards,
    out_of_shard_votes,
)
from secretballot.teachers.training import Recipe, train_shard


def stock(n=240, n_points=240, n_features=4, seed=0):
    data = synthetic_two_class(n, n_features=n_features, bayes_error=0.2, seed=seed)
    return Stock(data.X, data.y, 2, n_points)


def by_hand(teacher, stock, shard_size, n_teachers, largest, seed):
    """Votes of every teacher on every point, -1 where it learnt from it, and the shuffling of
    its shard."""
    recipe, votes, shufflings = Recipe.of(teacher, seed), [], []
    for number, (shuffling, rows) in enumerate(
        _simulated_shards(stock, shard_size, n_teachers, largest, seed)
    ):
        model = train_shard(recipe, stock.X[rows], stock.y[rows], number)
        cast = np.full(len(stock.y), number % 2) if model is None else model.predict(stock.X)
        cast[rows] = -1
        votes.append(cast[: stock.n_points])
        shufflings.append(shuffling)
    return np.array(votes), np.array(shufflings)


def test_shards_of_one_shuffling_are_disjoint_and_shufflings_differ():
    shards = list(_simulated_shards(stock(), 30, 40, 110, seed=5))
    assert len(shards) == 40
    for shuffling in {number for number, _ in shards}:
        rows = np.concatenate([rows for number, rows in shards if number == shuffling])
        assert len(np.unique(rows)) == len(rows) <= 240
    firsts = [dict(reversed(shards))[shuffling] for shuffling in (0, 1)]
    assert not np.array_equal(firsts[0][:20], firsts[1][:20])


def test_shard_sizes_follow_a_poisson_law_below_the_cut():
    sizes = np.array([len(rows) for _, rows in _simulated_shards(stock(), 20, 4000, 110, seed=1)])
    assert abs(sizes.mean() - 20) < 6 * np.sqrt(20 / 4000)
    assert abs(sizes.var() / 20 - 1) < 6 * np.sqrt(2 / 4000)
    assert max(len(rows) for _, rows in _simulated_shards(stock(), 20, 500, 22, seed=1)) == 22


@pytest.mark.parametrize("n_points", [240, 100])
def test_counts_and_both_shares_agree_with_votes_counted_by_hand(n_points):
    given = stock(n_points=n_points)
    counted = out_of_shard_votes(DecisionTreeClassifier(random_state=0), given, 30, 25, 110, seed=3)
    votes, shufflings = by_hand(DecisionTreeClassifier(random_state=0), given, 30, 25, 110, seed=3)
    assert (counted.truth == given.y[:n_points]).all()
    assert np.array_equal(
        counted.counts, np.stack([(votes == label).sum(axis=0) for label in (0, 1)], axis=1)
    )
    for label in (0, 1):
        here = votes[:, counted.truth == label]
        assert counted.right[label] == pytest.approx((here == label).sum() / (here >= 0).sum())
        asked = both = 0
        for one in range(25):
            for other in range(one):
                if shufflings[one] == shufflings[other]:
                    present = (here[one] >= 0) & (here[other] >= 0)
                    asked += present.sum()
                    both += (present & (here[one] == label) & (here[other] == label)).sum()
        assert counted.both_right[label] == pytest.approx(both / asked)


def test_a_teacher_has_no_vote_on_the_points_it_learnt_from():
    rng = np.random.default_rng(0)
    coin_labels = Stock(rng.normal(size=(400, 3)), rng.integers(0, 2, 400), 2, 400)
    counted = out_of_shard_votes(KNeighborsClassifier(1), coin_labels, 120, 30, 190, seed=0)
    right = counted.counts[np.arange(400), counted.truth].sum() / counted.counts.sum()
    # one nearest neighbour knows its own points by heart: with votes on them, 65 % would be right
    assert abs(right - 0.5) < 0.06
    assert (counted.counts.sum(axis=1) < 30).all()
