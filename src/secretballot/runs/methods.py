"""Which method a run of learning takes: as asked, as it was begun, or by what was asked for."""

from collections.abc import Collection
from pathlib import Path

from secretballot._validation import LEARN_METHODS, check_choice, name_part
from secretballot.exceptions import ParameterError
from secretballot.runs.folder import begun_description
from secretballot.runs.learn import VOTES
from secretballot.runs.records import MOMENTS, RECORD_VOTES

AUTO = "auto"
_METHODS = (MOMENTS, VOTES, RECORD_VOTES)  # in the order in which auto takes them
_VOTING = (
    *("teachers", "mechanism", "max_abstentions", "threshold", "max_answers", "estimate_epsilon"),
    *(
        "release",
        "strategy",
        "round_size",
        "teacher",
        "abstentions",
        "jobs",
        "engine",
        "send_shards",
    ),
)

#: Settings that not all methods have, and the methods that have them.
_OWN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_VOTING, (VOTES,)),
    "plan": (MOMENTS, VOTES),
    "queries": (VOTES, RECORD_VOTES),
    "votes_per_record": (RECORD_VOTES,),
    "positive_rate": (MOMENTS,),
    "class_weight": (MOMENTS,),
}
#: Settings of votes that numbers, and several labels, have too.
_OF_TABLES = ("teachers", "queries", "teacher", "release")
#: Settings that only they have, and what they are of.
_OF_KINDS = {
    "statistic": "a number (--bounds)",
    "rank": "a number (--bounds)",
    "ballot": "several labels",
    "most_named": "several labels",
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
        return fitting[0], f"{_option_name(telling)} is an option of {_OF[fitting[0]]}"
    if delta is not None and not delta > 0:
        return VOTES, "delta is 0, and noisy sums need more"
    return (
        MOMENTS,
        "records are given, and no option of voting (for teachers on shards: --method votes)",
    )


def refuse_options_of_classes(method: str, given: Collection[str], kind: str) -> None:
    """Refuse what does not go with the target of a run.

    Parameters
    ----------
    method : str
        As it was asked for.
    given : collection of str
        Names of the settings that somebody gave.
    kind : {"class", "number", "labels"}

    Raises
    ------
    ParameterError
        Naming the first setting that goes with another target.
    """
    if kind == "class":
        for name, of in _OF_KINDS.items():
            if name in given:
                raise ParameterError(
                    name_part(name), f" goes with {of}, and the target is a class; leave it out."
                )
        return
    what, verb = ("a number", "is") if kind == "number" else ("several labels", "are")
    if check_choice("method", method, LEARN_METHODS) not in (AUTO, VOTES):
        learner = "Regressor" if kind == "number" else "Classifier"
        raise ParameterError(
            name_part("method"),
            f" is {method}, and here {what} can be learnt by votes alone; leave it out, or use"
            f" RecordMoments{learner} from Python.",
        )
    for name in _OWN:
        if name in given and name not in _OF_TABLES:
            raise ParameterError(
                name_part(name),
                f" goes with one target of classes, and {what} {verb} named; leave it out.",
            )


def _no_method_words(own: Collection[str]) -> str:
    """Return that no method has all of these settings, naming two that exclude each other."""
    first, second = next(
        (one, other) for one in own for other in own if not set(_OWN[one]) & set(_OWN[other])
    )
    return (
        f"{_option_name(first)} goes with --method {' or '.join(_OWN[first])} alone, and"
        f" {_option_name(second)} with --method {' or '.join(_OWN[second])}; leave one of the two"
        " out."
    )


def _option_name(name: str) -> str:
    return f"--{name.replace('_', '-')}"
