"""What no verifier would take is refused before it is paid, by every way out; what is paid, both
take."""

import ast
import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

import secretballot as sb
import secretballot_verify as second
from noisy_plans import calibrated
from secretballot.accounting import noisy_means, noisy_votes
from secretballot.accounting.recipes import Terms
from secretballot.core.mechanisms import NoisyVotes
from secretballot.core.types import LARGEST, Guarantee
from secretballot.exceptions import CertificateError, DataError, ParameterError
from secretballot.releasing import reserve_choice
from secretballot.report.certificate import certificate_digest
from sessions import session_of

BUDGET = sb.PrivacyBudget(2.0, 1e-6)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 2))
Y = (X[:, 0] > 0).astype(int)
LONG = "x" * 10_001  # characters, one more than a certificate may have in a string
VOTES = sb.votes_of_counts([[30, 70], [60, 40]])
SMALL = sb.PrivacyBudget(0.3, 1e-7)
NOISE = NoisyVotes(scale=40.0)


def account(**terms):
    return sb.Ledger.in_memory(**{"dataset": "people", "budget": BUDGET, **terms})


def assert_both_take(certificate):
    """Compare the verdicts of both programs; files are none of a certificate that stands alone."""
    assert sb.verify_certificate(certificate).ok
    listed = certificate | {"files": {"README.txt": {"sha256": "0" * 64, "bytes": 1}}}
    listed["digest"] = certificate_digest(listed)
    found = second.check_certificate(json.dumps(listed).encode())
    assert {one.verdict for one in found} == {second.CONFIRMED}, found


def labels_learnt(n_labels, relation, ledger):
    rows = X[:, [k % 2 for k in range(n_labels)]]
    model = sb.RecordMomentsClassifier(
        epsilon=BUDGET.epsilon, delta=BUDGET.delta, n_stages=1, relation=relation, ledger=ledger
    )
    names = [f"label {k}" for k in range(n_labels)]
    return model.fit(X[:700], (rows[:700] > 0).astype(int), X_public=X[700:], labels=names)


@pytest.mark.parametrize(
    ("n_labels", "relation", "unit"),
    [
        (20, "replace-one", 1024),
        (26, "replace-one", 512),
        (101, "add-remove", 512),
        (104, "replace-one", 256),
    ],
)
def test_any_number_of_labels_has_sums_that_both_verifiers_take(n_labels, relation, unit):
    """Where a unit of 2^-10 fits it stays, so that known releases keep their integers."""
    ledger = account(relation=relation)
    model = labels_learnt(n_labels, relation, ledger)
    squared = model.certificate_["events"][0]["squared_sensitivity"]
    bound = math.isqrt(squared // (4 if relation == "replace-one" else 1))
    assert squared == (4 if relation == "replace-one" else 1) * bound**2
    assert squared <= LARGEST
    assert model.certificate_["public"]["residual_units"] == [unit]
    assert_both_take(model.certificate_)
    assert ledger.spent().epsilon == BUDGET.epsilon


def of_labels(votes=None, **terms):
    cast = VOTES if votes is None else votes
    return lambda ledger: sb.release(cast, NOISE, ledger, SMALL, **terms)


def table(ledger, names, declaration=None):
    made_for = declaration or {}
    cast = sb.teachers.label_votes(RNG.random((2, 50, len(names))) < 0.5, names, **made_for)
    public = {"method": "votes-of-labels", "labels": names, "ballot": "labels", "most_named": None}
    terms = Terms(noisy_votes(BUDGET, cast.shape), cast.shape, BUDGET, public)
    return sb.releasing.release_table(terms, cast, ledger, declaration=declaration)


def long_table(ledger):
    n = 250_000
    cast = sb.teachers.number_votes(np.zeros((n, 2)), (0.0, 1.0), n_positions=2)
    public = {"method": "votes-of-numbers", "bounds": [0.0, 1.0]}
    terms = Terms(noisy_means(BUDGET, cast.shape), cast.shape, BUDGET, public)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.accounting.WeakSignalWarning)
        return sb.releasing.release_table(terms, cast, ledger)


def long_labels(ledger):
    n = 30_000
    cast = sb.votes_of_counts(np.full((n, 2), 50), classes=["no", LONG[:9000]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.accounting.WeakSignalWarning)
        return sb.release(cast, noisy_votes(BUDGET, cast.shape), ledger, BUDGET)


def moments(learner, y, **terms):
    return lambda ledger: learner(**BUDGET.to_json(), ledger=ledger).fit(
        X[:700], y[:700], X_public=X[700:], **terms
    )


def choice(names, **terms):
    models = [DummyClassifier(strategy="constant", constant=k).fit(X, Y) for k in (0, 1)]
    return lambda ledger: sb.choose_candidate(
        list(zip(names, models, strict=True)),
        X[9:],
        Y[9:],
        **{"classes": [0, 1], "epsilon": 0.5, "ledger": ledger, "X_public": X[:9], **terms},
    )


def test_more_releases_than_a_certificate_lists_are_not_chosen_among():
    """A certificate lists ten label games beside the choice, and no verifier plays more."""
    ledger = account(budget=sb.PrivacyBudget(20.0, 1e-4))
    models = [DummyClassifier(strategy="constant", constant=k % 2).fit(X, Y) for k in range(12)]
    for model in models:
        model.released_ = sb.release(VOTES, NOISE, ledger, SMALL)

    def chosen(count):
        return sb.choose_candidate(
            models[:count],
            X[:20],
            Y[:20],
            classes=[0, 1],
            epsilon=0.5,
            ledger=ledger,
            X_public=X[20:29],
        )

    with pytest.raises((ParameterError, CertificateError), match="11 choices are label games"):
        chosen(11)
    assert len(ledger.history()) == 12
    assert sb.verify_certificate(chosen(10).certificate_).ok


def semi_private(classes, **terms):
    return lambda ledger: sb.SemiPrivateClassifier(epsilon=1.0, ledger=ledger).fit(
        X, np.array(classes, dtype=object)[Y], X_public=X[:40] + 1.0, classes=classes, **terms
    )


def session(classes, **terms):
    def begin(ledger):
        labels = np.array(classes, dtype=object)[Y]
        teachers = sb.train_teachers("tree", X, labels, classes=classes, n_teachers=10)
        return session_of(teachers, calibrated(BUDGET, 4, n_teachers=10), ledger, **terms)

    return begin


class Unnamed(sb.queries.MarginSampling):
    def describe(self):
        return {"name": " "}


def in_rounds(ledger):
    model = sb.PATEClassifier(
        LogisticRegression(),
        epsilon=BUDGET.epsilon,
        delta=BUDGET.delta,
        n_teachers=30,
        strategy=Unnamed(),
        ledger=ledger,
    )
    return model.fit(X[:700], Y[:700], X_public=X[700:], classes=[0, 1])


def reserved(ledger):
    return reserve_choice(
        ledger,
        epsilon=0.5,
        request="later",
        guarantee=Guarantee(unit="record", relation="add-remove"),
        purpose="which",
        classes=["no", LONG],
    )


OF_A_LABEL = {"unit": "label", "relation": "replace-one"}
REFUSED = {
    "labels, classes": (of_labels(sb.votes_of_counts([[30, 70]], classes=["no", LONG])), "classes"),
    "labels, purpose": (of_labels(purpose=LONG), "purpose"),
    "labels, points": (of_labels(points_sha256="zz"), "points_sha256 is 'zz'"),
    "labels, unit column": (
        of_labels(
            sb.votes_of_counts([[30, 70]], unit="user"),
            declaration={"unit": "user", "unit_column": ""},
        ),
        "unit_column is ''",
    ),
    "labels, size": (long_labels, "labels.csv may have more than 250 MB"),
    "table, name": (lambda ledger: table(ledger, ["ill", LONG]), "labels"),
    "table of a label": (lambda ledger: table(ledger, [*"abc"], OF_A_LABEL), "not about labels"),
    "table, size": (long_table, "more than 10 MB"),
    "moments, classes": (
        moments(sb.RecordMomentsClassifier, np.array(["no", LONG])[Y], classes=["no", LONG]),
        "classes",
    ),
    "choice, name": (choice(["one", LONG]), "string of 10001"),
    "semi-private, classes": (semi_private([0, 2**60]), "'classes' is"),
    "reserved choice, classes": (reserved, "classes"),
    "session, classes": (session(["no", LONG]), "classes"),
    "rounds, strategy": (in_rounds, "plan.strategy"),
}


@pytest.mark.parametrize("way", REFUSED)
def test_what_no_verifier_takes_is_refused_before_it_is_paid(way):
    buy, words = REFUSED[way]
    ledger = account(**(OF_A_LABEL if "of a label" in way else {}))
    with pytest.raises((ParameterError, CertificateError, DataError)) as refused:
        buy(ledger)
    assert words[:40] in str(refused.value)
    assert "Nothing was spent." in str(refused.value) or refused.type is CertificateError
    assert not ledger.history()


def test_every_purchase_is_made_in_one_place():
    """Who reserved by another line would skip the look at the certificate."""
    root = Path(sb.__file__).parent
    found = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if ".reserve(" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "reserve"
        and not (isinstance(node.func.value, ast.Name) and node.func.value.id == "purchase")
    ]
    assert set(found) == {"core/releasing.py"}
