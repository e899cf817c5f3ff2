"""Learners by name."""

from typing import Any

import pytest
from sklearn.base import is_classifier

from secretballot.exceptions import ParameterError
from secretballot.learners.catalogue import LEARNERS, named_student, named_teacher


@pytest.mark.parametrize("name", LEARNERS)
def test_every_name_stands_for_a_classifier(name: str) -> None:
    assert is_classifier(named_teacher(name))
    assert type(named_student(name)) is type(named_teacher(name))


def test_a_class_is_found_by_its_path_and_auto_is_left_to_the_learner() -> None:
    assert type(named_teacher("sklearn.svm:LinearSVC")).__name__ == "LinearSVC"
    assert named_student("auto") is None


@pytest.mark.parametrize(
    ("make", "name", "message"),
    [
        (named_teacher, "oracle", "teacher 'oracle' is unknown; give one of logistic"),
        (named_teacher, "auto", "teacher 'auto' is unknown"),
        (named_student, "oracle", "student 'oracle' is unknown; give one of auto"),
        (named_teacher, "no.such.module:Class", "cannot be made"),
        (named_teacher, "sklearn.svm:NoSuchClass", "cannot be made"),
        (named_teacher, "pathlib:Path", "no scikit-learn classifier"),
        (named_teacher, ":", "unknown"),
    ],
)
def test_what_is_no_learner_is_refused(make: Any, name: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make(name)
