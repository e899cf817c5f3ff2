"""Signed releases: by whom, of what, and what is refused."""

import json
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import secretballot as sb
from secretballot.cli import app
from secretballot.exceptions import CertificateError, DataError
from secretballot.publishing import signing
from secretballot_verify import check_release, exit_code

pytest.importorskip("cryptography", reason="the extra secretballot[sign]")

PASSPHRASE = "SECRETBALLOT_KEY_PASSPHRASE"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, make_released: Any) -> Path:
    """A release folder that nobody has signed."""
    folder = tmp_path_factory.mktemp("published") / "release"
    sb.write_release(folder, make_released("labels"), without=["report"])
    return folder


@pytest.fixture
def release(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "release"))


def made_key(folder: Path, name: str = "signing.pem") -> Path:
    sb.new_signing_key(folder / name)
    return folder / name


def failures(release: Path, key: Path) -> list[str]:
    return [check.name for check in sb.verify_certificate(release, key=key).failures]


def test_a_signed_release_is_that_of_its_signer_alone(release: Path, tmp_path: Path) -> None:
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


def test_any_change_of_a_release_ends_its_signature(release: Path, tmp_path: Path) -> None:
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


def test_a_signature_that_is_none_is_no_file_of_a_release(release: Path, tmp_path: Path) -> None:
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


def test_openssl_reads_keys_and_signatures_and_makes_keys(release: Path, tmp_path: Path) -> None:
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


def test_a_key_is_its_owners_and_never_replaced(release: Path, tmp_path: Path) -> None:
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


def test_a_passphrase_protects_the_key(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSPHRASE, "correct horse")
    key = made_key(tmp_path)
    assert b"ENCRYPTED" in key.read_bytes()
    sb.sign_release(release, key)
    assert sb.verify_certificate(release, key=Path(f"{key}.pub")).ok
    for wrong in ("battery staple", ""):
        monkeypatch.setenv(PASSPHRASE, wrong)
        with pytest.raises(DataError, match=f"another passphrase than {PASSPHRASE} has"):
            sb.sign_release(release, key)


def test_what_is_signed_is_what_was_verified(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = made_key(tmp_path), release / "certificate.json"
    text = certificate.read_bytes()

    def verified(*given: Any) -> sb.report.Verification:
        found = sb.verify_certificate(*given)
        # somebody replaces the file while it is looked at
        certificate.write_bytes(text.replace(b'"durable": false', b'"durable": true'))
        return found

    monkeypatch.setattr(signing, "verify_certificate", verified)
    sb.sign_release(release, key)
    assert "signature" in failures(release, Path(f"{key}.pub"))
    certificate.write_bytes(text)
    assert failures(release, Path(f"{key}.pub")) == []


def test_nobody_vouches_for_a_release_that_does_not_verify(release: Path, tmp_path: Path) -> None:
    key = made_key(tmp_path)
    (release / "labels.csv").unlink()
    with pytest.raises(CertificateError, match=r"does not verify \(files: .* It was not signed"):
        sb.sign_release(release, key)
    assert not (release / "certificate.sig").exists()
