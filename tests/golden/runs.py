"""Runs of every method that stays: neutral definitions, an adapter of a few lines for each, and
what is recorded of a run."""

import json
import math
import tempfile
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import public_data
import secretballot as sb
from golden import data
from golden.seam import fixed_bytes, golden, whole
from secretballot.accounting import epsilon_upper, event_in, noisy_votes, teacher_shape
from secretballot.accounting.recipes import Terms, stream_mechanism
from secretballot.core.mechanisms import AnyMechanism
from secretballot.core.partition import KeyedHashPartition, PositionPartition
from secretballot.exceptions import BudgetError, DataError
from sessions import session_of

HERE = Path(__file__).parent
TEACHERS = {
    "bayes": GaussianNB,
    "logistic": LogisticRegression,
    "default": lambda: "logistic",
    "regression": lambda: DecisionTreeRegressor(max_depth=2, random_state=0),
}
Released = dict[str, Any]
METHODS: dict[str, Callable[..., Released]] = {}


def method(work: Callable[..., Released]) -> Callable[..., Released]:
    METHODS[work.__name__.replace("_", "-")] = work
    return work


def budget(epsilon: float, delta: float = 1e-5) -> sb.PrivacyBudget:
    return sb.PrivacyBudget(epsilon, delta)


def price(epsilon: float, delta: float = 1e-5) -> dict[str, float]:
    return {"epsilon": epsilon, "delta": delta}


def account(folder: str | None = None, **about: Any) -> sb.Ledger:
    limit = {"dataset": "golden", "budget": sb.PrivacyBudget(1000.0, 0.5), **about}
    if folder is None:
        return sb.Ledger.in_memory(**limit)
    return sb.Ledger(Path(folder) / "ledger.sqlite", **limit)


def promise(units: bool, relation: str) -> dict[str, str]:
    return {"unit": "user" if units else "record", "relation": relation}


def fit(
    model: Any, table: dict[str, Any], y: Any, units: bool, label_private: bool, **given: Any
) -> None:
    """Fit for records or users with public points, or for labels alone."""
    given |= {"public_features": True} if label_private else {"X_public": table["X_public"]}
    given |= {"units": table["units"], "unit_name": "person"} if units else {}
    model.fit(table["X"], y, **given)


def aim(table: dict[str, Any], target: str) -> tuple[Any, dict[str, Any]]:
    """Return what is learnt of a table, and what a fit is told of it."""
    told: dict[str, tuple[str, dict[str, Any]]] = {
        "classes": ("y", {"classes": table["classes"]}),
        "numbers": ("numbers", {"bounds": (-12.0, 12.0)}),
        "sets": ("sets", {"labels": ["a", "b", "c"]}),
    }
    column, given = told[target]
    return table[column], given


def of_labels(model: Any, **more: Any) -> Released:
    released = model.released_
    if hasattr(released, "answers"):
        return {"answers": released.answers, "model": model}
    counts = released.noisy_counts
    return {
        "asked": released.queries,
        "labels": released.labels,
        **({} if counts is None else {"counts": counts}),
        "model": model,
        **more,
    }


@method
def pate(
    table: dict[str, Any],
    epsilon: float = 60.0,
    delta: float = 1e-5,
    mechanism: str = "auto",
    teacher: str = "bayes",
    student: str = "default",
    target: str = "classes",
    strategy: str | None = None,
    units: bool = False,
    relation: str = "add-remove",
    label_private: bool = False,
    **settings: Any,
) -> Released:
    students: dict[str, Callable[[], Any]] = {
        "voting": lambda: sb.VotingStudent(n_estimators=5, random_state=0),
        "graph": lambda: sb.GraphCountsClassifier(n_modes=20),
        "counts": sb.NoisyCountsClassifier,
        "tree": lambda: DecisionTreeClassifier(max_depth=2, random_state=0),
        **TEACHERS,
        "default": lambda: "auto",
    }
    more = {}
    if strategy is not None:
        chosen = sb.queries.strategy_by_name(strategy)
        more["strategy"] = sb.queries.InRounds(chosen, round_size=10)
    kind = sb.PATERegressor if target == "numbers" else sb.PATEClassifier
    model = kind(
        TEACHERS[teacher](),
        students[student](),
        **{"n_teachers": 20, **more, **settings},
        **price(epsilon, delta),
        mechanism=mechanism,
        relation=relation,
        random_state=0,
        ledger=None if label_private else account(**promise(units, relation)),
    )
    y, given = aim(table, target)
    fit(model, table, y, units, label_private, **given)
    return of_labels(model)


@method
def moments(
    table: dict[str, Any],
    epsilon: float,
    target: str = "classes",
    units: bool = False,
    relation: str = "add-remove",
    start: bool = False,
    label_private: bool = False,
    **settings: Any,
) -> Released:
    more: dict[str, Any] = {**price(epsilon), **settings}
    if not label_private:
        more |= {"relation": relation, "ledger": account(**promise(units, relation))}
    kind = sb.RecordMomentsRegressor if target == "numbers" else sb.RecordMomentsClassifier
    model, (y, given) = kind(**more), aim(table, target)
    if start:
        first = sb.PATEClassifier(
            GaussianNB(), **price(60.0), n_teachers=20, ledger=more["ledger"], random_state=0
        )
        first.fit(table["X"], table["y"], X_public=table["X_public"], classes=table["classes"])
        given["start"] = first.released_
    fit(model, table, y, units, label_private, **given)
    found = of_labels(model) if label_private else {"model": model}
    return {"sums": model.certificate_["released"]["values"], **found}


@method
def record_votes(
    table: dict[str, Any],
    epsilon: float,
    units: bool = False,
    relation: str = "add-remove",
    **settings: Any,
) -> Released:
    more = {"ledger": account(**promise(units, relation)), "relation": relation, **settings}
    model = sb.RecordVotesClassifier(**price(epsilon), random_state=0, **more)
    fit(model, table, table["y"], units, False, classes=table["classes"])
    return of_labels(model)


def hypotheses_named(name: str) -> Any:
    from secretballot import hypotheses

    return {
        "thresholds": hypotheses.Thresholds,
        "intervals": hypotheses.Intervals,
        "stumps": lambda: hypotheses.DecisionStumps(3),
    }[name]()


@method
def semi_private(table: dict[str, Any], epsilon: float, hypotheses: str, **more: Any) -> Released:
    model = sb.SemiPrivateClassifier(
        hypotheses_named(hypotheses), epsilon=epsilon, random_state=0, **more
    )
    model.fit(table["X"], table["y"], X_public=table["X_public"], classes=table["classes"])
    return of_labels(model, choice=[model.choice_.values.item()])


@method
def choose(table: dict[str, Any], epsilon: float) -> Released:
    X, y = table["X"], table["y"]
    X_new, stump = table["X_new"], DecisionTreeClassifier(max_depth=1, random_state=0)
    candidates = [
        clone(stump).fit(X_new, table["y_new"]),
        GaussianNB().fit(X_new, table["y_new"]),
        clone(stump).fit(X_new, X_new[:, 2] > 0),
    ]
    held = sb.hold_out(len(X), 0.3)[1]
    found = sb.choose_candidate(
        candidates,
        X[held],
        y[held],
        classes=table["classes"],
        epsilon=epsilon,
        ledger=account(),
        X_public=table["X_public"],
    )
    return {"choice": [found.choice_.values.item()], "held_out": held}


@method
def labeler(
    table: dict[str, Any],
    epsilon: float,
    algorithm: str,
    hypotheses: str | None = None,
    relation: str = "add-remove",
    **settings: Any,
) -> Released:
    learnt = {"teacher": GaussianNB()} if hypotheses is None else {}
    with tempfile.TemporaryDirectory() as folder:
        model = sb.Labeler(
            algorithm,
            *(() if hypotheses is None else (hypotheses_named(hypotheses),)),
            **price(epsilon),
            ledger=account(folder, relation=relation),
            relation=relation,
            **learnt,
            **settings,
        )
        where = {"vault": Path(folder) / "vault"} if algorithm.startswith("universal") else {}
        model.fit(table["X"], table["y"], classes=table["classes"], **where)
        return of_session(model, table["asked"])


def of_session(session: Any, asked: Any) -> Released:
    """Ask some questions in a batch and the others one by one, until none is left."""
    answers = [session.ask_many(asked[:4])]
    for point in asked[4:]:
        try:
            answers.append(session.ask_many([point]))
        except BudgetError:  # spent, or stopped
            break
    labels = [-1 if one is None else int(one) for part in answers for one in part.labels]
    left = [getattr(part, "left", 0) for part in answers]
    counts = [
        part.noisy_counts for part in answers if getattr(part, "noisy_counts", None) is not None
    ]
    return {
        "labels": labels,
        "left": [-1 if one == math.inf else one for one in left],
        **({"counts": np.concatenate(counts)} if counts else {}),
    }


@method
def session(
    table: dict[str, Any], mechanism: dict[str, Any], delta: float = 1e-6, n_classes: int = 2
) -> Released:
    shape = teacher_shape(14, n_classes, 20)
    drawn = (
        stream_mechanism(event_in(mechanism), 20)
        if mechanism["kind"] == "table-stream"
        else TypeAdapter(AnyMechanism).validate_python(mechanism)
    )
    cost = sb.PrivacyBudget(epsilon_upper([drawn.event(shape)], delta), delta)
    plan = Terms(drawn, shape, cost)
    with tempfile.TemporaryDirectory() as folder:
        teachers = sb.train_teachers(
            GaussianNB(),
            table["X"],
            table["y"],
            classes=table["classes"],
            n_teachers=20,
            vault=Path(folder) / "vault",
        )
        asking = session_of(teachers, plan, account(folder))
        return of_session(asking, table["X_public"][:16])


@method
def relabelled(table: dict[str, Any], hypotheses: str, relabel_epsilon: float) -> Released:
    X, y = table["X"][:200, :1], table["y"][:200]
    return {
        "labels": sb.relabel(X, y, hypotheses_named(hypotheses), relabel_epsilon=relabel_epsilon)
    }


@method
def shards(table: dict[str, Any], n_teachers: int) -> Released:
    hashed = KeyedHashPartition(n_teachers, fixed_bytes(32))
    words = [f"patient {i}" for i in range(40)]
    return {
        "of_numbers": hashed.assign(np.arange(-20, 200)),
        "of_texts": hashed.assign([*words, "Ärztin", "o'Neil", "7"]),
        "of_positions": PositionPartition(n_teachers, 50).assign(),
    }


@method
def silos(table: dict[str, Any], epsilon: float, release: str) -> Released:
    """Release labels for votes that two silos sent as files."""
    votes = np.random.RandomState(30).randint(2, size=(60, 20))
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "first.npy", votes[:, :12])
        np.savetxt(Path(folder) / "second.csv", votes[:, 12:], fmt="%d", delimiter=",")
        read = [
            sb.read_votes(Path(folder) / name, kind="votes", classes=[0, 1], header="no")
            for name in ("first.npy", "second.csv")
        ]
    total = sum(one._unseal()[0] for one in read)
    counts = sb.votes_of_counts(total, classes=[0, 1], n_teachers=20)
    plan = noisy_votes(budget(epsilon), counts.shape, release=release)
    released = sb.release(counts, plan, account(), budget(epsilon))
    noisy = released.noisy_counts
    return {"labels": released.labels, **({} if noisy is None else {"counts": noisy})}


@method
def estimates(table: dict[str, Any], epsilon: float) -> Released:
    ones = np.random.RandomState(31).randint(21, size=60)
    counts = sb.votes_of_counts(np.column_stack([20 - ones, ones]), classes=[0, 1], n_teachers=20)
    stable = sb.estimate_stability(counts, account(), fraction=0.5, epsilon=epsilon)
    return {"outcomes": [stable.values.item()]}


def clinic_parts() -> tuple[Any, Any, Any]:
    """Return private rows, public rows and the schema of the public ones, without their texts."""
    from secretballot.data.schema import Schema

    rows = data.clinic().drop(columns=["note", "day"])
    public = rows.iloc[400:].drop(columns=["person", "ill"])
    return rows.iloc[:400], public, Schema.infer(public)


@method
def table_on_disk(
    table: dict[str, Any], learner: str, epsilon: float, unit: str | None = None
) -> Released:
    private, public, schema = clinic_parts()
    with tempfile.TemporaryDirectory() as folder:
        private.to_csv(Path(folder) / "private.csv", index=False)
        stored = sb.store_table(
            Path(folder) / "private.csv",
            Path(folder) / "vault",
            schema=schema,
            target="ill",
            classes=["no", "yes"],
            unit=unit,
            drop=["person"] if unit is None else [],
        )
        return of_table(learner, epsilon, stored, None, schema.encode(public), Path(folder) / "v")


@method
def adult(table: dict[str, Any], learner: str, epsilon: float) -> Released:
    from secretballot.data.schema import Schema

    rows = public_data.adult().train.iloc[:700]
    X, y = rows.drop(columns=[public_data.ADULT_TARGET]), rows[public_data.ADULT_TARGET]
    schema = Schema.infer(X.iloc[600:])
    names = {value: place for place, value in enumerate(public_data.ADULT_CLASSES)}
    labels = np.array(["no", "yes"])[y.iloc[:600].map(names).to_numpy()]
    private, public = schema.encode(X.iloc[:600]), schema.encode(X.iloc[600:])
    return of_table(learner, epsilon, private, labels, public)


def of_table(
    learner: str, epsilon: float, X: Any, y: Any, X_public: Any, vault: Path | None = None
) -> Released:
    unit = getattr(X, "unit", "record")
    common: dict[str, Any] = {**price(epsilon), "ledger": account(unit=unit)}
    pate = {"n_teachers": 20, "n_queries": 40, "mechanism": "labels", "random_state": 0}
    where = {"vault": vault} if learner == "pate" else {}
    model = {
        "moments": lambda: sb.RecordMomentsClassifier(**common),
        "record-votes": lambda: sb.RecordVotesClassifier(random_state=0, **common),
        "pate": lambda: sb.PATEClassifier(
            DecisionTreeClassifier(max_depth=3, random_state=0), **pate, **common
        ),
    }[learner]()
    model.fit(X, y, X_public=X_public, classes=["no", "yes"], **where)
    return of_labels(model, points=X_public)


@method
def encoded_rows(table: dict[str, Any], basis: str) -> Released:
    """Encode a table with a column of every kind, then as exact integers of a basis."""
    from secretballot.data.reading import read_table
    from secretballot.data.schema import Schema

    clinic = data.clinic()
    kinds: dict[str, Any] = {"table": sb.bases.TableBasis, "kernel": sb.bases.KernelBasis}
    read = []
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("public", clinic.iloc[:100]), ("private", clinic.iloc[100:])):
            cells = rows.drop(columns=["person", "ill", "v0", "v1"])
            cells = cells.assign(scan=rows[["v0", "v1"]].to_numpy().tolist())
            cells.to_csv(Path(folder) / f"{name}.csv", index=False)
            read.append(read_table(Path(folder) / f"{name}.csv"))
    kind_of = {"age": "numeric", "ward": "categorical", "day": "date", "scan": "vector"}
    kind_of["note"] = {"kind": "text", "encoding": "hashed", "width": 8}
    schema = Schema.from_json({"columns": kind_of}, public=read[0])
    points, rows = (schema.encode(one) for one in read)
    fitted = kinds[basis]().fit(points)
    encoded = np.rint(rows * 2**20).astype(np.int64)
    return {"rows": encoded, "integers": fitted.integers(rows), "columns": [len(points[0])]}


RUNS: dict[str, dict[str, Any]] = tomllib.loads((HERE / "runs.toml").read_text())
TABLES = {"plane": data.plane, "strips": lambda: data.plane(3), "line": data.line}


def is_possible(name: str) -> bool:
    """Return whether the data of a run is there: Adult is reference data."""
    if RUNS[name]["method"] != "adult":
        return True
    try:
        return public_data.adult() is not None
    except DataError:
        return False


def recorded_run(name: str, noise: str) -> dict[str, Any]:
    """Carry out one run under the seam, and return what is recorded of it."""
    settings = dict(RUNS[name])
    work, table_of = METHODS[settings.pop("method")], TABLES[settings.pop("table", "plane")]
    with golden(noise) as trace, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = table_of()
        released = work(table, **settings)
        model, points = released.pop("model", None), released.pop("points", table.get("X_new"))
        predicted = {} if model is None else predictions_of(model, points)
    found = {
        "prices": [[float(e), float(d)] for e, d in trace.prices],
        "opened": trace.opened(),
        "private" if work in (shards, encoded_rows) else "released": {
            key: whole(list(np.asarray(value))) for key, value in released.items()
        },
        **predicted,
    }
    return dict(json.loads(json.dumps(found)))  # as it is read again


def predictions_of(model: Any, points: Any) -> dict[str, Any]:
    """Return what a model predicts: probabilities, else numbers."""
    answers = np.asarray(model.predict(points))
    found: dict[str, Any] = {}
    if answers.ndim == 1 and hasattr(model, "classes_"):
        found["predicted"] = answers.tolist()
    try:
        values = np.asarray(model.predict_proba(points), dtype=float)
        if values.ndim == 2 and hasattr(model, "classes_"):
            values = values[:, 1:]
    except (AttributeError, NotImplementedError):
        values = answers.astype(float)
    found["values"] = np.round(values.reshape(len(points), -1), 6).tolist()
    return found
