"""Read one input again: `python -m campaigns.fuzzing PARSER INPUT FOLDER`."""

import sys
from pathlib import Path

from campaigns.fuzzing.parsers import PARSERS
from campaigns.fuzzing.reading import Desk

if __name__ == "__main__":
    name, which, folder = sys.argv[1:]
    print(Desk(name, PARSERS[name], Path(folder)).answer(which))
