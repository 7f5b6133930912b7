"""Alembic runs this file to upgrade the database that its config's connection opens."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
