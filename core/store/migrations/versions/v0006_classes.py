"""Classes, who is in them, what their teachers did, and the runs of each."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "classes",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("code", sa.String, nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("rules", sa.Text, nullable=False),
        sa.Column("is_open", sa.Boolean, nullable=False),
        sa.Column("is_paused", sa.Boolean, nullable=False),
        sa.Column("created", sa.Float(53), nullable=False),
        sa.Column("ends", sa.Float(53)),
        sa.Column("joined", sa.Integer, nullable=False),
        sa.Column("outside", sa.Integer, nullable=False),
    )
    op.create_table(
        "members",
        sa.Column("class_id", sa.String, _to("classes"), primary_key=True),
        sa.Column("visitor", sa.String, _to("visitors"), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("joined", sa.Float(53), nullable=False),
        sa.Column("runs", sa.Integer, nullable=False),
    )
    op.create_table(
        "acts",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("class_id", sa.String, _to("classes")),
        sa.Column("at", sa.Float(53), nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
    )
    op.create_index(op.f("ix_acts_class_id_at"), "acts", ["class_id", "at"])
    with op.batch_alter_table("runs") as batch:
        batch.add_column(sa.Column("class_id", sa.String))
        no = sa.false()
        batch.add_column(
            sa.Column("withheld", sa.Boolean, nullable=False, server_default=no)
        )
        key = "fk_runs_class_id", "classes", ["class_id"], ["id"]
        batch.create_foreign_key(*key, ondelete="CASCADE")
    op.create_index(op.f("ix_runs_class_id_seq"), "runs", ["class_id", "seq"])


def _to(table: str) -> sa.ForeignKey:
    return sa.ForeignKey(f"{table}.id", ondelete="CASCADE")
