"""Alembic's entry: upgrade the database behind the connection it is handed."""

from alembic import context

from core.store.tables import METADATA

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=METADATA,
    render_as_batch=connection.dialect.name == "sqlite",  # which alters few tables
)
context.run_migrations()
