"""Adds columns for the guesses that a class's projector shows, and has shown."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("classes", sa.Column("revealed", sa.Text()))
    op.add_column("classes", sa.Column("told", sa.Text()))
