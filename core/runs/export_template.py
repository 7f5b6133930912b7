"""The template of the script that core.runs.export writes for a run.

The template runs as it is. For a run, core.runs.export fills in the run's settings, and
keeps only the branches that the settings choose. A comment such as "# inline
core.loops" is replaced by the functions and classes of that module that the script
uses. Constants that the script doesn't use are left out.
"""

# %% Imports
import gzip
import time
from pathlib import Path

import torch
from torch import Tensor

from core import loss_functions, models, steering
from core.data import curve, datasets, sprites

# %% Settings
TASK = "fashion-mnist"
MODEL = "ann"
CRITERION = "cross-entropy"
SCHEDULE = "constant"
FEED = "memory"
AUGMENT = False
HALF = False  # compute in bfloat16 where the device itself can
LABEL_SMOOTHING = 0.0  # the share of a target that all classes get alike
DROPOUT = 0.1
NORMALIZE = False
MIRROR = False
DEVICE = "auto"
EPOCHS = 5  # passes over the training set
BATCH_SIZE = 64  # samples in a step
LEARNING_RATE = 0.001  # with one-cycle, the peak
WEIGHT_DECAY = 0.0
CHANGES = dict[int, float]()  # learning rates set by hand, keyed by steps done
SEED = 0  # the weights and all random numbers in training follow from it
THREADS = 1  # CPU threads; a different number rounds sums differently
DATA = "data"  # the data's folder; missing files are downloaded

# %% The device
if DEVICE == "auto":
    # The accelerator if there is one, otherwise the CPU.
    device = torch.accelerator.current_accelerator(check_available=True) or "cpu"
else:
    device = DEVICE
torch.set_num_threads(THREADS)
print(f"torch {torch.__version__} on {device}")

# %% The data
if TASK == "fashion-mnist":
    # 60,000 training images and 10,000 test images, 28×28 pixels, ten kinds of
    # clothes (https://github.com/zalandoresearch/fashion-mnist), 1 byte per pixel.
    PLACES = DATA, f"{DATA}/FashionMNIST/raw", "/usr/share/datasets/fashion-mnist"

    def read(name: str, header: int) -> Tensor:
        """The bytes after the header of a file: uint8, with shape (N,)."""
        paths = [Path(at, name + end) for at in PLACES for end in ("", ".gz")]
        if not any(path.exists() for path in paths):
            from torchvision.datasets import FashionMNIST  # takes seconds

            FashionMNIST(DATA, download=True)
        path = next(path for path in paths if path.exists())
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        return torch.frombuffer(bytearray(content[header:]), dtype=torch.uint8)

    train_inputs = read("train-images-idx3-ubyte", 16).view(-1, 1, 28, 28)
    train_targets = read("train-labels-idx1-ubyte", 8).long()
    test_inputs = read("t10k-images-idx3-ubyte", 16).view(-1, 1, 28, 28)
    test_targets = read("t10k-labels-idx1-ubyte", 8).long()
elif TASK == "sprites":
    # The ten kinds of clothes of Fashion-MNIST, drawn by sprites.py in this folder
    # from two seeds, so that no test image is a training image.
    # inline core.data.datasets
    train_inputs, train_targets = sprites.draw(datasets.SPRITES_TRAIN, seed=0)
    test_inputs, test_targets = sprites.draw(datasets.SPRITES_TEST, seed=1)
else:
    # Points around a curve, drawn from two seeds, so that no test point is a
    # training point. The tensors x and y are float32 (N, 1).
    # inline core.data.curve
    train, test = curve.draw(curve.TRAIN, seed=0), curve.draw(curve.TEST, seed=1)
    train_inputs, train_targets = torch.tensor(train).T.contiguous().unsqueeze(2)
    test_inputs, test_targets = torch.tensor(test).T.contiguous().unsqueeze(2)
if FEED == "device":
    # Move all data to the device now, so that no step has to move its batch.
    train_inputs, train_targets = train_inputs.to(device), train_targets.to(device)

# %% The model
# inline core.models
# inline core.loss_functions

# %% What is trained
# Set the seed before you make the model, whose first weights depend on it.
# Move the model once, before the optimizer gets its parameters.
torch.manual_seed(SEED)
if MODEL != "cnn":
    model = models.MODELS[MODEL]()
else:
    model = models.CNN(DROPOUT)
    if NORMALIZE:
        # The first filters start as the principal axes of the images' 3×3 patches.
        some = models.as_floats(train_inputs[:5000].cpu())
        next(model.parameters()).data.copy_(models.whitening(some))
if NORMALIZE and MODEL == "ann":
    model = models.Tuned(model, HALF, MIRROR, standardize=True)
elif HALF or MIRROR:
    model = models.Tuned(model, HALF, MIRROR, standardize=False)
model = model.to(device)
if LABEL_SMOOTHING == 0:
    criterion = loss_functions.CRITERIA[CRITERION]().to(device)
else:
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=LABEL_SMOOTHING)
# Fused: one kernel updates all weights. This is untested on MPS and XPU.
fused = torch.device(device).type in ("cpu", "cuda")
if WEIGHT_DECAY == 0:
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, fused=fused)
else:
    optimizer = torch.optim.AdamW(
        model.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=fused
    )
if CRITERION == "gaussian":
    # The loss has a parameter to learn too.
    optimizer.add_param_group({"params": criterion.parameters()})
if SCHEDULE == "one-cycle":
    # The rate climbs to its peak, then falls to nearly nothing.
    steps = EPOCHS * -(-len(train_targets) // BATCH_SIZE)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=max(steps, 5), pct_start=0.25
    )
if CHANGES:
    # inline core.steering

    steps_done, rate = 0, LEARNING_RATE

# %% Train and test
# After each epoch, test the model on all test samples at once. Never take the
# mean over batches, since the last batch may be smaller.
dice = torch.Generator().manual_seed(SEED)  # dropout uses another generator
if AUGMENT:
    originals = train_inputs
for epoch in range(1, EPOCHS + 1):
    losses, started = [], time.perf_counter()
    order = torch.randperm(len(train_targets), generator=dice)
    if AUGMENT:
        # Half of the images are mirrored, a different half in each epoch.
        flipped = order[torch.rand(len(order), generator=dice) < 0.5]
        train_inputs = originals.clone()
        train_inputs[flipped] = originals[flipped].flip(-1)
    model.train()
    for batch in order.to(train_inputs.device).split(BATCH_SIZE):
        inputs, targets = train_inputs[batch], train_targets[batch]
        inputs, targets = inputs.to(device), targets.to(device)
        if CHANGES:
            if steps_done in CHANGES:
                steering.scale(optimizer, CHANGES[steps_done] / rate)
                rate = CHANGES[steps_done]
            steps_done += 1

        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()

        if SCHEDULE == "one-cycle":
            scheduler.step()
        # With loss.item(), the CPU would wait for the device in every step.
        losses.append(loss.detach())
    mean_loss = torch.stack(losses).mean().item()  # over the steps
    seconds = time.perf_counter() - started

    model.eval()  # no dropout, and batch norm uses its running averages
    with torch.inference_mode():
        batches = test_inputs.split(1000)
        outputs = torch.cat([model(inputs.to(device)) for inputs in batches])
    if TASK == "regression":
        targets = test_targets.to(device)
        error = (outputs - targets).square().mean()
        r2 = 1 - error / (targets - targets.mean()).square().mean()
        quality = f"test r2 {r2:.4f}, rmse {error.sqrt():.4f}"
    else:
        hits = outputs.argmax(dim=1) == test_targets.to(device)
        correct, total = int(hits.sum()), len(hits)
        quality = f"test accuracy {correct / total:.2%} ({correct:,} of {total:,})"
    print(f"epoch {epoch:2}  loss {mean_loss:.4f}  {seconds:.2f} s  {quality}")

# %% Save the weights
torch.save(model.state_dict(), "model.pt")
# To load: torch.load("model.pt", map_location=device, weights_only=True).
