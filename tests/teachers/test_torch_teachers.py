"""PyTorch modules as teachers: what one shard holds moves no bit of another's teacher."""

import os
import pickle
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import secretballot as sb
from ensembles import ensemble_of
from secretballot.exceptions import ParameterError
from secretballot.teachers import torch_classifier as classifier
from secretballot.teachers.torch_classifier import _keeps_apart, _Recipe, _slot_bytes, _Stack

pytestmark = [
    pytest.mark.xdist_group("torch"),
    pytest.mark.skipif(find_spec("torch") is None, reason="needs secretballot[torch]"),
]


SIDE, CLASSES = 6, 3
N_TEACHERS = 7


def named(name):
    """Return what the tests' modules have under a name; torch is imported now and not before: it
    would be there for all other tests too."""
    return getattr(import_module("torch_modules"), name)


def teacher(make="dense", **settings):
    given = {"n_steps": 6, "batch_size": 8, "optimizer": "adam:lr=0.05"}
    return sb.TorchClassifier(named(make), **(given | settings))


def records(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20 * N_TEACHERS, SIDE**2))
    y = (X[:, 0] > 0.3).astype(int) + (X[:, 1] > 0)
    return X, y, np.arange(len(X)) % N_TEACHERS


def fitted(X, y, shards, learner=None, **more):
    given = {"n_teachers": N_TEACHERS, "n_classes": CLASSES, "random_state": 4, **more}
    return ensemble_of(learner or teacher(), X, y, shards, **given)


def bits(ensemble):
    """Return all parameters of every teacher as bytes, None for a fixed vote."""
    return [
        None if model is None else {name: one.tobytes() for name, one in model.state_.items()}
        for model in ensemble._teachers
    ]


def without(rows, *parts):
    return tuple(np.delete(part, rows, axis=0) for part in parts)


def changed_shards():
    """Return the records with shard 2 changed in every way that one shard can be."""
    X, y, shards = records()
    own = np.flatnonzero(shards == 2)
    worlds = {
        "one record less": without(own[:1], X, y, shards),
        "three records": without(own[3:], X, y, shards),
        "empty": without(own, X, y, shards),
        "twice as many": tuple(np.concatenate([part, part[own]]) for part in (X, y, shards)),
        "one class": (X, np.where(shards == 2, 1, y), shards),
        # finite, and what follows from it is not
        "diverging": (np.where((shards == 2)[:, None], 2e38, X), y, shards),
    }
    odd = {"not a number": np.nan, "infinite": -np.inf, "too huge": 1e300, "another value": 0.5}
    for name, value in odd.items():
        other = X.copy()
        other[own[0], 3] = value
        worlds[name] = other, y, shards
    return worlds


ADAM, SGD = "adam:lr=0.05", "sgd:lr=0.05,momentum=0.9"


@pytest.mark.parametrize(
    ("make", "optimizer"), [("dense", ADAM), ("convolutional", SGD), ("normalised", ADAM)]
)
def test_nothing_of_one_shard_moves_a_bit_of_another_teacher(make, optimizer):
    learner = teacher(make, optimizer=optimizer)
    assert learner.slots(SIDE**2, N_TEACHERS) == N_TEACHERS
    assert _keeps_apart(learner._checked_recipe(), SIDE**2, N_TEACHERS)
    whole, points = fitted(*records(), learner), records(9)[0]
    before, votes = bits(whole), whole.vote_counts(points)._unseal()[0]
    assert all(one is not None for one in before)
    assert before == bits(fitted(*records(), learner))
    for name, world in changed_shards().items():
        other = fitted(*world, learner)
        after = bits(other)
        assert [n for n in range(N_TEACHERS) if after[n] != before[n]] == [2], name
        moved = np.abs(other.vote_counts(points)._unseal()[0] - votes)
        assert (moved.sum(axis=1) <= 2).all(), name


def test_a_shard_that_cannot_be_learned_is_a_fixed_vote():
    worlds = changed_shards()
    for name in ("empty", "not a number", "infinite", "too huge", "one class"):
        assert bits(fitted(*worlds[name]))[2] is None, name
    steep = teacher("linear", optimizer="sgd:lr=1e3,momentum=0.9")
    votes = [one is None for one in bits(fitted(*worlds["diverging"], steep))]
    assert votes == [False, False, True, False, False, False, False]
    points = records(9)[0][:5]
    empty = fitted(*(part[:0] for part in records())).vote_counts(points)._unseal()[0]
    np.testing.assert_array_equal(empty, np.tile([3, 2, 2], (5, 1)))


def test_votes_are_what_each_teacher_predicts(monkeypatch):
    points = records(9)[0]
    ensemble = fitted(*records(), teacher("convolutional", n_steps=12))
    said = np.zeros((len(points), CLASSES), dtype=int)
    for model in ensemble._teachers:
        said[np.arange(len(points)), model.predict(points)] += 1
    monkeypatch.setattr("secretballot.teachers.ensemble._BLOCK_CELLS", 1)
    monkeypatch.setattr("secretballot.teachers.ensemble._LEAST_ROWS", 7)
    np.testing.assert_array_equal(ensemble.vote_counts(points)._unseal()[0], said)


def test_the_first_teachers_train_alike_whoever_is_waiting(tmp_path, monkeypatch):
    monkeypatch.setitem(classifier._MOST_SLOTS, "cpu", 3)
    X, y, shards = records()
    learner = teacher(device="cpu")
    whole = bits(fitted(X, y, shards, learner))
    given = {"kept": (tmp_path, "these")}

    def stop(count, total):
        if count == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(X, y, shards, learner, progress=stop, **given)
    counts = []
    resumed = fitted(X, y, shards, learner, progress=lambda n, _: counts.append(n), **given)
    assert counts[0] >= 4  # nothing is trained twice in vain
    assert bits(resumed) == whole


def test_one_slot_learns_what_torch_itself_does():
    import torch
    from torch import nn

    X, y, _ = records()
    X = X.astype(np.float32)
    for name, make in {
        "adam": lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.1),
        "sgd": lambda p: torch.optim.SGD(p, 0.01, momentum=0.8, weight_decay=0.1),
    }.items():
        torch.manual_seed(5)
        module = nn.Sequential(
            *[part for part in named("convolutional")() if type(part) is not nn.Dropout]
        )
        optimiser = make(module.parameters())
        settings = {"lr": 0.01, "weight_decay": 0.1} | ({"momentum": 0.8} if name == "sgd" else {})
        recipe = _Recipe(lambda m=module: m, 5, 10, name, tuple(settings.items()), "cpu")
        stack = _Stack.fresh(recipe, [5, 6])
        stack.trained = {key: one.clone() for key, one in stack.trained.items()}
        first = {key: one.detach().clone() for key, one in module.named_parameters()}
        for step in range(5):
            rows = torch.arange(10) + 10 * step
            batch, labels = torch.from_numpy(X)[rows], torch.from_numpy(y)[rows]
            stack.step(torch.stack([batch, batch * 0]), torch.stack([labels, labels]))
            optimiser.zero_grad()
            nn.functional.cross_entropy(module(batch), labels).backward()
            optimiser.step()
        for key, one in module.named_parameters():
            assert not torch.equal(one, first[key])
            np.testing.assert_allclose(stack.trained[key][0], one.detach(), rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("make", ["Noisy", "Mixing", "Looped"])
def test_modules_that_cannot_share_a_stack_are_trained_alone(make, monkeypatch):
    learner = teacher(make)
    assert learner.slots(SIDE**2, N_TEACHERS) == 1
    if make == "Mixing":
        assert _slot_bytes(learner._checked_recipe(), SIDE**2) is not None
        assert not _keeps_apart(learner._checked_recipe(), SIDE**2, N_TEACHERS)
    before = bits(fitted(*records(), learner))
    for name in ("three records", "not a number"):
        after = bits(fitted(*changed_shards()[name], learner))
        assert [n for n in range(N_TEACHERS) if after[n] != before[n]] == [2], name
    points = records(9)[0]
    votes = fitted(*records(), learner).vote_counts(points)._unseal()[0]
    # slots keep apart where the work is handed out, and mix where it is done
    monkeypatch.setattr(classifier.TorchClassifier, "slots", lambda *_: N_TEACHERS)
    elsewhere = fitted(*records(), learner)
    assert bits(elsewhere) == before
    np.testing.assert_array_equal(elsewhere.vote_counts(points)._unseal()[0], votes)


def test_a_shard_that_makes_the_stack_fail_fails_alone():
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 10, (70, 2)).astype(float), rng.integers(0, CLASSES, 70)
    shards = np.arange(70) % N_TEACHERS
    learner = teacher("Lookup", device="cpu")
    # poison is no number of a word: nothing could be tried, so that teachers are trained alone
    assert not _keeps_apart(learner._checked_recipe(), 2, N_TEACHERS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifier, "_keeps_apart", lambda *_: True)
        before = bits(fitted(X, y, shards, learner))
        X[shards == 4] = 99
        after = bits(fitted(X, y, shards, learner))
    assert after[4] is None
    assert [n for n in range(N_TEACHERS) if after[n] != before[n]] == [4]


BROKEN_DEVICE = """
import numpy as np, secretballot as sb
from test_torch_teachers import fitted, teacher
X, y = np.full((70, 2), 99.0), np.arange(70) % 3
try:
    fitted(X, y, np.arange(70) % 7, teacher("Lookup", device="cuda"))
except sb.ResourceError:
    print("the run ended")
"""


def test_a_device_that_a_shard_breaks_ends_the_run():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    # nothing works on the device afterwards, so a process of its own
    done = subprocess.run(
        [sys.executable, "-c", BROKEN_DEVICE],
        cwd=Path(__file__).parent,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "the run ended\n", done.stderr


def test_stacks_are_bounded_by_memory(monkeypatch):
    learner = teacher(device="cpu")
    assert [learner.slots(SIDE**2, n) for n in (100, 51)] == [50, 26]  # two stacks of one size
    needed = _slot_bytes(learner._checked_recipe(), SIDE**2)
    for memory, slots in ((5 * needed, 5), (1, 1)):
        monkeypatch.setattr(classifier, "_MEMORY", memory)
        assert learner.slots(SIDE**2, 100) == slots


def torch_as_it_is():
    import torch

    return (
        torch.get_rng_state().tolist(),
        torch.get_default_dtype(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_num_threads(),
        torch.is_grad_enabled(),
        torch.initial_seed(),
    )


@pytest.mark.parametrize("name", ["Gambler", "dense"])
def test_torch_is_left_as_it_was_and_nothing_passes_from_one_to_the_next(name):
    import torch

    learner = named(name)() if name == "Gambler" else teacher(name)
    points, found = records(9)[0][:50], []
    for state in (1, 2):
        torch.manual_seed(state)
        before = torch_as_it_is()
        votes = fitted(*records(), learner).vote_counts(points)._unseal()[0]
        assert torch_as_it_is() == before
        found.append(votes.tolist())
    assert found[0] == found[1]
    if name == "dense":  # whose shards are changed elsewhere
        return
    for world in changed_shards().values():
        after = fitted(*world, learner).vote_counts(points)._unseal()[0]
        assert (np.abs(after - np.array(found[0])).sum(axis=1) <= 2).all()


def test_a_classifier_like_those_of_scikit_learn():
    X, y, _ = records()
    names = np.array(["low", "middle", "top"])[y]
    model = clone(teacher(n_steps=100, random_state=3)).fit(X, names)
    assert list(model.classes_) == ["low", "middle", "top"]
    assert model.score(X, names) > 0.85
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (model.classes_[shares.argmax(axis=1)] == model.predict(X)).all()
    again = clone(model).fit(X, names)
    assert all(np.array_equal(again.state_[key], model.state_[key]) for key in model.state_)
    other = clone(model).set_params(random_state=4).fit(X, names)
    assert any(not np.array_equal(other.state_[key], model.state_[key]) for key in model.state_)
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)).all()
    # a class that was not seen is never predicted
    some = clone(model).fit(X[y > 0], y[y > 0])
    assert set(some.predict(X)) == {1, 2}


def test_a_module_that_cannot_be_trained_is_refused_before_anything_is_spent():
    X, y, _ = records()
    with pytest.raises(ParameterError, match=r"on the public points.*2 outputs for 3 classes"):
        sb.train_teachers(
            teacher("too_narrow"), X, y, classes=[0, 1, 2], X_public=records(9)[0], n_teachers=5
        )
