"""Labelers: what they answer, what they cost, what they keep, what they refuse, and what a
stranger can check."""

import json
import math
import os
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

import secretballot as sb
from made_events import sparse_event
from secretballot.accounting import PrivacyBudget, Sampled, noisy_votes, sparse_vector
from secretballot.accounting.recipes import answer_chance, bassily_noise, stream_mechanism
from secretballot.core.mechanisms import NoisyVotes, RelabelledSample
from secretballot.exceptions import BudgetError, DataError, LedgerError, ParameterError
from secretballot.hypotheses import DecisionStumps, FiniteClass, Thresholds
from secretballot.learners import labelers
from secretballot.learners.labelers import (
    Agnostic,
    Stability,
    _abstentions_for,
    _printed_abstentions,
    _printed_teachers,
    _PublicNumbers,
    _teachers_for,
)
from secretballot.learners.session import reservation_folder
from secretballot.report.certificate import certificate_digest
from secretballot.students import HypothesisStudent
from sessions import of_fit

BUDGET = PrivacyBudget(4.0, 1e-5)  # so that a few thousand records are enough
ROOMY = PrivacyBudget(8.0, 2e-5)
RNG = np.random.default_rng(3)
X = RNG.random((3000, 1))
Y = np.where((X[:, 0] > 0.4) ^ (RNG.random(3000) < 0.2), "yes", "no")
CLASSES = ["no", "yes"]


def labeler(**changes):
    given = {**BUDGET.to_json(), "n_queries": 40, "n_teachers": 100}
    given |= {"relation": "replace-one", "hypotheses": Thresholds(), **changes}
    settings = {name: given.pop(name) for name in Agnostic.model_fields if name in given}
    return sb.Labeler(Agnostic(**{"max_abstentions": 1, **settings}), **given)


def fitted_at(place, ledger=None, request="agnostic", **more):
    work = {"vault": place / "vault", "request": request, **of_fit(more)}
    return labeler(ledger=ledger, **more).fit(X, Y, classes=CLASSES, **work)


def ledger_at(path, relation="replace-one", budget=BUDGET):
    return sb.Ledger(
        path / "account.sqlite", dataset="D", budget=budget, unit="record", relation=relation
    )


@pytest.fixture(scope="module")
def fitted():
    found = labeler().fit(X, Y, classes=CLASSES)
    found.ask_many([[0.05], [0.1], [0.9]])
    return found


def test_noisy_labels_are_answered_as_the_best_threshold_would(fitted):
    answers = fitted.ask_many([[0.05], [0.1], [0.9]])
    assert answers.labels.tolist() == ["no", "no", "yes"]
    assert (fitted.session_.planned, fitted.session_.used, fitted.left) == (40, 3, 37)
    assert fitted.ask([0.9]).label == "yes"  # a repeated point has its stored answer
    assert fitted.session_.used == 3
    assert fitted.session_.n_teachers == 100
    assert fitted.session_.terms["stream"]["max_abstentions"] == 1


def test_every_teacher_learns_from_its_place_in_the_random_order(monkeypatch):
    seen = {}

    class Spy(HypothesisStudent):
        def fit(self, X, y, sample_weight=None):
            if (np.asarray(X) >= 10).all():  # not the trial fit
                seen[len(seen)] = np.asarray(X)[:, 0].tolist()
            return super().fit(X, y)

    def relabelled(points, labels, _, relabel_epsilon):
        return np.arange(len(labels)) // 4 % 2

    rows = np.random.default_rng(0).permutation(40)
    monkeypatch.setattr(labelers, "_sample_in_random_order", lambda n, m: rows[:m])
    monkeypatch.setattr(labelers, "relabel", relabelled)
    points = np.arange(10.0, 50.0)[:, None]
    found = labeler(teacher=Spy(Thresholds()), epsilon=30.0, delta=0.02, n_teachers=4)
    found.fit(points, [0, 1] * 20, classes=[0, 1])
    sampled = found.session_._teachers.sample.sampled
    assert seen == {k: (10.0 + rows[:sampled][k::4]).tolist() for k in range(4)}


def test_hypotheses_take_frames_of_numbers_and_answer_to_them():
    frame = pd.DataFrame({"value": X[:, 0]})
    found = labeler().fit(frame, Y, classes=CLASSES)
    assert found.ask_many(pd.DataFrame({"value": [0.05, 0.9]})).labels.tolist() == ["no", "yes"]
    assert found.ask([0.9]).label == "yes"
    assert found.session_.used == 2


def test_an_empty_sample_is_no_error(monkeypatch):
    monkeypatch.setattr(
        labelers, "_sample_independently", lambda n, sampled, out_of: np.empty(0, dtype=np.int64)
    )
    found = labeler(relation="add-remove").fit(X, Y, classes=CLASSES)
    assert found.ask([0.3]).label in (None, *CLASSES)


def test_a_stranger_can_check_the_certificate_and_the_stream_alone_prices_no_sample(fitted):
    certificate = dict(fitted.released([[0.05], [0.1], [0.9]]).certificate)
    assert sb.verify_certificate(json.loads(json.dumps(certificate))).ok
    assert certificate["mechanism"]["kind"] == "relabelled-sample"
    assert certificate["price"]["method"] == "pure"
    assert certificate["relation"] == "replace-one"
    assert "was not kept" in " ".join(certificate["assumptions"])
    assert "number of records" in " ".join(certificate["not_protected"])
    assert str(X[0, 0]) not in json.dumps(certificate)
    (event,) = certificate["events"]
    assert (event["kind"], event["stream"]["kind"]) == ("sampled", "sparse-stream")
    for alone in ({}, {"mechanism": certificate["mechanism"]["stream"]}):
        forged = {**certificate, "events": [event["stream"]], **alone}
        found = sb.verify_certificate({**forged, "digest": certificate_digest(forged)})
        assert not found.ok
    (failure,) = found.failures
    assert (failure.name, "secret sample" in failure.detail) == ("mechanism", True)


def test_a_plan_goes_on_after_a_restart_with_the_sample_it_began_with(tmp_path):
    assert fitted_at(tmp_path).session_._teachers.vault is None
    assert not (tmp_path / "vault").exists()  # without a lasting ledger no sample stays
    ledger = ledger_at(tmp_path, budget=ROOMY)
    first = fitted_at(tmp_path, ledger)
    serial = first.session_._teachers.serial
    assert first.ask([0.9]).label == "yes"
    again = fitted_at(tmp_path, ledger)
    assert again.session_._teachers.serial == serial
    assert (again.session_.used, again.left) == (1, 39)
    third = fitted_at(tmp_path, ledger)
    assert third.ask([0.05]).label == "no"
    assert again.session_.used == 2
    assert ledger.spent().epsilon == BUDGET.epsilon
    assert sb.verify_certificate(third.session_.close([[0.05], [0.9]]).certificate).ok
    with pytest.raises(LedgerError, match="closed"):
        third.session_.close([[0.05], [0.9]])


def test_another_name_is_another_sample_and_another_charge(tmp_path):
    ledger = ledger_at(tmp_path, budget=ROOMY)
    serials = {fitted_at(tmp_path, ledger, name).session_._teachers.serial for name in ("a", "b")}
    assert len(serials) == 2
    assert ledger.spent().epsilon == 2 * BUDGET.epsilon
    with pytest.raises(BudgetError):
        fitted_at(tmp_path, ledger, "c", progress=lambda done, of: pytest.fail("trained"))


def test_a_sample_serves_the_plan_it_was_drawn_for_and_no_other(tmp_path):
    roomy = PrivacyBudget(100.0, 1e-3)
    ledger = ledger_at(tmp_path, budget=roomy)
    found = fitted_at(tmp_path, ledger)
    kept, own = (
        sb.TrainedTeachers.load(reservation_folder(tmp_path / "vault", "agnostic")),
        found.session_._stream.released().mechanism,
    )
    spent = ledger.spent()
    others = sparse_vector(BUDGET, 40, max_abstentions=1), NoisyVotes(scale=100.0)
    for mechanism, words in (
        (own, r"drawn for one request"),
        *((one, "prices a secret sample, and nothing else") for one in others),
    ):
        with pytest.raises(ParameterError, match=words):
            sb.LabelingSession(kept, mechanism, ledger, BUDGET, n_queries=5, request="another")
    again = {"n_queries": 40, "request": "agnostic"}
    with pytest.raises(ParameterError, match="drawn for one reservation"):
        kept.vote(kept.points([[0.1]]))
    memory = sb.Ledger.in_memory(dataset="D", budget=roomy, relation="replace-one")
    elsewhere = sb.Ledger(tmp_path / "other", dataset="D", budget=roomy, relation="replace-one")
    for other in (memory, elsewhere):
        with pytest.raises(ParameterError, match="does not hold it"):
            sb.LabelingSession(kept, own, other, BUDGET, **again)
    assert ledger.spent() == spent
    assert memory.spent().epsilon == 0
    assert elsewhere.releases() == 0
    assert sb.LabelingSession(kept, own, ledger, BUDGET, **again).ask([0.9]).label == "yes"


def test_the_price_of_a_sample_is_not_had_for_teachers_of_all_records():
    ledger = sb.Ledger.in_memory(dataset="D", budget=BUDGET, relation="replace-one")
    numbers = _PublicNumbers(BUDGET, 40, 0.1, "replace-one", 3000, 100)
    event, _ = Agnostic(max_abstentions=1).terms(numbers)
    assert isinstance(event, Sampled)
    teachers = sb.train_teachers(
        "logistic", X, Y, classes=CLASSES, n_teachers=100, relation="replace-one"
    )
    counts = teachers.vote(teachers.points([[0.1], [0.9]]))
    mechanism = RelabelledSample(stream=stream_mechanism(event.stream, 100))
    sample = event.model_dump(include={"sampled", "out_of", "relabel_epsilon"})
    declared = {"relation": "replace-one", "sample": {**sample, "request": "r"}}
    with pytest.raises(ParameterError, match="prices a secret sample, and nothing else"):
        sb.LabelingSession(teachers, mechanism, ledger, BUDGET, n_queries=40)
    with pytest.raises(ParameterError, match="prices a secret sample, and nothing else"):
        sb.release(counts, mechanism, ledger, BUDGET, declaration={"relation": "replace-one"})
    with pytest.raises(ParameterError, match="secret sample"):
        sb.release(counts, noisy_votes(BUDGET, counts.shape), ledger, BUDGET, declaration=declared)
    assert ledger.spent().epsilon == 0


def test_the_vault_holds_no_row_numbers_and_is_closed_to_others(tmp_path, monkeypatch):
    drawn = []
    real = labelers._sample_in_random_order
    monkeypatch.setattr(
        labelers, "_sample_in_random_order", lambda n, m: drawn.append(real(n, m)) or drawn[-1]
    )
    fitted_at(tmp_path, ledger_at(tmp_path))
    sought = [rows.tobytes() for rows in (drawn[0][:8], np.sort(drawn[0])[:8], X[drawn[0]][:8])]
    for folder, _, files in os.walk(tmp_path / "vault"):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        for name in files:
            content = (Path(folder) / name).read_bytes()
            assert not any(part in content for part in sought)
    assert not list((tmp_path / "vault").rglob("record.ids"))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"n_teachers": 3001}, "every teacher needs a record"),
        ({"n_teachers": 3}, "answered with probability below 1%"),
        ({"epsilon": 4.0, "delta": 0.0}, "delta"),
        ({"calibration": "paper", "epsilon": 57.0, "delta": 1e-6}, "at most 56"),
        ({"calibration": "paper", "relation": "add-remove"}, "printed"),
        ({"hypotheses": DecisionStumps(2)}, "columns"),
        ({"X": np.zeros((3000, 2))}, "columns"),
        ({"classes": ["no", "perhaps"]}, "declared classes"),
        ({"X": np.where(X > 0.99, np.nan, X)}, "nan or infinity"),
        ({"X": X[:50], "y": Y[:50]}, "every teacher needs a record"),
    ],
)
def test_bad_settings_and_data_are_one_sentence_and_cost_nothing(changes, word):
    given = {"X": X, "y": Y, "classes": CLASSES} | changes
    data = {name: given.pop(name) for name in ("X", "y", "classes")}
    relation = changes.get("relation", "replace-one")
    ledger = sb.Ledger.in_memory(dataset="D", budget=ROOMY, unit="record", relation=relation)
    with pytest.raises((DataError, ParameterError), match=word) as caught:
        labeler(ledger=ledger, **given).fit(**data)
    assert "\n" not in str(caught.value)
    assert ledger.spent().epsilon == 0


def test_questions_of_another_dimension_are_refused_and_not_counted(fitted):
    used = fitted.session_.used
    for x in ([0.1, 0.2], []):
        with pytest.raises(DataError):
            fitted.ask(x)
    assert fitted.session_.used == used


class _ByCompany:
    """One record more may change what it says of all others."""

    def predict(self, X):
        return (X[:, 0] > X[:, 0].mean()).astype(int)


def test_estimators_that_answer_by_company_never_have_any():
    cut = Thresholds().erm(X, Y == "yes")
    family = FiniteClass([cut, _ByCompany()])
    assert not family.members[1].predict(X).any()
    assert labeler(hypotheses=family).fit(X, Y, classes=CLASSES).left == 40


class _OddBeyond:
    """Answers with a third class far out."""

    def __init__(self, far):
        self.far = far

    def predict(self, X):
        return np.where(X[:, 0] > self.far, 2, X[:, 0] > 0.4).astype(int)


@pytest.mark.parametrize("name", ["agnostic", "universal"])
def test_a_record_that_an_estimator_fails_on_stops_nothing_and_dummy_points_do(name):
    far = np.concatenate([X[:-1], [[99.0]]])
    ledger = sb.Ledger.in_memory(dataset="D", budget=BUDGET, relation="replace-one")

    def fit(beyond):
        given = {**BUDGET.to_json(), "n_teachers": 60, "relation": "replace-one", "ledger": ledger}
        family, algorithm = FiniteClass([_OddBeyond(beyond)]), f"{name}:max_abstentions=1"
        return sb.Labeler(algorithm, family, **given).fit(far, Y, classes=CLASSES)

    with pytest.raises(DataError, match="to every point"):
        fit(0.1)
    assert ledger.spent().epsilon == 0
    fit(50.0)
    assert ledger.spent().epsilon > 0


def test_the_number_of_abstentions_is_a_binomial_quantile():
    # errata: m = 2000, alpha = .1: printed 44.9, three times the mean 50, the quantile 96
    for error, beta, k in ((0.1 / 12, 0.05, 300), (0.02, 0.01, 1000)):
        errors = (_abstentions_for(2000, error, beta, k) - 1) / 3
        assert binom.sf(errors, 2000, error) <= beta / k < binom.sf(errors - 1, 2000, error)
    assert 90 <= _abstentions_for(2000, 0.1 / 12, 0.05, 300) <= 103
    assert _abstentions_for(10, 0.9, 0.05, 10) == 10
    # the printed Chernoff term is too small where .05 / 20 is promised to each of 20 teachers
    printed = 1000 * 0.05 + math.sqrt(1000 * 0.05 * math.log(1000 / 0.05) / 2)
    ours = (_abstentions_for(1000, 0.05, 0.05, 20) - 1) // 3
    assert binom.sf(ours, 1000, 0.05) <= 0.05 / 20 < binom.sf(math.floor(printed), 1000, 0.05)


def test_so_many_teachers_answer_a_lead_of_a_third():
    stream = sparse_event(3.0, 4.0, 40, 2)
    k = _teachers_for(stream, 100, 0.05)
    drawn = stream_mechanism(stream, k)
    assert 1 - answer_chance(drawn, math.ceil(k / 3 / 2) - 1) <= 0.05 / 100
    assert 1 - answer_chance(drawn, math.ceil((k - 12) / 3 / 2) - 1) > 0.05 / 100


def test_printed_constants_are_those_of_the_papers():
    budget, m, alpha, beta = PrivacyBudget(0.8, 1e-6), 100, 0.05, 0.1
    numbers = _PublicNumbers(budget, m, alpha, "replace-one", 70_000)
    printed, needed = Agnostic(calibration="paper", beta=beta).terms(numbers)
    unstable, inside = math.ceil(5 / 8 + math.sqrt(15 * math.log(1000)) / 4), 0.05 * math.sqrt(5)
    inner = PrivacyBudget(inside / math.log(2e6), 1e-6 / (2 * math.exp(inside) * math.log(2e6)))
    assert (printed.sampled, printed.stream) == (1000, bassily_noise(inner, m, unstable))
    assert needed == _printed_teachers(inner, m, unstable, beta)
    assert _printed_abstentions(1000, 0.05, 0.1) == math.ceil(
        3 * (50 + math.sqrt(50 * math.log(1e4) / 2))
    )
    scale = math.sqrt(32 * 4 * math.log(2e6)) / 0.8
    assert _printed_teachers(budget, m, 4, beta) == math.ceil(
        34 * math.sqrt(2) * scale * math.log(4 * m * 4 / 1e-6)
    )


def test_the_stability_labeler_answers_with_any_learner(tmp_path):
    points = np.random.default_rng(5).normal(size=(4000, 2))
    y = points @ [1.0, -1.0] > 0
    settings = {**BUDGET.to_json(), "n_queries": 30, "ledger": ledger_at(tmp_path, "add-remove")}
    algorithm = Stability(max_abstentions=1)
    found = sb.Labeler(algorithm, teacher=LogisticRegression(), **settings)
    found.fit(points, y, classes=[False, True], vault=tmp_path / "vault")
    assert found.ask_many([[3.0, -3.0], [-3.0, 3.0]]).labels.tolist() == [True, False]
    again = sb.Labeler(algorithm, teacher=LogisticRegression(), **settings)
    again.fit(points, y, classes=[False, True], vault=tmp_path / "vault")
    assert again.session_.used == 2
    certificate = again.released([[3.0, -3.0], [-3.0, 3.0]]).certificate
    assert sb.verify_certificate(certificate).ok
    assert certificate["mechanism"]["kind"] == "sparse-vector"


def test_the_stability_labeler_takes_its_numbers_from_public_ones():
    numbers = _PublicNumbers(BUDGET, 30, 0.02, "add-remove")
    tight = Stability().terms(numbers)
    printed = Stability(calibration="paper").terms(numbers)
    needed = _abstentions_for(30, 0.02, 0.05, tight[1])
    assert tight[0].abstentions >= needed
    assert tight[1] == _teachers_for(tight[0], 30, 0.05)
    assert printed[0] == bassily_noise(BUDGET, 30, _printed_abstentions(30, 0.02, 0.05))
    assert printed[1] > 10 * tight[1]
