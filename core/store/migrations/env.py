"""Alembic runs this file to upgrade the database of the connection in its config."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
