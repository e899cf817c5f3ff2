"""Options under headings in the help of a verb that has many."""

from typing import Any

import typer.core

__all__ = ["DATA", "HEADINGS", "OUTPUT", "PRIVACY", "QUERIES", "TEACHERS", "GroupedCommand"]

DATA, PRIVACY, TEACHERS = "Data", "Privacy", "Method, teachers and student"
QUERIES, OUTPUT = "Queries and answers", "Output"

#: In the order in which they are shown; an option without a heading comes last.
HEADINGS = (DATA, PRIVACY, TEACHERS, QUERIES, OUTPUT)
_REST = "Other options"


class GroupedCommand(typer.core.TyperCommand):
    """A verb whose help lists the options by the heading that each of them names."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then the options of each heading, required ones first."""
        arguments: list[tuple[str, str]] = []
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in (*HEADINGS, _REST)}
        for parameter in sorted(self.get_params(ctx), key=lambda one: not one.required):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                arguments.append(record)
            else:
                groups[getattr(parameter, "rich_help_panel", None) or _REST].append(record)
        for heading, records in {"Arguments": arguments, **groups}.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)
