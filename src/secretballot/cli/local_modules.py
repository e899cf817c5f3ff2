"""Classes of the user's own in the current folder, for `--teacher mymodel:Class`.

A script finds the modules beside it, a program that was installed does not. The folder is looked
into only where a module that the user named is found nowhere else, and it comes last: whatever lies
in it takes the place of no installed module.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

from secretballot.named_learners import imports_a_class


def find_in_this_folder(*learners: str) -> None:
    """Let the modules of learners that the user named be found in the current folder.

    The process that makes releases, and workers, look where this process looks.

    Parameters
    ----------
    *learners : str
        Names as they are on the command line, never ones from a file.
    """
    for name in learners:
        top = name.partition(":")[0].partition(".")[0]
        # `python -P` and PYTHONSAFEPATH ask that this folder be left alone
        if not imports_a_class(name) or not top.isidentifier() or sys.flags.safe_path:
            continue
        here = Path.cwd()
        is_here = (here / f"{top}.py").is_file() or (here / top).is_dir()
        if is_here and str(here) not in sys.path and find_spec(top) is None:
            sys.path.append(str(here))
