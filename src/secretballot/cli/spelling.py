"""From the names of Python to those of the command line, in the sentences of the rooms below."""

import re

__all__ = ["as_options"]

# Parameters by the name that messages give them, and the option that sets them.
_OPTIONS = {
    "n_teachers": "--teachers",
    "n_queries": "--queries",
    "n_records": "--records",
    "n_cover": "--points",
    "n_jobs": "--jobs",
    "random_state": "--seed",
    "max_unstable": "--max-unstable",
    "round_size": "--round-size",
    "estimate_epsilon": "--estimate-epsilon",
    "unit": "--unit-kind",
    "neighbours": "--neighbours",
    **{
        name: f"--{name}"
        for name in (
            *(
                "epsilon",
                "delta",
                "dataset",
                "composition",
                "teachers",
                "queries",
                "records",
                "points",
                "jobs",
                "seed",
            ),
            *(
                "aggregator",
                "release",
                "strategy",
                "teacher",
                "student",
                "classes",
                "abstentions",
                "hypotheses",
            ),
            *("public", "like", "curve", "target", "header", "kind"),
            *(
                "runs",
                "draws",
                "confidence",
                "canaries",
                "share",
                "promise",
                "row",
                "steps",
                "timeout",
            ),
        )
    },
}
_NAMES = "|".join(sorted(_OPTIONS, key=len, reverse=True))
_NO_ENGLISH = "|".join(sorted((name for name in _OPTIONS if "_" in name), key=len, reverse=True))
_PLACES = re.compile(
    rf"(?P<set>\b(?P<name>{_NAMES})=(?:'(?P<word>[^'\s]*)'|(?P<number>[\w.+-]*\w)))"
    r"|(?P<quoted>(?<!\w)'[^']*'|\"[^\"]*\"|\S*/\S*)"
    rf"|(?P<first>^(?:{_NAMES})(?= (?:is|are|has)\b))"
    rf"|(?P<bare>(?<![\w-])(?:{_NO_ENGLISH})(?![\w-]))"
)


def as_options(sentence: str) -> str:
    """Return a sentence about parameters as one about options: ``release='labels'`` becomes
    ``--release labels``.

    What stands in quotes, such as the name of a column, and paths stay as they are, and so do words
    that are English unless they begin the sentence as what it is about.
    """
    return _PLACES.sub(_in_options, sentence)


def _in_options(found: re.Match[str]) -> str:
    if found["quoted"] is not None:
        return found["quoted"]
    if found["set"] is not None:
        value = found["number"] if found["word"] is None else found["word"]
        return f"{_OPTIONS[found['name']]} {value}"
    return _OPTIONS[found[0]]
