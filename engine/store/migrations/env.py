"""Alembic runs this file to apply revisions on the connection it was given."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    # All revisions in the one transaction that the caller has begun.
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
