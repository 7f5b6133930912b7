"""What was measured on a machine, so that pages open with something to see."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "measurements",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("machine", sa.String, nullable=False),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column(
            "visitor", sa.String, sa.ForeignKey("visitors.id", ondelete="SET NULL")
        ),
        sa.Column("measured_at", sa.Float(53), nullable=False),
        sa.Column("provenance", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_index(
        "ix_measurements_kind_machine_subject_measured_at",
        "measurements",
        ["kind", "machine", "subject", "measured_at"],
    )
