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
TEXTS = {  # columns with names of dataclasses and functions in them
    "runs": ("address", "arguments", "start", "value", "fit"),
    "epochs": ("value",),
    "measurements": ("kind", "provenance", "value"),
    "classes": ("rules",),
    "answers": ("value",),
}
MOVED = """
checkpoints.results lessons.checkpoints.checkpoints_result Resumed RoundTrip
checkpoints.resume lessons.checkpoints.resume compare
checkpoints.round_trip lessons.checkpoints.round_trip measure
compare.candidates lessons.compare.candidates Candidate
compare.crossover lessons.compare.crossover measure
compare.race lessons.compare.race race
compare.results lessons.compare.crossover_result Crossover
compare.results lessons.compare.race_result Race
compare.results lessons.compare.step_profile_result StepProfile
compare.results lessons.compare.timing_pitfalls_result TimingLab
compare.step_profile lessons.compare.step_profile measure
compare.timing_pitfalls lessons.compare.timing_pitfalls measure
evaluate.evaluation lessons.evaluate.evaluation compare_modes evaluate
evaluate.precision lessons.evaluate.precision compare
evaluate.results lessons.evaluate.evaluate_result Evaluation ModeCost PrecisionCost
machine.parallel lessons.device.parallel measure
machine.results lessons.device.parallel_result Multiplications
mistakes.catalogue lessons.mistakes.catalogue Failure MistakeRun
mistakes.runner lessons.mistakes.runner failures run
move.model_to lessons.model.model_to time_move
move.results lessons.model.model_result MoveTime Transfers
move.transfers lessons.model.transfers measure
scale.cost lessons.scale.cost measure
scale.data_parallel lessons.scale.data_parallel run
scale.gradients lessons.scale.gradients measure
scale.results lessons.scale.scale_result Cost Gradients ParallelRun
speed.climb lessons.speed.climb climb
speed.copies lessons.speed.copies measure
speed.headline lessons.speed.climb_result Climbed
speed.ladder lessons.speed.climb_result Climb Result
speed.loader lessons.speed.loader measure
speed.memory lessons.speed.memory measure
speed.results lessons.speed.copies_result CopiesLab
speed.results lessons.speed.loader_result LoaderLab LoaderPlan
speed.results lessons.speed.memory_result MemoryLab
speed.results lessons.speed.vectorize_result NumpyEnvironment VectorizeLab
speed.vectorize lessons.speed.vectorize measure
"""  # the old module, the new one, and the names in it that rows may have
ADDRESSES = {
    f"core.{old}:{name}": f"core.{new}:{name}"
    for old, new, *names in map(str.split, MOVED.strip().splitlines())
    for name in names
}


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
        renamed = re.sub(
            r"\bcore(\.\w+)+:\w+", lambda name: ADDRESSES.get(name[0], name[0]), text
        )
        if renamed != text:
            connection.execute(table.update().where(this).values({column: renamed}))
