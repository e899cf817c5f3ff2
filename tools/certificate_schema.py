"""Write the JSON Schema of certificates into the docs, from the models that read them.

python tools/certificate_schema.py [--check]
"""

import json
import sys
from pathlib import Path
from typing import Any

from secretballot.report.certificate_models import Certificate

FILE = Path(__file__).parent.parent / "docs" / "reference" / "certificate.schema.json"


def schema() -> dict[str, Any]:
    """Return the schema of a certificate."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return head | Certificate.model_json_schema()


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
