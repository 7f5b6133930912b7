"""Adds a column for the results that a class's projector has shown."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("classes", sa.Column("shown", sa.JSON(none_as_null=True)))
