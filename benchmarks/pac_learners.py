"""Excess error of the PAC constructions against voting and against no privacy, on classes whose
best member is known.

    python benchmarks/pac_learners.py [n_runs]

Thresholds and intervals of a uniform number, decision stumps on five of them; labels without noise
and with 10 and 20 % of them flipped. Every learner answers the same 300 questions at epsilon 1,
delta 1e-6 under replace-one, about records that are 1,000 to 1,000,000. All teachers search the
class exactly, so that the ways of answering are what differs:

- ERM: the hypothesis with the fewest mistakes, without privacy.
- semi-private: one hypothesis by the exponential mechanism, the questions being the public points.
- Gaussian PATE: the noisy vote of 250 teachers on every question.
- BTT voting: the sparse vector, five abstentions, as many teachers as its noise asks for.
- agnostic: the same on a relabelled secret sample. "refused" where it holds fewer records than
  teachers.
- universal: nine tenths of epsilon for the agnostic labeler, then one hypothesis.

The excess error of an answer is that beyond the best hypothesis: (1 - 2 noise) where they differ,
half of that where there is no answer, as a random guess would have.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

import secretballot as sb
from cells import head_of, number_given, row_of
from secretballot.accounting import noisy_votes, teacher_shape
from secretballot.core.mechanisms import NoisyVotes
from secretballot.hypotheses import DecisionStumps, HypothesisClass, Intervals, Thresholds
from secretballot.students import HypothesisStudent

BUDGET = sb.PrivacyBudget(1.0, 1e-6)
PROMISE = {"relation": "replace-one"}
QUESTIONS, ABSTENTIONS, TEACHERS = 300, 5, 250
NOISES = (0.0, 0.1, 0.2)
SIZES = {"thresholds": (10**3, 10**4, 10**5, 10**6)}

Labels = np.ndarray
Learner = Callable[["World", np.ndarray, np.ndarray, np.ndarray], Labels]


@dataclass(frozen=True)
class World:
    """A distribution of points with the best labels that its class can give."""

    name: str
    hypotheses: HypothesisClass
    n_features: int
    truth: Callable[[np.ndarray], np.ndarray]

    def draw(self, n: int, noise: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        X = rng.random((n, self.n_features))
        return X, (self.truth(X) ^ (rng.random(n) < noise)).astype(int)


def above(X: np.ndarray) -> np.ndarray:
    return X[:, 0] >= 0.4


def inside(X: np.ndarray) -> np.ndarray:
    return (X[:, 0] >= 0.3) & (X[:, 0] <= 0.7)


WORLDS = (
    World("thresholds", Thresholds(), 1, above),
    World("intervals", Intervals(), 1, inside),
    World("stumps", DecisionStumps(5), 5, above),
)
# Labels that a learner gives: 0, 1, or -1 where there is none.


def given(labels: np.ndarray) -> Labels:
    return np.array([-1 if label is None else label for label in labels])


def erm(world: World, X: np.ndarray, y: np.ndarray, questions: np.ndarray) -> Labels:
    return world.hypotheses.erm(X, y).predict(questions)


def semi_private(world: World, X: np.ndarray, y: np.ndarray, questions: np.ndarray) -> Labels:
    model = sb.SemiPrivateClassifier(world.hypotheses, epsilon=BUDGET.epsilon, **PROMISE)
    return model.fit(X, y, X_public=questions, classes=[0, 1]).predict(questions)


@cache
def gaussian_labels() -> NoisyVotes:
    return noisy_votes(BUDGET, teacher_shape(QUESTIONS, 2, TEACHERS))


def gaussian(world: World, X: np.ndarray, y: np.ndarray, questions: np.ndarray) -> Labels:
    student = HypothesisStudent(world.hypotheses)
    teachers = sb.train_teachers(student, X, y, classes=[0, 1], n_teachers=TEACHERS, **PROMISE)
    ledger = sb.Ledger.in_memory(dataset="drawn", budget=BUDGET, **PROMISE)
    session = sb.LabelingSession(teachers, gaussian_labels(), ledger, BUDGET, n_queries=QUESTIONS)
    return given(session.ask_many(questions).labels)


PLAN = {**BUDGET.to_json(), "n_queries": QUESTIONS, **PROMISE}


def voting(world: World, X: np.ndarray, y: np.ndarray, questions: np.ndarray) -> Labels:
    student = HypothesisStudent(world.hypotheses)
    labeler = sb.Labeler(f"stability:max_abstentions={ABSTENTIONS}", teacher=student, **PLAN)
    return given(labeler.fit(X, y, classes=[0, 1]).ask_many(questions).labels)


def agnostic(world: World, X: np.ndarray, y: np.ndarray, questions: np.ndarray) -> Labels:
    labeler = sb.Labeler(f"agnostic:max_abstentions={ABSTENTIONS}", world.hypotheses, **PLAN)
    return given(labeler.fit(X, y, classes=[0, 1]).ask_many(questions).labels)


def universal(world: World, X: np.ndarray, y: np.ndarray, questions: np.ndarray) -> Labels:
    algorithm = f"universal:n_first={QUESTIONS},max_abstentions={ABSTENTIONS},epsilon_share=0.1"
    labeler = sb.Labeler(algorithm, world.hypotheses, **BUDGET.to_json(), **PROMISE)
    return given(labeler.fit(X, y, classes=[0, 1]).ask_many(questions).labels)


LEARNERS: dict[str, Learner] = {
    "ERM (not private)": erm,
    "semi-private": semi_private,
    "universal": universal,
    "Gaussian PATE": gaussian,
    "BTT voting": voting,
    "agnostic": agnostic,
}


def measured(world: World, name: str, n: int, noise: float, seed: int) -> tuple[float, float]:
    """Return excess error and share of questions with an answer; nan where the learner refuses
    so few records."""
    rng = np.random.default_rng(seed)  # of the data alone
    X, y = world.draw(n, noise, rng)
    questions = rng.random((QUESTIONS, world.n_features))
    try:
        said = LEARNERS[name](world, X, y, questions)
    except sb.ParameterError:
        return np.nan, 0.0
    right = np.where(world.truth(questions), 1 - noise, noise)  # chance that a fresh label is 1
    error = np.select([said == 1, said == 0], [1 - right, right], 0.5).mean()
    return float(error - noise), float((said >= 0).mean())


def cell(runs: np.ndarray) -> str:
    if np.isnan(runs).any():
        return "refused"
    mean, answered = runs.mean(axis=0)
    return f"{mean:.4f}" + ("" if answered > 0.995 else f" ({answered:.0%})")


def main(n_runs: int) -> None:
    """Print one row for each class, noise and number of records."""
    print(head_of("class", "noise", "records", *LEARNERS))
    for world, noise in product(WORLDS, NOISES):
        for n in SIZES.get(world.name, (10**3, 10**4, 10**5)):
            cells = [
                cell(np.array([measured(world, name, n, noise, run) for run in range(n_runs)]))
                for name in LEARNERS
            ]
            print(row_of(world.name, noise, f"{n:,}", *cells), flush=True)


if __name__ == "__main__":
    main(number_given(5))
