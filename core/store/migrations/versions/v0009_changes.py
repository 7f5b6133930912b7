"""Adds a column for the learning rates that were set by hand during a run."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("runs", sa.Column("changes", sa.JSON(none_as_null=True)))
