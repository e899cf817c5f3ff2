"""Learners as they are after a fit, with values that were not drawn; run, it prints digests of
their pickles."""

import hashlib
import io
import pickle
import random
import sys

import joblib
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

import secretballot as sb
from secretballot.students import NoisyCountsClassifier, VotingStudent, fit_student

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
CERTIFICATE = {"purpose": "a test", "numbers": [1, 2.5, None]}
RELEASED = sb.ReleasedLabels(np.arange(60), Y, (0, 1), 50, certificate=CERTIFICATE)
COUNTS = sb.ReleasedLabels(np.arange(60), Y, (0, 1), 50, 4.0, 10 + 30 * Y)
BUDGET = sb.PrivacyBudget(1.0, 1e-6)


def students():
    for student in (
        VotingStudent(n_rounds=3),
        RandomForestClassifier(3),
        KNeighborsClassifier(algorithm="kd_tree"),
        MLPClassifier((2,), max_iter=300, tol=1.0),
    ):
        yield fit_student(student, X, RELEASED, random_state=1)
    yield fit_student(NoisyCountsClassifier(n_landmarks=10, random_state=0), X, COUNTS)


def learners():
    kinds = (
        sb.PATEClassifier,
        sb.RecordMomentsClassifier,
        sb.RecordVotesClassifier,
        sb.SemiPrivateClassifier,
    )
    for kind in kinds:
        for student in students():
            model = kind(epsilon=BUDGET.epsilon)
            model.student_, model.classes_, model.n_features_in_ = student, np.array([0, 1]), 3
            model.released_, model.certificate_ = RELEASED, RELEASED.certificate
            yield model


def main(words):
    for word in words:
        coins = random.Random(word)
        globals()["_kept"] = [bytes(coins.randrange(1, 4000)) for _ in range(20_000)][
            :: coins.randrange(2, 9)
        ]
        np.random.seed(coins.randrange(99))  # noqa: NPY002
    for model in (*learners(), *students()):
        model.predict(X[: len(words) + 1])
        if type(model).__module__.startswith("sklearn"):
            continue  # these are written as scikit-learn writes them, unless a learner holds them
        file = io.BytesIO()
        joblib.dump(model, file)
        digests = [
            hashlib.sha256(part).hexdigest() for part in (pickle.dumps(model), file.getvalue())
        ]
        print(type(model).__name__, *digests)


if __name__ == "__main__":
    main(sys.argv[1:])
