"""Reference data for tests: where a file is absent, the test is skipped, visibly."""

from typing import TypeVar

import pytest

from secretballot.exceptions import DataError

T = TypeVar("T")


def reference(load, *given):
    """Return what a reader of reference data reads, or skip the test where a file is absent."""
    try:
        return load(*given)
    except DataError as error:
        pytest.skip(str(error))
