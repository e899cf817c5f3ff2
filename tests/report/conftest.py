"""Releases to report on, and their folders."""

import json

import pytest
from made_releases import binary, tallied, withheld

from made_certificates import files_in, reseal
from secretballot.report.certificate import labels_blocks, with_files


@pytest.fixture(params=[binary, tallied, withheld], ids=lambda make: make.__name__)
def released(request):
    return request.param()


def sealed(folder, certificate):
    """Bind the certificate to the files of a folder, as a forger would, and write it."""
    (folder / "certificate.json").write_text(json.dumps(with_files(certificate, files_in(folder))))
    reseal(folder)


@pytest.fixture
def seal():
    return sealed


@pytest.fixture
def make_folder(tmp_path):
    """Return a maker of release folders that hold the least: labels, a text and the certificate."""

    def make(released):
        folder = tmp_path / "release"
        folder.mkdir()
        blocks = labels_blocks(
            released.queries, released.labels, released.classes, released.noisy_counts
        )
        (folder / "labels.csv").write_bytes(b"".join(blocks))
        (folder / "README.txt").write_text("A private release.")
        sealed(folder, released.certificate)
        return folder

    return make
