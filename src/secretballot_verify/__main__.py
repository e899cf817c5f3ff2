"""The command line: check the folder that is named."""

import math
import os
import sys

from secretballot_verify import WAIT, each_finding, exit_code
from secretballot_verify.games import MINUTES

NOTHING_TO_CHECK = 2


def minutes_of(text: str) -> float:
    """Return the number that a text is, 0 if it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def main(arguments: list[str]) -> int:
    """Check the folder that is named, print what was found, and return the exit code."""
    folder, minutes = "", MINUTES
    match arguments:
        case [folder]:
            pass
        case [folder, "--minutes", number] | ["--minutes", number, folder]:
            minutes = minutes_of(number)
    if not os.path.isdir(folder) or not 0 < minutes < math.inf:
        print(
            "Give one release folder, and how many minutes a game may take:"
            " python -m secretballot_verify FOLDER [--minutes 2]",
            file=sys.stderr,
        )
        return NOTHING_TO_CHECK
    found = []
    for finding in each_finding(folder, minutes):
        # at once, as the next one may take minutes
        print(f"{finding.verdict:<7} {finding.name:<12} {finding.detail}", flush=True)
        found += [finding] if finding.verdict != WAIT else []
    code = exit_code(found)
    print(f"The release is {({0: 'confirmed', 5: 'NOT confirmed', 4: 'REFUSED'})[code]}.")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
