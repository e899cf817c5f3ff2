"""The universal labeler: split, switch, restarts and crashes, certificates, refusals. Laws:
test_universal_exact."""

import json
import math
import os
import pickle
import re
import signal
from dataclasses import asdict
from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import secretballot as sb
from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import ExponentialChoice
from secretballot.core.releasing import AnswerStream
from secretballot.hypotheses import DecisionStumps, Intervals, Thresholds
from secretballot.learners import labelers as labeler_module
from secretballot.learners.labelers import Agnostic, Universal, _BudgetSplit, _UniversalSession
from sessions import of_fit

ASKED = PrivacyBudget(1.0, 1e-6)
RNG = np.random.default_rng(0)
N = 30_000
X = RNG.random((N, 1))
Y = np.where((X[:, 0] > 0.4) ^ (RNG.random(N) < 0.1), "yes", "no")
# the first 30 are clear to teachers with a handful of records each; the others lie nearer to the
# threshold
QUESTIONS = np.array(
    [*np.linspace(0.01, 0.05, 15), *np.linspace(0.85, 0.99, 15), *np.linspace(0.6, 0.8, 10)]
)[:, None]
NAMES = ["no", "yes"]


class Cut(ClassifierMixin, BaseEstimator):
    """The threshold between the labels of a shard that was relabelled, quickly."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        # far away where all labels are alike
        self.cut_ = (X[y == 0, 0].max(initial=-9.0) + X[y == 1, 0].min(initial=9.0)) / 2
        return self

    def predict(self, X):
        return (X[:, 0] >= self.cut_).astype(int)


@pytest.fixture(scope="module", autouse=True)
def _plan_once():
    """Calibrate each plan once: it follows from public numbers alone."""
    patch, known, real = pytest.MonkeyPatch(), {}, Agnostic.terms

    def terms(self, numbers):
        if (self, numbers) not in known:
            known[self, numbers] = real(self, numbers)
        return known[self, numbers]

    patch.setattr(Agnostic, "terms", terms)
    yield
    patch.undo()


def ledger_at(folder, budget=ASKED):
    return Ledger(
        folder / "ledger.sqlite", dataset="registry", budget=budget, relation="replace-one"
    )


def settings(folder=None, **changes):
    given = {
        **ASKED.to_json(),
        "n_first": 30,
        "max_abstentions": 2,
        "n_teachers": 350,
        "epsilon_share": 0.1,
        "relation": "replace-one",
    } | changes
    kept = {} if folder is None else {"ledger": ledger_at(folder), "vault": folder / "vault"}
    return kept | given


def labeler_of(**given):
    own = {name: given.pop(name) for name in Universal.model_fields if name in given}
    return sb.Labeler(Universal(**own), **{"hypotheses": Thresholds(), "teacher": Cut(), **given})


def fit_of(given, **call):
    call = {"X": X, "y": Y, "classes": NAMES, **of_fit(given), **call}
    return labeler_of(**given).fit(**call)


def fitted(folder=None, **changes):
    return fit_of(settings(folder, **changes))


def drawn_by(labeler):
    session = labeler.session_
    return session.split, session.first.used, session.first.left, session.endless.hypothesis


def true_label(points):
    return np.where(points[:, 0] > 0.4, "yes", "no")


@pytest.mark.parametrize(("epsilon", "share"), [(1 / 3, 0.123456789), (17.0, 0.9), (1e-3, 0.9)])
def test_the_parts_add_up_to_what_was_asked_and_a_ledger_admits_them(epsilon, share):
    split = _BudgetSplit.of(PrivacyBudget(epsilon, 1e-6), share, 10)
    total = Fraction(repr(split.first_epsilon)) + Fraction(repr(split.endless_epsilon))
    assert total <= Fraction(repr(epsilon))
    assert float(total) == pytest.approx(epsilon, rel=1e-12)
    assert split.endless_epsilon == pytest.approx(share * epsilon, rel=5e-3)


def test_it_answers_without_end_and_pays_before_the_first_question(tmp_path):
    labeler = fitted(tmp_path)
    first = labeler.session_.first
    with pytest.raises(TypeError, match="refuse"):
        pickle.dumps(labeler)
    assert "records=<private>" in repr(labeler.session_._table)
    assert (labeler.left, first.used, first.left) == (math.inf, 0, 30)
    with pytest.raises(AttributeError, match="there is no student"):
        _ = labeler.student_
    answer = labeler.ask(QUESTIONS[0])
    assert (answer.label, answer.left) == ("no", math.inf)
    assert labeler.ask(QUESTIONS[0]).label == answer.label
    assert (first.used, first.left) == (1, 29)
    answers = labeler.ask_many(QUESTIONS)
    assert answers.answered.all()
    assert (answers.labels == true_label(QUESTIONS)).all()
    assert labeler.session_._table is None  # records are held until the switch alone
    many = np.random.default_rng(1).random((50_000, 1))
    assert (labeler.ask_many(many).labels == true_label(many)).mean() > 0.8
    assert labeler.student_.predict([[0.9]]).tolist() == ["yes"]
    assert (first.used, first.left, labeler.left) == (30, 0, math.inf)
    ledger = ledger_at(tmp_path)
    assert (ledger.spent().epsilon, len(ledger.history())) == (1.0, 2)


def test_what_the_first_part_said_stays_and_the_rest_is_said_in_the_end():
    labeler = fitted()
    doubtful = np.array([[0.4], [0.4001]])  # teachers are as likely to say one as the other
    first = [labeler.ask(point) for point in (QUESTIONS[0], doubtful[0], QUESTIONS[29])]
    assert [answer.label for answer in first] == ["no", None, "yes"]
    second = labeler.ask(doubtful[1])  # the last abstention: the switch comes 26 questions early
    assert (*second.answered, labeler.session_.first.left) == (True, 0)
    again = labeler.ask_many(np.concatenate([QUESTIONS[[0]], doubtful, QUESTIONS[[29]]]))
    assert again.answered.all()
    assert again.answered.all()
    assert labeler.session_.endless is not None
    assert labeler.session_.endless.n_candidates == 4 + 1


def test_where_records_come_and_go_their_number_stays_private():
    labeler = fitted(relation="add-remove")
    answers = labeler.ask_many(QUESTIONS)
    assert answers.answered.all()
    assert (answers.labels == true_label(QUESTIONS)).all()
    certificates = [part.certificate for part in labeler.released(QUESTIONS)]
    assert all(sb.verify_certificate(one).ok for one in certificates)
    assert certificates[1]["mechanism"]["kind"] == "exponential-choice"
    told = json.dumps(certificates)
    # as a word: digests hold any digits
    assert not any(re.search(rf"\b{number}\b", told) for number in (N, f"{N:,}"))


def test_a_sample_of_the_points_gives_fewer_candidates():
    rng = np.random.default_rng(3)
    points, questions = rng.random((4000, 2)), rng.random((400, 2))
    labels, truth = (np.where(one[:, 0] > 0.5, "yes", "no") for one in (points, questions))
    own = settings(n_first=40, n_cover=12, max_abstentions=1, n_teachers=300)
    labeler = labeler_of(hypotheses=DecisionStumps(2), **own)
    labels_of, n = np.full(len(questions), None, dtype=object), len(questions)
    first = Mock(left=0, stored=lambda X: Mock(labels=labels_of, answered=np.zeros(n, dtype=bool)))
    # plenty of records for a sample that is small enough to relabel
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sb.Labeler, "_session", lambda *_: first)
        labeler.fit(points, labels, classes=NAMES)
    labeler.session_.switch(questions[:40])
    endless = labeler.session_.endless
    assert endless is not None
    assert endless.n_candidates <= 2 * (1 + 11 + 11)
    assert len(endless.points) == 40
    assert (labeler.ask_many(questions).labels == truth).mean() > 0.7


def test_each_part_has_a_certificate_that_tells_of_the_other_and_they_add_up():
    labeler = fitted(purpose="triage")
    labeler.ask_many(QUESTIONS[:10])
    assert len(labeler.released(QUESTIONS)) == 1
    labeler.ask_many(QUESTIONS)
    first, endless = labeler.released(QUESTIONS)
    certificates = first.certificate, endless.certificate
    assert len(first.queries) == 30
    assert endless.label_values.tolist() == labeler.student_.predict(QUESTIONS).tolist()
    assert all(sb.verify_certificate(one).ok for one in certificates)
    assert sum(one["epsilon"] for one in certificates) == 1.0
    assert [one["delta"] for one in certificates] == [1e-6, 0.0]
    assert str(labeler.session_.split) in certificates[0]["assumptions"][-1]
    told = certificates[1]["public"]["universal"]
    assert told == {**asdict(labeler.session_.split), "part": "endless"}
    assert {one["purpose"] for one in certificates} == {"triage"}
    # just after each was reserved
    after = [one["composition"]["spent_after"]["epsilon"] for one in certificates]
    assert after == [0.9, 1.0]


def test_it_goes_on_after_a_restart_before_the_switch_and_after_it(tmp_path):
    first = fitted(tmp_path)
    said = first.ask_many(QUESTIONS[:12]).labels.tolist()
    second = fitted(tmp_path)
    assert (second.session_.first.used, second.session_.first.left) == (12, 18)
    assert second.ask_many(QUESTIONS[:12]).labels.tolist() == said
    answers = second.ask_many(QUESTIONS).labels.tolist()
    assert second.session_.first.left == 0
    for labeler in (fitted(tmp_path), first):
        assert labeler.ask_many(QUESTIONS).labels.tolist() == answers
        assert drawn_by(labeler) == drawn_by(second)
    assert (ledger_at(tmp_path).spent().epsilon, len(ledger_at(tmp_path).history())) == (1.0, 2)


def test_a_rule_for_ever_is_not_drawn_while_answered_points_are_unknown(tmp_path):
    fitted(tmp_path).ask_many(QUESTIONS[:12])
    again = fitted(tmp_path)
    with pytest.raises(sb.DataError, match=r"^12 of 30 questions .* ask them again, for nothing"):
        again.ask_many(QUESTIONS[12:30])
    assert (again.ask_many(QUESTIONS[:12]).labels == true_label(QUESTIONS[:12])).all()
    assert (
        again.session_.endless.points == np.concatenate([QUESTIONS[12:30], QUESTIONS[:12]])
    ).all()


def test_the_vault_holds_no_record(tmp_path):
    fitted(tmp_path).ask(QUESTIONS[0])
    # teachers keep what they learnt, which is no record of its own
    for path in (tmp_path / "vault").rglob("*"):
        assert path.is_dir() or X[:20].tobytes() not in path.read_bytes()


def choice_in(ledger):
    with ledger.reading(ledger.entry("universal/endless").id) as page:
        return list(page.parts())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("committed", [False, True])
def test_killed_at_the_switch_it_neither_pays_twice_nor_answers_unpaid(tmp_path, committed):
    fitted(tmp_path)
    owner = AnswerStream if committed else ExponentialChoice
    name = "close" if committed else "draw"
    real = getattr(owner, name)

    def die(*given, **named):
        if not committed:
            real(*given, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            setattr(owner, name, die)
            fitted(tmp_path).ask_many(QUESTIONS)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    ledger = ledger_at(tmp_path)
    drawn = choice_in(ledger)
    assert bool(drawn) == committed
    labeler = fitted(tmp_path)
    assert (labeler.session_.first.used, labeler.session_.first.left) == (30, 0)
    labeler.ask_many(QUESTIONS[:30])  # again, to be among the points that the rule is chosen by
    assert (labeler.ask_many(QUESTIONS[30:]).labels == true_label(QUESTIONS[30:])).all()
    assert labeler.session_.endless is not None
    assert (labeler.session_.endless.points == QUESTIONS[:30]).all()
    assert drawn in ([], choice_in(ledger))
    assert (ledger.spent().epsilon, len(ledger.history())) == (1.0, 2)


def test_of_two_processes_that_switch_one_draws(tmp_path):
    one = fitted(tmp_path)
    other = fitted(tmp_path)
    real = _UniversalSession.switch

    def overtaken(self, points):
        if self is one.session_:
            other.ask_many(QUESTIONS)
        real(self, points)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_UniversalSession, "switch", overtaken)
        one.ask_many(QUESTIONS)
    assert drawn_by(one) == drawn_by(other)
    assert len(ledger_at(tmp_path).history()) == 2


def test_a_second_part_that_was_not_reserved_in_time_is_reserved_by_the_next_start(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labeler_module, "_UniversalSession", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            fitted(tmp_path)
    assert len(ledger_at(tmp_path).history()) == 1
    labeler = fitted(tmp_path)
    assert len(ledger_at(tmp_path).history()) == 2
    assert labeler.ask_many(QUESTIONS).answered.all()


@pytest.mark.parametrize(
    ("changes", "call", "words"),
    [
        ({"epsilon_share": math.nan}, {}, "epsilon_share"),
        ({"n_first": 0}, {}, "n_first"),
        ({}, {"classes": ["a", "b", "c"]}, "classes has 3"),
        ({}, {"X_public": np.ones((5, 2))}, "columns"),
        ({"n_queries": 40}, {}, "n_queries"),
    ],
)
def test_nonsense_is_refused_in_a_sentence_and_nothing_is_spent(tmp_path, changes, call, words):
    ledger = ledger_at(tmp_path, PrivacyBudget(99.0, 1e-3))
    given = {"ledger": ledger, "vault": tmp_path / "vault", **settings(), **changes}
    with pytest.raises((sb.ParameterError, sb.DataError), match=words) as refusal:
        fit_of(given, **call)
    assert str(refusal.value).rstrip().endswith(".")
    assert ledger.history() == []


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"budget": PrivacyBudget(0.99, 1e-6)}, r"cost epsilon 1 and delta 1e-06; .*Nothing was"),
        ({"budget": PrivacyBudget(1.0, 9e-7)}, r"cost epsilon 1 and delta 1e-06; .*Nothing was"),
        ({"relation": "add-remove"}, "replace-one"),
        ({"composition": "renyi"}, "add two prices up"),
    ],
)
def test_a_ledger_that_does_not_take_both_parts_takes_neither(terms, words):
    about = {"budget": PrivacyBudget(9.0, 1e-3), "relation": "replace-one"} | terms
    ledger = Ledger.in_memory(dataset="registry", **about)
    with pytest.raises((sb.ParameterError, sb.LedgerError, sb.BudgetError), match=words):
        fitted(ledger=ledger)
    assert ledger.history() == []


def test_a_plan_goes_on_only_with_the_settings_and_the_data_it_began_with(tmp_path):
    fitted(tmp_path).ask_many(QUESTIONS)
    history = len(ledger_at(tmp_path).history())
    # by the number that was drawn another order of the classes would name another function
    with pytest.raises((sb.ParameterError, sb.DataError)):
        fit_of(settings(tmp_path), classes=NAMES[::-1])
    for changes in ({"epsilon_share": 0.2}, {"random_state": 1}, {"hypotheses": Intervals()}):
        with pytest.raises(sb.DataError, match="other settings"):
            fitted(tmp_path, **changes)
    with pytest.raises(sb.DataError, match="other data"):
        fit_of(settings(tmp_path), X=X[::-1])
    assert len(ledger_at(tmp_path).history()) == history
