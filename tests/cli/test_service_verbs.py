"""`secretballot serve key`: made, listed, revoked; and the settings of `serve start`, refused."""

import json
from pathlib import Path

import pytest
from patients import invoke

from secretballot.exceptions import DataError, ParameterError
from secretballot.service.settings import read_settings

SETTINGS = '[datasets.registry]\nvault = "vault"\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "service.toml"
    path.write_text(SETTINGS)
    return path


def ran(config: Path, *words: str) -> tuple[int, str]:
    done = invoke("serve", "key", *words, "--config", str(config))
    return done.exit_code, done.stdout + done.stderr


def test_a_key_is_made_listed_and_revoked(config: Path) -> None:
    code, text = ran(
        config, "add", "--role", "analyst", "--dataset", "registry", "--owner", "Ana", "--json"
    )
    assert code == 0
    made = json.loads(text)
    assert made["key"].startswith(f"sb_{made['id']}_")
    listed = json.loads(ran(config, "list", "--json")[1])["keys"]
    assert [one["id"] for one in listed] == [made["id"]]
    assert "key" not in listed[0]
    assert "sha256" not in listed[0]
    assert f"{made['id']}  analyst" in ran(config, "list")[1]
    assert ran(config, "revoke", made["id"])[0] == 0
    assert "revoked 2" in ran(config, "list")[1]
    assert ran(config, "audit")[0] == 0
    code, text = ran(config, "revoke", "nobody")
    assert (code, "There is no key 'nobody'" in text) == (2, True)


def test_a_key_says_until_when_it_holds(config: Path) -> None:
    given = ("add", "--role", "analyst", "--dataset", "registry", "--expires")
    code, text = ran(config, *given, "2099-12-31")
    assert (code, "expires      2099-12-31" in text) == (0, True)
    assert "valid until 2099-12-31" in ran(config, "list")[1]
    code, text = ran(config, *given, "tomorrow")
    assert (code, "expires is 'tomorrow'; it should be a valid date" in text) == (2, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "datasets is missing"),
        ("staet = 3\n" + SETTINGS, "There is no setting 'staet'; the guide"),
        (SETTINGS + "colour = 3\n", "no setting 'datasets.registry.colour'"),
        ("[datasets.registry]\n", "vault is missing"),
        ('[datasets."a/b"]\nvault = "v"\n', "cannot be part of an address"),
        (SETTINGS + 'releases = ["a/b", "c/b"]\n', "names one twice"),
        (SETTINGS + 'sessions = "a"\n', "sessions is 'a'"),
        (SETTINGS + "[limits]\npoints = 0\n", "points is 0; it should be"),
        (SETTINGS + "[limits]\nbody_seconds = nan\n", "body_seconds is nan"),
    ],
)
def test_settings_that_cannot_be_are_named(config: Path, text: str, said: str) -> None:
    config.write_text(text)
    with pytest.raises(ParameterError) as refused:
        read_settings(config)
    assert said in str(refused.value)


def test_settings_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    for name, content in (("a.toml", b"= 1"), ("b.toml", b"\xff"), ("c.toml", b" " * (2 << 20))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=r"cannot be read|has more than"):
            read_settings(tmp_path / name)
    with pytest.raises(DataError, match=r"cannot be read|has more than"):
        read_settings(tmp_path / "missing.toml")
