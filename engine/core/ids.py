"""Names of things: which strings may be an id."""

MAX_ID_LENGTH = 256
"""Longest id in characters. Long enough for any client's UUID with a prefix,
short enough that an id is never a way to fill the database."""


def is_id(value: str) -> bool:
    """Whether a string may name a session, thread, run, message or call.

    Source: `agui.md` section 1: 1 to 256 characters, no control characters.
    """
    return 0 < len(value) <= MAX_ID_LENGTH and not any(
        character < " " or "\x7f" <= character <= "\x9f" for character in value
    )
