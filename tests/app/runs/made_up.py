from dataclasses import replace

from core.config import RunConfig
from core.jobs.job import Job
from core.results import Epoch, RunResult
from core.ui import runs
from core.ui.runs import Run
from tests.app.samples import PROCESSOR

CONFIG = RunConfig(task="sprites", epochs=3)


def run(
    name: str,
    seconds: float,
    *accuracies: float,
    images: int = 10**6,
    **settings: object,
) -> Run:
    """Its epochs took that long each; `images` are those of the test set."""
    config = replace(CONFIG, **settings)
    history = tuple(
        Epoch(n, n, 1.0, 1.0, 1.0, seconds, 1e3, test_accuracy=accuracy)
        for n, accuracy in enumerate(accuracies, 1)
    )
    result = RunResult(
        config=config,
        environment=replace(PROCESSOR, device=config.device),
        parameters=1,
        history=history,
        losses=(),
        test_correct=round(images * (accuracies or (0,))[-1]),
        test_total=images,
        seconds=seconds * len(history),
        checkpoint=b"",
    )
    job = Job(name, runs.RUN, (config,), "train", "me", "finished", value=result)
    return Run(history=history, job=job)
