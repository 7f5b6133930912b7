"""Puts names of core.registry where rows had addresses of classes and functions."""

import sqlalchemy as sa
from alembic import op

from core.store.addresses import job_name, with_names

revision = "0010"
down_revision = "0009"

TEXTS = {  # columns that have texts of codec.dumps
    "runs": ("arguments", "start", "value", "fit"),
    "epochs": ("value",),
    "measurements": ("provenance", "value"),
    "classes": ("rules",),
    "answers": ("value",),
}
JOBS = {"runs": "address", "measurements": "kind"}


def upgrade() -> None:
    connection = op.get_bind()
    for name, texts in TEXTS.items():
        table = sa.Table(name, sa.MetaData(), autoload_with=connection)
        for text in texts:
            _rename(connection, table, table.c[text])
    for name, job in JOBS.items():
        table = sa.Table(name, sa.MetaData(), autoload_with=connection)
        column = table.c[job]
        for address in connection.scalars(sa.select(column).distinct()).all():
            this = table.update().where(column == address)
            connection.execute(this.values({column: job_name(address)}))


def renamed(text: str) -> str:
    try:
        return with_names(text)
    except ValueError:  # no version of the app could read this row
        return text


def _rename(connection: sa.Connection, table: sa.Table, column: sa.Column) -> None:
    """Rename the classes in a column, row by row: a single text may have megabytes."""
    key = tuple(table.primary_key)
    with_addresses = sa.select(*key).where(column.contains('"core.'))
    for values in connection.execute(with_addresses).all():
        this = sa.and_(
            *(part == value for part, value in zip(key, values, strict=True))
        )
        text = str(connection.scalar(sa.select(column).where(this)))
        connection.execute(table.update().where(this).values({column: renamed(text)}))
