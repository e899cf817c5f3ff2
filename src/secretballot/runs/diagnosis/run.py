"""One diagnosis of a vault, from files to a private folder: what `secretballot diagnose` does."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import RESAMPLINGS, check_choice, check_count, shown
from secretballot.ensemble.diagnostics.retraining import retrained_votes
from secretballot.ensemble.diagnostics.sealed_result import NOT_RELEASABLE, Diagnosis
from secretballot.ensemble.diagnostics.tsybakov import (
    LEAST_TAIL,
    estimated_regression,
    tsybakov_fit,
)
from secretballot.ensemble.diagnostics.votes import (
    diagnose_agreement,
    diagnose_expected_margins,
    diagnose_margins,
    diagnose_stability,
)
from secretballot.ensemble.engines import LOCAL, check_engine
from secretballot.ensemble.teachers import TeacherEnsemble
from secretballot.ensemble.votes import VoteCounts
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.named_learners import teacher_by_name
from secretballot.privacy.accounting import (
    PrivacyBudget,
    SparseVectorEvent,
    calibrate_sparse_vector,
    needed_distance,
)
from secretballot.runs.diagnosis.folder import check_private_place, write_diagnoses
from secretballot.runs.diagnosis.pictures import draw_diagnoses
from secretballot.runs.diagnosis.study import LabelledRows, Study
from secretballot.runs.progress import Watch
from secretballot.runs.voting import worker_processes
from secretballot.theory.voting import stream_forecast

__all__ = ["DiagnoseOutcome", "DiagnoseRun", "run_diagnose"]

MAX_UNSTABLE = (1, 3, 10, 30, 100)
# What a sparse vector is considered for: calibrating and forecasting beyond it takes minutes, and
# no vote outshouts it.
_MOST_ABSTENTIONS, _MOST_LISTED, _MOST_NOISE, _MOST_EPSILON = 10_000, 20, 5_000, 1_000.0
_TAIL = 0.1


@dataclass(frozen=True)
class DiagnoseRun:
    """Which vault to look into, and with which files.

    Attributes
    ----------
    vault : Path
        Vault of a finished run of learning, or the folder that holds it.
    public : Path
        Points to vote on, with the columns of the run.
    private : Path or None
        The private file of the run: teachers are trained again on its resamples, and one model on
        all of it. None looks at the kept teachers alone.
    labelled : Path or None
        Points with labels: how often the vote is right, and how noisy labels are near the boundary.
    schema : Path or None
        Schema of the run's release, where that no longer stands beside the vault.
    epsilon, delta : float or None
        Budget of a sparse vector to consider; None takes the run's.
    max_unstable : tuple of int
        Numbers T of its abstentions to consider.
    ensembles : int
        How many times all teachers are trained again.
    resampling : str
        "splits" or "bootstrap".
    out : Path or None
        Private folder for the results; None takes "diagnostics" in the vault.
    seed : int
        Of resamples and fits.
    jobs : int
        Workers.
    engine : str
        Where teachers that are trained again work.
    """

    vault: Path
    public: Path
    private: Path | None = None
    labelled: Path | None = None
    schema: Path | None = None
    epsilon: float | None = None
    delta: float | None = None
    max_unstable: tuple[int, ...] = MAX_UNSTABLE
    ensembles: int = 5
    resampling: str = "splits"
    out: Path | None = None
    seed: int = 0
    jobs: int = 1
    engine: str = LOCAL


@dataclass(frozen=True, repr=False)
class DiagnoseOutcome:
    """What a diagnosis found; shows none of it by itself.

    Attributes
    ----------
    diagnoses : dict of str to Diagnosis
        By name: "margins", "expected", "stability", and where the files allow "reference"
        (agreement with one model of all records), "labels" (agreement with labels), "noise".
    teachers : str
        Whose votes they are about.
    budget : PrivacyBudget
        Of the sparse vector considered.
    files : list of Path
        What was written.

    Privacy
    -------
    Sensitivity : one unit may move all of it.
    """

    diagnoses: dict[str, Diagnosis]
    teachers: str
    budget: PrivacyBudget
    files: list[Path]

    def to_private_json(self) -> dict[str, Any]:
        """Return everything as JSON values, with fields that say it is not releasable."""
        return _private_document(self.diagnoses, self.teachers, self.budget)

    def __repr__(self) -> str:
        return (
            f"{NOT_RELEASABLE}: DiagnoseOutcome(diagnoses={sorted(self.diagnoses)},"
            " values=<private>)"
        )


def run_diagnose(run: DiagnoseRun, watch: Watch | None = None) -> DiagnoseOutcome:
    """Look into a vault, and write what is found into a private folder.

    The vault is only read, but for that folder; nothing is charged, for nothing is released.

    Parameters
    ----------
    run : DiagnoseRun
    watch : Watch, optional
        Told what happens.

    Returns
    -------
    DiagnoseOutcome

    Raises
    ------
    ParameterError, DataError
        If something does not fit.

    Privacy
    -------
    Sensitivity : one unit may move all of it.
    Price : none, and none could be named: what comes out is for the curator alone.
    """
    # The place is checked before anything private is computed: what is found may go nowhere else.
    # Votes of all points are asked at once, since each teacher is loaded for it.
    watch = watch or Watch()
    _refuse_unfit_settings(run)
    study = Study.read(run.vault, run.schema)
    budget = PrivacyBudget(
        study.settings["epsilon"] if run.epsilon is None else run.epsilon,
        study.settings["delta"] if run.delta is None else run.delta,
    )
    folder = check_private_place(study.vault / "diagnostics" if run.out is None else run.out)
    watch.step("Calibrating")
    events = _sparse_vectors(budget, run.max_unstable, study.n_teachers)
    watch.step("Reading tables")
    public = study.public(run.public, watch)
    labelled = None if run.labelled is None else study.labelled(run.labelled, watch)
    private = None if run.private is None else study.private(run.private, watch)
    watch.step("Asking teachers")
    asked = public if labelled is None else np.concatenate([public, labelled.X])
    teachers, votes, ensembles = _votes_to_diagnose(run, study, private, asked, watch)
    on_public = np.arange(len(public))
    watch.step("Evaluating the votes")
    diagnoses = {
        "margins": diagnose_margins(votes.take(on_public)),
        "expected": diagnose_expected_margins([counts.take(on_public) for counts in ensembles]),
        "stability": _stability_diagnosis(votes.take(on_public), events),
    }
    if private is not None:
        diagnoses["reference"] = diagnose_agreement(
            votes.take(on_public), _labels_of_one_model(study, private, public, run.seed)
        )
    if labelled is not None:
        diagnoses["labels"] = diagnose_agreement(
            votes.take(np.arange(len(public), len(asked))), labelled.index
        )
        diagnoses |= _noise_diagnosis(labelled, len(study.classes), run.seed, watch)
    watch.step("Drawing")
    files = write_diagnoses(
        folder, _private_document(diagnoses, teachers, budget), draw_diagnoses(diagnoses, watch)
    )
    return DiagnoseOutcome(diagnoses, teachers, budget, files)


def _refuse_unfit_settings(run: DiagnoseRun) -> None:
    """Refuse settings that cannot be, before any file is opened."""
    check_count("ensembles", run.ensembles)
    check_count("jobs", run.jobs)
    check_engine(run.engine, worker_processes(run.jobs, run.engine))
    check_count("seed", run.seed, minimum=0)
    check_choice("resampling", run.resampling, RESAMPLINGS)
    if not run.max_unstable:
        raise ParameterError(
            Parameter("max_unstable"), " is empty; give one or more numbers of abstentions."
        )
    if len(run.max_unstable) > _MOST_LISTED:
        raise ParameterError(
            Parameter("max_unstable"),
            f" has {len(run.max_unstable):,} numbers of abstentions; give at most {_MOST_LISTED}.",
        )
    for number in run.max_unstable:
        if check_count("max_unstable", number) > _MOST_ABSTENTIONS:
            raise ParameterError(
                Parameter("max_unstable"),
                f" is {shown(number)}; give numbers of at most {_MOST_ABSTENTIONS:,}.",
            )


def _sparse_vectors(
    budget: PrivacyBudget, max_unstable: tuple[int, ...], n_teachers: int
) -> dict[int, SparseVectorEvent]:
    """Return the sparse vector for each T; only those that can be forecast in seconds."""
    if not budget.epsilon <= _MOST_EPSILON:
        raise ParameterError(
            Parameter("epsilon"),
            f" is {shown(budget.epsilon)}; a sparse vector is considered up to"
            f" {_MOST_EPSILON:,.0f}.",
        )
    events = {}
    for t in sorted(set(max_unstable)):
        events[t] = calibrate_sparse_vector(budget, t)
        noise = max(events[t].threshold_scale, events[t].query_scale)
        # beyond this the forecast takes minutes, and no vote outshouts the noise
        if not noise <= max(_MOST_NOISE, n_teachers):
            raise ParameterError(
                f"epsilon {budget.epsilon:g} with ",
                Parameter("max_unstable"),
                f" {t} takes noise of {noise:,.0f} votes, against {n_teachers:,} teachers;"
                " consider fewer abstentions or a larger epsilon.",
            )
    return events


def _votes_to_diagnose(
    run: DiagnoseRun,
    study: Study,
    private: LabelledRows | None,
    points: FloatArray,
    watch: Watch,
) -> tuple[str, VoteCounts, list[VoteCounts]]:
    """Return whose votes they are, the votes, and those of ensembles for averages over teachers."""
    # Kept teachers are those that the release came from, so they are preferred; teachers that are
    # trained again show how much depends on the split.
    kept = study.teachers()
    if kept is None and private is None:
        raise DataError(
            f"The vault {str(study.vault)!r} holds no teachers that can be read by these versions"
            " of Python, numpy and scikit-learn; name the private file, to train them again."
        )
    votes = (
        None
        if kept is None
        else kept.vote_counts(points, classes=list(study.classes), n_jobs=run.jobs)
    )
    if private is None:
        assert votes is not None
        return "kept in the vault", votes, [votes]
    again = retrained_votes(
        teacher_by_name(study.settings["teacher"], len(study.classes)),
        private.X,
        private.index,
        points,
        n_teachers=study.n_teachers,
        n_classes=len(study.classes),
        classes=list(study.classes),
        n_ensembles=run.ensembles,
        resampling=run.resampling,
        even=study.settings["neighbours"] == "replace-one",
        units=private.units,
        n_jobs=worker_processes(run.jobs, run.engine),
        engine=run.engine,
        random_state=run.seed,
        progress=watch.progress,
    )
    if votes is None:
        return "trained again", again[0], again
    return "kept in the vault", votes, again


def _labels_of_one_model(
    study: Study, private: LabelledRows, points: FloatArray, seed: int
) -> IntArray:
    """Return the labels of one model that learned from all private records; as private as they."""
    model = TeacherEnsemble.fit(
        teacher_by_name(study.settings["teacher"], len(study.classes)),
        private.X,
        private.index,
        np.zeros(len(private.index), dtype=np.int64),
        n_teachers=1,
        n_classes=len(study.classes),
        random_state=seed,
    )
    return np.asarray(model.vote_counts(points).open_at_the_door().argmax(axis=1), dtype=np.int64)


def _stability_diagnosis(votes: VoteCounts, events: Mapping[int, SparseVectorEvent]) -> Diagnosis:
    """Return the share of unstable queries at each T, and what a sparse vector would answer."""
    found = diagnose_stability(votes, {t: needed_distance(event) for t, event in events.items()})
    values, counts = np.unique(diagnose_margins(votes).values()["distances"], return_counts=True)
    shares = (counts / votes.n_queries).tolist()
    forecasts = [
        stream_forecast(event, votes.n_queries, values.tolist(), shares)
        for event in events.values()
    ]
    streams = {
        "asked": np.array([forecast.asked for forecast in forecasts]),
        "answered": np.array([forecast.answered for forecast in forecasts]),
    }
    return Diagnosis(found.kind, found.sizes, found.values() | streams)


def _noise_diagnosis(
    labelled: LabelledRows, n_classes: int, seed: int, watch: Watch
) -> dict[str, Diagnosis]:
    """Return what labelled points say of the Tsybakov condition, nothing where they cannot tell."""
    # Too few points are a note and no error: everything else that was found is worth having.
    if n_classes != 2:
        return {}
    if len(labelled.index) < LEAST_TAIL / _TAIL:
        least = int(LEAST_TAIL / _TAIL)
        watch.note(
            f"The labelled file is too short to estimate how noisy labels are: that takes {least}.",
            private=True,
        )
        return {}
    try:
        fit = tsybakov_fit(
            estimated_regression(labelled.X, labelled.index, random_state=seed),
            tail=_TAIL,
            random_state=seed,
        )
    except DataError:
        watch.note(
            "The labelled file has too few rows of one class to estimate how noisy labels are.",
            private=True,
        )
        return {}
    return {"noise": Diagnosis("noise", {"labelled": len(labelled.index)}, asdict(fit))}


def _private_document(
    diagnoses: Mapping[str, Diagnosis], teachers: str, budget: PrivacyBudget
) -> dict[str, Any]:
    return {
        "releasable": False,
        "notice": (
            f"{NOT_RELEASABLE}: computed from private data without noise; keep it in the vault."
        ),
        "format": "secretballot/diagnostics",
        "version": 1,
        "teachers": teachers,
        "budget": {"epsilon": budget.epsilon, "delta": budget.delta},
        "diagnoses": {name: diagnosis.to_private_json() for name, diagnosis in diagnoses.items()},
    }
