"""The tables, and their rows as dataclasses.

Times are seconds since 1970. Columns such as `value` have texts from
core.store.codec, since a database's JSON columns refuse NaN, and a loss
may be NaN.
"""

from dataclasses import fields
from functools import partial
from typing import Annotated, Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, mapped_column

from core import registry
from core.config import RunConfig
from to_device.names import SIMULATED

SETTINGS = tuple(field.name for field in fields(RunConfig))


class Row(MappedAsDataclass, DeclarativeBase, unsafe_hash=True):
    """A row as an object. Changes to an object after a read aren't stored."""

    metadata = sa.MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
        }
    )
    type_annotation_map: ClassVar = {
        float: sa.Float(53),
        dict[str, Any]: sa.JSON(none_as_null=True),
    }


class Job(sa.types.TypeDecorator[str]):
    """The address of a function; its column has the name of the job that calls it."""

    impl = sa.String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:  # noqa: ARG002
        return None if value is None else registry.name_of_job(value)

    def process_result_value(self, value: str | None, dialect: Any) -> str | None:  # noqa: ARG002
        return None if value is None else registry.address_of_job(value)


Key = Annotated[str, mapped_column(primary_key=True)]
Prose = Annotated[str, mapped_column(sa.Text)]
# A column with long texts, which lists of runs don't load.
large = partial(
    mapped_column, sa.Text, deferred=True, repr=False, compare=False, default=None
)


def owner(column: str) -> sa.ForeignKey:
    """A foreign key to `column`: a row is deleted together with its owner."""
    return sa.ForeignKey(column, ondelete="CASCADE")


class Visitor(Row):
    """A browser, or several browsers that share a code."""

    __tablename__ = "visitors"

    id: Mapped[Key]
    code: Mapped[str] = mapped_column(unique=True)  # such as "lusab-babad-gutih-tugad"
    created: Mapped[float]
    seen: Mapped[float]  # the last visit, to the hour


class Answer(Row):
    """A visitor's newest answer to a question, or a guess."""

    __tablename__ = "answers"

    visitor: Mapped[str] = mapped_column(owner("visitors.id"), primary_key=True)
    question: Mapped[Key]
    value: Mapped[Prose]


class Class(Row, kw_only=True):
    __tablename__ = "classes"

    id: Mapped[Key]
    code: Mapped[str] = mapped_column(unique=True)  # people join with it: "lusab-babad"
    name: Mapped[Prose]
    size: Mapped[int]  # how many may join
    rules: Mapped[Any] = mapped_column(sa.Text)  # a core.classroom.rules.Rules
    is_open: Mapped[bool] = mapped_column(default=False)  # true for at most one class
    is_paused: Mapped[bool] = mapped_column(default=False)
    created: Mapped[float]
    # When the class will be deleted; None if it stays
    ends: Mapped[float | None] = mapped_column(default=None)
    # How many people have joined so far, including those who deleted their data
    joined: Mapped[int] = mapped_column(default=0)
    outside: Mapped[int] = mapped_column(default=0)  # runs by people who haven't joined
    # Key of the guess that the projector shows; None or "": none
    revealed: Mapped[str | None] = mapped_column(sa.Text, default=None)
    # Keys of all guesses whose result the projector has shown, separated by spaces
    told: Mapped[str | None] = mapped_column(sa.Text, default=None)
    # Keyed by guess: the answers and the figure that the projector showed as its result
    shown: Mapped[dict[str, Any] | None] = mapped_column(default=None)


class Member(Row):
    __tablename__ = "members"

    class_id: Mapped[str] = mapped_column(owner("classes.id"), primary_key=True)
    visitor: Mapped[str] = mapped_column(owner("visitors.id"), primary_key=True)
    name: Mapped[Prose]
    joined: Mapped[float]
    runs: Mapped[int]  # runs begun in this class, including deleted ones


class Act(Row):
    """A log entry of what a teacher did."""

    __tablename__ = "acts"
    __table_args__ = (sa.Index(None, "class_id", "at"),)

    id: Mapped[Key]
    class_id: Mapped[str | None] = mapped_column(owner("classes.id"))
    at: Mapped[float]
    who: Mapped[Prose]
    what: Mapped[Prose]


class RunSummary(Row, kw_only=True):
    """A job that waits, runs, or has ended: a training run, a race, a lab.

    A training run also has its settings as attributes: `run.task`, `run.batch_size`.
    """

    __tablename__ = "runs"
    __table_args__ = (
        sa.Index(None, "visitor", "seq"),
        sa.Index(None, "address", "seq"),
        sa.Index(None, "class_id", "seq"),
        sa.Index(None, "status"),
    )

    id: Mapped[Key]
    seq: Mapped[int] = mapped_column(sa.BigInteger, unique=True)  # order of arrival
    visitor: Mapped[str | None] = mapped_column(owner("visitors.id"))  # None: the app
    class_id: Mapped[str | None] = mapped_column(owner("classes.id"), default=None)
    address: Mapped[str] = mapped_column(Job)  # the function that a worker calls
    lane: Mapped[str]
    round: Mapped[int]  # place in the fair order, see core.jobs.queue
    status: Mapped[str]  # "queued", "running", or one of core.jobs.job.ENDED
    message: Mapped[Prose] = mapped_column(default="")  # why the job failed
    submitted: Mapped[float]
    started: Mapped[float | None] = mapped_column(default=None)
    ended: Mapped[float | None] = mapped_column(default=None)
    step: Mapped[int] = mapped_column(default=0)  # the last step that was reported
    steps: Mapped[int | None] = mapped_column(default=None)  # in the whole run
    # A training run's settings; None for other jobs
    settings: Mapped[dict[str, Any] | None] = mapped_column(default=None)
    device_name: Mapped[str | None] = mapped_column(sa.Text, default=None)
    parameters: Mapped[int | None] = mapped_column(sa.BigInteger, default=None)
    accuracy: Mapped[float | None] = mapped_column(default=None)  # test set, 0 to 1
    r2: Mapped[float | None] = mapped_column(default=None)
    seconds: Mapped[float | None] = mapped_column(default=None)
    # Learning rates set by hand, keyed by the number of steps before each change
    changes: Mapped[dict[str, Any] | None] = mapped_column(default=None)
    name: Mapped[Prose] = mapped_column(default="")  # given by the visitor
    hidden: Mapped[bool] = mapped_column(default=False)  # the visitor hid the run
    withheld: Mapped[bool] = mapped_column(default=False)  # a teacher hid the run
    arguments: Mapped[str] = large(nullable=False)
    start: Mapped[str | None] = large()  # a core.results.Started
    value: Mapped[str | None] = large()  # the return value, or the events so far
    fit: Mapped[str | None] = large()  # a core.results.Fit; None once `value` has it

    def __getattr__(self, name: str) -> Any:
        """The run's setting `name`; None if the job isn't a training run.

        If the run is older than the setting, the setting's default.
        """
        if name not in SETTINGS:
            raise AttributeError(f"a run has no {name}")
        return self.settings and self.settings.get(name, getattr(RunConfig, name))

    @property
    def config(self) -> RunConfig | None:
        """All settings; None without any, or with one of another version of the app."""
        try:
            settings = {name: getattr(self, name) for name in SETTINGS}
            return RunConfig(**settings) if self.settings else None
        except ValueError:
            return None

    @property
    def is_simulated(self) -> bool:
        """Whether the run was on the simulated accelerator, which is never timed."""
        return self.device == SIMULATED


class EpochOfRun(Row):
    __tablename__ = "epochs"

    run_id: Mapped[str] = mapped_column(owner("runs.id"), primary_key=True)
    epoch: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    value: Mapped[Prose]  # a core.results.Epoch


class Curve(Row):
    """Some of a run's losses, up to `step`; all losses of a finished run."""

    __tablename__ = "curves"

    run_id: Mapped[str] = mapped_column(owner("runs.id"), primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    points: Mapped[bytes]  # see core.store.codec.pack


class Checkpoint(Row):
    __tablename__ = "checkpoints"

    run_id: Mapped[str] = mapped_column(owner("runs.id"), primary_key=True)
    state_dict: Mapped[bytes]  # as torch.save writes it


class Measurement(Row):
    __tablename__ = "measurements"
    __table_args__ = (sa.Index(None, "kind", "machine", "subject", "measured_at"),)

    id: Mapped[Key]
    kind: Mapped[str] = mapped_column(Job)  # the function that measured
    machine: Mapped[str]  # an identity that no two machines share
    subject: Mapped[str]  # the id of the run whose model was measured; "" without a run
    visitor: Mapped[str | None] = mapped_column(  # None: the app itself
        sa.ForeignKey("visitors.id", ondelete="SET NULL")
    )
    measured_at: Mapped[float]
    provenance: Mapped[Any] = mapped_column(sa.Text)  # environments, arguments
    value: Mapped[Any] = mapped_column(sa.Text)


def clean(text: str) -> str:
    """The text without what a database refuses: NUL, and halves of surrogate pairs."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode()
