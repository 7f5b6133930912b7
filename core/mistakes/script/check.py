"""What a training script does that is a mistake, line by line, without running it."""

from dataclasses import dataclass

from core.jobs import sandbox
from core.mistakes.script import files, moving, training, waiting
from core.mistakes.script.finding import Finding, Rule
from core.mistakes.script.reading import Script, UnreadableError

SECONDS = 8.0  # 200 KB of training code take two; what is made to be slow is ended
MEMORY_BYTES = 1 << 30

RULES: tuple[Rule, ...] = (
    moving.copy_not_kept,
    moving.model_not_moved,
    moving.batch_not_moved,
    moving.moved_after_optimizer,
    moving.load_without_place,
    moving.numpy_on_device,
    moving.cuda_written_down,
    training.softmax_before_loss,
    training.gradients_never_cleared,
    training.graph_kept,
    training.optimizer_of_another_model,
    training.training_mode_in_evaluation,
    training.gradients_in_evaluation,
    training.training_mode_not_restored,
    waiting.waits_in_every_step,
    waiting.clock_without_waiting,
    waiting.workers_without_guard,
    files.code_may_run,
    files.whole_model_saved,
)


@dataclass(frozen=True)
class Checked:
    """What was found in a script, or why it can't be read."""

    findings: tuple[Finding, ...] = ()
    unreadable: str = ""


def check(text: str) -> Checked:
    """All that the rules find in a script, in the order of its lines."""
    try:
        script = Script(text)
        found = {each for rule in RULES for each in rule(script)}
    except UnreadableError as error:
        return Checked(unreadable=str(error))
    except RecursionError:
        return Checked(unreadable="Something in it is nested too deeply.")
    return Checked(findings=tuple(sorted(found, key=_order)))


def _order(finding: Finding) -> tuple[int, int, str]:
    """By line; in a line, what is sure comes first."""
    rank = ("sure", "likely", "look").index(finding.sureness)
    return finding.line, rank, finding.say


def check_apart(text: str) -> Checked:
    """The same in a process of its own, for the lab worker: a stranger wrote it."""
    checked: Checked = sandbox.call(
        "core.mistakes.script.check:check",
        text,
        seconds=SECONDS,
        memory_bytes=MEMORY_BYTES,
        hostile=True,
    )
    return checked
