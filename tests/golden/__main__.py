"""Say what moved: all prices, runs and commands beside the recorded ones."""

import sys

from golden import prices, recorded
from golden.lists import LISTS
from golden.moved import Moved


def main() -> int:
    """Compare everything; 1 if anything moved."""
    found: list[Moved] = [
        *recorded.moved(recorded.read("runs"), recorded.runs_now()),
        *recorded.moved(recorded.read("verbs"), recorded.verbs_now(long=True)),
        *prices.all_moved(range(LISTS)),
    ]
    print(recorded.table(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
