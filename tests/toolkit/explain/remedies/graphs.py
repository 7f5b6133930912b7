"""Gradients, losses, optimizers, mixed precision, and torch.compile."""

import copy

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def backward_twice(device):
    cell = nn.RNNCell(2, 3)
    hidden = torch.zeros(1, 3)
    for _ in range(2):
        hidden = cell(torch.ones(1, 2), hidden)
        hidden.sum().backward()
        hidden = hidden.detach()  # fixed
    assert cell.weight_ih.grad is not None


def inplace(device):
    x = torch.ones(3, requires_grad=True).exp()
    y = x.sigmoid()
    y += x  # broken
    y = y + x  # fixed
    y.sum().backward()
    torch.testing.assert_close(y, x.sigmoid() + x)


def leaf_in_place(device):
    w = torch.ones(3, requires_grad=True)
    for _ in range(2):
        w.grad = None
        (w * 2).sum().backward()
        w -= 0.1 * w.grad  # broken
        with torch.no_grad():  # fixed
            w -= 0.1 * w.grad  # fixed
    torch.testing.assert_close(w.detach(), torch.full((3,), 0.6))


def grad_inputs(device):
    x, w = torch.ones(3), torch.full((3,), 2.0, requires_grad=True)
    x.requires_grad_()  # fixed
    y = (x * w).sum()
    (grad,) = torch.autograd.grad(y, x)
    assert grad.tolist() == [2, 2, 2]


def loss_is_number(device):
    criterion, outputs = nn.MSELoss(), torch.ones(3, requires_grad=True)
    labels = torch.zeros(3)
    loss = criterion(outputs, labels).item()  # broken
    loss = criterion(outputs, labels)  # fixed
    loss.backward()
    assert outputs.grad is not None


def grad_output_shape(device):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    gradient = torch.tensor([[1.0], [2.0], [3.0]])
    y.backward(gradient)  # broken
    y.backward(gradient.reshape(y.shape))  # fixed
    assert x.grad.tolist() == [2, 4, 6]


def no_deterministic(device):
    import warnings

    x = torch.zeros(4)
    torch.use_deterministic_algorithms(True)  # broken
    torch.use_deterministic_algorithms(True, warn_only=True)  # fixed
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x.put_(torch.tensor([1]), torch.ones(1))
    finally:
        torch.use_deterministic_algorithms(False)
    assert x.tolist() == [0, 1, 0, 0]


def no_graph(device):
    model = nn.Linear(3, 1)
    inputs = torch.ones(2, 3)
    with torch.no_grad():  # broken
        outputs = model(inputs)
    outputs.sum().backward()
    assert model.weight.grad.tolist() == [[2, 2, 2]]


def checkpointing_inputs(device):
    block = nn.Linear(3, 1)
    x = torch.ones(2, 3)
    reentrant = True  # broken
    reentrant = False  # fixed
    loss = checkpoint(block, x, use_reentrant=reentrant).sum()
    loss.backward()
    assert block.weight.grad.tolist() == [[2, 2, 2]]


def scalar_loss(device):
    model = nn.Linear(3, 1)
    loss = model(torch.ones(2, 3))
    loss.backward()  # broken
    loss.mean().backward()  # fixed
    assert model.weight.grad.tolist() == [[1, 1, 1]]


def custom_backward(device):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            grad_input = grad * ctx.factor
            return grad_input  # broken
            return grad_input, None  # fixed

    x = torch.ones(3, requires_grad=True)
    Scale.apply(x, 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def empty_parameters(device):
    class Net(nn.Module):
        def __init__(self, layers):
            super().__init__()
            self.layers = layers  # broken
            self.layers = nn.ModuleList(layers)  # fixed

    model = Net([nn.Linear(3, 3), nn.Linear(3, 1)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert len(optimizer.param_groups[0]["params"]) == 4


def nan_loss(device):
    model = nn.Linear(1, 1)
    inputs = torch.linspace(1, 10, 8).unsqueeze(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=10)  # broken
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # fixed
    losses = []
    for _ in range(80):
        optimizer.zero_grad()
        predicted = torch.distributions.Normal(model(inputs), 1.0, validate_args=True)
        loss = -predicted.log_prob(3 * inputs).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # fixed
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def nan_gradients(device):
    x = nn.Parameter(torch.tensor([0.0, 4.0]))
    y = torch.sqrt(x * 0 + x)  # broken
    y = torch.sqrt(x.clamp_min(1e-6))  # fixed
    y.sum().backward()
    torch.nn.utils.clip_grad_norm_([x], 1.0, error_if_nonfinite=True)
    torch.testing.assert_close(x.grad, torch.tensor([0.0, 0.25]))


def requires_grad_off(device):
    model = nn.Linear(3, 1)
    x = model(torch.ones(2, 3))
    x.requires_grad = False  # broken
    x = x.detach()  # fixed
    assert not x.requires_grad


def deepcopy_graph(device):
    model = nn.Linear(3, 1)
    hidden = model(torch.ones(2, 3))
    model.last = hidden  # broken
    model.last = hidden.detach()  # fixed
    copied = copy.deepcopy(model)
    assert torch.equal(copied.weight, model.weight)


def scheduler_first(device):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
    before = model.bias.item()
    model(torch.ones(1, 2)).sum().backward()
    scheduler.step()  # broken
    optimizer.step()
    scheduler.step()  # fixed
    assert optimizer.param_groups[0]["lr"] == 0.05
    assert model.bias.item() < before


def scaler_misused(device):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    before = model.bias.item()
    loss = model(torch.ones(1, 2)).sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)  # broken
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()  # fixed
    assert model.bias.item() < before


def scaler_closure(device):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    before = model.bias.item()
    loss = model(torch.ones(1, 2)).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer, closure=lambda: loss)  # broken
    scaler.step(optimizer)  # fixed
    assert abs(before - model.bias.item() - 0.1) < 1e-6


def scaler_disabled(device):
    checkpoint = {"scaler": torch.amp.GradScaler("cpu", enabled=False).state_dict()}
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.load_state_dict(checkpoint["scaler"])  # broken
    if checkpoint["scaler"]:  # fixed
        scaler.load_state_dict(checkpoint["scaler"])  # fixed
    assert scaler.get_scale() == 8


def autocast_device(device):
    model, place = nn.Linear(2, 1), torch.device("cpu")
    name = "vulkan"  # broken
    name = place.type  # fixed
    with torch.autocast(name, dtype=torch.bfloat16):
        assert model(torch.ones(1, 2)).dtype == torch.bfloat16


def fp16_weights(device):
    norm = nn.BatchNorm1d(1)
    model = nn.Sequential(nn.Linear(2, 1), norm).half()
    model.float()  # fixed
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    before = norm.bias.item()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(torch.rand(8, 2)).sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert norm.bias.item() < before


def inference_tensor(device):
    backbone, head = nn.Linear(3, 3), nn.Linear(3, 1)
    inputs = torch.ones(2, 3)
    with torch.inference_mode():  # broken
        features = backbone(inputs)  # broken
    with torch.no_grad():  # fixed
        features = backbone(inputs)  # fixed
    head(features).sum().backward()
    assert head.weight.grad is not None
    assert backbone.weight.grad is None


def recompiles(device):
    torch.compiler.reset()

    class Counting(nn.Module):
        step = 0

        def forward(self, x):
            self.step += 1
            return x * self.step

    with torch._dynamo.config.patch(allow_unspec_int_on_nn_module=False):
        torch._dynamo.config.allow_unspec_int_on_nn_module = True  # fixed
        compiled = torch.compile(Counting(), backend="eager", fullgraph=True)
        for step in range(1, 12):
            assert compiled(torch.ones(3)).sum() == 3 * step


def compile_failed(device):
    torch.compiler.reset()

    def step(x):
        torch._dynamo.graph_break()
        return x * 2

    step = torch.compile(step, backend="eager", fullgraph=True)  # broken
    step = torch.compile(step, backend="eager")  # fixed
    assert step(torch.ones(3)).sum() == 6


def compile_toolchain(device):
    from unittest import mock

    torch.compiler.reset()
    model = nn.Sequential(nn.Linear(3, 2), nn.GELU())
    config = torch._inductor.config
    missing = mock.patch.object(config.cpp, "cxx", ("no-such-compiler",))
    with missing, config.patch(force_disable_caches=True, compile_threads=1):
        model = torch.compile(model)  # broken
        assert model(torch.ones(2, 3)).shape == (2, 2)


def legacy_function(device):
    class Old(torch.autograd.Function):  # broken
        def forward(self, x):  # broken
            return x * x  # broken

    class Square(torch.autograd.Function):  # fixed
        @staticmethod  # fixed
        def forward(ctx, x):  # fixed
            ctx.save_for_backward(x)  # fixed
            return x * x  # fixed

        @staticmethod  # fixed
        def backward(ctx, gradient):  # fixed
            (x,) = ctx.saved_tensors  # fixed
            return 2 * x * gradient  # fixed

    x = torch.full((2,), 3.0, requires_grad=True)
    y = Old()(x)  # broken
    y = Square.apply(x)  # fixed
    y.sum().backward()
    assert x.grad.tolist() == [6, 6]


def checkpoint_recomputed(device):
    counter = [0]

    def block(x, flag):
        counter[0] += 1
        flag = counter[0] == 1  # broken
        return x.exp().sin() if flag else x

    x = torch.ones(2, requires_grad=True)
    y = checkpoint(block, x, True, use_reentrant=False)
    y.sum().backward()
    torch.testing.assert_close(x.grad, x.exp() * x.exp().cos())
    assert y.shape == x.shape  # fixed


def graph_break(device):
    def rectify(x):
        if x.sum() > 0:  # broken
            return x  # broken
        return -x  # broken
        return torch.where(x.sum() > 0, x, -x)  # fixed

    compiled = torch.compile(rectify, backend="eager", fullgraph=True)
    assert compiled(torch.full((2,), -1.0)).tolist() == [1, 1]


def half_range(device):
    scores, mask = torch.ones(3).half(), torch.tensor([False, True, False])
    scores = scores.masked_fill(mask, -1e9)  # broken
    scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)  # fixed
    assert scores.softmax(0).tolist() == [0.5, 0, 0.5]


def not_positive_definite(device):
    samples = torch.ones(2, 3)  # fewer samples than dimensions
    a = samples.mT @ samples
    a = a.double()  # fixed
    a = (a + a.mT) / 2 + 1e-6 * torch.eye(a.shape[-1])  # fixed
    factor = torch.linalg.cholesky(a)
    torch.testing.assert_close(factor @ factor.mT, a)


def singular_matrix(device):
    a, b = torch.ones(2, 2), torch.ones(2, 1)
    x = torch.linalg.solve(a, b)  # broken
    x = torch.linalg.lstsq(a, b, driver="gelsd").solution  # fixed
    torch.testing.assert_close(a @ x, b)


def gradcheck_double(device):
    inputs = torch.linspace(0.1, 1, 4, requires_grad=True)
    inputs = inputs.detach().double().requires_grad_()  # fixed
    assert torch.autograd.gradcheck(torch.sin, (inputs,))


def view_in_place(device):
    x = torch.ones(2, 2, requires_grad=True)
    a, b = (x * 1).unbind(0)
    a *= 2  # broken
    a = a * 2  # fixed
    (a + b).sum().backward()
    assert x.grad.sum() == 6


def derivative_missing(device):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    attend = nn.functional.scaled_dot_product_attention
    x = torch.ones(1, 2, 4, 8, requires_grad=True)
    kernel = SDPBackend.FLASH_ATTENTION  # broken
    kernel = SDPBackend.MATH  # fixed
    with sdpa_kernel(kernel):
        (gradient,) = torch.autograd.grad(attend(x, x, x).sum(), x, create_graph=True)
        gradient.square().sum().backward()
    assert x.grad.shape == x.shape
