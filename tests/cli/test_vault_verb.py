"""`secretballot vault`, and --vault-key of the verbs that make vaults."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from secretballot.cli import app
from secretballot.encryption import unlocked


@pytest.fixture(autouse=True)
def each_command_is_a_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SECRETBALLOT_VAULT_KEY", raising=False)
    np.save("votes.npy", np.tile([3, 97], (60, 1)))
    new_process()


def new_process() -> None:
    unlocked._open.clear()
    unlocked._sources.clear()


def say(*words: str, env: dict[str, str] | None = None) -> Result:
    new_process()
    return CliRunner().invoke(app, [*words], env=env)


def label(*more: str, env: dict[str, str] | None = None) -> Result:
    words = ["label", "--votes", "votes.npy", "--kind", "counts", "--epsilon", "2"]
    return say(*words, "--delta", "1e-5", "--queries", "20", "--out", "run", *more, env=env)


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(result: Result, said: str) -> None:
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert "\n" not in result.stderr.strip()


def test_a_run_is_encrypted_from_its_first_file_on_and_goes_on_with_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done(say("vault", "new-key", "k"))
    key = Path("k").read_text().strip()
    # the run breaks off once it has paid
    with monkeypatch.context() as breaking:
        breaking.setattr("secretballot.runs.label.publish", broken)
        assert label("--vault-key", "k").exit_code == 2
    assert Path("run/vault/run.json").read_bytes()[:7] == b"SBVAULT"
    refused(label(), "is encrypted with the key")
    Path("text").write_text("no key")
    Path("text").chmod(0o600)
    refused(label("--vault-key", "text"), "is no key")
    done(say("vault", "new-key", "other"))
    refused(label("--vault-key", "other"), "gives the key")
    document = json.loads(done(label("--json", env={"SECRETBALLOT_VAULT_KEY": "k"})))
    assert document["resumed"]
    status = done(say("vault", "status", "run"))
    assert "encrypted    yes" in status
    assert "run.json" not in status
    # found again, with the key and not without
    done(label("--vault-key", "k"))
    refused(label(), "is encrypted with the key")
    done(say("verify", "run"))
    for path in Path("run").rglob("*"):
        assert not path.is_file() or key.encode() not in path.read_bytes()


def broken(*_: object, **__: object) -> None:
    from secretballot.exceptions import ResourceError

    raise ResourceError("The disk is full.")


def test_a_vault_is_encrypted_rekeyed_read_and_decrypted_by_commands() -> None:
    vault = Path("run/vault")
    (vault / "streams").mkdir(parents=True)
    (vault / "run.json").write_text('{"some": "thing"}')
    (vault / "streams" / "x.state").write_text("secret")
    for name in ("k", "new"):
        done(say("vault", "new-key", name))
    refused(say("vault", "new-key", "k"), "may be the only copy")
    assert done(say("vault", "status", "run")) == "encrypted    no\n"
    refused(say("vault", "encrypt", "run"), "No key was given")
    refused(say("vault", "encrypt", "nowhere", "--vault-key", "k"), "There is no vault")
    refused(label("--vault-key", "k"), "not encrypted; encrypt them")
    refused(
        say("vault", "encrypt", "run", "--vault-key", Path("k").read_text().strip()),
        "A key was given in the place of its source",
    )
    assert "2 encrypted" in done(say("vault", "encrypt", "run", "--vault-key", "k"))
    assert b"secret" not in (vault / "streams" / "x.state").read_bytes()
    read = ["vault", "read", "run/vault/run.json", "--vault-key"]
    assert done(say(*read, "k")) == '{"some": "thing"}'
    done(say("vault", "rekey", "run", "--vault-key", "k", "--new-key", "new"))
    refused(say(*read, "k"), "gives the key")
    assert done(say(*read, "new")) == '{"some": "thing"}'
    document = json.loads(done(say("vault", "decrypt", "run", "--vault-key", "new", "--json")))
    assert document["key_id"] is None
    assert set(document["plain"]) == {"run.json", "streams/x.state"}
    assert (vault / "streams" / "x.state").read_text() == "secret"
