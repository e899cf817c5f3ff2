"""Known-wrong versions are told from right ones, however they are spelled."""

import pytest

from secretballot.core.sampler import draws_wrong_noise


@pytest.mark.parametrize(
    ("versions", "wrong"),
    [
        ("0.14.0 0.14.1 0.14 0.14.1.post1 0.14.0+local v0.14.1 0.14.0rc1", True),
        ("0.14.2 0.14.10 0.15.0 0.16.0 0.1.4 1.14.0 unknown", False),
    ],
)
def test_wrong_versions_alone_are_refused(versions: str, wrong: bool) -> None:
    assert {draws_wrong_noise(version) for version in versions.split()} == {wrong}
