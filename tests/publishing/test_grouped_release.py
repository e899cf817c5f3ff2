"""A release in which records have budgets of their own: what its pages say, who confirms it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import secretballot as sb
from secretballot.publishing.release import write_release
from secretballot.report.certificate.build import certificate_digest
from secretballot.report.certificate.moments import GROUPS_ASSUMPTION
from secretballot.report.certificate.standing import with_choices_named
from secretballot.verify_release import check_release

RNG = np.random.default_rng(3)
X = RNG.normal(size=(2400, 2)).round(2)
Y = (X[:, 0] > 0).astype(int)
N = 2000


def release(folder: Path, neighbours: str) -> sb.RecordMomentsClassifier:
    model = sb.RecordMomentsClassifier(neighbours=neighbours)
    model.fit(
        X[:N],
        Y[:N],
        X_public=X[N:],
        classes=[0, 1],
        budget_groups=np.where(np.arange(N) < 500, "strict", "open"),
        group_budgets={"strict": sb.PrivacyBudget(0.5, 1e-6), "open": sb.PrivacyBudget(2.0, 1e-6)},
        groups_are_public=True,
    )
    write_release(folder, model.released_labels_, student=model.student_, X_public=X[N:])
    return model


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "release"
    release(folder, "add-remove")
    return folder


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_both_verifiers_confirm_every_group_and_the_pages_name_it(
    tmp_path: Path, made: Path, neighbours: str
) -> None:
    folder = made
    if neighbours == "replace-one":
        folder = tmp_path / "release"
        release(folder, neighbours)
    assert sb.verify_certificate(folder).ok
    found = {finding.name: finding.verdict for finding in check_release(str(folder))}
    assert set(found.values()) == {"ok"}
    assert {"group 'strict'", "group 'open'"} <= set(found)
    for name in ("README.txt", "report.html"):
        page = " ".join((folder / name).read_text().split())
        assert "strict: epsilon 0.5, delta 1e-6, weight 0.2" in page, name
        assert "open: epsilon 2, delta 1e-6, weight 1" in page, name
        assert "500" not in page.split("The groups:")[1][:200], name
    document = json.loads((folder / "certificate.json").read_text())
    assert GROUPS_ASSUMPTION in document["assumptions"]
    assert ("records" in document["mechanism"]["groups"][0]) == (neighbours == "replace-one")
    text = (folder / "README.txt").read_text()
    counted = "each by its weight" if neighbours == "add-remove" else "There are 2,000 records"
    assert counted in " ".join(text.split())


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("epsilon", 0.3, "group 'strict'"),
        ("delta", 1e-9, "group 'strict'"),
        ("epsilon", 2.5, "mechanism"),
        ("bound", 9 * 10**7, "mechanism"),
        ("bound", 0, "mechanism"),
        ("name", "open", "mechanism"),
        ("name", "strict ", "mechanism"),
    ],
)
def test_the_second_verifier_refuses_a_group_that_costs_more_than_it_says(
    tmp_path: Path, made: Path, field: str, value: float | str, name: str
) -> None:
    folder = shutil.copytree(made, tmp_path / "release")
    place = folder / "certificate.json"
    document = json.loads(place.read_text())
    document["mechanism"]["groups"][0][field] = value
    part = document["events"][0]["groups"][0]
    if field == "bound":
        part["squared_sensitivity"] = int(value) ** 2
    else:
        part[field] = value
    document["digest"] = certificate_digest(document)
    place.write_text(json.dumps(document))
    refused = [one.name for one in check_release(str(folder)) if one.verdict == "FAILED"]
    assert refused == [name]
    assert not sb.verify_certificate(document).ok


def test_choices_beside_groups_are_refused_by_both(tmp_path: Path, made: Path) -> None:
    folder = shutil.copytree(made, tmp_path / "release")
    place = folder / "certificate.json"
    document = json.loads(place.read_text())
    ledger = sb.Ledger.in_memory(dataset="people", budget=sb.PrivacyBudget(0.3, 0))
    votes = sb.VoteCounts.from_counts([[90, 10]])
    choice = sb.estimate_stability(votes, ledger, fraction=0.5, epsilon=0.3)
    document["choices"] = [choice.to_certificate()]
    document["assumptions"] = with_choices_named(document["assumptions"])
    document["digest"] = certificate_digest(document)
    place.write_text(json.dumps(document))
    # each group paid for the choice, too
    assert any("budget groups" in str(one) for one in sb.verify_certificate(document).failures)
    refused = {
        one.name: one.detail for one in check_release(str(folder)) if one.verdict == "FAILED"
    }
    assert "budget groups" in refused["choices"]


@pytest.mark.parametrize("kind", ["labels", "counts"])
def test_pages_say_whose_votes_count_for_how_much(tmp_path: Path, kind: str) -> None:
    model = sb.PATEClassifier(n_teachers=20, n_queries=3 if kind == "labels" else 40, release=kind)
    model.fit(
        X[:N],
        Y[:N],
        X_public=X[N:],
        classes=[0, 1],
        budget_groups=np.where(np.arange(N) < 500, "strict", "open"),
        group_budgets={"strict": sb.PrivacyBudget(0.5, 1e-6), "open": sb.PrivacyBudget(2.0, 1e-6)},
        groups_are_public=True,
        group_shares={"strict": 1, "open": 3},
    )
    folder = tmp_path / "release"
    write_release(folder, model.released_labels_, student=model.student_, X_public=X[N:])
    assert sb.verify_certificate(folder).ok
    found = {finding.name: finding.verdict for finding in check_release(str(folder))}
    assert set(found.values()) == {"ok"}
    assert {"group 'strict'", "group 'open'"} <= set(found)
    for name in ("README.txt", "report.html", "model-card.md"):
        page = " ".join((folder / name).read_text().split())
        assert "strict: epsilon 0.5, delta 1e-6, weight 0.2" in page, name
        assert "open: epsilon 2, delta 1e-6, weight 1, 15 teachers" in page, name
    page = (folder / "report.html").read_text()
    assert "20<small>teachers" in page
    assert "divided into 20 disjoint parts" in page
    votes = model.certificate_["released"]["n_teachers"]
    assert f"{votes:,} teachers" not in page
