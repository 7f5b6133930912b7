"""Puts a run's settings into one column, and renames modules that have moved."""

import re

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

SETTINGS = (
    *("task", "model", "criterion", "device", "host", "feed", "epochs", "batch_size"),
    *("learning_rate", "weight_decay", "schedule", "augment", "seed", "num_workers"),
    *("pin_memory", "non_blocking"),
)
TEXTS = {  # columns whose texts name dataclasses and functions
    "runs": ("address", "arguments", "start", "value", "fit"),
    "epochs": ("value",),
    "measurements": ("kind", "provenance", "value"),
    "classes": ("rules",),
    "answers": ("value",),
}
OTHER_FOLDERS = {"machine": "device", "move": "model"}  # lessons with new names
MOVED = """
checkpoints.checkpoints_result Resumed RoundTrip
compare.crossover_result Crossover
compare.race_result Race
compare.step_profile_result StepProfile
compare.timing_pitfalls_result TimingLab
device.parallel_result Multiplications
evaluate.evaluate_result Evaluation ModeCost PrecisionCost
model.model_result MoveTime Transfers
scale.scale_result Cost Gradients ParallelRun
speed.climb_result Climb Climbed Result
speed.copies_result CopiesLab
speed.loader_result LoaderLab LoaderPlan
speed.memory_result MemoryLab
speed.vectorize_result NumpyEnvironment VectorizeLab
"""  # modules of core.lessons, and the classes that moved to them
MODULE_OF = {
    name: module
    for module, *names in map(str.split, MOVED.strip().splitlines())
    for name in names
}


def renamed(text: str) -> str:
    """The text with today's names; each lesson's folder has moved to core/lessons."""

    def new(address: re.Match) -> str:
        folder, module, name = address.groups()
        same = f"{OTHER_FOLDERS.get(folder, folder)}.{module}"
        return f"core.lessons.{MODULE_OF.get(name, same)}:{name}"

    folders = "checkpoints|compare|evaluate|machine|mistakes|move|scale|speed"
    return re.sub(rf"\bcore\.({folders})\.(\w+):(\w+)", new, text)


def upgrade() -> None:
    connection = op.get_bind()
    op.add_column("runs", sa.Column("settings", sa.JSON(none_as_null=True)))
    runs = sa.Table("runs", sa.MetaData(), autoload_with=connection)
    columns = [runs.c[name] for name in SETTINGS]
    query = sa.select(runs.c.id, *columns).where(runs.c.task.is_not(None))
    for run_id, *values in connection.execute(query).all():
        settings = dict(zip(SETTINGS, values, strict=True))
        this = runs.update().where(runs.c.id == run_id)
        connection.execute(this.values(settings=settings))
    for name in SETTINGS:
        op.drop_column("runs", name)
    for name, source in {"start": "started", "value": "value", "fit": "fit"}.items():
        op.add_column("runs", sa.Column(name, sa.Text))
        of_run = f"SELECT {source} FROM details WHERE run_id = runs.id"
        op.execute(f"UPDATE runs SET {name} = ({of_run})")
    op.drop_table("details")
    for name, texts in TEXTS.items():
        table = sa.Table(name, sa.MetaData(), autoload_with=connection)
        for text in texts:
            _rename(connection, table, table.c[text])


def _rename(connection: sa.Connection, table: sa.Table, column: sa.Column) -> None:
    """Replace the names in a column, row by row: a single text may have megabytes."""
    key = tuple(table.primary_key)
    with_names = sa.select(*key).where(column.contains("core."))
    for values in connection.execute(with_names).all():
        this = sa.and_(
            *(part == value for part, value in zip(key, values, strict=True))
        )
        text = str(connection.scalar(sa.select(column).where(this)))
        if renamed(text) != text:
            new = {column: renamed(text)}
            connection.execute(table.update().where(this).values(new))
