"""The tables, as the newest migration leaves them.

Large things stand in tables of their own, so that a list of runs never loads them.
Times are seconds since 1970. Values are texts of core.store.codec, not the JSON type of
a database, which knows no NaN, as a loss may be.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.dialects import postgresql, sqlite

METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
    }
)


def _of_a_run() -> Column[str]:
    """Rows that go when their run goes."""
    key = ForeignKey("runs.id", ondelete="CASCADE")
    return Column("run_id", String, key, primary_key=True)


visitors = Table(
    "visitors",
    METADATA,
    Column("id", String, primary_key=True),
    Column("code", String, nullable=False, unique=True),  # to come back with
    Column("created", Float(53), nullable=False),
    Column("seen", Float(53), nullable=False),  # last
)

classes = Table(
    "classes",
    METADATA,
    Column("id", String, primary_key=True),
    Column("code", String, nullable=False, unique=True),  # to join with
    Column("name", Text, nullable=False),
    Column("size", Integer, nullable=False),  # how many may join
    Column("rules", Text, nullable=False),  # a core.classroom.rules.Rules
    Column("is_open", Boolean, nullable=False),  # one at a time
    Column("is_paused", Boolean, nullable=False),  # nobody's turn comes meanwhile
    Column("created", Float(53), nullable=False),
    Column("ends", Float(53)),  # when all of it is to be deleted; None: never
    Column("joined", Integer, nullable=False),  # how many ever, the deleted too
    Column("outside", Integer, nullable=False),  # runs of those who have not joined
)

members = Table(
    "members",
    METADATA,
    Column(
        "class_id",
        String,
        ForeignKey("classes.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column(
        "visitor",
        String,
        ForeignKey("visitors.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("name", Text, nullable=False),
    Column("joined", Float(53), nullable=False),
    Column("runs", Integer, nullable=False),  # begun in this class, the deleted too
)

acts = Table(  # what teachers did
    "acts",
    METADATA,
    Column("id", String, primary_key=True),
    Column(
        "class_id",
        String,
        ForeignKey("classes.id", ondelete="CASCADE"),
    ),  # None: it was about no class, or about one that is deleted
    Column("at", Float(53), nullable=False),
    Column("who", Text, nullable=False),
    Column("what", Text, nullable=False),
    Index(None, "class_id", "at"),
)

runs = Table(  # every job that waits in the queue: training runs, races, labs
    "runs",
    METADATA,
    Column("id", String, primary_key=True),
    Column("seq", BigInteger, nullable=False, unique=True),  # the order they came in
    Column(
        "visitor",
        String,
        ForeignKey("visitors.id", ondelete="CASCADE"),
    ),  # None: the app itself
    Column(
        "class_id",
        String,
        ForeignKey("classes.id", ondelete="CASCADE"),
    ),  # that the visitor was in
    # What the queue needs
    Column("address", String, nullable=False),  # of the function
    Column("arguments", Text, nullable=False),
    Column("lane", String, nullable=False),
    Column("round", Integer, nullable=False),  # of the fair order
    Column("status", String, nullable=False),
    Column("message", Text, nullable=False),  # why it failed, or was interrupted
    Column("submitted", Float(53), nullable=False),
    Column("started", Float(53)),
    Column("ended", Float(53)),
    Column("step", Integer, nullable=False),  # reached
    Column("steps", Integer),  # in the whole run
    # What lists show of training runs: the settings of RunConfig
    Column("task", String),
    Column("model", String),
    Column("criterion", String),
    Column("device", String),
    Column("host", String),
    Column("feed", String),
    Column("epochs", Integer),
    Column("batch_size", Integer),
    Column("learning_rate", Float(53)),
    Column("weight_decay", Float(53)),
    Column("schedule", String),
    Column("augment", Boolean),
    Column("seed", BigInteger),
    Column("num_workers", Integer),
    Column("pin_memory", Boolean),
    Column("non_blocking", Boolean),
    # and what came of them
    Column("device_name", Text),
    Column("parameters", BigInteger),
    Column("accuracy", Float(53)),  # on the test set, 0 to 1
    Column("r2", Float(53)),
    Column("seconds", Float(53)),
    Column("name", Text, nullable=False),  # that the visitor gave it
    Column("hidden", Boolean, nullable=False),  # by the visitor, from lists
    Column("withheld", Boolean, nullable=False),  # by a teacher, from the class
    Index(None, "visitor", "seq"),
    Index(None, "address", "seq"),
    Index(None, "class_id", "seq"),
    Index(None, "status"),
)

epochs = Table(
    "epochs",
    METADATA,
    _of_a_run(),
    Column("epoch", Integer, primary_key=True, autoincrement=False),  # from 1
    Column("value", Text, nullable=False),  # a core.results.Epoch
)

curves = Table(
    "curves",
    METADATA,
    _of_a_run(),
    # The last step of this part; when the run has ended there is one part.
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("points", LargeBinary, nullable=False),  # see core.store.codec.pack
)

checkpoints = Table(
    "checkpoints",
    METADATA,
    _of_a_run(),
    Column("state_dict", LargeBinary, nullable=False),  # as torch.save writes it
)

details = Table(
    "details",
    METADATA,
    _of_a_run(),
    Column("started", Text),  # a core.results.Started
    Column("value", Text),  # what the function returned, without what stands elsewhere
    Column("fit", Text),  # the newest core.results.Fit, until the value has it
)

measurements = Table(
    "measurements",
    METADATA,
    Column("id", String, primary_key=True),
    Column("kind", String, nullable=False),  # the address of what measured it
    Column("machine", String, nullable=False),  # where: an identity, not a name
    Column("subject", String, nullable=False),  # what of, where a kind has several
    Column(
        "visitor",
        String,
        ForeignKey("visitors.id", ondelete="SET NULL"),
    ),
    Column("measured_at", Float(53), nullable=False),
    Column("provenance", Text, nullable=False),
    Column("value", Text, nullable=False),
    Index(None, "kind", "machine", "subject", "measured_at"),
)

answers = Table(
    "answers",
    METADATA,
    Column(
        "visitor",
        String,
        ForeignKey("visitors.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("question", String, primary_key=True),  # its key
    Column("value", Text, nullable=False),
)


def add(connection: Connection, table: Table, **row: Any) -> bool:
    """Insert a row; False where there is one by that key, which stays as it is."""
    statement = _insert(connection, table).values(row).on_conflict_do_nothing()
    return connection.execute(statement).rowcount == 1


def put(connection: Connection, table: Table, **row: Any) -> None:
    """Insert a row, or change these columns of the one that is there."""
    statement = _insert(connection, table).values(row)
    key = [column.name for column in table.primary_key]
    new = {name: statement.excluded[name] for name in row if name not in key}
    connection.execute(statement.on_conflict_do_update(index_elements=key, set_=new))


def _insert(connection: Connection, table: Table) -> Any:
    """Both databases have ON CONFLICT, SQLAlchemy has it for each by itself."""
    dialects = {"sqlite": sqlite, "postgresql": postgresql}
    return dialects[connection.dialect.name].insert(table)


def clean(text: str) -> str:
    """The text without what a database refuses: NUL, and halves of characters."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode()
