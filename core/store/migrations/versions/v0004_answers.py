"""What visitors answered, so that a reload does not ask again."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    visitor = sa.ForeignKey("visitors.id", ondelete="CASCADE")
    op.create_table(
        "answers",
        sa.Column("visitor", sa.String, visitor, primary_key=True),
        sa.Column("question", sa.String, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
