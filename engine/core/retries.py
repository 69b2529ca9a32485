"""Whether a failed attempt is followed by another, and when."""

from datetime import datetime, timedelta

from engine.core.env import Env, RetryPolicy
from engine.core.events import Retry


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
    ceiling = min(policy.base ** (attempt + 1), policy.max_backoff_s)
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
