"""Visitors, their runs, and what runs bring."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _visitors_and_runs()
    _what_runs_bring()


def _visitors_and_runs() -> None:
    op.create_table(
        "visitors",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("code", sa.String, nullable=False, unique=True),
        sa.Column("created", sa.Float(53), nullable=False),
        sa.Column("seen", sa.Float(53), nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False, unique=True),
        sa.Column(
            "visitor", sa.String, sa.ForeignKey("visitors.id", ondelete="CASCADE")
        ),
        sa.Column("address", sa.String, nullable=False),
        sa.Column("arguments", sa.Text, nullable=False),
        sa.Column("lane", sa.String, nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("submitted", sa.Float(53), nullable=False),
        sa.Column("started", sa.Float(53)),
        sa.Column("ended", sa.Float(53)),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("steps", sa.Integer),
        sa.Column("task", sa.String),
        sa.Column("model", sa.String),
        sa.Column("criterion", sa.String),
        sa.Column("device", sa.String),
        sa.Column("feed", sa.String),
        sa.Column("epochs", sa.Integer),
        sa.Column("batch_size", sa.Integer),
        sa.Column("learning_rate", sa.Float(53)),
        sa.Column("weight_decay", sa.Float(53)),
        sa.Column("schedule", sa.String),
        sa.Column("augment", sa.Boolean),
        sa.Column("seed", sa.BigInteger),
        sa.Column("num_workers", sa.Integer),
        sa.Column("pin_memory", sa.Boolean),
        sa.Column("device_name", sa.Text),
        sa.Column("parameters", sa.BigInteger),
        sa.Column("accuracy", sa.Float(53)),
        sa.Column("r2", sa.Float(53)),
        sa.Column("seconds", sa.Float(53)),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("hidden", sa.Boolean, nullable=False),
    )
    op.create_index("ix_runs_visitor_seq", "runs", ["visitor", "seq"])
    op.create_index("ix_runs_address_seq", "runs", ["address", "seq"])
    op.create_index("ix_runs_status", "runs", ["status"])


def _what_runs_bring() -> None:
    op.create_table(
        "epochs",
        _of_a_run(),
        sa.Column("epoch", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "curves",
        _of_a_run(),
        sa.Column("step", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("points", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "checkpoints",
        _of_a_run(),
        sa.Column("state_dict", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "details",
        _of_a_run(),
        sa.Column("started", sa.Text),
        sa.Column("value", sa.Text),
    )


def _of_a_run() -> sa.Column:
    key = sa.ForeignKey("runs.id", ondelete="CASCADE")
    return sa.Column("run_id", sa.String, key, primary_key=True)
