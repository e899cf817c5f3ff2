"""Optional packages: imported when needed, and named with the extra that brings them."""

import importlib
from importlib.util import find_spec
from types import ModuleType

from secretballot.exceptions import SecretBallotError

#: Parts of a release that may be left out.
PARTS = ("report", "student")


class MissingExtraError(SecretBallotError, ImportError):
    """An optional package is not installed; the message says how to install it."""


def require_extra(module: str, extra: str) -> ModuleType:
    """Import an optional module.

    Raises
    ------
    MissingExtraError
        Naming the extra to install, if the module is not there.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise _missing(module.partition(".")[0], extra) from None


def check_extra(package: str, extra: str, advice: str = "") -> None:
    """Refuse to go on where an optional package is not installed; it is not imported.

    Raises
    ------
    MissingExtraError
        Naming the extra to install.
    """
    if find_spec(package) is None:
        raise _missing(package, extra, advice)


def _missing(package: str, extra: str, advice: str = "") -> MissingExtraError:
    return MissingExtraError(
        f"{package} is not installed; install it with: pip install 'secretballot[{extra}]'.{advice}"
    )
