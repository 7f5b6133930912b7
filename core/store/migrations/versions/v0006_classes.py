"""Classes, who is in them, what their teachers did, and the runs of each."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0004"


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
    # Both databases take a column with its key at once; Alembic would make SQLite's
    # table of runs anew.
    op.execute(
        "ALTER TABLE runs ADD COLUMN class_id VARCHAR CONSTRAINT fk_runs_class_id "
        "REFERENCES classes (id) ON DELETE CASCADE"
    )
    op.create_index(op.f("ix_runs_class_id_seq"), "runs", ["class_id", "seq"])


def _to(table: str) -> sa.ForeignKey:
    return sa.ForeignKey(f"{table}.id", ondelete="CASCADE")
