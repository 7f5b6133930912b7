"""Figures of the ladder and the labs as flat rows, for CSV and JSON."""

from core.measure.rows import Row, row
from core.speed.ladder import Climbed, over_first
from core.speed.results import CopiesLab, LoaderLab, MemoryLab, VectorizeLab


def of_climb(done: Climbed) -> list[Row]:
    """A row a rung that was measured."""
    return [
        row(
            "epoch",
            each.seconds,
            done.environment,
            done.date,
            rung=each.rung,
            compared_with=each.base,
            kept=each.kept,
            task=done.climb.task,
            model=done.climb.model,
            samples_per_second=each.samples_per_second,
            speedup_over_first=over_first(each, done.results),
            start_seconds=each.start_seconds,
            test_accuracy=each.accuracy,
            peak_bytes=each.peak_bytes,
            limit_seconds=done.limit.seconds(each.samples, each.steps),
        )
        for each in done.results
        if each.measured
    ]


def of_loader(lab: LoaderLab) -> list[Row]:
    """A row a cell, with the start of its workers apart."""
    return [
        row(
            "loading and moving",
            cell.seconds,
            lab.environment,
            lab.date,
            samples_per_second=cell.samples_per_second,
            samples_a_reading=cell.samples,
            batch_size=cell.batch_size,
            num_workers=cell.workers,
            pin_memory=cell.pinned,
            start_seconds=cell.start_seconds,
            task=lab.task,
            usable_cores=lab.cores,
        )
        for cell in lab.cells
    ]


def of_memory(lab: MemoryLab) -> list[Row]:
    """A row a way to train or to infer."""
    return [
        row(
            each.kind,
            each.seconds,
            lab.environment,
            lab.date,
            way=each.name,
            peak_bytes=each.peak_bytes,
            greatest_difference=each.difference,
            greatest_value=each.greatest,
            batch_size=lab.batch_size,
            width=lab.width,
            layers=lab.layers,
        )
        for each in lab.costs
    ]


def of_vectorize(lab: VectorizeLab) -> list[Row]:
    """A row a way and number of points."""
    return [
        row(
            "distances",
            each.seconds,
            lab.environments[each.way],
            lab.date,
            way=each.way,
            points=each.points,
            means=lab.means,
            greatest_difference=each.difference,
        )
        for each in lab.found
    ]


def of_copies(lab: CopiesLab) -> list[Row]:
    """A row a number of pieces, then a row a way to fetch."""
    copies = [
        row(
            "copies",
            each.seconds,
            lab.environment,
            lab.date,
            way=None,
            pieces=each.pieces,
            bytes=each.bytes,
            steps=None,
        )
        for each in lab.copied
    ]
    fetches = [
        row(
            "steps, fetched",
            each.seconds,
            lab.environment,
            lab.date,
            way=each.way,
            pieces=None,
            bytes=None,
            steps=each.steps,
        )
        for each in lab.fetched
    ]
    return copies + fetches
