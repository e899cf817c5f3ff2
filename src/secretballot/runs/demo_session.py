"""A session to look at: a clinic that never was, its teachers, and the right to ask them."""

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

__all__ = ["begin_demonstration_session"]

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


def begin_demonstration_session(folder: Path, ledger_at: str | Path | None = None) -> None:
    """Train teachers and begin a session: ``vault``, the ledger, and a few public points in
    ``points.csv``.

    Parameters
    ----------
    folder : Path
        Where all of it goes.
    ledger_at : path or URL, optional
        Place of the ledger; ``clinic.ledger`` in the folder by default.
    """
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
    ledger = Ledger(ledger_at or folder / "clinic.ledger", dataset="demo-clinic", budget=BUDGET)
    terms = GaussianAggregator.calibrate(BUDGET, _QUESTIONS)
    LabelingSession(teachers, terms, ledger, purpose="a demonstration of the service")
    public.head(_EXAMPLES).to_csv(folder / "points.csv", index=False)
