"""A pickled learner is its settings and what was released: the same bytes wherever it was made,
and no place in it."""

import copy
import io
import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pickled_learners

import secretballot as sb

X, Y = pickled_learners.X, pickled_learners.Y


def test_two_processes_with_other_memories_pickle_the_same_bytes(capsys):
    environment = os.environ | {"PYTHONHASHSEED": "2", "MALLOC_PERTURB_": "170"}
    command = [sys.executable, pickled_learners.__file__, "ballot"]
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600, check=True
    )
    pickled_learners.main([])
    assert run.stdout == capsys.readouterr().out
    assert len(run.stdout.splitlines()) == 22


def test_what_is_restored_predicts_and_is_pickled_the_same_however_often_it_was_asked():
    for model in pickled_learners.learners():
        before, file = pickle.dumps(model), io.BytesIO()
        joblib.dump(model, file)
        again = (pickle.loads(before), joblib.load(io.BytesIO(file.getvalue())))
        for one in (*again, copy.deepcopy(model)):
            assert np.array_equal(one.predict(X), model.predict(X))
            assert one.certificate_ == model.certificate_
            assert one.get_params().keys() == model.get_params().keys()
            assert pickle.dumps(one) == pickle.dumps(model) == before


def test_a_copy_keeps_everything_and_the_account_it_has():
    ledger = sb.Ledger.in_memory(dataset="d", budget=pickled_learners.BUDGET)
    model = sb.PATEClassifier(n_teachers=7, epsilon=2.0, ledger=ledger)
    for again in (copy.copy(model), copy.deepcopy(model)):
        assert again.ledger.dataset == "d"
    again = pickle.loads(pickle.dumps(model.set_params(ledger=None)))
    assert (again.n_teachers, again.epsilon, again.delta) == (7, 2.0, None)
