"""Versions of other packages that are known to draw wrong noise: who draws refuses them, and so
does who verifies."""

import re

#: Releases of OpenDP whose discrete Laplace and Gaussian noise is not the stated distribution.
WRONG_OPENDP = ((0, 14, 0), (0, 14, 1))

_RELEASE = re.compile(r"\s*v?(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?")


def draws_wrong_noise(version: str) -> bool:
    """Return whether this version of OpenDP, or anything built from it, is one of
    `WRONG_OPENDP`."""
    found = _RELEASE.match(version)
    return found is not None and tuple(int(part or 0) for part in found.groups()) in WRONG_OPENDP
