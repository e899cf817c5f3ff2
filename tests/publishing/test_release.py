"""A release comes into its place complete or not at all, and is signed by whom it says."""

import errno
import json
import os
import pickle
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

import secretballot as sb
from secretballot.cli import app
from secretballot.exceptions import CertificateError, DataError, ParameterError, ResourceError
from secretballot.publishing import signing
from secretballot.publishing.process import _PublishingProcess
from secretballot.publishing.release import make_release, write_release
from secretballot.released import ReleasedLabels
from secretballot.report.student_load import load_student
from secretballot_verify import check_release, exit_code

Make = Callable[..., ReleasedLabels]


def names(path):
    return {entry.name for entry in path.iterdir()}


@pytest.fixture
def made_here(monkeypatch):
    """Make releases in this process, where a test can break them."""

    def perform(_, job, folder, say):
        return make_release(pickle.loads(job), Path(folder), say)

    monkeypatch.setattr(_PublishingProcess, "perform", perform)


@pytest.mark.parametrize(
    "student",
    ["auto", "sklearn.naive_bayes:GaussianNB", DecisionTreeClassifier()],
    ids=["auto", "GaussianNB", "unseeded"],
)
def test_a_student_is_fitted_by_name_or_unfitted(tmp_path, make_released, points, student):
    written = write_release(
        tmp_path / "release", make_released(), student=student, X_public=points, without=["report"]
    )
    loaded = load_student(written.path / "student.onnx")
    right = loaded.predict(points) == np.where(points[:, 0] > 0, "yes", "no")
    assert np.mean(right) > 0.9
    if not isinstance(student, str):
        assert not hasattr(student, "classes_")


def test_a_student_that_only_this_process_knows_is_refused(tmp_path, make_released, points):
    class Own(LogisticRegression):
        pass

    with pytest.raises(ParameterError, match="its class must be in a module"):
        write_release(tmp_path / "release", make_released(), student=Own(), X_public=points)
    assert not names(tmp_path)


def test_only_released_labels_come_in(tmp_path, make_released):
    for other in (make_released().to_json(), np.zeros(3), None):
        with pytest.raises(ParameterError, match="made from a fitted learner"):
            write_release(tmp_path / "release", other)
    assert not names(tmp_path)


def test_nothing_that_exists_is_overwritten(tmp_path, make_released):
    (tmp_path / "file").write_text("keep")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    release = write_release(tmp_path / "release", make_released()).path
    there = names(tmp_path)
    for name in sorted(there):
        with pytest.raises(DataError, match="exists; name another folder"):
            write_release(tmp_path / name, make_released("labels"))
    assert names(tmp_path) == there
    assert (tmp_path / "file").read_text() == "keep"
    assert not names(tmp_path / "empty")
    assert "noisy_count" in (release / "labels.csv").read_text()


@pytest.mark.parametrize("name", ["labels.csv", "certificate.json"])
@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()],
    ids=["full", "interrupted"],
)
def test_trouble_on_the_way_leaves_nothing(
    tmp_path, make_released, made_here, monkeypatch, name, error
):
    open_as_ever = Path.open

    def opened(path, mode="r", *args, **kwargs):
        if path.name == name and "w" in mode:
            with open_as_ever(path, mode, *args, **kwargs) as file:
                file.write(b"half")
            raise error
        return open_as_ever(path, mode, *args, **kwargs)

    def write_bytes(path, content):
        with opened(path, "wb") as file:
            file.write(content)

    monkeypatch.setattr(Path, "open", opened)
    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    with pytest.raises((ResourceError, KeyboardInterrupt)) as caught:
        write_release(tmp_path / "release", make_released())
    if isinstance(error, OSError):
        assert os.strerror(errno.ENOSPC) in str(caught.value)
        assert "\n" not in str(caught.value)
    assert not names(tmp_path)


pytest.importorskip("cryptography", reason="the extra secretballot[sign]")


@pytest.fixture(scope="module")
def published(tmp_path_factory, make_released):
    """A release folder that nobody has signed."""
    folder = tmp_path_factory.mktemp("published") / "release"
    sb.write_release(folder, make_released("labels"), without=["report"])
    return folder


@pytest.fixture
def release(published, tmp_path):
    return Path(shutil.copytree(published, tmp_path / "release"))


def made_key(folder, name="signing.pem"):
    sb.new_signing_key(folder / name)
    return folder / name


def failures(release, key):
    return [check.name for check in sb.verify_certificate(release, key=key).failures]


def test_a_signed_release_is_that_of_its_signer_alone(release, tmp_path):
    mine, other = made_key(tmp_path), made_key(tmp_path, "other.pem")
    unsigned = sb.verify_certificate(release, key=Path(f"{mine}.pub"))
    assert [check.name for check in unsigned.failures] == ["signature"]
    assert "nobody has signed" in unsigned.failures[0].detail
    mark = sb.sign_release(release, mine)
    first = (release / "certificate.sig").read_bytes()
    assert len(first) == 64
    assert sb.sign_release(release, mine) == mark
    assert (release / "certificate.sig").read_bytes() == first
    signed = sb.verify_certificate(release, key=Path(f"{mine}.pub"))
    assert signed.ok
    assert any(mark in check.detail for check in signed.checks)
    assert failures(release, Path(f"{other}.pub")) == ["signature"]
    # without a key the folder is whole, and the note says what was not looked at
    plain = sb.verify_certificate(release)
    assert plain.ok
    assert "public key of whoever must have signed" in plain.unchecked[0]
    told = [one.signature for one in (unsigned, signed, plain)]
    assert told == ["none", "checked", "not checked"]
    # any 64 bytes are taken for one, and it is said that nobody looked
    (release / "certificate.sig").write_bytes(bytes(64))
    forged = sb.verify_certificate(release)
    assert forged.ok
    assert forged.to_json()["signature"] == "not checked"
    assert "any 64 bytes look like one" in forged.unchecked[0]
    said = CliRunner().invoke(app, ["verify", str(release)])
    assert said.stdout.endswith("The certificate verifies; who signed it was not checked.\n")
    found = check_release(str(release))
    assert exit_code(found) == 0
    assert any("sig was not checked: any 64 bytes look like one" in one.detail for one in found)
    assert failures(release, Path(f"{mine}.pub")) == ["signature"]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_any_change_of_a_release_ends_its_signature(release, tmp_path):
    key = made_key(tmp_path)
    sb.sign_release(release, key)
    public, certificate = Path(f"{key}.pub"), release / "certificate.json"
    text = certificate.read_bytes()
    # the same document, written otherwise: another text than was signed
    certificate.write_text(json.dumps(json.loads(text), indent=1))
    assert failures(release, public) == ["signature"]
    certificate.write_bytes(text)
    with (release / "labels.csv").open("a") as file:
        file.write("99,1,false\n")
    assert "files" in failures(release, public)


def test_a_signature_that_is_none_is_no_file_of_a_release(release, tmp_path):
    signature, public = release / "certificate.sig", Path(f"{made_key(tmp_path)}.pub")
    for size in (0, 63, 65, 10_000):
        signature.write_bytes(b"x" * size)
        assert [check.name for check in sb.verify_certificate(release).failures] == ["files"]
        assert exit_code(check_release(str(release))) == 4
    signature.rename(tmp_path / "elsewhere")
    for make in (signature.mkdir, lambda: signature.symlink_to(tmp_path / "elsewhere")):
        make()
        assert failures(release, public) == ["signature", "files"]
        assert exit_code(check_release(str(release))) == 4
        if signature.is_dir():
            signature.rmdir()


def test_openssl_reads_keys_and_signatures_and_makes_keys(release, tmp_path):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    key = made_key(tmp_path)
    sb.sign_release(release, key)
    where = ["-in", release / "certificate.json", "-sigfile", release / "certificate.sig"]
    words = [openssl, "pkeyutl", "-verify", "-pubin", "-inkey", f"{key}.pub", "-rawin", *where]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 0
    theirs = tmp_path / "theirs.pem"
    subprocess.run([openssl, "genpkey", "-algorithm", "ed25519", "-out", theirs], check=True)
    theirs.chmod(0o600)
    public = tmp_path / "theirs.pub"
    subprocess.run([openssl, "pkey", "-in", theirs, "-pubout", "-out", public], check=True)
    sb.sign_release(release, theirs)
    assert sb.verify_certificate(release, key=public).ok
    rsa = tmp_path / "rsa.pem"
    subprocess.run([openssl, "genpkey", "-quiet", "-algorithm", "rsa", "-out", rsa], check=True)
    rsa.chmod(0o600)
    with pytest.raises(DataError, match="holds no private Ed25519 key"):
        sb.sign_release(release, rsa)


def test_a_key_is_its_owners_and_never_replaced(release, tmp_path):
    key = made_key(tmp_path)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = key.read_bytes()
    with pytest.raises(DataError, match="is there already; name a new file"):
        sb.new_signing_key(key)
    assert key.read_bytes() == before
    key.chmod(0o640)
    with pytest.raises(DataError, match=r"may be read by others; .* chmod 600 signing"):
        sb.sign_release(release, key)
    key.unlink()
    with pytest.raises(DataError, match=r"signing\.pem\.pub' is there already"):
        sb.new_signing_key(key)
    assert not key.exists()
    with pytest.raises(DataError, match="cannot be written"):
        sb.new_signing_key(tmp_path / "none" / "signing.pem")


def test_what_is_signed_is_what_was_verified(release, tmp_path, monkeypatch):
    key, certificate = made_key(tmp_path), release / "certificate.json"
    text = certificate.read_bytes()

    def verified(*given):
        found = sb.verify_certificate(*given)
        # somebody replaces the file while it is looked at
        certificate.write_bytes(text.replace(b'"durable": false', b'"durable": true'))
        return found

    monkeypatch.setattr(signing, "verify_certificate", verified)
    sb.sign_release(release, key)
    assert "signature" in failures(release, Path(f"{key}.pub"))
    certificate.write_bytes(text)
    assert failures(release, Path(f"{key}.pub")) == []


def test_nobody_vouches_for_a_release_that_does_not_verify(release, tmp_path):
    key = made_key(tmp_path)
    (release / "labels.csv").unlink()
    with pytest.raises(CertificateError, match=r"does not verify \(files: .* It was not signed"):
        sb.sign_release(release, key)
    assert not (release / "certificate.sig").exists()
