"""What a diagnosis is held in: it calls itself NOT RELEASABLE, and shows its values only where
they are asked for."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from secretballot.core.private import Private

NOT_RELEASABLE = "NOT RELEASABLE"
_NOTICE = (
    "computed from private data without noise; for the curator's eyes, to be kept in the vault"
)


class Diagnosis(Private):
    """A result about private votes.

    For the curator, who asks for it by `values` or `to_private_json`.

    Its kind and sizes are public and shown; its values are not. It refuses to become an array, to
    be iterated, searched, pickled or copied.

    Parameters
    ----------
    kind : str
        What was measured.
    sizes : mapping of str to int
        Public sizes, such as the number of queries.
    values : mapping of str to number, array or None
        What was found; copied.

    Attributes
    ----------
    kind : str
    sizes : dict of str to int

    Privacy
    -------
    Sensitivity : one unit may move all of it; nothing was added to hide that, and nothing was paid.
    """

    __slots__ = ("__kind", "__sizes", "__values")
    _refusal = (
        "a private diagnosis refuses to {}; ask for its values(), and keep them in the vault."
    )

    def __init__(self, kind: str, sizes: Mapping[str, int], values: Mapping[str, Any]) -> None:
        self.__kind = kind
        self.__sizes = dict(sizes)
        self.__values = {name: _own_copy(value) for name, value in values.items()}

    @property
    def kind(self) -> str:
        """What was measured; public."""
        return self.__kind

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes that are public."""
        return dict(self.__sizes)

    def values(self) -> dict[str, Any]:
        """Return a copy of what was found, by name.

        Privacy
        -------
        Private: keep it in the vault.
        """
        return {name: _own_copy(value) for name, value in self.__values.items()}

    def to_private_json(self) -> dict[str, Any]:
        """Return everything as JSON values, with fields that say it is not releasable.

        Privacy
        -------
        Private: keep it in the vault.
        """
        values = {name: _plain_value(value) for name, value in self.__values.items()}
        return {
            "releasable": False,
            "notice": f"{NOT_RELEASABLE}: {_NOTICE}",
            "kind": self.__kind,
        } | {
            "sizes": self.sizes,
            "values": values,
        }

    def __repr__(self) -> str:
        sizes = "".join(f"{name}={size}, " for name, size in self.__sizes.items())
        return f"{NOT_RELEASABLE}: Diagnosis({self.__kind!r}, {sizes}values=<private>)"


def _own_copy(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _plain_value(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
