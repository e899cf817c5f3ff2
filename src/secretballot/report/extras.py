"""Optional packages: imported when needed, and named with the extra that brings them."""

import importlib
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
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{package} is not installed; install it with: pip install 'secretballot[{extra}]'."
        ) from None


def missing_parts() -> dict[str, str]:
    """Return the parts of a release that cannot be made here, with the reason of each."""
    try:
        require_extra("matplotlib.figure", "report")
    except MissingExtraError as error:
        return {"report": str(error)}
    return {}
