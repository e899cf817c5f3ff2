import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.naive_bayes import GaussianNB

import secretballot as sb
from secretballot._validation import check_instance, check_name, check_path, shown

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


def test_a_wrong_type_is_named_with_what_to_give():
    with pytest.raises(sb.ParameterError, match=r"^ledger is 'x'; give an instance of Ledger\.$"):
        check_instance("ledger", "x", sb.Ledger)
    check_instance("ledger", None, (sb.Ledger, type(None)))
