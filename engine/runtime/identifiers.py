"""Fresh ids: a prefix that says of what, and a UUIDv7, so that they sort by time."""

import uuid_utils


def new_id(prefix: str) -> str:
    """Return a fresh id such as `turn-0198c6…` (32 hex digits)."""
    return f"{prefix}-{uuid_utils.uuid7().hex}"
