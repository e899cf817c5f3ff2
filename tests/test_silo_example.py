"""Three hospitals, as `examples/silos` runs them, one after the other in the place of processes."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SILOS = Path(__file__).parents[1] / "examples" / "silos"
CURATOR = SILOS / "curator.py"


class OneAfterTheOther:
    """In the place of a process: a program that runs here, when it is started."""

    def __init__(self, command: list[str]) -> None:
        with pytest.MonkeyPatch.context() as here:
            here.setattr(sys, "argv", command[1:])
            runpy.run_path(command[1], run_name="__main__")

    def wait(self) -> int:
        return 0


@pytest.mark.parametrize("mode", ["trusted", "noisy"])
def test_three_hospitals_teach_one_student(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # imports would take most of the time of four processes
    monkeypatch.syspath_prepend(SILOS)
    monkeypatch.setattr(subprocess, "Popen", OneAfterTheOther)
    monkeypatch.setattr(sys, "argv", [str(CURATOR), str(tmp_path), mode])
    runpy.run_path(str(CURATOR), run_name="__main__")
    said = capsys.readouterr().out
    # A coin has 50. In 3,000 draws of the trusted curator's noise the student's weights had 4.37 on
    # average along the truth, with a deviation of .31, and 0 across it, with .17 in each
    # direction: nearest to 80 %, where across is .73 of along, is 11 deviations away, 1e-26.
    assert float(said.split()[1]) > 80
    exact = list(tmp_path.rglob("counts.npy"))
    assert len(exact) == (3 if mode == "trusted" else 0)
    assert {path.stat().st_mode & 0o077 for path in exact} <= {0}
