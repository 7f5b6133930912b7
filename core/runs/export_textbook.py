"""The template of the script for a run with a DataLoader, in the usual style."""

# %% Imports
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from torchvision import datasets, transforms

from core import models, steering
from core.data import sprites

# %% Settings
TASK = "fashion-mnist"
MODEL = "ann"
SCHEDULE = "constant"
AUGMENT = False
HALF = False  # compute in bfloat16 where the device itself can
LABEL_SMOOTHING = 0.0  # the share of a target that all classes get alike
DROPOUT = 0.1
NORMALIZE = False
MIRROR = False
SHUFFLE = False
DEVICE = "auto"
EPOCHS = 5
BATCH_SIZE = 64
LEARNING_RATE = 0.001
WEIGHT_DECAY = 0.0
CHANGES = dict[int, float]()  # learning rates set by hand, keyed by steps done
SEED = 0  # the weights and all random numbers in training follow from it
THREADS = 1  # CPU threads; a different number rounds sums differently

# %% The device
if DEVICE == "auto":
    device = torch.accelerator.current_accelerator(check_available=True) or "cpu"
else:
    device = torch.device(DEVICE)
torch.set_num_threads(THREADS)
print("Using device:", device)

# %% The data
if TASK == "sprites":
    # The ten kinds of clothes, drawn by sprites.py in this folder.
    SPRITES_TRAIN, SPRITES_TEST = 12_000, 2_000
    images, labels = sprites.draw(SPRITES_TRAIN, seed=0)
    train_ds = TensorDataset(images / 255, labels)
    images, labels = sprites.draw(SPRITES_TEST, seed=1)
    test_ds = TensorDataset(images / 255, labels)
else:
    Data, transform = datasets.FashionMNIST, transforms.ToTensor()
    train_ds = Data(root="data", train=True, transform=transform, download=True)
    test_ds = Data(root="data", train=False, transform=transform, download=True)

if SHUFFLE:
    train_loader = DataLoader(train_ds, batch_size=BATCH_SIZE, shuffle=True)
else:
    # Here, SEED sets the order of the images in each epoch. Usually, you write
    # train_loader = DataLoader(train_ds, batch_size=BATCH_SIZE, shuffle=True).
    order = list(range(len(train_ds)))
    generator = torch.Generator().manual_seed(SEED)
    train_loader = DataLoader(train_ds, batch_size=BATCH_SIZE, sampler=order)
if MODEL == "cnn":
    train_loader.generator = torch.Generator()  # dropout uses another one
test_loader = DataLoader(test_ds, batch_size=1000)

# %% The model
# inline core.models

# %% What is trained
torch.manual_seed(SEED)
if MODEL != "cnn":
    model = models.MODELS[MODEL]()
else:
    model = models.CNN(DROPOUT)
    if NORMALIZE:
        # The first filters start as the principal axes of the images' 3×3 patches.
        first = range(min(5000, len(train_ds)))
        some = torch.stack([train_ds[i][0] for i in first])
        next(model.parameters()).data.copy_(models.whitening(some))
if NORMALIZE and MODEL == "ann":
    model = models.Tuned(model, HALF, MIRROR, standardize=True)
elif HALF or MIRROR:
    model = models.Tuned(model, HALF, MIRROR, standardize=False)
model = model.to(device)
if LABEL_SMOOTHING > 0:
    criterion = nn.CrossEntropyLoss(label_smoothing=LABEL_SMOOTHING)
else:
    criterion = nn.CrossEntropyLoss()
if WEIGHT_DECAY == 0:
    optimizer = optim.Adam(model.parameters(), lr=LEARNING_RATE, fused=True)
else:
    optimizer = optim.AdamW(
        model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True
    )
if SCHEDULE == "one-cycle":
    # The rate climbs to its peak, then falls to nearly nothing.
    steps = max(EPOCHS * len(train_loader), 5)
    scheduler = optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=steps, pct_start=0.25
    )
if CHANGES:
    # inline core.steering

    steps_done, rate = 0, LEARNING_RATE

# %% Train and test
for epoch in range(EPOCHS):
    model.train()
    running_loss = 0.0
    if not SHUFFLE:
        order[:] = torch.randperm(len(train_ds), generator=generator).tolist()
    if AUGMENT:
        # Half of the images are mirrored, a different half in each epoch.
        mirrored = torch.rand(len(train_ds), generator=generator) < 0.5
    for batch_idx, (features, labels) in enumerate(train_loader):
        if AUGMENT:
            some = mirrored[batch_idx * BATCH_SIZE :][: len(labels)]
            features[some] = features[some].flip(-1)
        features, labels = features.to(device), labels.to(device)
        if CHANGES:
            if steps_done in CHANGES:
                steering.scale(optimizer, CHANGES[steps_done] / rate)
                rate = CHANGES[steps_done]
            steps_done += 1

        optimizer.zero_grad()
        outputs = model(features)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        if SCHEDULE == "one-cycle":
            scheduler.step()

        running_loss += loss.item()  # the CPU waits for the device here
    mean_loss = running_loss / len(train_loader)  # over the steps
    print(f"Epoch [{epoch + 1}/{EPOCHS}], Loss: {mean_loss:.4f}")

model.eval()
correct = total = 0
with torch.no_grad():
    for features, labels in test_loader:
        features, labels = features.to(device), labels.to(device)
        outputs = model(features)
        _, predicted = torch.max(outputs, 1)
        total += labels.size(0)
        correct += (predicted == labels).sum().item()
print(f"test accuracy {correct / total:.2%} ({correct:,} of {total:,})")

# %% Save the weights
torch.save(model.state_dict(), "model.pt")
# To load: torch.load("model.pt", map_location=device, weights_only=True).
