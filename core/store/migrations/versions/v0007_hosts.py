"""The machine that a run is for, where several have workers; until now it was any."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("runs", sa.Column("host", sa.String))
    runs = sa.table("runs", sa.column("task"), sa.column("host", sa.String))
    op.execute(runs.update().where(runs.c.task.is_not(None)).values(host=""))
