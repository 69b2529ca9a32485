"""Stores to test: every contract test runs on each."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from engine.store.memory import MemoryStore
from engine.store.protocol import Store
from engine.store.sql import SqlStore
from tests.store.notes import METADATA


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a database file may be made."""
    return tmp_path / "engine.db"


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, path: Path) -> AsyncGenerator[Store]:
    """Open an empty store of each kind."""
    store = MemoryStore() if request.param == "memory" else SqlStore(path, metadata=METADATA)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def file_store(path: Path) -> AsyncGenerator[SqlStore]:
    """Open an empty store on a file."""
    store = SqlStore(path, metadata=METADATA)
    await store.open()
    yield store
    await store.close()
