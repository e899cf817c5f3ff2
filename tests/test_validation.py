"""Checks of what is given and released, and the errors that they raise."""

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.naive_bayes import GaussianNB

import secretballot as sb
from secretballot import exceptions
from secretballot._validation import check_instance, check_name, check_path, shown
from secretballot.core.sampler import draws_wrong_noise
from secretballot.exceptions import Argument, DataError, Parameter, SecretBallotError
from secretballot.released import ReleasedLabels

SECRET = 987654
LABELS = np.full(40, SECRET)
X, P = np.full((40, 2), float(SECRET)), np.zeros((30, 2))
PRIVATE = {
    "array": LABELS,
    "matrix": X,
    "frame": pd.DataFrame(X),
    "series": pd.Series(LABELS),
    "sparse": sparse.csr_matrix(X),
    "list": LABELS.tolist(),
    "tuple": tuple(LABELS.tolist()),
    "set": {SECRET},
    "mapping": {SECRET: SECRET},
    "array of text": LABELS.astype(str),
    "long text": f"{SECRET} " * 20,
    "fitted model": GaussianNB().fit(np.r_[X, P], np.r_[LABELS, np.zeros(30, dtype=int)]),
}


@pytest.mark.parametrize("value", PRIVATE.values(), ids=PRIVATE)
def test_what_may_be_private_is_shown_by_type_and_shape(value):
    assert str(SECRET) not in shown(value)
    assert len(shown(value)) < 80


WRONG = {
    "labels for classes": (
        lambda: sb.PATEClassifier(epsilon=1, delta=1e-6).fit(X, LABELS, X_public=P, classes=LABELS)
    ),
    "records for a number": lambda: sb.hold_out(X, 0.1),
    "labels for a share": lambda: sb.hold_out(40, LABELS),
    "labels for a number of teachers": lambda: sb.train_teachers(
        GaussianNB(), X, np.zeros(40, dtype=int), classes=[0, 1], X_public=P, n_teachers=LABELS
    ),
    "records for a teacher": lambda: sb.train_teachers(
        X, X, np.zeros(40, dtype=int), classes=[0, 1], X_public=P, n_teachers=2
    ),
    "records for a budget": lambda: sb.Ledger.in_memory(dataset="d", budget=X),
    "records for a path": lambda: sb.Ledger(X, dataset="d", budget=sb.PrivacyBudget(1, 1e-6)),
    "labels for votes' classes": lambda: sb.votes_of_teachers(
        np.zeros((2, 3), dtype=int), classes=LABELS
    ),
    "ids for their name": (
        lambda: sb.PATEClassifier(
            GaussianNB(), epsilon=8, delta=1e-6, n_teachers=20, n_queries=2, mechanism="labels"
        ).fit(
            P,
            np.arange(30) % 2,
            X_public=P,
            classes=[0, 1],
            units=np.arange(30),
            unit_name=np.full(30, SECRET).astype(str),
        )
    ),
}


@pytest.mark.parametrize("work", WRONG.values(), ids=WRONG)
def test_no_message_holds_a_private_value(work):
    with pytest.raises((sb.ParameterError, sb.DataError)) as caught:
        work()
    assert str(SECRET) not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["", " \t", "two\nlines", "bell\a", "half \ud800", "n" * 201, 3, None, LABELS]
)
def test_a_name_is_one_plain_line(name):
    with pytest.raises(sb.ParameterError, match=r"^name (is|has) "):
        check_name("name", name)


@pytest.mark.parametrize("path", ["", "a\0b", 3, None, X, b"bytes"])
def test_a_path_is_text_or_a_path(path):
    with pytest.raises(sb.ParameterError, match=r"^vault is .*; give the path"):
        check_path("vault", path)


@pytest.mark.parametrize(
    ("given", "named"), [("x", "'x'"), (Path("x"), "'x'"), (sb.Ledger, "the class Ledger")]
)
def test_a_wrong_type_is_named_with_what_to_give(given, named):
    with pytest.raises(sb.ParameterError, match=f"^ledger is {named}; give an instance of Ledger"):
        check_instance("ledger", given, sb.Ledger)
    check_instance("ledger", None, (sb.Ledger, type(None)))


@pytest.mark.parametrize(
    ("versions", "wrong"),
    [
        ("0.14.0 0.14.1 0.14 0.14.1.post1 0.14.0+local v0.14.1 0.14.0rc1", True),
        ("0.14.2 0.14.10 0.15.0 0.16.0 0.1.4 1.14.0 unknown", False),
    ],
)
def test_wrong_versions_alone_are_refused(versions, wrong):
    assert {draws_wrong_noise(version) for version in versions.split()} == {wrong}


CLASSES = [
    value
    for value in vars(exceptions).values()
    if isinstance(value, type) and issubclass(value, SecretBallotError)
]
PARTS = (Parameter("release"), " is 'counts'; use ", Argument("release", "labels"), ".")


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("travelled", [lambda one: pickle.loads(pickle.dumps(one)), copy.copy])
def test_the_message_is_joined_from_its_parts_which_an_error_keeps_on_the_way(kind, travelled):
    error = kind(*PARTS)
    error.add_note("while trying")
    again = travelled(error)
    assert type(again) is kind
    assert again.__notes__ == ["while trying"]
    for one in (error, again):
        assert str(one) == "release is 'counts'; use release='labels'."
        assert (one.args, one.parts, one.parameter) == ((str(one),), PARTS, "release")
    assert kind("release is text").parameter is None


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


RELEASES = [
    binary(),
    three_classes(),
    binary(sigma=None, noisy_counts=None),
    three_classes(queries=[], labels=[], noisy_counts=np.zeros((0, 3), dtype=int)),
]


@pytest.mark.parametrize("released", RELEASES, ids=["binary", "classes", "labels", "no query"])
@pytest.mark.parametrize(
    "copier",
    [
        copy.copy,
        copy.deepcopy,
        lambda released: pickle.loads(pickle.dumps(released)),
        lambda released: ReleasedLabels.from_json(json.loads(json.dumps(released.to_json()))),
    ],
    ids=["copy", "deep copy", "pickle", "json"],
)
def test_copies_are_equal_and_stay_read_only(released, copier):
    copied = copier(released)
    assert copied == released
    assert not copied.labels.flags.writeable


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
