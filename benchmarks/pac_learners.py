"""Excess error of the PAC constructions against voting and against no privacy, on classes whose
best member is known.

    python benchmarks/pac_learners.py [n_runs] [folder for the picture]

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
half of that where there is no answer, as a random guess would have. Lines are means over the runs,
bands their smallest and largest values.

Last, two worlds in which voting pays for what the class cannot say: two or three equal bumps of
ones, of which an interval covers one. Teachers cover one each, by chance: of two, no vote on either
is clear; of three, the vote covers none. The questions lie evenly there.
"""

import os

# one BLAS thread, as in every benchmark here
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import secretballot as sb
from secretballot.accounting import noisy_votes, teacher_shape
from secretballot.core.mechanisms import NoisyVotes
from secretballot.hypotheses import DecisionStumps, HypothesisClass, Intervals, Thresholds
from secretballot.students import HypothesisStudent

BUDGET = sb.PrivacyBudget(1.0, 1e-6)
PROMISE = {"relation": "replace-one"}
QUESTIONS, ABSTENTIONS, TEACHERS = 300, 5, 250
NOISES = (0.0, 0.1, 0.2)
SIZES = {"thresholds": (10**3, 10**4, 10**5, 10**6)}
CHEAP = np.rint(10 ** np.arange(3, 6.01, 0.5)).astype(int).tolist()
# where the picture ends: less than one of all questions of five runs; what is below is drawn there
FLOOR = 5e-4

Labels = np.ndarray
Learner = Callable[["World", np.ndarray, np.ndarray, np.ndarray], Labels]


@dataclass(frozen=True)
class World:
    """A distribution of points with the best labels that its class can give."""

    name: str
    hypotheses: HypothesisClass
    n_features: int
    truth: Callable[[np.ndarray], np.ndarray]
    best: Callable[[np.ndarray], np.ndarray]
    even: bool = False

    def questions(self, rng: np.random.Generator) -> np.ndarray:
        if self.even:
            return (np.arange(QUESTIONS)[:, None] + 0.5) / QUESTIONS
        return rng.random((QUESTIONS, self.n_features))

    def draw(self, n: int, noise: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        X = rng.random((n, self.n_features))
        return X, (self.truth(X) ^ (rng.random(n) < noise)).astype(int)


def above(X: np.ndarray) -> np.ndarray:
    return X[:, 0] >= 0.4


def inside(X: np.ndarray) -> np.ndarray:
    return (X[:, 0] >= 0.3) & (X[:, 0] <= 0.7)


def bumps(X: np.ndarray, *starts: float) -> np.ndarray:
    return np.any([(X[:, 0] >= start) & (X[:, 0] < start + 0.1) for start in starts], axis=0)


WORLDS = (
    World("thresholds", Thresholds(), 1, above, above),
    World("intervals", Intervals(), 1, inside, inside),
    World("stumps", DecisionStumps(5), 5, above, above),
)
UNREALISABLE = (
    World(
        "two bumps",
        Intervals(),
        1,
        lambda X: bumps(X, 0.2, 0.7),
        lambda X: bumps(X, 0.2),
        even=True,
    ),
    World(
        "three bumps",
        Intervals(),
        1,
        lambda X: bumps(X, 0.1, 0.45, 0.8),
        lambda X: bumps(X, 0.1),
        even=True,
    ),
)


# -- the learners: labels 0, 1, or -1 where there is none
# --------------------------------------------------------------


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


def exact_vote(world: World, X: np.ndarray, y: np.ndarray, questions: np.ndarray) -> Labels:
    """Return what most of 250 teachers say, without noise: NOT private."""
    student = HypothesisStudent(world.hypotheses)
    teachers = sb.train_teachers(student, X, y, classes=[0, 1], n_teachers=TEACHERS, **PROMISE)
    return teachers.vote(questions)._unseal()[0].argmax(axis=1)


LEARNERS: dict[str, Learner] = {
    "ERM (not private)": erm,
    "semi-private": semi_private,
    "universal": universal,
    "Gaussian PATE": gaussian,
    "BTT voting": voting,
    "agnostic": agnostic,
}
WITH_VOTE = {**LEARNERS, "exact vote (not private)": exact_vote}
FAST = ("ERM (not private)", "semi-private", "Gaussian PATE")


def measured(world: World, name: str, n: int, noise: float, seed: int) -> tuple[float, float]:
    """Return excess error and share of questions with an answer; nan where the learner refuses
    so few records."""
    rng = np.random.default_rng(seed)  # of the data alone
    X, y = world.draw(n, noise, rng)
    questions = world.questions(rng)
    try:
        said = WITH_VOTE[name](world, X, y, questions)
    except sb.ParameterError:
        return np.nan, 0.0
    right = np.where(world.truth(questions), 1 - noise, noise)  # chance that a fresh label is 1
    best = np.where(world.best(questions), 1 - right, right).mean()
    error = np.select([said == 1, said == 0], [1 - right, right], 0.5).mean()
    return float(error - best), float((said >= 0).mean())


def study(world: World, noise: float, n_runs: int) -> dict[str, dict[int, np.ndarray]]:
    """Return, for every learner and number of records, excess and answered share of every run,
    shape (n_runs, 2)."""
    found: dict[str, dict[int, np.ndarray]] = {}
    for name in LEARNERS:
        sizes = SIZES.get(world.name, (10**3, 10**4, 10**5))
        sizes = (
            tuple(sorted({*sizes, *(n for n in CHEAP if n <= max(sizes))}))
            if name in FAST
            else sizes
        )
        found[name] = {
            n: np.array([measured(world, name, n, noise, seed) for seed in range(n_runs)])
            for n in sizes
        }
    return found


# -- what is shown
# --------------------------------------------------------------------------------------------------


def cell(runs: np.ndarray) -> str:
    if np.isnan(runs).any():
        return "refused"
    mean, answered = runs.mean(axis=0)
    return f"{mean:.4f}" + ("" if answered > 0.995 else f" ({answered:.0%})")


def table(results: dict[tuple[str, float], dict[str, dict[int, np.ndarray]]]) -> None:
    print("| class | noise | records | " + " | ".join(LEARNERS) + " |")
    print("|---" * (3 + len(LEARNERS)) + "|")
    for (name, noise), found in results.items():
        for n in found["agnostic"]:
            cells = " | ".join(cell(found[learner][n]) for learner in LEARNERS)
            print(f"| {name} | {noise:g} | {n:,} | {cells} |")


STYLES = {  # Okabe and Ito's colours, each with a mark and a dash of its own
    "ERM (not private)": ("#000000", "o", "-"),
    "semi-private": ("#0072B2", "s", "-"),
    "universal": ("#009E73", "D", "--"),
    "Gaussian PATE": ("#E69F00", "^", "-."),
    "BTT voting": ("#CC79A7", "v", ":"),
    "agnostic": ("#D55E00", "X", "--"),
}


def draw(results: dict[tuple[str, float], dict[str, dict[int, np.ndarray]]], folder: Path) -> None:
    """Draw a panel for every class and noise: excess error against records."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogFormatterMathtext, NullLocator

    mpl.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "pac", "font.size": 9, "axes.unicode_minus": False}
    )
    names = list(dict.fromkeys(name for name, _ in results))
    figure = Figure(figsize=(9.2, 8.2), layout="constrained")
    axes = figure.subplots(len(NOISES), len(names), sharex=True, sharey=True, squeeze=False)
    for (name, noise), found in results.items():
        panel = axes[NOISES.index(noise)][names.index(name)]
        for learner, look in STYLES.items():
            draw_line(panel, learner, look, found[learner])
        panel.set(xscale="log", yscale="log", ylim=(FLOOR * 0.85, 0.7))
        panel.yaxis.set(
            major_formatter=FuncFormatter(lambda value, _: f"{value:g}"),
            minor_locator=NullLocator(),
        )
        panel.xaxis.set(major_formatter=LogFormatterMathtext(), minor_locator=NullLocator())
        panel.grid(color="#E6E8EB", linewidth=0.6)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    for name, panel in zip(names, axes[0], strict=True):
        panel.set_title(name)
    for panel in axes[-1]:
        panel.set_xlabel("private records")
    for noise, row in zip(NOISES, axes, strict=True):
        row[0].set_ylabel(f"excess error (probability)\n{noise:.0%} of labels flipped")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    figure.savefig(folder / "pac-learners.svg", metadata={"Date": None})
    figure.savefig(folder / "pac-learners.png", dpi=110, metadata={"Software": None})


def draw_line(
    panel: Any, name: str, look: tuple[str, str, str], found: dict[int, np.ndarray]
) -> None:
    """Draw the mean of the runs, with a band from the smallest to the largest, where the learner
    took the records."""
    colour, mark, dash = look
    taken = {n: runs[:, 0] for n, runs in found.items() if not np.isnan(runs).any()}
    means, low, high = (
        [max(FLOOR, float(end(excess))) for excess in taken.values()]
        for end in (np.mean, np.min, np.max)
    )
    panel.plot(
        list(taken),
        means,
        color=colour,
        marker=mark,
        linestyle=dash,
        markersize=4,
        linewidth=1.4,
        label=name,
    )
    panel.fill_between(list(taken), low, high, color=colour, alpha=0.12, linewidth=0)


def blow_up(n_runs: int) -> None:
    """Print what bumps cost each learner, beside the tenth or fifth of the points that the best
    interval errs on."""
    print("\n| world, error of the best | records | " + " | ".join(WITH_VOTE) + " |")
    print("|---" * (2 + len(WITH_VOTE)) + "|")
    for world, best in zip(UNREALISABLE, (0.1, 0.2), strict=True):
        for n in (10**5, 10**6):
            runs = [
                np.array([measured(world, name, n, 0.0, seed) for seed in range(n_runs)])
                for name in WITH_VOTE
            ]
            print(
                f"| {world.name}, {best} | {n:,} | " + " | ".join(map(cell, runs)) + " |",
                flush=True,
            )


if __name__ == "__main__":
    runs_each = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    results = {
        (world.name, noise): study(world, noise, runs_each) for world in WORLDS for noise in NOISES
    }
    table(results)
    blow_up(min(runs_each, 3))
    if len(sys.argv) > 2:
        draw(results, Path(sys.argv[2]))
    print(f"\n{time.process_time():.0f} s of one core")
