"""Private columns that say what no public one does are refused before anything is paid."""

import numpy as np
import pandas as pd
import pytest

import secretballot as sb
from secretballot.exceptions import DataError

BUDGET = sb.PrivacyBudget(1.0, 1e-6)


def people(n, seed, **more):
    rng = np.random.default_rng(seed)
    wards = rng.choice(["north", "south"], n)
    return pd.DataFrame({"age": rng.normal(50, 15, n), "ward": wards}).assign(**more)


def fit(private, public):
    """Fit on an account, and return it."""
    ledger = sb.Ledger.in_memory(dataset="d", budget=BUDGET, unit="record", relation="add-remove")
    model = sb.RecordMomentsClassifier(**BUDGET.to_json(), ledger=ledger)
    y = np.arange(len(private)) % 2
    try:
        model.fit(private, y, X_public=public, classes=[0, 1])
    except DataError:
        assert ledger.releases() == 0
        raise
    return ledger


@pytest.mark.parametrize("kind", [object, "category", "string"])
def test_another_spelling_is_refused_and_no_cell_is_shown(kind):
    public = people(200, 1).astype({"ward": kind})
    private = people(900, 0)
    private["ward"] = private["ward"].str.upper()
    with pytest.raises(DataError, match="Column 'ward' of X does not fit") as refused:
        fit(private, public)
    assert "NORTH" not in str(refused.value)
    if kind is object:
        with pytest.raises(DataError, match="Column 1 of X does not fit"):
            fit(private.to_numpy(), public.to_numpy())
    few = private["ward"].where(np.arange(900) % 30 == 0, private["ward"].str.lower())
    assert fit(private.assign(ward=few), public).releases() == 1


def test_values_of_which_most_are_rare_in_public_too_are_no_misfit():
    private = people(900, 0, street=[f"s{i}" for i in range(900)])
    public = people(200, 1, street=[f"p{i}" for i in range(200)])
    assert fit(private, public).releases() == 1
