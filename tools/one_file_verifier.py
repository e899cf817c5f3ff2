"""Pack the second verifier into one file that Python runs, the same bytes wherever it is made.

python tools/one_file_verifier.py TARGET
"""

import sys
from pathlib import Path
from zipfile import ZipFile, ZipInfo

SOURCE = Path(__file__).parent.parent / "src"
START = 'import runpy\n\nrunpy.run_module("secretballot_verify", run_name="__main__")\n'


def pack(target: Path) -> None:
    """Write the file; entries have no date but the earliest that archives know."""
    files = sorted((SOURCE / "secretballot_verify").glob("*.py"))
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text() for path in files}
    with target.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with ZipFile(file, "w") as archive:
            for name, text in {"__main__.py": START, **texts}.items():
                archive.writestr(ZipInfo(name), text)


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
