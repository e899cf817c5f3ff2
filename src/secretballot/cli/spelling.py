"""From the names of Python to those of the command line, in the messages of the rooms below."""

from secretballot.exceptions import Argument, Parameter, SecretBallotError

#: Parameters whose option has another name.
_RENAMED = {
    "n_teachers": "--teachers",
    "bounds": "--bounds",
    "n_queries": "--queries",
    "n_records": "--records",
    "n_cover": "--points",
    "n_jobs": "--jobs",
    "random_state": "--seed",
    "unit": "--unit-kind",
}
_OF_THE_SAME_NAME = (
    "abstentions",
    "accept_unseen",
    "mechanism",
    "ballot",
    "bounds",
    "canaries",
    "check",
    "class_weight",
    "classes",
    "columns",
    "composition",
    "confidence",
    "contact",
    "controller",
    "curve",
    "dataset",
    "delta",
    "drop",
    "engine",
    "epsilon",
    "estimate_epsilon",
    "expires",
    "force",
    "header",
    "hypotheses",
    "jobs",
    "key",
    "kind",
    "like",
    "max_answers",
    "max_abstentions",
    "method",
    "minutes",
    "most_named",
    "relation",
    "plan",
    "points",
    "positive_rate",
    "promise",
    "public",
    "purpose",
    "queries",
    "rank",
    "records",
    "release",
    "round_size",
    "row",
    "runs",
    "schema",
    "seed",
    "send_shards",
    "share",
    "statistic",
    "steps",
    "strategy",
    "student",
    "target",
    "teacher",
    "teachers",
    "threshold",
    "timeout",
    "title",
    "votes_per_record",
    "without",
)
#: The option that sets each parameter, of those that have one.
OPTIONS = _RENAMED | {name: f"--{name.replace('_', '-')}" for name in _OF_THE_SAME_NAME}


def as_options(error: SecretBallotError) -> str:
    """Return the message of an error with options where it names parameters:
    ``release='labels'`` becomes ``--release labels``.

    Text stays as it is, whatever names are quoted in it.
    """
    return "".join(_as_option(part) for part in error.parts)


def _as_option(part: str | Parameter | Argument) -> str:
    if isinstance(part, str) or part.name not in OPTIONS:
        return str(part)
    option = OPTIONS[part.name]
    is_flag = isinstance(part, Argument) and part.value is True
    return option if isinstance(part, Parameter) or is_flag else f"{option} {part.value}"
