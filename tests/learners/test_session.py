"""A labelling session: one point at a time under one plan, for ever the same answers, across
restarts and crowds."""

import pickle
import shutil
import stat

import numpy as np
import pytest
from scipy import sparse

import secretballot as sb
from secretballot.core.mechanisms import NoisyVotes
from secretballot.learners.inputs import question_digests
from sessions import session as begun_session
from sessions import sparse as sparse_vector

K = 40
ACCOUNT = sb.PrivacyBudget(1000.0, 0.5)
LABELS = NoisyVotes(scale=9.0)
COUNTS = NoisyVotes(scale=9.0, release="counts")
SPARSE = sparse_vector(0.3, 8, 2)
PLANS = pytest.mark.parametrize(
    "plan", [LABELS, COUNTS, SPARSE], ids=["labels", "counts", "sparse"]
)


def data(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] > 0).astype(int)


POINTS = data(30, 1)[0] + np.array([[2.0, 0.0]])  # most are far inside class "yes"


@pytest.fixture(scope="module")
def vaulted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    X, y = data(1200, 0)
    labels, names = np.array(["no", "yes"])[y], ["no", "yes"]
    vault = folder / "vault"
    sb.train_teachers("logistic", X, labels, classes=names, n_teachers=K, vault=vault)
    return vault


@pytest.fixture
def vault(vaulted, tmp_path):
    shutil.copytree(vaulted, tmp_path / "vault")
    return tmp_path / "vault"


@pytest.fixture
def ledger(tmp_path):
    return sb.Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=ACCOUNT)


def begun(vault, plan, ledger, request="session", delta=1e-6):
    teachers = sb.TrainedTeachers.load(vault)
    return begun_session(teachers, plan, ledger, 8, delta=delta, request=request)


@PLANS
def test_answers_are_labels_with_what_is_left_and_are_certified(vault, ledger, plan):
    session = begun(vault, plan, ledger)
    assert (session.planned, session.used, session.left) == (8, 0, 8)
    first = session.ask(POINTS[7])
    assert first.label in ("no", "yes", None)
    assert (first.noisy_counts is not None) == (plan is COUNTS)
    assert first.left == 7
    many = session.ask_many(POINTS[[7, 3, 7, 5]])
    assert many.labels[0] == first.label
    assert many.answered.tolist() == [label is not None for label in many.labels]
    assert (session.used, session.left) == (3, 5)
    assert ledger.spent().epsilon == session.price.epsilon
    released = session.released(POINTS)
    assert released.queries.tolist() == [7, 3, 5]
    said = [None if label < 0 else ["no", "yes"][label] for label in released.labels]
    assert said == many.labels[[0, 1, 3]].tolist()
    certificate = released.certificate
    assert sb.verify_certificate(certificate).ok
    assert certificate["epsilon"] == session.price.epsilon
    assert [certificate["plan"][name] for name in ("planned", "used", "left")] == [8, 3, "kept"]
    with pytest.raises(sb.DataError, match="1 of the 3 answers"):
        session.released(POINTS[:7])


def test_a_repeated_point_costs_nothing_in_any_form(vault, ledger):
    session = begun(vault, COUNTS, ledger)
    point = np.array([2.0, 0.0])
    first = session.ask(point)
    arrays = point.astype(np.float32), point.astype(np.int8), point[None], [[2.0, 0.0]]
    thin = sparse.csr_matrix(([2.0, -0.0], ([0, 0], [0, 1])), (1, 2))
    for same in ([2, 0], [2.0, -0.0], *arrays, sparse.csr_matrix([[2.0, 0.0]]), thin):
        again = session.ask(same)
        assert (again.label, *again.noisy_counts) == (first.label, *first.noisy_counts)
    assert session.ask_many(np.array([[2.0, 0.0]] * 5)).labels.tolist() == [first.label] * 5
    assert session.used == 1


def test_the_plan_ends_and_what_was_answered_stays(vault, ledger):
    session = begun(vault, LABELS, ledger)
    many = session.ask_many(POINTS[:12])
    assert many.given.tolist() == [True] * 8 + [False] * 4
    assert many.labels[8:].tolist() == [None] * 4
    assert many.left == 0
    with pytest.raises(sb.BudgetError, match="All 8 questions .* are spent"):  # noqa: RUF043
        session.ask(POINTS[9])
    assert session.ask(POINTS[3]).label == many.labels[3]
    assert session.ask_many(POINTS[6:10]).given.tolist() == [True, True, False, False]
    assert session.used == 8


def test_what_cannot_be_reopened_says_why(vault, ledger, tmp_path):
    begun(vault, LABELS, ledger).ask(POINTS[0])
    (tmp_path / "empty").mkdir()
    for place, name in ((vault, "other"), (tmp_path / "no", "session"), (tmp_path / "empty", "s")):
        with pytest.raises(sb.DataError, match="holds no session"):
            sb.LabelingSession.reopen(place, request=name)
    assert list((tmp_path / "empty").iterdir()) == []
    (about,) = (vault / "sessions").iterdir()
    kept = about.read_bytes()
    about.write_bytes(b"{}")
    with pytest.raises(sb.DataError, match="is damaged"):
        sb.LabelingSession.reopen(vault)
    about.write_bytes(kept)
    assert ledger.path is not None
    ledger.path.rename(tmp_path / "moved.sqlite")
    with pytest.raises(sb.LedgerError, match="There is no ledger"):
        sb.LabelingSession.reopen(vault)


def test_another_plan_under_the_same_name_is_refused(vault, ledger):
    begun(vault, LABELS, ledger).ask(POINTS[0])
    for plan in (NoisyVotes(scale=10.0), COUNTS, SPARSE):
        with pytest.raises(sb.ParameterError, match=r"other terms \(mechanism\)"):
            begun(vault, plan, ledger)
    assert len(ledger.history()) == 1
    assert begun(vault, LABELS, ledger).left == 7
    assert begun(vault, COUNTS, ledger, request="another").left == 8


def test_other_teachers_do_not_go_on_with_a_session(vault, ledger, tmp_path):
    begun(vault, LABELS, ledger).ask(POINTS[0])
    X, y = data(1200, 5)
    names = np.array(["no", "yes"])[y]
    for place in (tmp_path / "other", None):
        other = sb.train_teachers(
            "logistic", X, names, classes=["no", "yes"], n_teachers=K, vault=place
        )
        with pytest.raises(sb.ParameterError, match=r"other terms \(public\)"):
            begun_session(other, LABELS, ledger, 8)
    # teachers trained anew into the old vault's place
    (vault / "sessions").rename(tmp_path / "other" / "sessions")
    for again in (begun, lambda place, *_: sb.LabelingSession.reopen(place)):
        with pytest.raises(sb.ParameterError, match=r"other terms \(public\)"):
            again(tmp_path / "other", LABELS, ledger)
    assert len(ledger.history()) == 1


@pytest.mark.parametrize(("composition", "left"), [("renyi", "returned"), ("basic", "forfeited")])
def test_a_closed_session_answers_what_it_answered(vault, tmp_path, composition, left):
    terms = {"budget": sb.PrivacyBudget(9.0, 1e-4), "composition": composition}
    ledger = sb.Ledger(tmp_path / "l.sqlite", dataset="registry", **terms)
    session = begun(vault, LABELS, ledger)
    answers = session.ask_many(POINTS[:2])
    before = ledger.spent().epsilon
    released = session.close(POINTS)
    assert released.certificate["plan"]["left"] == left
    assert sb.verify_certificate(released.certificate).ok
    assert ledger.spent().epsilon == pytest.approx(before / 4 if left == "returned" else before)
    assert session.left == 0
    assert session.ask_many(POINTS[:3]).labels.tolist() == [*answers.labels, None]
    with pytest.raises(sb.BudgetError):
        session.ask(POINTS[5])
    with pytest.raises(sb.LedgerError, match="closed already"):
        session.close(POINTS)
    assert session.released(POINTS) == released
    # afterwards, too, and in another process: what became of the unused questions
    for one in (session, sb.LabelingSession.reopen(vault)):
        for told in (one.transcript(), one.released(POINTS)):
            assert told.certificate["plan"]["left"] == left
            assert sb.verify_certificate(told.certificate).ok
    assert begun(vault, LABELS, ledger).ask(POINTS[1]).label == answers.labels[1]


def test_what_is_no_point_or_would_be_answered_by_rule_is_refused_unpaid(vault, ledger):
    session = begun(vault, SPARSE, ledger)
    odd = "1 rows with missing or infinite values"
    for point, words in (
        *(([value, 0.0], odd) for value in (np.nan, np.inf, -np.inf)),
        ([10**400, 0.0], "cannot be read"),
        *((some, "ask one point") for some in (POINTS[:2], sparse.csr_matrix(POINTS[:2]))),
        (POINTS[:0], "ask one point"),
    ):
        with pytest.raises(sb.DataError, match=words):
            session.ask(point)
    assert session.used == 0
    session.ask(POINTS[0])
    with pytest.raises(TypeError):
        pickle.dumps(session)
    for path in vault.rglob("*"):  # a secret state among them
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_who_admits_questions_sees_what_is_new_and_decides_before_anything_is_drawn(
    vault, ledger, monkeypatch
):
    session = begun(vault, COUNTS, ledger)
    first = session.ask_many(POINTS[:1])
    seen = []

    def admit(new, left):
        seen.append((new.tolist(), left))
        return np.array([True, True, False, True])

    questions = question_digests(POINTS)
    found = session.answer(POINTS[:4], questions[:4], admit=admit)
    assert seen == [([False, True, True, True], 7)]
    assert found.given.tolist() == [True, True, False, True]
    assert (session.used, found.left, found.labels[0]) == (3, 5, first.labels[0])
    stored = session.stored(POINTS[:4])
    assert stored.given.tolist() == found.given.tolist()
    assert stored.labels.tolist() == found.labels.tolist()
    assert stored.noisy_counts is not None
    assert found.noisy_counts is not None
    assert stored.noisy_counts.tolist() == found.noisy_counts.tolist()
    # at the end nothing is raised, and nobody votes any more
    assert session.answer(POINTS[5:15], questions[5:15]).given.sum() == 5
    monkeypatch.delattr(sb.TrainedTeachers, "vote")
    assert not session.answer(POINTS[20:22], questions[20:22]).given.any()
    with pytest.raises(sb.BudgetError):
        session.ask(POINTS[20])
