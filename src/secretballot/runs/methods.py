"""Which method a run of learning takes: as asked, as it was begun, or by what was asked for."""

from collections.abc import Collection
from pathlib import Path

from secretballot._validation import LEARN_METHODS, check_choice, name_part
from secretballot.exceptions import ParameterError
from secretballot.runs.folder import begun_description
from secretballot.runs.learn import VOTES
from secretballot.runs.moments import MOMENTS

__all__ = ["AUTO", "method_of_run"]

AUTO = "auto"

#: Settings that one method alone has, by the name of the method.
_OWN = {
    VOTES: (
        *("plan", "teachers", "queries", "aggregator", "max_unstable", "estimate_epsilon"),
        *("release", "strategy", "round_size", "teacher", "abstentions", "jobs"),
    ),
}


def method_of_run(
    asked: str, given: Collection[str], delta: float | None, out: Path
) -> tuple[str, str]:
    """Return the method of a run, and why it is that one, in a few words.

    Parameters
    ----------
    asked : {"auto", "moments", "votes"}
    given : collection of str
        Names of the settings that somebody gave, rather than left to their defaults.
    delta : float or None
    out : Path
        Folder of the run: one that was begun there goes on with its method.

    Raises
    ------
    ParameterError
        If a setting of another method was given with the one that was asked for.
    """
    if check_choice("method", asked, LEARN_METHODS) != AUTO:
        _refuse_settings_of_others(asked, given)
        return asked, "as asked"
    begun = begun_description(out).get("method")
    foreign = [name for name in _OWN[VOTES] if name in given]
    if foreign:
        return VOTES, f"{_option(foreign[0])} is an option of voting"
    if begun in LEARN_METHODS:
        return begun, "the run in this folder was begun so"
    if delta is not None and not delta > 0:
        return VOTES, "delta is 0, and noisy sums need more"
    return (
        MOMENTS,
        "records are given, and no option of voting (for teachers on shards: --method votes)",
    )


def _refuse_settings_of_others(method: str, given: Collection[str]) -> None:
    for other, own in _OWN.items():
        for name in own:
            if other != method and name in given:
                raise ParameterError(
                    name_part(name),
                    f" goes with --method {other} alone, and --method {method} was asked for; leave"
                    " one of the two out.",
                )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
