"""Confident and interactive voting in fits, rounds, sessions, batches and streams."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import secretballot as sb
from exact_games.worlds import ScriptedNoise
from noisy_plans import confident, priced, released
from secretballot.core import releasing
from secretballot.exceptions import ParameterError
from secretballot.students.fitting import StudentInRounds, _with_confirmations
from sessions import stream_of

BUDGET = sb.PrivacyBudget(2.0, 1e-5)
K = 100


@pytest.fixture(scope="module")
def corrects():
    return priced(confident(50, 12.0, 9.0, 8), 30, K, delta=1e-5, confidence=0.8)


def points(n, seed):
    return np.random.default_rng(seed).uniform(-1, 1, (n, 2))


X, POOL = points(8000, 0), points(300, 1)
Y = (X[:, 0] > 0.1).astype(int)


def counted(ones, k=K):
    counts = np.asarray(ones)
    return np.column_stack([k - counts, counts])


def votes(ones, k=K):
    return sb.votes_of_counts(counted(ones, k), classes=["no", "yes"])


def account(epsilon=1e3, delta=0.4):
    return sb.Ledger.in_memory(dataset="registry", budget=sb.PrivacyBudget(epsilon, delta))


def stream(terms, ledger, vault=None):
    return stream_of(terms, ledger, ["no", "yes"], vault=vault)


def scripted(monkeypatch, noise):
    source = ScriptedNoise(noise, exact=True)
    monkeypatch.setattr(releasing, "noise_source", lambda: source)


def test_more_voices_than_teachers_are_refused_before_anything_is_answered():
    ledger = account()
    terms = priced(confident(60, 12.0, 9.0, 8), 30, K, delta=1e-5)
    with pytest.raises(ParameterError, match="at most the number of teachers"):
        released(votes([10, 30] * 15, 40), terms, ledger)
    assert ledger.spent().epsilon == 0


def test_a_stream_tells_the_student_apart_by_question(monkeypatch, corrects):
    scripted(monkeypatch, [0, 0, 0, 0])
    opened = stream(corrects, account())
    predictions = [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]
    # the second question is asked twice, and answered once
    given = opened.answer(counted([90, 95, 95]), [b"a", b"b", b"b"], predictions)
    assert given.labels.tolist() == [None, "yes", "yes"]


def test_the_whole_reservation_is_paid_whatever_was_answered(corrects):
    ledger = account(corrects.budget.epsilon, 1e-5)
    opened = stream(corrects, ledger)
    assert ledger.remaining().epsilon == pytest.approx(0, abs=1e-9)
    assert not opened._stream.returns
    with pytest.raises(sb.BudgetError):
        released(votes([90] * 30), corrects, ledger, request="second")


def test_an_interactive_fit_corrects_and_confirms(tmp_path, monkeypatch):
    ledger = sb.Ledger(tmp_path / "l.sqlite", dataset="registry", budget=sb.PrivacyBudget(9, 0.1))
    student = LogisticRegression(C=100.0)

    def fitted():
        strategy = sb.queries.InRounds(sb.queries.ClusterSampling(), 20)
        terms = {"mechanism": "interactive:max_answers=30", "n_queries": 80, "ledger": ledger}
        terms |= {"n_teachers": 200, "random_state": 0, "student": student, "strategy": strategy}
        model = sb.PATEClassifier(**BUDGET.to_json(), **terms)
        place = {"vault": tmp_path / "vault", "request": "fit"}
        return model.fit(X, Y, X_public=POOL, classes=[0, 1], **place)

    seen, original = [], StudentInRounds.predictions

    def spying(self, rows):
        found = original(self, rows)
        seen.append((self.labels.copy(), found.copy()))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(StudentInRounds, "predictions", spying)
        model = fitted()
    released = model.released_
    # the first round has no student; the others know as many answers as were released before
    assert not seen[0][1].any()
    starts = np.cumsum([0, *model.rounds_])[:-1].tolist()
    assert [len(labels) for labels, _ in seen[: len(starts)]] == starts
    for labels, _ in seen:
        told = released.labels[: len(labels)]
        assert (labels[told >= 0] == told[told >= 0]).all()
    assert sum(model.rounds_) == len(released.queries)
    assert released.answered.sum() <= 30
    assert sb.verify_certificate(model.certificate_).ok
    right = np.mean(model.predict(POOL) == (POOL[:, 0] > 0.1))
    assert right > 0.7
    # the confirmations follow from the release alone, so another process makes the same student
    again = sb.fit_student(student, POOL, released, random_state=0)
    np.testing.assert_array_equal(again.coef_, model.student_.coef_)
    confirmed = _with_confirmations(
        lambda so_far: sb.fit_student(student, POOL, so_far, random_state=0), POOL, released
    )
    given = released.answered
    assert (confirmed.labels[given] == released.labels[given]).all()
    more = (confirmed.labels >= 0) & ~given
    assert more.any()
    truth = (POOL[released.queries, 0] > 0.1).astype(int)
    assert np.mean(confirmed.labels[more] == truth[more]) > 0.65
    # a stored release is taken again for nothing, with the same student
    spent = ledger.spent()
    np.testing.assert_array_equal(fitted().student_.coef_, model.student_.coef_)
    assert ledger.spent() == spent
