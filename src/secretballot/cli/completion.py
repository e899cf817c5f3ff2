"""`secretballot completion`: a script by which a shell completes verbs, options and their values.

The script holds all words itself, so that a key press starts no Python.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

__all__ = ["Verb", "completion", "script_of", "verbs_of"]

Shell = Literal["bash", "zsh", "fish"]

_BASH = """\
# completion of secretballot for bash: source this file from ~/.bashrc
_secretballot() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
    local verb="" word words=""
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$verb:$word" in
{steps}
        esac
    done
    COMPREPLY=()
    case "$verb:$before" in
{values}
{takers}
    esac
    if [ -z "$words" ]; then
        case "$current:$verb" in
{options}
{arguments}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _secretballot secretballot
"""
_ZSH = """\
# completion of secretballot for zsh: source this file from ~/.zshrc
autoload -U +X compinit && compinit
autoload -U +X bashcompinit && bashcompinit
"""


def completion(
    ctx: typer.Context,
    shell: Annotated[Shell, typer.Argument(help="Whose script to print.")],
) -> None:
    """Print a script that completes verbs, options and their values in a shell.

    \b
    Example: secretballot completion bash > ~/.secretballot-completion
             echo 'source ~/.secretballot-completion' >> ~/.bashrc
    """
    print(script_of(shell, verbs_of(ctx.find_root().command)), end="")


@dataclass(frozen=True)
class Verb:
    """What can be typed after a verb.

    Attributes
    ----------
    path : tuple of str
        The words that lead to it; none for the program itself.
    help : str
        One line.
    verbs : tuple of str
        Verbs below it.
    arguments : tuple of str
        Words that may come next without being options: verbs, or those that an argument may be.
    options : dict of str to str
        One line of help by option.
    values : dict of str to tuple of str, or None
        What an option takes: one of these words, or anything; an option that takes nothing is not
        among them.
    """

    path: tuple[str, ...]
    help: str
    verbs: tuple[str, ...]
    arguments: tuple[str, ...]
    options: dict[str, str]
    values: dict[str, tuple[str, ...] | None]


def verbs_of(command: Any, path: tuple[str, ...] = ()) -> list[Verb]:
    """Return a command and all below it."""
    options: dict[str, str] = {}
    values: dict[str, tuple[str, ...] | None] = {}
    arguments: tuple[str, ...] = ()
    # the annotations of the verb itself: how typer keeps a type differs between its versions
    hints = {} if command.callback is None else get_type_hints(command.callback)
    for parameter in command.params:
        if parameter.param_type_name != "option":
            arguments += _literals_of(hints.get(parameter.name)) or ()
            continue
        for name in (one for one in parameter.opts if one.startswith("--")):
            options[name] = _first_line(parameter.help)
            if not parameter.is_flag:
                values[name] = _literals_of(hints.get(parameter.name))
    options["--help"] = "Show this message and exit."
    below = dict(getattr(command, "commands", {}))
    help_text = _first_line(command.get_short_help_str(limit=80))
    words = (*below, *arguments)
    found = [Verb(path, help_text, tuple(below), words, options, values)]
    for name, each in below.items():
        found += verbs_of(each, (*path, name))
    return found


def script_of(shell: Shell, verbs: list[Verb]) -> str:
    """Return the script of a shell."""
    if shell == "fish":
        return "\n".join(_fish_lines(verbs)) + "\n"
    script = _BASH.format(
        steps="\n".join(_step_lines(verbs)),
        values="\n".join(_value_cases(verbs)),
        takers="\n".join(_taker_cases(verbs)),
        options="\n".join(
            f'            -*:"{" ".join(each.path)}") words="{" ".join(each.options)}" ;;'
            for each in verbs
        ),
        # where no word is listed, the shell offers files
        arguments="\n".join(
            f'            *:"{" ".join(each.path)}") words="{" ".join(each.arguments)}" ;;'
            for each in verbs
            if each.arguments
        ),
    )
    if shell == "bash":
        return script
    return _ZSH + script.partition("\n")[2]


def _step_lines(verbs: list[Verb]) -> Iterator[str]:
    """Yield how the words so far lead from verb to verb; a file may be called like a verb."""
    for each in verbs:
        for name in each.verbs:
            place = " ".join((*each.path, name))
            yield f'            "{" ".join(each.path)}:{name}") verb="{place}" ;;'


def _value_cases(verbs: list[Verb]) -> Iterator[str]:
    for each in verbs:
        for option, words in each.values.items():
            if words:
                yield f'        "{" ".join(each.path)}:{option}") words="{" ".join(words)}" ;;'


def _taker_cases(verbs: list[Verb]) -> Iterator[str]:
    """Yield the options after which a file, a number or a name stands: the shell offers files."""
    for each in verbs:
        taking = [option for option, words in each.values.items() if not words]
        if taking:
            yield (
                "        "
                + "|".join(f'"{" ".join(each.path)}:{one}"' for one in taking)
                + (") return ;;")
            )


def _fish_lines(verbs: list[Verb]) -> Iterator[str]:
    yield "# completion of secretballot for fish: save it as"
    yield "# ~/.config/fish/completions/secretballot.fish"
    by_path = {each.path: each for each in verbs}
    for each in verbs:
        seen = [f"__fish_seen_subcommand_from {word}" for word in each.path]
        if each.verbs:
            among = " ".join(each.verbs)
            here = [*seen, f"not __fish_seen_subcommand_from {among}"]
            for name in each.verbs:
                text = _fish_quoted(by_path[(*each.path, name)].help)
                yield (
                    f"complete -c secretballot -f -n {_fish_quoted('; and '.join(here))}"
                    f" -a {name} -d {text}"
                )
        else:
            here = seen
            if each.arguments:
                yield (
                    f"complete -c secretballot -f -n {_fish_quoted('; and '.join(here))}"
                    f" -a {_fish_quoted(' '.join(each.arguments))}"
                )
        for option, text in each.options.items():
            # an option that takes a value of no list may take a file
            words = each.values.get(option)
            takes = (
                ""
                if option not in each.values
                else " -r" + (f" -f -a {_fish_quoted(' '.join(words))}" if words else " -F")
            )
            yield (
                f"complete -c secretballot -n {_fish_quoted('; and '.join(here))}"
                f" -l {option[2:]}{takes} -d {_fish_quoted(text)}"
            )


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _first_line(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


def _literals_of(hint: Any) -> tuple[str, ...] | None:
    """Return the words that an annotation lists, None where it lists none."""
    inside = get_args(hint)
    if get_origin(hint) is Literal:
        return tuple(str(word) for word in inside)
    found = [word for each in inside for word in _literals_of(each) or ()]
    return tuple(found) or None
