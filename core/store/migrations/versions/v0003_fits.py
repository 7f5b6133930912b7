"""The curve that a regression has learned, also where it did not come to its end."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("details", sa.Column("fit", sa.Text))
