"""Names of a package that load on first use, so that importing the package costs nothing."""

import sys
from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any


def load_name(package: str, name: str, homes: Mapping[str, str], rooms: Collection[str]) -> Any:
    """Return what a package promises under a name, for its ``__getattr__``.

    Parameters
    ----------
    package : str
        Full name of the package.
    name : str
        What somebody looks for in it.
    homes : mapping of str to str
        Public name to the module below the package that defines it.
    rooms : collection of str
        Modules below the package that are used by their own names.

    Raises
    ------
    AttributeError
        If the name is neither in `homes` nor in `rooms`.
    """
    if name in rooms:
        return import_module(f"{package}.{name}")
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    value = getattr(import_module(f"{package}.{homes[name]}"), name)
    # Kept, since a module of the same name would take its place when it is imported later.
    setattr(sys.modules[package], name, value)
    return value
