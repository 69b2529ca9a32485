"""How a server is set up."""

from dataclasses import dataclass

MAX_BODY = 8 * 1024 * 1024
"""A request's body in bytes: a long conversation with a few pictures in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of one application.

    `allow_origins` are the pages that may call it from a browser; empty: only its own.
    There are no callers yet: everybody is `owner`, which is for loopback only.
    """

    allow_origins: tuple[str, ...] = ()
    max_body: int = MAX_BODY
    tenant: str = "local"
    owner: str = "local"
