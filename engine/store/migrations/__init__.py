"""Changes of the schema, in order.

Revisions are numbered `0001`, `0002`, …: a database with a higher number than
:data:`HEAD` was written by a newer version. A new database is not made by these but
from the tables themselves; a test proves that both give the same schema.

**Tables of other packages.** `agui_server` describes its table `run` itself, on the
same metadata, and an engine without that package has no such table. Its changes are
revisions here all the same, because a database file has one history. Such a revision
says whose table it is, and one after the first must ask whether the table exists:
a file made by an engine alone lacks it, until the package opens that file and
`schema.ensure` makes it in its current form.
"""

from pathlib import Path

HEAD = "0001"
"""The revision of the tables in this version."""

FOLDER = Path(__file__).parent


def migrate(path: Path | str) -> None:
    """Bring a database file to :data:`HEAD`, whole or not at all. An empty one, too.

    Blocks. Run it with no engine on the file: it takes the engine's lock.

    Raises:
        EngineLocked: an engine runs on the file.
        StorageUnavailable: the file is missing, no database of ours, or newer than this version.
    """
    from engine.store.migrations.upgrade import upgrade  # noqa: PLC0415 - alembic takes 0.2 s

    upgrade(Path(path))
