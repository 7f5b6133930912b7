"""What the mistakes are called, why they are mistakes, and what running one tells.

The mistakes themselves are in core.mistakes.examples. Nothing here imports torch, so
that the web server can read all of it.
"""

from dataclasses import dataclass

from core.measure.environment import Environment

# Where a half runs.
OTHER = "other"  # the accelerator; without one meta, which has shapes but no numbers
BEST = "best"  # the accelerator; without one the CPU
HOST = "host"  # the CPU, also where there is an accelerator
NO_GPU = "no gpu"  # the CPU, with any GPU hidden from the process


@dataclass(frozen=True)
class Figure:
    """What a silent mistake gets wrong, and how the number is written."""

    label: str
    format: str  # for str.format, with the unit
    counts_waits: bool = False  # for numbers, else it is what the function returns


@dataclass(frozen=True)
class Mistake:
    """One mistake: `broken_<slug>` makes it, and `fixed_<slug>` beside it does not."""

    place: str  # "module:slug", in core.mistakes.examples
    title: str
    why: str
    broken_on: str = OTHER
    needs_numbers: bool = False  # to be mended: meta has none
    figure: Figure | None = None  # None: it is loud, and raises
    memory_bytes: int | None = None  # that its process may take
    note: str = ""  # what to know of the machine when reading the outcome
    without_accelerator: str = ""  # what would be different with one

    @property
    def loud(self) -> bool:
        return self.figure is None

    @property
    def slug(self) -> str:
        return self.place.partition(":")[2]

    @property
    def fixed_on(self) -> tuple[str, ...]:
        """As the broken half; where that is two devices, the best one alone too."""
        if self.broken_on != OTHER:
            return (self.broken_on,)
        return (BEST,) if self.needs_numbers else (OTHER, BEST)

    def address(self, half: str) -> str:
        """Where its "broken" or "fixed" half is in the code."""
        return "core.mistakes.examples." + self.place.replace(":", f":{half}_")


ACCURACY = "{:.1%}"
MISTAKES = (
    Mistake(
        "moving:data_not_moved",
        "The model is moved, the data is not",
        "PyTorch expects all tensors of an operation on the same device, and finds "
        "two. `model.to(device)` moves the weights; each input batch starts on the "
        "CPU and has to be moved too.",
    ),
    Mistake(
        "moving:labels_not_moved",
        "The labels are forgotten",
        "The loss expects outputs and targets on the same device. The outputs are "
        "where the model is, so the labels have to be moved like the inputs.",
    ),
    Mistake(
        "moving:predictions_vs_labels",
        "Predictions on the GPU, labels on the CPU",
        "`==` is an operation like any other, and expects both tensors on the same "
        "device: move the labels before you count what is correct.",
    ),
    Mistake(
        "moving:to_not_reassigned",
        "`x.to(device)` without reassigning",
        "A tensor stays where it is: `.to` returns a copy on the device, which is lost "
        "if nobody keeps it. Only a module is moved in place by `model.to(device)`.",
    ),
    Mistake(
        "moving:tensor_in_forward",
        "A tensor made inside `forward`",
        "`torch.rand`, `torch.zeros`, `torch.arange` make their tensor on the CPU, "
        "wherever the module is. Ask for `rand_like(images)`, or pass "
        "`device=images.device`.",
    ),
    Mistake(
        "moving:layers_in_list",
        "Layers in a plain list",
        "A module knows only the layers that are its attributes or stand in an "
        "`nn.ModuleList`. Those in a Python list are never moved, and never trained.",
    ),
    Mistake(
        "moving:loss_not_moved",
        "A loss with parameters that was not moved",
        "A criterion can have weights of its own: class weights, a learned scale. It "
        "is a module, so move it like the model, and give its parameters to the "
        "optimizer.",
    ),
    Mistake(
        "moving:cuda_hard_coded",
        "`.cuda()` hard-coded",
        "Without an NVIDIA GPU, its driver, and a torch compiled with CUDA enabled, "
        "`.cuda()` can only fail. Ask torch once what is there, and write "
        "`.to(device)` everywhere else.",
        broken_on=NO_GPU,
        note="Any GPU is hidden from the process that runs this.",
    ),
    Mistake(
        "moving:numpy_on_device",
        "`.numpy()` on a tensor on the device",
        "A NumPy array lives in host memory. Copy the tensor to the CPU first.",
        needs_numbers=True,
    ),
    Mistake(
        "moving:numpy_requires_grad",
        "`.numpy()` on a tensor that requires grad",
        "NumPy does not record gradients, so torch refuses to hand the numbers over "
        "in silence. Say that you mean it: `detach` first.",
        broken_on=HOST,
    ),
    Mistake(
        "loading:cuda_checkpoint",
        "A CUDA checkpoint loaded on a CPU",
        "`torch.save` writes down where each tensor was, and `torch.load` puts it back "
        "there. `map_location` says where to put it instead.",
        broken_on=NO_GPU,
        note="Any GPU is hidden from the process that runs this. The checkpoint was "
        "written here, its tensors tagged as on `cuda:0`.",
    ),
    Mistake(
        "loading:pickle_refused",
        "A pickle that `weights_only=True` refuses",
        "A pickle can run code while it is loaded. With `weights_only=True`, the "
        "default since torch 2.6, only tensors and plain types pass: save dicts, not "
        "objects of your own classes.",
        broken_on=HOST,
    ),
    Mistake(
        "loading:wrong_architecture",
        "A `state_dict` of the wrong architecture",
        "The file has names and shapes of one architecture, the model of another. "
        "`load_state_dict` lists keys that are missing or unexpected, and every size "
        "mismatch. `strict=False` does not mend it: what has no match is left out, "
        "silently, and stays untrained.",
        broken_on=HOST,
    ),
    Mistake(
        "bounds:out_of_memory",
        "Out of memory",
        "Activations grow with the batch: here 100 kB for each image, and all are kept "
        "for `backward`. Smaller pieces whose gradients add up give the same step.",
        broken_on=BEST,
        memory_bytes=256 * 2**20,
        note="The process may take 256 MiB, so that the rest of the machine notices "
        "nothing. macOS and Windows set no such limit for the CPU. Where Python "
        "or NumPy runs out it is a `MemoryError`.",
    ),
    Mistake(
        "bounds:label_outside_classes",
        "A label outside the classes",
        "With 10 outputs, targets run from 0 to 9: label 10 is out of bounds. A CPU "
        "says so at once. On CUDA it is a device-side assert, and it comes late.",
        broken_on=BEST,
        without_accelerator="On CUDA the assert is raised in a kernel, and is seen "
        "only at a later line that waits for the device. From then on every call to "
        "the GPU fails in that process: only a new process helps.",
    ),
    Mistake(
        "silent:softmax_before_loss",
        "Softmax before `CrossEntropyLoss`",
        "The loss takes logits and applies softmax itself. Applied twice it flattens "
        "the gradients: the model learns, but slowly, and nothing says why.",
        broken_on=BEST,
        figure=Figure("Test accuracy after the same 126 steps", ACCURACY),
    ),
    Mistake(
        "silent:no_zero_grad",
        "No `zero_grad`",
        "`backward` adds to the gradients that are there. Without `zero_grad` each "
        "step follows the sum of all gradients since the start.",
        broken_on=BEST,
        figure=Figure("Test accuracy after the same 126 steps", ACCURACY),
    ),
    Mistake(
        "silent:no_eval_mode",
        "No `model.eval()`",
        "In training mode dropout is on, and batch norm scales each image by the other "
        "images of its batch. Here they come class by class, as folders list them.",
        broken_on=BEST,
        figure=Figure("Test accuracy of the same trained model", ACCURACY),
    ),
    Mistake(
        "silent:timing_unsynchronized",
        "Timing without synchronizing",
        "An accelerator works through a queue, and the call that queues work returns "
        "at once. Whoever stops the clock without waiting has timed the queueing.",
        broken_on=BEST,
        figure=Figure("Time measured for the same work", "{:.5f} s"),
        without_accelerator="An operation on the CPU returns when it is done, so here "
        "a thread takes the place of the device's queue. On an accelerator the queue "
        "is the device's own, and `synchronize` waits for it.",
    ),
    Mistake(
        "silent:item_every_step",
        "`.item()` in every step",
        "`.item()` needs the number now, so the CPU waits until the device has done "
        "all it was given. Add up on the device, and fetch the sum once.",
        broken_on=BEST,
        figure=Figure("Times that the CPU waits for a number", "{:,.0f}", True),
        without_accelerator="On the CPU waiting costs nothing, since operations are "
        "done when they return. On an accelerator each wait leaves it idle until "
        "the CPU has queued the next step.",
    ),
    Mistake(
        "silent:mean_of_batch_means",
        "Accuracy as the mean of batch means",
        "The last batch is smaller, but its mean counts as much as the others. Of "
        "1,001 images in batches of 500, the last one alone decides a third.",
        broken_on=BEST,
        figure=Figure("Accuracy of the same model on 1,001 images", "{:.2%}"),
    ),
    Mistake(
        "silent:list_never_trained",
        "Layers in a plain list, on the CPU",
        "Where everything is on the CPU nothing fails. But `model.parameters()` does "
        "not see the layers in the list, so the optimizer never changes them.",
        broken_on=HOST,
        figure=Figure("Parameters that the optimizer trains", "{:,.0f}"),
    ),
)
BY_SLUG = {mistake.slug: mistake for mistake in MISTAKES}


@dataclass(frozen=True)
class Failure:
    """An exception, and where in the mistake's own function it was raised."""

    kind: str  # the exception's class
    message: str
    line: int | None  # of the function's body, from 1
    traceback: str
    poisoned: bool  # whether the device failed its process from then on


@dataclass(frozen=True)
class Outcome:
    """How one half ended: with a failure, a result, or the death of its process."""

    device: str  # "cuda", "meta", "cpu", ...
    result: str = ""  # what the function returned, as Python writes it
    figure: float | None = None
    failure: Failure | None = None
    died: str = ""  # how its process ended, in a sentence


@dataclass(frozen=True)
class MistakeRun:
    """How both halves of a mistake ended."""

    slug: str
    broken: Outcome
    fixed: tuple[Outcome, ...]
    environment: Environment
