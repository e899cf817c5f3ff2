"""A pickled learner is its settings and what was released: the same bytes wherever it was made,
and no place in it."""

import copy
import io
import os
import pickle
import subprocess
import sys
from typing import Any

import joblib
import numpy as np
import pickled_learners

import secretballot as sb

X, Y = pickled_learners.X, pickled_learners.Y


def test_two_processes_with_other_memories_pickle_the_same_bytes(capsys: Any) -> None:
    environment = os.environ | {"PYTHONHASHSEED": "2", "MALLOC_PERTURB_": "170"}
    command = [sys.executable, pickled_learners.__file__, "ballot"]
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600, check=True
    )
    pickled_learners.main([])
    assert run.stdout == capsys.readouterr().out
    assert len(run.stdout.splitlines()) == 22


def test_what_is_restored_predicts_the_same_and_is_pickled_the_same() -> None:
    for model in pickled_learners.learners():
        file = io.BytesIO()
        joblib.dump(model, file)
        for again in (
            pickle.loads(pickle.dumps(model)),
            joblib.load(io.BytesIO(file.getvalue())),
            copy.deepcopy(model),
        ):
            assert np.array_equal(again.predict(X), model.predict(X))
            assert again.certificate_ == model.certificate_
            assert again.get_params().keys() == model.get_params().keys()
            assert pickle.dumps(again) == pickle.dumps(model)


def test_a_copy_keeps_everything_and_the_account_it_has() -> None:
    ledger = sb.Ledger.in_memory(dataset="d", budget=pickled_learners.BUDGET)
    model = sb.PATEClassifier(n_teachers=7, epsilon=2.0, ledger=ledger)
    for again in (copy.copy(model), copy.deepcopy(model)):
        assert again.ledger.dataset == "d"
    again = pickle.loads(pickle.dumps(model.set_params(ledger=None)))
    assert (again.n_teachers, again.epsilon, again.delta) == (7, 2.0, None)


def test_how_often_a_student_was_asked_is_not_told() -> None:
    for model in pickled_learners.learners():
        before = pickle.dumps(model)
        model.predict(X)
        assert pickle.dumps(model) == before
