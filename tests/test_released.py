import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secretballot.exceptions import DataError
from secretballot.released import ReleasedLabels


def binary(**changes):
    fields = {
        "queries": [3, 0, 7],
        "labels": [1, -1, 0],
        "classes": ("<=50K", ">50K"),
        "n_teachers": 250,
        "sigma": 20.5,
        "noisy_counts": [260, 120, -4],
        "certificate": {"epsilon": 1.0, "events": [{"kind": "counts"}]},
    }
    return ReleasedLabels(**(fields | changes))


def three_classes(**changes):
    fields = {
        "queries": [2, 1],
        "labels": [2, 0],
        "classes": [10, 20, 30],
        "n_teachers": 9,
        "sigma": 1.5,
        "noisy_counts": [[0, 1, 8], [7, 3, -1]],
    }
    return ReleasedLabels(**(fields | changes))


def labels_only():
    return binary(sigma=None, noisy_counts=None)


RELEASES = [binary, three_classes, labels_only]


@pytest.mark.parametrize("make", RELEASES)
@pytest.mark.parametrize(
    "copier", [copy.copy, copy.deepcopy, lambda released: pickle.loads(pickle.dumps(released))]
)
def test_copies_are_equal_and_stay_read_only(make, copier):
    copied = copier(make())
    assert copied == make()
    assert not copied.labels.flags.writeable


@settings(deadline=None)
@given(st.data())
def test_json_round_trip_of_any_release(data):
    classes = data.draw(
        st.lists(st.one_of(st.text(), st.integers()), min_size=2, max_size=4, unique=True)
    )
    n = data.draw(st.integers(0, 4))
    whole = st.integers(-(2**62), 2**62)
    counts = data.draw(
        st.none() | st.lists(whole, min_size=n * len(classes), max_size=n * len(classes))
    )
    released = ReleasedLabels(
        queries=data.draw(st.lists(st.integers(0, 2**62), min_size=n, max_size=n)),
        labels=data.draw(st.lists(st.integers(-1, len(classes) - 1), min_size=n, max_size=n)),
        classes=tuple(classes),
        n_teachers=data.draw(st.integers(1, 10**6)),
        sigma=None if counts is None else data.draw(st.floats(1e-3, 1e9)),
        noisy_counts=(
            None if counts is None else np.array(counts, dtype=np.int64).reshape(n, len(classes))
        ),
    )
    if counts == [] and len(classes) == 2:
        return  # an empty binary release does not remember which of its two shapes it had
    assert ReleasedLabels.from_json(json.loads(json.dumps(released.to_json()))) == released


def test_arrays_are_copied_and_read_only():
    labels = np.array([1, -1, 0])
    released = binary(labels=labels)
    labels[0] = 0
    assert released.labels[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        released.noisy_counts[0] = 3


@pytest.mark.parametrize(
    ("changes", "mend"),
    [
        ({"labels": [1, 0]}, "same length"),
        ({"labels": [1, 2, 0]}, "between -1"),
        ({"queries": [3, 0, -7]}, "count from 0"),
        ({"classes": ("a", "a")}, "each once"),
        ({"classes": (0, float("nan"))}, "numbers or"),
        ({"sigma": None}, "belong together"),
        ({"noisy_counts": [[1], [2], [3]]}, "must be"),
        ({"certificate": {"noise": object()}}, "JSON"),
    ],
)
def test_what_does_not_fit_is_refused(changes, mend):
    with pytest.raises(DataError, match=mend):
        binary(**changes)


@pytest.mark.parametrize(
    "damage",
    [
        lambda document: document.pop("labels"),
        lambda document: document.update(extra=1),
        lambda document: document.update(format="other"),
        lambda document: document.update(version=2),
    ],
)
def test_another_document_is_refused(damage):
    document = binary().to_json()
    damage(document)
    with pytest.raises(DataError, match="document"):
        ReleasedLabels.from_json(document)
