"""Write the table of settings into the reference page, from their declarations.

python tools/settings_table.py [--check]
"""

import sys
from pathlib import Path
from typing import Any

from secretballot.runs.spec import METHOD_SPECS, METHODS, RunSpec

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "command-line.md"
BEGIN, END = "<!-- settings: written by tools/settings_table.py -->\n", "<!-- end of settings -->\n"


def table() -> str:
    """Return the table: name, default, meaning, mark."""
    lines, seen = ["| setting | default | meaning |\n|---|---|---|\n"], set()
    for group, part in RunSpec.model_fields.items():
        models: Any = (
            [METHOD_SPECS[one] for one in METHODS] if group == "method" else [part.annotation]
        )
        for model in models if group != "forecast" else ():
            for key, field in model.model_fields.items():
                extra: Any = field.json_schema_extra
                name = field.alias or key
                if extra is None or name in seen:
                    continue
                seen.add(name)
                shown = f"`--{name.replace('_', '-')}`" if extra["panel"] else f"`{name}`"
                shown = f"`{name.upper()}`" if name in ("private", "public") else shown
                usual = None if field.is_required() else field.default
                default = "" if usual in (None, ()) else f"`{usual}`"
                mark = "" if extra["mark"] == "identity" else f" *{extra['mark'].capitalize()}.*"
                lines.append(f"| {shown} | {default} | {field.description}{mark} |\n")
    return "".join(lines)


def main() -> int:
    """Write the page, or say that it is behind."""
    text = PAGE.read_text()
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    new = text[:start] + table() + text[end:]
    if "--check" in sys.argv and new != text:
        print(f"{PAGE.name} is behind the declarations; run python tools/settings_table.py")
        return 1
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
