"""The hold-out: one unit on one side, whoever else is there."""

import numpy as np

import secretballot as sb
from secretballot.learners.training import table as room


def test_the_sides_are_disjoint_and_together_everything():
    for settings in ({}, {"units": np.arange(5000) // 3}, {"relation": "replace-one"}):
        taught, held = sb.hold_out(5000, 0.2, **settings)
        assert np.array_equal(np.sort(np.concatenate([taught, held])), np.arange(5000))
        assert 850 < len(held) < 1150


def test_a_unit_stays_where_it_is_when_another_comes_or_goes(monkeypatch):
    monkeypatch.setattr(room, "entropy_bytes", lambda size: bytes(range(size)))
    rng = np.random.default_rng(0)
    units = rng.integers(0, 300, 2000)
    side = np.zeros(2000, dtype=bool)
    side[sb.hold_out(2000, 0.3, units=units)[1]] = True
    assert all(len(set(side[units == unit].tolist())) == 1 for unit in np.unique(units))
    for gone in (units[0], units[1000]):
        stays = units != gone
        found = np.zeros(int(stays.sum()), dtype=bool)
        found[sb.hold_out(int(stays.sum()), 0.3, units=units[stays])[1]] = True
        assert np.array_equal(found, side[stays])


def test_records_without_ids_are_drawn_independently_and_anew():
    sides = np.zeros((200, 50))
    for row in sides:
        row[sb.hold_out(50, 0.5)[1]] = 1
    assert 0.42 < sides.mean() < 0.58
    assert sides.sum(axis=1).std() > 2  # the number held is binomial, not fixed: sd 3.5
    assert np.abs(np.corrcoef(sides.T) - np.eye(50)).max() < 0.5


def test_by_position_the_side_is_the_same_for_every_dataset_of_the_size():
    first, second = (sb.hold_out(10, 0.3, relation="replace-one") for _ in range(2))
    assert np.array_equal(first[1], second[1])
    assert first[1].tolist() == [3, 6, 9]
