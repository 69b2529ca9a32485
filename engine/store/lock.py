"""One engine a database file, held by the operating system's lock on a file beside it.

The lock goes with the process, `kill -9` included. What the file says is a hint for
people and for the command line, true while the lock is held; the file itself stays,
because removing a locked file would let two engines hold two files of one name.
"""

import fcntl
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.core.errors import EngineLocked, StorageUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who holds a database: its process, and where it serves (`None`: it does not yet)."""

    pid: int
    url: str | None = None

    def __str__(self) -> str:
        return f"process {self.pid}" + (f" at {self.url}" if self.url else "")


def lock_path(database: Path) -> Path:
    """Return the lock's file. Links are followed: two names of one file have one lock."""
    resolved = database.resolve()
    return resolved.with_name(resolved.name + ".lock")


def read_owner(database: Path) -> Owner | None:
    """Return who wrote itself into the lock's file last.

    True only while the lock is held: ask after `EngineLocked`, not instead of locking.
    """
    try:
        said: Any = json.loads(lock_path(database).read_text())
        return Owner(pid=int(said["pid"]), url=said["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def holder(database: Path) -> Owner | None:
    """Return who holds a database at this moment, without taking it.

    Whoever released it has also wiped out what it wrote, so only a name that stands there
    is put to the test: a killed process leaves its name, but not its lock.
    """
    owner = read_owner(database)
    if owner is None:
        return None
    try:
        file = os.open(lock_path(database), os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return owner
    except OSError:
        return None
    finally:
        os.close(file)
    return None


class EngineLock:
    """The lock of one database file."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._file: int | None = None

    def acquire(self) -> None:
        """Take the lock, without waiting.

        Raises:
            EngineLocked: another engine holds it.
            StorageUnavailable: the file cannot be made.
        """
        path = lock_path(self._database)
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StorageUnavailable(
                f"The lock {path} cannot be made: {error.strerror}."
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            owner = read_owner(self._database)
            raise EngineLocked(str(self._database), str(owner or "unknown")) from None
        except OSError as error:
            os.close(file)
            raise StorageUnavailable(f"{path} cannot be locked: {error.strerror}.") from error
        self._file = file
        self.set_owner(None)

    def set_owner(self, url: str | None) -> None:
        """Write down this process and its address. Does nothing without the lock."""
        if self._file is not None:
            self._write(json.dumps(asdict(Owner(pid=os.getpid(), url=url))))

    def release(self) -> None:
        """Give the lock back. Safe to call twice."""
        if self._file is not None:
            self._write("")
            os.close(self._file)
            self._file = None

    def _write(self, text: str) -> None:
        # A full disk must not stop an engine from starting: the lock holds without words.
        if self._file is not None:
            with suppress(OSError):
                os.ftruncate(self._file, 0)
                os.pwrite(self._file, text.encode(), 0)
