"""Choose among candidates by held-out private records: a paid step, with its certificate."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray

from secretballot._seeded import own_global_states
from secretballot._typing import BoolArray, IntArray
from secretballot.core.private import Scores
from secretballot.core.releasing import Released
from secretballot.core.types import Guarantee
from secretballot.exceptions import CertificateError, Parameter, ParameterError
from secretballot.foreign_code import each_alone, isolated, one_thread
from secretballot.learners.training.inputs import object_array
from secretballot.learners.training.learner import Task
from secretballot.released import ReleasedLabels
from secretballot.releasing import (
    account_terms,
    check_one_account,
    choose_by_scores,
)
from secretballot.report.certificate.build import (
    account_fields,
    certificate_digest,
    certificate_of,
    choice_fields,
    describe_released,
    with_choices_named,
)
from secretballot.report.certificate.verify import verify_certificate
from secretballot.teachers.records import right_units
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.votes import guarantee_of

SAMPLE_ROWS = 40
INDEPENDENT = (
    "The candidates depend on the held-out records by nothing that was not paid for, and each"
    " predicts a row from that row alone."
)


@dataclass(frozen=True, eq=False)
class ChosenCandidate:
    """The outcome of `choose_candidate`; public.

    Attributes
    ----------
    candidate : classifier
        The chosen one.
    index : int
        Its place among the candidates.
    name : str
    choice : Released
        What was drawn, and its price.
    released : ReleasedLabels
        What the candidate was learnt from, if it tells (``released_``), with the choice, and the
        releases behind the others, on its certificate; else what the choice itself releases.
    """

    candidate: Any
    index: int
    name: str
    choice: Released
    released: ReleasedLabels


def draw_candidate(names: Sequence[str], models: Sequence[Any], task: Task) -> Released:
    """Choose among candidates by private records, once each is tried on public rows.

    Parameters
    ----------
    names, models : sequence
        As `names_and_models` returns them.
    task : Task

    Raises
    ------
    ParameterError, BudgetError, LedgerError
        As for `choose_candidate`.
    """
    few, classes = min(SAMPLE_ROWS, n_rows(task.points)), task.target.learnt
    example = take_rows(task.points, np.arange(few))
    for name, model in zip(names, models, strict=True):
        _refuse_unfit_candidate(name, model, example, classes)

    def scores() -> Scores:
        right = np.zeros(len(models), dtype=np.int64)
        with task.table.parts() as parts:
            for block in (load() for load in parts()):  # all records of a unit are in one of them
                truth = object_array(classes)[block.targets]
                right += _candidate_scores(models, block.rows, truth, block.units)
        return Scores.of_candidates(right, task.guarantee)

    why = f"which of {len(models)} candidates is right most often"
    return choose_by_scores(
        scores,
        len(models),
        task.account,
        epsilon=task.budget.epsilon,
        names=names,
        classes=classes,
        beside=_listed_beside(models),
        request=task.given.request,
        purpose=task.given.purpose or why,
        declaration={**task.declaration, "assumptions": [INDEPENDENT]},
    )


def certified(
    own: ReleasedLabels, choice: Released, models: Sequence[Any], index: int
) -> ReleasedLabels:
    """Return what a choice releases, with all that its candidates cost on the certificate.

    A release that was looked at for the choice costs as much as the one that was chosen: which one
    is published depends on all of them. If the chosen candidate was learnt from a release
    (``released_``), that one's labels are returned as they are, and the choice is among the choices
    of its certificate, whose digest is a new one.

    Parameters
    ----------
    own : ReleasedLabels
        The choice itself, as `chosen_release` makes it.
    choice : Released
    models : sequence
        The candidates.
    index : int
        Place of the chosen one.

    Raises
    ------
    CertificateError
        If the certificate would not verify.
    """
    others = _releases_behind(models)
    released, choices = others.pop(index, own), [choice]
    if released is own:
        if not others:
            return own
        choices = []
    # the lines of the certificate that say how settings came about are put right, and the digest
    # comes last
    document, rejected = released.certificate, list(others.values())
    entries = _choice_entries(document, choices, rejected)
    accounts = [document["composition"], *(account_fields(one.account) for one in choices)]
    accounts += [one.certificate["composition"] for one in rejected]
    spents = [account["spent_after"] for account in accounts]
    spent = {key: max(one[key] for one in spents) for key in ("epsilon", "delta")}
    lines = list(document["assumptions"])
    if entries:
        lines = with_choices_named(lines)
    if choices and INDEPENDENT not in lines:
        lines.append(INDEPENDENT)
    changed = document | {
        "composition": document["composition"] | {"spent_after": spent},
        "assumptions": lines,
    }
    changed |= {"choices": entries} if entries else {}
    changed["digest"] = certificate_digest(changed)
    verification = verify_certificate(changed)
    if not verification.ok:
        raise CertificateError(
            f"No certificate can be written for this: {verification.failures[0].detail}"
        )
    return replace(released, certificate=changed)


def chosen_release(
    choice: Released,
    labels: IntArray,
    rows: IntArray,
    classes: Sequence[Any],
    *,
    about: Mapping[str, Any],
    unit_column: str | None,
) -> ReleasedLabels:
    """Return the choice as a release; the chosen model's labels of public points cost nothing more.

    Parameters
    ----------
    choice : Released
        A choice by scores, drawn and paid for.
    labels : ndarray of int64, shape (l,)
        Class of each public point, by the chosen model, as an index into `classes`.
    rows : ndarray of int64, shape (l,)
        Rows of the public points.
    classes : sequence
    about : mapping
        What the candidates are, as JSON values; for the certificate.
    unit_column : str or None

    Privacy
    -------
    Unit, relation, price : those of the choice. Labels of public points by a model that depends on
        nothing else private are post-processing.
    """
    made = choice.shape.guarantee
    document = certificate_of(
        choice,
        describe_released(rows, labels, classes, 0) | {"values": choice.values.tolist()},
        follows=about,
        declaration={
            "unit": made.unit,
            "unit_column": unit_column,
            "relation": made.relation,
        },
    )
    return ReleasedLabels(rows, labels, tuple(classes), 0, certificate=document)


def refuse_other_accounts(models: Sequence[Any], task: Task) -> None:
    """Refuse candidates that say they were learnt from releases of another account, or of another
    unit or relation: one certificate could not name them all.

    Raises
    ------
    ParameterError
        Nothing was spent.
    """
    terms, choice = account_terms(task.account), ("The choice", task.guarantee)
    behind = [
        (one.certificate["composition"], _guarantee_behind(one))
        for one in _releases_behind(models).values()
    ]
    parts = [(choice[0], terms, choice[1])]
    parts += [("A candidate's release", account, made) for account, made in behind]
    # whichever is chosen, the others and the choice add to what its certificate says
    for _, _, made in parts[len(behind) == len(models) :]:
        check_one_account(parts, terms, made)


def _guarantee_behind(released: ReleasedLabels) -> Guarantee:
    return guarantee_of(released.certificate["unit"], released.certificate["relation"])


def _releases_behind(models: Sequence[Any]) -> dict[int, ReleasedLabels]:
    """Return what the candidates say they were learnt from, by their places."""
    found = enumerate(getattr(model, "released_", None) for model in models)
    return {place: one for place, one in found if isinstance(one, ReleasedLabels)}


def _choice_entries(
    document: dict[str, Any], choices: Sequence[Released], rejected: Sequence[ReleasedLabels]
) -> list[dict[str, Any]]:
    """Return everything that the release was chosen by, each reservation once."""
    found = [*document.get("choices", ()), *map(choice_fields, choices)]
    for other in rejected:
        found += [_as_choice(other), *other.certificate.get("choices", ())]
    entries: dict[int, dict[str, Any]] = {}
    for entry in found:
        entries.setdefault(entry["reservation"], entry)
    # the release's own reservation is on its certificate already
    entries.pop(document["composition"]["reservation"], None)
    return list(entries.values())


def _listed_beside(models: Sequence[Any]) -> list[dict[str, Any]]:
    """Return what the certificate of a choice lists besides: the releases behind the candidates
    that are not chosen."""
    behind = list(_releases_behind(models).values())
    if len(behind) == len(models):  # one of them is chosen
        behind.remove(min(behind, key=lambda one: len(one.queries)))
    return _choice_entries({"composition": {"reservation": 0}}, (), behind)


def _as_choice(other: ReleasedLabels) -> dict[str, Any]:
    certificate = other.certificate
    return {
        "purpose": "a release that was compared and not chosen",
        **{name: certificate[name] for name in ("mechanism", "shape", "events")},
        "public": {"method": certificate["public"]["method"]},
        "epsilon": certificate["epsilon"],
        "delta": certificate["delta"],
        "labels_sha256": certificate["released"]["labels_sha256"],
        "reservation": certificate["composition"]["reservation"],
    }


def names_and_models(candidates: Sequence[Any]) -> tuple[list[str], list[Any]]:
    """Return names, which `choose_by_scores` wants distinct, and classifiers."""
    given = list(candidates)
    pairs = [one if isinstance(one, tuple) and len(one) == 2 else ("", one) for one in given]
    names = [name or f"{type(model).__name__} {place}" for place, (name, model) in enumerate(pairs)]
    if len(pairs) < 2:
        raise ParameterError(
            Parameter("candidates"),
            f" has {len(pairs)} classifiers; give two or more to choose from.",
        )
    for name, (_, model) in zip(names, pairs, strict=True):
        if not hasattr(model, "predict"):
            raise ParameterError(
                f"The candidate {name!r} is a {type(model).__name__}; give a fitted classifier."
            )
    return names, [model for _, model in pairs]


def _refuse_unfit_candidate(name: str, model: Any, points: Any, values: Sequence[Any]) -> None:
    """Refuse a candidate that cannot predict public points, or predicts one otherwise in other
    company.

    Raises
    ------
    ParameterError
        The points are public, so it may say what went wrong.
    """
    # Once on all points together and once on each alone: a candidate whose answer depends on the
    # company would let one record change the answers to all.
    every = np.arange(n_rows(points))
    try:
        with own_global_states(0):
            warnings.simplefilter("ignore")
            together, alone = (
                [np.asarray(model.predict(take_rows(points, rows))).ravel() for rows in parts]
                for parts in ([every], every[:, None])
            )
    except (Exception, SystemExit) as error:
        raise ParameterError(
            f"The candidate {name!r} cannot predict the public points ({type(error).__name__}:"
            f" {error}); fix it, or give X_public like its training data."
        ) from None
    known = [any(one == value for value in values) for one in together[0].tolist()]
    if len(known) != len(every) or not all(known):
        raise ParameterError(
            f"The candidate {name!r} does not predict one of the classes for every public point."
        )
    if together[0].tolist() != np.concatenate(alone).tolist():
        raise ParameterError(
            f"The candidate {name!r} predicts a public point otherwise alone than among others; one"
            " private record could change its answers to all, so give a classifier that predicts"
            " row by row."
        )


def _candidate_scores(models: Sequence[Any], X: Any, truth: NDArray[Any], units: Any) -> IntArray:
    """Return on how many units each candidate is right."""
    groups = _rows_of_units(units, n_rows(X))
    right = np.column_stack([_right_records(model, X, truth, groups) for model in models])
    return right_units(right, units)


def _rows_of_units(units: Any, n_records: int) -> list[IntArray]:
    """Return the rows of every unit, which are one after the other."""
    every = np.arange(n_records)
    if units is None:
        return list(every[:, None])
    return np.split(every, np.flatnonzero(np.diff(units)) + 1)


def _right_records(
    model: Any, X: Any, truth: NDArray[Any], groups: Sequence[IntArray]
) -> BoolArray:
    """Return on which records a candidate is right, shape (n_records,); private. Every unit is
    asked by itself."""
    right = np.zeros(len(truth), dtype=np.bool_)
    settings = sklearn.get_config()

    def agreement(rows: IntArray) -> BoolArray:
        with isolated(0, settings):
            return _where_equal(model.predict(take_rows(X, rows)), truth[rows])

    # Each unit in a call of its own: what a candidate remembers of one, or fails on, must not
    # change its answers to another.
    with one_thread():
        for rows, found in zip(groups, each_alone(agreement, groups), strict=True):
            right[rows] = False if found is None else found
    return right


def _where_equal(predicted: Any, truth: NDArray[Any]) -> BoolArray:
    """Return where a prediction is the true class; nowhere if it is not one value for each row."""
    found = np.asarray(predicted)
    if found.shape not in ((len(truth),), (len(truth), 1)):
        return np.zeros(len(truth), dtype=np.bool_)
    return np.array(
        [bool(a == b) for a, b in zip(found.ravel().tolist(), truth.tolist(), strict=True)],
        dtype=np.bool_,
    )
