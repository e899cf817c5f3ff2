"""`data.public_features`: runs in which the labels alone are private, by record moments and by
votes."""

import json
import math

import pytest

import secretballot as sb
import secretballot_verify as second
from patients import N_PRIVATE, broken_off, certificate_in, document_of, invoke, rows, words_of_run
from secretballot.core.ledger import Ledger
from secretballot.exceptions import DataError, LedgerError, ParameterError
from secretballot.runs.run import quote

ALONE = ("--set", "data.public_features=true", "--set", "exclude=report")
METHODS = {"record-moments": (), "pate": ("--method", "pate:n_teachers=50,teacher=tree")}


def words(folder, *more):
    """Return a small, complete command without a public file."""
    learn, private, _, *rest = words_of_run(folder, *more)
    return [learn, private, *rest]


def fields(folder, **more):
    """Return the same as fields."""
    given = {"private": folder / "private.csv", "target": "ill", "drop": "patient"}
    given |= {"classes": "no,yes", "epsilon": 2, "delta": 1e-5, "total": "20,1e-2"}
    return given | {"out": folder / "out", "public_features": True, "exclude": "report"} | more


@pytest.mark.parametrize("method", METHODS)
def test_a_run_promises_and_pays_for_labels_alone_and_is_resumed(files, method):
    learn = words(files, *ALONE, *METHODS[method], "--json")
    quoted = document_of(invoke(*learn, "--dry-run"))
    assert (quoted["unit"], quoted["relation"]) == ("label", "replace-one")
    assert not (files / "out").exists()
    broken_off(*learn)
    test = ("--evaluate", str(files / "test.csv"))
    made = document_of(invoke(*learn, *test))
    assert made["resumed"]
    assert made["accuracy"] > 0.75
    ledger = Ledger.open_existing(files / "private.csv.ledger")
    assert (ledger.unit, ledger.relation, ledger.releases()) == ("label", "replace-one", 1)
    assert ledger.spent().epsilon == 2
    release = files / "out/release"
    certificate = certificate_in(files / "out")
    assert (certificate["unit"], certificate["relation"]) == ("label", "replace-one")
    assert any("only the labels are private" in one for one in certificate["not_protected"])
    assert any("features of all records are public" in one for one in certificate["assumptions"])
    assert not any("dropped" in one for one in certificate["assumptions"])
    (event,) = certificate["events"]
    if method == "pate":
        assert quoted["sigma"] == event["sigma"]
        assert quoted["terms"]["guarantee"] == {"unit": "label", "relation": "replace-one"}
    else:  # one sum, without counts of classes; a label moves it by its whole sensitivity
        assert (quoted["terms"]["n_stages"], quoted["terms"]["counts_first"]) == (1, False)
        moved = math.sqrt(event["squared_sensitivity"])
        assert quoted["sigma"] == pytest.approx(event["sigmas"][0] / moved, rel=1e-6)
    assert invoke("verify", files / "out").exit_code == 0
    assert second.exit_code(second.check_release(str(release))) == 0
    refused = invoke("evaluate", files / "out", files / "private.csv")
    assert "holds rows of the private file" in refused.stderr


def test_a_run_of_python_reads_features_and_no_label_as_public(files):
    made = sb.run(sb.RunSpec.read(**fields(files)))
    assert sb.verify_certificate(made.release).ok
    schema = json.loads((made.release / "schema.json").read_text())
    assert [*schema["columns"]] == ["age", "ward", "dose"]
    # other labels, in the same places, change nothing that is public before the release
    other = rows(N_PRIVATE, 1)
    other["ill"] = other["ill"].map({"yes": "no", "no": "yes"})
    other.to_csv(files / "other.csv", index=False)
    again = fields(files, private=files / "other.csv", out=files / "again", dataset="private")
    one, two = (
        quote(sb.RunSpec.read(**given)).to_json() | {"account": None}
        for given in (fields(files, out=files / "new"), again)
    )
    assert one == two
    sb.run(sb.RunSpec.read(**again))
    assert (files / "again/release/schema.json").read_bytes() == (
        made.release / "schema.json"
    ).read_bytes()
    part = files / "part.csv"
    rows(N_PRIVATE, 1)[:300].to_csv(part, index=False)
    with pytest.raises(DataError, match=r"test file .* holds rows of the private file"):
        quote(sb.RunSpec.read(**fields(files, evaluate=part, out=files / "new")))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"public": "public.csv"}, "goes with one target of classes, without a public file"),
        ({"unit": "patient", "drop": ""}, "without a public file and without a unit"),
        ({"classes": None, "bounds": "0,9", "target": "dose"}, "one target of classes"),
        ({"method": "record-votes"}, "nothing that RecordVotesClassifier takes"),
        ({"method": "semi-private:hypotheses=stumps", "delta": None}, "nothing that SemiPrivate"),
        ({"method": "pate", "strategy": "margin"}, "A strategy, or an estimate, does not go with"),
        ({"public_features": False}, "public is missing"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(files, more, message):
    given = fields(files, **more)
    with pytest.raises(ParameterError, match=message):
        sb.run(sb.RunSpec.read(**{name: one for name, one in given.items() if one is not None}))
    assert not (files / "out").exists()


def test_a_ledger_of_records_and_a_folder_of_files_are_refused(files):
    Ledger(
        files / "records.ledger", dataset="private", budget=sb.PrivacyBudget(9, 1e-3), unit="record"
    )
    with pytest.raises(LedgerError, match="'record' under 'add-remove'"):
        sb.run(sb.RunSpec.read(**fields(files, ledger=files / "records.ledger", total=None)))
    (files / "folder").mkdir()
    rows(N_PRIVATE, 1).to_parquet(files / "folder/private.parquet")
    given = fields(files, private=files / "folder", ledger="own", total=None)
    with pytest.raises(ParameterError, match="labels that alone are private, are learnt from one"):
        sb.run(sb.RunSpec.read(**given))
    assert not (files / "out").exists()
