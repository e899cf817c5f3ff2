"""Write the JSON Schema of certificates into the docs, from the models that read them.

python tools/certificate_schema.py [--check]
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, create_model

from secretballot.core.events import AnyEvent
from secretballot.core.mechanisms import AnyMechanism
from secretballot.core.types import ScoreShape, SumShape, VoteShape
from secretballot.report.certificate.methods import AnySettings
from secretballot.report.certificate.models import Certificate, Choice

FILE = Path(__file__).parent.parent / "docs" / "reference" / "certificate.schema.json"


def schema() -> dict[str, Any]:
    """Return the schema: a certificate, with the models of the core where it holds objects."""
    drawn: dict[str, Any] = {
        "mechanism": (AnyMechanism, ...),
        "shape": (VoteShape | SumShape | ScoreShape, ...),
        "public": (AnySettings, ...),
        "events": (Annotated[list[AnyEvent], Field(min_length=1, max_length=1)], ...),
    }
    choice = create_model("Choice", __base__=Choice, __doc__=Choice.__doc__, **drawn)
    choices = (Annotated[list[choice], Field(max_length=100)], None)  # type: ignore[valid-type]
    whole = create_model(
        "Certificate", __base__=Certificate, __doc__=Certificate.__doc__, **drawn, choices=choices
    )
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return head | whole.model_json_schema()


def main() -> int:
    """Write the file, or say that it is behind."""
    new = json.dumps(schema(), indent=1) + "\n"
    if "--check" in sys.argv and (not FILE.exists() or FILE.read_text() != new):
        print(f"{FILE.name} is behind the models; run python tools/certificate_schema.py")
        return 1
    FILE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
