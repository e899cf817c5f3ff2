import numpy as np
import pytest
from scipy.special import ndtr

from secretballot.planning.votes_forecast import ShardVotes, drawn_votes

POINTS = 20_000


def law(seed, centre=0.8, spread=0.9):
    """True class and share of right votes of many points, Phi of a normal law."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, POINTS), ndtr(centre + spread * rng.normal(size=POINTS)), rng


def two_sided(right, truth):
    return np.where(
        (truth == 1)[:, None], np.stack([1 - right, right], 1), np.stack([right, 1 - right], 1)
    )


def counted(n_counted, shares, truth, rng, first=None, second=None):
    by_class = [shares[truth == label, label] for label in range(shares.shape[1])]
    return ShardVotes(
        rng.multinomial(n_counted, shares),
        truth,
        np.array([part.mean() for part in by_class] if first is None else first),
        np.array([(part**2).mean() for part in by_class] if second is None else second),
    )


def summary(votes, truth):
    share = votes[np.arange(len(truth)), truth] / votes.sum(axis=1)
    margin = np.abs(2 * share - 1)
    return np.array([(share > 0.5).mean(), share.mean(), margin.mean(), margin.std()])


@pytest.mark.parametrize(("n_counted", "K"), [(10, 401), (100, 51)])
def test_votes_of_more_or_fewer_teachers_have_the_right_margins(n_counted, K):
    truth, right, rng = law(0)
    real = summary(rng.multinomial(K, two_sided(right, truth)), truth)
    drawn = drawn_votes(K, counted(n_counted, two_sided(right, truth), truth, rng), rng)
    assert (drawn.sum(axis=1) == K).all()
    assert summary(drawn, truth) == pytest.approx(real, abs=0.012)


def test_what_common_rows_make_teachers_agree_on_is_taken_out():
    # teachers that share rows share an error e: their shares are Phi((z + e) / sqrt(1 - 0.3)) in
    # place of Phi(z)
    rng = np.random.default_rng(1)
    truth, z = rng.integers(0, 2, POINTS), 0.8 + 0.9 * rng.normal(size=POINTS)
    seen = ndtr((z + np.sqrt(0.3) * rng.normal(size=POINTS)) / np.sqrt(0.7))
    free = [ndtr(z[truth == label]) for label in (0, 1)]
    given = counted(
        100,
        two_sided(seen, truth),
        truth,
        rng,
        [p.mean() for p in free],
        [(p**2).mean() for p in free],
    )
    real = summary(rng.multinomial(301, two_sided(ndtr(z), truth)), truth)
    assert summary(drawn_votes(301, given, rng), truth) == pytest.approx(real, abs=0.012)
    kept = ShardVotes(given.counts, truth, np.full(2, np.nan), np.full(2, np.nan))
    assert np.abs(summary(drawn_votes(301, kept, rng), truth) - real).max() > 0.02
