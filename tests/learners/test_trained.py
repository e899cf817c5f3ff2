"""Teachers that are kept: found again, tied to their data, closed to others, without the ids
that drew their shards."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import secretballot as sb
from secretballot.learners import session as room
from secretballot.learners.inputs import single_point


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] > 0).astype(int)


X, Y = table()
POINTS, _ = table(40, 1)


def trained(vault, **changes):
    given = {"X": X, "y": Y, "classes": [0, 1], "n_teachers": 9, "vault": vault, **changes}
    return sb.train_teachers(given.pop("teacher", "logistic"), **given)


def opened(teachers, points=POINTS):
    return teachers.vote(teachers.points(points))._unseal()[0].tolist()


def test_kept_teachers_vote_as_before_without_their_data_and_are_not_trained_again(
    tmp_path, monkeypatch
):
    with pytest.raises(sb.DataError, match="holds no teachers"):
        sb.TrainedTeachers.load(tmp_path)
    first = trained(tmp_path / "vault")
    monkeypatch.setattr(room.TeacherEnsemble, "fit", lambda *_, **__: pytest.fail("was trained"))
    for again in (trained(tmp_path / "vault"), sb.TrainedTeachers.load(tmp_path / "vault")):
        assert again.serial == first.serial != ""
        assert opened(again) == opened(first)
        assert (again.classes, again.n_teachers) == ((0, 1), 9)
        assert again.declaration == first.declaration
    assert sum(opened(first)[0]) == 9


@pytest.mark.parametrize(
    "changes",
    [
        {"X": X[:-1], "y": Y[:-1]},
        {"X": np.where(np.arange(300)[:, None] == 7, 0.5, X)},
        {"y": np.where(np.arange(300) == 7, 1 - Y, Y)},
        {"n_teachers": 10},
        {"random_state": 3},
        {"relation": "replace-one"},
        {"units": np.arange(300) // 2, "unit_name": "patient"},
        {"classes": [1, 0]},
    ],
    ids=str,
)
def test_a_vault_of_other_data_or_settings_is_refused(tmp_path, changes):
    trained(tmp_path / "vault")
    with pytest.raises(sb.DataError, match=r"belongs to other data.*Nothing was spent"):
        trained(tmp_path / "vault", **changes)


class _Forgetful(DummyClassifier):
    """Cannot be pickled before its fit, and can be afterwards."""

    def __init__(self, setting=None):
        super().__init__()
        self.setting = setting

    def fit(self, X, y):
        self.setting = None
        super().fit(X, y)
        return self


def test_a_learner_that_cannot_be_told_from_others_is_not_found_again(tmp_path):
    first = trained(tmp_path / "vault", teacher=_Forgetful(lambda: 1))
    assert opened(sb.TrainedTeachers.load(tmp_path / "vault")) == opened(first)
    with pytest.raises(sb.DataError, match="belongs to other data"):
        trained(tmp_path / "vault", teacher=_Forgetful(lambda: 2))


def test_an_interrupted_training_keeps_its_shards_whose_ids_are_gone_before_anybody_asks(
    tmp_path, monkeypatch
):
    ids, seen = tmp_path / "record.ids", []

    def crash(*_, **__):
        seen.append(ids.read_bytes())
        raise KeyboardInterrupt

    for place in ("write_secret", "forget_records"):
        with monkeypatch.context() as patch:
            patch.setattr(room, place, crash)
            with pytest.raises(KeyboardInterrupt):
                trained(tmp_path)
    assert seen[0] == seen[1] == ids.read_bytes()
    sb.TrainedTeachers.load(tmp_path)
    assert not ids.exists()


def test_of_two_that_train_at_once_the_first_to_keep_wins(tmp_path, monkeypatch):
    vault, real, meanwhile = tmp_path / "vault", room.write_secret, []

    def late(path, content, **how):
        monkeypatch.setattr(room, "write_secret", real)
        meanwhile.append(trained(vault))
        return real(path, content, **how)

    monkeypatch.setattr(room, "write_secret", late)
    mine = trained(vault)
    assert mine.serial == meanwhile[0].serial == sb.TrainedTeachers.load(vault).serial
    assert opened(mine) == opened(meanwhile[0])


def test_frames_are_asked_with_the_columns_they_were_trained_on(tmp_path):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(size=200), "c": rng.choice(["a", "b"], 200)})
    label = (frame.x > 0).astype(int).to_numpy()
    encoded = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    given = {"teacher": make_pipeline(encoded, LogisticRegression()), "X": frame, "y": label}
    first = trained(tmp_path, **given, X_public=frame[:20], n_teachers=5)
    again = sb.TrainedTeachers.load(tmp_path)
    assert opened(again, frame[:30]) == opened(first, frame[:30])
    assert opened(first, single_point({"x": 1.0, "c": "a"}))[0][1] == 5
    for points, words in (
        (frame[["x"]], "misses column"),
        (frame[["c", "x"]], "in another order"),
        (frame.assign(x="text"), "x"),
    ):
        with pytest.raises(sb.DataError, match=words):
            again.points(points)
    with pytest.raises(sb.DataError, match="X_public is missing"):
        trained(None, **given)
