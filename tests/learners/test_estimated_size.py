"""Plans set by a paid estimate: the promise holds for both steps together, and the plan fits
votes of known margin."""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegression

import secretballot as sb
from exact_games.distributions import discrete_gaussian_distribution
from exact_games.games import hockey_stick
from noisy_plans import calibrated, released
from secretballot.accounting import (
    WeakSignalWarning,
    calibrate_sparse_vector,
    recipes,
    teacher_shape,
)
from secretballot.accounting.calibration import quantile_slack
from secretballot.core.exponential import least_quotient
from secretballot.core.mechanisms import NoisyVotes, stability
from secretballot.core.streams import laplace_above
from secretballot.learners import pate_mechanisms as estimates
from secretballot.learners.pate_mechanisms import _BETA, EstimatedSize, _choose_label_queries
from secretballot.report.certificate import certificate_digest
from secretballot.report.certificate_models import stated, total_price
from sessions import of_fit

BUDGET = sb.PrivacyBudget(1.0, 1e-6)
SPARSE = functools.cache(calibrate_sparse_vector)
# noise may leave a fit here with too little to plan by, now and then
pytestmark = pytest.mark.filterwarnings("ignore::secretballot.accounting.WeakSignalWarning")


def _plan(n_teachers=250, n_points=500, **settings):
    given = {"epsilon": 0.1, "budget": BUDGET, "mechanism": "labels"}
    return EstimatedSize(pool=teacher_shape(n_points, 2, n_teachers), **{**given, **settings})


@pytest.fixture(autouse=True)
def calibrated_once(monkeypatch):
    """Calibrate each noise once for all tests."""
    for module in (estimates, recipes):
        monkeypatch.setattr(module, "calibrate_sparse_vector", SPARSE)


K, POINTS = 8, 2
TINY = _plan(K, POINTS, epsilon=2.0, budget=sb.PrivacyBudget(4.0, 0.02))
SEEN = np.arange(-12, 17)


@functools.cache
def sizes():
    """Return how much is asked after each number that may be seen."""
    return [TINY.size_by(int(q)) for q in SEEN]


def _joint_law(ones, paying):
    """Return the law of (released number, labels) for votes `ones` for class 1 at two points,
    shape (29, 4); the labels are those that a plan pays for."""
    distances = np.sort(stability(np.column_stack([K - np.array(ones), ones])))
    middle = distances[math.floor(estimates._FRACTIONS[TINY.mechanism] * len(distances))]
    scale = least_quotient(1, TINY.epsilon)
    seen = math.tanh(0.5 / scale) * np.exp(-np.abs(SEEN - middle) / scale)
    of_size = {}
    for size in (1, 2):
        noise = discrete_gaussian_distribution(paying.terms(size).mechanism.scale)
        right = noise.at_least(math.ceil(K / 2) - np.array(ones))
        sides = np.column_stack([1 - right, right])
        of_size[size] = np.outer(sides[1] if size == 2 else [1, 0], sides[0]).ravel()
    return np.array([of_size[size] for size in sizes()]) * seen[:, None]


def _worst_delta(paying):
    tables = list(itertools.product(range(K + 1), repeat=POINTS))
    laws = {table: _joint_law(table, paying).ravel() for table in tables}
    return max(
        hockey_stick(laws[one], laws[other], TINY.budget.epsilon)
        for one, other in itertools.permutations(tables, 2)
        if np.abs(np.subtract(one, other)).max() <= 1
    )


def test_estimate_and_answers_keep_the_promise_on_all_neighbouring_votes():
    assert set(sizes()) == {1, 2}  # the number has a say, so that this is no idle test
    assert 0 < _worst_delta(TINY) <= TINY.budget.delta
    # where nobody paid for the number, the answers take the whole budget, and both are more
    unpaid = _plan(K, POINTS, epsilon=2.0, budget=sb.PrivacyBudget(6.0, 0.02))
    assert unpaid.rest.epsilon == TINY.budget.epsilon
    assert _worst_delta(unpaid) > TINY.budget.delta


@pytest.mark.parametrize("epsilon", [0.02, 0.3, 2.0])
def test_the_slack_is_the_least_that_the_noise_exceeds_rarely(epsilon):
    plan = _plan(epsilon=epsilon, budget=sb.PrivacyBudget(3.0, 1e-6))
    scale, slack = least_quotient(1, epsilon), plan._noise_slack
    assert laplace_above(slack, scale) <= _BETA
    assert slack == 0 or laplace_above(slack - 1, scale) > _BETA


def test_the_number_of_labels_fits_votes_of_known_margin():
    """A median vote comes out right 19 times in 20, and the plan is not much smaller than the
    margin allows."""
    k, n, share = 250, 120, 0.7
    plan, margin = _plan(k, n, epsilon=0.2), 2 * int(share * k / 2)
    # just over half have the margin, the rest tie
    ones = np.where(np.arange(n) < 0.48 * n, k // 2, (k + margin) // 2)
    counts = sb.votes_of_counts(np.column_stack([k - ones, ones]))
    ledger = sb.Ledger.in_memory(dataset="d", budget=sb.PrivacyBudget(100.0, 0.1))
    found = np.sort([plan.pay(lambda: counts, ledger, None).values.item() for _ in range(40)])
    most, typical = plan.size_by(int(found[-12])), plan.size_by(int(found[20]))
    exact = _choose_label_queries(plan.rest, plan.pool, margin)
    assert most <= exact  # 1 in 20 may plan for more; 12 of 40 would be a chance of 1e-6
    # the slack, and the noise of the median number, in shares of the margin
    lost = 2 * (plan._noise_slack + 4) / margin
    # queries go with the square of the margin
    assert typical >= min(n, 0.9 * exact * (1 - lost) ** 2)
    assert ndtr(margin / (2 * plan.terms(typical).mechanism.scale)) >= 0.949


@pytest.mark.parametrize("number", [-5, 23])
def test_too_much_noise_shows_nothing_and_says_so(number):
    plan = _plan()
    with pytest.warns(
        WeakSignalWarning, match=f"is {number} votes of 250 teachers.* a margin of 0.6 K is assumed"
    ):
        assert plan.size_by(number) == _choose_label_queries(plan.rest, plan.pool)
    with pytest.warns(WeakSignalWarning, match="one abstention"):
        assert _plan(mechanism="sparse-vector").size_by(number) == 1


@pytest.mark.parametrize("mechanism", ["labels", "sparse-vector"])
def test_an_estimate_that_could_show_nothing_is_refused_before_it_is_bought(mechanism):
    enough = {"labels": 600, "sparse-vector": 2000}[mechanism]
    _plan(mechanism=mechanism, n_teachers=enough).check_reach()
    with pytest.raises(sb.ParameterError, match="so it could show nothing"):
        _plan(mechanism=mechanism, n_teachers=40).check_reach()


def test_the_number_of_abstentions_is_the_largest_whose_threshold_is_shown_to_be_passed():
    plan = _plan(1200, 100, mechanism="sparse-vector")

    def needs(unstable):
        event = SPARSE(plan.rest, unstable)
        return event.threshold + sum(quantile_slack(0.1, event, 100, _BETA))

    for number in (needs(2), needs(2) + 1, needs(4) + 1):
        found = plan.size_by(number)
        assert found < 11
        assert needs(found) < number <= needs(found + 1)
    assert plan.size_by(599) <= 11  # the whole pool can need no more


def test_estimate_and_rest_are_never_more_than_the_budget():
    for whole, part in ((0.7, 0.1), (3.3, 1.1)):
        budget = sb.PrivacyBudget(whole, 1e-6)
        rest = _plan(epsilon=part, budget=budget).rest
        assert rest.epsilon == pytest.approx(whole - part, rel=1e-12)
        ledger = sb.Ledger.in_memory(dataset="d", budget=budget)
        counts = sb.votes_of_counts(np.tile([200, 50], (5, 1)))
        sb.estimate_stability(counts, ledger, fraction=0.5, epsilon=part)
        released(counts, calibrated(rest, 5, n_teachers=250), ledger)


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(3)
    X, P = rng.normal(size=(1800, 3)), rng.normal(size=(60, 3))
    return {"X": X, "y": (X[:, 0] > 0).astype(int), "P": P}


def _fit(task, **settings):
    given = {
        "n_teachers": 150,
        **BUDGET.to_json(),
        "random_state": 0,
        "mechanism": "labels",
        "n_queries": "estimate:epsilon=0.1",
    }
    public = {"X_public": task["P"], "classes": [0, 1], **of_fit(settings)}
    return sb.PATEClassifier(**{**given, **settings}).fit(task["X"], task["y"], **public)


STREAM = {"mechanism": "sparse-vector", "student": LogisticRegression()}


@pytest.mark.parametrize(
    "settings", [{}, {**STREAM, "n_teachers": 400}], ids=["labels", "sparse vector"]
)
def test_a_fit_states_its_estimate_and_the_whole_is_the_budget(task, settings):
    certificate = _fit(task, **settings).certificate_
    assert sb.verify_certificate(certificate).ok
    assert total_price(certificate) == pytest.approx((1.0, 1e-6), rel=1e-12)
    (estimate,) = certificate["choices"]
    assert (estimate["epsilon"], estimate["delta"], certificate["epsilon"]) == (0.1, 0.0, 0.9)
    assert certificate["composition"]["spent_after"] == {"epsilon": 1.0, "delta": 1e-6}
    terms = stated(certificate)
    gaussian = terms["kind"] == "noisy-votes"
    name = "labels" if gaussian else terms["kind"]
    plan = _plan(settings.get("n_teachers", 150), 60, mechanism=name)
    size = "n_queries" if gaussian else "max_abstentions"
    assert terms[size] == plan.size_by(estimate["value"])
    for change in ({"choices": []}, {"choices": [estimate | {"epsilon": 0.01}]}, {"epsilon": 0.8}):
        forged = certificate | change
        assert not sb.verify_certificate(forged | {"digest": certificate_digest(forged)}).ok


def test_an_interrupted_fit_pays_for_its_estimate_once(task, tmp_path, monkeypatch):
    ledger = sb.Ledger(tmp_path / "l.sqlite", dataset="d", budget=sb.PrivacyBudget(1.0, 1e-6))
    settings = {"ledger": ledger, "request": "fit", "vault": tmp_path / "vault"}

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    # after the number is out, before the labels are bought
    monkeypatch.setattr(EstimatedSize, "size_by", interrupt)
    with pytest.raises(KeyboardInterrupt):
        _fit(task, **settings)
    monkeypatch.undo()
    model = _fit(task, **settings)
    assert ledger.spent().epsilon == 1.0
    assert [entry.request for entry in ledger.history()] == ["fit/estimate", "fit"]

    again = _fit(task, progress=pytest.fail, **settings)
    assert again.released_ == model.released_
    for change in ({"epsilon": 2.0}, {"n_queries": "estimate:epsilon=0.2"}, {"n_teachers": 151}):
        with pytest.raises(sb.ParameterError, match="other terms"):
            _fit(task, progress=pytest.fail, **settings, **change)
    assert len(ledger.history()) == 2


def test_nothing_is_read_off_the_votes_before_it_is_paid_and_all_must_be_had(task, monkeypatch):
    poor = sb.Ledger.in_memory(dataset="d", budget=sb.PrivacyBudget(0.9, 1e-6))
    with pytest.raises(sb.BudgetError, match="Nothing was spent"):
        _fit(task, ledger=poor)
    assert poor.history() == []
    ledger = sb.Ledger.in_memory(dataset="d", budget=BUDGET)
    opened, original = [], sb.Votes._unseal

    def look(self):
        opened.append([entry.state for entry in ledger.history()])
        return original(self)

    monkeypatch.setattr(sb.Votes, "_unseal", look)
    _fit(task, ledger=ledger)
    assert opened == [["reserved"], ["committed", "reserved"]]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"mechanism": "sparse-vector:max_abstentions=3"}, "nothing else that sets it"),
        ({"mechanism": "vote-table"}, "use mechanism=.labels. or"),
        ({"mechanism": NoisyVotes(scale=50.0)}, "use mechanism=.labels. or"),
        ({"mechanism": "counts"}, "use mechanism=.labels. or"),
        ({"mechanism": "auto", "student": "auto"}, "use mechanism=.labels. or"),
        ({"strategy": "margin"}, "no strategy"),
        ({"n_queries": "estimate:epsilon=1.0"}, "leave something for answers"),
        ({"n_queries": "estimate:epsilon=nan"}, "positive"),
        ({**STREAM, "n_teachers": 20}, "even a unanimous vote"),
    ],
)
def test_bad_settings_are_refused_before_training_and_nothing_is_spent(task, settings, words):
    ledger = sb.Ledger.in_memory(dataset="d", budget=BUDGET)
    with pytest.raises(sb.ParameterError, match=words) as caught:
        _fit(task, ledger=ledger, progress=pytest.fail, **settings)
    assert ledger.history() == []
    assert "\n" not in str(caught.value)
