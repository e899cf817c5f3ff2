"""What all campaigns share: blocks that are kept, processes that die, and a table."""

import json
from pathlib import Path

import campaigns.__main__ as driver
import pytest
from campaigns.cases import Case, Found


def test_finished_blocks_are_kept_and_a_process_that_died_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(amount: int, number: int, folder: Path) -> Found:
        assert [*folder.iterdir()] == []
        return {"inputs": amount, "blocks": 1}, [] if number else ["a fault"]

    case = Case(work, 100, 40)
    monkeypatch.setattr(driver, "cases_of", lambda _: {"a, case": case})
    blocks = list(driver.blocks_of(case, 0.9))
    assert blocks == [(40, 0), (40, 1), (10, 2)]
    (tmp_path / "a-case-0-40").mkdir()
    (tmp_path / "a-case-0-40" / "left").touch()
    for amount, number in blocks:
        driver.do_block("fuzz", "a, case", amount, number, tmp_path)
        found = driver.done("fuzz", "a, case", amount, number, tmp_path)
        assert found["counts"] == {"inputs": amount, "blocks": 1}
        assert found["faults"] == ([] if number else ["a fault"])
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json"] * 3
    # in a process of its own, which does not know that case
    found = driver.done("fuzz", "a, case", 40, 3, tmp_path)
    assert found["counts"] == {}
    assert "the process ended with 1" in found["faults"][0]


@pytest.mark.parametrize("campaign", driver.CAMPAIGNS)
def test_every_campaign_has_cases(campaign: str) -> None:
    cases = driver.cases_of(campaign)
    assert cases
    assert all(case.amount >= 1 for case in cases.values())


@pytest.mark.slow
def test_a_campaign_prints_a_table_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["campaigns", "fuzz", "run", "plan", "--scale", "1e-4", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", words)
    assert driver.main() == 0
    first = capsys.readouterr().out
    (tmp_path / "run-0-10.json").write_text(json.dumps({"counts": {"kept": 1}, "faults": ["one"]}))
    assert driver.main() == 1
    again = capsys.readouterr()
    assert "| run | 1 kept | 1 |" in again.out
    assert (tmp_path / "report.txt").read_text() == again.out
    assert (
        first.splitlines()[-1].rpartition(" | ")[0]
        == again.out.splitlines()[-1].rpartition(" | ")[0]
    )
