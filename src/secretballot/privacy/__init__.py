"""What privacy costs: prices, and the noise that keeps a promise."""

from typing import TYPE_CHECKING, Any

from secretballot._lazy import load_name

if TYPE_CHECKING:
    from secretballot.privacy import accounting

_HOMES: dict[str, str] = {}
_ROOMS = ("accounting",)

__all__ = ["accounting"]


def __getattr__(name: str) -> Any:
    return load_name(__name__, name, _HOMES, _ROOMS)


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
