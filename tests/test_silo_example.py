"""Three hospitals as three processes, as `examples/silos` runs them."""

import subprocess
import sys
from pathlib import Path

import pytest

CURATOR = Path(__file__).parents[1] / "examples" / "silos" / "curator.py"


@pytest.mark.parametrize("mode", ["trusted", "noisy"])
def test_three_hospitals_teach_one_student(tmp_path: Path, mode: str) -> None:
    said = subprocess.run(
        [sys.executable, str(CURATOR), str(tmp_path), mode],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    ).stdout
    # six runs of each had 94.8 at least, with a deviation of 1.5; a coin has 50
    assert float(said.split()[1]) > 80
    exact = list(tmp_path.rglob("counts.npy"))
    assert len(exact) == (3 if mode == "trusted" else 0)
    assert {path.stat().st_mode & 0o077 for path in exact} <= {0}
