"""What a training script does that is a mistake, line by line, without running it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core.jobs import sandbox
from core.script import device_rules, training_rules
from core.script.syntax import Finding, Script, UnreadableError

SECONDS = 8.0  # 200 KB of training code take two; what is made to be slow is ended
MEMORY_BYTES = 1 << 30

RULES: tuple[Callable[[Script], Iterator[Finding]], ...] = (
    device_rules.copy_not_kept,
    device_rules.model_not_moved,
    device_rules.batch_not_moved,
    device_rules.moved_after_optimizer,
    device_rules.load_without_place,
    device_rules.numpy_on_device,
    device_rules.cuda_written_down,
    training_rules.softmax_before_loss,
    training_rules.gradients_never_cleared,
    training_rules.graph_kept,
    training_rules.optimizer_of_another_model,
    training_rules.training_mode_in_evaluation,
    training_rules.gradients_in_evaluation,
    training_rules.training_mode_not_restored,
    training_rules.waits_in_every_step,
    training_rules.clock_without_waiting,
    training_rules.workers_without_guard,
    device_rules.code_may_run,
    device_rules.whole_model_saved,
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
        found = {finding for rule in RULES for finding in rule(script)}
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
    """Check in a process of its own, for the lab worker: a stranger wrote the text."""
    checked: Checked = sandbox.call(
        "core.script.check:check",
        text,
        seconds=SECONDS,
        memory_bytes=MEMORY_BYTES,
        hostile=True,
    )
    return checked
