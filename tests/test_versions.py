"""Known-wrong versions are told from right ones, however they are spelled."""

import pytest

from secretballot.core.sampler import draws_wrong_noise


@pytest.mark.parametrize(
    "version", ["0.14.0", "0.14.1", "0.14", "0.14.1.post1", "0.14.0+local", "v0.14.1", "0.14.0rc1"]
)
def test_wrong_versions_are_known(version: str) -> None:
    assert draws_wrong_noise(version)


@pytest.mark.parametrize(
    "version", ["0.14.2", "0.14.10", "0.15.0", "0.16.0", "0.1.4", "1.14.0", "unknown", ""]
)
def test_other_versions_are_not_refused(version: str) -> None:
    assert not draws_wrong_noise(version)
