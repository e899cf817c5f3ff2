"""Votes for sets of labels and for numbers: how far one teacher moves them, and what is refused."""

import itertools
import math

import numpy as np
import pytest

from secretballot.core.types import Guarantee
from secretballot.exceptions import DataError, ParameterError
from secretballot.teachers import label_votes, number_votes
from secretballot.teachers.votes import (
    _as_set_numbers,
    _capped,
    _check_ballot,
    checked_labels,
    checked_positions,
    checked_range,
    from_set_numbers,
    label_shape,
)

BALLOTS = [{}, {"most_named": 1}, {"most_named": 2}, {"ballot": "sets"}]


def all_sets(n_labels):
    return np.array(list(itertools.product((0, 1), repeat=n_labels)))


def opened(votes):
    return votes._unseal()[0]


@pytest.mark.parametrize("n_labels", [1, 2, 3])
@pytest.mark.parametrize("terms", BALLOTS, ids=str)
def test_one_teacher_moves_as_many_counts_as_stated_by_one_each(n_labels, terms):
    if terms.get("most_named", 1) > n_labels or (n_labels == 1 and "ballot" in terms):
        return
    labels, other = [f"l{j}" for j in range(n_labels)], np.ones((1, n_labels), dtype=int)
    most, stated = 0, 0
    for one, two in itertools.product(all_sets(n_labels), repeat=2):
        votes = [
            label_votes(np.vstack([own[None], other])[None], labels, **terms) for own in (one, two)
        ]
        moved = np.abs(opened(votes[0]) - opened(votes[1]))
        assert moved.max() <= 1
        # in a row that moves one vote leaves one class for another
        assert set(moved.sum(axis=1)) <= {0, 2}
        most, stated = max(most, int(moved.sum()) // 2), votes[0].shape.moved
    assert most == stated


def test_a_cap_keeps_the_surest_labels_and_reads_no_other_ballot():
    named = np.array([[1, 1, 1], [0, 1, 1], [0, 0, 0]], dtype=bool)
    sure = np.array([[0.6, 0.9, 0.7], [0.99, 0.6, np.nan], [0.2, 0.1, 0.3]])
    assert _capped(named, 1, sure).astype(int).tolist() == [[0, 1, 0], [0, 1, 0], [0, 0, 0]]
    assert _capped(named, 2, None).tolist()[0] == [True, True, False]
    assert (_capped(named, 3, sure) == named).all()


def test_sets_have_numbers_and_numbers_sets():
    sets = all_sets(4)
    assert (from_set_numbers(_as_set_numbers(sets), 4) == sets).all()
    assert sorted(_as_set_numbers(sets).tolist()) == list(range(16))


def test_numbers_are_put_on_the_grid_each_from_itself():
    votes = np.array([[0.0, 0.24, 0.26, 1.0, -3.0, math.inf, math.nan]])
    cast = number_votes(votes, (0.0, 1.0), n_positions=3)
    assert opened(cast).tolist() == [[3, 2, 2]]


def test_votes_that_are_none_are_refused_without_being_named():
    for votes in (np.full((1, 2, 2), 977), np.ones((1, 2)), np.ones((0, 2, 2)), np.ones((1, 2, 3))):
        with pytest.raises(DataError) as caught:
            label_votes(votes, ["a", "b"])
        assert "977" not in str(caught.value)
    with pytest.raises(DataError):
        number_votes(np.ones(3), (0.0, 1.0))
    with pytest.raises(DataError):
        number_votes(np.array([["977"]]), (0.0, 1.0))


@pytest.mark.parametrize("terms", BALLOTS, ids=str)
def test_the_shape_is_known_before_the_votes_are(terms):
    votes = label_votes(np.ones((5, 7, 3), dtype=int), ["a", "b", "c"], **terms)
    guarantee = Guarantee(unit="record", relation="add-remove")
    assert label_shape(5, 3, 7, guarantee, **terms) == votes.shape


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (lambda: checked_labels(["a", "a"]), "labels"),
        (lambda: checked_labels(None), "labels"),
        (lambda: _check_ballot("ranks", None, 3), "ballot"),
        (lambda: _check_ballot("labels", 4, 3), "most_named"),
        (lambda: _check_ballot("sets", 1, 3), "most_named"),
        (lambda: _check_ballot("sets", None, 9), "sets"),
        (lambda: checked_range((1.0, 0.0)), "bounds"),
        (lambda: checked_range(None), "bounds"),
        (lambda: checked_positions(1), "n_positions"),
    ],
)
def test_bad_terms_are_refused(refused, words):
    with pytest.raises(ParameterError, match=words):
        refused()
