"""Whether pinned batches were copied while the CPU went on; until now they all were."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("runs", sa.Column("non_blocking", sa.Boolean))
    runs = sa.table("runs", sa.column("task"), sa.column("non_blocking", sa.Boolean))
    op.execute(runs.update().where(runs.c.task.is_not(None)).values(non_blocking=True))
