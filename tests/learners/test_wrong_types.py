"""What is no ledger, no plan, no votes and no name is refused in one sentence, before anything
is priced or trained."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import secretballot as sb
from noisy_plans import calibrated
from secretballot.learners.inputs import class_indices
from sessions import in_rounds, of_fit

BUDGET = sb.PrivacyBudget(2.0, 1e-5)
P = np.random.default_rng(0).normal(size=(30, 2))
Y = (P[:, 0] > 0).astype(int)
PLAN = calibrated(BUDGET, 5, n_classes=2, n_teachers=10, release="labels")


@pytest.fixture(scope="module")
def teachers():
    return sb.train_teachers(GaussianNB(), P, Y, classes=[0, 1], n_teachers=2)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"teachers": None}, "teachers is None; give what train_teachers returned"),
        ({"mechanism": "gaussian"}, "mechanism is 'gaussian'; give a mechanism"),
        ({"budget": 1.0}, "budget is 1.0; give a PrivacyBudget"),
        ({"n_queries": 0}, "n_queries is 0"),
        ({"ledger": "registry.ledger"}, "ledger is 'registry.ledger'; give a Ledger"),
        ({"request": None}, "request is missing; it must be one plain line"),
        ({"request": "n" * 201}, "request is a string of 201 characters"),
    ],
)
def test_a_session_says_what_it_takes(teachers, given, sentence):
    ledger = sb.Ledger.in_memory(dataset="d", budget=BUDGET)
    settings = {"teachers": teachers, "mechanism": PLAN.mechanism, "ledger": ledger} | given
    settings = {"budget": BUDGET, "n_queries": 5, "request": "s"} | settings
    with pytest.raises(sb.ParameterError, match=f"^{sentence}"):
        sb.LabelingSession(**settings)
    for named, place in (("request is 3", (".", 3)), ("vault is 3", (3, "s"))):
        with pytest.raises(sb.ParameterError, match=named):
            sb.LabelingSession.reopen(place[0], request=place[1])


@pytest.mark.parametrize("learner", [sb.PATEClassifier, in_rounds])
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"ledger": "x"}, "ledger is 'x'; give a Ledger"),
        ({"vault": 3}, "vault is 3; give the path"),
        ({"request": "two\nlines"}, "request is 'two.*; it must be one plain line"),
        ({"request": " "}, "request is ' '; it must be one plain line"),
    ],
)
def test_a_fit_says_what_it_takes_before_it_trains(learner, given, sentence):
    ledger = given.get("ledger")
    model = learner(GaussianNB(), **BUDGET.to_json(), n_teachers=2, ledger=ledger)
    about = {"classes": [0, 1], "progress": pytest.fail, **of_fit(dict(given))}
    with pytest.raises(sb.ParameterError, match=f"^{sentence}"):
        model.fit(P, Y, X_public=P + 0.01, **about)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (np.full(30, np.nan), "30 labels in y are missing"),
        (
            np.where(Y == 1, np.inf, 0.0),
            "labels in y are missing or not among the declared classes",
        ),
        (np.array([None, "yes"], dtype=object)[Y], "30 labels in y are missing"),
        (np.column_stack([Y, Y]), "y has 2 dimensions; give the private targets as one column"),
    ],
)
def test_labels_that_are_missing_or_in_two_columns_are_refused_in_one_sentence(labels, sentence):
    with pytest.raises(sb.DataError, match=sentence):
        class_indices(labels, [0, 1], 30)


def test_no_error_of_a_conversion_of_targets_quotes_one():
    class Lazy:
        shape = (3,)

        def __array__(self, dtype=None, copy=None):
            raise ValueError("invalid literal for int() with base 10: 'SECRET'")

    with pytest.raises(sb.SecretBallotError, match="one column") as refused:
        class_indices(Lazy(), [0, 1], 3)
    assert refused.value.__context__ is None
    assert "SECRET" not in str(refused.value)
