"""Tables and their public schema."""

from secretballot.data.schema import Encoding, Schema

__all__ = ["Encoding", "Schema"]
