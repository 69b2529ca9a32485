"""Running alembic without a configuration file."""

import sqlite3
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection as AlchemyConnection
from sqlalchemy import create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from engine.core.errors import SchemaOutdated
from engine.store import dialect, schema
from engine.store.lock import EngineLock
from engine.store.migrations import FOLDER


def configuration(connection: AlchemyConnection | None = None) -> Config:
    """Return alembic's configuration; `env.py` takes the connection from it."""
    config = Config()
    # Alembic's parser reads a percent sign as the start of a name.
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def upgrade(path: Path) -> None:
    """See :func:`engine.store.migrations.migrate`."""
    lock = EngineLock(path)
    with dialect.translated(path):
        connection = dialect.connect(path)
        try:
            lock.acquire()
            if _needs_upgrade(connection, path):
                _upgrade(connection)
        except DBAPIError as error:
            # SQLAlchemy wraps what the driver said.
            raise error.orig or error from error
        finally:
            lock.release()
            connection.close()


def _needs_upgrade(connection: sqlite3.Connection, path: Path) -> bool:
    if connection.execute(dialect.TABLE_NAMES).fetchone() is None:
        return True
    try:
        schema.check_revision(connection, path)
    except SchemaOutdated:
        return True
    return False


def _upgrade(connection: sqlite3.Connection) -> None:
    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    event.listen(engine, "begin", _begin)
    with engine.begin() as alchemy:
        command.upgrade(configuration(alchemy), "head")


def _begin(connection: AlchemyConnection) -> None:
    # The driver would begin by itself, too late for the statements that make tables.
    connection.exec_driver_sql(dialect.BEGIN_SCHEMA)
