"""The data of the demonstration, and the commands that it runs on them."""

from pathlib import Path

from secretballot.data.synthetic import write_clinic
from secretballot.exceptions import DataError


def demonstration_commands(out: Path) -> dict[str, list[str]]:
    """Write the demonstration's files and return its commands by name, in their order.

    Parameters
    ----------
    out : Path
        Folder for data and runs; it must be new or empty.

    Raises
    ------
    DataError
        If the folder is in use.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{str(out)!r} exists; give a new folder, or remove it.")
    files = write_clinic(out)
    tables, study = [str(files.private), str(files.public)], str(out / "study")
    target = ["--target", files.target, "--classes", ",".join(map(str, files.classes))]
    price = ["--epsilon", "1", "--delta", "1e-6", "--total", "4,1e-5"]
    return {
        "check": ["check", *tables, *target],
        "learn": ["learn", *tables, *target, *price, "--evaluate", str(files.test), "--out", study],
        "verify": ["verify", study, "--independent"],
        "predict": [
            *("predict", study, str(files.test)),
            *("--out", str(out / "predictions.csv"), "--overwrite"),
        ],
    }
