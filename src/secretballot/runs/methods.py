"""Which method a run of learning takes: as asked, as it was begun, or by what was asked for."""

from collections.abc import Collection
from pathlib import Path

from secretballot._validation import LEARN_METHODS, check_choice, name_part
from secretballot.exceptions import ParameterError
from secretballot.runs.folder import begun_description
from secretballot.runs.learn import VOTES
from secretballot.runs.records import MOMENTS, RECORD_VOTES

__all__ = ["AUTO", "method_of_run"]

AUTO = "auto"
_METHODS = (MOMENTS, VOTES, RECORD_VOTES)  # in the order in which auto takes them
_VOTING = (
    *("teachers", "aggregator", "max_unstable", "threshold", "max_answers", "estimate_epsilon"),
    *("release", "strategy", "round_size", "teacher", "abstentions", "jobs", "engine"),
)

#: Settings that not all methods have, and the methods that have them.
_OWN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_VOTING, (VOTES,)),
    "plan": (MOMENTS, VOTES),
    "queries": (VOTES, RECORD_VOTES),
    "votes_per_record": (RECORD_VOTES,),
    "class_weight": (MOMENTS,),
    "positive_rate": (MOMENTS,),
    "budget_column": (MOMENTS,),
    "group_budgets": (MOMENTS,),
    "groups_are_public": (MOMENTS,),
}
_OF = {VOTES: "voting", RECORD_VOTES: "votes of records", MOMENTS: "moments"}


def method_of_run(
    asked: str,
    given: Collection[str],
    delta: float | None,
    out: Path | None = None,
    planned: str | None = None,
) -> tuple[str, str]:
    """Return the method of a run, and why it is that one, in a few words.

    Parameters
    ----------
    asked : {"auto", "moments", "votes", "record-votes"}
    given : collection of str
        Names of the settings that somebody gave, rather than left to their defaults.
    delta : float or None
    out : Path, optional
        Folder of the run: one that was begun there goes on with its method.
    planned : str or None
        Method that a plan recommends, where one is given.

    Raises
    ------
    ParameterError
        If a setting of another method was given with the one that was asked for, or settings that
        no method has together.
    """
    own = [name for name in _OWN if name in given]
    if check_choice("method", asked, LEARN_METHODS) != AUTO:
        for name in own:
            if asked not in _OWN[name]:
                raise ParameterError(
                    name_part(name),
                    f" goes with --method {' or '.join(_OWN[name])} alone, and --method {asked} was"
                    " asked for; leave one of the two out.",
                )
        return asked, "as asked"
    fitting = [method for method in _METHODS if all(method in _OWN[name] for name in own)]
    if not fitting:
        raise ParameterError(_no_method_words(own))
    begun = None if out is None else begun_description(out).get("method")
    if begun in fitting:
        return begun, "the run in this folder was begun so"
    if planned in fitting and (planned == VOTES or own == ["plan"]):
        return planned, "the plan recommends it"
    if own:
        telling = min(own, key=lambda name: len(_OWN[name]))  # the first that leaves least choice
        return fitting[0], f"{_option(telling)} is an option of {_OF[fitting[0]]}"
    if delta is not None and not delta > 0:
        return VOTES, "delta is 0, and noisy sums need more"
    return (
        MOMENTS,
        "records are given, and no option of voting (for teachers on shards: --method votes)",
    )


def _no_method_words(own: Collection[str]) -> str:
    """Return that no method has all of these settings, naming two that exclude each other."""
    first, second = next(
        (one, other) for one in own for other in own if not set(_OWN[one]) & set(_OWN[other])
    )
    return (
        f"{_option(first)} goes with --method {' or '.join(_OWN[first])} alone, and"
        f" {_option(second)} with --method {' or '.join(_OWN[second])}; leave one of the two out."
    )


def _option(name: str) -> str:
    if name == "group_budgets":  # an option for each
        return "--group-budget"
    return f"--{name.replace('_', '-')}"
