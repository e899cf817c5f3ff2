"""`secretballot completion`: the script is run in a real shell, and knows every verb and option."""

import shutil
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from secretballot.cli import app
from secretballot.cli.completion import verbs_of

BASH = shutil.which("bash")


def script(shell: str) -> str:
    result = CliRunner().invoke(app, ["completion", shell])
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "script"
    path.write_text(script("bash"))
    return path


def completed(path: Path, *words: str) -> list[str]:
    """Return what bash offers when TAB is pressed in the last of these words."""
    typed = " ".join(f"'{word}'" for word in ("secretballot", *words))
    lines = (
        f"source {path}",
        f"COMP_WORDS=({typed})",
        f"COMP_CWORD={len(words)}",
        "_secretballot",
        r'printf "%s\n" "${COMPREPLY[@]}"',
    )
    assert BASH is not None
    run = subprocess.run(
        [BASH, "--norc", "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert not run.stderr
    return run.stdout.split()


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["le"], ["learn", "ledger"]),
        (["ledger", "c"], ["check", "copy", "create"]),
        (["learn", "a.csv", "b.csv", "--eps"], ["--epsilon"]),
        (["learn", "--method", "re"], ["record-votes"]),
        (["ledger", "create", "x", "--unit-kind", ""], ["record", "user", "label"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        # files, which the shell offers where no word is
        (["learn", ""], []),
        (["learn", "--out", ""], []),
        (["learn", "--ledger", "--o"], []),
        # a file that is called like a verb, and a verb after another one, change nothing
        (["learn", "plan", "--curv"], []),
        (["verify", "ledger", "--ind"], ["--independent"]),
    ],
    ids=" ".join,
)
def test_bash_offers_what_may_come_next(
    bash_script: Path, words: list[str], offered: list[str]
) -> None:
    assert completed(bash_script, *words) == offered


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_bash_knows_every_verb_and_every_option(bash_script: Path) -> None:
    verbs = verbs_of(get_command(app))
    assert {each.path for each in verbs} >= {("learn",), ("ledger", "create"), ("completion",)}
    for each in verbs:
        assert sorted(completed(bash_script, *each.path, "-")) == sorted(each.options)


def test_zsh_reads_the_script_of_bash_by_its_own_means() -> None:
    text = script("zsh")
    assert "bashcompinit" in text
    assert text.endswith(script("bash").partition("\n")[2])


def test_fish_has_a_line_for_every_option() -> None:
    lines = script("fish").splitlines()
    for each in verbs_of(get_command(app)):
        for option in each.options:
            named = [line for line in lines if f" -l {option[2:]} " in line]
            assert any(all(word in line for word in each.path) for line in named), option
    assert all(line.startswith(("complete -c secretballot ", "#")) for line in lines)
    method = next(line for line in lines if "-l method" in line)
    assert "-r -f -a 'auto moments votes record-votes'" in method


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_shell_itself_finds_no_fault(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"needs {shell}")
    (tmp_path / "script").write_text(script(shell))
    subprocess.run([program, "-n", str(tmp_path / "script")], check=True)


def test_another_shell_is_refused_in_a_sentence() -> None:
    result = CliRunner().invoke(app, ["completion", "tcsh"])
    assert result.exit_code == 2
    assert "bash" in result.stderr
    assert "fish" in result.stderr
