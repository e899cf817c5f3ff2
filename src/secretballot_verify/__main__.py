"""The command line: check the folder that is named."""

import argparse
import math
import os
import sys

from secretballot_verify import WAIT, each_finding, exit_code
from secretballot_verify.games import MINUTES


def main(arguments: list[str]) -> int:
    """Check the folder that is named, print what was found, and return the exit code."""
    parser = argparse.ArgumentParser("secretballot_verify", description="Check a release folder.")
    parser.add_argument("folder", help="with certificate.json")
    most = f"that one game may take ({MINUTES:g})"
    parser.add_argument("--minutes", type=float, default=MINUTES, help=most)
    given = parser.parse_args(arguments)
    if not (os.path.isdir(given.folder) and 0 < given.minutes < math.inf):
        parser.error("give a folder that is there, and a positive number of minutes")
    found = []
    for finding in each_finding(given.folder, given.minutes):
        # at once, as the next one may take minutes
        print(f"{finding.verdict:<7} {finding.name:<12} {finding.detail}", flush=True)
        found += [finding] if finding.verdict != WAIT else []
    code = exit_code(found)
    print(f"The release is {({0: 'confirmed', 5: 'NOT confirmed', 4: 'REFUSED'})[code]}.")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
