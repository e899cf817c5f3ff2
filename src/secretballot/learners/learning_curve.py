"""How soon the student of an active fit said what it says in the end; computed from released labels alone."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from secretballot.learners.active import ActivePATEClassifier
from secretballot.learners.rounds import first_answers
from secretballot.students import default_student, fit_student

__all__ = ["learning_curve"]

POINTS = 10  # of the curve; each is one fit of the student


def learning_curve(model: ActivePATEClassifier, X_public: Any) -> list[float | None]:
    """Return, for every round, the share of the public pool on which its student agrees with the final one.

    At most `POINTS` rounds get a student of their own; the others, and rounds from which nothing can be learnt yet, get
    None.
    """
    released, edges = model.released_labels_, np.cumsum(model.rounds_)
    final = np.asarray(model.predict(X_public))
    curve: list[float | None] = [None] * len(edges)
    for number in np.unique(np.linspace(0, len(edges) - 1, POINTS).round().astype(int)):
        part = first_answers(released, int(edges[number]))
        student = default_student(part) if model.student is None else clone(model.student)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = fit_student(
                    student, X_public, part, abstentions=model.abstentions, random_state=model.random_state
                )
                curve[number] = float(np.mean(np.asarray(fitted.predict(X_public)) == final))
        except Exception:  # any learner may raise anything where there are few answers, or all of one class
            continue
    return curve
