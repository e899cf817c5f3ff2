"""What privacy costs and how it is paid for: exact noise, prices, mechanisms and the durable
ledger."""

from typing import TYPE_CHECKING, Any

from secretballot._lazy import load_name

if TYPE_CHECKING:
    from secretballot.privacy import accounting, ledger, mechanisms

_HOMES: dict[str, str] = {}
_ROOMS = ("accounting", "ledger", "mechanisms")

__all__ = [
    "accounting",
    "ledger",
    "mechanisms",
]


def __getattr__(name: str) -> Any:
    return load_name(__name__, name, _HOMES, _ROOMS)


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
