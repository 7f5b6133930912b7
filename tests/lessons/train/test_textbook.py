"""The textbook's script runs as the page shows it."""

from core.config import RunConfig
from core.jobs import sandbox
from core.runs import export


def test_the_script_that_is_shown_runs_and_prints_what_was_learned() -> None:
    config = RunConfig(task="sprites", feed="dataloader", epochs=1)
    script = export.inlined(config, 1, shuffle=True)
    assert "DataLoader(train_ds, batch_size=BATCH_SIZE, shuffle=True)" in script
    address = "core.lessons.train.textbook:run"
    printed = sandbox.call(address, script, True, seconds=120).splitlines()
    assert printed[0].startswith("Using device: ")
    assert printed[1].startswith("Epoch [1/1], Loss: ")
    assert printed[-1].endswith(" of 2,000)")
