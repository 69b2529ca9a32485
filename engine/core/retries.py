"""Whether a failed attempt is followed by another, and when; and who may say so."""

from datetime import datetime, timedelta

from engine.core.env import Env, RetryPolicy
from engine.core.events import Retry
from engine.core.worker import RetryOverride

LONGEST = 366 * 24 * 3600
"""Seconds an override may name: more is a mistake in its unit."""


def retry_of(
    policy: RetryPolicy,
    *,
    attempt: int,
    expires: datetime | None,
    retryable: bool,
    env: Env,
    at_once: bool = False,
) -> Retry | None:
    """Return the next attempt after `attempt` failed, or `None` when that was the last.

    1. The error is not retryable, or the attempts are used up: no.
    2. The next attempt would start after the total time: no.
    3. Else after a backoff of `min(base**n, max)` seconds with full jitter, n being the
       number of the next attempt; `at_once` skips the wait (the process restarted).

    Source: `protocol.md` section 8.
    """
    if not retryable or attempt >= policy.attempts:
        return None
    ceiling = _ceiling(policy, attempt + 1)
    wait = timedelta() if at_once else timedelta(seconds=ceiling * env.jitter())
    at = env.now + wait
    if expires is not None and at >= expires:
        return None
    deadline = at + policy.run
    return Retry(
        attempt=attempt + 1,
        at=at,
        deadline=min(deadline, expires) if expires is not None else deadline,
    )


def _ceiling(policy: RetryPolicy, attempt: int) -> float:
    try:
        return min(policy.base**attempt, policy.max_backoff_s)
    except OverflowError:  # more than a number can hold is more than the maximum
        return policy.max_backoff_s


def problem_of(override: RetryOverride | None) -> tuple[str, str] | None:
    """Return what is wrong with an override, field and reason, or `None`."""
    if override is None:
        return None
    if override.attempts is not None and override.attempts < 1:
        return "attempts", "at least one"
    for name in ("run", "total", "base"):
        said = getattr(override, name)
        if said is not None and not 0 < said <= LONGEST:
            return name, f"more than 0 and at most {LONGEST}"
    if override.max is not None and not 0 <= override.max <= LONGEST:
        return "max", f"0 to {LONGEST}"
    return None
