"""A service to look at: a clinic that never was, its teachers, a session, keys, and the server.

Run it as ``python -m secretballot.service.demonstration FOLDER [PORT]``, or by
``make demo-service``. In a folder that was made before it goes on with the same session.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from secretballot.aggregation import GaussianAggregator
from secretballot.datasets.demonstration import write_clinic
from secretballot.learners.labelers.session import LabelingSession
from secretballot.learners.training.trained import train_teachers
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.privacy.ledger import Ledger
from secretballot.service.api_keys import KeyRing
from secretballot.service.run import listening_socket, serve
from secretballot.service.settings import read_settings

__all__ = ["main", "prepare"]

_SETTINGS = """\
# The service of a demonstration; every setting is described in docs/guides/service.md.
state = "service-state"

[datasets.clinic]
title = "Who came back: a clinic that never was"
vault = "vault"
sessions = ["session"]
"""
BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-6)
_TEACHERS, _QUESTIONS, _EXAMPLES = 250, 300, 20


def _learner(numbers: list[str], words: list[str]) -> Pipeline:
    return make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler()), numbers),
            (OneHotEncoder(handle_unknown="ignore"), words),
        ),
        LogisticRegression(max_iter=1000),
    )


def prepare(folder: Path) -> dict[str, str]:
    """Train teachers, begin a session and make keys; return the token of each key by its role."""
    config = folder / "service.toml"
    if not config.exists():
        files = write_clinic(folder / "data")
        private, public = pd.read_csv(files.private), pd.read_csv(files.public)
        y = private.pop(files.target)
        public = public[list(private.columns)]
        names = [str(name) for name in public.columns]
        numbers = [name for name in names if pd.api.types.is_numeric_dtype(public[name])]
        words = [name for name in names if name not in numbers]
        teachers = train_teachers(
            _learner(numbers, words),
            private,
            y.to_numpy(),
            classes=list(files.classes),
            X_public=public,
            n_teachers=_TEACHERS,
            vault=folder / "vault",
        )
        ledger = Ledger(folder / "clinic.ledger", dataset="demo-clinic", budget=BUDGET)
        terms = GaussianAggregator.calibrate(BUDGET, _QUESTIONS)
        LabelingSession(teachers, terms, ledger, purpose="a demonstration of the service")
        public.head(_EXAMPLES).to_csv(folder / "points.csv", index=False)
        config.write_text(_SETTINGS)  # last: without it nothing was prepared
    ring = KeyRing(read_settings(config).state)
    return {
        role: ring.add(role, ["*"], owner="demonstration")[1] for role in ("analyst", "curator")
    }


def main(words: list[str]) -> None:
    """Prepare a demonstration in a folder and serve it."""
    folder = Path(words[0] if words else "demo-service").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    keys = prepare(folder)
    settings = read_settings(folder / "service.toml")
    port = int(words[1]) if len(words) > 1 else settings.listening.port
    settings = replace(settings, listening=replace(settings.listening, port=port))
    with listening_socket(settings.listening.host, port) as listening:
        address = f"http://{settings.listening.host}:{listening.getsockname()[1]}"
        print(f"serving      {address}")
        for role, token in keys.items():
            print(f"{role:<12} {token}")
        points = os.path.relpath(folder / "points.csv")
        print(
            f"ask          SECRETBALLOT_KEY={keys['analyst']} secretballot ask {address} {points}"
        )
        sys.stdout.flush()
        serve(settings, listening)


if __name__ == "__main__":
    main(sys.argv[1:])
