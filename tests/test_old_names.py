"""What was renamed still works under the name it had."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone

import secretballot as sb
from secretballot._old_names import takes_old_names

BUDGET = sb.PrivacyBudget(1.0, 1e-6)


@takes_old_names(old="new")
def doubled(x: int = 0, *, new: int = 1) -> int:
    return x + 2 * new


def test_an_old_keyword_is_taken_for_the_new_one_and_stands_in_no_signature() -> None:
    assert (doubled(1), doubled(1, old=3), doubled(1, new=3)) == (3, 7, 7)
    assert list(inspect.signature(doubled).parameters) == ["x", "new"]
    with pytest.raises(TypeError, match="old is the old name of new"):
        doubled(old=1, new=2)


@pytest.mark.parametrize("kind", [sb.AgnosticLabeler, sb.StabilityLabeler, sb.UniversalLabeler])
def test_a_labeler_takes_its_request_as_a_name(kind: type) -> None:
    labeler = kind(budget=BUDGET, name="ward 3")
    assert labeler.request == labeler.name == "ward 3"
    assert "name" not in labeler.get_params()
    assert clone(labeler).request == "ward 3"


def test_sizes_and_shares_are_taken_by_their_old_names() -> None:
    universal = sb.UniversalLabeler(budget=BUDGET, n_public=7, share=0.2)
    assert (universal.n_cover, universal.epsilon_share) == (7, 0.2)
    assert sb.SemiPrivateClassifier(budget=BUDGET, n_public=7).n_cover == 7
    labels = sb.relabel([[0.0], [1.0]], [0, 1], sb.hypotheses.Thresholds(), et=100.0)
    assert labels.tolist() == [0, 1]


def test_a_session_takes_its_request_as_a_name(tmp_path) -> None:
    X = np.linspace(0, 1, 40)[:, None]
    teachers = sb.train_teachers(
        "tree", X, (X[:, 0] > 0.5).astype(int), classes=[0, 1], n_teachers=4, vault=tmp_path / "v"
    )
    ledger = sb.Ledger(tmp_path / "ledger.sqlite", dataset="ward", budget=sb.PrivacyBudget(9, 1e-5))
    terms = sb.GaussianAggregator.calibrate(BUDGET, 3)
    session = sb.LabelingSession(teachers, terms, ledger, name="night")
    session.ask([0.2])
    again = sb.LabelingSession.reopen(tmp_path / "v", name="night")
    assert (again.name, again.request, again.used) == ("night", "night", 1)
    assert teachers.takes_holes == teachers.takes_missing
