"""The rooms that are used by their own names, as in ``sb.queries.MarginSampling``."""

#: Their public classes have an example each.
PUBLIC_ROOMS = (
    "accounting",
    "audit",
    "bases",
    "data",
    "teachers",
    "hypotheses",
    "learners",
    "planning",
    "core.ledger",
    "queries",
    "released",
    "releasing",
    "report",
    "students",
    "theory",
)
#: Reached by their names too; what is in them is shown where it is used.
MORE_ROOMS = ("exceptions", "publishing", "runs", "service")
