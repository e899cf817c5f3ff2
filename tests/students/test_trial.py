"""Students are tried on public points, in the way in which they will be taught."""

import signal
import sys
from typing import Any, ClassVar
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import secretballot as sb
from secretballot.exceptions import ParameterError
from secretballot.students.fitting import Teaching, try_student
from strict_learners import LearnsAndNeverPredicts, NeverLearns, WantsCompany

X = np.random.default_rng(0).normal(size=(300, 3))
NAMES = ("no", "yes", "maybe")


class Noting(LogisticRegression):
    """Notes the labels that it is given."""

    seen: ClassVar[list[Any]] = []

    def fit(self, X, y):
        self.seen.append((X, np.asarray(y)))
        return super().fit(X, y)


@pytest.mark.parametrize(
    "student", [sb.NoisyCountsClassifier(), sb.GraphCountsClassifier(), sb.RecordVotesStudent()]
)
def test_students_of_counts_pass_where_counts_will_be_released(student):
    for names in (NAMES, NAMES[:2]):
        try_student(student, X, Teaching(names, 100, 50, type(student) is sb.RecordVotesStudent))
        with pytest.raises(ParameterError, match="counts"):
            try_student(student, X, Teaching(names, 100))


@pytest.mark.parametrize("classes", [NAMES, (3, 5, 9), (False, True), (1.0, 2.0)])
@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sparse.csr_matrix])
def test_the_labels_are_the_classes_and_the_points_keep_their_form(form, classes):
    Noting.seen.clear()
    try_student(Noting(), form(X), Teaching(classes, 100))
    ((points, labels),) = Noting.seen
    values = sb.ReleasedLabels([0], [0], classes, 1).class_values
    assert labels.dtype == values.dtype
    assert set(labels.tolist()) == set(classes)
    assert type(points) is type(form(X))
    assert points.shape == (100, 3)


@pytest.mark.parametrize(
    ("student", "words"),
    [
        (NeverLearns(), "RuntimeError: no heart for it"),
        (LearnsAndNeverPredicts(), "RuntimeError: it would end the program"),
        (object(), "TypeError"),
        (KNeighborsClassifier(n_neighbors=500), "n_neighbors"),
    ],
)
def test_what_cannot_learn_is_refused_in_one_sentence(student, words):
    with pytest.raises(ParameterError, match=words) as caught:
        try_student(student, X, Teaching(NAMES, 300))
    assert caught.value.parameter == "student"
    assert "Nothing was spent" in str(caught.value)
    assert "stays paid" not in str(caught.value)


def test_a_machine_without_memory_is_no_fault_of_the_student(monkeypatch):
    monkeypatch.setattr(NeverLearns, "fit", Mock(side_effect=MemoryError))
    with pytest.raises(MemoryError):
        try_student(NeverLearns(), X, Teaching(NAMES, 100))


def test_who_tells_the_program_to_end_by_a_signal_is_heard_in_a_fit(monkeypatch):
    before = signal.signal(signal.SIGUSR1, lambda *_: sys.exit("told"))
    told = Mock(side_effect=lambda *_: signal.raise_signal(signal.SIGUSR1))
    monkeypatch.setattr(NeverLearns, "fit", told)
    with pytest.raises(SystemExit, match="told"):
        try_student(NeverLearns(), X, Teaching(NAMES, 100))
    signal.signal(signal.SIGUSR1, before)


def test_as_many_points_as_there_will_be_are_tried_where_few_do_not_do():
    for student in (WantsCompany(), KNeighborsClassifier(n_neighbors=90)):
        try_student(student, X, Teaching(NAMES, 300))
        with pytest.raises(ParameterError):
            try_student(student, X, Teaching(NAMES, 80))
