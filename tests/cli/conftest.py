import pytest

from patients import write_files


@pytest.fixture
def files(tmp_path):
    """A folder with private, public and test files of patients."""
    return write_files(tmp_path)
