"""Every learner that trains teachers or adds up records takes an engine, and releases the same."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import secretballot as sb
from secretballot.exceptions import ParameterError, ResourceError

BUDGET = sb.PrivacyBudget(4.0, 1e-5)
RNG = np.random.default_rng(2)
X, X_PUBLIC = RNG.normal(size=(600, 2)), RNG.normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(int)
ONE, LINE = RNG.uniform(size=(20_000, 1)), np.linspace(0, 1, 30)[:, None]
THRESHOLDS = sb.hypotheses.Thresholds()


def pate(engine, **more):
    ledger = sb.Ledger.in_memory(dataset="D", budget=BUDGET, relation="replace-one")
    given = {**BUDGET.to_json(), "n_teachers": 20, "n_queries": 12, "ledger": ledger}
    given |= {"relation": "replace-one", "mechanism": "labels"}
    model = sb.PATEClassifier(DecisionTreeClassifier(), **given | more)
    where = {"executor": engine, "request": "one"}
    return model.fit(X, Y, X_public=X_PUBLIC, classes=[0, 1], **where)


def trained(engine):
    return sb.train_teachers("tree", X, Y, classes=[0, 1], n_teachers=20, executor=engine)


def agnostic(engine):
    terms = {**BUDGET.to_json(), "n_queries": 20, "n_teachers": 200, "relation": "replace-one"}
    labeler = sb.Labeler("agnostic:max_abstentions=1", THRESHOLDS, **terms)
    return labeler.fit(ONE, ONE[:, 0] > 0.5, classes=[False, True], executor=engine)


def universal(engine):
    own = "universal:n_first=1,n_cover=40,max_abstentions=1"
    labeler = sb.Labeler(own, THRESHOLDS, epsilon=1.0, delta=1e-6, n_teachers=100)
    return labeler.fit(ONE, ONE[:, 0] > 0.5, classes=[False, True], executor=engine)


def moments(engine, units=None, ledger=None):
    unit = "record" if units is None else "user"
    ledger = ledger or sb.Ledger.in_memory(dataset="D", budget=BUDGET, unit=unit)
    model = sb.RecordMomentsClassifier(**BUDGET.to_json(), ledger=ledger)
    where = {"executor": engine, "request": "one"}
    return model.fit(X, Y, X_public=X_PUBLIC, classes=[0, 1], units=units, **where)


def moments_of_users(engine):
    return moments(engine, np.arange(len(X)) % 97)


EVERY = (pate, moments, trained, agnostic, universal)


@pytest.mark.parametrize("fit", EVERY)
def test_the_engine_is_the_one_that_is_asked(fit):
    pytest.importorskip("distributed", reason="the extra secretballot[dask]")
    with pytest.raises(
        ParameterError, match="executor is 'dask', and no Dask with a worker answers"
    ):
        fit("dask")


@pytest.mark.usefixtures("unnoised")  # draws differ in every run
@pytest.mark.parametrize("fit", [pate, moments_of_users])
def test_release_and_certificate_are_the_same_bytes(fit):
    with ThreadPoolExecutor(2) as engine:
        here, there = fit("local"), fit(engine)
    certificates = [dict(model.certificate_) for model in (here, there)]
    for certificate in certificates:  # when it was made, and the digest of that and all the rest
        assert certificate.pop("issued")
        assert certificate.pop("digest")
    assert json.dumps(certificates[0]) == json.dumps(certificates[1])
    assert (here.released_.labels == there.released_.labels).all()
    assert (here.predict(X_PUBLIC) == there.predict(X_PUBLIC)).all()


class Breaks(ThreadPoolExecutor):
    """Fails at the last of so many tasks."""

    def __init__(self, n_tasks):
        super().__init__(1)
        self.left = n_tasks

    def submit(self, *given, **more):
        self.left -= 1
        if not self.left:
            raise OSError("the machine is gone")
        return super().submit(*given, **more)


@pytest.mark.usefixtures("unnoised")
@pytest.mark.parametrize("stage", [1, 4])
def test_a_machine_that_fails_at_a_stage_costs_nothing_more(stage):
    ledger = sb.Ledger.in_memory(dataset="D", budget=BUDGET)
    with Breaks(stage) as engine, pytest.raises(ResourceError, match="work on private rows ended"):
        moments(engine, ledger=ledger)
    assert ledger.spent().epsilon == (0 if stage == 1 else BUDGET.epsilon)
    found = moments("local", ledger=ledger).certificate_["released"]["values"]
    assert found == moments("local").certificate_["released"]["values"]
    assert ledger.spent().epsilon == BUDGET.epsilon
