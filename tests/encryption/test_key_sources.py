"""Where keys come from, and that none of them is told."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from secretballot.encryption.key_sources import (
    VARIABLE,
    key_id_of,
    key_source,
    source_in_environment,
    write_new_key,
)
from secretballot.exceptions import ParameterError, VaultError

KEY = bytes(range(32))


def key_file(path: Path, content: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    "content",
    [KEY, KEY.hex().encode(), KEY.hex().upper().encode() + b"\n"],
    ids=["bare", "digits", "capitals"],
)
def test_every_source_gives_the_key(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = key_file(tmp_path / "vault.key", content)
    assert key_source(path).key() == key_source(str(path)).key() == KEY
    assert key_source(f"command:{sys.executable} -c 'print(\"{KEY.hex()}\")'").key() == KEY
    assert key_source(lambda: content).key() == KEY
    if b"\0" not in content:
        monkeypatch.setenv("OUR_KEY", content.decode())
        assert key_source("env:OUR_KEY").key() == KEY
    monkeypatch.setenv(VARIABLE, str(path))
    found = source_in_environment()
    assert found is not None
    assert found.key() == KEY
    monkeypatch.delenv(VARIABLE)
    assert source_in_environment() is None


def test_a_new_key_is_its_owner_s_alone_and_replaces_none(tmp_path: Path) -> None:
    names = {write_new_key(tmp_path / f"{number}.key") for number in range(5)}
    assert len(names) == 5
    assert os.stat(tmp_path / "0.key").st_mode & 0o777 == 0o600
    key = key_source(tmp_path / "0.key").key()
    assert key_id_of(key) in names
    assert key_id_of(key) not in key.hex()
    with pytest.raises(VaultError, match="there already, and may be the only copy"):
        write_new_key(tmp_path / "0.key")
    assert key_source(tmp_path / "0.key").key() == key


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_file_that_others_may_read_is_refused(mode: int, tmp_path: Path) -> None:
    path = key_file(tmp_path / "vault.key", KEY, mode)
    with pytest.raises(VaultError, match=r"others may read it; .*chmod 600"):
        key_source(path).key()


def raising() -> bytes:
    raise RuntimeError(KEY.hex())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("Missing.Key", "The key file .*/Missing.Key cannot be used .No such file"),
        (".", "no ordinary file"),
        ("env:NOT_THERE", "There is no key in the environment variable NOT_THERE"),
        ("command:false", "ended with code 1"),
        ("command:no-such-program at-all", "The command no-such-program gives no key"),
        ("command:true", "There is no key in the command true"),
        ("command:echo 00112233", "is no key; a key has 32 bytes"),
        (lambda: bytes(32), "is no key"),  # zeros are a secret that was never set
        (lambda: "text", "returns no bytes"),
        (raising, "raised RuntimeError"),
    ],
)
def test_what_gives_no_key_is_told_in_a_sentence(
    given: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(VaultError, match=said) as caught:
        key_source(given).key()
    assert KEY.hex() not in str(caught.value)
    assert caught.value.__cause__ is None
    assert "00112233" not in str(caught.value)


@pytest.mark.parametrize("given", ["", "env:", "command: ", 'command:"x', 7, None])
def test_what_names_no_source_is_refused(given: Any) -> None:
    with pytest.raises(ParameterError, match="source of a vault's key"):
        key_source(given)


@pytest.mark.parametrize("given", [KEY.hex(), f"env:{KEY.hex()}", KEY.hex() + "\n"])
def test_a_key_in_the_place_of_its_source_is_refused_and_not_quoted(given: str) -> None:
    with pytest.raises(ParameterError, match="take another key") as caught:
        key_source(given)
    assert KEY.hex() not in str(caught.value)


def test_words_of_a_command_behind_its_name_are_not_told() -> None:
    source = key_source("command:kms decrypt --token hidden")
    assert "hidden" not in repr(source) + str(source)


def test_the_list_of_processes_has_no_key(tmp_path: Path) -> None:
    path = key_file(tmp_path / "vault.key", KEY)
    vault = tmp_path / "vault"
    words = f"""
import secretballot as sb, subprocess, os
sb.unlock_vault({str(vault)!r}, {str(path)!r})
print(open('/proc/self/cmdline').read(), open('/proc/self/environ').read())
"""
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert str(path) in done.stdout
    assert KEY.hex() not in done.stdout + done.stderr
