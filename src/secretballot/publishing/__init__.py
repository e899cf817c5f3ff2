"""Make what is published in a process of its own, from released values and public inputs alone."""

from typing import TYPE_CHECKING, Any

from secretballot._lazy import load_name

if TYPE_CHECKING:
    from secretballot.publishing.release import ReleaseFolder, write_release

_HOMES = {
    "ReleaseFolder": "release",
    "write_release": "release",
}
_ROOMS: tuple[str, ...] = ()

__all__ = [
    "ReleaseFolder",
    "write_release",
]


def __getattr__(name: str) -> Any:
    return load_name(__name__, name, _HOMES, _ROOMS)


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
