"""A release of votes of records: verified twice, shown in words of its own."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import secretballot as sb
import secretballot_verify as second
from made_certificates import reseal
from secretballot.exceptions import ParameterError
from secretballot.report.certificate.verify import verify_certificate

BUDGET = sb.PrivacyBudget(1.0, 1e-5)


@pytest.fixture(scope="module", params=["add-remove", "replace-one"])
def model(request: Any) -> sb.RecordVotesClassifier:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4711, 2))
    return sb.RecordVotesClassifier(
        epsilon=BUDGET.epsilon, delta=BUDGET.delta, votes_per_record=6, relation=request.param
    ).fit(X, X[:, 0] > 0, X_public=rng.normal(size=(80, 2)), classes=[False, True])


def test_the_folder_is_whole_and_both_verifiers_confirm_it(
    model: sb.RecordVotesClassifier, tmp_path: Path
) -> None:
    points = np.random.default_rng(1).normal(size=(80, 2))
    made = sb.write_release(
        tmp_path / "release", model.released_, student=model.student_, X_public=points
    )
    assert {"labels.csv", "certificate.json", "report.html", "student.onnx"} <= set(made.files)
    assert verify_certificate(made.path).ok
    assert second.exit_code(second.check_release(str(made.path))) == 0
    loaded = sb.load_student(made.path / "student.onnx")
    assert loaded.predict(points).tolist() == model.predict(points).tolist()
    # how many records voted, and how many votes they cast, stands nowhere in words
    texts = [
        (made.path / name).read_text() for name in ("README.txt", "report.html", "certificate.json")
    ]
    # but for the estimate by the noisy counts, which may happen to be right
    told = [re.sub(r"noise:\s+[\d,]+", "", one) for one in texts]
    assert not any(re.search(r"\b(4711|4,711|28266|28,266)\b", text) for text in told)


def test_without_the_certificate_nobody_says_that_records_voted(
    model: sb.RecordVotesClassifier,
) -> None:
    released = model.released_
    assert released.by_record
    with pytest.raises(ParameterError, match="without teachers"):
        replace(released, certificate={})


PLAN = {"planned": 80, "used": 80, "rounds": [80], "strategy": {"name": "margin"}, "left": "none"}
CHANGES: dict[str, Any] = {
    "fewer points than votes": lambda d: d["shape"].update(n_queries=5),
    "by user": lambda d: d.update(unit="user", unit_column="patient"),
    "labels": lambda d: d.update(unit="label"),
    "not all answered": lambda d: d["released"].update(answered=79),
    "rounds": lambda d: d.update(plan=PLAN),
    "one of two terms": lambda d: d["public"].pop("expected_uncovered"),
    "no votes of uncovered records": lambda d: d["released"].pop("values"),
    "votes that noise does not reach": lambda d: d["released"].update(values=[[-(10**6)]]),
}


def test_neither_verifier_takes_a_changed_certificate(
    model: sb.RecordVotesClassifier, tmp_path: Path
) -> None:
    made = sb.write_release(tmp_path / "release", model.released_, without=("report", "student"))
    genuine = (made.path / "certificate.json").read_text()
    for name, change in CHANGES.items():
        (made.path / "certificate.json").write_text(genuine)
        reseal(made.path, change)
        assert not verify_certificate(made.path).ok, name
        assert second.exit_code(second.check_release(str(made.path))) == 4, name
