"""What the guarantee rests on."""

from typing import TYPE_CHECKING, Any

from secretballot._lazy import load_name

if TYPE_CHECKING:
    from secretballot.core import ledger

__all__ = ["ledger"]


def __getattr__(name: str) -> Any:
    return load_name(__name__, name, {}, __all__)
